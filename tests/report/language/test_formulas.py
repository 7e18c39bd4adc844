"""Formulas: LaTeX to MathML, and the font that the pages draw it with."""

import re
import runpy
import tomllib
from collections.abc import Iterator
from pathlib import Path

import html5lib
import pytest
from fontTools.ttLib import TTFont  # comes with matplotlib, which draws with it
from markupsafe import Markup

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.report.language.formulas import math_ml, prose

ROOT = Path(__file__).parents[3]
FONTS = ROOT / "report_templates" / "fonts"
CATALOGUE = ROOT / "montecarlo" / "claims" / "catalogue.toml"
MATH = "{http://www.w3.org/1998/Math/MathML}"


#: What pages may come to need besides: kinds of letters, relations, what grows.
EXTRA = (
    r"\mathbb{E} \mathbb{P} \mathbb{R}, \mathcal{N}(0, 1), \mathcal{O}(n) \mathbf{q}",
    r"\alpha\beta\gamma\delta\varepsilon\epsilon\zeta\eta\theta\iota\kappa\lambda\mu",
    r"\nu\xi\pi\rho\sigma\tau\upsilon\phi\varphi\chi\psi\omega",
    r"\Gamma\Delta\Theta\Lambda\Xi\Pi\Sigma\Upsilon\Phi\Psi\Omega",
    r"a + b - c = d \ne e < f > g \le h \ge i \approx j \sim k \propto l \in m",
    r"\pm x \times y \cdot z / w * v \to \infty, \dots, \cdots, \ll, \gg, \mapsto",
    r"\int_0^\infty f'(x)\,\mathrm{d}x = \sum_{i=1}^n \frac{1}{\sqrt{n}} \prod_i p_i",
    r"\left(\left[\left\{\left|\left\lVert\frac12\right\rVert\right|\right\}\right]\right)",
    r"\hat\sigma, \bar{x}, \tilde{x}, \vec{v}, \dot{x}, f'', \underbrace{x}_{n}",
    r"\frac{\partial p}{\partial x} \nabla \ell \mathbb{1} \langle x\rangle \emptyset",
    r"\frac{Q_{0.9}}{Q_{0.1}}\bigl(\operatorname{tr} J\bigr)\,\big|_{c=\sqrt{d_k}}",
    r"\frac{\mathrm{d} \ln x^{\,\ast}}{\mathrm{d} \ln d_k} = 1{,}5\;(\pm 5\,\%)",
    r"\operatorname{med}, d_{\max}, d_{\min}, 10^{-7}, \text{row 1: x; y!}",
)

HOSTILE = (
    "<script>alert(1)</script>",
    r"\text{</mtext></math><img src=x onerror=alert(1)>}",
    r'\text{" onclick="alert(1)}',
    r"</annotation></semantics></math><svg onload=alert(1)>",
    r"<!-- x",
    r"]]><style>*{}</style>",
    r"&lt;b&gt;",
    r"\href{javascript:alert(1)}{x}",
    r"\eqref{x}",
    r"\htmlStyle{color: red}{y}",
    r"\color{red}x",
    r"\hspace{1em\" onclick=\"alert(1)}x",
    r"\begin{array}{c\"}x\end{array}",
    r"\def\x{\x\x}\x",
)


def strings(value: object) -> Iterator[str]:
    """Yield every string in nested tables."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


SENTENCES = sorted(
    {
        text
        for text in strings(tomllib.loads(CATALOGUE.read_text(encoding="utf-8")))
        if "$" in text
    }
)
SYMBOLS = sorted({row.symbol for row in (*QUANTITIES.values(), *DIVISORS.values())})


def parse(markup):
    """Parse a piece of a page; any error of syntax is raised."""
    return html5lib.HTMLParser(strict=True).parseFragment(markup, container="div")


def drawn(markup, italic):
    """Return the characters that a browser draws formulas with, parsed or not."""
    found = set()
    for leaf in (parse(markup) if isinstance(markup, str) else markup).iter():
        if leaf.tag in {MATH + "msqrt", MATH + "mroot"}:
            found.add("√")
        if leaf.tag not in {MATH + "mi", MATH + "mn", MATH + "mo", MATH + "mtext"}:
            continue
        text = leaf.text or ""
        if leaf.tag == MATH + "mi" and leaf.get("mathvariant") != "normal":
            text = italic.get(text, text)
        found.update(text)
    return found - {"\ufe00"}  # asks for a form of a letter; needs no glyph


def test_symbol_is_converted():
    """One well-formed formula with its LaTeX beside it, if that differs."""
    for latex in (*SYMBOLS, *EXTRA):
        (formula,) = parse(math_ml(latex))
        assert formula.tag == MATH + "math"
        notes = [note.text for note in formula.iter(MATH + "annotation")]
        assert notes == [latex] or (notes, "".join(formula.itertext())) == ([], latex)


def test_sentence_of_the_catalogue_is_converted():
    """Every sentence has its formulas as MathML and no dollar left."""
    for sentence in SENTENCES:
        page = parse(prose(sentence))
        formulas = re.findall(r"\$([^$]*)\$", sentence)
        numbers = [one for one in formulas if re.fullmatch(r"[\d.]+(\\,\\%)?", one)]
        set_apart = [e for e in page.iter() if e.get("class") == "label"]
        assert len(set_apart) == len(numbers)
        assert len(list(page.iter(MATH + "math"))) == len(formulas) - len(numbers)
        assert "$" not in "".join(page.itertext())


@pytest.mark.parametrize("latex", HOSTILE)
def test_nothing_but_formulas_comes_out(latex):
    """What is not mathematics is refused, or is text: no tag, no link, no style."""
    try:
        page = parse(prose(f"a ${latex}$ b"))
    except ValueError:
        with pytest.raises(ValueError, match="formula"):
            math_ml(latex)
        return
    assert [child.tag for child in page] == [MATH + "math"]
    for element in page.iter():
        if element is not page:
            assert element.tag.startswith(MATH)
        for name in element.attrib:
            assert not str(name).startswith("on")
            assert name not in {"style", "href", "class", "id"}


#: What is no formula of a page, and what its refusal names.
REFUSED = (
    (r"\sqrtt{d}", "Unknown command"),
    (r"\sqrt{d", "closing token"),
    ("a^", "Expected argument"),
    ("a & b", "table"),
    ("", "empty"),
    (" ", "empty"),
    ("a$ and $b$ or ", "partner"),
    *(
        (latex, "must not hold")
        for latex in (
            r"\begin{cases} a & b \end{cases}",
            r"\begin{aligned} a &= b \end{aligned}",
            *(r"\textcolor{red}{x}", r"\mathop{x}", r"\eqref{x}"),
            *(r"\boxed{x}", r"\cancel{x}"),
        )
    ),
    (Markup("d_k = <span>64</span>"), r"\\lt"),  # a number in its span
)


@pytest.mark.parametrize(("latex", "reason"), REFUSED)
def test_what_a_page_cannot_hold_is_refused(latex, reason):
    """Mistakes, and what would be drawn as a style, a link or a hole, by reason."""
    with pytest.raises(ValueError, match=reason) as caught:
        prose("$" + latex + "$")
    assert str(caught.value).isprintable()


def test_prose_keeps_what_is_around():
    """Words, tags and dollars in attributes stay; formulas are put in their place."""
    text = Markup('<b title="$1$">at</b> $d_k$, $n$ &amp; more（$k$ in it)')
    assert prose(text) == (
        f'<b title="$1$">at</b> <span class="kept">{math_ml("d_k")},</span> '
        f"{math_ml('n')} &amp; more"
        f'<span class="kept">（{math_ml("k")}</span> in it)'
    )


@pytest.mark.parametrize("convert", [str, Markup.escape])
def test_prose_escapes_once(convert):
    """Text is escaped if nobody has done so, and LaTeX sees what was written."""
    found = prose(convert("<i> & $f'(a) < b$"))
    assert found == "&lt;i&gt; &amp; " + math_ml("f'(a) < b")
    assert "&lt;</mo>" in found


def test_escaped_dollar_is_a_dollar():
    r"""``\$`` stands for itself, in words as in formulas."""
    assert prose(r"from \$5 to \$6") == "from $5 to $6"
    assert prose(r"$\$ 5$") == math_ml(r"\$ 5")


@pytest.fixture(scope="module")
def script():
    """The names of the script that makes the font."""
    return runpy.run_path(str(FONTS / "make_math_font.py"))


@pytest.fixture(scope="module")
def font():
    """The font of the pages."""
    pytest.importorskip("brotli", reason="woff2 is compressed with brotli")
    return TTFont(FONTS / "math.woff2")


def test_font_has_every_character_of_a_page(report, script):
    """So it has those that formulas of checks and of tables are drawn with."""
    needed = set()
    for formula in report.page("en").elements():
        if formula.tag == MATH + "math":
            needed |= drawn(formula, script["ITALIC"])
    assert needed - set("".join(script["CHARACTERS"].values())) == set()
    assert {"𝑄", "√", "≤", "‖"} <= needed


def test_font_holds_what_the_script_names(font, script):
    """The font was made by the script as it is now."""
    wanted = set("".join(script["CHARACTERS"].values()))
    assert set(map(chr, font.getBestCmap())) == wanted

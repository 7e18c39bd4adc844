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

#: What a formula is drawn from, as math-core 0.9 gives it: a fraction, signs, names.
SNAPSHOTS = {
    r"2\sqrt{d_k}": (
        "<mrow><mn>2</mn><msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt></mrow>"
    ),
    "1/d_k": (
        '<mrow><mn>1</mn><mo lspace="0" rspace="0">/</mo>'
        "<msub><mi>d</mi><mi>k</mi></msub></mrow>"
    ),
    r"q\cdot k": (
        '<mrow><mi>q</mi><mo lspace="0.2222em" rspace="0.2222em">⋅</mo>'
        "<mi>k</mi></mrow>"
    ),
    r"\ln Z": (
        "<mrow><mrow><mspace/><mi>ln</mi></mrow>"
        '<mo lspace="0.1667em">&ApplyFunction;</mo><mi>Z</mi></mrow>'
    ),
    r"\lVert J\rVert_F^2": (
        '<mrow><mo stretchy="false" form="prefix">‖</mo><mi>J</mi>'
        '<msubsup><mo stretchy="false" form="postfix">‖</mo><mi>F</mi><mn>2</mn>'
        "</msubsup></mrow>"
    ),
    r"p_{\max}": "<msub><mi>p</mi><mrow><mspace/><mi>max</mi></mrow></msub>",
}

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


def as_kept(converted):
    """Return what is kept of a converted formula: no names of signs, three decimals."""
    found = converted.replace("&ApplyFunction;", "\u2061")
    return re.sub(r'"(0\.\d{3})\d+em"', r'"\1em"', found)


@pytest.mark.parametrize("latex", SNAPSHOTS)
def test_formula_is_converted_as_before(latex):
    """A new math-core that converts differently is seen."""
    assert math_ml(latex) == (
        f"<math><semantics>{as_kept(SNAPSHOTS[latex])}"
        f'<annotation encoding="application/x-tex">{latex}</annotation>'
        "</semantics></math>"
    )


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


def test_catalogue_is_read():
    """The tests above are not about nothing."""
    assert len(SENTENCES) > 50
    assert len(SYMBOLS) > 20


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


@pytest.mark.parametrize(
    "latex",
    [
        r"\begin{cases} a & b \end{cases}",
        r"\begin{aligned} a &= b \end{aligned}",
        r"\textcolor{red}{x}",
        r"\mathop{x}",
        r"\eqref{x}",
        r"\boxed{x}",
        r"\cancel{x}",
    ],
)
def test_what_a_page_must_not_hold_is_refused(latex):
    """Styles, links and elements that browsers do not draw are an error, not a hole."""
    with pytest.raises(ValueError, match="must not hold"):
        math_ml(latex)


@pytest.mark.parametrize(
    ("latex", "reason"),
    [
        (r"\sqrtt{d}", "Unknown command"),
        (r"\sqrt{d", "closing token"),
        ("a^", "Expected argument"),
        ("a & b", "table"),
    ],
)
def test_what_is_not_understood_is_named(latex, reason):
    """A mistake names the formula and the reason, in plain characters."""
    with pytest.raises(ValueError, match=reason) as caught:
        math_ml(latex)
    assert latex in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("latex", ["", " "])
def test_empty_formula_is_refused(latex):
    """A formula of nothing is a mistake, also as two dollars in a row."""
    with pytest.raises(ValueError, match="empty"):
        prose(f"a ${latex}$")


def test_root_of_a_low_letter_is_raised():
    """A root over one low letter gets the height of others; others stay as they are."""
    assert "mpadded" in math_ml(r"\sqrt{n}")
    assert "mpadded" not in math_ml(r"\sqrt{d_k}")
    assert "mpadded" not in math_ml(r"\sqrt{2\ln n}")


def test_prose_keeps_what_is_around():
    """Words, tags and dollars in attributes stay; formulas are put in their place."""
    text = Markup('<b title="$1$">at</b> $d_k$, $n$ &amp; more')
    assert prose(text) == (
        f'<b title="$1$">at</b> <span class="kept">{math_ml("d_k")},</span> '
        f"{math_ml('n')} &amp; more"
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


@pytest.mark.parametrize("text", ["costs $5", "$a$ and $b", r"$a\$", "$"])
def test_dollar_without_partner_is_refused(text):
    """A formula that is not closed names its sentence."""
    with pytest.raises(ValueError, match="partner") as caught:
        prose(text)
    assert repr(text) in str(caught.value)


def test_markup_inside_a_formula_is_refused():
    """A number in its span cannot be part of a formula."""
    with pytest.raises(ValueError, match=r"\\lt"):
        prose(Markup("$d_k = <span>64</span>$"))


@pytest.fixture(scope="module")
def script():
    """The names of the script that makes the font."""
    return runpy.run_path(str(FONTS / "make_math_font.py"))


@pytest.fixture(scope="module")
def font():
    """The font of the pages."""
    pytest.importorskip("brotli", reason="woff2 is compressed with brotli")
    return TTFont(FONTS / "math.woff2")


def test_script_names_every_character(script):
    """Each character that formulas are drawn with is one the font is made for."""
    text = "".join([*map(math_ml, (*SYMBOLS, *EXTRA)), *map(prose, SENTENCES)])
    needed = drawn(text, script["ITALIC"])
    assert needed - set("".join(script["CHARACTERS"].values())) == set()
    assert {"𝑑", "ℎ", "𝜎", "V", "√", "‖", "∑", "𝒩"} <= needed


def test_font_has_every_character_of_a_page(report, script):
    """So it has those that formulas of checks and of tables are drawn with."""
    needed = set()
    for formula in report.page("en").elements():
        if formula.tag == MATH + "math":
            needed |= drawn(formula, script["ITALIC"])
    assert needed - set("".join(script["CHARACTERS"].values())) == set()
    assert {"𝟙", "𝑄", "√", "≤", "‖"} <= needed


def test_missing_character_is_seen(script):
    """A letter that the font does not have would not pass."""
    needed = drawn(math_ml(r"\mathfrak{g} + 门"), script["ITALIC"])
    assert needed - set("".join(script["CHARACTERS"].values())) == {"𝔤", "门"}


def test_font_holds_what_the_script_names(font, script):
    """The font was made by the script as it is now."""
    wanted = set("".join(script["CHARACTERS"].values()))
    assert set(map(chr, font.getBestCmap())) == wanted


def test_font_can_grow_signs(font):
    """Roots, norms and brackets have larger sizes and parts; sums a larger size."""
    variants = font["MATH"].table.MathVariants
    names = variants.VertGlyphCoverage.glyphs
    made = dict(zip(names, variants.VertGlyphConstruction, strict=True))
    for sign in "√‖|()[]{}":
        assert made[font.getBestCmap()[ord(sign)]].GlyphAssembly is not None, sign
    for sign in "√()∑∫":
        assert len(made[font.getBestCmap()[ord(sign)]].MathGlyphVariantRecord) > 1, sign


def test_roots_leave_no_hole(font):
    """All sizes of a root are equally wide, as browsers reserve room for the widest."""
    variants = font["MATH"].table.MathVariants
    root = font.getBestCmap()[ord("√")]
    names = variants.VertGlyphCoverage.glyphs
    made = variants.VertGlyphConstruction[names.index(root)]
    glyphs = [size.VariantGlyph for size in made.MathGlyphVariantRecord]
    glyphs += [part.glyph for part in made.GlyphAssembly.PartRecords]
    assert {font["hmtx"][glyph][0] for glyph in glyphs} == {font["hmtx"][root][0]}


def test_font_carries_its_licence(font):
    """The licence beside the font is for its copyright; its name is not reserved."""
    licence = (FONTS / "OFL.txt").read_text(encoding="utf-8")
    assert font["name"].getDebugName(0) in licence.splitlines()
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence
    assert font["name"].getDebugName(1) == "Montecarlo Math"

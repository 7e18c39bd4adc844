"""What a user wrote stands on pages as text: in its language, and never as HTML."""

import html5lib
import pytest

from montecarlo.errors import InputError
from montecarlo.report.language.catalogues import read_language
from montecarlo.report.language.own_words import (
    choose_text,
    read_own_claims,
    typeset_own_words,
    words_by_language,
)
from montecarlo.report.render import pages

MATH = "{http://www.w3.org/1998/Math/MathML}"
#: Texts without a formula: each must come out as it was typed.
HOSTILE = (
    "<script>alert(1)</script>",
    "</h3></article><img src=x onerror=alert(1)>",
    '" onclick="alert(1)" x="',
    "' autofocus onfocus='alert(1)",
    "<!-- ]]> --> <style>*{display:none}</style>",
    "<a href='javascript:alert(1)'>x</a>",
    "&lt;b&gt; &amp; &#60;b&#62; &#36;",
    "{{ 7*7 }} {{ findings.run }} {% include 'report.css' %} {# x #}",
    "%(sentence)s %(line)s %(sources)s %s %d 100 % %%",
    r"{0} {x} `id` \ \n \u202e &#x202e;",
    r"from \$5.5 to \$6.5, \$<b>\$",
    "MATH_FONT </style><base href=//example.org>",
)
MARK = "⟦x⟧"
#: Formulas that are no mathematics: refused, or shown as mathematics at most.
FORMULAS = (
    r"$\text{</mtext></math><img src=x onerror=alert(1)>}$",
    r"$\$ 5 \text{\$<b>\$}$ \$ $x$",
    "$a<b>c$ {{ 1 }} $d_k$",
)


def parse(markup):
    """Parse a piece of a page; any error of syntax is raised."""
    return html5lib.HTMLParser(strict=True).parseFragment(markup, container="div")


def skeleton(page, *, formulas=True):
    """Return every element of a page with its attributes, in order: all but words."""
    return [
        (e.tag, sorted(e.attrib.items()))
        for e in page.elements()
        if formulas or not any(a.tag == MATH + "math" for a in page.above(e))
    ]


def shown(page):
    """Return all text of the body."""
    return "".join(text for text, _ in page.texts())


# --- Which language is shown --------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "language", "texts"),
    [
        ("x", "de", [("de", "x")]),
        ({"es": "y", "ja": "z"}, "de", [("es", "y"), ("ja", "z")]),
        ({"es": "y", "de": "x", "ja": "z"}, "de", [("de", "x"), ("es", "y")]),
    ],
)
def test_first_is_that_of_the_file(words, language, texts):
    """The file's language goes first, or else what was written first."""
    found = words_by_language(words, language)
    assert list(found.items())[: len(texts)] == texts
    for code, text in found.items():
        assert choose_text(found, code) == (code, text)
    assert choose_text(found, "zh") == texts[0]


#: Page, what it shows of a text in German, of one in Japanese and Spanish.
MARKED = {
    "de": (None, "(auf Japanisch)"),
    "zh": ("（德语）", "（日语）"),
    "es": ("(en alemán)", None),
}


@pytest.mark.parametrize("code", MARKED)
def test_text_in_another_language_is_marked(own_report, code):
    """Its own language's text bare, another's with its language."""
    page = own_report.page(code)
    for claim, mark, tag, text in (
        ("scaled-variance-one", MARKED[code][0], "de", "ist mindestens"),
        (
            "unscaled-one-hot",
            MARKED[code][1],
            "ja",
            "Los pesos" if code == "es" else "重み",
        ),
    ):
        title = page.by_id[f"claim-{claim}"].find("h3")
        assert text in "".join(title.itertext())
        marks = [e.text.strip() for e in title.iter("small")]
        assert marks == [mark] * (mark is not None)
        tags = [e.get("lang") for e in title.iter("span") if e.get("lang")]
        assert tags == [tag] * len(marks)


# --- Text is data -------------------------------------------------------------------


@pytest.fixture(scope="module")
def tame(own_report):
    """The pages of a user who wrote next to nothing, by language."""
    contents = own_report.with_words(lambda _: MARK)
    return {code: own_report.render(contents, code) for code in ("de", "zh")}


@pytest.mark.parametrize("text", HOSTILE)
def test_text_comes_out_as_it_was_typed(text):
    """A text becomes a text: no element, and not a character more or less."""
    fragment = parse(typeset_own_words("en", text))
    assert list(fragment) == []
    assert fragment.text == text.replace(r"\$", "$")


@pytest.mark.parametrize("code", ["de", "zh"])
def test_no_element_comes_out_of_a_text(own_report, tame, code):
    """Whatever was written: the same elements, and it is shown."""
    text = " ¦ ".join(HOSTILE)
    page = own_report.render(own_report.with_words(lambda _: text), code)
    html5lib.HTMLParser(strict=True).parse(page.text)
    assert skeleton(page) == skeleton(tame[code])
    written = text.replace(r"\$", "$")
    assert shown(page).count(written) == shown(tame[code]).count(MARK) > 20


@pytest.mark.parametrize("text", FORMULAS)
def test_nothing_but_formulas_comes_out_of_a_text(own_report, tame, text):
    """Of what stands between dollars, formulas come out and nothing else."""
    page = own_report.render(own_report.with_words(lambda _: text), "de")
    html5lib.HTMLParser(strict=True).parse(page.text)
    bare = skeleton(page, formulas=False)
    assert bare == skeleton(tame["de"], formulas=False)
    for element in page.elements():
        for name in element.attrib:
            assert not str(name).startswith("on")


def test_text_keeps_its_points():
    """Decimal points turn into commas in formulas alone."""
    assert typeset_own_words("de", r"\$5.5 sind 5.5") == "&#36;5.5 sind 5.5"
    number, formula = (parse(typeset_own_words("de", f"$5.5{x}$")) for x in ("", "x"))
    assert "".join(number.itertext()) == "5,5"
    assert "5{,}5" in "".join(formula.itertext())


def test_own_words_are_no_message():
    """What a user wrote is never looked up among the messages."""
    translated = pages.functions_for(read_language("de"), "en")["translated"]
    assert translated("supported") == "supported"


# --- What is refused ----------------------------------------------------------------

CLAIM = '[[claim]]\nid = "a"\ntopic = "training"\nkind = "assumption"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'language = "xx"\n{CLAIM}statement = "x"', "must be one of en, de, zh"),
        (f'language = 7\n{CLAIM}statement = "x"', "language must be a text"),
        (CLAIM + 'statement = { xx = "x" }', "claim a, field xx: language must be"),
        (CLAIM + "statement = {}", "must be a text"),
        (CLAIM + 'statement = "costs $5"', "a dollar must have a partner"),
        (CLAIM + r"statement = '$\frac{1$'", "not understood"),
        (
            CLAIM + r"statement = { en = 'x', ja = '$\href{a}{b}$' }",
            "field ja: formula",
        ),
        (CLAIM + r"statement = '$\color{red} x$'", "must not hold"),
        (CLAIM + 'statement = "$$"', "must not be empty"),
        (CLAIM + r'statement = "a\u202eb"', r"'\u202e'"),
        (CLAIM + r'statement = { de = "x", en = "a\u001b[31m" }', r"'\x1b'"),
        (CLAIM + r'statement = "a\n"', r"'\n'"),
    ],
)
def test_file_that_pages_cannot_show_is_refused(text, said, tmp_path):
    """What cannot be shown is found when the file is read: one line with the place."""
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_own_claims(path)
    line = str(caught.value)
    assert line.startswith("mine.toml")
    assert said in line
    assert line.isprintable()

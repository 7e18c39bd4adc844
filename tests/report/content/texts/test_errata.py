"""Errata: which entries, in which order, as a page and as Markdown."""

import dataclasses

import html5lib
import pytest
from msgspec.structs import replace

from montecarlo.claims.outcomes import (
    CaseOutcome,
    ClaimOutcome,
    InterpretationOutcome,
)
from montecarlo.claims.schema import Source
from montecarlo.claims.verdicts import Verdict
from montecarlo.report.content.texts.errata import (
    Assertion,
    Erratum,
    Place,
    _find_assertions,
    compose_entries,
    places_right,
)
from montecarlo.report.content.views import (
    VERDICTS,
    CheckView,
    ClaimView,
    InterpretationView,
    RightView,
    Said,
)
from montecarlo.report.language.catalogues import Language, read_language
from montecarlo.report.render.errata_markdown import erratum_markdown, formula_in_text
from montecarlo.report.render.pages import render_template

PLACES = (
    Place("1", 1, 3, (1,)),
    Place("1", 1, 3, (2,)),
    Place("1", 2, 4, (1,)),
    Place("summary", 0, 6, (1,)),
)


class Untranslated(dict):
    """Messages of a language that says everything in English."""

    def __missing__(self, message):
        return message


def sentence(text):
    """Return a sentence that holds and has no numbers."""
    return None if text is None else Said(text, {}, ())


def said(name, verdict, *places, finding=None, concedes=None, right=None, found=None):
    """Return a claim as a text says it."""
    if right is not None:
        right = RightView(sentence(right), sentence("$1 + 1 = 2$"))
    claim = ClaimView(
        number=1,
        statement=f"statement of {name}",
        names={},
        outcome=ClaimOutcome(
            id=name,
            topic="variance",
            kind="measured",
            sources=(),
            verdict=Verdict(verdict),
            error_rate=0.0,
            texts={},
            interpretations=(),
            findings=(),
            right=None,
            concedes=None,
        ),
        finding=sentence(finding),
        right=right,
        concedes=sentence(concedes),
        telling=found,
    )
    return Assertion(claim, verdict, places, found)


def measured(formula):
    """Return a check with the case that refutes it."""
    case = CaseOutcome(
        distribution="gaussian",
        n_keys=128,
        d_k=64,
        d_k_range=(64, 64),
        rows=("a-row",),
        estimate=0.2,
        std_error=0.01,
        simultaneous_low=0.1,
        simultaneous_high=0.3,
        region_low=1.0,
        outcome=Verdict.REFUTED,
    )
    return CheckView(formula, (case,)), case


def erratum(claims, key="de"):
    """Compose an erratum of some claims."""
    entries = compose_entries(claims)
    return Erratum(key, "A text", "en", entries, places_right(claims))


def page_of(found, language=None):
    """Render it, parsed by the strict parser."""
    language = language or read_language("en")
    text = render_template("erratum.html.j2", language, quotable=True, erratum=found)
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    return parser.parse(text), text


def words(element):
    """Return the text of an element with white space folded."""
    return " ".join("".join(element.itertext()).split())


def test_entries_come_in_the_order_of_the_text():
    """By line and sentence, whatever the order and weight of the claims."""
    claims = [
        said("d", "refuted", PLACES[3]),
        said("b", "refuted", PLACES[3], PLACES[1]),
        said("c", "refuted", PLACES[2]),
        said("a", "contradicted_by_record", PLACES[0]),
    ]
    found = compose_entries(claims)
    assert [entry.claim.id for entry in found] == ["a", "b", "c", "d"]
    assert found[1].places == (PLACES[1], PLACES[3])


@pytest.mark.parametrize("verdict", VERDICTS)
def test_only_what_fails_is_an_entry(verdict):
    """What the words of a text support, or nobody measured, is held against nobody."""
    found = compose_entries([said("a", verdict, PLACES[0])])
    failing = {"refuted", "contradicted_by_record"}
    assert bool(found) == (verdict in failing)


def test_right_is_listed_without_what_has_an_entry():
    """Parts with points; one with an entry, or undecided, is not called right."""
    claims = [
        said("a", "supported", PLACES[0], PLACES[2], Place("三", 2, 20, (1,))),
        said("b", "refuted", PLACES[1]),
        said("c", "documented", PLACES[3]),
        said("d", "undecided", Place("5", 1, 30, (1,))),
        said("e", "supported", Place("1", 0, 2, (1,))),
    ]
    assert places_right(claims) == (("1", (2,)), ("summary", ()), ("3", (2,)))


def meaning(name, estimate):
    """Return an interpretation that is refuted at one place."""
    _, case = measured(name)
    case = replace(case, estimate=estimate)
    outcome = InterpretationOutcome(
        id=name,
        quantifier="always",
        form="statement",
        share=1.0,
        votes=True,
        verdict=Verdict.REFUTED,
        cases=(),
        borders=(),
        checks=(),
    )
    return InterpretationView(None, name, outcome, (CheckView(name, (case,)),))


@pytest.mark.parametrize("admits", [("a",), ("b",), ("a", "b"), ()])
def test_a_text_is_held_against_what_its_words_admit(admits):
    """What another interpretation came to is not; where none is named, all are."""
    one = said("claim", "refuted").claim
    source = Source(text="de", section="1", admits=admits)
    outcome = replace(one.outcome, sources=(source,), texts={"de": "refuted"})
    meanings = (meaning("a", 0.2), meaning("b", 0.3))
    claim = dataclasses.replace(one, outcome=outcome, interpretations=meanings)
    (found,) = _find_assertions(claim, "de")
    check, _ = found.telling
    assert check.formula == (admits or ("a", "b"))[0]
    assert list(_find_assertions(claim, "ja")) == []


def test_entry_says_what_it_has_to():
    """Where, what is right, what is not, what was measured, what to put there."""
    claim = said(
        "some-claim",
        "refuted",
        PLACES[1],
        Place("0", 0, 1, (1, 2)),
        finding="It is $2.5$.",
        concedes="It grows.",
        found=measured("d_k = 1.5"),
        right="It is $\\frac{1}{2.5}$ & less.",
    )
    other = said("other", "supported", PLACES[2])
    root, text = page_of(erratum([claim, other]))
    (article,) = root.iter("article")
    heading, *paragraphs = (words(e) for e in article)
    assert heading == (
        "introduction, line 1, sentence 1, sentence 2; § 1, point 1, sentence 2"
    )
    started = ("In our words: ", "Right in it: ", "Not as it is said: ", "Checked: ")
    assert all(p.startswith(s) for p, s in zip(paragraphs, started, strict=False))
    assert "; measured: 0.200 ± 0.010 (" in paragraphs[3]
    assert paragraphs[3].endswith("; Gaussian)")
    raw = {e.get("value"): e.get("data-row") for e in article.iter("data")}
    assert raw["0.2"] == "a-row"
    assert paragraphs[4] == "To put in its place:"
    assert paragraphs[6].startswith("By hand: ")
    assert paragraphs[7:] == ["Evidence"]
    (link,) = article.iter("a")
    assert link.get("href") == "en.html#claim-some-claim"
    assert "counterexample" not in text
    assert "refuted" not in words(root.find("body"))
    last = words(next(root.iter("main"))[-1])
    assert last == "Supported as it is said, where it was judged: § 1, point 2"


def test_words_that_are_not_there_leave_no_label():
    """A claim without them has no empty paragraph."""
    root, _ = page_of(erratum([said("a", "refuted", PLACES[0])]))
    (article,) = root.iter("article")
    assert [words(e) for e in article][1:] == [
        "In our words: statement of a",
        "Evidence",
    ]


FORMULAS = [
    r"\frac{1}{\sqrt{d_k}}",
    r"\{a\}_{1} + \{b\}_{2}",
    r"K'J*v \| x*y_1_2",
    r"a_{1}\,b\;c\!d \\ e",
    "x < y > z [0, 1](2)",
    r"\lVert J\rVert_{F} \mathrm{x}_{1}, ..., \mathrm{x}_{2}",
]


@pytest.mark.parametrize("latex", FORMULAS)
def test_kramdown_hands_formulas_on(latex, kramdown):
    """In the notes' Markdown a formula arrives between its signs as it is."""
    made, _ = kramdown(f"See {formula_in_text('ja', latex)}, so.\n")
    (paragraph,) = html5lib.parse(made, namespaceHTMLElements=False).iter("p")
    assert words(paragraph) == " ".join(rf"See \( {latex} \), so.".split())


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("de", r"\\( d_k \\)"),
        ("ja", r"\\( d_k \\)"),
        ("zh-chat", "$ d_k $"),
        ("zh-post", "$d_k$"),
    ],
)
def test_formulas_are_written_as_the_text_writes_them(key, written, kramdown):
    """Signs of the text's own Markdown, decimals of its language, blocks apart."""
    words_ = {"finding": "It is $0.5$ of $d_k$.", "right": "- $d_k$ is * so."}
    claims = [said("a", "refuted", p, **words_) for p in PLACES[:2]]
    language = Language("de", "de", "Deutsch", Untranslated())
    _, text = page_of(erratum(claims, key=key), language)
    found = erratum_markdown(key, text)
    assert written in found
    assert "$$" not in found
    assert "0{,}5" in found
    lines = found.splitlines()
    headings = [n for n, line in enumerate(lines) if line.startswith("#")]
    assert [lines[n].split(" ")[0] for n in headings] == ["#", "##", "##"]
    assert all(not lines[n + 1] and (n == 0 or not lines[n - 1]) for n in headings)
    made, warnings = kramdown(found)
    assert warnings.strip() == ""
    tags = [e.tag for e in html5lib.parse(made, namespaceHTMLElements=False)[1].iter()]
    assert {"ul", "li", "em", "table"}.isdisjoint(tags)
    assert tags.count("h2") == 2
    assert tags.count("p") == 2 * 6 + 1


def test_links_can_be_written_otherwise():
    """Beside a post an erratum points to the post."""
    _, text = page_of(erratum([said("a", "refuted", PLACES[0])]))
    assert "](x)" in erratum_markdown("de", text, lambda _: "x")

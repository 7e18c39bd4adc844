"""Errata: which entries, in which order, as a page and as Markdown."""

from dataclasses import replace as replaced

import html5lib
import pytest
from msgspec.structs import replace

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.outcomes import (
    ClaimOutcome,
    InterpretationOutcome,
    SentenceOutcome,
)
from montecarlo.claims.schema import (
    Catalogue,
    Claim,
    Right,
    Sentence,
    Source,
    TextEntry,
)
from montecarlo.claims.verdicts import Reason, Ruling, Verdict
from montecarlo.report.content.texts import (
    Assertion,
    Erratum,
    _find_assertions,
    compose_entries,
    make_errata,
)
from montecarlo.report.language.catalogues import LANGUAGES, read_language
from montecarlo.report.render.markdown import render_markdown_erratum
from montecarlo.report.render.pages import render
from tests.report.conftest import words


def place(section, point, line, *sentences):
    """Return where a text says something."""
    return Source("de", section, point, line, sentences)


PLACES = (
    place("1", 1, 3, 1),
    place("1", 1, 3, 2),
    place("1", 2, 4, 1),
    place("summary", 0, 6, 1),
)
HOLDS = SentenceOutcome(holds=True, numbers={}, checks=())


def outcome(name, verdict, **fields):
    """Return how a claim came out of which the given sentences hold."""
    known = {"sources": (), "texts": {}, "interpretations": (), "findings": ()}
    known |= {"right": None, "concedes": None, **fields}
    return ClaimOutcome(
        id=name,
        kind="measured",
        topic="variance",
        verdict=Verdict(verdict),
        reason=Reason.MEASURED,
        error_rate=0.0,
        **known,
    )


def said(name, verdict, *places, **fields):
    """Return a claim as a text says it."""
    return Assertion(outcome(name, verdict, **fields), verdict, places)


def erratum(claims, key="de"):
    """Compose an erratum of some claims."""
    entry = TextEntry(key, "A text", "en")
    vague = compose_entries(claims, Verdict.VAGUE)
    return Erratum(entry, compose_entries(claims), vague)


def page_of(report, found, **said):
    """Render it, of claims with some words, parsed by the strict parser."""
    claims = (
        Claim(one.claim.id, "variance", f"statement of {one.claim.id}", **said)
        for one in (*found.entries, *found.improvements)
    )
    findings = report.contents.findings
    catalogue = Catalogue(claim=tuple(claims))
    contents = replaced(
        report.contents, findings=replaced(findings, catalogue=catalogue)
    )
    text = render(
        "erratum", contents, read_language("en"), quotable=True, erratum=found
    )
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    return parser.parse(text)


def test_entries_come_in_the_order_of_the_text():
    """By line and sentence, whatever the order and weight of the claims."""
    claims = [
        said("d", "fails", PLACES[3]),
        said("b", "fails", PLACES[3], PLACES[1]),
        said("c", "fails", PLACES[2]),
        said("a", "fails", PLACES[0]),
    ]
    found = compose_entries(claims)
    assert [entry.claim.id for entry in found] == ["a", "b", "c", "d"]
    assert found[1].places == (PLACES[1], PLACES[3])


@pytest.mark.parametrize("verdict", [verdict.value for verdict in Verdict])
def test_only_what_fails_is_an_entry(verdict):
    """What the words of a text support, or nobody measured, is held against nobody."""
    found = compose_entries([said("a", verdict, PLACES[0])])
    assert bool(found) == (verdict == "fails")


@pytest.mark.parametrize("admits", [("a",), ("b",), ("a", "b"), ()])
def test_a_text_is_held_against_what_its_words_admit(admits):
    """What another interpretation came to is not; where none is named, all are."""
    meanings = tuple(
        InterpretationOutcome(
            id=name,
            quantifier="always",
            form="statement",
            votes=True,
            verdict=verdict,
            reason=Reason.MEASURED,
            checks=(),
        )
        for name, verdict in (("a", Verdict.FAILS), ("b", Verdict.VAGUE))
    )
    source = Source(text="de", section="1", admits=admits)
    claim = outcome(
        "claim",
        "fails",
        sources=(source,),
        texts={"de": Ruling(Verdict.FAILS, Reason.MEASURED)},
        interpretations=meanings,
    )
    verdicts = {"a": Verdict.FAILS, "b": Verdict.VAGUE}
    found = {one.verdict for one in _find_assertions(claim, "de")}
    assert found == {verdicts[name] for name in admits or verdicts}
    assert list(_find_assertions(claim, "ja")) == []


def test_entry_says_what_it_has_to(report):
    """Where, what was found, what is right in it, and the sentence to paste."""
    claim = said(
        "some-claim",
        "fails",
        PLACES[1],
        Source("de", "1", 0, 9),
        place("0", 0, 1, 1, 2),
        findings=(HOLDS,),
        right=HOLDS,
        concedes=HOLDS,
        texts={"de": Ruling(Verdict.FAILS, Reason.MEASURED)},
    )
    vague = said("unclear", "vague", PLACES[2], findings=(HOLDS,), right=HOLDS)
    root = page_of(
        report,
        erratum([claim, vague, said("other", "holds", PLACES[3])]),
        finding=(Sentence("A long one.", short="It is $2.5$."),),
        right=Right(text="It is $2.5$ & less.", arithmetic="$1 + 1 = 2$"),
        concedes=Sentence("It grows."),
    )
    headings = [words(e) for e in root.iter("h2")]
    assert headings == [
        "What does not hold as it is said",
        "What could be said with numbers",
    ]
    entry, improvement = root.iter("article")
    heading, *paragraphs = (words(e) for e in entry)
    assert heading == (
        "introduction, line 1, sentence 1, sentence 2; "
        "§ 1, point 1, sentence 2; § 1, formula in line 9"
    )
    assert paragraphs[0] == "In our words: statement of some-claim"
    assert paragraphs[1] == "Why not: It is 2.5. It grows."
    for one in (entry, improvement):
        (replacement,) = one.iter("blockquote")
        assert words(replacement) == "It is 2.5 & less."
    assert not list(entry.iter("a"))
    assert paragraphs[-1].endswith(", --seed 1, some-claim")
    assert "A long one" not in words(root.find("body"))


def test_errata_name_the_file_of_their_text(report):
    """Its title as well: who has the file finds its corrections, and its notation."""
    texts = {text.key: text for text in read_catalogue().text}
    assert all(text.file.endswith(".txt") and text.title for text in texts.values())
    for found in report.contents.errata:
        text = texts[found.text.key]
        language = read_language(text.language)
        page = render("erratum", report.contents, language, erratum=found)
        assert f">{text.title}</cite> (<code>{text.file}</code>)" in page
        pasted = render_markdown_erratum(report.contents, language, found)
        assert text.formula in pasted.splitlines()[0]


def test_a_text_without_anything_to_replace_has_no_erratum(report):
    """Nothing is promised that a page does not hold."""
    findings = report.contents.findings
    made = {one.text.key for one in make_errata(findings, list(LANGUAGES))}
    assert made == {one.text.key for one in report.contents.errata} != set()
    none = replaced(findings, record=replace(findings.record, claims=()))
    assert make_errata(none, list(LANGUAGES)) == []

"""Words of degree: one word, one rule, in five languages."""

import re

import pytest

from montecarlo.claims import words
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.checks import Check
from montecarlo.claims.judging import rule_on_cases
from montecarlo.claims.outcomes import Case
from montecarlo.claims.schema import Interpretation
from montecarlo.claims.verdicts import Outcome, Reason, Ruling, Verdict
from montecarlo.claims.words import read_words, without_measure
from montecarlo.report.language.catalogues import LANGUAGES

CLAIMS = read_catalogue().claim
#: Words that facts are held against, by claim: the measure is in `facts`.
OF_FACTS = {"scores-need-range": "reasonable-example", "head-dimensions": "commonly"}
#: Forms of a word in English, and the lines that it has.
FORMS = {}
for line in read_words().values():
    for form in line.word["en"].split(", "):
        FORMS.setdefault(form, set()).add(line.id)
#: Interpretations that vote, by claim.
VOTING = {
    claim.id: [one for one in claim.interpretation if not one.beyond]
    for claim in CLAIMS
}


def lines_of(claim):
    """The lines of the table that a claim is judged by."""
    lines = {name for one in VOTING[claim.id] for name in one.words}
    return lines | {OF_FACTS[claim.id]} if claim.id in OF_FACTS else lines


def test_lines_are_in_every_language():
    """Each word, and each measure that there is, in five languages."""
    for line in read_words().values():
        assert set(line.word) == set(LANGUAGES), line.id
        assert set(line.measure) in ({*LANGUAGES}, set()), line.id
    known = {text.key for text in read_catalogue().text}
    assert {text for line in read_words().values() for text in line.texts} == known


def test_every_line_is_used():
    """A word that no claim is judged by does not stand in the table."""
    assert {name for claim in CLAIMS for name in lines_of(claim)} == set(read_words())


def test_every_claim_that_has_a_word_uses_its_line():
    """A statement with a word of degree is judged by a line of that word."""
    seen = 0
    for claim in CLAIMS:
        for form, lines in FORMS.items():
            if re.search(rf"\b{form}\b", str(claim.statement).lower()):
                assert lines & lines_of(claim), (claim.id, form)
                seen += 1
    assert seen > 25


def test_a_text_has_a_word_in_one_way():
    """Two lines of a word are of other texts, but where a text says both itself."""
    by_form = {}
    for line in read_words().values():
        for text in line.texts:
            by_form.setdefault((line.word["en"], text), []).append(line.id)
    twice = {key: lines for key, lines in by_form.items() if len(lines) > 1}
    # "close to" for large d_k is a limit; "reasonable" has an example in one place
    assert {word for word, _ in twice} == {"close to", "reasonable"}


@pytest.mark.parametrize("outcome", [Outcome.SUPPORTED, Outcome.REFUTED])
def test_a_word_without_a_measure_is_vague(monkeypatch, outcome):
    """Whatever came out; with a measure it is judged, and only then."""
    one = Interpretation("x", (Check("entropy", "at_least", low=1.0),), words=("cost",))
    cases = [Case(outcome=outcome)]
    assert without_measure(one.words) == ("cost",)
    vague = Ruling(Verdict.VAGUE, Reason.WORD)
    assert rule_on_cases(one, cases, reached=True) == vague
    measured = {"cost": words.Word("cost", {"en": "cost"}, (), {"en": "so much"})}
    monkeypatch.setattr(words, "read_words", lambda: measured)
    judged = rule_on_cases(one, cases, reached=True)
    assert judged.verdict in (Verdict.HOLDS, Verdict.FAILS)


def test_usually_needs_a_published_list():
    """Cases of ours say nothing of what is usual, however many there are."""
    one = Interpretation(
        "x", (Check("entropy", "at_least", low=1.0),), quantifier="usually"
    )
    cases = [Case(d_k=2**i, outcome=Outcome.SUPPORTED) for i in range(9)]
    found = rule_on_cases(one, cases, reached=True)
    assert found == Ruling(Verdict.VAGUE, Reason.LIST)


@pytest.mark.parametrize(
    ("outcomes", "ruling"),
    [
        ("sr", Ruling(Verdict.PARTLY, Reason.DEPENDS)),
        ("ss", Ruling(Verdict.HOLDS, Reason.MEASURED)),
        ("rr", Ruling(Verdict.FAILS, Reason.MEASURED)),
    ],
)
def test_a_premise_that_is_omitted_is_named_before(outcomes, ruling):
    """It depends where it holds with one value of that premise and not with another."""
    check = Check("training_steps", "at_least", low=1.0)
    named = {"s": Outcome.SUPPORTED, "r": Outcome.REFUTED}
    cases = [
        Case(part=part, outcome=named[outcome])
        for part, outcome in zip(("sgd", "adam"), outcomes, strict=True)
    ]
    one = Interpretation("x", (check,), omits="part")
    assert rule_on_cases(one, cases, reached=True) == ruling
    plain = Interpretation("x", (check,))
    fails = "r" in outcomes
    expected = Verdict.FAILS if fails else Verdict.HOLDS
    assert rule_on_cases(plain, cases, reached=True).verdict == expected

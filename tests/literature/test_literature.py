"""Statements of papers: the file fits together, and each comes out as theory says."""

import math
import re
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import msgspec
import pytest

from montecarlo.claims.verdicts import Verdict
from montecarlo.literature import judging
from montecarlo.literature.curves import literature_curves
from montecarlo.literature.judging import find_case, judge_statement, region_of
from montecarlo.literature.quantities import QUANTITIES
from montecarlo.literature.record import SEED, read_literature_record
from montecarlo.literature.saying import answer_of, finding_of
from montecarlo.literature.schema import Case, LiteratureCheck, read_literature
from montecarlo.literature.settings import Setting

LITERATURE = read_literature()
STATEMENTS = {one.id: one for one in LITERATURE.statement}
#: A drawn value this many standard errors from the exact one is no accident: of 40
#: values, one in 2 million runs.
FAR = 6.0


RECORD = {one.id: one for one in read_literature_record().outcome.statements}
#: How each statement is said, whose it is, and how it comes out.
TABLE = {
    "weight-fades": ("limit", "nakanishi-2025", "supported"),
    "logarithm-keeps-weight": ("limit", "nakanishi-2025", "supported"),
    "logarithm-for-one-position": ("can", "chiang-2022", "supported"),
    "critical-growth": ("limit", "chen-2025", "supported"),
    "logarithm-keeps-entropy": ("limit", "su-2021", "supported"),
    "logarithm-for-normal-scores": ("always", "", "refuted"),
    "extension-factor": ("always", "peng-2023", "not_measured"),
    "extension-for-simple-rows": ("always", "", "refuted"),
    "critical-scale": ("limit", "derrida-1981 giorlandino-2025", "supported"),
    "beyond-critical": ("always", "", "supported"),
    "frozen-law": ("limit", "monthus-2007", "supported"),
    "norm-grows": ("always", "hong-2025", "supported"),
    "gradients-explode": ("degree", "hong-2025", "degree"),
    "gradients-vanish": ("limit", "vaswani-2017", "supported"),
    "one-quarter": ("always", "mudarisov-2025", "refuted"),
    "one-half": ("always", "nair-2025", "supported"),
    "mask-changes-nothing": ("always", "", "refuted"),
    "sink-changes-scaled-rows": ("always", "", "supported"),
    "sink-underflow": ("degree", "lau-2026", "degree"),
    "scaled-rows-keep-weights": ("always", "", "supported"),
    "correlated-scores": ("limit", "yang-2022", "supported"),
}
#: Of so many keys that drawing again takes longer than a test may.
MOST_KEYS = 4096


def test_file_fits_together():
    """Each name is known, each entry used, each id there once."""
    questions = [question.id for question in LITERATURE.question]
    papers = [paper.key for paper in LITERATURE.paper]
    for names in (questions, papers, [one.id for one in LITERATURE.statement]):
        assert len(set(names)) == len(names)
    assert {one.question for one in LITERATURE.statement} == set(questions)
    assert {key for one in LITERATURE.statement for key in one.paper} == set(papers)
    asked = {check.quantity for one in LITERATURE.statement for check in one.check}
    assert asked == set(QUANTITIES)


def test_statements_come_out_by_the_logic_of_their_sentences():
    """What a paper says, and what it does not, each by its own logic."""
    found = {
        name: (one.logic, " ".join(one.paper), RECORD[name].verdict.value)
        for name, one in STATEMENTS.items()
    }
    assert found == TABLE
    for name, one in STATEMENTS.items():
        recorded = RECORD[name]
        assert (recorded.logic, recorded.degree) == (one.logic, one.degree)
        assert recorded.tested == one.tested
        # a sentence, which may have a formula with a point in it
        assert re.fullmatch(r"(?:[^.]|\.(?=\d))+\.", one.tested), name


def test_a_limit_is_decided_in_the_limit():
    """By theory; what was drawn, or is at finite sizes, has no vote."""
    for name, one in STATEMENTS.items():
        if one.quantifier != "limit":
            continue
        voting = [check for check in one.check if check.votes]
        judged = [c for c in voting if any(region_of(c, case) for case in c.case)]
        assert any(check.quantity.endswith("-limit") for check in judged), name
        for check in judged:
            assert QUANTITIES[check.quantity].draw is None, name
            # at finite sizes it is the paper's own number that is held
            finite = not check.quantity.endswith("-limit")
            assert not finite or all(case.paper for case in check.case), name


def test_a_case_at_finite_size_cannot_refute_a_limit():
    """Were E Σp² at n = 1024 far from the law, the limit would stand."""
    law, found = STATEMENTS["frozen-law"], RECORD["frozen-law"]
    values = {
        ("frozen-law", i, j): (0.1 if case.estimate else case.exact, None)
        for i, cases in enumerate(found.checks)
        for j, case in enumerate(cases)
    }
    assert judge_statement(law, values).verdict == Verdict.SUPPORTED
    for key in [key for key in values if key[1] == 0]:
        values[key] = (0.1, None)
    assert judge_statement(law, values).verdict == Verdict.REFUTED


def test_questions_of_readers_have_no_author():
    """They count apart, and no sentence of ours is judged under a paper's name."""
    of_readers = [name for name, one in STATEMENTS.items() if not one.paper]
    assert len(of_readers) == 6
    # bounds of ours decide for no paper, but of a word that it sets no border for
    for name, one in STATEMENTS.items():
        if "ours" in one.tested:
            assert name in of_readers or one.degree


def test_what_agrees_is_what_can_be():
    """No probability is below 0 or above 1."""
    at = Setting(n_keys=16, std=1.0, number_format="e4m3")
    check = LiteratureCheck("row-underflow", (Case(at),), high=0.01)
    assert region_of(check, check.case[0]) == (-math.inf, 0.01)
    check = LiteratureCheck("row-underflow", (Case(at, 0.0003, 0.02),))
    assert region_of(check, check.case[0]) == (0.0, 0.0203)
    for *_, found in cases():
        least, most = QUANTITIES[found.quantity].possible
        assert found.region_low is None or found.region_low >= least
        assert found.region_high is None or found.region_high <= most
    # an interval beyond what can be is decided as it is within
    statement = STATEMENTS["sink-underflow"]
    one = msgspec.structs.replace(statement, degree="", check=(check,))
    drawn = {(one.id, 0, 0): (None, (0.001, 0.001, 100, -0.002, 0.004))}
    assert judge_statement(one, drawn).verdict == Verdict.SUPPORTED


def interpretations():
    """Return the interpretations of the five texts by claim/interpretation."""
    source = files("montecarlo.claims").joinpath("catalogue.toml")
    claims = tomllib.loads(source.read_text(encoding="utf-8"))["claim"]
    return {
        f"{claim['id']}/{one['id']}": one
        for claim in claims
        for one in claim.get("interpretation", ())
    }


@pytest.mark.parametrize("name", [n for n, one in STATEMENTS.items() if one.same_as])
def test_a_sentence_of_both_catalogues_has_one_logic(name):
    """So that it has one verdict."""
    known = interpretations()
    for other in STATEMENTS[name].same_as:
        one = known[other]
        logic = "degree" if one.get("degree") else one.get("quantifier", "always")
        assert logic == STATEMENTS[name].logic


@pytest.mark.parametrize("name", STATEMENTS)
def test_findings_name_their_numbers(name):
    """Every placeholder has a place among the checks, and no number is beside it."""
    statement = STATEMENTS[name]
    for finding in statement.finding:
        named = set(re.findall(r"%\((\w+)\)s", finding.text))
        assert named == set(finding.value)
        for check, case in finding.value.values():
            assert statement.check[check].case[case]


@pytest.mark.parametrize("question", LITERATURE.question, ids=lambda one: one.id)
def test_each_question_is_answered(question):
    """In a sentence whose numbers are there, and whose statements are its own."""
    answer = answer_of(question, RECORD)
    assert answer is not None
    for one in question.answer:
        assert set(re.findall(r"%\((\w+)\)s", one.text)) == set(one.value)
        assert {name for name, *_ in one.value.values()} <= set(one.verdicts)
        for name, check, case in one.value.values():
            assert STATEMENTS[name].check[check].case[case]
        assert question.id in {STATEMENTS[name].question for name in one.verdicts}


def spoiled(name, **changes):
    """Return the record with the first case of a statement that does not vote, or else
    the first that is judged, changed.
    """
    outcome = RECORD[name]
    judged = [
        (i, j)
        for i, of in enumerate(outcome.checks)
        for j, case in enumerate(of)
        if case.outcome != Verdict.NOT_APPLICABLE
    ]
    i, j = min(judged, key=lambda at: outcome.checks[at[0]][at[1]].votes)
    checks = [list(of) for of in outcome.checks]
    checks[i][j] = msgspec.structs.replace(checks[i][j], **changes)
    changed = msgspec.structs.replace(outcome, checks=tuple(map(tuple, checks)))
    return RECORD | {name: changed}


def test_nothing_is_said_that_did_not_come_out_so():
    """Not against a verdict, where what it rests on fails, nor against theory."""
    question = next(one for one in LITERATURE.question if one.id == "gradients")
    one = STATEMENTS["gradients-vanish"]
    assert finding_of(one, RECORD[one.id]) == one.finding[0]
    refuted = msgspec.structs.replace(RECORD[one.id], verdict=Verdict.REFUTED)
    assert finding_of(one, refuted) is None
    assert answer_of(question, RECORD | {one.id: refuted}) is None
    # the mean of ‖J‖_F² at d_k = 64 is not above that with the divisor
    below = spoiled(one.id, exact=0.5, outcome=Verdict.REFUTED)
    assert finding_of(one, below[one.id]) is None
    assert answer_of(question, below) is None
    # a case that votes, decided against its exact value
    against = spoiled("mask-changes-nothing", outcome=Verdict.SUPPORTED)
    mask = STATEMENTS["mask-changes-nothing"]
    assert finding_of(mask, RECORD[mask.id]) is not None
    assert finding_of(mask, against[mask.id]) is None


def cases():
    """Every case of every statement: statement, check, case, what is asked, what is
    on record.
    """
    for name, statement in STATEMENTS.items():
        for i, check in enumerate(statement.check):
            for j, case in enumerate(check.case):
                yield name, i, j, check, case, RECORD[name].checks[i][j]


def test_record_has_every_case():
    """In the same places, with the same numbers of papers and the same bounds."""
    assert list(RECORD) == list(STATEMENTS)
    for name, i, _, check, case, found in cases():
        assert len(RECORD[name].checks) == len(STATEMENTS[name].check)
        assert len(RECORD[name].checks[i]) == len(check.case)
        assert (found.quantity, found.at, found.paper) == (
            *(check.quantity, case.at, case.paper),
        )
        low, high = region_of(check, case) or (-math.inf, math.inf)
        ends = [None if math.isinf(end) else end for end in (low, high)]
        assert [found.region_low, found.region_high] == ends


def test_drawn_values_are_those_of_theory():
    """What was drawn is what is exact, within its standard error."""
    off = [
        (found.estimate - found.exact) / found.std_error
        for *_, found in cases()
        if found.estimate is not None and found.exact is not None
    ]
    assert len(off) > 30
    assert max(map(abs, off)) < FAR


def test_verdicts_are_those_of_theory():
    """No case is decided against its exact value, and what is found is said."""
    for *_, check, case, found in cases():
        region = region_of(check, case)
        assert found.votes == (check.votes and region is not None)
        if region is None:
            assert found.outcome == Verdict.NOT_APPLICABLE
        elif found.exact is not None and found.outcome != Verdict.UNDECIDED:
            agrees = region[0] <= found.exact <= region[1]
            assert (found.outcome == Verdict.SUPPORTED) == agrees
    for name, statement in STATEMENTS.items():
        assert finding_of(statement, RECORD[name]) is not None


@pytest.mark.slow
def test_record_is_what_is_drawn_again():
    """Exact values to nine digits, and of each quantity the first drawn of few keys."""
    drawn = set()
    for name, i, j, check, case, found in cases():
        quantity = QUANTITIES[check.quantity]
        if found.exact is not None:
            assert quantity.exact(case.at) == pytest.approx(found.exact, rel=1e-9)
        few = (case.at.n_keys or 0) <= MOST_KEYS and check.quantity not in drawn
        if found.estimate is not None and few:
            drawn.add(check.quantity)
            _, again = find_case(name, i, j, SEED, 0.001)
            assert again[0] == pytest.approx(found.estimate, rel=1e-6)
            assert again[1] == pytest.approx(found.std_error, rel=1e-4)
    assert len(drawn) > 10


def test_judging_is_that_of_the_record():
    """Of the statements without anything random, all is made again in a moment."""
    fixed = [
        one
        for one in LITERATURE.statement
        if all(QUANTITIES[check.quantity].draw is None for check in one.check)
    ]
    assert len(fixed) > 4
    for one in fixed:
        found = {
            (one.id, i, j): find_case(one.id, i, j, SEED, 0.001)
            for i, check in enumerate(one.check)
            for j, _ in enumerate(check.case)
        }
        assert judge_statement(one, found).verdict == RECORD[one.id].verdict


def test_error_rate_is_spent_once(monkeypatch):
    """Each end of each interval that votes has its part, and no interval is narrower
    than the pointwise one.
    """
    asked = []

    def noted(*task):
        asked.append(task[-1])
        return 1.0, None

    monkeypatch.setattr(judging, "find_case", noted)
    with ThreadPoolExecutor(1) as executor:
        judging.judge_literature(1, 0.01, executor)
    voting = sum(
        check.region(case) is not None and QUANTITIES[check.quantity].draw is not None
        for *_, check, case, _ in cases()
    )
    assert voting > 20
    assert set(asked) == {0.01 / (2 * voting)}


def test_curves_are_what_is_computed_again():
    """Every point, to nine digits."""
    record, again = read_literature_record().curves, list(literature_curves())
    assert len(record) == len(again)
    for one, other in zip(record, again, strict=True):
        assert (one.curve, one.outcome, one.n_keys, one.x) == (
            *(other.curve, other.outcome, other.n_keys, other.x),
        )
        assert one.estimate == pytest.approx(other.estimate, rel=1e-9)

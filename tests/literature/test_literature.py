"""Statements of papers: the file fits together, and each comes out as theory says."""

import math
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from montecarlo.claims.verdicts import Verdict
from montecarlo.literature import judging
from montecarlo.literature.curves import literature_curves
from montecarlo.literature.judging import find_case, judge_statement
from montecarlo.literature.quantities import QUANTITIES
from montecarlo.literature.record import SEED, read_literature_record
from montecarlo.literature.schema import read_literature

LITERATURE = read_literature()
STATEMENTS = {one.id: one for one in LITERATURE.statement}
#: A drawn value this many standard errors from the exact one is no accident: of 40
#: values, one in 2 million runs.
FAR = 6.0


RECORD = {one.id: one for one in read_literature_record().outcome.statements}
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


@pytest.mark.parametrize("name", STATEMENTS)
def test_findings_name_their_numbers(name):
    """Every placeholder has a place among the checks, and no number is beside it."""
    statement = STATEMENTS[name]
    for finding in statement.finding:
        named = set(re.findall(r"%\((\w+)\)s", finding.text))
        assert named == set(finding.value)
        for check, case in finding.value.values():
            assert statement.check[check].case[case]


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
        low, high = check.region(case) or (-math.inf, math.inf)
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
        region = check.region(case)
        if region is None:
            assert found.outcome == Verdict.NOT_APPLICABLE
        elif found.exact is not None and found.outcome != Verdict.UNDECIDED:
            agrees = region[0] <= found.exact <= region[1]
            assert (found.outcome == Verdict.SUPPORTED) == agrees
    for name, statement in STATEMENTS.items():
        verdicts = {finding.verdict for finding in statement.finding}
        assert RECORD[name].verdict in verdicts


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

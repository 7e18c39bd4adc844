"""The page of papers: what its numbers show, and what counts apart."""

from types import SimpleNamespace

import msgspec
import pytest

from montecarlo.claims.papers import PaperCase, Setting, read_papers_record
from montecarlo.report.content.papers import (
    Line,
    error_of_exact,
    error_of_paper,
    error_of_region,
    view_literature,
)
from montecarlo.report.language.numbers import lay_out

OUTCOME = read_papers_record().outcome


def found(low=None, high=None, exact=None):
    """What a line of a table came to."""
    ends = {"region_low": low, "region_high": high}
    return SimpleNamespace(**ends, exact=exact, std_error=None)


@pytest.mark.parametrize(
    ("paper", "error"),
    [(0.943, 1.5e-2), (1.0, 1.5), (0.00012, 1.5e-4), (5e-05, 1.5e-4), (2.5e-7, 1.5e-7)],
)
def test_papers_number_has_the_digits_it_was_given(paper, error):
    """The error that rounds it to those digits, however small the number."""
    line = Line(PaperCase(Setting(), paper), found(), votes=False)
    assert error_of_paper(line) == pytest.approx(error)


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (0.99955, 0.99965, ("0.99955", "0.99965")),
        (0.95, 1.05, ("0.95", "1.05")),
        (1.7226, 1.904, ("1.7226", "1.9040")),
        (0.0, 0.0203, ("0.0000", "0.0203")),
    ],
)
def test_what_agrees_is_shown_as_an_interval(low, high, shown):
    """Both ends with all of their digits, and the exact value with one more."""
    case = found(low, high, 0.9996456670)
    ends = [str(lay_out(end, error_of_region(case)).shown(end)) for end in (low, high)]
    assert tuple(ends) == shown
    exact = lay_out(case.exact, error_of_exact(case))
    assert exact.decimals >= len(shown[0]) - 1


@pytest.mark.parametrize(("low", "high"), [(None, 0.25), (1.0, None), (0.5, 0.5)])
def test_what_agrees_may_be_no_interval(low, high):
    """A bound, or a single value; a limit of one half is shown as it is."""
    assert error_of_region(found(low, high)) is None
    assert error_of_exact(found(0.5, 0.5, 0.5)) is None


def test_questions_of_readers_are_numbered_apart():
    """From 1 in the order of the page, and after what papers say."""
    for of_readers in (False, True):
        numbers = [
            one.number
            for _, _, statements in view_literature(OUTCOME)
            for one in statements
            if (not one.papers) == of_readers
        ]
        assert numbers == list(range(1, len(numbers) + 1))
    for _, _, statements in view_literature(OUTCOME):
        order = [not one.papers for one in statements]
        assert order == sorted(order)


def test_every_question_and_statement_says_something():
    """An answer and findings, unless what they rest on came out otherwise."""
    for _, answer, statements in view_literature(OUTCOME):
        assert answer is not None
        assert all(one.finding is not None for one in statements)
    first, *others = OUTCOME.claims
    silent = msgspec.structs.replace(first.findings[0], holds=False)
    silent = msgspec.structs.replace(first, findings=(silent,))
    changed = msgspec.structs.replace(OUTCOME, claims=(silent, *others))
    (_, _, statements), *_ = view_literature(changed)
    assert statements[0].finding is None


def test_a_case_has_one_line():
    """Though a finding asserts more of it than the statement does."""
    for _, _, statements in view_literature(OUTCOME):
        for one in statements:
            for symbol, lines in one.tables:
                places = [line.case.at for line in lines]
                assert len(set(places)) == len(places), (one.statement.id, symbol)


def test_an_error_that_three_digits_do_not_show_is_left_out():
    """Of a share that was drawn a hundred million times over."""
    views = {
        one.statement.id: one
        for _, _, statements in view_literature(OUTCOME)
        for one in statements
    }
    lost = views["scaled-rows-keep-weights"].finding.numbers["n"]
    assert lost.std_error is None
    rest = views["gradients-explode"].finding.numbers["a"]
    assert rest.std_error is not None

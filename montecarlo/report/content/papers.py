"""What the page of papers shows: questions, statements, and how they came out."""

import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

import msgspec

from montecarlo.claims.outcomes import CaseOutcome, ClaimOutcome, SentenceOutcome
from montecarlo.claims.papers import (
    Paper,
    PaperCase,
    PapersOutcome,
    Question,
    Setting,
    Statement,
    read_papers,
)
from montecarlo.report.content.findings import Said

#: Sizes of a setting by their symbols, in the order in which they are named.
SIZES = {
    "from_keys": "n_0",
    "n_keys": "n",
    "from_d_k": "d_0",
    "d_k": "d_k",
    "std": "s",
    "times": r"s / \sqrt{2 \ln n}",
    "gap": r"\Delta",
    "growth": r"\gamma",
    "gain": "g",
    "correlation": r"\rho",
    "scale": "S",
}
#: Likewise what is held.
HELD = {
    "entropy": "H",
    "concentration": r"\operatorname{E}\sum p^2",
    "largest": r"\max x",
}
#: An exact value with so few decimals is shown as it is.
FEW_DECIMALS = 3
#: An error below this part of an estimate is not seen in three digits.
UNSEEN = 5e-4


class Line(NamedTuple):
    """A line of a statement's table: what papers.toml has, and what came out."""

    case: PaperCase
    outcome: CaseOutcome
    votes: bool


class StatementView(NamedTuple):
    """A statement with its verdict, its finding and its tables.

    Statements of papers, and questions of readers, which have none, are numbered apart.
    """

    number: int
    statement: Statement
    outcome: ClaimOutcome
    papers: tuple[Paper, ...]
    finding: Said | None
    tables: tuple[tuple[str, tuple[Line, ...]], ...]  # by symbol of the quantity


#: A question, its answer, if one holds, and what papers say to it.
Asked = tuple[Question, Said | None, list[StatementView]]


def view_literature(outcome: PapersOutcome) -> list[Asked]:
    """Join the words of papers.toml to what came out; those of papers are first."""
    papers = read_papers()
    found = {one.id: one for one in outcome.claims}
    numbers, answers = {True: 0, False: 0}, iter(outcome.passages)
    questions = []
    for question in papers.question:
        views = []
        for one in papers.statement:
            if one.question == question.id:
                numbers[bool(one.paper)] += 1
                views.append(_view(numbers[bool(one.paper)], one, found[one.id]))
        # all of them, whichever is said: each has its passage
        said = [(one.text, next(answers)) for one in question.answer]
        views.sort(key=lambda view: not view.papers)
        questions.append((question, _say_first(said), views))
    return questions


def _view(number: int, statement: Statement, outcome: ClaimOutcome) -> StatementView:
    papers = read_papers()
    by_key = {paper.key: paper for paper in papers.paper}
    tables: dict[str, dict[Setting, Line]] = {}
    for check, found in statement.outcomes(outcome):
        lines = tables.setdefault(papers.quantity[check.quantity].symbol, {})
        for case, one in zip(check.case, found.cases, strict=True):
            # what is asserted of a case that votes is no line of its own
            lines.setdefault(case.at, Line(case, one, check.role == "stated"))
    texts = [finding.text for finding in statement.finding]
    return StatementView(
        number,
        statement,
        outcome,
        tuple(by_key[key] for key in statement.paper),
        _say_first(zip(texts, outcome.findings, strict=True)),
        tuple((symbol, tuple(of.values())) for symbol, of in tables.items()),
    )


def sizes_of(at: Setting) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a setting with their symbols."""
    for name, symbol in SIZES.items():
        if (value := getattr(at, name)) is not None:
            yield symbol, value
    if at.holds and at.level is not None:
        yield HELD[at.holds], at.level


def error_of_paper(line: Line) -> float:
    """Return an error with which the paper's number is shown to the digits it has."""
    low, high = line.outcome.region_low, line.outcome.region_high
    decimals = -int(Decimal(repr(line.case.paper)).as_tuple().exponent)
    if low is not None and high is not None and low < high:
        # zeros at the end are not in the file, but in what agrees
        decimals = max(decimals, round(-math.log10(high - low)))
    return _error_for(decimals)


def error_of_region(found: CaseOutcome) -> float | None:
    """Return an error with which both ends of what agrees are shown in full.

    None where it is open to a side, or a single value.
    """
    low, high = found.region_low, found.region_high
    if low is None or high is None or low == high:
        return None
    return _error_for(max(_decimals(low), _decimals(high)))


def error_of_exact(found: CaseOutcome) -> float | None:
    """Return an error with which the exact value is shown: to the digits that matter.

    Those that what was drawn has, three at least, and one more than the ends of what
    agrees.  None where it has no more than three decimals.
    """
    exact, of_region = abs(found.exact or 0.0), error_of_region(found)
    if _decimals(exact) <= FEW_DECIMALS:
        return None
    errors = [found.std_error or exact, 1e-3 * exact]
    return min([*errors, *([] if of_region is None else [0.1 * of_region])])


def _decimals(value: float) -> int:
    """Return how many decimals a number has, as it is written."""
    written = Decimal(repr(value)).normalize()
    return max(0, -int(written.as_tuple().exponent))


def _error_for(decimals: int) -> float:
    """Return an error whose first two digits end at so many decimals."""
    return 1.5 * 10.0 ** (1 - decimals)


def _say_first(sentences: Iterable[tuple[str, SentenceOutcome]]) -> Said | None:
    """Return the first sentence that holds, with its numbers.

    Where three digits do not show an error, it is left out.
    """
    for text, found in sentences:
        if found.holds:
            numbers = {}
            for name, one in found.numbers.items():
                seen = (one.std_error or 0.0) >= UNSEEN * abs(one.value)
                error = one.std_error if seen else None
                numbers[name] = msgspec.structs.replace(one, std_error=error)
            return Said(text, numbers, ())
    return None

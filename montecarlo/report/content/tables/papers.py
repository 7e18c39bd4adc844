"""What the page of papers shows: questions, statements, and how they came out."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from montecarlo.claims.outcomes import NumberOutcome
from montecarlo.literature.outcomes import (
    LiteratureOutcome,
    StatementCase,
    StatementOutcome,
)
from montecarlo.literature.quantities import QUANTITIES
from montecarlo.literature.saying import answer_of, finding_of
from montecarlo.literature.schema import Paper, Question, Statement, read_literature
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
    "correlation": r"\rho",
    "scale": "S",
}
#: Likewise what is held.
HELD = {"entropy": "H", "concentration": r"\operatorname{E}\sum p^2"}
#: An exact value with so few decimals is shown as it is.
FEW_DECIMALS = 3
#: An error below this part of an estimate is not seen in three digits.
UNSEEN = 5e-4


@dataclass(frozen=True, slots=True)
class CaseView:
    """A line of a statement's table: numbers by symbol, and what came out."""

    sizes: tuple[tuple[str, float], ...]
    number_format: str
    outcome: StatementCase

    @property
    def paper_error(self) -> float:
        """An error with which the paper's number is shown to the digits it has."""
        low, high = self.outcome.region_low, self.outcome.region_high
        decimals = -int(Decimal(repr(self.outcome.paper)).as_tuple().exponent)
        if low is not None and high is not None and low < high:
            # zeros at the end are not in the file, but in what agrees
            decimals = max(decimals, round(-math.log10(high - low)))
        return _error_for(decimals)

    @property
    def region_error(self) -> float | None:
        """An error with which both ends of what agrees are shown in full.

        None where it is open to a side, or a single value.
        """
        low, high = self.outcome.region_low, self.outcome.region_high
        if low is None or high is None or low == high:
            return None
        return _error_for(max(_decimals(low), _decimals(high)))

    @property
    def exact_error(self) -> float | None:
        """An error with which the exact value is shown: to the digits that matter.

        Those that what was drawn has, three at least, and one more than the ends of
        what agrees.  None where it has no more than three decimals.
        """
        if _decimals(self.outcome.exact or 0.0) <= FEW_DECIMALS:
            return None
        exact = abs(self.outcome.exact or 0.0)
        errors = [self.outcome.std_error or exact, 1e-3 * exact]
        if self.region_error is not None:
            errors.append(0.1 * self.region_error)
        return min(errors)


def _decimals(value: float) -> int:
    """Return how many decimals a number has, as it is written."""
    written = Decimal(repr(value)).normalize()
    return max(0, -int(written.as_tuple().exponent))


def _error_for(decimals: int) -> float:
    """Return an error whose first two digits end at so many decimals."""
    return 1.5 * 10.0 ** (1 - decimals)


@dataclass(frozen=True, slots=True)
class StatementView:
    """A statement with its verdict, its finding and its tables.

    Statements of papers and questions of readers are numbered apart.
    """

    number: int
    statement: Statement
    outcome: StatementOutcome
    papers: tuple[Paper, ...]
    finding: Said | None
    #: By symbol of the quantity.
    tables: tuple[tuple[str, tuple[CaseView, ...]], ...]

    @property
    def of_readers(self) -> bool:
        """Whether no paper states it."""
        return not self.papers


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A question with its answer, if one holds, and what papers say to it."""

    id: str
    title: str
    figure: str
    answer: Said | None
    statements: tuple[StatementView, ...]


def view_literature(outcome: LiteratureOutcome) -> tuple[QuestionView, ...]:
    """Join the words of literature.toml to what came out."""
    literature = read_literature()
    found = {one.id: one for one in outcome.statements}
    papers = {paper.key: paper for paper in literature.paper}
    numbers = {True: 0, False: 0}
    views: dict[str, list[StatementView]] = {}
    for question in literature.question:
        for one in literature.statement:
            if one.question == question.id:
                numbers[bool(one.paper)] += 1
                number = numbers[bool(one.paper)]
                view = _view(number, one, found[one.id], papers)
                views.setdefault(question.id, []).append(view)
    return tuple(
        QuestionView(
            id=question.id,
            title=question.title,
            figure=question.figure,
            answer=_answer(question, found),
            # those of papers first
            statements=tuple(sorted(views[question.id], key=lambda v: v.of_readers)),
        )
        for question in literature.question
    )


def _view(
    number: int,
    statement: Statement,
    outcome: StatementOutcome,
    papers: Mapping[str, Paper],
) -> StatementView:
    tables: dict[str, dict[str, CaseView]] = {}
    for cases in outcome.checks:
        for case in cases:
            symbol = QUANTITIES[case.quantity].symbol
            view = CaseView(tuple(_sizes(case)), case.at.number_format, case)
            # what is asserted of a case that votes is no line of its own
            tables.setdefault(symbol, {}).setdefault(repr(case.at), view)
    said = finding_of(statement, outcome)
    numbers = {} if said is None else said.value
    return StatementView(
        number=number,
        statement=statement,
        outcome=outcome,
        papers=tuple(papers[key] for key in statement.paper),
        finding=None
        if said is None
        else _say(
            said.text, {n: outcome.checks[i][j] for n, (i, j) in numbers.items()}
        ),
        tables=tuple((symbol, tuple(of.values())) for symbol, of in tables.items()),
    )


def _answer(
    question: Question, outcomes: Mapping[str, StatementOutcome]
) -> Said | None:
    said = answer_of(question, outcomes)
    if said is None:
        return None
    cases = {n: outcomes[of].checks[i][j] for n, (of, i, j) in said.value.items()}
    return _say(said.text, cases)


def _say(text: str, cases: Mapping[str, StatementCase]) -> Said:
    """Return a sentence with its numbers: exact, or estimates with their errors.

    Where three digits do not show the error, it is left out.
    """
    numbers = {}
    for name, one in cases.items():
        error = one.std_error if one.exact is None else None
        if error is not None and error < UNSEEN * abs(one.value):
            error = None
        numbers[name] = NumberOutcome(
            value=one.value, std_error=error, row="", percent=False
        )
    return Said(text, numbers, ())


def _sizes(case: StatementCase) -> Iterator[tuple[str, float]]:
    for name, symbol in SIZES.items():
        if (value := getattr(case.at, name)) is not None:
            yield symbol, value
    if case.at.holds and case.at.level is not None:
        yield HELD[case.at.holds], case.at.level

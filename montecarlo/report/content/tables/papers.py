"""What the page of papers shows: questions, statements, and how they came out."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from montecarlo.claims.outcomes import NumberOutcome
from montecarlo.literature.outcomes import LiteratureOutcome, StatementCase
from montecarlo.literature.quantities import QUANTITIES
from montecarlo.literature.schema import Finding, Paper, Statement, read_literature
from montecarlo.report.content.views import Said

#: Sizes of a setting by their symbols, in the order in which they are named.
SIZES = {
    "from_keys": "n_0",
    "n_keys": "n",
    "from_d_k": "d_0",
    "d_k": "d_k",
    "std": "s",
    "gap": r"\Delta",
    "growth": r"\gamma",
    "correlation": r"\rho",
    "scale": "S",
}
#: Likewise what is held.
HELD = {"entropy": "H", "concentration": r"\operatorname{E}\sum p^2"}


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
        return 1.5 * 10.0 ** (1 - decimals)


@dataclass(frozen=True, slots=True)
class StatementView:
    """A statement with its verdict, its finding and its tables."""

    id: str
    statement: str
    model: str
    papers: tuple[Paper, ...]
    verdict: str
    finding: Said | None
    #: By symbol of the quantity.
    tables: tuple[tuple[str, tuple[CaseView, ...]], ...]


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A question with what papers say to it."""

    id: str
    title: str
    figure: str
    statements: tuple[StatementView, ...]


def view_literature(outcome: LiteratureOutcome) -> tuple[QuestionView, ...]:
    """Join the words of literature.toml to what came out."""
    literature = read_literature()
    found = {one.id: one for one in outcome.statements}
    papers = {paper.key: paper for paper in literature.paper}
    return tuple(
        QuestionView(
            question.id,
            question.title,
            question.figure,
            tuple(
                _view(one, found[one.id].verdict, found[one.id].checks, papers)
                for one in literature.statement
                if one.question == question.id
            ),
        )
        for question in literature.question
    )


def _view(
    statement: Statement,
    verdict: str,
    checks: tuple[tuple[StatementCase, ...], ...],
    papers: Mapping[str, Paper],
) -> StatementView:
    said = next((one for one in statement.finding if one.verdict == verdict), None)
    tables: dict[str, list[CaseView]] = {}
    for cases in checks:
        for case in cases:
            symbol = QUANTITIES[case.quantity].symbol
            view = CaseView(tuple(_sizes(case)), case.at.number_format, case)
            tables.setdefault(symbol, []).append(view)
    return StatementView(
        statement.id,
        statement.statement,
        statement.model,
        tuple(papers[key] for key in statement.paper),
        verdict,
        None if said is None else _say(said, checks),
        tuple((symbol, tuple(cases)) for symbol, cases in tables.items()),
    )


def _say(finding: Finding, checks: tuple[tuple[StatementCase, ...], ...]) -> Said:
    """Return a finding with its numbers: exact ones, or estimates with their errors."""
    numbers = {}
    for name, (check, case) in finding.value.items():
        one = checks[check][case]
        error = one.std_error if one.exact is None else None
        numbers[name] = NumberOutcome(
            value=one.value, std_error=error, row="", percent=False
        )
    return Said(finding.text, numbers, ())


def _sizes(case: StatementCase) -> Iterator[tuple[str, float]]:
    for name, symbol in SIZES.items():
        if (value := getattr(case.at, name)) is not None:
            yield symbol, value
    if case.at.holds and case.at.level is not None:
        yield HELD[case.at.holds], case.at.level

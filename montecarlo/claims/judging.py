"""Judging a whole catalogue on what has been sampled, at one error rate for all.

Every statistic gets an interval that misses on either side with a probability that,
added over all statistics and looks, comes to the report's error rate: with the rest
of the probability all intervals are right at once, and so is every decided check.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from montecarlo.claims.cells import (
    Cell,
    Place,
    Statistic,
    cells_of,
    estimate_in,
    is_applicable,
    row_key,
    statistic_of,
    window_in,
)
from montecarlo.claims.schema import Catalogue, Check, Reading, Words
from montecarlo.claims.shapes import SHAPE_CHECKS
from montecarlo.claims.verdicts import (
    Border,
    Verdict,
    all_of,
    claim_verdict,
    decide,
    find_borders,
    reading_verdict,
    replicates_needed,
)
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import Interval
from montecarlo.estimation.summaries import RowKey, Summaries
from montecarlo.sampling.conditions import Condition

#: A cell that seems to need more budgets than this is not sampled further.
HOPELESS = 4


@dataclass(frozen=True, slots=True)
class CellOutcome:
    """How a check came out in one cell."""

    cell: Cell
    key: RowKey
    estimate: Estimate | None  # None: not applicable
    interval: Interval | None
    window: tuple[float, float]
    verdict: Verdict
    needed: int | None = None


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """A check with its cells."""

    check: Check
    cells: tuple[CellOutcome, ...]


@dataclass(frozen=True, slots=True)
class ReadingOutcome:
    """A reading: its checks, the joint outcome of each place, and the borders."""

    id: str
    scope: str
    label: Words | None
    verdict: Verdict
    checks: tuple[CheckOutcome, ...]
    places: tuple[tuple[Place, Verdict], ...]
    borders: tuple[Border, ...]


@dataclass(frozen=True, slots=True)
class ClaimOutcome:
    """A claim, or a self-check, with its verdict."""

    id: str
    verdict: Verdict
    readings: tuple[ReadingOutcome, ...]
    right: ReadingOutcome | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    """Everything that judging needs beside the samples.

    Attributes
    ----------
    catalogue : Catalogue
    budgets : mapping
        Condition to the most replicates it may get: the grid.
    divisors : tuple of str
        Those that are sampled.
    reference : callable
        (condition, row) -> exact value or None.
    decision_error : float
        One-sided error rate of each decision interval.
    """

    catalogue: Catalogue
    budgets: Mapping[Condition, int]
    divisors: tuple[str, ...]
    reference: Callable[[Condition, RowKey], float | None]
    decision_error: float

    def judge(
        self, summaries: Callable[[Condition], Summaries]
    ) -> tuple[list[ClaimOutcome], list[ClaimOutcome]]:
        """Judge all claims and all self-checks.

        Parameters
        ----------
        summaries : callable
            Condition -> its estimates.
        """
        claims = []
        for claim in self.catalogue.claim:
            readings = [self._reading(reading, summaries) for reading in claim.reading]
            if claim.kind == "shape":
                verdict = SHAPE_CHECKS[claim.id](self.catalogue)
            elif readings:
                verdict = claim_verdict([reading.verdict for reading in readings])
            else:
                verdict = Verdict.NOT_MEASURED
            right = None
            if claim.right is not None:
                right = self._reading(Reading("right", claim.right.check), summaries)
            claims.append(ClaimOutcome(claim.id, verdict, tuple(readings), right))
        self_checks = []
        for entry in self.catalogue.self_check:
            reading = self._reading(Reading(entry.id, entry.check), summaries)
            self_checks.append(ClaimOutcome(entry.id, reading.verdict, (reading,)))
        return claims, self_checks

    def _reading(
        self, reading: Reading, summaries: Callable[[Condition], Summaries]
    ) -> ReadingOutcome:
        checks = tuple(self._check(check, summaries) for check in reading.check)
        joined: dict[Place, list[Verdict]] = {}
        for check in checks:
            for cell in check.cells:
                joined.setdefault(cell.cell.place, []).append(cell.verdict)
        # checks may differ in their domains, so the places come in no order
        ordered = sorted(
            joined, key=lambda p: (p.law, p.context, p.n_keys or 0, p.d_k or 0)
        )
        places = tuple((place, all_of(joined[place])) for place in ordered)
        verdict = reading_verdict(reading.scope, [v for _, v in places])
        if verdict == Verdict.SUPPORTED and not all(check.cells for check in checks):
            verdict = Verdict.INCONCLUSIVE  # a check that the grid has no place for
        borders = tuple(find_borders(places))
        return ReadingOutcome(
            reading.id, reading.scope, reading.label, verdict, checks, places, borders
        )

    def _check(
        self, check: Check, summaries: Callable[[Condition], Summaries]
    ) -> CheckOutcome:
        outcomes = []
        for cell in cells_of(check, self.budgets, self.divisors):
            window = window_in(check, cell, self.reference)
            if window is not None:
                outcomes.append(self._cell(check, cell, window, summaries))
        return CheckOutcome(check, tuple(outcomes))

    def _cell(
        self,
        check: Check,
        cell: Cell,
        window: tuple[float, float],
        summaries: Callable[[Condition], Summaries],
    ) -> CellOutcome:
        key = row_key(check)
        if not is_applicable(check, cell):
            return CellOutcome(cell, key, None, None, window, Verdict.NOT_APPLICABLE)
        estimate = estimate_in(check, cell, summaries)
        interval = estimate.interval(self.decision_error)
        verdict = decide(interval, window)
        needed = None
        if verdict == Verdict.INCONCLUSIVE:
            budget = min(self.budgets[c] for c in cell.conditions)
            needed = replicates_needed(estimate, window, self.decision_error, budget)
        return CellOutcome(cell, key, estimate, interval, window, verdict, needed)


def decision_error(
    catalogue: Catalogue,
    looks: Mapping[Condition, int],
    divisors: tuple[str, ...],
    reference: Callable[[Condition, RowKey], float | None],
    error_rate: float,
) -> float:
    """Split the report's error rate over the two sides of every interval it uses.

    Parameters
    ----------
    catalogue : Catalogue
    looks : mapping
        Condition to the number of times it may be looked at.
    divisors : tuple of str
        Those that are sampled.
    reference : callable
        (condition, row) -> exact value or None.
    error_rate : float
        Probability that any decided check is wrong, at most.

    Returns
    -------
    float
        One-sided error rate of one interval at one look.
    """
    statistics: dict[Statistic, int] = {}
    for check in catalogue.checks():
        for cell in cells_of(check, looks, divisors):
            if not is_applicable(check, cell):
                continue
            if window_in(check, cell, reference) is not None:
                most = max(looks[c] for c in cell.conditions)
                statistics[statistic_of(check, cell)] = most
    return error_rate / (2.0 * max(1, sum(statistics.values())))


def undecided_conditions(
    outcomes: Iterable[ClaimOutcome], budgets: Mapping[Condition, int]
) -> set[Condition]:
    """Return the conditions of all undecided cells that the budget may still decide.

    Parameters
    ----------
    outcomes : iterable of ClaimOutcome
    budgets : mapping
        Condition to the most replicates it may get.

    Notes
    -----
    A cell that seems to need many times its budget is given up: that leaves it
    inconclusive, which it would end as anyhow, and makes no decision wrong.
    """
    return {
        condition
        for outcome in outcomes
        for reading in (*outcome.readings, *([outcome.right] if outcome.right else []))
        for check in reading.checks
        for cell in check.cells
        if cell.verdict == Verdict.INCONCLUSIVE and _has_hope(cell, budgets)
        for condition in cell.cell.conditions
    }


def _has_hope(cell: CellOutcome, budgets: Mapping[Condition, int]) -> bool:
    budget = min(budgets[condition] for condition in cell.cell.conditions)
    return cell.needed is not None and cell.needed <= HOPELESS * budget

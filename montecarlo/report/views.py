"""What a page shows, as typed records: no words, no HTML."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from montecarlo.report.own_words import Shown

#: Verdicts in the order in which a page counts them.
VERDICTS = (
    "supported",
    "conditional",
    "refuted",
    "inconclusive",
    "not_applicable",
    "not_measured",
)
#: Worst news first.
BY_WEIGHT = (
    "refuted",
    "conditional",
    "inconclusive",
    "supported",
    "not_applicable",
    "not_measured",
)
TOPICS = ("premise", "variance", "weights", "gradients", "arithmetic", "practice")


@dataclass(frozen=True, slots=True)
class CellView:
    """One cell of a check."""

    law: str
    context: str
    n_keys: int | None
    d_k: int | None
    d_k_range: tuple[int, int]
    row: str  # empty where the estimate is of several rows: a slope, a ratio of ends
    estimate: float | None
    std_error: float | None
    decision: tuple[float | None, float | None]
    window: tuple[float | None, float | None]
    outcome: str
    needed: int | None


@dataclass(frozen=True, slots=True)
class CheckView:
    """One check: what is compared, as a formula, and its cells."""

    formula: str
    cells: tuple[CellView, ...]

    def columns(self) -> list[tuple[int, int]]:
        """Return the d_k, or ranges of d_k, that its table has columns for."""
        return sorted({cell.d_k_range for cell in self.cells})

    def lines(self) -> list[tuple[CellView, list[CellView | None]]]:
        """Return the lines of its table: law, context and n from the first cell."""
        lines: dict[tuple[str, str, int | None], dict[tuple[int, int], CellView]] = {}
        for cell in self.cells:
            place = (cell.law, cell.context, cell.n_keys)
            lines.setdefault(place, {})[cell.d_k_range] = cell
        columns = self.columns()
        return [
            (next(iter(line.values())), [line.get(column) for column in columns])
            for line in lines.values()
        ]

    def count(self, outcome: str) -> int:
        """Count the cells that came out so."""
        return sum(cell.outcome == outcome for cell in self.cells)

    @property
    def name(self) -> str:
        """Name its table: the same check of the same cells has the same name."""
        places = [
            f"{c.law} {c.context} {c.n_keys} {c.d_k_range} {c.row}" for c in self.cells
        ]
        text = ";".join([self.formula, *places])
        return f"check-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


@dataclass(frozen=True, slots=True)
class BorderView:
    """Where an outcome changes along d_k."""

    law: str
    context: str
    n_keys: int | None
    d_k: tuple[int, int]
    outcomes: tuple[str, str]


@dataclass(frozen=True, slots=True)
class ReadingView:
    """One reading; ``label`` is None where ``symbol`` names it."""

    id: str
    label: Shown | None
    symbol: str
    scope: str
    verdict: str
    outcomes: Mapping[str, int]
    checks: tuple[CheckView, ...]
    borders: tuple[BorderView, ...]
    exceptions: tuple[tuple[str, str, int | None], ...]  # law, context and n


@dataclass(frozen=True, slots=True)
class RightView:
    """The sentence that would be right, and its own verdict."""

    sentence: Shown
    arithmetic: Shown
    reading: ReadingView


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One claim, with the words that its verdict and its readings choose."""

    id: str
    topic: str
    statement: Shown
    sources: tuple[tuple[Shown, str, str], ...]  # text's name, key, section
    verdict: str
    sentence: Shown | None  # None where nothing was measured, or no sentence is given
    readings: tuple[ReadingView, ...]
    right: RightView | None
    counterexample: tuple[CheckView, CellView] | None  # the smallest refuted cell
    telling: tuple[CheckView, CellView] | None  # the cell that stands for its verdict


@dataclass(frozen=True, slots=True)
class SelfCheckView:
    """One check of the simulator itself."""

    id: str
    statement: Shown
    verdict: str
    outcomes: Mapping[str, int]
    checks: tuple[CheckView, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that the pages of all languages show; ``own``: a user's claims."""

    claims: tuple[ClaimView, ...]
    self_checks: tuple[SelfCheckView, ...]
    counts: tuple[tuple[str, int], ...]
    error_rate: float
    decision_error: float
    run: Mapping[str, Any]
    models: tuple[Mapping[str, Any], ...]
    own: bool = False

    def claim(self, name: str) -> ClaimView | None:
        """Return a claim of the five texts by id, None where it was left out.

        A user's claim is none of them, whatever its id.
        """
        found = (claim for claim in self.claims if claim.id == name and not self.own)
        return next(found, None)

    def came_out(self, claim: str, ending: str, verdict: str) -> bool:
        """Tell whether all readings of a claim whose id ends so have a verdict."""
        found = self.claim(claim)
        readings = [r for r in found.readings if r.id.endswith(ending)] if found else []
        return bool(readings) and all(r.verdict == verdict for r in readings)

    def texts(self) -> list[tuple[Shown, str]]:
        """Return names and keys of the texts that claims are from."""
        return list(
            dict.fromkeys(
                (name, key) for c in self.claims for name, key, _ in c.sources
            )
        )

    def by_topic(self, topic: str) -> list[ClaimView]:
        """Return the claims of a topic, in the order of the catalogue."""
        return [claim for claim in self.claims if claim.topic == topic]

    def by_weight(self) -> list[ClaimView]:
        """Return all claims, worst news first."""
        return sorted(self.claims, key=lambda claim: BY_WEIGHT.index(claim.verdict))

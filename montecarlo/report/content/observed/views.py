"""What the pages of an observation show: numbers and names, no words, no HTML."""

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from montecarlo.applied.telling import NO, UNTOLD, YES
from montecarlo.attention.divisors import DIVISORS
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.observation.diagnosis import LEAST, STATES
from montecarlo.observation.evidence import label_here
from montecarlo.observation.head_quantities import COMPARED, FACTORS, PARTS
from montecarlo.observation.observing import ALL
from montecarlo.report.content.observed.record import Observed
from montecarlo.report.content.observed.scales import (
    SYMBOLS,
    ScaleLine,
    StepLine,
    count_heads,
    scale_lines,
    step_lines,
)
from montecarlo.report.content.tables.topics import TableCell
from montecarlo.report.language.symbols import row_symbol

#: Heads in the table of heads: those whose divisor is farthest off.
MOST_HEADS = 24
#: Assumptions that a line of a head names.
MOST_CAUSES = 3
#: How an interpretation may come out in a head.
OUTCOMES = ("supported", "refuted", "undecided", "not_applicable")

#: The smallest, the middle and the largest of heads.
Range = tuple[TableCell, TableCell, TableCell]


@dataclass(frozen=True, slots=True)
class HeadLine:
    """A head in a table: its quantities by name, its state, what fails first."""

    layer: str
    head: str
    cells: Mapping[str, TableCell]
    state: str
    causes: tuple[tuple[str, TableCell], ...]


@dataclass(frozen=True, slots=True)
class AssumptionLine:
    """An assumption over all heads: range of factors, outcomes, where it is worst."""

    name: str
    factors: Range
    holds: int
    fails: int
    open: int
    first: int


@dataclass(frozen=True, slots=True)
class InterpretationLine:
    """An interpretation of a claim and how it comes out on this model."""

    statement: str
    label: str | None
    verdict: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ObservedView:
    """Everything that the pages of an observation show."""

    record: Mapping[str, Any]  # observation.json
    run: Mapping[str, Any]  # run.json
    overall: Mapping[str, TableCell]  # quantity to its mean over heads
    states: Sequence[tuple[str, int]]  # heads in each state, none left out
    too_weak: int  # heads whose rows have a variance above 1 after the division
    too_strong: int  # below 1
    #: Quantity to its smallest, median and largest value over heads.
    ranges: Mapping[str, Range]
    lines: Sequence[HeadLine]  # the heads farthest off first
    assumptions: Sequence[AssumptionLine]  # worst news first
    #: Parts of the variance, and the share of each, averaged over heads.
    parts: Sequence[tuple[str, TableCell, float]]
    #: Symbols of quantities of rows, each with the model's keys, with those of other
    #: sequences, and the difference.
    compared: Sequence[tuple[str, Range]]
    interpretations: Sequence[InterpretationLine]
    divisor: str  # the model's divisor as LaTeX, empty where it has no name
    #: What is said of the applied scale, heads that are alike together.
    scales: Sequence[ScaleLine]
    expected: str  # the divisor that is expected, as LaTeX; empty for a number
    answers: Mapping[str, int]  # heads that divide by it, do not, or cannot be told
    steps: Sequence[StepLine]  # of training, in order; empty for one capture
    warnings: Mapping[str, Sequence[str]]  # of what is said of heads over steps, which

    @property
    def n_heads(self) -> int:
        """Heads in all layers."""
        return len(self.record["heads"])


def cells_by_head(observed: Observed) -> dict[tuple[str, str], dict[str, TableCell]]:
    """Return the quantities of each head, and of all."""
    found: dict[tuple[str, str], dict[str, TableCell]] = {}
    for row in observed.table.to_dict("records"):
        layer, head, name, error = (
            row[column] for column in ("layer", "head", "quantity", "std_error")
        )
        cell = TableCell(
            row["value"], None if math.isnan(error) else error, f"{layer}/{head}/{name}"
        )
        found.setdefault((layer, head), {})[name] = cell
    return found


def view_observation(observed: Observed) -> ObservedView:
    """Pick what pages show."""
    by_head = cells_by_head(observed)
    overall = by_head.pop((ALL, ALL))
    record = observed.record
    divisor = DIVISORS.get(observed.run.get("divisor", ""))
    ranges = {
        name: _range([cells[name] for cells in by_head.values()]) for name in overall
    }
    divided = [_row_variance(cells) for cells in by_head.values()]
    counts = Counter(head["state"] for head in record["heads"])
    return ObservedView(
        record,
        observed.run,
        overall,
        [(state, counts[state]) for state in STATES],
        sum(variance > 1.0 for variance in divided),
        sum(variance < 1.0 for variance in divided),
        ranges,
        _head_lines(record, by_head),
        _assumptions(record, ranges),
        _parts(overall, by_head),
        list(_compare(overall)),
        _interpretations(record),
        divisor.symbol if divisor else "",
        scale_lines(record),
        SYMBOLS.get(record["applied"]["expected"], ""),
        {
            answer: sum(
                count_heads(one["places"])
                for one in record["applied"]["findings"]
                if one["answer"] == answer
            )
            for answer in (YES, NO, UNTOLD)
        },
        step_lines(observed.steps),
        {
            name: [f"({layer}, {head})" for layer, head in heads]
            for name, heads in (record["steps"] or {"warnings": {}})["warnings"].items()
        },
    )


def _range(cells: Sequence[TableCell]) -> Range:
    """Return the smallest, the middle and the largest of the heads' cells."""
    ordered = sorted(cells, key=lambda cell: cell.value)
    return ordered[0], ordered[(len(ordered) - 1) // 2], ordered[-1]


def _row_variance(cells: Mapping[str, TableCell]) -> float:
    """Return the variance within the rows of a head, after the division."""
    return cells["scaled_row_variance"].value


def _head_lines(
    record: Mapping[str, Any],
    by_head: Mapping[tuple[str, str], Mapping[str, TableCell]],
) -> list[HeadLine]:
    lines = []
    for head in record["heads"]:
        cells = by_head[str(head["layer"]), str(head["head"])]
        causes = [
            (one["name"], cells[f"factor_{one['name']}"])
            for one in head["assumptions"]
            if one["verdict"] == "refuted"
        ]
        lines.append(
            HeadLine(
                str(head["layer"]),
                str(head["head"]),
                cells,
                head["state"],
                tuple(causes[:MOST_CAUSES]),
            )
        )
    lines.sort(key=lambda line: -abs(math.log(max(_row_variance(line.cells), LEAST))))
    return lines[:MOST_HEADS]


def _assumptions(
    record: Mapping[str, Any], ranges: Mapping[str, Range]
) -> list[AssumptionLine]:
    failing = (
        [one["name"] for one in head["assumptions"] if one["verdict"] == "refuted"]
        for head in record["heads"]
    )
    farthest = Counter(names[0] for names in failing if names)
    verdicts: dict[str, Counter[str]] = {}
    for head in record["heads"]:
        for one in head["assumptions"]:
            verdicts.setdefault(one["name"], Counter())[one["verdict"]] += 1
    lines = [
        AssumptionLine(
            name,
            ranges[f"factor_{name}"],
            verdicts[name]["supported"],
            verdicts[name]["refuted"],
            verdicts[name]["undecided"],
            farthest[name],
        )
        for name in FACTORS
        if name in verdicts
    ]
    return sorted(lines, key=lambda line: (-line.first, -line.fails))


def _parts(
    overall: Mapping[str, TableCell],
    by_head: Mapping[tuple[str, str], Mapping[str, TableCell]],
) -> list[tuple[str, TableCell, float]]:
    parts = []
    for name in PARTS:
        shares = [
            cells[f"part_{name}"].value / cells["score_variance"].value
            for cells in by_head.values()
        ]
        if name != "mask" or any(shares):
            mean = statistics.fmean(shares)
            parts.append((name, overall[f"part_{name}"], mean))
    return parts


def _compare(overall: Mapping[str, TableCell]) -> Iterator[tuple[str, Range]]:
    """Yield what is compared, where there are keys of other sequences."""
    for name in COMPARED:
        if f"{name}_permuted" in overall:
            symbol = row_symbol(name, "mean", "sqrt").split(r"\;\;")[0]
            suffixes = ("", "_permuted", "_dependence")
            first, second, third = (overall[f"{name}{suffix}"] for suffix in suffixes)
            yield symbol, (first, second, third)


def _interpretations(record: Mapping[str, Any]) -> list[InterpretationLine]:
    claims = {claim.id: claim for claim in read_catalogue().claim}
    lines = []
    for one in record["interpretations"]:
        claim = claims[one["claim"]]
        lines.append(
            InterpretationLine(
                str(claim.statement),
                label_here(claim, one["interpretation"]),
                one["verdict"],
                {name: one["heads"].get(name, 0) for name in OUTCOMES},
            )
        )
    return lines

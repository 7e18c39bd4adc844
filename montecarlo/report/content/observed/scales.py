"""What pages show of the scale that a model applies, and of steps of training."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from montecarlo.applied.telling import ranges_of
from montecarlo.applied.usual import USUAL
from montecarlo.report.content.tables.topics import TableCell

#: LaTeX of usual divisors by their names.
SYMBOLS = {one.name: one.symbol for one in USUAL}


@dataclass(frozen=True, slots=True)
class ScaleLine:
    """Heads that apply the same scale.

    Attributes
    ----------
    places : list of (list of (int, int), list of (int, int))
        Ranges of layers, and ranges of their heads, none for all of them.
    finding : mapping
        As it stands in the record.
    divisor : TableCell or None
        With half the interval as its error; None where no scale is told.
    symbols : tuple of str
        LaTeX of the usual divisors that it may be.
    nearest : str
        LaTeX of the nearest, where it is none of them.
    ratio : float
        Divisor over the nearest.
    """

    places: Sequence[tuple[list[tuple[int, int]], list[tuple[int, int]]]]
    finding: Mapping[str, Any]
    divisor: TableCell | None
    symbols: tuple[str, ...]
    nearest: str
    ratio: float


@dataclass(frozen=True, slots=True)
class StepLine:
    """A step of training: what is worst over heads, and the median divisor."""

    step: int
    score_max: float
    score_variance: float
    entropy_share: float
    divisor: float | None  # None where no head's scale is told


def step_lines(table: pd.DataFrame) -> list[StepLine]:
    """Return a line per step, in order."""
    lines = []
    for step, heads in table.groupby("step", sort=True) if len(table) else ():
        told = heads["implied_scale"].dropna()
        middle = float(told.quantile(interpolation="higher")) if len(told) else 0.0
        lines.append(
            StepLine(
                int(str(step)),
                float(heads["score_max"].max()),
                float(heads["score_variance"].max()),
                float(heads["entropy_share"].min()),
                1.0 / middle if middle > 0.0 else None,
            )
        )
    return lines


def count_heads(places: Sequence[tuple[list[int], list[int]]]) -> int:
    """Count heads in places of a finding."""
    return sum(len(layers) * len(heads) for layers, heads in places)


def scale_lines(record: Mapping[str, Any]) -> list[ScaleLine]:
    """Return a line for heads that are alike."""
    lines = []
    for one in record["applied"]["findings"]:
        places = [
            (
                ranges_of(layers),
                [] if len(heads) == record["heads_per_layer"] else ranges_of(heads),
            )
            for layers, heads in one["places"]
        ]
        divisor, nearest, ratio = None, "", math.nan
        if one["divisor"] is not None:
            divisor = TableCell(one["divisor"], one["half_width"])
            if one["nearest"] and not one["within"]:
                nearest, ratio = SYMBOLS[one["nearest"][0]], one["ratio"]
        symbols = tuple(SYMBOLS[name] for name in one["within"])
        lines.append(ScaleLine(places, one, divisor, symbols, nearest, ratio))
    return lines

"""What each figure draws, by name: its caption's legend in words lists these alone."""

from dataclasses import dataclass

from pandas import DataFrame

from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.drawing.palette import (
    ARM_LOOKS,
    DISTRIBUTION_LOOKS,
    DIVISOR_LOOKS,
    FORMAT_LOOKS,
    VERDICT_LOOKS,
    keep_looks,
)

#: Kinds of series: the column that names them, and their looks in the legend's order.
KINDS = {
    "divisors": ("divisor", DIVISOR_LOOKS),
    "distributions": ("distribution_k", DISTRIBUTION_LOOKS),
    "arms": ("arm", ARM_LOOKS),
    "formats": ("number_format", FORMAT_LOOKS),
    "verdicts": ("outcome", VERDICT_LOOKS),
}


@dataclass(frozen=True, slots=True)
class Legend:
    """What a figure draws, each kind in the order of the picture's own legend."""

    divisors: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()


def read_legends(measurements: DataFrame, curves: DataFrame) -> dict[str, Legend]:
    """Return what each figure that has series with names draws, by its id.

    From the rows that the figure itself is drawn from.
    """
    legends = {}
    for name, spec in FIGURES.items():
        drawn = {}
        for kind, pick_rows in spec.series.items():
            column, looks = KINDS[kind]
            drawn[kind] = tuple(
                keep_looks(looks, pick_rows(measurements, curves)[column])
            )
        if drawn:
            legends[name] = Legend(**drawn)
    return legends

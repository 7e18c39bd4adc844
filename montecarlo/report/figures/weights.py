"""What dividing does to weights: saturated rows, effective keys, a planted key."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from pandas import DataFrame

from montecarlo.report.content.curves import Curves
from montecarlo.report.content.reading import every_row, gaussian_points
from montecarlo.report.content.tables import (
    FEWEST_POINTS,
    N_KEYS,
    of_key_counts,
    with_interval,
)
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import (
    DIVISOR_LOOKS,
)
from montecarlo.report.figures.specs import (
    HEAD_SIZE,
    PANEL_KEYS,
    Fact,
    FigureSpec,
    at_nearest,
    pick_two,
)
from montecarlo.sampling.design_points import DesignPoint, parse_dependence
from montecarlo.study.rows import Row

#: What alternative texts speak of, where the grid has it.
FACT_D_K = 64

#: Sizes of which alternative texts speak.
MOST_D_K = 1024
SATURATED = Label(
    message("Rows with a weight of at least $90\\,\\%%$, in per cent"),
    r"P(p_{\max} \ge 0.9)",
)

# --- Saturated rows and effective keys against d_k ----------------------------------

EFFECTIVE = Label(message("Effective keys, in per cent of all"), r"e^H/n")


def name_weights(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Name saturated rows and effective keys of Gaussian entries, for two n at most."""
    rows = gaussian_points(points, with_rows=True)
    panels = of_key_counts(rows, PANEL_KEYS, len(PANEL_KEYS))
    quantities = "saturated", "effective_keys"
    return every_row(panels, quantities, ["mean"], DIVISOR_LOOKS)


def build_weights(measurements: DataFrame, _: Curves) -> Picture | None:
    """Build saturated rows above, effective keys below, a column for each n.

    Effective keys are a share of all.
    """
    saturated, keys = (
        measurements[measurements["quantity"].eq(name)]
        for name in ("saturated", "effective_keys")
    )
    keys = draw.rescale(keys, lambda value: value / keys["n_keys"].astype(float))
    counts = sorted({*with_interval(saturated)["n_keys"]})
    titles = {n_keys: Label(symbol=f"n = {n_keys:.0f}") for n_keys in counts}
    parts = [(SATURATED, saturated), (EFFECTIVE, keys)]
    return _build_shares(parts, "n_keys", titles) if titles else None


def _build_shares(
    parts: list[tuple[Label, DataFrame]], column: str, titles: dict[Any, Label]
) -> Picture:
    """Build shares against d_k, for each divisor, in rows and columns of panels."""
    every = pd.concat([rows for _, rows in parts])

    def plot(panel: Panel, rows: DataFrame) -> None:
        draw.plot_series(panel.axes, rows, "divisor", DIVISOR_LOOKS)
        draw.percent(panel.axes)
        draw.powers_of_two(panel.axes, every["d_k"], columns=2)

    picture = draw.grid(parts, column, titles, 105.0, plot, HEAD_SIZE)
    picture.keys = draw.keys_of(DIVISOR_LOOKS, every["divisor"], line=True)
    return picture


def pick_saturated(measurements: DataFrame, _: Curves) -> Fact | None:
    """Pick the shares of saturated rows under two divisors, at one size."""
    rows = measurements[measurements["quantity"].eq("saturated")]
    rows = at_nearest(rows[rows["d_k"].le(MOST_D_K)], "n_keys", N_KEYS)
    rows = draw.rescale(at_nearest(rows, "d_k", FACT_D_K), lambda part: 100.0 * part)
    return pick_two(rows, "divisor", "none", "sqrt")


WEIGHTS = FigureSpec(
    "weights",
    build_weights,
    name_weights,
    "saturated rows and effective keys against d_k",
    section="weights",
    on_report=True,
    caption=message(
        r"A row is the weights of a query. Bars: pointwise $95\,\%%$ intervals."
    ),
    alternative=message(
        "At d_k = %(d_k)s and n = %(n)s, %(first)s %% of the rows are saturated "
        "unscaled and %(second)s %% divided by √d_k."
    ),
    fact=pick_saturated,
)

# --- The planted key ----------------------------------------------------------------

PLANTED_WEIGHT = Label(
    message("Mean weight of the planted key, in per cent"), r"\operatorname{E} p_{\ast}"
)


def name_planted(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Name mean weights of planted keys, of the two closest alignments with a line.

    Of the number of keys that has most points.
    """
    planted = [
        point
        for point in points
        if point.dependence.kind == "planted" and not point.is_normalised
    ]
    counts = Counter(point.n_keys or 0 for point in planted)
    n_keys = max(counts, key=lambda n: (counts[n], n), default=0)
    planted = [point for point in planted if point.n_keys == n_keys]
    sizes = Counter(point.dependence.rho for point in planted)
    shown = sorted(rho for rho in sizes if sizes[rho] >= FEWEST_POINTS)[-2:]
    planted = [point for point in planted if point.dependence.rho in shown]
    return every_row(planted, ["planted_weight"], ["mean"], DIVISOR_LOOKS)


def planted_rows(rows: DataFrame) -> DataFrame:
    """Return mean weights of planted keys, with their ``alignment``, by that."""
    alignment = [parse_dependence(name).rho for name in rows["dependence"]]
    return rows.assign(alignment=alignment).sort_values(["alignment", "d_k"])


def build_planted(measurements: DataFrame, _: Curves) -> Picture | None:
    """Build the weight of the planted key, a panel for each alignment."""
    rows = planted_rows(measurements)
    sizes = with_interval(rows).groupby("alignment")["d_k"].nunique()
    titles = {
        rho: Label(message("correlation"), rf"\rho = {rho:g}")
        for rho in sizes.index[sizes >= FEWEST_POINTS]
    }
    parts = [(PLANTED_WEIGHT, rows)]
    return _build_shares(parts, "alignment", titles) if titles else None


def pick_planted_weights(measurements: DataFrame, _: Curves) -> Fact | None:
    """Pick the weight of the planted key under two divisors, at a common d_k."""
    rows = with_interval(planted_rows(measurements))
    rows = rows[rows["alignment"].eq(rows["alignment"].max())]
    rows = at_nearest(rows, "d_k", FACT_D_K)
    fact = pick_two(rows, "divisor", "sqrt", "linear")
    return fact and {**fact, "rho": float(rows["alignment"].iloc[0])}


PLANTED = FigureSpec(
    "planted",
    build_planted,
    name_planted,
    "weight of a planted key, by alignment",
    section="weights",
    caption=message(
        "One key of each row is planted: its entries correlate with those of the "
        r"query. Bars: $95\,\%%$ intervals."
    ),
    alternative=message(
        "At d_k = %(d_k)s and a correlation of %(rho)s the planted key gets a weight "
        "of %(first)s divided by √d_k and of %(second)s divided by d_k."
    ),
    fact=pick_planted_weights,
)

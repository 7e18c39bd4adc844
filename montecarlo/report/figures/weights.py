"""What softmax makes of the scores: saturated rows and effective keys.

And what becomes of a planted key, by how far query and key agree.
"""

from typing import Any

import pandas as pd
from pandas import DataFrame

from montecarlo.report.content.tables.rows import (
    FEWEST_POINTS,
    gaussian_rows,
    key_counts,
    with_interval,
)
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.attention import HEAD_SIZE, SATURATED
from montecarlo.report.figures.drawing import Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import DIVISOR_LOOKS
from montecarlo.report.figures.specs import (
    Fact,
    FigureSpec,
    at_nearest,
    panel_of,
    pick_two,
)
from montecarlo.sampling.design_points import parse_dependence

# --- Saturated rows and effective keys against d_k ----------------------------------

#: A column of panels for each of these, where the grid has them.
PANEL_KEYS = (128, 16384)
MOST_PANELS = 2
EFFECTIVE = Label(message("Effective keys, in per cent of all"), r"e^H/n")


def weight_rows(measurements: DataFrame) -> DataFrame:
    """Return shares of saturated rows, and of effective keys, of Gaussian entries."""
    rows = gaussian_rows(measurements, summary="mean")
    rows = rows[rows["divisor"].isin(DIVISOR_LOOKS)]
    keys = rows[rows["quantity"].eq("effective_keys")]
    saturated = rows[rows["quantity"].eq("saturated")]
    keys = draw.rescale(keys, lambda value: value / keys["n_keys"].astype(float))
    return pd.concat([saturated, keys])


def build_weights(measurements: DataFrame, _: DataFrame) -> Picture | None:
    """Build saturated rows above, effective keys below, a column for each n."""
    rows = weight_rows(measurements)
    saturated, keys = (
        rows[rows["quantity"].eq(name)] for name in ("saturated", "effective_keys")
    )
    counts = key_counts(with_interval(saturated), PANEL_KEYS, MOST_PANELS)
    if not counts:
        return None
    titles = {n_keys: Label(symbol=f"n = {n_keys}") for n_keys in counts}
    parts = [(SATURATED, saturated), (EFFECTIVE, keys)]
    return _build_shares(parts, "n_keys", titles)


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


def pick_saturated(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the shares of saturated rows under two divisors, at one d_k."""
    rows = panel_of(measurements, quantity="saturated", summary="mean")
    rows = at_nearest(rows, "d_k", FACT_D_K)
    rows = draw.rescale(rows, lambda part: 100.0 * part)
    return pick_two(rows, "divisor", "none", "sqrt")


#: What alternative texts speak of, where the grid has it.
FACT_D_K = 64
WEIGHTS = FigureSpec(
    "weights",
    build_weights,
    "saturated rows and effective keys against d_k",
    section="weights",
    on_report=True,
    caption=message(
        "Above: rows in which one key takes nearly everything. Below: over what part "
        r"of its keys a row spreads. Bars: pointwise $95\,\%%$ intervals."
    ),
    alternative=message(
        "At d_k = %(d_k)s and n = %(n)s, %(first)s %% of the rows are saturated "
        "unscaled and %(second)s %% divided by √d_k."
    ),
    named=("saturated_percent_unscaled", "saturated_percent_scaled"),
    fact=pick_saturated,
)

# --- The planted key ----------------------------------------------------------------

#: Quantities, each with its label.
PLANTED_LABELS = {
    "planted_weight": Label(
        message("Mean weight of the planted key"), r"\operatorname{E} p_{\ast}"
    ),
    "planted_rank_first": Label(
        message("Rows in which it has the largest, in per cent"),
        r"P(p_{\ast} = p_{\max})",
        told=True,
    ),
}


def planted_rows(measurements: DataFrame) -> DataFrame:
    """Return mean weights and ranks of planted keys, with ``alignment``.

    Of the number of keys that has most of them, one alignment after another.
    """
    rows = measurements[
        measurements["dependence"].str.startswith("planted")
        & measurements["normalisation"].eq("none")
        & measurements["quantity"].isin(PLANTED_LABELS)
        & measurements["summary"].eq("mean")
        & measurements["divisor"].isin(DIVISOR_LOOKS)
    ]
    if rows.empty:
        return rows.assign(alignment=0.0)
    rows = rows[rows["n_keys"].eq(rows["n_keys"].mode().max())]
    alignment = [parse_dependence(name).rho for name in rows["dependence"]]
    return rows.assign(alignment=alignment).sort_values(["alignment", "d_k"])


def build_planted(measurements: DataFrame, _: DataFrame) -> Picture | None:
    """Build one column of panels for each alignment: weight above, rank below."""
    rows = planted_rows(measurements)
    sizes = with_interval(rows).groupby("alignment")["d_k"].nunique()
    titles = {
        rho: Label(message("correlation"), rf"\rho = {rho:g}")
        for rho in sizes.index[sizes >= FEWEST_POINTS][-MOST_PANELS:]
    }
    parts = [
        (label, rows[rows["quantity"].eq(quantity)])
        for quantity, label in PLANTED_LABELS.items()
    ]
    return _build_shares(parts, "alignment", titles) if titles else None


def pick_planted_weights(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the weight of the planted key under two divisors, at a common d_k."""
    rows = with_interval(planted_rows(measurements))
    rows = rows[rows["quantity"].eq("planted_weight")]
    rows = rows[rows["alignment"].eq(rows["alignment"].max())]
    rows = at_nearest(rows, "d_k", FACT_D_K)
    fact = pick_two(rows, "divisor", "sqrt", "linear")
    return fact and {**fact, "rho": float(rows["alignment"].iloc[0])}


PLANTED = FigureSpec(
    "planted",
    build_planted,
    "planted key by alignment: its weight and its rank",
    section="weights",
    caption=message(
        "One key of each row is planted: its entries correlate with those of the "
        r"query. Ranks are the same under every divisor. Bars: $95\,\%%$ intervals."
    ),
    alternative=message(
        "At d_k = %(d_k)s and a correlation of %(rho)s the planted key gets a weight "
        "of %(first)s divided by √d_k and of %(second)s divided by d_k."
    ),
    named=("planted_weight_sqrt", "planted_weight_linear"),
    fact=pick_planted_weights,
)

"""What dividing does to weights: rows as drawn, saturated rows, a planted key."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.path import Path as Outline
from numpy.typing import NDArray
from pandas import DataFrame

from montecarlo.report.content.curves import EXAMPLE, Curves
from montecarlo.report.content.reading import every_row, gaussian_points
from montecarlo.report.content.tables import (
    FEWEST_POINTS,
    N_KEYS,
    of_key_counts,
    with_interval,
)
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Key, Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import (
    DIVISOR_LOOKS,
    INK,
    MUTED,
    PAGE,
    SHADES,
    Dash,
    Look,
    keep_looks,
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
from montecarlo.study.folder import ResultsError
from montecarlo.study.rows import Row

#: What alternative texts speak of, where the grid has it.
FACT_D_K = 64

# --- Drawn weights, and the share of saturated rows ---------------------------------

Weights = NDArray[np.float64]
DIVISORS = ("none", "sqrt")
#: Borders of the shades, in percent: squares, since most weights of a row are small.
LEVELS = 100.0 * np.linspace(0.0, 1.0, len(SHADES) + 1) ** 2
#: Lines over d_k, where the results have them, each with its dash.
LINE_KEYS = (128, 1024, 16384)
DASHES: tuple[Dash, ...] = ("-", (0, (5, 2)), (0, (1.3, 1.5)))
LEAST_D_K, MOST_D_K = 8, 1024
#: Sizes of practice, which a line marks.
MARKED_D_K = (64, 128)
SATURATED = Label(
    message("Rows with a weight of at least $90\\,\\%%$, in per cent"),
    r"P(p_{\max} \ge 0.9)",
)


def example_weights(curves: Curves) -> Iterator[tuple[str, Weights]]:
    """Yield divisor and weights, shape (queries, keys), of the rows drawn."""
    rows = curves[EXAMPLE].sort_values("weight_number")
    for divisor, mine in keep_looks(dict([*rows.groupby("divisor")]), DIVISORS).items():
        n_keys = int(mine["n_keys"].iloc[0])
        weights = mine["weight"].to_numpy(dtype=np.float64)
        if len(weights) % n_keys:
            raise ResultsError(
                f"curves/{EXAMPLE}.csv must hold example rows of {n_keys} weights "
                f"each, got {len(weights)} under the divisor {divisor}"
            )
        yield str(divisor), weights.reshape(-1, n_keys)


def name_saturated(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Name the shares of saturated Gaussian rows that have a line."""
    rows = [
        point
        for point in gaussian_points(points, with_rows=True)
        if LEAST_D_K <= point.d_k <= MOST_D_K
    ]
    lines = of_key_counts(rows, LINE_KEYS, len(DASHES))
    return every_row(lines, ["saturated"], ["mean"], DIVISORS)


def build_attention(measurements: DataFrame, curves: Curves) -> Picture | None:
    """Build maps of drawn weights above, and shares of saturated rows below."""
    drawn, rows = list(example_weights(curves)), measurements
    if len(drawn) < len(DIVISORS) or rows.empty:
        return None
    picture = Picture((len(DIVISORS), 1), (78.0, 150.0))
    weight = Label(message("attention weight, $0$ to $100\\,\\%%$"), "p_{ij}")
    picture.keys.append(Key(weight, Look(INK, ""), "shades"))
    for panel, (divisor, weights) in zip(picture.rows[0], drawn, strict=True):
        plot_weights(panel.axes, weights)
        panel.title = DIVISOR_LOOKS[divisor].label
        panel.x = Label(message("keys"), "j")
        panel.y = Label(message("queries"), "i")
    below = picture.rows[1][0]
    picture.keys += plot_saturated(below.axes, rows)
    below.title, below.x = SATURATED, HEAD_SIZE
    return picture


def plot_weights(axes: Axes, weights: Weights) -> Axes:
    """Draw each weight as a shade: a line for a query, the first uppermost."""
    n_queries, n_keys = weights.shape
    shade = np.searchsorted(LEVELS, 100.0 * weights, "right") - 1
    shade = np.minimum(shade, len(SHADES) - 1)
    # neighbours of one shade are one cell, which lines then part: half the bytes
    i, first = np.nonzero(np.diff(shade, axis=1, prepend=-1))
    _, last = np.nonzero(np.diff(shade, axis=1, append=-1))
    left, right, low, high = first + 0.5, last + 1.5, i + 0.5, i + 1.5
    corners = np.array([[left, low], [right, low], [right, high], [left, high]])
    corners = np.moveaxis(corners, -1, 0)  # of shape (cells, 4, 2)
    present, of_cell = np.unique(shade), shade[i, first]
    cells = PathCollection(
        [Outline.make_compound_path_from_polys(corners[of_cell == s]) for s in present],
        facecolors=[SHADES[s] for s in present],
        edgecolors=PAGE,
        linewidths=0.0,
    )
    axes.add_collection(cells, autolim=False)
    axes.grid(visible=False)
    axes.vlines(np.arange(1.5, n_keys), 0.5, n_queries + 0.5, color=PAGE, linewidth=0.5)
    axes.hlines(np.arange(1.5, n_queries), 0.5, n_keys + 0.5, color=PAGE, linewidth=0.5)
    axes.set(xlim=(0.5, n_keys + 0.5), ylim=(n_queries + 0.5, 0.5))
    axes.set(xticks=(), yticks=())
    return axes


def plot_saturated(axes: Axes, table: DataFrame) -> list[Key]:
    """Draw the share of saturated rows, a dash for each n; returns the legend."""
    looks = keep_looks(DIVISOR_LOOKS, DIVISORS)
    keys = draw.keys_of(looks, looks)
    for n_keys, dash in zip(sorted(set(table["n_keys"])), DASHES, strict=False):
        rows = table[table["n_keys"].eq(n_keys)]
        dashed = {d: replace(looks[d], dash=dash) for d in looks}
        draw.plot_series(axes, rows, "divisor", dashed)
        keys.append(draw.line_key(dash, Label(symbol=f"n = {n_keys:.0f}")))
    for d_k in MARKED_D_K:
        axes.axvline(d_k, color=MUTED, linewidth=1.1, zorder=1.5)
    draw.powers_of_two(axes, table["d_k"], columns=1)
    draw.percent(axes)
    axes.grid(visible=False, axis="x")
    return keys


def pick_attention(measurements: DataFrame, curves: Curves) -> Fact | None:
    """Average the largest weights of the rows drawn; pick a share of saturated rows."""
    largest = [weights.max(axis=1) for _, weights in example_weights(curves)]
    rows = with_interval(measurements)
    rows = at_nearest(rows[rows["divisor"].eq("none")], "n_keys", N_KEYS)
    rows = at_nearest(rows, "d_k", FACT_D_K)
    if len(largest) < 2 or rows.empty:
        return None
    row = rows.iloc[0]
    return {
        "first": float(100.0 * largest[0].mean()),
        "second": float(100.0 * largest[1].mean()),
        "d_k": float(row["d_k"]),
        "n": float(row["n_keys"]),
        "share": float(100.0 * row["estimate"]),
        "share_error": float(100.0 * row["std_error"]),
    }


ATTENTION = FigureSpec(
    "attention",
    build_attention,
    name_saturated,
    "weights as drawn, and the share of saturated rows",
    own_section="weights",  # a report has it where its explorer needs a script
    caption=message(
        "Above: weights of one draw, a line for each query. Below: the share of rows "
        "in which one key takes nearly everything; vertical lines: usual sizes of a "
        "head."
    ),
    alternative=message(
        "The largest weight of the rows shown is %(first)s %% on average unscaled and "
        "%(second)s %% divided by √d_k. At d_k = %(d_k)s and n = %(n)s, %(share)s %% "
        "of unscaled rows are saturated."
    ),
    fact=pick_attention,
    # of the rows shown: no errors, so one decimal
    constants={"first_error": 1.0, "second_error": 1.0},
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

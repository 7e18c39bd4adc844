"""What dividing does to attention itself: drawn weights, and how many rows saturate."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from pandas import DataFrame

from montecarlo.report.content.tables.rows import (
    gaussian_rows,
    key_counts,
    with_interval,
)
from montecarlo.report.content.tables.topics import N_KEYS
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Key, Picture
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
from montecarlo.report.figures.specs import Fact, FigureSpec, at_nearest, of_curve
from montecarlo.study.folder import ResultsError
from montecarlo.study.table import EXAMPLE

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
HEAD_SIZE = Label(message("dimension of a head"), "d_k")
KEYS = Label(message("keys"), "j")
QUERIES = Label(message("queries"), "i")
SATURATED = Label(
    message("Rows with a weight of at least $90\\,\\%%$, in per cent"),
    r"P(p_{\max} \ge 0.9)",
)
#: The share of saturated rows is told at this d_k, or one near it.
FACT_D_K = 64


def example_weights(curves: DataFrame) -> Iterator[tuple[str, int, Weights]]:
    """Yield divisor, d_k and weights, shape (queries, keys), of the rows drawn."""
    rows = of_curve(curves, EXAMPLE).sort_values("x")
    for divisor, mine in keep_looks(dict([*rows.groupby("divisor")]), DIVISORS).items():
        n_keys = int(mine["n_keys"].iloc[0])
        weights = mine["estimate"].to_numpy(dtype=np.float64)
        if len(weights) % n_keys:
            raise ResultsError(
                f"curves/{EXAMPLE}.csv must hold example rows of {n_keys} weights "
                f"each, got {len(weights)} under the divisor {divisor}"
            )
        yield str(divisor), int(mine["d_k"].iloc[0]), weights.reshape(-1, n_keys)


def saturated_rows(measurements: DataFrame) -> DataFrame:
    """Return the shares of saturated rows that are drawn: by two divisors.

    Of Gaussian rows of the numbers of keys that have a line.
    """
    rows = gaussian_rows(measurements, quantity="saturated", summary="mean")
    rows = rows[rows["divisor"].isin(DIVISORS)]
    rows = rows[rows["d_k"].between(LEAST_D_K, MOST_D_K)]
    counts = key_counts(with_interval(rows), LINE_KEYS, len(DASHES))
    return rows[rows["n_keys"].isin(counts)]


def build_attention(measurements: DataFrame, curves: DataFrame) -> Picture | None:
    """Build maps of drawn weights above, and shares of saturated rows below."""
    drawn, rows = list(example_weights(curves)), saturated_rows(measurements)
    if len(drawn) < len(DIVISORS) or rows.empty:
        return None
    picture = Picture((len(DIVISORS), 1), (78.0, 150.0))
    weight = Label(message("attention weight, $0$ to $100\\,\\%%$"), "p_{ij}")
    picture.keys.append(Key(weight, Look(INK, ""), "shades"))
    for panel, (divisor, _, weights) in zip(picture.rows[0], drawn, strict=True):
        plot_weights(panel.axes, weights)
        panel.title = DIVISOR_LOOKS[divisor].label
        panel.x, panel.y = KEYS, QUERIES
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
    ends = (first + 0.5, last + 1.5, i + 0.5, i + 1.5)
    draw.plot_cells(axes, *ends, shade[i, first], 0.0)
    axes.vlines(np.arange(1.5, n_keys), 0.5, n_queries + 0.5, color=PAGE, linewidth=0.5)
    axes.hlines(np.arange(1.5, n_queries), 0.5, n_keys + 0.5, color=PAGE, linewidth=0.5)
    axes.set(ylim=(n_queries + 0.5, 0.5), xticks=(), yticks=())
    return axes


def plot_saturated(axes: Axes, table: DataFrame) -> list[Key]:
    """Draw the share of saturated rows against d_k, a dash for each n.

    Returns
    -------
    list of Key
        The legend.
    """
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


def pick_attention(measurements: DataFrame, curves: DataFrame) -> Fact | None:
    """Average the largest weights of the rows drawn; pick a share of saturated rows."""
    largest = [weights.max(axis=1) for _, _, weights in example_weights(curves)]
    rows = with_interval(saturated_rows(measurements))
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
    named=("weight_max_percent_unscaled", "weight_max_percent_scaled"),
    fact=pick_attention,
    # of the rows shown: no errors, so one decimal
    constants={"first_error": 1.0, "second_error": 1.0},
)

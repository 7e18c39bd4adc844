"""Figures over d_k: variance of the scores, weights, and gradients through softmax."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from pandas import DataFrame

from montecarlo.estimation.summaries import DISTRIBUTION
from montecarlo.report.content.curves import JACOBIAN_ROWS, CurveTables
from montecarlo.report.content.reading import every_row, gaussian_points
from montecarlo.report.content.tables import (
    FEWEST_POINTS,
    N_KEYS,
    of_key_counts,
    with_interval,
)
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Note, Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import (
    BLUE,
    DIVISOR_LOOKS,
    GREEN,
    MUTED,
    PURPLE,
    Look,
    keep_looks,
)
from montecarlo.report.figures.specs import (
    HEAD_SIZE,
    LEAST_D_K,
    MOST_D_K,
    OF_KEYS,
    TYPICAL_D_K,
    Fact,
    FigureSpec,
    at_nearest,
    pair,
    pick_two,
)
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.study.rows import Row
from montecarlo.theory.simulated_rows import simulated_table, simulated_value


def shown_rows(points: Sequence[DesignPoint]) -> list[DesignPoint]:
    """Return the Gaussian points with attention rows whose d_k is shown in figures."""
    rows = gaussian_points(points, with_rows=True)
    return [point for point in rows if LEAST_D_K <= point.d_k <= MOST_D_K]


# --- Variance of the scores ---------------------------------------------------------

#: Divisors, and how far the label of a line is above its last mark, in points.
VARIANCE_DIVISORS = {"none": 0.0, "sqrt": 13.0}
#: Largest relative error of an estimate with which the headline states the result.
NEAR = 0.05
VARIANCE_ANSWERED = message(
    r"Undivided, the variance is $d_k$; divided by $\sqrt{d_k}$, it is $1$"
)
VARIANCE_ASKED = message("The variance of the scores")


def name_variances(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Yield (point, row key) for the rows of measurements.csv that the figure reads.

    They are score variances, undivided and divided by sqrt(d_k), at the Gaussian
    points without attention rows, which sample pairs of a query and a key.
    """
    pairs = gaussian_points(points, with_rows=False)
    return every_row(pairs, ["score_variance"], ["value"], VARIANCE_DIVISORS)


def build_variance(measurements: DataFrame, _: CurveTables) -> Picture | None:
    """Return the figure of the score variance against d_k, undivided and divided.

    Marks are estimates with intervals, lines are exact values.  None if there are
    estimates at fewer than `FEWEST_POINTS` values of d_k.
    """
    rows = with_interval(measurements).sort_values("d_k")
    if rows["d_k"].nunique() < FEWEST_POINTS:
        return None
    picture = Picture((1,), (98.0,))
    (panel,) = picture.panels
    off = (rows["estimate"] / rows["reference"] - 1.0).abs().max()
    picture.headline = Label(VARIANCE_ANSWERED if off <= NEAR else VARIANCE_ASKED)
    panel.y = Label(
        message("Variance of the scores (logarithmic)"),
        r"\operatorname{Var}(q\cdot k/c)",
    )
    panel.x = HEAD_SIZE
    for divisor, up in VARIANCE_DIVISORS.items():
        look, mine = DIVISOR_LOOKS[divisor], rows[rows["divisor"].eq(divisor)]
        panel.axes.plot(mine["d_k"], mine["reference"], color=MUTED, lw=1.1, zorder=1.6)
        draw.plot_estimates(panel.axes, mine, look)
        for at in zip(mine["d_k"][-1:], mine["estimate"][-1:], strict=True):
            note = Note(look.label, *at, "end", 4.0 if up else -12.0, up, look.colour)
            panel.notes.append(note)
    draw.logarithmic(panel.axes)
    draw.powers_of_two(panel.axes, rows["d_k"], columns=1)
    return picture


def pick_variances(measurements: DataFrame, _: CurveTables) -> Fact | None:
    """Return the numbers of the caption by name: score variances at a large d_k.

    ``first`` is undivided and ``second`` divided by sqrt(d_k), each with its standard
    error.  ``d_k`` is the largest one up to `MOST_D_K`, and ``n`` is 0.  None if there
    are no data.
    """
    rows = measurements[measurements["d_k"].le(MOST_D_K)]
    return pick_two(rows, "divisor", "none", "sqrt")


VARIANCE = FigureSpec(
    "variance",
    build_variance,
    name_variances,
    "variance of the scores against d_k, undivided and divided",
    section="variance",
    on_report=True,
    caption=message(
        "Lines: exact. Marks: measured, with $95\\,\\%%$ intervals, which most of them "
        "hide. Gaussian entries."
    ),
    alternative=message(
        "At d_k = %(d_k)s the variance of the scores is %(first)s undivided and "
        "%(second)s divided by √d_k."
    ),
    fact=pick_variances,
)

# --- Effective keys and saturated rows ----------------------------------------------

#: Title of the panel, by quantity.
SHARES = {
    "effective_keys": Label(message("Effective keys, of %(symbol)s")),
    "saturated": Label(
        message("Queries with $90\\,\\%%$ or more on one key, in per cent")
    ),
}
#: Limits of the headline's statement: shares of keys that are few and many, and share
#: of rows that hardly any are.
FEW, MANY, HARDLY = 0.1, 0.5, 0.01
WEIGHTS_ANSWERED = message(
    "Undivided, a few keys take most of the weight; divided, many share it"
)
WEIGHTS_ASKED = message("How many keys share the weight of a query")


def name_weights(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Yield (point, row key) for the rows of measurements.csv that the figure reads.

    They are effective keys and shares of saturated rows, undivided and divided by
    sqrt(d_k), at a single number of keys: `N_KEYS` if possible.
    """
    rows = of_key_counts(shown_rows(points), [N_KEYS], 1)
    return every_row(rows, SHARES, ["mean"], ["none", "sqrt"])


def build_weights(measurements: DataFrame, _: CurveTables) -> Picture | None:
    """Return the figure of effective keys and saturated rows against d_k.

    It has a panel for each.  None if the tables lack the data.
    """
    if with_interval(measurements).empty:
        return None
    n_keys = float(measurements["n_keys"].iloc[0])

    def plot(panel: Panel, rows: DataFrame) -> None:
        """Draw the rows of one quantity, under both divisors, into a panel."""
        draw.plot_series(panel.axes, rows, "divisor", DIVISOR_LOOKS)
        draw.powers_of_two(panel.axes, measurements["d_k"], columns=2)
        panel.x = HEAD_SIZE
        if rows["quantity"].eq("saturated").all():
            draw.percent(panel.axes)
        else:
            panel.axes.set_ylim(-0.03 * n_keys, 1.05 * n_keys)
            draw.mark_ticks(panel.axes.yaxis, (0.0, n_keys / 2.0, n_keys))
        for divisor, mine in rows.groupby("divisor"):
            look, last = DIVISOR_LOOKS[str(divisor)], mine.nlargest(1, "d_k")
            x, y = (float(last[name].iloc[0]) for name in ("d_k", "estimate"))
            panel.notes.append(Note(look.label, x, y, "end", 4.0, 11.0, look.colour))

    first = SHARES["effective_keys"]._replace(symbol=f"{n_keys:.0f}")
    picture = draw.grid(
        measurements, "quantity", {**SHARES, "effective_keys": first}, 94.0, plot
    )
    picture.headline = Label(
        WEIGHTS_ANSWERED if _few_and_many(measurements) else WEIGHTS_ASKED
    )
    return picture


def _few_and_many(rows: DataFrame) -> bool:
    """Return whether the headline's statement is true of the measured rows.

    These must be true from `TYPICAL_D_K` on.  Undivided, effective keys are at most the
    share `FEW` of all keys.  Divided by sqrt(d_k), they are at least the share `MANY`,
    and at most the share `HARDLY` of rows is saturated.  False if no d_k is as large as
    `TYPICAL_D_K`.
    """
    rows = rows[rows["d_k"].ge(TYPICAL_D_K)]
    keys, saturated = (rows[rows["quantity"].eq(name)] for name in SHARES)
    part = keys["estimate"] / keys["n_keys"]
    divided = keys["divisor"].eq("sqrt")
    few = part[~divided].le(FEW).all() and part[divided].ge(MANY).all()
    hardly = saturated["estimate"][saturated["divisor"].eq("sqrt")].le(HARDLY).all()
    return bool(len(keys) and few and hardly)


def pick_saturated(measurements: DataFrame, _: CurveTables) -> Fact | None:
    """Return the numbers of the caption by name: effective keys and saturated rows.

    They are at the d_k nearest to `TYPICAL_D_K`.  Effective keys are ``first``
    undivided and ``second`` divided by sqrt(d_k).  ``share`` is the undivided share of
    saturated rows in per cent.  Errors have names such as ``share_error``; ``d_k`` and
    ``n`` are the sizes.  None if the table lacks the rows.
    """
    rows = with_interval(at_nearest(measurements, "d_k", TYPICAL_D_K))
    keys, saturated = (rows[rows["quantity"].eq(name)] for name in SHARES)
    fact = pick_two(keys, "divisor", "none", "sqrt")
    mine = saturated[saturated["divisor"].eq("none")]
    if fact is None or mine.empty:
        return None
    share, error = (
        100.0 * float(mine[name].iloc[0]) for name in ("estimate", "std_error")
    )
    return {**fact, "share": share, "share_error": error}


WEIGHTS = FigureSpec(
    "weights",
    build_weights,
    name_weights,
    "effective keys and saturated rows against d_k",
    section="weights",
    on_report=True,
    caption=message(
        "A row is the weights of a query; effective keys: mean of $e^H$, $H$ the "
        r"entropy of a row. Gaussian entries; bars: $95\,\%%$ intervals."
    ),
    alternative=message(
        "At d_k = %(d_k)s and n = %(n)s, %(first)s effective keys share the weight of "
        "a query undivided and %(second)s divided by √d_k; %(share)s %% of undivided "
        "rows are saturated."
    ),
    fact=pick_saturated,
)

# --- What softmax passes on, undivided over divided ---------------------------------

#: Numbers of keys that have a line, if the grid has them.
LINES = {128: Look(BLUE, "o"), 1024: Look(GREEN, "s"), 16384: Look(PURPLE, "^")}
#: Share of the panel's width right of the lines, for their labels.
NAMES = 0.26
PASSED_ON_ANSWERED = message(
    "As $d_k$ grows, softmax passes on less undivided than divided; with more keys, "
    "from a larger $d_k$ on"
)
PASSED_ON_ASKED = message("What softmax passes on, undivided over divided")


def name_passed_on(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Yield (point, row key) for the rows of measurements.csv that the figure reads.

    They are ratios of medians of ‖KᵀJv‖, undivided over divided by sqrt(d_k).  J is the
    Jacobian of softmax, K the matrix of keys, and v a standard normal gradient with
    respect to the weights.
    """
    lines = of_key_counts(shown_rows(points), LINES, len(LINES))
    return every_row(lines, ["gradient_query_undivided"], ["median"], ["none/sqrt"])


def passed_on(d_k: int, n_keys: int = 128) -> float:
    """Return the median over queries of ‖KᵀJv‖ undivided / divided by sqrt(d_k).

    It was simulated beforehand and is read from the explorer's table.  NaN for sizes
    that are not in the table.
    """
    point = parse_point("gaussian", "gaussian", d_k, n_keys)
    known = simulated_value("gradient_query_undivided", point, "none/sqrt", "median")
    return math.nan if known is None else known.value


def simulated_ratios(n_keys: int, most: float) -> list[tuple[int, float]]:
    """Return the pairs (d_k, `passed_on`) for the d_k from `LEAST_D_K` to ``most``.

    An empty list if one of the ratios is unknown.
    """
    sizes = [d_k for d_k in simulated_table()["d_k"] if LEAST_D_K <= d_k <= most]
    ratios = [passed_on(d_k, n_keys) for d_k in sizes]
    return [] if np.isnan(ratios).any() else [*zip(sizes, ratios, strict=True)]


def build_passed_on(measurements: DataFrame, _: CurveTables) -> Picture | None:
    """Return the figure of the ratio of gradients against d_k.

    It has a line for each number of keys.  None if the tables lack the data.
    """
    rows = with_interval(measurements).sort_values("d_k")
    if rows.empty:
        return None
    picture = Picture((1,), (118.0,))
    (panel,) = picture.panels
    picture.headline = Label(PASSED_ON_ANSWERED if _falls(rows) else PASSED_ON_ASKED)
    panel.y = Label(message("Ratio, undivided over divided (logarithmic)"))
    panel.x = HEAD_SIZE
    for n_keys, look in zip(sorted({*rows["n_keys"]}), LINES.values(), strict=False):
        mine = rows[rows["n_keys"].eq(n_keys)]
        ends = simulated_ratios(int(n_keys), rows["d_k"].max()) or [
            *zip(mine["d_k"], mine["estimate"], strict=True)
        ]
        panel.axes.plot(*zip(*ends, strict=True), color=look.colour, zorder=1.8)
        draw.plot_estimates(panel.axes, mine, look)
        x, y = map(float, ends[-1])
        name = Label(OF_KEYS, f"{n_keys:.0f}")
        panel.notes.append(Note(name, x, y, dx=7.0, colour=look.colour))
    draw.logarithmic(panel.axes)
    draw.powers_of_two(panel.axes, rows["d_k"], columns=1)
    draw.room_right(panel.axes, NAMES)
    draw.mark_level(panel.axes, 1.0)
    (left, right), (low, high) = panel.axes.get_xlim(), panel.axes.get_ylim()
    below = Label(message("below $1$: less is passed on"))
    above = Label(message("above $1$: more is passed on"))
    panel.notes.append(Note(below, left, low, "start", 6.0, 9.0, MUTED))
    panel.notes.append(Note(above, right, high, "end", 0.0, -9.0, MUTED))
    return picture


def _falls(rows: DataFrame) -> bool:
    """Return whether the headline's statement is true of the measured ratios.

    From `TYPICAL_D_K` on, they must fall with d_k, reach values below 1, and rise with
    the number of keys.
    """
    rows = rows[rows["d_k"].ge(TYPICAL_D_K)]
    table = rows.pivot_table("estimate", "d_k", "n_keys")
    falls = table.diff().max().max() < 0.0
    return bool(falls and table.T.diff().min().min() > 0.0 and table.min().min() < 1.0)


def pick_passed_on(measurements: DataFrame, _: CurveTables) -> Fact | None:
    """Return the numbers of the caption by name: two ratios of gradients.

    ``first`` is at ``d_k``, the one nearest to `TYPICAL_D_K`, and ``second`` at
    ``most``, the one nearest to `MOST_D_K`.  ``n`` is the number of keys, the one
    nearest to the smallest of `LINES`.  None if the table lacks the rows.
    """
    rows = with_interval(measurements)
    rows = at_nearest(rows, "n_keys", min(LINES))
    ends = [at_nearest(rows, "d_k", d_k) for d_k in (TYPICAL_D_K, MOST_D_K)]
    if rows.empty:
        return None
    d_k, most = (one["d_k"].iloc[0] for one in ends)
    return pair(*ends, n=rows["n_keys"].iloc[0], d_k=d_k, most=most)


PASSED_ON = FigureSpec(
    "gradients",
    build_passed_on,
    name_passed_on,
    "what softmax passes on against d_k, undivided over divided",
    section="gradients",
    on_report=True,
    caption=message(
        "Median over queries of $\\lVert K^{\\top} J v\\rVert$, the norm of the query "
        "gradient times $c$, for $c = 1$ over that for $c = \\sqrt{d_k}$; $v$: the "
        "gradient by the weights, standard normal. Gaussian entries; marks: samples of "
        "this report, with $95\\,\\%%$ intervals; lines: more rows, simulated "
        "beforehand."
    ),
    alternative=message(
        "For %(n)s keys, softmax passes on %(first)s times as much undivided as "
        "divided at d_k = %(d_k)s, and %(second)s times at d_k = %(most)s."
    ),
    fact=pick_passed_on,
)

# --- Norms of the Jacobian over rows ------------------------------------------------

DIVISORS = keep_looks(DIVISOR_LOOKS, ("none", "sqrt"))
#: Design points of the figure.
ROWS_D_K, ROWS_N_KEYS = 64, (128, 16384)
JACOBIAN = "jacobian_frobenius"
#: Edges of the bars, eight for a factor of ten; the first bar has all smaller norms.
BARS = np.logspace(-3.5, 0.0, 29)


def name_jacobians(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Yield (point, row key) for the rows of measurements.csv that the figure reads.

    They are distributions over attention rows of ‖J‖_F, J being the Jacobian of
    softmax: for Gaussian ``points`` with d_k = `ROWS_D_K` and a number of keys in
    `ROWS_N_KEYS`, undivided and divided by sqrt(d_k).
    """
    rows = [
        point
        for point in gaussian_points(points, with_rows=True)
        if point.d_k == ROWS_D_K and point.n_keys in ROWS_N_KEYS
    ]
    return every_row(rows, [JACOBIAN], [DISTRIBUTION], DIVISORS)


def build_jacobians(_: DataFrame, curves: CurveTables) -> Picture | None:
    """Return the figure of histograms of ‖J‖_F over attention rows.

    It has a panel for each number of keys.  None if the tables lack the data.
    """
    rows = curves[JACOBIAN_ROWS]
    counts = sorted(set(rows["n_keys"]))
    if not counts:
        return None
    picture = Picture((1,) * len(counts), (96.0,) * len(counts))
    for panel, n_keys in zip(picture.panels, counts, strict=True):
        plot_rows(panel, rows[rows["n_keys"].eq(n_keys)])
        panel.title = Label(OF_KEYS, f"{n_keys:.0f}")
    picture.panels[0].y = Label(message("Rows, in per cent"))
    picture.share_axes(
        Label(message("Norm of the Jacobian (logarithmic)"), r"\lVert J\rVert_F")
    )
    return picture


def plot_rows(panel: Panel, table: DataFrame) -> None:
    """Draw a histogram of ‖J‖_F over attention rows for each divisor into a panel."""
    axes = panel.axes
    for divisor, look in keep_looks(DIVISORS, table["divisor"]).items():
        mine = table[table["divisor"].eq(divisor)].sort_values(JACOBIAN)
        below = np.interp(np.log(BARS), np.log(mine[JACOBIAN]), mine["share_of_rows"])
        bars = np.diff([0.0, *below[1:]])
        axes.stairs(bars, BARS, fill=True, color=look.colour, alpha=0.2, linewidth=0)
        axes.stairs(bars, BARS, color=look.colour, linewidth=1.5)
        peak = BARS[np.argmax(bars)], bars.max()
        note = Note(look.label, *peak, "end", -6.0, -3.0, look.colour)
        if divisor == "none":  # below the label of the other, at the right end
            note = note._replace(x=1.0, dx=0.0, dy=9.0)
        panel.notes.append(note)
    draw.logarithmic(axes, BARS[0], BARS[-1], x=True)
    draw.percent(axes)
    axes.set_ylim(0.0, 1.0)
    axes.grid(visible=False, axis="x")


def pick_rows(_: DataFrame, curves: CurveTables) -> Fact | None:
    """Return the numbers of the caption by name: medians of ‖J‖_F over rows.

    ``first`` is undivided and ``second`` divided by sqrt(d_k), for the fewest keys,
    ``n``, and ``d_k``.  Errors, such as ``first_error``, only set the digits.  None if
    there are no data.
    """
    rows = curves[JACOBIAN_ROWS]
    rows = rows[rows["n_keys"].eq(rows["n_keys"].min())]
    if not {*DIVISORS} <= {*rows["divisor"]}:
        return None
    fact = {"d_k": float(ROWS_D_K), "n": float(rows["n_keys"].iloc[0])}
    for name, divisor in zip(("first", "second"), DIVISORS, strict=True):
        mine = rows[rows["divisor"].eq(divisor)].sort_values(JACOBIAN)
        fact[name] = float(np.interp(0.5, mine["share_of_rows"], mine[JACOBIAN]))
        fact[f"{name}_error"] = 0.01
    return fact


JACOBIANS = FigureSpec(
    "jacobians",
    build_jacobians,
    name_jacobians,
    "norms of the Jacobian over rows, undivided and divided",
    section="gradients",
    caption=message(
        "Rows by the norm of their Jacobian, at $d_k = 64$; the leftmost bar has all "
        "smaller ones."
    ),
    alternative=message(
        "At d_k = %(d_k)s and n = %(n)s the median norm of the Jacobian is %(first)s "
        "undivided and %(second)s divided by √d_k; undivided, rows spread over "
        "several orders of magnitude."
    ),
    fact=pick_rows,
)

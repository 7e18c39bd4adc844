"""What becomes of gradients: what softmax passes on, and norms of its Jacobian."""

from collections.abc import Iterator, Sequence

import numpy as np
from pandas import DataFrame

from montecarlo.estimation.summaries import DISTRIBUTION
from montecarlo.report.content.curves import JACOBIAN_ROWS, Curves
from montecarlo.report.content.reading import every_row, gaussian_points
from montecarlo.report.content.tables import of_key_counts, with_interval
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
    PRACTICE_D_K,
    Fact,
    FigureSpec,
    at_nearest,
    pair,
)
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.rows import Row

# --- What softmax passes on, undivided over divided ---------------------------------

#: A line for each of these n, where the grid has them.
LINES = {
    128: Look(BLUE, "o"),
    1024: Look(GREEN, "s"),
    16384: Look(PURPLE, "^"),
}
#: Of the width of the panel, right of the lines: for their names.
NAMES = 0.26
ANSWERED = message(
    "As $d_k$ grows, softmax passes on less undivided than divided; with more keys, "
    "from a larger $d_k$ on"
)
ASKED = message("What softmax passes on, undivided over divided")


def name_passed_on(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Name ratios of medians of ‖KᵀJv‖, undivided over divided by the root."""
    rows = [
        point
        for point in gaussian_points(points, with_rows=True)
        if LEAST_D_K <= point.d_k <= MOST_D_K
    ]
    lines = of_key_counts(rows, LINES, len(LINES))
    return every_row(lines, ["gradient_query_undivided"], ["median"], ["none/sqrt"])


def build_passed_on(measurements: DataFrame, _: Curves) -> Picture | None:
    """Build the ratio of what softmax passes on against d_k, a line for each n."""
    rows = with_interval(measurements).sort_values("d_k")
    if rows.empty:
        return None
    picture = Picture((1,), (118.0,))
    (panel,) = picture.panels
    picture.headline = Label(ANSWERED if _falls(rows) else ASKED)
    panel.y = Label(message("Ratio, undivided over divided (logarithmic)"))
    panel.x = HEAD_SIZE
    for n_keys, look in zip(sorted({*rows["n_keys"]}), LINES.values(), strict=False):
        mine = rows[rows["n_keys"].eq(n_keys)]
        draw.plot_line(panel.axes, mine, look)
        draw.plot_estimates(panel.axes, mine, look)
        end = float(mine["d_k"].iloc[-1]), float(mine["estimate"].iloc[-1])
        name = Label(OF_KEYS, f"{n_keys:.0f}")
        panel.notes.append(Note(name, *end, dx=7.0, colour=look.colour))
    draw.logarithmic(panel.axes)
    draw.powers_of_two(panel.axes, rows["d_k"], columns=1)
    draw.room_right(panel.axes, NAMES)
    draw.level(panel.axes, 1.0)
    (left, right), (low, high) = panel.axes.get_xlim(), panel.axes.get_ylim()
    below = Label(message("below $1$: less is passed on"))
    above = Label(message("above $1$: more is passed on"))
    panel.notes.append(Note(below, left, low, "start", 6.0, 9.0, MUTED))
    panel.notes.append(Note(above, right, high, "end", 0.0, -9.0, MUTED))
    return picture


def _falls(rows: DataFrame) -> bool:
    """Tell whether ratios fall with d_k in practice, below 1, and rise with n."""
    rows = rows[rows["d_k"].ge(PRACTICE_D_K)]
    table = rows.pivot_table("estimate", "d_k", "n_keys")
    falls = table.diff().max().max() < 0.0
    rises = table.T.diff().min().min() > 0.0
    return bool(falls and rises and table.min().min() < 1.0)


def pick_passed_on(measurements: DataFrame, _: Curves) -> Fact | None:
    """Pick the ratios of the fewest keys at the ends of practice."""
    rows = with_interval(measurements)
    rows = at_nearest(rows, "n_keys", min(LINES))
    ends = [at_nearest(rows, "d_k", d_k) for d_k in (PRACTICE_D_K, MOST_D_K)]
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
        "gradient by the weights, standard normal. Gaussian entries; bars: "
        "$95\\,\\%%$ intervals."
    ),
    alternative=message(
        "For %(n)s keys, softmax passes on %(first)s times as much undivided as "
        "divided at d_k = %(d_k)s, and %(second)s times at d_k = %(most)s."
    ),
    fact=pick_passed_on,
)

# --- Norms of the Jacobian over rows ------------------------------------------------

DIVISORS = keep_looks(DIVISOR_LOOKS, ("none", "sqrt"))
#: Where rows are looked at.
ROWS_D_K, ROWS_N_KEYS = 64, (128, 16384)
JACOBIAN = "jacobian_frobenius"
#: Eight bars a factor of ten; the leftmost has all rows with less.
BARS = np.logspace(-3.5, 0.0, 29)


def name_jacobians(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Name how rows are distributed."""
    rows = [
        point
        for point in gaussian_points(points, with_rows=True)
        if point.d_k == ROWS_D_K and point.n_keys in ROWS_N_KEYS
    ]
    return every_row(rows, [JACOBIAN], [DISTRIBUTION], DIVISORS)


def build_jacobians(_: DataFrame, curves: Curves) -> Picture | None:
    """Build the distribution of the Jacobian's norm over rows, a panel for each n."""
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
    """Draw how many rows have what norm."""
    axes = panel.axes
    for divisor, look in keep_looks(DIVISORS, table["divisor"]).items():
        mine = table[table["divisor"].eq(divisor)].sort_values(JACOBIAN)
        below = np.interp(np.log(BARS), np.log(mine[JACOBIAN]), mine["share_of_rows"])
        bars = np.diff([0.0, *below[1:]])
        axes.stairs(bars, BARS, fill=True, color=look.colour, alpha=0.2, linewidth=0)
        axes.stairs(bars, BARS, color=look.colour, linewidth=1.5)
        peak = BARS[np.argmax(bars)], bars.max()
        note = Note(look.label, *peak, "end", -6.0, -3.0, look.colour)
        if divisor == "none":  # to the right of the other, and lower
            note = note._replace(x=1.0, dx=0.0, dy=9.0)
        panel.notes.append(note)
    draw.logarithmic(axes, BARS[0], BARS[-1], x=True)
    draw.percent(axes)
    axes.set_ylim(0.0, 1.0)
    axes.grid(visible=False, axis="x")


def pick_rows(_: DataFrame, curves: Curves) -> Fact | None:
    """Pick the medians over rows of the norms, at the fewest keys."""
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

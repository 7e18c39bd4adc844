"""What becomes of gradients: norms of the Jacobian of the softmax, row by row."""

from collections.abc import Iterator, Sequence

import numpy as np
from pandas import DataFrame

from montecarlo.attention.quantities import SHARE_ABOVE
from montecarlo.estimation.summaries import DISTRIBUTION
from montecarlo.report.content.curves import JACOBIAN_ROWS, Curves
from montecarlo.report.content.reading import every_row, gaussian_points
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Note, Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import DIVISOR_LOOKS, keep_looks
from montecarlo.report.figures.specs import Fact, FigureSpec
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.rows import Row

DIVISORS = keep_looks(DIVISOR_LOOKS, ("none", "sqrt"))
#: Where rows are looked at.
ROWS_D_K, ROWS_N_KEYS = 64, (128, 16384)
JACOBIAN = "jacobian_frobenius"
#: Eight bars a factor of ten; the leftmost has all rows with less.
BARS = np.logspace(-3.5, 0.0, 29)
ABOVE = Label(message("unscaled rows above the scaled mean:"))
#: Points that this may be wide.
WORDS_WIDTH = 150.0
ANSWERED = message("Unscaled, most rows have a larger Jacobian norm, some hardly any")
ASKED = message("Rows by the norm of their Jacobian, unscaled and scaled")


def name_jacobians(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Name how rows are distributed, scaled means, and unscaled rows above these."""
    rows = [
        point
        for point in gaussian_points(points, with_rows=True)
        if point.d_k == ROWS_D_K and point.n_keys in ROWS_N_KEYS
    ]
    yield from every_row(rows, [JACOBIAN], [DISTRIBUTION], DIVISORS)
    yield from every_row(rows, [JACOBIAN], ["mean"], ["sqrt"])
    yield from every_row(rows, [JACOBIAN], [SHARE_ABOVE], ["none/sqrt"])


def build_gradients(measurements: DataFrame, curves: Curves) -> Picture | None:
    """Build the distribution of the Jacobian's norm over rows, a panel for each n.

    The title has the answer where most unscaled rows lie above the scaled mean.
    """
    rows, shares = curves[JACOBIAN_ROWS], shares_above(measurements)
    counts = sorted(set(rows["n_keys"]))
    if not counts:
        return None
    picture = Picture((1,) * len(counts), (96.0,) * len(counts))
    parts = [shares[n_keys][1] for n_keys in counts if n_keys in shares]
    answered = len(parts) == len(counts) and min(parts) > 0.5
    picture.headings[0] = Label(ANSWERED if answered else ASKED)
    for panel, n_keys in zip(picture.panels, counts, strict=True):
        plot_rows(panel, rows[rows["n_keys"].eq(n_keys)], shares.get(n_keys))
        panel.title = Label(message("keys of a row"), f"n = {n_keys:.0f}")
    picture.panels[0].y = Label(message("Rows, in per cent"))
    picture.share_axes(
        Label(message("Frobenius norm of the Jacobian"), r"\lVert J\rVert_F")
    )
    return picture


def shares_above(measurements: DataFrame) -> dict[float, tuple[float, float]]:
    """Return the mean of scaled rows and the share of unscaled ones above it, by n."""
    means, parts = (
        measurements[measurements["summary"].eq(summary)]
        for summary in ("mean", SHARE_ABOVE)
    )
    both = means.merge(parts, on="n_keys", suffixes=("", "_above"))
    pairs = zip(both["estimate"], both["estimate_above"], strict=True)
    return dict(zip(both["n_keys"], pairs, strict=True))


def plot_rows(
    panel: Panel, table: DataFrame, above: tuple[float, float] | None
) -> None:
    """Draw how many rows have what norm, unscaled ones above the scaled mean darker."""
    axes = panel.axes
    for divisor, look in keep_looks(DIVISORS, table["divisor"]).items():
        mine = table[table["divisor"].eq(divisor)].sort_values(JACOBIAN)
        below = np.interp(np.log(BARS), np.log(mine[JACOBIAN]), mine["share_of_rows"])
        bars = np.diff([0.0, *below[1:]])
        axes.stairs(bars, BARS, fill=True, color=look.colour, alpha=0.2, linewidth=0)
        axes.stairs(bars, BARS, color=look.colour, linewidth=1.5)
        if divisor == "none":
            peak = BARS[np.argmax(bars) + 1], bars.max()
            label = look.label._replace(symbol="")
            note = Note(label, *peak, "middle", 0.0, 9.0, look.colour)
            panel.notes.append(note)
        if divisor == "none" and above:
            right = [above[0], *BARS[above[0] < BARS]]
            bars = bars[1 - len(right) :]
            axes.stairs(bars, right, fill=True, color=look.colour, alpha=0.4, lw=0)
            told = ABOVE._replace(symbol=rf"{100.0 * above[1]:.0f}\,\%")
            note = Note(told, 1.0, 1.0, "end", 0.0, -9.0, look.colour, WORDS_WIDTH)
            panel.notes.append(note)
        elif divisor != "none":
            at = BARS[np.argmax(bars)]
            note = Note(look.label, at, 0.5, "end", -6.0, 0.0, look.colour)
            panel.notes.append(note)
    draw.logarithmic(axes, BARS[0], BARS[-1], x=True)
    draw.percent(axes)
    axes.set_ylim(0.0, 1.0)
    axes.grid(visible=False, axis="x")


def pick_row_shares(measurements: DataFrame, curves: Curves) -> Fact | None:
    """Pick the shares of unscaled rows whose Jacobian exceeds the scaled mean."""
    counts = sorted({*curves[JACOBIAN_ROWS]["n_keys"]})
    shares = shares_above(measurements)
    if not counts or not {counts[0], counts[-1]} <= set(shares):
        return None
    first, second = (100.0 * shares[n_keys][1] for n_keys in (counts[0], counts[-1]))
    sizes = {"d_k": float(ROWS_D_K), "fewest": counts[0], "n": counts[-1]}
    return {"first": first, "second": second, **sizes}


GRADIENTS = FigureSpec(
    "gradients",
    build_gradients,
    name_jacobians,
    "norms of the Jacobian over rows, unscaled and scaled",
    section="gradients",
    on_report=True,
    caption=message(
        "Rows by the norm of their Jacobian, at $d_k = 64$; the leftmost bar has all "
        "smaller ones."
    ),
    alternative=message(
        "At d_k = %(d_k)s, %(first)s %% of unscaled rows have a Jacobian larger than "
        "the scaled mean at n = %(fewest)s, and %(second)s %% at n = %(n)s."
    ),
    fact=pick_row_shares,
    constants={"first_error": 10.0, "second_error": 10.0},
)

"""How the judging holds: outcomes over thresholds, and z-scores against theory."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from pandas import DataFrame
from scipy.special import ndtri

from montecarlo.claims.judging import SHARE, USED
from montecarlo.report.content.tables.rows import with_interval
from montecarlo.report.figures.drawing.palette import (
    BLUE,
    INK,
    LIGHT_PAGE,
    MUTED,
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Look,
)
from montecarlo.report.figures.drawing.panels import (
    WIDTH,
    legend_above,
    letters,
    panels_for,
)
from montecarlo.report.figures.drawing.specs import Fact, FigureSpec, message

COLUMNS = 3
#: Outcomes from below to above: colour, and the sign in the legend.
OUTCOMES = (
    ("supported", SUPPORTED, "✓"),
    ("undecided", UNDECIDED, "?"),
    ("refuted", REFUTED, "✗"),
)
#: So many z-scores at either end are all drawn; in between, so many evenly spaced.
ENDS, BETWEEN = 25, 160
Scores = NDArray[np.float64]
#: Rows of one point share their draws.  These, one per point, do not.
ONE_EACH = (("score_variance", "none"), ("entropy", "sqrt"))
#: With fewer of these, the others are the same few draws over and over.
FEWEST_ALONE = 10
ALL_LOOK = Look(MUTED, "o", filled=False, size=4.0)
ALONE_LOOK = Look(BLUE, "s", size=4.5)


def drawn_interpretations(curves: DataFrame) -> dict[tuple[str, str], DataFrame]:
    """Return the curves over thresholds, by claim and interpretation.

    In the order of the table, which is that of the catalogue and the caption's letters.
    """
    rows = curves[curves["curve"].isin((SHARE, USED))]
    groups = rows.groupby(["claim", "interpretation"], sort=False)
    return {
        (str(claim), str(interpretation)): group
        for (claim, interpretation), group in groups
        if group["curve"].eq(SHARE).any()
    }


def build_thresholds(_: DataFrame, curves: DataFrame) -> Figure | None:
    """Build the outcomes as functions of the threshold of each vague word."""
    drawn = drawn_interpretations(curves)
    if not drawn:
        return None
    figure, axes = panels_for(len(drawn), COLUMNS, 1.7)
    marks = letters(len(drawn))
    for place, (one, rows) in enumerate(zip(axes, drawn.values(), strict=True)):
        plot_outcomes(one, rows)
        one.set_title(marks[place], loc="left")
        one.tick_params(labelleft=place % COLUMNS == 0)
    figure.supxlabel(r"$\tau$")
    keys = [Patch(color=colour, label=sign) for _, colour, sign in OUTCOMES]
    legend_above(figure, keys, handlelength=1.2)
    return figure


def plot_outcomes(axes: Axes, table: DataFrame) -> Axes:
    """Draw shares of cases supported, undecided and refuted over thresholds."""
    shares = table[table["curve"].eq(SHARE)]
    wide = shares.pivot_table(index="x", columns="outcome", values="estimate")
    supported, refuted = wide["supported"], wide["refuted"]
    edges = (0.0 * supported, supported, 1.0 - refuted, 0.0 * supported + 1.0)
    for (_, colour, _), low, high in zip(OUTCOMES, edges, edges[1:], strict=False):
        axes.fill_between(
            wide.index, low, high, facecolor=colour, edgecolor=LIGHT_PAGE, linewidth=0.8
        )
    for used in table.loc[table["curve"].eq(USED), "x"]:
        axes.axvline(float(used), color=LIGHT_PAGE, linewidth=3.6)
        axes.axvline(float(used), color=INK, linewidth=1.3)
    axes.set_xlim(wide.index.min(), wide.index.max())
    axes.set_ylim(0.0, 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.set_yticks((0.0, 0.5, 1.0), ("0", "0.5", "1"))
    axes.grid(visible=False)
    return axes


def pick_shares(_: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick the shares at the threshold used, of the first panel."""
    for rows in drawn_interpretations(curves).values():
        x = rows.loc[rows["curve"].eq(USED), "x"].iloc[0]
        shares = []
        for outcome in ("supported", "refuted"):
            curve = rows[rows["outcome"].eq(outcome)]
            shares.append(float(np.interp(x, curve["x"], curve["estimate"])))
        return {"first": shares[0], "second": shares[1]}
    return None


def build_z_scores(measurements: DataFrame, _: DataFrame) -> Figure | None:
    """Build the z-scores of all estimates that theory knows, against normal ones."""
    rows = measurements[
        measurements["reference"].notna()
        & measurements["std_error"].gt(0.0)
        & measurements["summary"].isin(("mean", "value"))
    ]
    rows = with_interval(rows)  # of rare draws neither the mean nor its error is known
    if len(rows) < 2 * ENDS or len(_one_each(rows)) < FEWEST_ALONE:
        return None
    figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
    plot_z_scores(figure.subplots(), rows)
    return figure


def plot_z_scores(axes: Axes, table: DataFrame) -> Axes:
    """Draw ordered z-scores against normal quantiles, with the line of equality."""
    limit = 0.0
    for rows, look in ((table, ALL_LOOK), (_one_each(table), ALONE_LOOK)):
        if rows.empty:
            continue
        normal, z = _ordered_scores(rows)
        limit = max(limit, 1.05 * np.abs(z).max(), 1.05 * np.abs(normal).max())
        shown = _thin(normal)
        axes.plot(
            normal[shown],
            z[shown],
            linestyle="none",
            label=f"$N = {len(rows)}$",
            **look.mark,
        )
    axes.plot((-limit, limit), (-limit, limit), color=MUTED, linewidth=1.1, zorder=1.5)
    axes.legend(loc="upper left")
    axes.set_aspect("equal")
    axes.set_xlim(-limit, limit)
    axes.set_ylim(-limit, limit)
    axes.set_xlabel(r"$\Phi^{-1}$")
    axes.set_ylabel("$z$")
    return axes


def _one_each(table: DataFrame) -> DataFrame:
    """Pick about one estimate for each point: these share no draws."""
    return pd.concat(
        [table[table["quantity"].eq(q) & table["divisor"].eq(d)] for q, d in ONE_EACH]
    )


def _ordered_scores(table: DataFrame) -> tuple[Scores, Scores]:
    """Return normal quantiles and, in ascending order, the z-scores."""
    error = table["estimate"] - table["reference"]
    z = np.sort((error / table["std_error"]).to_numpy(dtype=np.float64))
    return ndtri((np.arange(len(z)) + 0.5) / len(z)), z


def _thin(normal: Scores) -> list[int]:
    """Return the places of all points at the ends and of even ones in between."""
    size = len(normal)
    even = np.searchsorted(normal, np.linspace(normal[0], normal[-1], BETWEEN))
    ends = [*range(min(ENDS, size)), *range(max(size - ENDS, 0), size)]
    return sorted({*ends, *(int(place) for place in even)})


def pick_z_scores(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the root mean square and the largest of all z-scores."""
    known = measurements.dropna(subset=["reference", "std_error"])
    known = with_interval(known[known["std_error"] > 0.0])
    if known.empty:
        return None
    z = (known["estimate"] - known["reference"]) / known["std_error"]
    return {"first": float(np.sqrt((z**2).mean())), "second": float(z.abs().max())}


THRESHOLDS = FigureSpec(
    "thresholds",
    build_thresholds,
    "outcomes against the threshold of each vague word",
    section="weights",
    own_section="answer",
    caption=message(
        "Share of the cases of a check that come out supported (✓, from below), "
        "refuted (✗, from above) and undecided (?, between), against the threshold "
        r"$\tau$. Vertical line: the threshold used here. Panels:"
    ),
    alternative=message(
        "At the thresholds used here the interpretation of panel a is supported in "
        "%(first)s and refuted in %(second)s of its cases."
    ),
    named=("supported_share", "refuted_share"),
    fact=pick_shares,
)
Z_SCORES = FigureSpec(
    "z-scores",
    build_z_scores,
    "estimates against exact theory",
    section="method",
    caption=message(
        "Every estimate that has an exact value: its distance from it in standard "
        "errors, ordered, against what a normal distribution would give. Rings: all of "
        "them; estimates of one condition share draws, so these are not independent. "
        "Squares: about one estimate for each condition. Line: perfect agreement."
    ),
    alternative=message(
        "The root mean square of all z-scores is %(first)s, the largest is %(second)s "
        "in absolute value."
    ),
    named=("root_mean_square", "largest"),
    fact=pick_z_scores,
)

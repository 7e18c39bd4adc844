"""What was measured beside what is claimed, a panel for a check: of few claims.

In: the judged cases of checks, a line each.  Along d_k there is no single place, so
slopes and ratios of ends have no panel.
"""

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from montecarlo.claims.outcomes import CheckOutcome, ClaimOutcome
from montecarlo.report.figures.drawing.palette import (
    INK,
    OPEN,
    REFUTED,
    SUPPORTED,
    UNDECIDED,
)
from montecarlo.report.figures.drawing.panels import (
    letters,
    logarithmic,
    panels_for,
    powers_of_two,
)
from montecarlo.report.figures.drawing.specs import FigureSpec, message

#: Checks that have panels: the first of a file.
MOST_PANELS = 8
COLUMNS = 2
#: From these ratios of ends on, an axis is logarithmic.
WIDE, TALL = 4.0, 30.0
#: Colour and mark by outcome.
LOOKS = {
    "supported": (SUPPORTED, "o"),
    "refuted": (REFUTED, "X"),
    "undecided": (OPEN, "s"),
}


def drawn_checks(
    claims: Iterable[ClaimOutcome],
) -> list[tuple[str, str, CheckOutcome]]:
    """Return the checks that have panels, with ids of claim and interpretation."""
    found = [
        (claim.id, interpretation.id, check)
        for claim in claims
        for interpretation in claim.interpretations
        for check in interpretation.checks
        if not check.along_d_k
        and any(case.estimate is not None and case.d_k for case in check.cases)
    ]
    return found[:MOST_PANELS]


def case_rows(claims: Iterable[ClaimOutcome]) -> DataFrame:
    """Return a line for each case that is drawn; open ends are infinite."""
    rows = [
        {
            "panel": panel,
            "d_k": case.d_k,
            "n_keys": case.n_keys,
            "estimate": case.estimate,
            "low": _or(case.simultaneous_low, -np.inf),
            "high": _or(case.simultaneous_high, np.inf),
            "least": case.region[0],
            "most": case.region[1],
            "outcome": str(case.outcome),
        }
        for panel, (*_, check) in enumerate(drawn_checks(claims))
        for case in check.cases
        if case.estimate is not None and case.d_k
    ]
    return DataFrame(rows)


def _or(end: float | None, otherwise: float) -> float:
    return otherwise if end is None else end


def build_cases(cases: DataFrame, _: DataFrame) -> Figure | None:
    """Build a panel for each check: estimates, intervals, and what is claimed."""
    if cases.empty:
        return None
    parts = [rows for _, rows in cases.groupby("panel", sort=True)]
    figure, axes = panels_for(len(parts), COLUMNS, 2.2)
    for one, mark, rows in zip(axes, letters(len(parts)), parts, strict=True):
        plot_cases(one, rows)
        one.set_title(mark, loc="left")
    return figure


def plot_cases(axes: Axes, rows: DataFrame) -> Axes:
    """Draw cases over d_k, or over n where that alone varies; bars: the claimed."""
    x = "n_keys" if rows["d_k"].nunique() == 1 < rows["n_keys"].nunique() else "d_k"
    rows = rows.sort_values(x)
    at = rows[x].to_numpy(float)
    shown = rows[["estimate", "low", "high", "least", "most"]].to_numpy(float)
    seen = shown[np.isfinite(shown)]
    if seen.min() > 0.0 and seen.max() >= TALL * seen.min():
        logarithmic(axes, seen.min() / 2.0, seen.max() * 2.0)
    else:
        margin = 0.15 * (seen.max() - seen.min() or abs(seen.max()) or 1.0)
        axes.set_ylim(seen.min() - margin, seen.max() + margin)
    if at.max() >= WIDE * at.min():
        powers_of_two(axes, at, COLUMNS)
    else:
        axes.set_xticks(sorted(set(at)))
        axes.set_xlim(0.9 * at.min(), 1.1 * at.max())
    bottom, top = axes.get_ylim()
    _, low, high, least, most = np.clip(shown, bottom, top).T  # some have no end
    axes.vlines(at, least, most, color=UNDECIDED, linewidth=9.0, zorder=1.5)
    for outcome in dict.fromkeys(rows["outcome"]):
        mine = rows["outcome"].eq(outcome).to_numpy()
        colour, marker = LOOKS.get(outcome, (INK, "o"))
        estimate = shown[mine, 0]
        error = np.stack([estimate - low[mine], high[mine] - estimate])
        axes.errorbar(
            at[mine],
            estimate,
            np.maximum(error, 0.0),
            color=colour,
            marker=marker,
            markersize=4.5,
            linestyle="none",
            elinewidth=1.2,
        )
    axes.set_xlabel("$n$" if x == "n_keys" else "$d_k$")
    return axes


CASES = FigureSpec(
    "cases",
    build_cases,
    shows="what was measured beside what is claimed, of a few claims",
    section="answer",
    on_report=True,
    caption=message(
        "What was measured, with simultaneous intervals, and, shaded, what is claimed; "
        "over $d_k$, or over $n$ where that alone varies. Circles: supported; crosses: "
        "refuted; squares: undecided."
    ),
    alternative=message("Each estimate with its interval beside what is claimed."),
)

"""Initialisations: the variance they give entries and scaled scores."""

from matplotlib.figure import Figure
from pandas import DataFrame

from montecarlo.report.content.tables.topics import audit_table
from montecarlo.report.figures.captions.picking import pair
from montecarlo.report.figures.drawing.palette import BLUE, INK, MUTED, Look
from montecarlo.report.figures.drawing.panels import (
    WIDTH,
    key_of,
    legend_above,
    letters,
)
from montecarlo.report.figures.drawing.specs import Fact, FigureSpec, message

ENTRY_LOOK = Look(INK, "o", symbol=r"$\mathrm{Var}(q_m)$", filled=False)
SCORE_LOOK = Look(BLUE, "s", symbol=r"$\mathrm{Var}(q\cdot k/\sqrt{d_k})$")
#: Inches of a line.
LINE = 0.24


def build_audit(measurements: DataFrame, _: DataFrame) -> Figure | None:
    """Build one line for each initialisation, lettered as in the table."""
    entries, scores = audit_table(measurements)
    if entries.empty:
        return None
    figure = Figure(figsize=(WIDTH, LINE * len(entries) + 1.2), layout="constrained")
    axes = figure.subplots()
    for table, look in ((entries, ENTRY_LOOK), (scores, SCORE_LOOK)):
        value = table["estimate"].to_numpy()
        low = value - table["ci_low"].to_numpy()
        high = table["ci_high"].to_numpy() - value
        axes.errorbar(
            value,
            range(len(table)),
            xerr=(low.clip(0.0), high.clip(0.0)),
            linestyle="none",
            **look.mark,
        )
    axes.axvline(1.0, color=MUTED, linewidth=1.1, zorder=1.5)
    axes.set_xscale("log")
    axes.set_yticks(range(len(entries)), letters(len(entries)))
    axes.invert_yaxis()
    axes.grid(visible=False, axis="x")
    axes.set_xlabel(r"$\mathrm{Var}$")
    legend_above(figure, [key_of(ENTRY_LOOK), key_of(SCORE_LOOK)])
    return figure


def pick_variances(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the smallest and the largest variance of scaled scores."""
    scores = audit_table(measurements)[1]
    return None if scores.empty else pair(scores.iloc[:1], scores.iloc[-1:])


AUDIT = FigureSpec(
    "audit",
    build_audit,
    "variances that initialisations give",
    section="premise",
    caption=message(
        "Variance of the entries of $Q$ (rings) and of the scores divided by "
        r"$\sqrt{d_k}$ (squares) after each initialisation, on a logarithmic axis, "
        r"with pointwise $95\,\%%$ intervals. Vertical line: the variance $1$ that the "
        "texts assume. Lines:"
    ),
    alternative=message(
        "The variance of the scaled scores after initialisation lies between %(first)s "
        "and %(second)s."
    ),
    named=("scaled_score_variance_least", "scaled_score_variance_most"),
    fact=pick_variances,
)

"""Verdicts by text: which text claims what, and how it fared."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from montecarlo.report.figures.drawing.palette import VERDICT_LOOKS
from montecarlo.report.figures.drawing.panels import (
    WIDTH,
    key_of,
    legend_above,
    letters,
)

#: The curve of what `by_text.with_verdicts` adds.
CURVE = "verdict"
LINE = 0.36


def text_rows(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of curves that hold a text's claim and its verdict."""
    return curves[curves["curve"].eq(CURVE)]


def build_texts(
    measurements: pd.DataFrame,  # noqa: ARG001 - builders share one signature
    curves: pd.DataFrame,
) -> Figure | None:
    """Build a mark for each claim of each text, claims in columns, worst news first."""
    rows = text_rows(curves)
    if rows.empty:
        return None
    texts = list(dict.fromkeys(rows["text"]))
    figure = Figure(figsize=(WIDTH, LINE * len(texts) + 1.0), layout="constrained")
    plot_texts(figure.subplots(), rows, texts)
    there = set(rows["outcome"])
    looks = dict.fromkeys(look for v, look in VERDICT_LOOKS.items() if v in there)
    legend_above(figure, [key_of(look) for look in looks])  # some look alike
    return figure


def plot_texts(axes: Axes, table: pd.DataFrame, texts: list[str]) -> Axes:
    """Draw the marks of all texts, the first text uppermost.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of `by_text.with_verdicts`: ``x`` is the claim's number.
    texts : list of str

    Returns
    -------
    Axes
    """
    text, verdict = table["text"], table["outcome"]
    for name, look in VERDICT_LOOKS.items():
        mine = table[verdict.eq(name)]
        axes.plot(
            mine["x"],
            [texts.index(one) for one in text[verdict.eq(name)]],
            linestyle="none",
            **look.mark,
        )
    axes.set_yticks(range(len(texts)), letters(len(texts)))
    axes.set_ylim(len(texts) - 0.5, -0.5)
    axes.set_xlim(0.0, table["x"].max() + 1.0)
    axes.set_xlabel("$N$")
    return axes

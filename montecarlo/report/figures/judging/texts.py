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

#: Rows of the curves that `verdicts` makes: text, then verdict.
PREFIX = "verdict/"
LINE = 0.36


def text_rows(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of curves that hold a text's claim and its verdict."""
    return curves[curves["curve"].str.startswith(PREFIX)]


def build_texts(
    measurements: pd.DataFrame,  # noqa: ARG001 - builders share one signature
    curves: pd.DataFrame,
) -> Figure | None:
    """Build a mark for each claim of each text, claims in columns, worst news first."""
    rows = text_rows(curves)
    if rows.empty:
        return None
    texts = list(dict.fromkeys(rows["curve"].str.split("/").str[1]))
    figure = Figure(figsize=(WIDTH, LINE * len(texts) + 1.0), layout="constrained")
    plot_texts(figure.subplots(), rows, texts)
    there = set(rows["curve"].str.split("/").str[2])
    looks = dict.fromkeys(look for v, look in VERDICT_LOOKS.items() if v in there)
    legend_above(figure, [key_of(look) for look in looks])  # some look alike
    return figure


def plot_texts(axes: Axes, table: pd.DataFrame, texts: list[str]) -> Axes:
    """Draw the marks of all texts, the first text uppermost.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of curves: the name holds text and verdict, ``x`` is the claim's number.
    texts : list of str

    Returns
    -------
    Axes
    """
    parts = table["curve"].str.split("/")
    text, verdict = parts.str[1], parts.str[2]
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

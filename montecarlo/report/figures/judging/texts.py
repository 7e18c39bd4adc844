"""Verdicts by text: which text claims what, and how it fared."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure
from pandas import DataFrame

from montecarlo.claims.outcomes import ClaimOutcome
from montecarlo.report.content.findings import FAILING
from montecarlo.report.figures.drawing.palette import VERDICT_LOOKS, keep_looks
from montecarlo.report.figures.drawing.panels import (
    WIDTH,
    key_of,
    legend_above,
    letters,
)
from montecarlo.report.figures.drawing.specs import Fact, FigureSpec, message

#: The curve of what `with_verdicts` adds.
CURVE = "verdict"
LINE = 0.36


def with_verdicts(curves: DataFrame, claims: Sequence[ClaimOutcome]) -> DataFrame:
    """Put a row for each text and claim behind the curves, where there are texts.

    With the column ``text``; ``outcome`` is the verdict on what it says, ``x`` the
    number of the claim.  Texts come in alphabetical order of their keys.
    """
    rows = {
        (source.text, float(number), str(claim.texts[source.text]))
        for number, claim in enumerate(claims, start=1)
        for source in claim.sources
    }
    if not rows:
        return curves
    added = DataFrame(sorted(rows), columns=["text", "x", "outcome"])
    added = added.assign(curve=CURVE)
    return pd.concat([curves, added], ignore_index=True)


def text_rows(_: DataFrame, curves: DataFrame) -> DataFrame:
    """Return the rows of curves that hold a text's claim and its verdict."""
    return curves[curves["curve"].eq(CURVE)]


def build_texts(measurements: DataFrame, curves: DataFrame) -> Figure | None:
    """Build a mark for each claim of each text, claims in columns, worst news first."""
    rows = text_rows(measurements, curves)
    if rows.empty:
        return None
    texts = list(dict.fromkeys(rows["text"]))
    figure = Figure(figsize=(WIDTH, LINE * len(texts) + 1.0), layout="constrained")
    axes = figure.subplots()
    looks = keep_looks(VERDICT_LOOKS, rows["outcome"])
    for verdict, look in looks.items():
        mine = rows[rows["outcome"].eq(verdict)]
        lines = [texts.index(text) for text in mine["text"]]
        axes.plot(mine["x"], lines, linestyle="none", **look.mark)
    axes.set_yticks(range(len(texts)), letters(len(texts)))
    axes.set_ylim(len(texts) - 0.5, -0.5)
    axes.set_xlim(0.0, rows["x"].max() + 1.0)
    axes.set_xlabel("$N$")
    different = dict.fromkeys(looks.values())  # some look alike
    legend_above(figure, [key_of(look) for look in different])
    return figure


def count_failing(measurements: DataFrame, curves: DataFrame) -> Fact | None:
    """Count claims of all texts together, and those of them that fail."""
    verdicts = text_rows(measurements, curves)["outcome"]
    if verdicts.empty:
        return None
    return {
        "first": float(len(verdicts)),
        "second": float(verdicts.isin(FAILING).sum()),
    }


TEXTS = FigureSpec(
    "texts",
    build_texts,
    "verdicts by text",
    section="answer",
    on_report=True,
    caption=message(
        "Which text makes which claim, and how it fared: one line for each text, one "
        "column for each claim, by its number. Marks:"
    ),
    alternative=message(
        "The texts make %(first)s claims between them, each counted once for each "
        "text; %(second)s of these are refuted."
    ),
    named=("claims_made", "claims_refuted"),
    fact=count_failing,
    series={"verdicts": text_rows},
)

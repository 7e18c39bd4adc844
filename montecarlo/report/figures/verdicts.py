"""How claims came out: by text, and of a few beside what is claimed."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from pandas import DataFrame

from montecarlo.claims.checks import Words
from montecarlo.claims.outcomes import CheckOutcome, ClaimOutcome
from montecarlo.report.content.findings import FAILING
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Key, Note, Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import (
    OPEN,
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    VERDICT_LOOKS,
    Look,
    keep_looks,
)
from montecarlo.report.figures.specs import Fact, FigureSpec, of_curve

# --- Verdicts by text ---------------------------------------------------------------

#: The curve of what `with_verdicts` adds.
CURVE = "verdict"
LINE = 33.0


def with_verdicts(
    curves: DataFrame,
    claims: Sequence[ClaimOutcome],
    names: Mapping[str, Words] | None = None,
) -> DataFrame:
    """Put a row for each text and claim behind the curves, where there are texts.

    With the columns ``text`` and ``name``, what a text is called, or a letter and its
    key; ``outcome`` is the verdict on what it says, ``x`` the number of the claim.
    Texts come in alphabetical order of their keys.
    """
    rows = {
        (source.text, float(number), str(claim.texts[source.text]))
        for number, claim in enumerate(claims, start=1)
        for source in claim.sources
    }
    if not rows:
        return curves
    added = DataFrame(sorted(rows), columns=["text", "x", "outcome"])
    keys = dict.fromkeys(added["text"])
    marks = dict(zip(keys, draw.letters(len(keys)), strict=True))
    called = {key: str((names or {}).get(key, f"{marks[key]} {key}")) for key in keys}
    added = added.assign(curve=CURVE, name=added["text"].map(called))
    return pd.concat([curves, added], ignore_index=True)


def build_texts(_: DataFrame, curves: DataFrame) -> Picture | None:
    """Build a line for each text, a mark for each of its claims, worst news first."""
    rows = of_curve(curves, CURVE)
    if rows.empty:
        return None
    looks = keep_looks(VERDICT_LOOKS, rows["outcome"])
    rows = rows.assign(rank=rows["outcome"].map(list(looks).index))
    rows = rows.sort_values(["text", "rank", "x"])
    place = rows.groupby("text").cumcount() + 1
    texts = dict(zip(rows["text"], rows["name"], strict=True))
    line = rows["text"].map(list(texts).index)
    picture = Picture((1,), (LINE * len(texts),))
    (panel,) = picture.panels
    for verdict, look in looks.items():
        mine = rows["outcome"].eq(verdict)
        panel.axes.plot(place[mine], line[mine], linestyle="none", **look.mark)
    for at, name in enumerate(texts.values()):
        label = Label(words=name, symbol=rf"\mathrm{{{at + 1}}}", told=True)
        panel.notes.append(Note(label, 0.3, at - 0.42))
    panel.axes.set_yticks(range(len(texts)), [""] * len(texts))
    panel.axes.set(ylim=(len(texts) - 0.6, -0.75), xlim=(0.0, place.max() + 1.0))
    panel.axes.spines["left"].set_visible(False)
    panel.axes.tick_params(left=False)
    panel.axes.grid(visible=False, axis="x")
    panel.x = Label(message("claims"), "N")
    different = dict.fromkeys(looks.values())  # some look alike
    picture.keys = [Key(look.label, look) for look in different]
    return picture


def count_failing(_: DataFrame, curves: DataFrame) -> Fact | None:
    """Count claims of all texts together, and those of them that fail."""
    verdicts = of_curve(curves, CURVE)["outcome"]
    failing = verdicts.isin(FAILING).sum()
    fact = {"first": float(len(verdicts)), "second": float(failing)}
    return fact if len(verdicts) else None


TEXTS = FigureSpec(
    "texts",
    build_texts,
    "verdicts by text",
    section="record",
    on_report=True,
    caption=message(
        "How the claims of each text fared: a mark for each claim, worst news first."
    ),
    alternative=message(
        "The texts make %(first)s claims between them, each counted once for each "
        "text; %(second)s of these are refuted."
    ),
    named=("claims_made", "claims_refuted"),
    fact=count_failing,
)

# --- Measured beside claimed, of a few claims ---------------------------------------

#: Checks that have panels: the first of a file.
MOST_PANELS = 8
CASE_COLUMNS = 2
#: From these ratios of ends on, an axis is logarithmic.
WIDE, TALL = 4.0, 30.0
#: By outcome.
CASE_LOOKS = {
    "supported": Look(SUPPORTED, "o"),
    "refuted": Look(REFUTED, "X"),
    "undecided": Look(OPEN, "s"),
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
            "low": case.simultaneous_low,
            "high": case.simultaneous_high,
            "least": case.region[0],
            "most": case.region[1],
            "outcome": str(case.outcome),
        }
        for panel, (*_, check) in enumerate(drawn_checks(claims))
        for case in check.cases
        if case.estimate is not None and case.d_k
    ]
    table = DataFrame(rows)
    return table if table.empty else table.fillna({"low": -np.inf, "high": np.inf})


def build_cases(cases: DataFrame, _: DataFrame) -> Picture | None:
    """Build a panel for each check: estimates, intervals, and what is claimed."""
    if cases.empty:
        return None
    parts = [rows for _, rows in cases.groupby("panel", sort=True)]
    lines = [min(CASE_COLUMNS, len(parts) - at) for at in range(0, len(parts), 2)]
    picture = Picture(lines, [100.0] * len(lines), CASE_COLUMNS)
    marks = draw.letters(len(parts))
    for panel, rows, mark in zip(picture.panels, parts, marks, strict=True):
        panel.title = Label(symbol=rf"\mathrm{{{mark}}}")
        plot_cases(panel, rows)
    picture.keys = [
        Key(VERDICT_LOOKS[name].label, look)
        for name, look in keep_looks(CASE_LOOKS, cases["outcome"]).items()
    ]
    claimed = Label(message("what is claimed"))
    picture.keys.append(draw.area_key(claimed, UNDECIDED))
    return picture


def plot_cases(panel: Panel, rows: DataFrame) -> None:
    """Draw cases over d_k, or over n where that alone varies; bars: the claimed."""
    axes = panel.axes
    x = "n_keys" if rows["d_k"].nunique() == 1 < rows["n_keys"].nunique() else "d_k"
    panel.x = Label(symbol="n" if x == "n_keys" else "d_k")
    at = rows[x].to_numpy(float)
    shown = rows[["estimate", "low", "high", "least", "most"]].to_numpy(float)
    seen = shown[np.isfinite(shown)]
    if seen.min() > 0.0 and seen.max() >= TALL * seen.min():
        draw.logarithmic(axes, seen.min() / 2.0, seen.max() * 2.0)
    else:
        margin = 0.15 * (np.ptp(seen) or abs(seen.max()) or 1.0)
        axes.set_ylim(seen.min() - margin, seen.max() + margin)
        draw.few_ticks(axes.yaxis)
    if at.max() >= WIDE * at.min():
        draw.powers_of_two(axes, at, CASE_COLUMNS)
    else:
        draw.mark_ticks(axes.xaxis, sorted(set(at)))
        axes.set_xlim(0.9 * at.min(), 1.1 * at.max())
    shown = np.clip(shown, *axes.get_ylim())  # some have no end
    axes.vlines(at, shown[:, 3], shown[:, 4], color=UNDECIDED, linewidth=9, zorder=1.5)
    for outcome, look in CASE_LOOKS.items():
        value, low, high, *_ = shown[rows["outcome"].eq(outcome)].T
        axes.errorbar(
            at[rows["outcome"].eq(outcome)],
            value,
            draw.bars(value, low, high),
            linestyle="none",
            elinewidth=1.2,
            **look.mark,
        )


CASES = FigureSpec(
    "cases",
    build_cases,
    shows="what was measured beside what is claimed, of a few claims",
    section="answer",
    on_report=True,
    caption=message(
        "What was measured, with simultaneous intervals, beside what is claimed."
    ),
    alternative=message("Each estimate with its interval beside what is claimed."),
)

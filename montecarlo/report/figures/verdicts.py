"""How claims came out: by text, of a few beside what is claimed, over thresholds."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from pandas import DataFrame

from montecarlo.claims.checks import Words
from montecarlo.claims.judging import SHARE, USED
from montecarlo.claims.outcomes import (
    CheckOutcome,
    ClaimOutcome,
    InterpretationOutcome,
)
from montecarlo.report.content.findings import FAILING
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Key, Note, Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import (
    INK,
    OPEN,
    PAGE,
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
    """Build a mark for each claim of each text, claims in columns, worst news first."""
    rows = of_curve(curves, CURVE)
    if rows.empty:
        return None
    texts = dict(zip(rows["text"], rows["name"], strict=True))
    picture = Picture((1,), (LINE * len(texts),))
    (panel,) = picture.panels
    looks = keep_looks(VERDICT_LOOKS, rows["outcome"])
    for verdict, look in looks.items():
        mine = rows[rows["outcome"].eq(verdict)]
        lines = [list(texts).index(text) for text in mine["text"]]
        panel.axes.plot(mine["x"], lines, linestyle="none", **look.mark)
    for line, name in enumerate(texts.values()):
        label = Label(words=name, symbol=rf"\mathrm{{{line + 1}}}", told=True)
        panel.notes.append(Note(label, 0.3, line - 0.42))
    panel.axes.set_yticks(range(len(texts)), [""] * len(texts))
    panel.axes.set(ylim=(len(texts) - 0.6, -0.75), xlim=(0.0, rows["x"].max() + 1.0))
    panel.axes.spines["left"].set_visible(False)
    panel.axes.tick_params(left=False)
    panel.axes.grid(visible=False, axis="x")
    panel.x = Label(message("number of the claim"), "N")
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
        "Who says what, and how it fared: a line for each text, a column for each "
        "claim, by its number in the tables."
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
    picture = _lettered(len(parts), CASE_COLUMNS, 100.0)
    for panel, rows in zip(picture.panels, parts, strict=True):
        plot_cases(panel, rows)
    picture.keys = [
        Key(VERDICT_LOOKS[name].label, look)
        for name, look in keep_looks(CASE_LOOKS, cases["outcome"]).items()
    ]
    claimed = Label(message("what is claimed"))
    picture.keys.append(draw.area_key(claimed, UNDECIDED))
    return picture


def _lettered(count: int, columns: int, height: float) -> Picture:
    """Return so many panels, each with a letter, at most some beside each other."""
    lines = [min(columns, count - at) for at in range(0, count, columns)]
    picture = Picture(lines, [height] * len(lines), columns)
    for panel, mark in zip(picture.panels, draw.letters(count), strict=True):
        panel.title = Label(symbol=rf"\mathrm{{{mark}}}")
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

# --- Outcomes over thresholds -------------------------------------------------------

COLUMNS = 3
#: Outcomes from below to above: colour and words.
OUTCOMES = (
    ("supported", SUPPORTED),
    ("undecided", UNDECIDED),
    ("refuted", REFUTED),
)


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


def build_thresholds(_: DataFrame, curves: DataFrame) -> Picture | None:
    """Build the outcomes as functions of the threshold of each vague word."""
    drawn = drawn_interpretations(curves)
    if not drawn:
        return None
    picture = _lettered(len(drawn), COLUMNS, 62.0)
    for panel, rows in zip(picture.panels, drawn.values(), strict=True):
        plot_outcomes(panel.axes, rows)
    for panel in (panel for line in picture.rows for panel in line[1:]):
        panel.axes.tick_params(labelleft=False)
    picture.rows[0][0].y = Label(message("Cases, in per cent"))
    picture.panels[-1].x = Label(message("threshold"), r"\tau")
    picture.keys = [
        draw.area_key(VERDICT_LOOKS[name].label, colour) for name, colour in OUTCOMES
    ]
    return picture


def threshold_panels(
    curves: DataFrame, claims: Sequence[ClaimOutcome]
) -> list[tuple[ClaimOutcome, InterpretationOutcome]]:
    """Return the claim and interpretation of each panel, in their order."""
    drawn = drawn_interpretations(curves)
    pairs = [(claim, one) for claim in claims for one in claim.interpretations]
    known = {(claim.id, one.id): (claim, one) for claim, one in pairs}
    return [known[names] for names in drawn if names in known]


def plot_outcomes(axes: Axes, table: DataFrame) -> None:
    """Draw shares of cases supported, undecided and refuted over thresholds."""
    shares = of_curve(table, SHARE)
    wide = shares.pivot_table(index="x", columns="outcome", values="estimate")
    supported, refuted = wide["supported"], wide["refuted"]
    areas = (supported, 1.0 - supported - refuted, refuted)
    colours = [colour for _, colour in OUTCOMES]
    axes.stackplot(wide.index, *areas, colors=colours, edgecolor=PAGE, linewidth=0.8)
    for used in table.loc[table["curve"].eq(USED), "x"]:
        axes.axvline(float(used), color=PAGE, linewidth=3.6)
        axes.axvline(float(used), color=INK, linewidth=1.3)
    draw.few_ticks(axes.xaxis, 3)
    draw.percent(axes)
    axes.set(xlim=(wide.index.min(), wide.index.max()), ylim=(0.0, 1.0))
    axes.grid(visible=False)


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


THRESHOLDS = FigureSpec(
    "thresholds",
    build_thresholds,
    "outcomes against the threshold of each vague word",
    section="weights",
    own_section="answer",
    caption=message(
        "How many cases of a check are supported (from below) and refuted (from "
        "above), against the threshold of its word. Vertical line: the threshold used "
        "here. Panels:"
    ),
    alternative=message(
        "At the thresholds used here the interpretation of panel a is supported in "
        "%(first)s and refuted in %(second)s of its cases."
    ),
    named=("supported_share", "refuted_share"),
    fact=pick_shares,
)

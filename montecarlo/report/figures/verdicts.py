"""How claims came out and how that was judged.

Verdicts by text; of a few claims, what was measured beside what is claimed; outcomes
over thresholds; z-scores against theory; the judge's report card.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from pandas import DataFrame, Series
from scipy.special import ndtri

from montecarlo.claims.checks import Words
from montecarlo.claims.judging import SHARE, USED
from montecarlo.claims.outcomes import CheckOutcome, ClaimOutcome
from montecarlo.records.calibration import ALLOWED
from montecarlo.report.content.findings import FAILING
from montecarlo.report.content.report_card import (
    EXTRAPOLATED_CURVE,
    POWER_CURVE,
    RATE_CURVE,
)
from montecarlo.report.content.tables.rows import with_interval
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Key, Note, Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import (
    BLUE,
    DISTRIBUTION_LOOKS,
    GRID,
    INK,
    MUTED,
    OPEN,
    PAGE,
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    VERDICT_LOOKS,
    VERMILLION,
    Dash,
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

# --- Estimates against exact theory -------------------------------------------------

#: Rows of one point share their draws.  These, one per point, do not.
ONE_EACH = (("score_variance", "none"), ("entropy", "sqrt"))
#: With fewer of these, the others are the same few draws over and over.
FEWEST_ALONE = 10
ALL_LOOK = Look(MUTED, "", label=Label(message("all estimates")))
ALONE_LOOK = Look(BLUE, "s", label=Label(message("those that share no draws")))


def known_rows(measurements: DataFrame) -> DataFrame:
    """Return the estimates that theory knows, with their z-scores in order."""
    rows = measurements[
        measurements["reference"].notna() & measurements["std_error"].gt(0.0)
    ]
    rows = with_interval(rows)  # of rare draws neither the mean nor its error is known
    z = (rows["estimate"] - rows["reference"]) / rows["std_error"]
    return rows.assign(z=z).sort_values("z")


def build_z_scores(measurements: DataFrame, _: DataFrame) -> Picture | None:
    """Build the z-scores of all estimates that theory knows, against normal ones."""
    rows = known_rows(measurements)
    rows = rows[rows["summary"].isin(("mean", "value"))]
    pairs = zip(rows["quantity"], rows["divisor"], strict=True)
    alone = rows[[pair in ONE_EACH for pair in pairs]]
    if len(alone) < FEWEST_ALONE:
        return None
    picture = Picture((1,), (300.0,))
    (panel,) = picture.panels
    plot_z_scores(panel.axes, rows["z"], ALL_LOOK)
    plot_z_scores(panel.axes, alone["z"], ALONE_LOOK)
    limit = 1.05 * max(rows["z"].abs().max(), 3.0)
    panel.axes.plot((-limit, limit), (-limit, limit), color=INK, linewidth=0.8)
    panel.axes.set(xlim=(-limit, limit), ylim=(-limit, limit))
    draw.few_ticks(panel.axes.xaxis)
    draw.few_ticks(panel.axes.yaxis)
    panel.y = Label(message("Distance from the exact value, in standard errors"), "z")
    panel.x = Label(message("normal quantile"), r"\Phi^{-1}")
    names = [
        look.label._replace(symbol=f"N = {len(part)}")
        for part, look in ((rows, ALL_LOOK), (alone, ALONE_LOOK))
    ]
    picture.keys = [Key(names[0], ALL_LOOK, "line"), Key(names[1], ALONE_LOOK)]
    return picture


def plot_z_scores(axes: Axes, z: "Series[float]", look: Look) -> None:
    """Draw ordered z-scores against the quantiles of as many normal ones."""
    normal = ndtri((np.arange(len(z)) + 0.5) / len(z))
    axes.plot(normal, z, linestyle="none" if look.marker else "-", lw=3, **look.mark)


def pick_z_scores(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the root mean square and the largest of all z-scores."""
    z = known_rows(measurements)["z"]
    fact = {"first": float(np.sqrt((z**2).mean())), "second": float(z.abs().max())}
    return fact if len(z) else None


Z_SCORES = FigureSpec(
    "z-scores",
    build_z_scores,
    "estimates against exact theory",
    section="method",
    caption=message(
        "Every estimate that has an exact value, ordered, against what a normal "
        "distribution would give. Estimates of one design point share draws. Line: "
        "perfect agreement."
    ),
    alternative=message(
        "The root mean square of all z-scores is %(first)s, the largest is %(second)s "
        "in absolute value."
    ),
    named=("root_mean_square", "largest"),
    fact=pick_z_scores,
)

# --- The judge's report card --------------------------------------------------------

#: Below and above this a ratio is drawn on the edge.
LEAST, MOST = 0.1, 1000.0
#: Distances of a claim from the truth, in tolerances: farther off all are decided.
SHOWN = (0.5, 1.5)
COLOURS = {"supported": SUPPORTED, "refuted": REFUTED}
DASHES: tuple[Dash, ...] = ((0, (2, 1.5)), "-")


def build_report_card(_: DataFrame, curves: DataFrame) -> Picture | None:
    """Build actual over stated error rates by distribution, and power beside them."""
    rates = of_curve(curves, RATE_CURVE, EXTRAPOLATED_CURVE)
    rates, power = rates[rates["dependence"].eq("none")], of_curve(curves, POWER_CURVE)
    if rates.empty or power.empty:
        return None
    picture = Picture((2,), (150.0,))
    left, right = picture.panels
    for judged, colour in (("judged", INK), ("shown", VERMILLION)):
        of_kind = rates[rates["outcome"].eq(judged)]
        looks = {
            name: replace(look, colour=colour)
            for name, look in DISTRIBUTION_LOOKS.items()
        }
        draw.plot_series(left.axes, of_kind, "distribution_k", looks, _plot_rates)
        picture.keys += draw.keys_of(looks, of_kind["distribution_k"])
    draw.logarithmic(left.axes, x=True, most=4)
    draw.logarithmic(left.axes)
    left.axes.invert_xaxis()
    draw.level(left.axes, 1.0)
    low, high = left.axes.get_ylim()
    left.axes.axhspan(low, ALLOWED, color=GRID, alpha=0.5, linewidth=0)
    left.axes.set_ylim(low, high)
    left.y = Label(message("Errors, times as often as stated"), r"\hat\alpha/\alpha")
    left.x = Label(message("stated rate"), r"\alpha")
    picture.keys += _plot_power(right.axes, power)
    right.y = Label(message("Claims, in per cent"))
    right.x = Label(
        message("distance from the truth, in tolerances"), r"\Delta/\tau", told=True
    )
    return picture


def _plot_rates(axes: Axes, table: DataFrame, look: Look) -> None:
    """Draw how many times as often as stated a distribution's worst intervals miss."""
    table = table.sort_values("x", ascending=False)
    ratio = table["estimate"].clip(LEAST, MOST)
    counted = table["curve"].eq(RATE_CURVE)
    axes.plot(table["x"][counted], ratio[counted], linewidth=1.0, **look.mark)
    (end,) = axes.plot(table["x"].iloc[-2:], ratio.iloc[-2:], color=look.colour)
    end.set(linestyle=(0, (1.5, 1.5)), linewidth=1.0)


def _plot_power(axes: Axes, table: DataFrame) -> list[Key]:
    """Draw shares of claims supported and refuted, by distance from the truth.

    Returns the legend.
    """
    keys = [
        draw.line_key("-", VERDICT_LOOKS[name].label, colour)
        for name, colour in COLOURS.items()
    ]
    replicates = table["n_replicates"].astype(int)
    for n, dash in zip(sorted(set(replicates)), DASHES, strict=False):
        mine = table[replicates.eq(n)].sort_values("x")
        for name, colour in COLOURS.items():
            line = mine[mine["outcome"].eq(name)]
            axes.plot(line["x"], line["estimate"], color=colour, linestyle=dash)
        keys.append(draw.line_key(dash, Label(message("replicates"), str(n))))
    axes.axvline(1.0, color=INK, linewidth=0.8)
    axes.set_xlim(*SHOWN)
    draw.mark_ticks(axes.xaxis, (0.5, 1.0, 1.5), "{:g}")
    draw.percent(axes)
    return keys


def pick_rates(_: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick the worst ratios at the largest and the smallest rate that was counted."""
    judged = curves[curves["curve"].eq(RATE_CURVE) & curves["outcome"].eq("judged")]
    if judged.empty:
        return None
    worst = judged.groupby("x")["estimate"].max().sort_index(ascending=False)
    return {"first": float(worst.iloc[0]), "second": float(worst.iloc[-1])}


REPORT_CARD = FigureSpec(
    "report-card",
    build_report_card,
    "actual error rates of the judge, and its power",
    section="method",
    caption=message(
        "Left: the worst case of each distribution; dotted: extrapolated; shaded: at "
        "most %(allowed)s times; orange: not judged. Right: left of the line the claim "
        "about a variance is true."
    ),
    alternative=message(
        "Of all judged distributions the worst misses %(first)s times as often as "
        "stated at the largest rate counted, and %(second)s times at the smallest."
    ),
    named=("worst_ratio_at_largest_rate", "worst_ratio_at_smallest_rate"),
    fact=pick_rates,
    constants={"allowed": ALLOWED},
)

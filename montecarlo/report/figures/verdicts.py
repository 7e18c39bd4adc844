"""How claims came out and how that was judged.

Verdicts by text; of a few claims, what was measured beside what is claimed; outcomes
over thresholds; z-scores against theory; the judge's report card.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray
from pandas import DataFrame
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


def text_rows(curves: DataFrame) -> DataFrame:
    """Return the rows of curves that hold a text's claim and its verdict."""
    return of_curve(curves, CURVE)


def build_texts(_: DataFrame, curves: DataFrame) -> Picture | None:
    """Build a mark for each claim of each text, claims in columns, worst news first."""
    rows = text_rows(curves)
    if rows.empty:
        return None
    texts = dict(zip(rows["text"], rows["name"], strict=True))
    picture = Picture((1,), (LINE * len(texts),))
    (panel,) = picture.panels
    looks = keep_looks(VERDICT_LOOKS, rows["outcome"])
    for verdict, look in looks.items():
        mine = rows[rows["outcome"].eq(verdict)]
        lines = [list(texts).index(text) for text in mine["text"]]
        mark = look.mark
        panel.axes.plot(mine["x"], lines, linestyle="none", **mark)
    for line, name in enumerate(texts.values()):
        label = Label(words=name, symbol=rf"\mathrm{{{line + 1}}}", told=True)
        panel.notes.append(Note(label, 0.3, line - 0.42))
    panel.axes.set_yticks(range(len(texts)), [""] * len(texts))
    panel.axes.set_ylim(len(texts) - 0.6, -0.75)
    panel.axes.set_xlim(0.0, rows["x"].max() + 1.0)
    panel.axes.spines["left"].set_visible(False)
    panel.axes.tick_params(left=False)
    panel.axes.grid(visible=False, axis="x")
    panel.x = Label(message("number of the claim"), "N")
    different = dict.fromkeys(looks.values())  # some look alike
    picture.keys = [Key(look.label, look) for look in different]
    return picture


def count_failing(_: DataFrame, curves: DataFrame) -> Fact | None:
    """Count claims of all texts together, and those of them that fail."""
    verdicts = text_rows(curves)["outcome"]
    if verdicts.empty:
        return None
    failing = verdicts.isin(FAILING).sum()
    return {"first": float(len(verdicts)), "second": float(failing)}


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
    "supported": Look(SUPPORTED, "o", size=draw.MARK),
    "refuted": Look(REFUTED, "X", size=draw.MARK),
    "undecided": Look(OPEN, "s", size=draw.MARK),
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
    columns = _lines_of(len(parts), CASE_COLUMNS)
    picture = Picture(columns, [100.0] * len(columns), CASE_COLUMNS)
    for panel, mark, rows in zip(
        picture.panels, draw.letters(len(parts)), parts, strict=True
    ):
        plot_cases(panel, rows)
        panel.title = Label(symbol=rf"\mathrm{{{mark}}}")
    outcomes = [name for name in CASE_LOOKS if cases["outcome"].eq(name).any()]
    picture.keys = [
        Key(VERDICT_LOOKS[name].label, CASE_LOOKS[name]) for name in outcomes
    ]
    claimed = Label(message("what is claimed"))
    picture.keys.append(draw.area_key(claimed, UNDECIDED))
    return picture


def _lines_of(count: int, columns: int) -> list[int]:
    """Return how many panels stand in each row: at most so many."""
    return [min(columns, count - at) for at in range(0, count, columns)]


def plot_cases(panel: Panel, rows: DataFrame) -> Axes:
    """Draw cases over d_k, or over n where that alone varies; bars: the claimed."""
    axes = panel.axes
    x = "n_keys" if rows["d_k"].nunique() == 1 < rows["n_keys"].nunique() else "d_k"
    rows = rows.sort_values(x)
    at = rows[x].to_numpy(float)
    shown = rows[["estimate", "low", "high", "least", "most"]].to_numpy(float)
    seen = shown[np.isfinite(shown)]
    if seen.min() > 0.0 and seen.max() >= TALL * seen.min():
        draw.logarithmic(axes, seen.min() / 2.0, seen.max() * 2.0)
    else:
        margin = 0.15 * (seen.max() - seen.min() or abs(seen.max()) or 1.0)
        axes.set_ylim(seen.min() - margin, seen.max() + margin)
        draw.few_ticks(axes.yaxis)
    if at.max() >= WIDE * at.min():
        draw.powers_of_two(axes, at, CASE_COLUMNS)
    else:
        axes.set_xticks(sorted(set(at)), [f"{size:.0f}" for size in sorted(set(at))])
        axes.set_xlim(0.9 * at.min(), 1.1 * at.max())
    bottom, top = axes.get_ylim()
    _, low, high, least, most = np.clip(shown, bottom, top).T  # some have no end
    axes.vlines(at, least, most, color=UNDECIDED, linewidth=9.0, zorder=1.5)
    for outcome in dict.fromkeys(rows["outcome"]):
        mine = rows["outcome"].eq(outcome).to_numpy()
        axes.errorbar(
            at[mine],
            shown[mine, 0],
            draw.bars(shown[mine, 0], low[mine], high[mine]),
            linestyle="none",
            elinewidth=1.2,
            **CASE_LOOKS.get(outcome, Look(INK, "o", size=draw.MARK)).mark,
        )
    panel.x = Label(symbol="n" if x == "n_keys" else "d_k")
    return axes


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
    columns = _lines_of(len(drawn), COLUMNS)
    picture = Picture(columns, [62.0] * len(columns), COLUMNS)
    marks = draw.letters(len(drawn))
    for mark, panel, rows in zip(marks, picture.panels, drawn.values(), strict=True):
        plot_outcomes(panel.axes, rows)
        panel.title = Label(symbol=rf"\mathrm{{{mark}}}")
    for line in picture.rows:
        for panel in line[1:]:
            panel.axes.tick_params(labelleft=False)
    picture.rows[0][0].y = Label(message("Cases, in per cent"))
    picture.panels[-1].x = Label(message("threshold"), r"\tau")
    picture.keys = [
        draw.area_key(VERDICT_LOOKS[name].label, colour) for name, colour in OUTCOMES
    ]
    return picture


def plot_outcomes(axes: Axes, table: DataFrame) -> Axes:
    """Draw shares of cases supported, undecided and refuted over thresholds."""
    shares = of_curve(table, SHARE)
    wide = shares.pivot_table(index="x", columns="outcome", values="estimate")
    supported, refuted = wide["supported"], wide["refuted"]
    edges = (0.0 * supported, supported, 1.0 - refuted, 0.0 * supported + 1.0)
    for (_, colour), low, high in zip(OUTCOMES, edges, edges[1:], strict=False):
        axes.fill_between(
            wide.index, low, high, facecolor=colour, edgecolor=PAGE, linewidth=0.8
        )
    for used in table.loc[table["curve"].eq(USED), "x"]:
        axes.axvline(float(used), color=PAGE, linewidth=3.6)
        axes.axvline(float(used), color=INK, linewidth=1.3)
    axes.set_xlim(wide.index.min(), wide.index.max())
    draw.few_ticks(axes.xaxis, 3)
    draw.percent(axes)
    axes.set_ylim(0.0, 1.0)
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

#: So many z-scores at either end are all drawn; in between, so many evenly spaced.
ENDS, BETWEEN = 25, 160
Scores = NDArray[np.float64]
#: Rows of one point share their draws.  These, one per point, do not.
ONE_EACH = (("score_variance", "none"), ("entropy", "sqrt"))
#: With fewer of these, the others are the same few draws over and over.
FEWEST_ALONE = 10
ALL_LOOK = Look(
    MUTED, "o", label=Label(message("all estimates")), filled=False, size=4.0
)
ALONE_LOOK = Look(
    BLUE, "s", label=Label(message("those that share no draws")), size=4.5
)


def build_z_scores(measurements: DataFrame, _: DataFrame) -> Picture | None:
    """Build the z-scores of all estimates that theory knows, against normal ones."""
    rows = measurements[
        measurements["reference"].notna()
        & measurements["std_error"].gt(0.0)
        & measurements["summary"].isin(("mean", "value"))
    ]
    rows = with_interval(rows)  # of rare draws neither the mean nor its error is known
    if len(rows) < 2 * ENDS or len(_one_each(rows)) < FEWEST_ALONE:
        return None
    picture = Picture((1,), (300.0,))
    (panel,) = picture.panels
    picture.keys = plot_z_scores(panel.axes, rows)
    panel.y = Label(message("Distance from the exact value, in standard errors"), "z")
    panel.x = Label(message("normal quantile"), r"\Phi^{-1}")
    return picture


def plot_z_scores(axes: Axes, table: DataFrame) -> list[Key]:
    """Draw ordered z-scores against normal quantiles, with the line of equality.

    Returns
    -------
    list of Key
        The legend.
    """
    limit, keys = 0.0, []
    for rows, look in ((table, ALL_LOOK), (_one_each(table), ALONE_LOOK)):
        if rows.empty:
            continue
        normal, z = _ordered_scores(rows)
        limit = max(limit, 1.05 * np.abs(z).max(), 1.05 * np.abs(normal).max())
        shown = _thin(normal)
        axes.plot(normal[shown], z[shown], linestyle="none", **look.mark)
        keys.append(Key(look.label._replace(symbol=f"N = {len(rows)}"), look))
    axes.plot((-limit, limit), (-limit, limit), color=MUTED, linewidth=1.1, zorder=1.5)
    axes.set_xlim(-limit, limit)
    axes.set_ylim(-limit, limit)
    draw.few_ticks(axes.xaxis)
    draw.few_ticks(axes.yaxis)
    return keys


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


def card_rows(curves: DataFrame) -> DataFrame:
    """Return the error rates that are drawn: of independent entries."""
    rates = curves["curve"].isin((RATE_CURVE, EXTRAPOLATED_CURVE))
    return curves[rates & curves["dependence"].eq("none")]


def build_report_card(_: DataFrame, curves: DataFrame) -> Picture | None:
    """Build actual over stated error rates by distribution, and power beside them."""
    rates, power = card_rows(curves), of_curve(curves, POWER_CURVE)
    if rates.empty or power.empty:
        return None
    picture = Picture((2,), (150.0,))
    left, right = picture.panels
    for judged, colour in (("judged", INK), ("shown", VERMILLION)):
        of_kind = rates[rates["outcome"].eq(judged)]
        looks = {
            name: replace(look, colour=colour, size=draw.MARK)
            for name, look in DISTRIBUTION_LOOKS.items()
        }
        draw.plot_series(left.axes, of_kind, "distribution_k", looks, _plot_rates)
        picture.keys += draw.keys_of(looks, of_kind["distribution_k"])
    _finish_rates(left.axes)
    left.y = Label(message("Errors, times as often as stated"), r"\hat\alpha/\alpha")
    left.x = Label(message("stated rate"), r"\alpha")
    picture.keys += _plot_power(right.axes, power)
    right.y = Label(message("Claims, in per cent"))
    right.x = Label(
        message("distance from the truth, in tolerances"), r"\Delta/\tau", told=True
    )
    return picture


def _plot_rates(axes: Axes, table: DataFrame, look: Look) -> Axes:
    """Draw how many times as often as stated a distribution's worst intervals miss."""
    table = table.sort_values("x", ascending=False)
    ratio = table["estimate"].clip(LEAST, MOST)
    counted = table["curve"].eq(RATE_CURVE)
    axes.plot(table["x"][counted], ratio[counted], linewidth=1.0, **look.mark)
    axes.plot(
        table["x"].iloc[-2:],
        ratio.iloc[-2:],
        color=look.colour,
        linestyle=(0, (1.5, 1.5)),
        linewidth=1.0,
    )
    return axes


def _finish_rates(axes: Axes) -> None:
    draw.logarithmic(axes, x=True, most=4)
    draw.logarithmic(axes)
    axes.invert_xaxis()
    draw.level(axes, 1.0)
    low, _ = axes.get_ylim()
    axes.axhspan(low, ALLOWED, color=GRID, alpha=0.5, linewidth=0)
    axes.set_ylim(bottom=low)


def _plot_power(axes: Axes, table: DataFrame) -> list[Key]:
    """Draw shares of claims supported and refuted, by distance from the truth.

    Returns the legend.
    """
    replicates, outcomes = table["n_replicates"].astype(int), table["outcome"]
    keys = [
        draw.line_key("-", VERDICT_LOOKS[name].label, colour)
        for name, colour in COLOURS.items()
    ]
    for n, dash in zip(sorted(set(replicates)), DASHES, strict=False):
        for name, colour in COLOURS.items():
            line = table[replicates.eq(n) & outcomes.eq(name)].sort_values("x")
            axes.plot(line["x"], line["estimate"], color=colour, linestyle=dash)
        keys.append(draw.line_key(dash, Label(message("replicates"), str(n))))
    axes.axvline(1.0, color=INK, linewidth=0.8)
    axes.set_xlim(*SHOWN)
    axes.set_xticks((0.5, 1.0, 1.5), ("0.5", "1", "1.5"))
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

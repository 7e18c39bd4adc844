"""Figures of verdicts: counts by text, and the checks of selected claims."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from pandas import DataFrame

from montecarlo.claims.checks import Words
from montecarlo.claims.outcomes import CheckOutcome, ClaimOutcome, InterpretationOutcome
from montecarlo.report.content.curves import CurveTables
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Key, Note, Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import (
    ASSUMED,
    CLAIMED,
    FAILS,
    HOLDS,
    OPEN,
    PAGE,
    PARTLY,
    VAGUE,
    Look,
)
from montecarlo.report.figures.specs import Fact, FigureSpec

# --- Verdicts by text ---------------------------------------------------------------

#: Name of the table that `with_verdicts` adds to the curves.
CURVE = "verdict"
#: Height of a line in points, and height of a bar as a part of it.
LINE, BAR = 29.0, 0.45
ROW = 0.42  # distance of two rows of labels, in lines
WITHIN = draw.WITHIN - 2.0 * draw.RIGHT  # length of a bar in points
HALF = 0.5
#: Verdicts in the order of a bar, with their words and colours on pages.
PARTS = {
    "holds": (Label(message("right")), HOLDS),
    "partly": (Label(message("partly")), PARTLY),
    "vague": (Label(message("vague")), VAGUE),
    "open": (Label(message("undecided")), OPEN),
    "assumed": (Label(message("assumption")), ASSUMED),
    "fails": (Label(message("wrong")), FAILS),
}
#: Largest share of claims that the headline calls few, and tolerance of "about half".
FEW = 0.1
ANSWERED = message(
    "Few claims are wrong; in each text about half are partly right or vague"
)
ASKED = message("How the claims of each text fared")


def with_verdicts(
    curves: CurveTables,
    claims: Sequence[ClaimOutcome],
    names: Mapping[str, Words] | None = None,
) -> CurveTables:
    """Return the curves with a further table: the verdict of each claim in each text.

    The table `CURVE` has a line for each text and claim that it makes, sorted by
    ``text``.  Columns are ``text`` (key), ``claim`` (its place in ``claims``, from 1),
    ``outcome`` (verdict for that text) and ``name`` (from ``names``, otherwise a letter
    and the key: ``(a) key``).
    """
    rows = {
        (source.text, number, str(claim.texts[source.text].verdict))
        for number, claim in enumerate(claims, start=1)
        for source in claim.sources
    }
    added = DataFrame(sorted(rows), columns=["text", "claim", "outcome"])
    keys = dict.fromkeys(added["text"])
    marks = dict(zip(keys, draw.letters(len(keys)), strict=True))
    called = {key: str((names or {}).get(key, f"{marks[key]} {key}")) for key in keys}
    return {**curves, CURVE: added.assign(name=added["text"].map(called))}


def count_parts(curves: CurveTables) -> DataFrame:
    """Return the number of claims by text (rows) and verdict (columns `PARTS`).

    The index is the name of the text.  The first text is one with the most kinds of
    verdicts, since its bar has the labels.
    """
    rows = curves[CURVE]
    if rows.empty:  # one's own claims are of no text
        return DataFrame(columns=list(PARTS))
    counts = pd.crosstab([rows["text"], rows["name"]], rows["outcome"])
    counts = counts.reindex(columns=list(PARTS), fill_value=0).droplevel("text")
    kinds = counts.gt(0).sum(axis=1).sort_values(ascending=False, kind="stable")
    return counts.loc[kinds.index]


def build_texts(_: DataFrame, curves: CurveTables) -> Picture | None:
    """Return a figure with a stacked bar for each text: shares of claims by verdict.

    The headline is `ANSWERED` if both are true, else `ASKED`: some claims are wrong,
    but at most a share `FEW` of those of all texts together; and in each text the share
    of partly right or vague claims differs from `HALF` by at most `FEW`.  None if there
    are no claims.
    """
    counts = count_parts(curves)
    if counts.empty:
        return None
    shares = counts.div(counts.sum(axis=1), axis=0)
    middle = shares[["partly", "vague"]].sum(axis=1)
    wrong = counts["fails"].sum() / counts.to_numpy().sum()
    answered = middle.sub(HALF).abs().max() <= FEW and 0.0 < wrong <= FEW
    picture = Picture((1,), (LINE * (len(counts) + HALF),))
    picture.headline = Label(ANSWERED if answered else ASKED)
    (panel,), lines = picture.panels, range(len(counts))
    starts = shares.cumsum(axis=1) - shares
    middles = starts + HALF * shares
    there = [part for part in PARTS if counts[part].any()]
    places = place_words(starts.iloc[0], there)
    above = max(row for _, row in places.values())
    for part in there:
        (label, colour), (x, row) = PARTS[part], places[part]
        panel.axes.barh(lines, shares[part], BAR, starts[part], color=colour)
        note = Note(label, x / WITHIN, -0.45 - ROW * row, colour=colour)
        panel.notes.append(note)
        for line, at, count in zip(lines, middles[part], counts[part], strict=True):
            note = Note(Label(symbol=str(count)), at, line, "middle", colour=PAGE)
            panel.notes += [note] if count else []
    for line, text in enumerate(counts.index):
        up = 0.52 if line else 0.9 + ROW * above  # above the words of verdicts
        panel.notes.append(Note(Label(text), 0.0, line - up, dx=-draw.RIGHT))
    top = -1.2 - ROW * above
    panel.axes.set(xlim=(0.0, 1.0), ylim=(len(counts) - 0.7, top), xticks=(), yticks=())
    panel.axes.spines[:].set_visible(False)
    return picture


def place_words(
    starts: "pd.Series[float]", parts: Sequence[str]
) -> dict[str, tuple[float, int]]:
    """Return the place of each verdict's label: verdict -> (x in points, row).

    All labels are in row 0 if they fit into it.  Otherwise every second one is in row
    1.  ``starts`` says where the part of a verdict starts in a bar, as a share of its
    length.  ``parts`` are the verdicts in order.
    """
    for rows in ([parts], [parts[::2], parts[1::2]]):
        places: dict[str, tuple[float, int]] = {}
        for row, some in enumerate(rows):
            labels = [PARTS[part][0] for part in some]
            wanted = [WITHIN * float(starts[part]) for part in some]
            beside = draw.spread_labels(wanted, labels, WITHIN)
            places |= {p: (x, row) for p, x in zip(some, beside, strict=True)}
        if min(x for x, _ in places.values()) >= 0.0:
            break
    return places


def count_claims(_: DataFrame, curves: CurveTables) -> Fact | None:
    """Return the numbers of the caption by name: claims, in all and by verdict.

    ``first`` is the number of all claims, and ``second`` of those that are wrong.
    Others have the name of the verdict, such as ``holds``.  None if there are no
    claims.
    """
    totals = count_parts(curves).sum()
    fact = {"first": float(totals.sum()), "second": float(totals["fails"])}
    return {**fact, **totals.drop("fails").astype(float)} if fact["first"] else None


TEXTS = FigureSpec(
    "texts",
    build_texts,
    shows="verdicts by text",
    section="record",
    on_report=True,
    caption=message(
        "Partly: nearly, on a condition, or in one part. Vague: a word without a "
        "measure in its text."
    ),
    alternative=message(
        "The texts make %(first)s claims between them, each counted once for each "
        "text: %(holds)s are right, %(partly)s partly, %(vague)s vague, %(open)s "
        "undecided, %(assumed)s assumptions, and %(second)s wrong."
    ),
    fact=count_claims,
)

# --- Measured beside claimed, of a few claims ---------------------------------------

#: Most panels: those of the first checks of a file.
MOST_PANELS = 8
CASE_COLUMNS = 2
#: Ratios of largest to smallest value from which the x and the y axis are logarithmic.
WIDE, TALL = 4.0, 30.0
#: Looks of estimates by the outcome of their case.
CASE_LOOKS = {
    "supported": Look(HOLDS, "o", label=Label(message("supported"))),
    "refuted": Look(FAILS, "X", label=Label(message("refuted"))),
    "undecided": Look(OPEN, "o", label=Label(message("undecided")), filled=False),
}


def drawn_checks(
    claims: Iterable[ClaimOutcome],
) -> list[tuple[ClaimOutcome, InterpretationOutcome, CheckOutcome]]:
    """Return (claim, interpretation, check) for each panel of the figure.

    They are the first `MOST_PANELS` checks that have an estimate at some d_k.  Checks
    of series over d_k, such as slopes, have no panel.
    """
    found = [
        (claim, interpretation, check)
        for claim in claims
        for interpretation in claim.interpretations
        for check in interpretation.checks
        if not check.along_d_k
        and any(case.estimate is not None and case.d_k for case in check.cases)
    ]
    return found[:MOST_PANELS]


def case_rows(claims: Iterable[ClaimOutcome]) -> DataFrame:
    """Return the cases of the figure of checks as a table with a line for each case.

    Columns are panel (index of the panel), d_k, n_keys, estimate, low and high (ends of
    the simultaneous interval), least and most (ends of the equivalence region), and
    outcome.  Open ends are infinite.  Cases without an estimate are left out; without
    any case the table has no columns.
    """
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


def build_cases(cases: DataFrame, _: CurveTables) -> Picture | None:
    """Return the figure of estimates, intervals and equivalence regions of checks.

    It has a panel for each check.  None if the tables lack the data.
    """
    if cases.empty:
        return None
    parts = [rows for _, rows in cases.groupby("panel", sort=True)]
    lines = [min(CASE_COLUMNS, len(parts) - at) for at in range(0, len(parts), 2)]
    picture = Picture(lines, [100.0] * len(lines), CASE_COLUMNS)
    marks = draw.letters(len(parts))
    for panel, rows, mark in zip(picture.panels, parts, marks, strict=True):
        panel.title = Label(symbol=rf"\mathrm{{{mark}}}")
        plot_cases(panel, rows)
    picture.keys = draw.keys_of(CASE_LOOKS, cases["outcome"])
    claimed = Look(CLAIMED, "", label=Label(message("what is claimed")))
    picture.keys.append(Key(claimed.label, claimed, "area"))
    return picture


def plot_cases(panel: Panel, rows: DataFrame) -> None:
    """Draw the cases of a check over d_k, or over n if only n varies.

    Bars show the equivalence region.
    """
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
    shown = np.clip(shown, *axes.get_ylim())  # open ends reach to the edge
    axes.vlines(at, shown[:, 3], shown[:, 4], color=CLAIMED, linewidth=9, zorder=1.5)
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
    shows="measured beside claimed, of the claims that `report --only CLAIM` chose",
    section="answer",
    on_report=True,
    caption=message(
        "What was measured, with simultaneous intervals, beside what is claimed."
    ),
    alternative=message("Each estimate with its interval beside what is claimed."),
)

"""Two numbers for each figure: what its alternative text names."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from montecarlo.claims.thresholds import USED
from montecarlo.report.content.report_card import RATE_CURVE
from montecarlo.report.content.tables.rows import (
    FEWEST_POINTS,
    gaussian_rows,
    largest_scores,
    nearest,
    saturation_cells,
    with_interval,
)
from montecarlo.report.content.tables.topics import N_KEYS
from montecarlo.report.content.views import ClaimView, Findings, InterpretationView
from montecarlo.report.figures.captions.figure_facts import (
    attention_fact,
    audit_fact,
    entropy_fact,
    formats_fact,
    planted_fact,
    score_distribution_fact,
    texts_fact,
)
from montecarlo.report.figures.judging.judgement import drawn_interpretations
from montecarlo.report.figures.weights import RANK_D_K

#: The largest d_k that a domain reaches; beyond it a grid has edges only.
MOST_D_K = 1024

Fact = Mapping[str, float]


def figure_facts(measurements: pd.DataFrame, curves: pd.DataFrame) -> dict[str, Fact]:
    """Pick the numbers of every figure that the results have data for.

    Parameters
    ----------
    measurements, curves : DataFrame
        measurements.csv and curves.csv.

    Returns
    -------
    dict
        Figure id to ``first``, ``second``, their errors, and ``d_k`` and ``n``.
    """
    gaussian = gaussian_rows(measurements)
    gaussian = gaussian[gaussian["d_k"] <= MOST_D_K]
    rows = gaussian[gaussian["n_keys"].notna()]
    points = rows.groupby("n_keys")["d_k"].transform("nunique")
    rows = rows[points >= FEWEST_POINTS]  # others have no panel
    rows = rows[rows["n_keys"] == nearest(rows["n_keys"], N_KEYS)]
    pairs = gaussian[gaussian["n_keys"].isna()]
    found = {
        "attention": attention_fact(measurements, curves),
        "variance": _two(
            pairs,
            ("score_variance", "value", "none"),
            ("score_variance", "value", "sqrt"),
        ),
        "effective-keys": _two(
            rows,
            ("effective_keys", "mean", "none"),
            ("effective_keys", "mean", "sqrt"),
            per_key=True,
        ),
        "weight-max": _two(
            rows, ("weight_max", "median", "none"), ("weight_max", "median", "sqrt")
        ),
        "saturation": _saturation(measurements),
        "largest-score": _largest_score(measurements),
        "report-card": _report_card(curves),
        "gradients": _two(
            rows,
            ("jacobian_frobenius", "mean", "none"),
            ("jacobian_frobenius", "median", "none"),
        ),
        "gradient-ratio": _two(
            rows,
            ("jacobian_trace", "mean", "none/sqrt"),
            ("gradient_query", "mean", "none/sqrt"),
        ),
        "weights-by-rank": _first_rank(curves),
        "score-distribution": score_distribution_fact(gaussian),
        "entropy": entropy_fact(measurements, MOST_D_K),
        "planted": planted_fact(measurements),
        "formats": formats_fact(measurements),
        "audit": audit_fact(measurements),
        "texts": texts_fact(curves),
        "thresholds": _threshold(curves),
        "z-scores": _z_scores(measurements),
    }
    return {name: fact for name, fact in found.items() if fact is not None}


def _two(
    table: pd.DataFrame,
    first: tuple[str, str, str],
    second: tuple[str, str, str],
    *,
    per_key: bool = False,
) -> Fact | None:
    """Pick two rows at the largest d_k that has both."""
    picked = [
        table[
            (table["quantity"] == quantity)
            & (table["summary"] == summary)
            & (table["divisor"] == divisor)
        ].set_index("d_k")
        for quantity, summary, divisor in (first, second)
    ]
    common = picked[0].index.intersection(picked[1].index)
    if common.empty:
        return None
    d_k = common.max()
    one, two = picked[0].loc[d_k], picked[1].loc[d_k]
    n = one["n_keys"]
    scale = 1.0 / n if per_key else 1.0
    return {
        "d_k": float(d_k),
        "n": 0.0 if pd.isna(n) else float(n),
        "first": float(one["estimate"] * scale),
        "first_error": float(one["std_error"] * scale),
        "second": float(two["estimate"] * scale),
        "second_error": float(two["std_error"] * scale),
    }


def _first_rank(curves: pd.DataFrame) -> Fact | None:
    plain = gaussian_rows(curves)
    first = plain[
        (plain["curve"] == "weight_by_rank")
        & (plain["x"] == 1.0)
        & plain["d_k"].isin(RANK_D_K)
    ]
    first = first[first["n_keys"] == nearest(first["n_keys"], N_KEYS)]
    first = first[first["d_k"] == first["d_k"].max()].set_index("divisor")
    if not {"none", "sqrt"} <= set(first.index):
        return None
    return {
        "d_k": float(first["d_k"].iloc[0]),
        "first": float(first.loc["none", "estimate"]),
        "first_error": float(first.loc["none", "std_error"]),
        "second": float(first.loc["sqrt", "estimate"]),
        "second_error": float(first.loc["sqrt", "std_error"]),
    }


def _report_card(curves: pd.DataFrame) -> Fact | None:
    """Pick the worst ratios at the largest and the smallest rate that was counted."""
    judged = curves[curves["curve"].eq(RATE_CURVE) & curves["outcome"].eq("judged")]
    if judged.empty:
        return None
    worst = judged.groupby("x")["estimate"].max().sort_index(ascending=False)
    return {"first": float(worst.iloc[0]), "second": float(worst.iloc[-1])}


def _saturation(measurements: pd.DataFrame) -> Fact | None:
    """Pick the ends of an unscaled line of the map, in percent as it shows them."""
    cases = saturation_cells(measurements)
    cases = cases[(cases["divisor"] == "none") & (cases["d_k"] <= MOST_D_K)]
    line = cases[cases["n_keys"] == nearest(cases["n_keys"], N_KEYS)].sort_values("d_k")
    if line.empty:
        return None
    first, last = line.iloc[0], line.iloc[-1]
    return {
        "n": float(first["n_keys"]),
        "low": float(first["d_k"]),
        "d_k": float(last["d_k"]),
        "first": float(100.0 * first["estimate"]),
        "first_error": float(100.0 * first["std_error"]),
        "second": float(100.0 * last["estimate"]),
        "second_error": float(100.0 * last["std_error"]),
    }


def _largest_score(measurements: pd.DataFrame) -> Fact | None:
    """Pick the largest score and the asymptotic formula for it at one n."""
    rows = largest_scores(measurements)
    rows = rows[rows["n_keys"] == nearest(rows["n_keys"], N_KEYS)]
    if rows.empty:
        return None
    (row,) = rows.to_dict("records")
    return {
        "n": float(row["n_keys"]),
        "d_k": float(row["d_k"]),
        "first": float(row["estimate"]),
        "first_error": float(row["std_error"]),
        "second": float(np.sqrt(2.0 * np.log(row["n_keys"]))),
        "second_error": float(row["std_error"]),
    }


def _threshold(curves: pd.DataFrame) -> Fact | None:
    """Pick the shares at the threshold used, of the first panel."""
    for rows in drawn_interpretations(curves).values():
        x = rows.loc[rows["curve"].eq(USED), "x"].iloc[0]
        shares = []
        for outcome in ("supported", "refuted"):
            curve = rows[rows["outcome"].eq(outcome)]
            shares.append(float(np.interp(x, curve["x"], curve["estimate"])))
        return {"first": shares[0], "second": shares[1]}
    return None


def _z_scores(measurements: pd.DataFrame) -> Fact | None:
    known = measurements.dropna(subset=["reference", "std_error"])
    known = with_interval(known[known["std_error"] > 0.0])
    if known.empty:
        return None
    z = (known["estimate"] - known["reference"]) / known["std_error"]
    return {
        "first": float(np.sqrt((z**2).mean())),
        "second": float(z.abs().max()),
    }


def threshold_panels(
    curves: pd.DataFrame, findings: Findings
) -> list[tuple[ClaimView, InterpretationView]]:
    """Return the claim and interpretation of each panel of the figure of thresholds.

    Parameters
    ----------
    curves : DataFrame
        curves.csv, in whose order the panels are drawn.
    findings : Findings
    """
    claims = {claim.id: claim for claim in findings.claims}
    panels = []
    for claim_id, interpretation_id in drawn_interpretations(curves):
        claim = claims.get(claim_id)
        if claim is not None:
            panels += [
                (claim, r) for r in claim.interpretations if r.id == interpretation_id
            ]
    return panels

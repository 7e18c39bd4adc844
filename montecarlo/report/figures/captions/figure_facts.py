"""Two numbers for each figure that shows more than one quantity, or none of a row."""

from collections.abc import Mapping

import pandas as pd

from montecarlo.report.content.tables.rows import entropy_cells, nearest, with_interval
from montecarlo.report.content.tables.topics import N_KEYS, audit_table
from montecarlo.report.figures.attention import example_weights, saturated_rows
from montecarlo.report.figures.judging.texts import text_rows
from montecarlo.report.figures.planted import planted_rows

Fact = Mapping[str, float]
FAILING = ("refuted", "conditional")
#: What alternative texts speak of, where the grid has it.
COMMON_D_K = 64
#: The share of saturated rows is told at this d_k, or one near it.
SHARE_D_K = 64


def pair(first: pd.DataFrame, second: pd.DataFrame) -> dict[str, float]:
    """Return two tables of one row each as a fact."""
    fact = {}
    for name, row in (("first", first), ("second", second)):
        fact[name] = float(row["estimate"].iloc[0])
        fact[f"{name}_error"] = float(row["std_error"].iloc[0])
    return fact


def attention_fact(measurements: pd.DataFrame, curves: pd.DataFrame) -> Fact | None:
    """Average the largest weights of the rows shown; pick a share of saturated rows."""
    largest = [weights.max(axis=1) for _, _, weights in example_weights(curves)]
    rows = saturated_rows(measurements)
    rows = rows[rows["divisor"].eq("none")]
    rows = rows[rows["n_keys"].eq(nearest(rows["n_keys"], N_KEYS) or 0)]
    rows = rows[rows["d_k"].eq(nearest(rows["d_k"], SHARE_D_K) or 0)]
    if len(largest) < 2 or rows.empty:
        return None
    return {
        "first": float(100.0 * largest[0].mean()),
        "second": float(100.0 * largest[1].mean()),
        "d_k": float(rows["d_k"].iloc[0]),
        "n": float(rows["n_keys"].iloc[0]),
        "share": float(100.0 * rows["estimate"].iloc[0]),
        "share_error": float(100.0 * rows["std_error"].iloc[0]),
    }


def score_distribution_fact(gaussian: pd.DataFrame) -> Fact | None:
    """Pick the gap from the normal distribution at the ends of the grid."""
    rows = gaussian[gaussian["quantity"].eq("score_distribution_gap")]
    rows = with_interval(rows).sort_values("d_k")
    if rows["d_k"].nunique() < 2:
        return None
    sizes = {"low": float(rows["d_k"].min()), "d_k": float(rows["d_k"].max())}
    return {**pair(rows.iloc[:1], rows.iloc[-1:]), **sizes}


def entropy_fact(measurements: pd.DataFrame, most_d_k: int) -> Fact | None:
    """Pick the ends of an unscaled line of the map, in percent of ln n."""
    cases = entropy_cells(measurements)
    cases = cases[cases["divisor"].eq("none") & cases["d_k"].le(most_d_k)]
    line = cases[cases["n_keys"].eq(nearest(cases["n_keys"], N_KEYS) or 0)]
    if line.empty:
        return None
    line = line.sort_values("d_k")
    line = line.assign(
        estimate=100.0 * line["estimate"], std_error=100.0 * line["std_error"]
    )
    return {
        **pair(line.iloc[:1], line.iloc[-1:]),
        "n": float(line["n_keys"].iloc[0]),
        "low": float(line["d_k"].min()),
        "d_k": float(line["d_k"].max()),
    }


def planted_fact(measurements: pd.DataFrame) -> Fact | None:
    """Pick the weight of the planted key under two divisors, at a common d_k."""
    rows = planted_rows(measurements)
    rows = rows[rows["quantity"].eq("planted_weight")]
    rows = rows[rows["alignment"].eq(rows["alignment"].max())]
    rows = rows[rows["d_k"].eq(nearest(rows["d_k"], COMMON_D_K) or 0)]
    root, linear = (rows[rows["divisor"].eq(name)] for name in ("sqrt", "linear"))
    if root.empty or linear.empty:
        return None
    size, rho = (float(rows[name].iloc[0]) for name in ("d_k", "alignment"))
    return {**pair(root, linear), "d_k": size, "rho": rho}


def formats_fact(measurements: pd.DataFrame) -> Fact | None:
    """Pick overflow probabilities of two formats at the smallest d_k they share."""
    rows = measurements[measurements["quantity"].eq("overflow_probability")]
    halves, singles = (
        rows[rows["number_format"].eq(name)] for name in ("float16", "float32")
    )
    common = set(halves["d_k"]) & set(singles["d_k"])
    if not common:
        return None
    d_k = min(common)
    halves, singles = (one[one["d_k"].eq(d_k)] for one in (halves, singles))
    return {**pair(halves, singles), "d_k": float(d_k)}


def audit_fact(measurements: pd.DataFrame) -> Fact | None:
    """Pick the smallest and the largest variance of scaled scores."""
    _, scores = audit_table(measurements)
    return None if scores.empty else pair(scores.iloc[:1], scores.iloc[-1:])


def texts_fact(curves: pd.DataFrame) -> Fact | None:
    """Count claims of all texts together, and those of them that fail."""
    verdicts = text_rows(curves)["outcome"]
    if verdicts.empty:
        return None
    return {
        "first": float(len(verdicts)),
        "second": float(verdicts.isin(FAILING).sum()),
    }

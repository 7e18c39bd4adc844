"""Expectations over the rows of a mask, against every row asked for and rows drawn."""

import math

import numpy as np
import pytest

from montecarlo import expected_row
from montecarlo.sampling.design_points import parse_point
from montecarlo.theory.references import reference

#: Values of a row of one key; of others 0.
ALONE = {"inverse_participation": 1.0, "weight_max": 1.0, "biased_weight": 1.0}
PLAIN = {"std": 1.5}


@pytest.mark.parametrize(
    ("mask", "width", "row"),
    [
        *((f"window({width})", width, PLAIN) for width in (1, 2, 40, 99)),
        ("causal", 100, PLAIN),
        ("causal", 100, {"std": 8.0, "bias": 4.0}),
        pytest.param("causal", 100, {"d_k": 16}, marks=pytest.mark.slow),
    ],
)
def test_a_mask_is_the_mean_over_its_lengths(mask, width, row):
    """Short rows first, then as many of one length as are left; interpolated between
    few lengths, or every one asked for.
    """
    found = expected_row(100, **row, mask=mask)
    of_length = {n: expected_row(n, **row) for n in range(2, width + 1)}
    alone = {**ALONE, "log_partition": row.get("bias", 0.0)}
    for name, one in found.items():
        lengths = [min(i, width) for i in range(1, 101)]
        values = [
            alone.get(name, 0.0) if n == 1 else of_length[n][name].value
            for n in lengths
        ]
        assert one.value == pytest.approx(np.mean(values), rel=1e-9, abs=1e-15)
        assert (0.0 < one.error <= 1e-9 * one.value) or width == 1


def test_full_rows_are_those_without_a_mask():
    """The same numbers; a causal row of a window that holds all, too."""
    plain, full = expected_row(8, std=1.0), expected_row(8, std=1.0, mask="full")
    assert full == plain
    wide, causal = (
        expected_row(8, std=1.0, mask=mask) for mask in ("window(8)", "causal")
    )
    assert wide == causal != plain


#: Of normal means: one in 10**6 is farther off by chance; eight are looked at.
FAR, REPLICATES = 4.9, 30_000


@pytest.mark.parametrize("mask", ["causal", "window(3)"])
def test_references_against_rows_drawn(mask):
    """Rows of twelve keys, by their definitions: means, the first and the last."""
    n, d_k, c = 12, 4, 2.0
    rng = np.random.default_rng(11)
    q, k = rng.standard_normal((2, REPLICATES, n, d_k))
    e = np.exp(np.einsum("rid,rjd->rij", q, k) / c)
    for i in range(n):
        for j in range(n):
            if j > i or (mask != "causal" and j <= i - 3):
                e[:, i, j] = 0.0
    p = e / e.sum(axis=2, keepdims=True)
    rows = {
        "entropy": -(p * np.log(np.where(p > 0.0, p, 1.0))).sum(axis=2),
        "output_variance": (p**2).sum(axis=2),
        "weight_max": p.max(axis=2),
        "log_partition": np.log(e.sum(axis=2)),
    }
    point = parse_point("gaussian", "gaussian", d_k, n, mask=mask)
    for name, values in rows.items():
        for summary, found in (("mean", values.mean(axis=1)), ("last", values[:, -1])):
            exact = reference(name, point, "sqrt", summary)
            error = found.std(ddof=1) / math.sqrt(REPLICATES)
            assert abs(found.mean() - exact.value) < FAR * error
    variance = rows["output_variance"].mean()
    std = reference("output_std", point, "sqrt", "mean")
    assert std.value == pytest.approx(math.sqrt(variance), rel=0.01)
    first = {name: reference(name, point, "none", "first") for name in rows}
    assert {name: one and one.value for name, one in first.items()} == {
        "entropy": 0.0,
        "output_variance": 1.0,
        "weight_max": 1.0,
        "log_partition": None,
    }
    row_variance = reference("score_row_variance", point, "sqrt", "mean")
    assert row_variance.value == pytest.approx(11 / 12)


def test_a_divisor_with_n_is_that_of_all_keys():
    """Also of the last row, that sees fewer."""
    point = parse_point("gaussian", "gaussian", 4, 16, mask="window(5)")
    found = reference("entropy", point, "sqrt(d_k)*ln(n)", "last")
    row = expected_row(5, d_k=4, divisor=2.0 * math.log(16))
    assert found == row["entropy"]


def test_what_is_not_known_of_a_mask():
    """Shares and quantiles over rows of different lengths."""
    causal = parse_point("gaussian", "gaussian", 4, 8, mask="causal")
    for quantity, summary in (("saturated", "mean"), ("weight_max", "median")):
        assert reference(quantity, causal, "none", summary) is None
        full = parse_point("gaussian", "gaussian", 4, 8, mask="full")
        plain = parse_point("gaussian", "gaussian", 4, 8)
        known = reference(quantity, plain, "none", summary)
        found = reference(quantity, full, "none", summary)
        assert (found is None) == (known is None)
        assert known is None or found.value == pytest.approx(known.value, rel=1e-9)

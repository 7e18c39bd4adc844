"""Simulated values: where the table has them, and that they are those of samples."""

from dataclasses import replace

import numpy as np
import pytest

from montecarlo.attention.masks import parse_mask
from montecarlo.sampling.design_points import parse_point
from montecarlo.theory.simulated_rows import simulated_value

POINT = parse_point("gaussian", "gaussian", 64, 128)
MEDIAN = "gradient_query_undivided", "median"


def value(quantity, summary, divisor, point=POINT):
    """Return the value, or None."""
    found = simulated_value(quantity, point, divisor, summary)
    return found and found.value


def test_ratios_and_divisors():
    """A ratio is of two values, and an undivided gradient is one times its divisor."""
    none, sqrt = (value(*MEDIAN, divisor) for divisor in ("none", "sqrt"))
    assert value(*MEDIAN, "none/sqrt") == pytest.approx(none / sqrt)
    assert value("gradient_query", "median", "sqrt") == pytest.approx(sqrt / 8.0)
    ratio = value("gradient_query", "median", "none/sqrt")
    assert ratio == pytest.approx(8.0 * none / sqrt)
    assert simulated_value(MEDIAN[0], POINT, "none/sqrt", "median").error == (
        pytest.approx(0.003 * 2.0**0.5 * none / sqrt)
    )


@pytest.mark.parametrize(
    "point",
    [
        parse_point("gaussian", "gaussian", 64),
        parse_point("gaussian", "gaussian", 63, 128),
        parse_point("gaussian", "gaussian", 64, 127),
        parse_point("laplace", "gaussian", 64, 128),
        parse_point("gaussian", "gaussian(std=2.0)", 64, 128),
        parse_point("gaussian", "gaussian", 64, 128, "planted(0.5)"),
        replace(POINT, mask=parse_mask("causal")),
    ],
    ids=lambda point: point.name,
)
def test_no_value_is_known(point):
    """The table is of independent standard normal entries, without a mask."""
    assert value(*MEDIAN, "sqrt", point) is None


def test_no_other_summary_is_known():
    """Nor another divisor."""
    assert value(MEDIAN[0], "mean", "sqrt") is None
    assert value("effective_keys", "median", "sqrt") is None
    assert value(*MEDIAN, "d_k^0.6") is None


def test_against_rows_drawn():
    """Two columns by their definitions; one in 10**6 is farther off by chance."""
    rng = np.random.default_rng(3)
    keys, passed = [], []
    for _ in range(200):
        q, k = rng.standard_normal((16, 64)), rng.standard_normal((128, 64))
        scores = q @ k.T / 8.0
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        keys.append(np.exp(-(p * np.log(p)).sum(axis=1)).mean())
        v = rng.standard_normal(p.shape)
        jv = p * (v - (p * v).sum(axis=1, keepdims=True))
        passed.append(np.linalg.norm(jv @ k, axis=1))
    mean, error = np.mean(keys), np.std(keys, ddof=1) / 200**0.5
    known = simulated_value("effective_keys", POINT, "sqrt", "mean")
    assert abs(mean - known.value) < 4.9 * np.hypot(error, known.error)
    below = np.mean([np.mean(rows <= value(*MEDIAN, "sqrt")) for rows in passed])
    # half of 3200 rows, and 0.3 % of the median, where their density is about 1.5
    assert abs(below - 0.5) < 4.9 * np.hypot(0.5 / 3200**0.5, 0.005)

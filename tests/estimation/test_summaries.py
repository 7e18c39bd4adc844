"""Estimates of a point: every row of the table, from the samples and no more."""

import math

import pytest

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.quantities import (
    PAIR_QUANTITIES,
    QUANTITIES,
    ROW_QUANTITIES,
    range_of,
)
from montecarlo.estimation.summaries import RowKey, columns_of, every_key, has_interval
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.replicates import part_column
from tests.samples import estimate_alone, every_column, sample_all, summarise

ALL = tuple(DIVISORS)
N = 24
PAIRS = parse_point("gaussian(mean=0.5)", "gaussian", 16)
ROWS = parse_point("gaussian", "gaussian", 16, 8)
HEAVY = parse_point("student_t3", "student_t3", 4, 8)


def summaries_of(point, divisors=ALL):
    """The estimates of a few replicates."""
    batch = sample_all(point, 1, 0, N, divisors)
    return summarise(point, batch, divisors)


@pytest.mark.parametrize("point", [PAIRS, ROWS, HEAVY], ids=lambda c: c.name)
def test_every_row_has_an_estimate(point):
    """Once, from all replicates, or from those that have such rows."""
    summaries = summaries_of(point)
    keys = list(every_key(point, ALL))

    assert len(set(keys)) == len(keys)
    for key in keys:
        estimate = summaries.estimate(key)
        assert summaries.estimate(key) is estimate
        if key.quantity in ROW_QUANTITIES and ROW_QUANTITIES[key.quantity].given:
            column = (key.divisor, part_column(key.quantity, "rows"))
            index = every_column(point, ALL).means.index(column)
            filled = (summaries.samples.means[:, index] > 0.0).sum()
            assert math.isfinite(estimate.value) is bool(filled > 10), key
            assert estimate.n_replicates == (filled if filled > 10 else N)
            continue
        assert math.isfinite(estimate.value), key
        assert estimate.n_replicates == N
        assert math.isnan(estimate.std_error) != has_interval(point, key.quantity)
        heavy = point is HEAVY and key.quantity in {"weight_max", "score_row_variance"}
        assert not (heavy and has_interval(point, key.quantity))


@pytest.mark.parametrize("quantity", PAIR_QUANTITIES)
def test_quantity_of_pairs_is_the_same_alone(quantity):
    """Asked for alone, it has the digits that it has among all, of fewer columns."""
    key = RowKey("none", quantity, "value")
    alone, among = estimate_alone(PAIRS, key, 1, N), summaries_of(PAIRS).estimate(key)
    assert (alone.value, alone.std_error) == (among.value, among.std_error)
    assert len(columns_of(PAIRS, [key]).means) < 7


EXTREME = [
    parse_point("gaussian", "gaussian", d_k, n_keys, dependence, formats=True)
    for d_k, n_keys in ((1, 2), (16, 2), (256, 2), (4, 33))
    for dependence in ("none", "planted(0.9)")
]


@pytest.mark.parametrize("point", EXTREME, ids=lambda c: c.name)
def test_values_lie_within_the_range_of_their_quantity(point):
    """Whatever was drawn, uniform rows and one-hot ones; and so do their intervals."""
    divisors = ("none", "sqrt", "1e4")
    batch = sample_all(point, 1, 0, 12, divisors)
    for (_, column), values in zip(
        every_column(point, divisors).means, batch.means.T, strict=True
    ):
        name, *arithmetic = column.split("@")
        if name not in QUANTITIES or QUANTITIES[name].given:
            continue
        low, high = range_of(name, point.n_keys, *arithmetic)
        slack = 1e-6 * max(1.0, abs(low))  # single precision
        assert low - slack <= values.min(), name
        assert values.max() <= high + 1e-6 * high, name
    summaries = summarise(point, batch, divisors)
    for key in every_key(point, divisors):
        estimate = summaries.estimate(key)
        ends = estimate.interval(0.025)
        if "/" in key.divisor or key.summary == "spread" or math.isnan(ends.low):
            assert not ends.low < 0.0
            continue
        low, high = range_of(key.quantity, point.n_keys, key.number_format, key.softmax)
        assert low <= ends.low <= ends.high <= high, key

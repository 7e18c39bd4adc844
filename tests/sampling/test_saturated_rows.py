"""Quantities of saturated rows, against loops of textbook code over the same draws."""

import math

import numpy as np
import pytest

from montecarlo.attention.quantities import ROW_QUANTITIES, SATURATED, query_rows
from montecarlo.estimation.summaries import RowKey, Summaries, row_keys
from montecarlo.sampling.blocks import row_blocks
from montecarlo.sampling.design_points import parse_point, stream
from montecarlo.sampling.matrices import draw_matrices
from montecarlo.sampling.replicates import sample

SEED, N = 6, 24
ALL = ("none", "sqrt")
#: Rows of which the gradient by the query is looked at in a part only.
POINT = parse_point("gaussian", "gaussian", 24, 96)
#: Relative precision of sums over the exponentials of float32 scores.
SINGLE = 1e-4
#: A bin of the counts, as a factor.
BIN = 10.0 ** (1 / 64)
FAMILY = ("jacobian_trace", "jacobian_frobenius", "gradient_query")


def textbook_rows(point, index):
    """Largest weight, trace, Frobenius norm and gradient by the query of every row of
    one replicate: softmax and Jacobian as matrices in float64, row by row.
    """
    queries, keys = draw_matrices(point, SEED, index)
    v = stream(SEED, point, index, "v").standard_normal((1, point.n_keys))[0]
    found = []
    for scores in (queries @ keys.T).astype(np.float64):
        e = np.exp(scores - scores.max())
        p = e / e.sum()
        jacobian = np.diag(p) - np.outer(p, p)
        found.append(
            (
                p.max(),
                np.trace(jacobian),
                np.linalg.norm(jacobian),
                np.linalg.norm(keys.T.astype(np.float64) @ jacobian @ v),
            )
        )
    return np.array(found)


@pytest.fixture(scope="module")
def by_hand():
    """The textbook's values, shape (n_replicates, n_rows, 4)."""
    return np.stack([textbook_rows(POINT, index) for index in range(N)])


@pytest.fixture(scope="module")
def summaries():
    """The same replicates as the program reduces them."""
    batch = sample(POINT, SEED, 0, N, ALL)
    return Summaries(POINT, batch, ALL)


def chosen_rows(by_hand, name, threshold):
    """A quantity's values and who is saturated, of the rows that it is looked at in."""
    rows = by_hand[:, : query_rows(96)] if name == "gradient_query" else by_hand
    return rows[..., 1 + FAMILY.index(name)], rows[..., 0] >= threshold


def jackknifed(values, among):
    """A ratio of sums less its bias, by leaving out one replicate after the other."""
    some = among.any(axis=1)  # others say nothing of saturated rows
    over, under = (values * among).sum(axis=1)[some], among.sum(axis=1)[some]
    whole = over.sum() / under.sum()
    without = [
        np.delete(over, i).sum() / np.delete(under, i).sum() for i in range(len(over))
    ]
    return whole - (len(over) - 1) * (np.mean(without) - whole)


@pytest.mark.parametrize("given", SATURATED)
def test_share_of_saturated_rows(by_hand, summaries, given):
    """The share of rows with a largest weight of at least a threshold, by hand."""
    found = summaries.estimate(RowKey("none", given, "mean")).value

    assert found == pytest.approx((by_hand[..., 0] >= SATURATED[given]).mean())
    assert 0.005 < found < 0.6
    assert summaries.estimate(RowKey("sqrt", given, "mean")).value < 0.5 * found


@pytest.mark.parametrize("given", SATURATED)
@pytest.mark.parametrize("name", FAMILY)
def test_mean_and_median_among_saturated_rows(by_hand, summaries, name, given):
    """Mean and median over the saturated rows are the textbook's; those over all rows,
    or over the rows of the threshold before, are not.
    """
    values, among = chosen_rows(by_hand, name, SATURATED[given])
    mean, median = (
        summaries.estimate(RowKey("none", f"{name}_{given}", summary)).value
        for summary in ("mean", "median")
    )

    assert mean == pytest.approx(jackknifed(values, among), rel=SINGLE)
    pooled = np.sort(values[among])
    # the value at which the share of rows reaches a half, give or take a bin
    assert median == pytest.approx(pooled[math.ceil(len(pooled) / 2) - 1], rel=BIN - 1)
    for wrong in (np.ones_like(among), chosen_rows(by_hand, name, 0.5)[1]):
        assert mean < 0.8 * jackknifed(values, wrong)
        assert median < np.median(values[wrong]) / BIN


def test_gradient_by_the_query_is_that_of_its_own_rows(by_hand, summaries):
    """The indicator is taken on the rows that the gradient is looked at in: with the
    share of all rows below the line, the mean is another.
    """
    values, among = chosen_rows(by_hand, "gradient_query", 0.9)
    found = summaries.estimate(RowKey("none", "gradient_query_saturated", "mean")).value
    everywhere = (by_hand[..., 0] >= 0.9).mean()

    assert values.shape[1] < by_hand.shape[1]
    wrong = (values * among).mean() / everywhere
    assert abs(wrong / found - 1.0) > 10.0 * SINGLE


def test_quantities_of_saturated_rows_are_undivided_only():
    """They have rows for divisor none alone, and no ratios and no spread."""
    keys = [k for k in row_keys(POINT, ALL) if ROW_QUANTITIES[k.quantity].given]

    assert len(keys) == 3 * 3 * 2
    assert {key.divisor for key in keys} == {"none"}
    assert {key.summary for key in keys} == {"mean", "median"}


def test_no_saturated_rows_no_estimate():
    """Where no row is saturated there is no number, no interval and no exception."""
    flat = parse_point("gaussian(std=0.1)", "gaussian", 4, 32)
    batch = sample(flat, SEED, 0, N, ALL)
    summaries = Summaries(flat, batch, ALL)

    assert summaries.estimate(RowKey("none", "saturated", "mean")).value == 0.0
    for name in FAMILY:
        for summary in ("mean", "median"):
            key = RowKey("none", f"{name}_saturated", summary)
            estimate = summaries.estimate(key)
            assert math.isnan(estimate.value)
            assert all(map(math.isnan, estimate.interval(0.025)))


def test_exact_bounds_on_saturated_rows(by_hand):
    """The bounds tr J <= 1 - p1² and ‖J‖₂ <= 2 p1 (1 - p1), with p1 >= 1/2 the largest
    weight; some rows come near to both, so that a tenth less would not hold.
    """
    (block,) = row_blocks(POINT, SEED, range(N), [1.0])
    spectral, largest, trace = (
        ROW_QUANTITIES[name].evaluate(block)
        for name in ("jacobian_spectral", "weight_max", "jacobian_trace")
    )
    rest = 1.0 - by_hand[..., 0]  # in float64, where 1 - p1 is not rounded away
    first = np.s_[:, : spectral.shape[1]]
    ratios = {
        "trace": (trace / (rest * (1.0 + largest)))[first],
        "spectral": spectral / (2.0 * largest * rest)[first],
    }
    for ratio in ratios.values():
        for indicator in SATURATED:
            among = ROW_QUANTITIES[indicator].evaluate(block)[first] == 1.0
            assert among.sum() >= 10
            assert ratio[among].max() <= 1.0 + SINGLE
        assert ratio[largest[first] >= 0.9].max() > 0.9

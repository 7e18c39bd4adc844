"""The tidy table: its columns, the names of its rows, and which references it shows."""

import math
import pickle
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from scipy.special import ndtr

from montecarlo.attention.divisors import DIVISORS
from montecarlo.estimation.summaries import RowKey, Summaries, row_keys
from montecarlo.sampling.batches import pack
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.matrices import draw_matrices
from montecarlo.sampling.replicates import sample
from montecarlo.study.curves import tabulate_curves
from montecarlo.study.measured import row_id
from montecarlo.study.presets import PRESETS
from montecarlo.study.table import (
    DISTRIBUTION_D_K,
    DISTRIBUTION_SCORES,
    EXAMPLE_POINT,
    EXAMPLE_QUERIES,
    FAR_BELOW,
    SCORE_DISTRIBUTION,
    curves_by_rank,
    distribution_curves,
    example_curves,
    find_reference,
    references_of,
    rows_of,
    table_of,
    tabulate,
)
from montecarlo.theory.references import Reference

ALL = tuple(DIVISORS)
PAIRS, ROWS = (
    parse_point("gaussian", "uniform", 4),
    parse_point("gaussian", "gaussian", 4, 8),
)


def table_of_both(lookup):
    """The table of pairs and of rows."""
    both = map(summaries_of, (PAIRS, ROWS))
    return tabulate(chain(*(rows_of(one, lookup) for one in both)))


def summaries_of(point, n=6, divisors=ALL):
    """The estimates of a few replicates."""
    batch = sample(point, 1, 0, n, divisors)
    return Summaries(point, batch, divisors)


def nothing(point, key):
    """Know no exact value."""
    del point, key


def test_pairs_have_no_number_of_keys():
    """For pairs the number of keys is empty, not 0 or 256, and stays an integer."""
    table = table_of_both(nothing)
    pairs = table[table.n_keys.isna()]

    assert set(pairs.n_queries) == {256}
    assert set(table.n_keys.dropna()) == {8}
    assert str(table.n_keys.dtype) == "Int64"
    assert set(pairs.distribution_k) == {"uniform"}


def test_interval_is_the_pointwise_one():
    """The interval of a line is the 95 % interval of its estimate."""
    summaries = summaries_of(ROWS)
    line = (
        tabulate(rows_of(summaries, nothing))
        .set_index("row_id")
        .loc[row_id(ROWS, RowKey("sqrt", "entropy", "mean"))]
    )
    estimate = summaries.estimate(RowKey("sqrt", "entropy", "mean"))

    assert (line.estimate, line.std_error) == (estimate.value, estimate.std_error)
    assert (line.ci_low, line.ci_high) == tuple(estimate.interval(0.025))


@pytest.mark.parametrize("point", [PAIRS, ROWS], ids=lambda c: c.name)
def test_a_point_without_its_samples(point):
    """What a worker makes of packed batches is what the samples say: rows, curves, and
    estimates with their intervals at the error rates that were asked for, no others.
    """
    summaries, ratios = summaries_of(point), ("none/linear",)
    packed = [pack(sample(point, 1, *ends, ALL)) for ends in ((0, 2), (2, 6))]
    references, rates = references_of(point, ALL, ratios), (1e-4, 0.025)
    found = table_of(point, packed, ALL, ratios, references, set(references), rates)
    found = pickle.loads(pickle.dumps(found))  # noqa: S301 - of our own

    expected = rows_of(replace(summaries, ratios=ratios), find_reference)
    assert list(map(repr, found.rows)) == list(map(repr, expected))
    assert found.curves == tuple(curves_by_rank(summaries))
    assert found.n_replicates == 6
    bounded = 0
    for key in references:
        one, other = found.estimate(key), summaries.estimate(key)
        for rate in rates:
            assert repr(one.interval(rate)) == repr(other.interval(rate))
        if other.bounds is not None:
            bounded += 1
            with pytest.raises(KeyError):
                one.interval(0.01)
    assert bounded


@pytest.mark.parametrize(
    ("error", "shown"), [(0.0, True), (FAR_BELOW, True), (1.01 * FAR_BELOW, False)]
)
def test_reference_counts_far_below_the_error(error, shown):
    """A reference is shown where its own error is at most a tenth of the standard
    error, and otherwise not.
    """
    key = RowKey("sqrt", "entropy", "mean")
    summaries = summaries_of(ROWS)
    std_error = summaries.estimate(key).std_error

    def known(point, asked):
        del point
        return Reference(1.5, error * std_error) if asked == key else None

    table = tabulate(rows_of(summaries, known)).set_index("row_id")
    line = table.loc[row_id(ROWS, key)]
    assert bool(line.reference == 1.5) is shown
    assert math.isnan(line.reference) is not shown
    assert table.reference.notna().sum() == int(shown)


@pytest.mark.parametrize("preset", PRESETS)
def test_row_ids_are_unique(preset):
    """No two rows of a preset share a name."""
    grid = PRESETS[preset]
    ids = [
        row_id(point, key)
        for point in grid.points()
        for key in row_keys(point, grid.divisors)
    ]

    assert len(set(ids)) == len(ids) > 500


@pytest.mark.parametrize(
    ("point", "key", "expected"),
    [
        (PAIRS, RowKey("sqrt", "score_variance", "value"), "rfa15d2515d9"),
        (ROWS, RowKey("none/sqrt", "effective_keys", "spread"), "rda066aa1aa0"),
    ],
)
def test_row_ids_are_stable(point, key, expected):
    """A row keeps its name from version to version: it may stand in somebody's paper.

    The expected names: "r" and the start of what ``printf %s … | sha256sum`` gives for
    ``gaussian;uniform;none;;4;256;None;sqrt;float64;shifted;score_variance;value`` and
    ``gaussian;gaussian;none;;4;128;8;none/sqrt;float64;shifted;effective_keys;spread``.
    """
    assert row_id(point, key) == expected


def test_curves_by_rank():
    """Weights by rank have one point a rank and divisor; pairs have no weights."""
    assert not list(curves_by_rank(summaries_of(PAIRS)))
    rows = list(curves_by_rank(summaries_of(ROWS)))

    assert len(rows) == 7 * len(ALL)
    first = rows[0]
    assert (first.curve, first.x, first.n_keys) == ("weight_by_rank", 1.0, 8)


def test_curves_of_the_exact_distribution():
    """Odd about 0, smaller for larger d_k, and what a simulation of d_k = 1 finds."""
    table = tabulate_curves(distribution_curves())
    by_d_k = {d_k: rows["estimate"].to_numpy() for d_k, rows in table.groupby("d_k")}

    assert tuple(by_d_k) == DISTRIBUTION_D_K
    assert set(table["curve"]) == {SCORE_DISTRIBUTION}
    for gap in by_d_k.values():
        np.testing.assert_allclose(gap, -gap[::-1], atol=1e-12)
    largest = [np.abs(gap).max() for gap in by_d_k.values()]
    assert sorted(largest, reverse=True) == largest
    q, k = np.random.default_rng(5).standard_normal((2, 1_000_000))
    x = 0.5
    share = np.mean(q * k <= x) - ndtr(x)
    # five standard errors of a share
    assert abs(share - by_d_k[1][DISTRIBUTION_SCORES.tolist().index(x)]) < 5 * 0.5e-3


def weights_of(seed, divisor):
    """Weights of the curve of a divisor, shape (queries, keys)."""
    mine = [line for line in example_curves(seed) if line.divisor == divisor]
    assert [line.x for line in mine] == list(range(EXAMPLE_QUERIES * 32))
    assert all(line.std_error is None for line in mine)
    return np.array([line.estimate for line in mine]).reshape(EXAMPLE_QUERIES, 32)


def test_example_is_softmax_of_the_study_s_own_draws():
    """Weights are those of the first replicate's first queries, keys as drawn."""
    q, k = draw_matrices(EXAMPLE_POINT, 7, 0)
    scores = q[:EXAMPLE_QUERIES].astype(float) @ k.T.astype(float)
    for divisor, c in (("none", 1.0), ("sqrt", 8.0)):
        e = np.exp((scores - scores.max(axis=1, keepdims=True)) / c)
        wanted = e / e.sum(axis=1, keepdims=True)
        assert np.allclose(weights_of(7, divisor), wanted, rtol=1e-10, atol=0.0)

"""The tidy table: its columns, the names of its rows, and which references it shows."""

import math
import pickle
from itertools import chain

import pytest

from montecarlo.attention.divisors import DIVISORS
from montecarlo.errors import InputError
from montecarlo.estimation.summaries import DISTRIBUTION, RowKey, every_key
from montecarlo.sampling.batches import pack
from montecarlo.sampling.design_points import parse_point
from montecarlo.study.measured import row_id
from montecarlo.study.presets import PRESETS
from montecarlo.study.table import (
    FAR_BELOW,
    find_reference,
    find_rows,
    references_of,
    row_of_estimate,
    table_of,
    tabulate,
)
from montecarlo.theory.references import Reference
from tests.samples import sample_all, summarise

ALL = tuple(DIVISORS)
PAIRS, ROWS = (
    parse_point("gaussian", "uniform", 4),
    parse_point("gaussian", "gaussian", 4, 8),
)


def table_of_both(lookup):
    """The table of pairs and of rows."""
    both = map(summaries_of, (PAIRS, ROWS))
    return tabulate(chain(*(every_row(one, lookup) for one in both)))


def every_row(summaries, lookup):
    """Every row of a point."""
    point = summaries.point
    return [
        row_of_estimate(point, key, summaries.estimate(key), lookup(key))
        for key in every_key(point, ALL)
    ]


def summaries_of(point, n=6, divisors=ALL):
    """The estimates of a few replicates."""
    batch = sample_all(point, 1, 0, n, divisors)
    return summarise(point, batch, divisors)


def nothing(key):
    """Know no exact value."""
    del key


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
        tabulate(every_row(summaries, nothing))
        .set_index("row_id")
        .loc[row_id(ROWS, RowKey("sqrt", "entropy", "mean"))]
    )
    estimate = summaries.estimate(RowKey("sqrt", "entropy", "mean"))

    assert (line.estimate, line.std_error) == (estimate.value, estimate.std_error)
    assert (line.ci_low, line.ci_high) == tuple(estimate.interval(0.025))


@pytest.mark.parametrize("point", [PAIRS, ROWS], ids=lambda c: c.name)
def test_a_point_without_its_samples(point):
    """What a worker makes of packed batches is what the samples say: rows, how they are
    distributed, and estimates with intervals at the rates that were asked for alone.
    """
    summaries, keys = summaries_of(point), tuple(every_key(point, ALL))
    packed = [pack(sample_all(point, 1, *ends, ALL)) for ends in ((0, 2), (2, 6))]
    references, rates = references_of(point, keys), (1e-4, 0.025)
    whole = RowKey("sqrt", "jacobian_frobenius", DISTRIBUTION)
    asked = (*keys, whole) if point.has_rows else keys
    found = table_of(point, asked, packed, references, set(references), rates)
    found = pickle.loads(pickle.dumps(found))  # noqa: S301 - of our own

    expected = every_row(summaries, lambda key: find_reference(point, key))
    assert list(map(repr, found.rows)) == list(map(repr, expected))
    assert set(found.distributions) == set(asked) - set(keys)
    for key, rows in found.distributions.items():
        one = summaries.distribution(key.divisor, key.quantity)
        assert rows.share.tolist() == one.share.tolist()
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

    def known(asked):
        return Reference(1.5, error * std_error) if asked == key else None

    table = tabulate(every_row(summaries, known)).set_index("row_id")
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
        for key in every_key(point, grid.divisors)
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


def test_a_row_that_was_not_sampled_is_named():
    """Who reads one is told which, and of which point; there is no empty cell."""
    table = table_of_both(nothing)
    there = RowKey("sqrt", "entropy", "mean")
    assert find_rows(table, [(ROWS, there)])["row_id"].tolist() == [row_id(ROWS, there)]
    lacking = there._replace(summary="q99")
    with pytest.raises(InputError, match=f"sqrt entropy q99 .* of {ROWS.name}"):
        find_rows(table, [(ROWS, there), (ROWS, lacking)])

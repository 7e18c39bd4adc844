"""Slopes, ratios of ends, spreads and shares are judged as the report judges them."""

from functools import cache

import numpy as np
import pytest

from montecarlo.calibration import series
from montecarlo.calibration.bank import Bank, read_or_draw, row_keys
from montecarlo.calibration.bank_rows import estimate, make_row, moments_of
from montecarlo.calibration.card import FAMILIES, family_of
from montecarlo.calibration.rates import measure_rates
from montecarlo.calibration.series import RELATIONS, contrast_ends, measure_series
from montecarlo.estimation.intervals import mean_ends
from montecarlo.estimation.summaries import QUANTILE_RATIO, RowKey
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.streams import index_chunks

SIZE, SEED, N = 192, 5, 24
D_K = (16, 64, 256)
KEYS = {
    None: RowKey("none", "score_variance", "value"),
    32: RowKey("sqrt", "gradient_query", "mean"),
}


@cache
def banks_of(n_keys, distribution="laplace"):
    """The banks of a short series, drawn once for all tests."""
    return [
        read_or_draw(
            parse_point(distribution, distribution, d_k, n_keys), SEED, SIZE, None
        )
        for d_k in D_K
    ]


@pytest.mark.parametrize("n_keys", KEYS)
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
def test_many_contrasts_are_the_report_s(n_keys, relation):
    """Samples that go through NumPy together have the intervals that each has alone."""
    banks, key = banks_of(n_keys), KEYS[n_keys]
    (chunk,) = index_chunks(SIZE, N * len(banks), 20, seed=9)
    split = np.split(chunk, len(banks), axis=1)
    moments = [moments_of(*one) for one in zip(banks, [key] * 3, split, strict=True)]
    parts = [(one.value, *mean_ends(one, N, 0.01)) for one in moments]
    low, high = map(relation.back, contrast_ends(relation.weights(D_K), parts))
    for number in range(len(chunk)):
        alone = [
            estimate(bank, key, some[number])
            for bank, some in zip(banks, split, strict=True)
        ]
        expected = relation.estimate(D_K, alone).interval(0.01)
        assert (low[number], high[number]) == pytest.approx(expected, rel=1e-9)


@cache
def saturating():
    """A bank with shares between 0 and 1, and quantiles far apart."""
    return read_or_draw(parse_point("gaussian", "gaussian", 64, 32), SEED, SIZE, None)


@pytest.mark.parametrize(
    "key",
    [
        RowKey("none", "saturated", "mean"),
        RowKey("sqrt", "saturated", "mean"),
        RowKey("sqrt", "jacobian_frobenius", QUANTILE_RATIO),
        RowKey("none/sqrt", "jacobian_frobenius", QUANTILE_RATIO),
    ],
    ids=str,
)
def test_ends_are_the_report_s(key):
    """Both ends of shares and spreads are those of the estimate of each sample."""
    bank = saturating()
    (indices,) = index_chunks(SIZE, 96, 20, seed=9)
    low, high = make_row(bank, key).sample(indices)(1e-3)
    for number, some in enumerate(indices):
        expected = estimate(bank, key, some).interval(1e-3)
        assert (low[number], high[number]) == pytest.approx(expected, rel=1e-9)


def test_families_are_counted():
    """A bank and a series give rows of every family, pairs those of the deviation."""
    pairs = read_or_draw(parse_point("gaussian", "gaussian", 16), SEED, SIZE, None)
    found = [*measure_rates(saturating(), 64, 4), *measure_rates(pairs, 64, 4)]
    found += measure_series(banks_of(None), 64, 4)
    families = {family_of(one.row.quantity, one.row.summary) for one in found}
    assert families == {"", *FAMILIES}


def test_wrong_errors_are_seen(monkeypatch):
    """Intervals half as wide miss their truth far more often than the right ones, on
    slopes as on ratios: the count is not blind.
    """
    banks = banks_of(None)

    def misses():
        found = measure_series(banks, 4000, 1)
        rows = [one for one in found if one.row.quantity == "score_abs"]
        return {one.row.summary: max(one.low[0], one.high[0]) for one in rows}

    right = misses()
    ends = series.mean_ends

    def narrow(moments, n, rate):
        low, high = ends(moments, n, rate)
        return (moments.value + low) / 2.0, (moments.value + high) / 2.0

    monkeypatch.setattr(series, "mean_ends", narrow)
    wrong = misses()
    assert set(right) == {"slope", "ratio_of_ends"}
    for name, count in right.items():
        assert count < 2.5 * 40  # nominally 40 of 4,000
        assert wrong[name] > 5 * 40


def test_series_rise():
    """Each has one distribution, one number of keys and at least two d_k; none begins
    at 1.
    """
    for one in series.all_series():
        d_k = [point.d_k for point in one]
        assert d_k == sorted(set(d_k))
        assert len(d_k) > 1
        assert min(d_k) >= series.FIRST_D_K
        assert len({(c.distribution_k, c.n_keys) for c in one}) == 1
        assert series.series_keys(one[0])


def test_families_have_names():
    """A mean is of none, so are quantiles; an indicator's mean is a share."""
    assert family_of("entropy", "mean") == family_of("weight_max", "q10") == ""
    assert family_of("saturated", "mean") == "share"
    assert family_of("score_std", "value") == "score_std"
    assert family_of("score_variance", "slope") == "slope"
    bank = saturating()
    assert isinstance(bank, Bank)
    assert {family_of(k.quantity, k.summary) for k in row_keys(bank.point)} == {
        "",
        "share",
        "spread",
    }

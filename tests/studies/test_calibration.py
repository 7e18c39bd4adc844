"""Counting misses: of intervals with a known rate, and again as the table has it."""

import csv

import numpy as np
import pytest
import scipy.stats

from montecarlo.attention.quantities import PAIR_MEANS
from montecarlo.estimation.summaries import RowKey
from montecarlo.sampling.design_points import parse_point
from studies import calibration
from studies.calibration import (
    COUNTS,
    NAMES,
    RATES,
    TABLE,
    Bank,
    Case,
    cases,
    columns_at,
    count,
    make_lines,
)
from tests.conftest import remade

POINT = parse_point("gaussian", "gaussian", 4)
MEAN = Case("pairs", (POINT,), RowKey("none", "score_mean", "value"), stops=False)
#: Two-sided tail probability at which a count is another than expected.
RARE = 1e-6


def normal_bank(point, seed):
    """A bank of many normal numbers in place of replicates."""
    means = np.random.default_rng(seed).normal(size=(2**15, len(PAIR_MEANS)))
    return Bank(point, means, {})


def test_misses_of_student_s_interval_are_nominal(monkeypatch):
    """Means of normal numbers: it misses as often as stated, on both sides; with three
    looks at a third of the rate more seldom than stated, and more often than at one.
    """
    monkeypatch.setattr(calibration, "draw_bank", normal_bank)
    trials = 2**14
    misses = count(MEAN, 3, trials, 1)
    for found, rate in zip(misses.T, RATES, strict=True):
        for number in found:
            assert scipy.stats.binomtest(int(number), trials, rate).pvalue > RARE
    stopping = count(MEAN._replace(stops=True), 3, trials, 1)[:, 0]
    assert (stopping < 0.01 * trials + 30).all()
    assert (stopping > 0.01 * trials / 3).all()


def test_another_interval_than_a_report_s_is_refused(monkeypatch):
    """What counts is compared with an estimate of the engine, trial by trial."""
    monkeypatch.setattr(calibration, "draw_bank", normal_bank)
    right = calibration.mean_ends

    def narrow(moments, n, rate):
        return right(moments, n, 1.01 * rate)

    monkeypatch.setattr(calibration, "mean_ends", narrow)
    with pytest.raises(RuntimeError, match="a report has"):
        count(MEAN, 3, 2**10, 1)


@pytest.mark.parametrize("part", [0.0, 0.02])
@pytest.mark.parametrize(
    ("kind", "quantity", "sizes"),
    [
        ("mean", "jacobian_spectral", (4,)),
        ("share", "saturated", (4,)),
        ("slope", "jacobian_trace", (16, 64, 256)),
    ],
)
def test_rare_replicates_are_as_in_a_report(monkeypatch, kind, quantity, sizes, part):
    """Where all of a trial agree, or few make its variance, or an end is not known:
    what counts compares with the engine, and refuses no interval.
    """

    def rare_bank(point, seed):
        rare = np.random.default_rng(point.d_k + seed).random(2**12) < part
        columns = len(columns_at(point).means)
        common = 0.0 if kind == "share" else 2.0**-6
        return Bank(point, np.tile(np.where(rare, 0.5, common), (columns, 1)).T, {})

    monkeypatch.setattr(calibration, "draw_bank", rare_bank)
    points = tuple(parse_point("gaussian", "gaussian", d_k, 8) for d_k in sizes)
    case = Case(kind, points, RowKey("sqrt", quantity, "mean"), stops=False)
    misses = count(case, 3, 2**10, 1)
    assert (misses[:, 0] >= misses[:, -1]).all()


@pytest.mark.slow
def test_a_part_of_each_kind_is_counted(monkeypatch):
    """Every case can be drawn and agrees with a report's estimates, on small banks."""
    monkeypatch.setattr(calibration, "BANK", 64)
    monkeypatch.setattr(calibration, "LARGE_BANK", 32)
    calibration.draw_bank.cache_clear()
    kinds = {}
    for _, case in cases():
        if not case.points[0].is_large:
            kinds.setdefault((case.kind, case.stops), case)
    assert len(kinds) == 13
    for case in kinds.values():
        misses = count(case, 3, 2**10, 1)
        assert misses.shape == (2, 3)
        assert (misses[:, 0] >= misses[:, -1]).all()
    calibration.draw_bank.cache_clear()


def agree(one, trials, other, other_trials):
    """Whether two counts may be of one rate."""
    share = trials / (trials + other_trials)
    return scipy.stats.binomtest(one, one + other, share).pvalue > RARE


@pytest.mark.slow
@remade
def test_the_small_version_is_as_the_table_says():
    """Its trials are others, of the same banks: no count is another than by chance."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        table = {
            tuple(line[name] for name in NAMES[:-1]): line
            for line in csv.DictReader(file)
        }
    compared = 0
    for line in make_lines(1, short=True):
        kept = table[tuple(str(line[name]) for name in NAMES[:-1])]
        trials, kept_trials = line["trials"], int(kept["trials"])
        for name in COUNTS:
            if line[name] + int(kept[name]):
                assert agree(line[name], trials, int(kept[name]), kept_trials), line
                compared += 1
        # at a rate three times as large it would be another
        assert not agree(
            3 * line[COUNTS[0]] + 300, trials, int(kept[COUNTS[0]]), kept_trials
        )
    assert compared > 40

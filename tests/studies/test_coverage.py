"""Nominal 95 % intervals cover the exact value as often as they say.

The table beside the benchmark was measured once with 2,000 runs (``python -m
studies.coverage``); here it is held against its bounds, and a short run of the same
function shows that the code still does what the table says.
"""

import csv
import math

import pytest
import scipy.stats

from montecarlo.estimation import intervals
from studies import coverage

#: Bounds of the share that covers, and of the share on either side.
LEAST, MOST, SIDE = 0.92, 0.98, 0.05
#: Of one row of the short run, which has six: 3e-5.
FALSE_ALARM = 5e-6
RUNS = 100


@pytest.fixture(scope="module")
def table():
    """The lines of the committed table."""
    with coverage.TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_table_is_complete(table):
    """A line for each place and row, of 2,000 runs."""
    expected = {
        (point.distribution_k.name, str(point.d_k), key.quantity, key.divisor)
        for point, keys in coverage.plans()
        for key in keys
    }
    found = [(o["distribution"], o["d_k"], o["quantity"], o["divisor"]) for o in table]

    assert set(found) == expected
    assert len(found) == len(expected) == 15
    assert {one["runs"] for one in table} == {str(coverage.RUNS)} == {"2000"}


def test_table_is_within_bounds(table):
    """Intervals cover in 92 to 98 % of the runs and miss on either side in under 5 %;
    shares and their errors are what the counts say.
    """
    for one in table:
        covered, below, above = (float(one[n]) for n in ("covered", "below", "above"))
        assert LEAST <= covered <= MOST, one
        assert max(below, above) < SIDE, one
        assert covered + below + above == pytest.approx(1.0)
        error = math.sqrt(covered * (1.0 - covered) / int(one["runs"]))
        assert float(one["covered_std_error"]) == pytest.approx(error, abs=1e-6)


def limits():
    """The numbers of short runs that may cover, at FALSE_ALARM for 95 %."""
    covering = scipy.stats.binom(RUNS, 0.95)
    least = int(covering.ppf(FALSE_ALARM / 2.0))
    return least, RUNS  # 100 of 100 have a probability of 0.6 %


def measured(runs, places):
    """Cover counts of a short run, by point and row."""
    found = {}
    for point, keys in coverage.plans():
        if (point.distribution_k.name, point.d_k, point.n_keys) in places:
            for key, counts in coverage.count(point, keys, range(runs)).items():
                found[point.name, key] = counts
    return found


@pytest.mark.slow
def test_short_run():
    """A hundred runs of the lines of few entries, which are the least normal, cover as
    often as 95 % allows.
    """
    few = (("gaussian", 1), ("rademacher", 4))
    places = {(*place, n_keys) for place in few for n_keys in (None, 32)}
    counts = measured(RUNS, places)

    assert len(counts) == 6
    for where, one in counts.items():
        assert one.total() == RUNS
        assert limits()[0] <= one["covered"] <= limits()[1], (where, one)


def test_limits():
    """The limits have the stated false-alarm rate, and see errors half too small."""
    assert scipy.stats.binom(RUNS, 0.95).cdf(limits()[0] - 1) <= FALSE_ALARM
    covers = 2.0 * scipy.stats.norm.cdf(0.98) - 1.0  # half of 1.96
    assert scipy.stats.binom(RUNS, covers).sf(limits()[0] - 1) < 0.005


@pytest.mark.slow
def test_intervals_half_as_wide_are_seen(monkeypatch):
    """The test above can fail: intervals less than half as wide cover too seldom."""
    original = intervals.t_quantile
    monkeypatch.setattr(intervals, "t_quantile", lambda *args: 0.4 * original(*args))
    counts = measured(RUNS, {("rademacher", 4, 32)})

    assert counts
    for one in counts.values():
        assert one["covered"] < limits()[0]
        assert one.total() == RUNS


def test_lines_are_written(tmp_path, capsys):
    """The command writes the table that the tests read."""
    table = tmp_path / "c.csv"
    assert coverage.main(["--runs", "1", "--output", str(table)]) == 0

    with table.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 15 == len(capsys.readouterr().out.splitlines())
    assert {one["runs"] for one in lines} == {"1"}

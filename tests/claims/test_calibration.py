"""How often intervals miss: the table, its law for small rates, and what is paid."""

import csv
import math

import pytest

from montecarlo.attention.quantities import QUANTILES, is_indicator, quantile_level
from montecarlo.claims.calibration import (
    COUNTS,
    NAMES,
    RATES,
    SIDES,
    TABLE,
    Line,
    nominal_rate,
    read_calibration,
)
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.running import Study, exact_value, needed_budgets
from montecarlo.claims.simulation import Simulation, statistic_of
from montecarlo.estimation.summaries import QUANTILE_RATIO
from montecarlo.study.presets import PRESETS
from studies.calibration import cases

KINDS = {
    *("mean", "divisor ratio", "pairs", "slope", "share"),
    *("quantile", "quantile ratio"),
}


def kind_of(statistic):
    """The kind of the interval of something that is judged."""
    relation, key, _ = statistic
    if relation != "value":
        return "slope"  # or a ratio of ends, which is one of other weights
    if key.summary == QUANTILE_RATIO:
        return "quantile ratio"
    if quantile_level(key.summary) is not None:
        return "quantile"
    if key.summary == "value":
        return "pairs"
    if "/" in key.divisor:
        return "divisor ratio"
    return "share" if is_indicator(key.quantity) else "mean"


def test_the_table_is_of_the_cases_that_there_are():
    """Names and recipe of each line are those of the program; if not, `python -m
    studies.calibration` counts anew.  All kinds are there, and the stopping rule.
    """
    with TABLE.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) < 100
    assert list(lines[0]) == [*NAMES, *COUNTS]
    made = [
        {name: str(cell) for name, cell in case.cells.items()} for _, case in cases()
    ]
    assert [{name: line[name] for name in NAMES} for line in lines] == made
    read = read_calibration()
    assert {line.kind for line in read} == KINDS
    assert {line.kind for line in read if line.looks > 1} > {"mean", "slope"}
    assert all(line.misses[s, 1e-4] <= line.trials for line in read for s in SIDES)


def test_every_kind_that_is_judged_is_counted():
    """Whatever the standard preset judges has an interval of a kind in the table."""
    study = Study(read_catalogue(), PRESETS["standard"])
    simulation = Simulation(needed_budgets(study), study.grid.divisors, exact_value)
    found = {
        kind_of(statistic_of(check, simulation.points(check, case)))
        for check in study.catalogue.checks()
        if check.relation != "tends_to"
        for case in simulation.cases(check)
    }
    assert len(found) > 5
    assert found <= {line.kind for line in read_calibration()}
    assert set(QUANTILES) > {"median"}


def line_of(law, trials=10**12):
    """A line whose intervals miss at a rate that is a function of the stated one."""
    misses = {
        (side, rate): round(trials * law(rate)) for side in SIDES for rate in RATES
    }
    return Line("mean", "made up", 1, trials, misses)


def stated(actual, growth=0.012):
    """The rate at which intervals of some growth miss as often as that."""
    return actual * math.exp(-growth * math.log(actual) ** 2)


def actual(rate):
    """Its inverse, by bisection in the logarithm."""
    low, high = math.log(rate), 0.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if stated(math.exp(middle)) < rate else (low, middle)
    return math.exp(low)


def test_growth_is_that_of_the_law():
    """Of counts that follow the law, on either side, it is what they were made by."""
    line = line_of(actual)
    assert line.growth == pytest.approx(0.012, rel=1e-3)
    assert line.times(1e-4) == pytest.approx(actual(1e-4) / 1e-4, rel=1e-6)
    for side in SIDES:
        fewer = {key: n if key[0] == side else n // 2 for key, n in line.misses.items()}
        one = Line("mean", "made up", 1, line.trials, fewer)
        assert one.growth == pytest.approx(0.012, rel=1e-3)
        assert one.times(1e-2) == pytest.approx(line.times(1e-2))


def test_few_trials_allow_a_larger_growth():
    """What was not counted is not known: luck of the trials is no accuracy."""
    exact = [line_of(lambda rate: rate, trials).growth for trials in (10**5, 10**7)]
    assert exact[0] > 3.0 * exact[1] > 0.0
    assert line_of(lambda rate: 0.5 * rate).growth == 0.0


def write(path, *lines):
    """Write a table of made-up lines."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*NAMES, *COUNTS])
        for line in lines:
            names = ("mean", "gaussian", "none", 64, 128, "sqrt", "entropy", "mean")
            writer.writerow([*names, 128, 1, 4096, line.trials, *line.misses.values()])
    return path


@pytest.mark.parametrize("wanted", [1e-2, 1e-4, 1.5e-6, 1e-9])
def test_intervals_that_are_paid_for_miss_as_often_as_wanted(tmp_path, wanted):
    """By the worst line of a table; one that misses less than stated costs nothing."""
    half = line_of(lambda rate: 0.5 * rate)
    path = write(tmp_path / "worst.csv", half, line_of(actual), half)
    assert actual(nominal_rate(wanted, path)) == pytest.approx(wanted, rel=5e-3)
    free = write(tmp_path / "free.csv", half)
    assert nominal_rate(wanted, free) == wanted


def test_the_rate_of_the_package_is_paid():
    """The worst interval misses more often than stated, which makes rates smaller, the
    more, the smaller they are; and never by what no trial bears out.
    """
    worst = max(line.times(1e-4) for line in read_calibration())
    factors = [wanted / nominal_rate(wanted) for wanted in (1e-4, 1e-6, 1e-8)]
    assert worst > 1.2
    assert worst < factors[0] < factors[1] < factors[2] < 1e3
    assert factors[0] < 2.0 * worst

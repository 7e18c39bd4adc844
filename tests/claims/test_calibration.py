"""How often intervals miss: the table, its law for small rates, and what is paid."""

import csv
import math
import tomllib

import pytest

from montecarlo.attention.quantities import QUANTILES, ROW_QUANTITIES
from montecarlo.claims import calibration
from montecarlo.claims.calibration import (
    EXACT,
    FEW_ROWS,
    KURTOSIS,
    OF_FEW_ROWS,
    calibrate,
    interval_kind,
    nominal_rate,
    read_calibration,
)
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.checks import Check
from montecarlo.claims.running import Study, exact_value, needed_budgets
from montecarlo.claims.simulation import Evidence
from montecarlo.study.presets import PRESETS
from studies.calibration import (
    COUNTS,
    NAMES,
    RATES,
    RECORD,
    SIDES,
    TABLE,
    Line,
    cases,
    read_lines,
    sum_up,
)

KINDS = {
    *("mean", "divisor ratio", "pairs", "slope", "share"),
    *("quantile", "quantile ratio", OF_FEW_ROWS, KURTOSIS),
}


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
    read = read_lines()
    assert {line.kind for line in read} == KINDS
    assert {line.kind for line in read if line.looks > 1} > {"mean", "slope"}
    assert all(line.misses[s, 1e-4] <= line.trials for line in read for s in SIDES)


def test_the_record_is_that_of_the_counts():
    """What the package pays is computed from the table, and written in full."""
    assert RECORD.read_text(encoding="utf-8") == sum_up(read_lines())


def test_every_kind_that_is_judged_is_counted():
    """Whatever the standard preset judges has an interval of a kind in the table."""
    study = Study(read_catalogue(), PRESETS["standard"])
    evidence = Evidence(needed_budgets(study), study.grid.divisors, exact_value)
    found = {
        interval_kind(check)
        for check in study.catalogue.checks()
        if check.relation != "tends_to" and evidence.cases(check)
    }
    assert len(found) > 5
    assert found <= {*read_calibration()["growth"], EXACT}
    assert set(QUANTILES) > {"median"}


@pytest.mark.parametrize(
    ("quantity", "summary", "divisor", "relation", "kind"),
    [
        ("entropy", "mean", "sqrt", "at_most", "mean"),
        ("entropy", "mean", "none/sqrt", "at_most", "divisor ratio"),
        ("jacobian_frobenius", "share_above", "none/sqrt", "at_most", "mean"),
        ("jacobian_frobenius", "spread", "none/sqrt", "at_most", "quantile ratio"),
        ("jacobian_frobenius", "median", "none/sqrt", "at_most", "quantile"),
        ("saturated", "mean", "none", "equals", "share"),
        ("jacobian_spectral", "mean", "sqrt", "at_most", OF_FEW_ROWS),
        ("jacobian_spectral", "mean", "none/sqrt", "at_most", OF_FEW_ROWS),
        ("jacobian_spectral", "median", "sqrt", "at_most", "quantile"),
        ("score_variance", "value", "sqrt", "equals", "pairs"),
        ("score_excess_kurtosis", "value", "none", "between", KURTOSIS),
        ("score_variance", "value", "none", "slope_between", "slope"),
        ("entropy", "mean", "sqrt", "slope_between", "slope"),
        ("training_learned", "mean", "sqrt", "at_least", EXACT),
        ("training_steps", "median", "none/sqrt", "at_least", EXACT),
    ],
)
def test_each_check_has_its_kind(quantity, summary, divisor, relation, kind):
    """By what its interval is made of."""
    assert interval_kind(Check(quantity, relation, summary, divisor)) == kind


def test_what_few_rows_are_evaluated_for_is_known():
    """The quantities that ask a block for its first rows are those that are named."""

    class Asked:
        def __getattr__(self, name):
            raise LookupError(name)

    found = set()
    for name, quantity in ROW_QUANTITIES.items():
        try:
            quantity.evaluate(Asked())
        except LookupError as asked:
            if asked.args[0] in ("jacobian_spectral", "element_gradient"):
                found.add(name)
    assert found == set(FEW_ROWS)


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


@pytest.fixture
def pay_for(monkeypatch):
    """Make the record one of these lines."""

    def change(*lines):
        record = tomllib.loads(sum_up(lines))
        monkeypatch.setattr(calibration, "read_calibration", lambda: record)

    return change


@pytest.mark.parametrize("wanted", [1e-2, 1e-4, 1.5e-6, 1e-9])
def test_intervals_that_are_paid_for_miss_as_often_as_wanted(pay_for, wanted):
    """By the worst line of its kind; one that misses less than stated costs nothing."""
    half = line_of(lambda rate: 0.5 * rate)
    pay_for(half, line_of(actual), half, half._replace(kind="share"))
    assert actual(nominal_rate(wanted, "mean")) == pytest.approx(wanted, rel=5e-3)
    assert nominal_rate(wanted, "share") == wanted
    assert nominal_rate(wanted, EXACT) == wanted


def test_what_was_not_counted_has_no_rate(pay_for):
    """A kind without a line is not taken for one that costs nothing."""
    pay_for(line_of(actual))
    with pytest.raises(KeyError, match="slope"):
        nominal_rate(1e-4, "slope")


def test_the_rate_of_the_package_is_paid():
    """The worst interval misses more often than stated, which makes rates smaller, the
    more, the smaller they are; and never by what no trial bears out.
    """
    lines = read_lines()
    worst = max(lines, key=lambda line: line.times(1e-4))
    times = worst.times(1e-4)
    factors = [w / nominal_rate(w, worst.kind) for w in (1e-4, 1e-6, 1e-8)]
    assert times > 1.2
    assert times < factors[0] < factors[1] < factors[2] < 1e5
    # what was counted at a stated 1e-4, asked for, states about that again
    assert 0.5e-4 < nominal_rate(times * 1e-4, worst.kind) < 1e-4


def test_what_is_recorded_is_what_is_paid():
    """By kind, to three digits; no kind is paid back."""
    share = 1e-6
    paid = calibrate(share).divided_by
    assert set(paid) == KINDS | {EXACT}
    for kind, factor in paid.items():
        assert share / factor == pytest.approx(nominal_rate(share, kind), rel=5e-3)
        assert factor >= 1.0
    assert paid[EXACT] == 1.0

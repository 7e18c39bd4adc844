"""Rows of Gaussian scores against printed values, other quadratures and identities."""

import dataclasses

import numpy as np
import pytest
from scipy import integrate, special

from montecarlo.theory import row_integrals
from montecarlo.theory.row_integrals import (
    ROW_NAMES,
    expect_gaussian_row,
    gaussian_profile,
    integrate_largest,
    integrate_row,
    largest_profile,
)

#: (n, s): Σp², p_max, H, ‖J‖_F², as printed in the table of exact values (found with
#: another quadrature; 4 of the 72 are a unit off in the last digit).
PRINTED = {
    (16, 1): ("0.1325", "0.2466", "2.357", "0.0935"),
    (16, 8): ("0.7825", "0.8458", "0.405", "0.0608"),
    (64, 1): ("0.03880", "0.1073", "3.685", "0.0341"),
    (64, 4): ("0.4582", "0.5936", "1.308", "0.1008"),
    (64, 8): ("0.7118", "0.7935", "0.576", "0.0731"),
    (256, 1): ("0.01033", "0.0430", "5.052", "0.00992"),
    (256, 8): ("0.6529", "0.7488", "0.738", "0.0806"),
    (256, 16): ("0.8240", "0.8756", "0.327", "0.0496"),
    (1024, 1): ("0.002635", "0.0162", "6.433", "0.002606"),
    (1024, 2): ("0.02854", "0.1064", "5.027", "0.0211"),
    (1024, 4): ("0.2725", "0.4253", "2.349", "0.0841"),
    (1024, 8): ("0.6017", "0.7092", "0.899", "0.0852"),
    (1024, 16): ("0.7978", "0.8566", "0.386", "0.0550"),
    (1024, 32): ("0.8986", "0.9289", "0.179", "0.0307"),
    (16384, 1): ("1.658e-4", "0.00206", "9.204", "1.657e-4"),
    (16384, 4): ("0.1476", "0.2894", "3.692", "0.0570"),
    (16384, 8): ("0.5144", "0.6394", "1.225", "0.0889"),
    (16384, 32): ("0.8760", "0.9128", "0.223", "0.0365"),
}
COLUMNS = (
    "inverse_participation",
    "weight_max",
    "entropy",
    "jacobian_frobenius_squared",
)
#: Other quadratures are good to this, relative.
CLOSE = 1e-8


def expect(n_keys, std):
    """Values and errors by name."""
    row = expect_gaussian_row(float(std), n_keys)
    return dict(zip(ROW_NAMES, zip(row.values, row.errors, strict=True), strict=True))


def expect_pair(std):
    """A row of two keys: everything is a function of x_1 - x_2 ~ N(0, 2 s²)."""

    def mean(function):
        def integrand(g):
            gap = np.sqrt(2.0) * std * g
            return 2.0 * function(gap) * np.exp(-0.5 * g * g) / np.sqrt(2.0 * np.pi)

        knots = [x for x in (1 / std, 5 / std, 30 / std) if x < 12]
        return integrate.quad(integrand, 0, 12, points=knots or None, epsabs=1e-14)[0]

    def product(gap):  # p (1 - p)
        return special.expit(gap) * special.expit(-gap)

    return {
        "log_partition": mean(lambda x: np.log1p(np.exp(-x)) + 0.5 * x),
        "entropy": mean(lambda x: np.log1p(np.exp(-x)) + x * special.expit(-x)),
        "inverse_participation": mean(lambda x: 1.0 - 2.0 * product(x)),
        "jacobian_trace": mean(lambda x: 2.0 * product(x)),
        "jacobian_frobenius_squared": mean(lambda x: 4.0 * product(x) ** 2),
        "weight_max": mean(special.expit),
    }


def expect_by_textbook(n, std):
    """The same integrals in another form: 1/Z^k by powers, a dense grid of the score,
    cancelling differences, ln Z by Frullani; p_max over all rows that its key leads.
    """
    g = np.linspace(-10.0, 10.0, 2001)
    density = np.exp(-0.5 * g * g) / np.sqrt(2.0 * np.pi)
    step_u = 0.08
    u = np.arange(-(np.log(n) + 10.0 * std + 36.0), 5.0 + 10.0 * std, step_u)
    w = np.exp(u[:, np.newaxis] + std * g)
    e = np.exp(-w) * density
    step_g = g[1] - g[0]
    phi, a2, a3, a4 = (step_g * (w**k * e).sum(axis=1) for k in (0, 2, 3, 4))
    y2, y3, y4 = (
        n / special.gamma(k) * step_u * (a * phi ** (n - 1)).sum()
        for k, a in ((2, a2), (3, a3), (4, a4))
    )
    squared = y4 + n * (n - 1) / 6.0 * step_u * (a2 * a2 * phi ** (n - 2)).sum()
    log_partition = step_u * (np.exp(-np.exp(u)) - phi**n).sum()
    below = integrate.cumulative_simpson(e, dx=step_g, axis=1, initial=0.0)
    largest = n * step_u * step_g * (w * e * below ** (n - 1)).sum()
    return {
        "log_partition": log_partition,
        "entropy": log_partition - std**2 * (1.0 - y2),
        "inverse_participation": y2,
        "jacobian_trace": 1.0 - y2,
        "jacobian_frobenius_squared": y2 - 2.0 * y3 + squared,
        "weight_max": largest,
    }


@pytest.mark.parametrize(("n_keys", "std"), PRINTED)
def test_values_are_the_printed_ones(n_keys, std):
    """Every printed digit is ours, up to one in the last."""
    found = expect(n_keys, std)
    for name, printed in zip(COLUMNS, PRINTED[n_keys, std], strict=True):
        mantissa, _, exponent = printed.partition("e")
        digits = len(mantissa.partition(".")[2])
        last = 10.0 ** (int(exponent or 0) - digits)
        assert abs(found[name][0] - float(printed)) <= 1.01 * last, name


@pytest.mark.parametrize("std", [1e-3, 0.1, 0.499, 0.501, 1.0, 4.0, 22.0, 64.0])
def test_two_keys_agree_with_one_integral(std):
    """A row of two keys agrees with adaptive quadrature over the gap."""
    found = expect(2, std)
    for name, value in expect_pair(std).items():
        assert abs(found[name][0] - value) <= CLOSE * value, name


@pytest.mark.parametrize(
    ("n_keys", "std"), [(3, 0.2), (5, 7.0), (32, 0.3), (64, 1.5), (512, 3.0)]
)
def test_rows_agree_with_the_textbook_integrals(n_keys, std):
    """Other grids and other formulas give the same values."""
    found = expect(n_keys, std)
    for name, value in expect_by_textbook(n_keys, std).items():
        assert abs(found[name][0] - value) <= CLOSE * value, name


@pytest.mark.parametrize("n_keys", [2, 16, 1000, 16384])
@pytest.mark.parametrize("std", [1 / 64, 0.3, 1.0, 5.0, 60.0])
def test_identities_hold(n_keys, std):
    """E H = E ln Z - s² E tr J, E tr J = 1 - E Σp², and d E ln Z/ds = s E tr J."""
    found = {name: value for name, (value, _) in expect(n_keys, std).items()}
    log_partition, trace = found["log_partition"], found["jacobian_trace"]
    rounding = 1e-12 * log_partition
    assert abs(found["entropy"] - log_partition + std**2 * trace) <= rounding
    assert abs(trace - 1.0 + found["inverse_participation"]) <= 1e-12
    at = [expect(n_keys, std * f)["log_partition"][0] for f in (0.98, 0.99, 1.01, 1.02)]
    slope = (at[0] - 8.0 * at[1] + 8.0 * at[2] - at[3]) / (0.12 * std)
    # The fourth-order difference is off by 1e-8 of the slope, rounding by 1e-12/step.
    assert abs(slope - std * trace) <= 1e-6 * std * trace + 1e-11 / std


@pytest.mark.parametrize("n_keys", [2, 3, 100, 16384])
@pytest.mark.parametrize("std", [1e-3, 0.7, 10.0, 200.0])
def test_weights_sum_to_one(n_keys, std):
    """The integral for E Σp is 1, at once and with twice the step."""
    profile = gaussian_profile(np.array([std]))
    for stride in (1, 2):
        total = row_integrals._sums(profile, n_keys, stride)[0, 0]
        assert abs(total - 1.0) <= 1e-11


@pytest.mark.parametrize("n_keys", [2, 50, 16384])
def test_tiny_spread_leaves_uniform_rows(n_keys):
    """At s = 1e-5 the values are those of weights 1/n, up to s² and, for p_max, s."""
    found = {name: value for name, (value, _) in expect(n_keys, 1e-5).items()}
    n = float(n_keys)
    uniform = {
        "log_partition": np.log(n),
        "entropy": np.log(n),
        "inverse_participation": 1 / n,
        "jacobian_trace": 1 - 1 / n,
        "jacobian_frobenius_squared": (n - 1) / n**2,
    }
    for name, value in uniform.items():
        assert abs(found[name] - value) <= 1e-9 * value, name
    assert 1 / n < found["weight_max"] < (1 + 5e-5) / n


def test_stated_errors_are_small():
    """What is called exact is: the stated errors are below 1e-6, mostly far below."""
    for n_keys, std in [(2, 0.01), (128, 1.0), (16384, 0.1), (1024, 50.0)]:
        for name, (value, error) in expect(n_keys, std).items():
            assert error <= 1e-6 * value, name


def test_a_grid_that_is_too_coarse_owns_up(monkeypatch):
    """With four times the steps the stated errors cover what they do to the values."""
    exact = expect(256, 1.0)
    profile = gaussian_profile(np.array([1.0]))
    thin = {
        field.name: getattr(profile, field.name)[..., ::6]
        for field in dataclasses.fields(profile)
    }
    coarse = integrate_row(row_integrals.Profile(**thin), 256)
    largest = largest_profile(np.array([1.0]))
    monkeypatch.setattr("montecarlo.theory.row_integrals.STEP_G", 0.04 * 10)
    thin_largest = dataclasses.replace(
        largest,
        g=largest.g[::10],
        log_psi=largest.log_psi[:, ::10],
        log_below=largest.log_below[::10],
    )
    coarse_largest = integrate_largest(thin_largest, 256)
    values = [*coarse.values[0], *coarse_largest.values[0]]
    errors = [*coarse.errors[0], *coarse_largest.errors[0]]
    for name, value, error in zip(ROW_NAMES, values, errors, strict=True):
        wrong = abs(value - exact[name][0])
        assert wrong > 1e-9 * value, name  # the grid is too coarse indeed
        assert wrong <= error, name


@pytest.mark.parametrize("field", ["log_phi", "a1", "a1_log", "a2"])
def test_a_wrong_profile_is_noticed(field):
    """A part in 1e6 in any of the four functions moves a value beyond its error."""
    profile = gaussian_profile(np.array([2.0]))
    wrong = dataclasses.replace(
        profile, **{field: getattr(profile, field) * (1 + 1e-6)}
    )
    right = integrate_row(profile, 64)
    moved = np.abs(integrate_row(wrong, 64).values - right.values)
    assert (moved > 1e3 * right.errors).any()

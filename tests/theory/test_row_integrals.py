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


@pytest.mark.parametrize("std", [1e-3, 0.1, 0.499, 0.501, 1.0, 4.0, 22.0, 64.0])
def test_two_keys_agree_with_one_integral(std):
    """A row of two keys agrees with adaptive quadrature over the gap."""
    found = expect(2, std)
    for name, value in expect_pair(std).items():
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

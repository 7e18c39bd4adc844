"""Rows of Gaussian scores: identities, and the errors of a grid that is too coarse."""

import numpy as np
import pytest

from montecarlo.theory import row_integrals
from montecarlo.theory.row_integrals import (
    ROW_NAMES,
    expect_gaussian_row,
    gaussian_profile,
    integrate_largest,
    integrate_row,
    largest_profile,
)


def expect(n_keys, std):
    """Values and errors by name."""
    row = expect_gaussian_row(float(std), n_keys)
    return dict(zip(ROW_NAMES, zip(row.values, row.errors, strict=True), strict=True))


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
    thin = row_integrals.Profile(*(part[..., ::6] for part in profile))
    coarse = integrate_row(thin, 256)
    largest = largest_profile(np.array([1.0]))
    monkeypatch.setattr("montecarlo.theory.row_integrals.STEP_G", 0.04 * 10)
    thin_largest = largest._replace(
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

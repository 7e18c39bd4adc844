"""What anybody may ask of a row, against 30-digit quadrature that shares no code."""

import csv

import mpmath
import numpy as np
import pytest
from scipy import integrate, special, stats

from montecarlo.theory import expected_row
from montecarlo.theory.exact_rows import BIASED_NAMES, expect_biased_row
from studies import exact_values
from tests.theory.thirty_digits import NAMES, by_powers, leading_weight

#: (n, s): E ln Z, E H, E Σp², E ‖J‖_F² and E p_max, by `by_thirty_digits`.
THIRTY_DIGITS = {
    (2, 1.0): (
        *(0.90266190772003, 0.5395000616884, 0.63683815396837),
        *(0.14810644834295, 0.72521345442184),
    ),
    (16, 0.3): (
        *(2.8146553897253, 2.7307679859765, 0.067917736124536),
        *(0.062526251166678, 0.10272574469223),
    ),
    (128, 8.0): (
        *(21.064055222651, 0.657569851101, 0.68114866606952),
        *(0.077316776729805, 0.77039972857118),
    ),
    (4096, 2.0): (
        *(10.312130897053, 6.350879104618, 0.0096870518911938),
        *(0.008111663885985, 0.056447686439001),
    ),
    (131072, 4.0): (
        *(19.614610121055, 4.9613095660921, 0.084168715314814),
        *(0.037336446627025, 0.20478054169729),
    ),
    (1000000, 1.0): (
        *(14.315509698826, 13.315512417087, 2.7182611069663e-6),
        *(2.7182283269795e-6, 8.1151470165658e-5),
    ),
}
#: What the public oracle promises, relatively; the printed digits are good to 1e-13.
PROMISED, DIGITS = 1e-9, 1e-13


@pytest.mark.parametrize("place", THIRTY_DIGITS)
def test_thirty_values(place):
    """Each within what is promised, and within the error that is told with it."""
    n_keys, std = place
    row = expected_row(n_keys, std=float(std))
    for name, expected in zip(NAMES, THIRTY_DIGITS[place], strict=True):
        found = row[name]
        off = abs(found.value - expected)
        assert off <= PROMISED * expected, name
        assert off <= found.error + DIGITS * expected, name


@pytest.mark.slow
def test_printed_digits_are_those_of_the_quadrature():
    """The quadrature, walked again at one place, gives what is printed."""
    printed = dict(zip(NAMES, THIRTY_DIGITS[4096, 2.0], strict=True))
    with mpmath.workdps(30):
        found = by_powers(4096, mpmath.mpf(2))
    for name, value in found.items():
        assert float(value) == pytest.approx(printed[name], rel=DIGITS)


@pytest.mark.parametrize(("n_keys", "std"), THIRTY_DIGITS)
def test_printed_largest_weights_are_those_of_the_quadrature(n_keys, std):
    """In double precision, which leaves ten digits at a million keys."""
    printed = dict(zip(NAMES, THIRTY_DIGITS[n_keys, std], strict=True))["weight_max"]
    assert leading_weight(n_keys, std) == pytest.approx(printed, rel=1e-10)


@pytest.mark.parametrize("divisor", ["sqrt", "2*d_k^0.6"])
def test_a_query_is_averaged_over_its_length(divisor):
    """Over |q| ~ chi, by an adaptive quadrature."""
    number = {"sqrt": 4.0, "2*d_k^0.6": 2 * 16**0.6}[divisor]
    found = expected_row(64, d_k=16, divisor=divisor)

    for name in ("entropy", "weight_max"):

        def weighed(length, name=name):
            std = float(length / number)
            return stats.chi.pdf(length, 16) * expected_row(64, std=std)[name].value

        expected, _ = integrate.quad(weighed, 0.1, 12.0, epsrel=1e-10)
        assert found[name].value == pytest.approx(expected, rel=1e-8)


def test_table_for_others_is_what_the_oracle_gives():
    """Its places are those of the script, its six digits those of the oracle."""
    with exact_values.TABLE.open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    made = [one for place in exact_values.places() for one in exact_values.lines(place)]
    assert list(table[0]) == list(made[0])
    for found, line in zip(table, made, strict=True):
        value, error = (float(found[name]) for name in ("value", "error"))
        assert all(found[name] == str(line[name]) for name in list(line)[:5])
        # the last digit may be rounded to either side on another machine
        assert value == pytest.approx(float(line["value"]), rel=1.1e-5)
        assert 0.0 < error < 3e-8 * value


@pytest.mark.parametrize("n_keys", [2, 3, 17, 1000])
@pytest.mark.parametrize("std", [0.2, 4.0])
def test_no_bias_is_the_row_without_one(n_keys, std):
    """The integrals for one key that differs, where it does not, are the other ones."""
    biased, usual = expect_biased_row(std, 0.0, n_keys), expected_row(n_keys, std=std)
    for name, value in zip(BIASED_NAMES[:-1], biased.values, strict=False):
        assert value == pytest.approx(usual[name].value, rel=1e-12)
    assert biased.values[-1] == pytest.approx(1 / n_keys, rel=1e-12)
    with pytest.raises(KeyError, match="weight_max, got 'entropies'"):
        assert usual["entropies"]


@pytest.mark.parametrize(
    ("n_keys", "std", "bias"),
    [(2, 1.0, 3.0), (3, 1.0, -2.0), (200, 0.3, 5.0), (1000, 2.0, 8.0)],
)
def test_a_biased_row_is_what_is_drawn(n_keys, std, bias):
    """Six means within 6 standard errors: a false alarm once in 10 million runs."""
    rng = np.random.default_rng(n_keys)
    rows = 2_000_000 // max(n_keys, 50)
    scores = std * rng.standard_normal((rows, n_keys))
    scores[:, 0] += bias
    log_z = special.logsumexp(scores, axis=1)
    weights = special.softmax(scores, axis=1)
    second, third = (weights**2).sum(axis=1), (weights**3).sum(axis=1)
    drawn = {
        "log_partition": log_z,
        "entropy": log_z - (weights * scores).sum(axis=1),
        "inverse_participation": second,
        "jacobian_trace": 1.0 - second,
        "jacobian_frobenius_squared": second - 2.0 * third + second**2,
        "biased_weight": weights[:, 0],
    }
    exact = expected_row(n_keys, std=std, bias=bias)
    for name, values in drawn.items():
        error = values.std() / np.sqrt(rows)
        assert abs(values.mean() - exact[name].value) < 6.0 * error, name

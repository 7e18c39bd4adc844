"""Exact expectations over a row, and the distribution of its largest weight.

In: the number of keys, and the standard deviation of the scores of a row, or d_k and a
divisor for standard normal queries and keys; perhaps the mean of one score, or a mask.
Out: each expectation with its numerical error.  The table in docs/exact-values.csv is
made of these.

>>> from montecarlo.theory import expected_row
>>> row = expected_row(1_000_000, std=1.0)
>>> round(row["entropy"].value, 6), row["entropy"].error < 1e-9
(13.315512, True)
"""

import math

import numpy as np

from montecarlo.attention.divisors import parse_divisor
from montecarlo.attention.masks import parse_mask
from montecarlo.errors import InputError, show
from montecarlo.names import MOST_SIZE, require_number, require_text, require_whole
from montecarlo.theory.masked_rows import ALONE, mean_over_mask
from montecarlo.theory.references import MOST_STD
from montecarlo.theory.row_expectations import expect_gaussian_length
from montecarlo.theory.row_integrals import (
    ROUNDING,
    ROW_NAMES,
    Array,
    Expectations,
    Profile,
    Reference,
    expect_gaussian_row,
    grid_of,
    profile_at,
)
from montecarlo.theory.weight_distribution import (
    quantile_of_queries,
    share_at,
    share_of_queries,
    solve,
)

#: Keys of a row at most, a million and some: beyond, grids do not reach far enough.
MOST_KEYS = 2**20
#: Below this standard deviation a row is uniform to nine digits, and is not asked for.
LEAST_STD = 1e-6
#: Exponentials of scores this far from the others are out of reach.
MOST_BIAS = 4096.0


def expected_row(  # noqa: PLR0913 - what a row is
    n_keys: int,
    *,
    std: float | None = None,
    d_k: int | None = None,
    divisor: str | float = "sqrt",
    bias: float = 0.0,
    mask: str = "none",
) -> dict[str, Reference]:
    """Return the exact expectations over a row of softmax weights.

    Parameters
    ----------
    n_keys : int
        Scores of the row, 2 to `MOST_KEYS`.
    std : float, optional
        The scores are independent and N(0, std²): `LEAST_STD` to 4096.
    d_k : int, optional
        In the place of it: scores are those of a standard normal query with standard
        normal keys, divided; given the query their standard deviation is |q| over the
        divisor, and it is averaged over |q|.
    divisor : str or float
        Only with ``d_k``: a name, a number or a formula, as `montecarlo.measure` has;
        one with n is meant at ``n_keys``, under a mask as well.
    bias : float
        Only with ``std``: the mean of one of the scores, which a sink has, or a key
        that is looked for; up to `MOST_BIAS` either way.
    mask : str
        Whose rows to take the mean over: of ``causal`` the i-th has i keys, of
        ``window(w)`` w at most, of ``full`` and ``none`` all.  The key with the bias
        is in all of them.

    Returns
    -------
    dict
        By name: ``log_partition`` (E ln Z), ``entropy`` (in nats),
        ``inverse_participation`` (E Σp²), ``jacobian_trace`` (E tr J),
        ``jacobian_frobenius_squared`` (E ‖J‖_F²) and ``weight_max`` (E p_max), each
        with ``value`` and ``error``, how far numerics may have moved it.  With a bias
        ``biased_weight``, that of the key that has it, in the place of the last.

    Raises
    ------
    InputError
        If a number is out of its range, or not one of ``std`` and ``d_k`` is given.

    Notes
    -----
    No approximation by large n or large d_k is made: for Gaussian keys the scores of a
    row are exactly normal given the query.  The integrals are those of
    `montecarlo.theory.row_integrals` and of `expect_biased_row`.

    Examples
    --------
    >>> round(expected_row(1024, d_k=64, divisor="none")["weight_max"].value, 4)
    0.7057
    >>> round(expected_row(1024, std=1.0, bias=7.43)["biased_weight"].value, 2)
    0.5
    >>> round(expected_row(8, std=1.0, mask="causal")["weight_max"].value, 2)
    0.58
    """
    n_keys = require_whole("n_keys", n_keys, 2, MOST_KEYS)
    bias = require_number("bias", bias, -MOST_BIAS, MOST_BIAS)
    rows = parse_mask(require_text("mask", mask))
    if rows.width > n_keys:
        raise InputError(
            f"mask window(w) must have a w of at most n_keys, {n_keys}, got "
            f"{rows.width}"
        )
    scale, d_k = scales_of(n_keys, std, d_k, divisor)
    if bias and d_k is not None:
        raise InputError(f"bias must be 0 where d_k is given, got {bias!r}")

    def expect(n: float) -> Expectations:
        if d_k is not None:
            return expect_gaussian_length(d_k, n, scale)
        if bias:
            return expect_biased_row(scale, bias, n)
        return expect_gaussian_row(scale, n)

    # a row of one key: Z is its exponential, whose mean logarithm is the bias
    alone = ALONE + np.array([bias, 0.0, 0.0, 0.0, 0.0, 0.0])
    expectations = mean_over_mask(expect, alone, n_keys, rows)
    names = BIASED_NAMES if bias else ROW_NAMES
    values, errors = expectations.values.tolist(), expectations.errors.tolist()
    return dict(zip(names, map(Reference, values, errors), strict=True))


def largest_weight_share(
    threshold: float,
    n_keys: int,
    *,
    std: float | None = None,
    d_k: int | None = None,
    divisor: str | float = "sqrt",
) -> Reference:
    """Return the share of attention rows whose largest weight reaches a threshold.

    Parameters
    ----------
    threshold : float
        t, between 0 and 1; 0.9 is what pages call saturated.
    n_keys : int
        Scores of the row, 2 to 2**20.
    std, d_k, divisor
        As for `expected_row`: independent N(0, std²) scores, or those of a standard
        normal query with standard normal keys, averaged over the length of the query.

    Returns
    -------
    Reference
        P(p_max >= t), and an estimate of how far numerics have moved it: from what
        fewer terms, steps and lengths give, which agree to `AGREED` unless the most
        terms were reached.

    Raises
    ------
    InputError
        If a number is out of its range, or not one of ``std`` and ``d_k`` is given.

    Notes
    -----
    With z the largest score in standard deviations s, and w = exp(-gap) of the others::

        P(p_max >= t) = P(Σ w <= (1 - t)/t)
        E exp(-θ Σ w) = n ∫ φ(z) ψ(θ, z)^(n-1) dz
        ψ(θ, z)       = ∫ over gaps y > 0 of φ(z - y/s) exp(-θ exp(-y)) dy/s

    The transform over θ is inverted by the Euler sum of Abate and Whitt, ORSA Journal
    on Computing 7 (1995) 36.  From t = 1/2 on, with d_k, the share is the mean number
    of weights of at least t, by `weight_distribution`.  Nothing is approximated for
    large n or d_k.

    Examples
    --------
    >>> round(largest_weight_share(0.5, 2, std=1.0).value, 6)
    1.0
    """
    threshold = require_number("threshold", threshold, 0.0, 1.0, ends=False)
    n_keys = require_whole("n_keys", n_keys, 2, MOST_KEYS)
    scale, d_k = scales_of(n_keys, std, d_k, divisor)
    if d_k is None:
        return share_at(scale, n_keys, threshold)
    return share_of_queries(d_k, n_keys, scale, threshold)


def largest_weight_quantile(
    probability: float,
    n_keys: int,
    *,
    std: float | None = None,
    d_k: int | None = None,
    divisor: str | float = "sqrt",
) -> Reference:
    """Return a quantile of the largest weight of an attention row.

    Parameters
    ----------
    probability : float
        Between 0 and 1; 0.5 for the median.
    n_keys, std, d_k, divisor
        As for `largest_weight_share`.

    Returns
    -------
    Reference
        The weight t with P(p_max < t) = probability, by root finding.  Its error is
        that of the share over the density of p_max.

    Raises
    ------
    InputError
        As for `largest_weight_share`.

    Examples
    --------
    >>> round(largest_weight_quantile(0.5, 128, d_k=64).value, 4)
    0.0604
    """
    probability = require_number("probability", probability, 0.0, 1.0, ends=False)
    n_keys = require_whole("n_keys", n_keys, 2, MOST_KEYS)
    scale, d_k = scales_of(n_keys, std, d_k, divisor)
    if d_k is None:
        return solve(probability, n_keys, lambda t: share_at(scale, n_keys, t))
    return quantile_of_queries(d_k, n_keys, scale, probability)


def scales_of(
    n_keys: int, std: float | None, d_k: int | None, divisor: str | float
) -> tuple[float, int | None]:
    """Return the scale of rows given by ``std``, or by ``d_k`` and ``divisor``.

    Returns
    -------
    float, int or None
        Standard deviation of a score, with ``d_k`` that over |q|; and ``d_k``.

    Raises
    ------
    InputError
        As for `expected_row`.
    """
    if (std is None) == (d_k is None):
        raise InputError(
            f"one of std and d_k must be given, got {show(std)} and {show(d_k)}"
        )
    if std is not None:
        return require_number("std", std, LEAST_STD, MOST_STD), None
    d_k = require_whole("d_k", d_k, 1, MOST_SIZE)
    if not isinstance(divisor, str):
        divisor = repr(require_number("divisor", divisor))
    rule = parse_divisor(divisor)
    number = rule.value(d_k, n_keys)
    spread, over = math.sqrt(d_k) / number, f"the divisor {rule.name!r}"
    require_number(f"sqrt(d_k) over {over}", spread, LEAST_STD, MOST_STD)
    return 1.0 / number, d_k


#: Order of the last axis: those of a row but for the largest weight, and the weight of
#: the key whose score has the mean.
BIASED_NAMES = (*ROW_NAMES[:-1], "biased_weight")


def expect_biased_row(std: float, bias: float, n_keys: float) -> Expectations:
    """Return the expectations over a row of n scores, one N(bias, s²), others N(0, s²).

    Parameters
    ----------
    std : float
        s, positive.
    bias : float
        Positive for a key that attracts, as a sink does.
    n_keys : float
        The one with the mean is among them; 2 at least.  Between two whole numbers the
        expectations are continued smoothly.

    Returns
    -------
    Expectations
        Shape (6,).  The error is the difference from twice the step, plus how far the
        weights are from summing to 1.

    Notes
    -----
    The integrals are those of `row_integrals.integrate_row`, written out for one key
    that differs: with φ, a1, a2 of the others and Φ, A1, A2 of that key ::

        E Σp     = ∫ [A1 φ^(n-1) + (n-1) a1 Φ φ^(n-2)] du = 1         (self-check)
        E Σp²    = ∫ [A2 φ^(n-1) + (n-1) a2 Φ φ^(n-2)] du
        E tr J   = ∫ [2(n-1) A1 a1 φ^(n-2) + (n-1)(n-2) a1² Φ φ^(n-3)] du

    and so on; every term is positive.
    """
    stds = np.array([std])
    u, stride = grid_of(stds, bias)
    usual = profile_at(stds, u, stride)
    # exp(u + bias + x): the same functions, further on; ln w stands in a1_log as it is
    other = profile_at(stds, u + bias, stride)
    fine = _sums(usual, other, n_keys, 1)
    coarse = _sums(usual, other, n_keys, 2)
    values = fine[1:]
    errors = np.abs(values - coarse[1:])
    errors += (abs(fine[0] - 1.0) + ROUNDING) * np.abs(values)
    return Expectations(values, errors)


def _sums(usual: Profile, other: Profile, n_keys: float, stride: int) -> Array:
    """Sum the weights, and what `BIASED_NAMES` says, on every few points."""
    u, n = usual.u[::stride], float(n_keys)
    a1, a1_log, a2 = (part[0, ::stride] for part in (usual.a1, usual.a1_log, usual.a2))
    b1, b1_log, b2 = (part[0, ::stride] for part in (other.a1, other.a1_log, other.a2))
    log_phi, log_other = usual.log_phi[0, ::stride], other.log_phi[0, ::stride]

    def others(n_chosen: int, *, with_biased: bool) -> Array:
        """Ordered choices of some usual keys, times φ of all the other keys."""
        ways = np.prod([n - 1.0 - i for i in range(n_chosen)])
        rest = (n - 1.0 - n_chosen) * log_phi + (0.0 if with_biased else log_other)
        product: Array = max(ways, 0.0) * np.exp(rest)
        return product

    def both(biased: Array, usual_part: Array) -> Array:
        """Sum something of one key over all the keys."""
        mine = biased * others(0, with_biased=True)
        return mine + usual_part * others(1, with_biased=False)

    two = others(1, with_biased=True), others(2, with_biased=False)
    three = others(2, with_biased=True), others(3, with_biased=False)
    trace = 2.0 * b1 * a1 * two[0] + a1 * a1 * two[1]
    frobenius = 2.0 * (2.0 * b2 * a2 * two[0] + a2 * a2 * two[1])
    frobenius += (b2 * a1 * a1 + 2.0 * a2 * a1 * b1) * three[0]
    frobenius += a2 * a1 * a1 * three[1]
    weights = both(b1, a1)
    parts = (
        weights,
        -u * weights,
        -both(b1_log + np.euler_gamma * b1, a1_log + np.euler_gamma * a1),
        both(b2, a2),
        trace,
        frobenius / 6.0,
        b1 * others(0, with_biased=True),
    )
    sums: Array = (u[1] - u[0]) * np.stack([part.sum() for part in parts])
    sums[1] -= np.euler_gamma
    return sums

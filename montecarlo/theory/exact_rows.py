"""Exact expectations over an attention row, and the distribution of its largest weight.

In: the number of keys and either the standard deviation of the scores, or d_k and a
divisor for standard normal queries and keys.  Optionally one score has a mean, or a
mask is applied.  Out: each expectation with its numerical error.  They fill the
table docs/exact-values.csv.

>>> from montecarlo.theory import expected_row
>>> row = expected_row(1_000_000, std=1.0)
>>> round(row["entropy"].value, 6), row["entropy"].error < 1e-9
(13.315512, True)
"""

import math
from functools import partial
from typing import NoReturn

import numpy as np

from montecarlo.attention.divisors import parse_divisor
from montecarlo.attention.masks import parse_mask
from montecarlo.errors import InputError, show
from montecarlo.names import MOST_SIZE, require_number, require_text, require_whole
from montecarlo.theory.masked_rows import SINGLE_KEY_ROW, mean_over_mask
from montecarlo.theory.references import MOST_STD
from montecarlo.theory.row_expectations import expect_gaussian_query
from montecarlo.theory.row_integrals import (
    ROW_NAMES,
    Array,
    Expectations,
    Profile,
    Reference,
    compare_steps,
    expect_gaussian_row,
    gaussian_profile,
    score_grid,
)
from montecarlo.theory.weight_distribution import (
    quantile_of_queries,
    share_for_gaussian_query,
    share_for_std,
    solve_quantile,
)

#: Largest number of keys, limited by the reach of the integration grids.
MOST_KEYS = 2**20
#: Smallest standard deviation of scores.  Below it the weights are uniform to nine
#: digits.
LEAST_STD = 1e-6
#: Largest mean of the one biased score, limited by the range of exponentials.
MOST_BIAS = 4096.0


class _Expected(dict[str, Reference]):
    """Expectations by quantity; the `KeyError` for an unknown one names the others."""

    def __missing__(self, name: object) -> NoReturn:
        raise KeyError(f"quantity must be one of {', '.join(self)}, got {show(name)}")


def expected_row(  # noqa: PLR0913 - each one describes the row
    n_keys: int,
    *,
    std: float | None = None,
    d_k: int | None = None,
    divisor: str | float = "sqrt",
    bias: float = 0.0,
    mask: str = "none",
) -> dict[str, Reference]:
    """Return the exact expectations over a row of softmax weights.

    Exactly one of ``std`` and ``d_k`` is required.

    Parameters
    ----------
    n_keys : int
        Number of scores in the row, from 2 to `MOST_KEYS` (2**20).
    std : float, optional
        The scores are independent and N(0, std²); from `LEAST_STD` (1e-6) to 4096.
    d_k : int, optional
        The scores are q·k/divisor for independent standard normal q and k.  Given q
        they are N(0, (|q|/divisor)²); the result is averaged over |q|.
    divisor : str or float
        With ``d_k``: a name, a number or a formula, as in `montecarlo.measure`.  In a
        formula n is ``n_keys``, also under a mask.  It is ignored with ``std``.
    bias : float
        Only with ``std``: the mean of one of the scores, such as that of an attention
        sink; absolute value up to `MOST_BIAS` (4096).
    mask : str
        Over whose rows to average: row i of ``causal`` has i keys, that of
        ``window(w)`` at most w, that of ``full`` and ``none`` all.  Each row contains
        the key with the bias.

    Returns
    -------
    dict of str to Reference
        ``log_partition`` (E ln Z, Z the sum of the exponentials), ``entropy`` (E H, in
        nats), ``inverse_participation`` (E Σp²), ``jacobian_trace`` (E tr J, J the
        Jacobian of softmax), ``jacobian_frobenius_squared`` (E ‖J‖_F²) and
        ``weight_max`` (E p_max), each with ``value`` and numerical ``error``.  With a
        bias, ``biased_weight``, the mean weight of the key that has it, replaces
        ``weight_max``.

    Raises
    ------
    InputError
        If an argument is not usable, such as a number out of range or a window longer
        than the row; unless exactly one of ``std`` and ``d_k`` is given; if
        sqrt(d_k)/divisor is not from `LEAST_STD` to 4096; or for a ``bias`` other than
        0 with ``d_k``.

    Notes
    -----
    There is no approximation for large n or d_k: for Gaussian keys the scores of a row
    are exactly normal given the query.  The integrals are those of
    `montecarlo.theory.row_integrals` and of `expect_biased_row`.

    Examples
    --------
    >>> round(expected_row(1024, d_k=64, divisor="none")["weight_max"].value, 4)
    0.7057
    >>> round(expected_row(1024, std=1.0, bias=7.43)["biased_weight"].value, 2)
    0.5
    >>> round(expected_row(8, std=1.0, mask="causal")["weight_max"].value, 2)
    0.56
    """
    n_keys = require_whole("n_keys", n_keys, 2, MOST_KEYS)
    bias = require_number("bias", bias, -MOST_BIAS, MOST_BIAS)
    rows = parse_mask(require_text("mask", mask))
    if rows.width > n_keys:
        raise InputError(
            f"mask window(w) must have a w of at most n_keys, {n_keys}, got "
            f"{rows.width}"
        )
    scale, d_k = score_scale_of(n_keys, std, d_k, divisor)
    if bias and d_k is not None:
        raise InputError(f"bias must be 0 where d_k is given, got {bias!r}")

    def expect(n: float) -> Expectations:
        """Return the expectations over an unmasked row of n keys, shape (6,).

        With a ``d_k``, the scores are q·k times ``scale``.  Otherwise ``scale`` is
        their standard deviation, and one of them has the mean ``bias``.  n may be
        fractional.
        """
        if d_k is not None:
            return expect_gaussian_query(d_k, n, scale)
        if bias:
            return expect_biased_row(scale, bias, n)
        return expect_gaussian_row(scale, n)

    single_key = SINGLE_KEY_ROW.copy()
    single_key[0] = bias  # ln Z of one key is its score
    expectations = mean_over_mask(expect, single_key, n_keys, rows)
    names = BIASED_NAMES if bias else ROW_NAMES
    values, errors = expectations.values.tolist(), expectations.errors.tolist()
    return _Expected(zip(names, map(Reference, values, errors), strict=True))


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
        t, between 0 and 1.  Reports call a row saturated if its largest weight is at
        least 0.9.
    n_keys : int
        Number of scores in the row, from 2 to 2**20.
    std, d_k, divisor
        As for `expected_row`: independent N(0, std²) scores, or q·k/divisor for
        standard normal q and k.

    Returns
    -------
    Reference
        P(p_max >= t), with a numerical error that is estimated from the change with
        fewer terms, larger steps and fewer values of |q|.

    Raises
    ------
    InputError
        If a number is out of range, also sqrt(d_k)/divisor as for `expected_row`, or
        unless exactly one of ``std`` and ``d_k`` is given.

    Notes
    -----
    Let s be the standard deviation of the scores, s z the largest score, y > 0 the gap
    from another score to it, w = exp(-y), and φ the normal density::

        P(p_max >= t) = P(Σ w <= (1 - t)/t)
        E exp(-θ Σ w) = n ∫ φ(z) ψ(θ, z)^(n-1) dz
        ψ(θ, z)       = ∫ φ(z - y/s) exp(-θ exp(-y)) dy/s

    The Laplace transform in θ is inverted by the Euler sum of Abate and Whitt, ORSA
    Journal on Computing 7 (1995) 36.  With d_k and t >= 1/2, the share is the expected
    number of weights that are at least t: see `share_for_gaussian_query`.

    Examples
    --------
    >>> round(largest_weight_share(0.5, 2, std=1.0).value, 6)
    1.0
    """
    threshold = require_number("threshold", threshold, 0.0, 1.0, ends=False)
    n_keys = require_whole("n_keys", n_keys, 2, MOST_KEYS)
    scale, d_k = score_scale_of(n_keys, std, d_k, divisor)
    if d_k is None:
        return share_for_std(scale, n_keys, threshold)
    return share_for_gaussian_query(d_k, n_keys, scale, threshold)


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
        Level of the quantile, between 0 and 1; 0.5 for the median.
    n_keys, std, d_k, divisor
        As for `largest_weight_share`.

    Returns
    -------
    Reference
        The weight t with P(p_max < t) = probability, by root finding.  Its error is the
        error of the probability divided by the density of p_max.  With ``d_k``, weights
        that differ from 1 by less than 1e-12 are returned as 1.

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
    scale, d_k = score_scale_of(n_keys, std, d_k, divisor)
    if d_k is None:
        share = partial(share_for_std, scale, n_keys)
        return solve_quantile(probability, n_keys, share)
    return quantile_of_queries(d_k, n_keys, scale, probability)


def score_scale_of(
    n_keys: int, std: float | None, d_k: int | None, divisor: str | float
) -> tuple[float, int | None]:
    """Return the scale of the scores, after checking the arguments that determine it.

    Parameters are those of `expected_row`.

    Returns
    -------
    scale : float
        ``std`` if that is given, else 1/divisor.
    d_k : int or None

    Raises
    ------
    InputError
        If an argument is out of range, unless exactly one of ``std`` and ``d_k`` is
        given, or if sqrt(d_k)/divisor is not from `LEAST_STD` to 4096.
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


#: The quantities of `expect_biased_row`: the last is the weight of the biased key.
BIASED_NAMES = (*ROW_NAMES[:-1], "biased_weight")


def expect_biased_row(std: float, bias: float, n_keys: float) -> Expectations:
    """Return expectations over a row of N(0, s²) scores, of which one has another mean.

    Parameters
    ----------
    std : float
        s, positive.
    bias : float
        The other mean: one score is N(bias, s²).  Positive for an attention sink.
    n_keys : float
        Number n of all scores, at least 2; may be fractional.

    Returns
    -------
    Expectations
        Shape (6,), in the order of `BIASED_NAMES`.  The error is the change if the step
        is doubled, plus a relative error: the deviation of E Σp from 1, and rounding.

    Notes
    -----
    The integrals are those of `row_integrals.integrate_row`, with one key that differs.
    φ, a1 and a2 are the expectations in the `Profile` of the other keys, and Φ, A1 and
    A2 those of the biased key::

        E Σp     = ∫ [A1 φ^(n-1) + (n-1) a1 Φ φ^(n-2)] du = 1         (self-check)
        E Σp²    = ∫ [A2 φ^(n-1) + (n-1) a2 Φ φ^(n-2)] du
        E tr J   = ∫ [2(n-1) A1 a1 φ^(n-2) + (n-1)(n-2) a1² Φ φ^(n-3)] du

    and similarly for the others; every term is positive.
    """
    stds = np.array([std])
    u, stride = score_grid(stds, bias)
    usual = gaussian_profile(stds, (u, stride))
    # w = exp(u + bias + x): the same functions of a shifted u
    biased = gaussian_profile(stds, (u + bias, stride))
    return compare_steps(
        _biased_integrals(usual, biased, n_keys, 1),
        _biased_integrals(usual, biased, n_keys, 2),
    )


def _biased_integrals(
    usual: Profile, biased: Profile, n_keys: float, stride: int
) -> Array:
    """Return E Σp and the expectations of `BIASED_NAMES`, shape (7,).

    The integrals are computed by the trapezoidal rule over every ``stride``-th point of
    u.  ``biased`` is the profile of the key whose score has another mean, and ``usual``
    that of each other key.
    """
    n = float(n_keys)
    u, log_phi, a1, a1_log, a2 = (part.ravel()[::stride] for part in usual)
    _, log_other, b1, b1_log, b2 = (part.ravel()[::stride] for part in biased)

    def others(n_chosen: int, *, with_biased: bool) -> Array:
        """Return the number of ways to choose keys in order, times φ of the others.

        ``n_chosen`` of the n - 1 usual keys are chosen and, if ``with_biased``, the
        biased key as well.  φ of the keys that are left is a product.  An expectation
        of a sum over distinct keys is an integral of their kernels times this factor,
        shape (n_u,).
        """
        ways = np.prod([n - 1.0 - i for i in range(n_chosen)])
        rest = (n - 1.0 - n_chosen) * log_phi + (0.0 if with_biased else log_other)
        product: Array = max(ways, 0.0) * np.exp(rest)
        return product

    def over_keys(biased_part: Array, usual_part: Array) -> Array:
        """Return the integrand for a sum over all keys of a function of one key.

        The arguments are the kernels of the biased key and of a usual key.  All shapes
        are (n_u,).
        """
        biased_term = biased_part * others(0, with_biased=True)
        return biased_term + usual_part * others(1, with_biased=False)

    two = others(1, with_biased=True), others(2, with_biased=False)
    three = others(2, with_biased=True), others(3, with_biased=False)
    trace = 2.0 * b1 * a1 * two[0] + a1 * a1 * two[1]
    frobenius = 2.0 * (2.0 * b2 * a2 * two[0] + a2 * a2 * two[1])
    frobenius += (b2 * a1 * a1 + 2.0 * a2 * a1 * b1) * three[0]
    frobenius += a2 * a1 * a1 * three[1]
    weights = over_keys(b1, a1)
    parts = (
        weights,
        -u * weights,
        -over_keys(b1_log + np.euler_gamma * b1, a1_log + np.euler_gamma * a1),
        over_keys(b2, a2),
        trace,
        frobenius / 6.0,
        b1 * others(0, with_biased=True),
    )
    sums: Array = (u[1] - u[0]) * np.stack([part.sum() for part in parts])
    sums[1] -= np.euler_gamma
    return sums

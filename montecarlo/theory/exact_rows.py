"""Exact expectations over a row of attention, to be asked for by anybody.

In: the number of keys, and the standard deviation of the scores of a row, or d_k and a
divisor for standard normal queries and keys.  Out: each expectation with its numerical
error.  The table in docs/exact-values.csv is made of these.

>>> from montecarlo.theory import expected_row
>>> row = expected_row(1_000_000, std=1.0)
>>> round(row["entropy"].value, 6), row["entropy"].error < 1e-9
(13.315513, True)
"""

import math
from dataclasses import dataclass

import numpy as np

from montecarlo.attention.divisors import name_divisor
from montecarlo.errors import InputError
from montecarlo.names import MOST_SIZE, require_number, require_whole, show
from montecarlo.sampling.design_points import parse_point
from montecarlo.theory.biased_rows import BIASED_NAMES, expect_biased_row
from montecarlo.theory.causal_rows import mean_over_lengths
from montecarlo.theory.gaussian_rows import expect_gaussian_row
from montecarlo.theory.references import MOST_STD, Reference, divisor_value
from montecarlo.theory.row_expectations import expect_gaussian_length
from montecarlo.theory.row_integrals import ROW_NAMES, Expectations

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
    causal: bool = False,
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
        one with n is meant at ``n_keys``, under a causal mask as well.
    bias : float
        Only with ``std``: the mean of one of the scores, which a sink has, or a key
        that is looked for; up to `MOST_BIAS` either way.
    causal : bool
        Whether to take the mean over the rows of a causal mask: the i-th has i keys,
        and the one with the bias is in all of them.

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
    `montecarlo.theory.row_integrals`, `largest_weight` and `biased_rows`.

    Examples
    --------
    >>> round(expected_row(1024, d_k=64, divisor="none")["weight_max"].value, 4)
    0.7048
    >>> round(expected_row(1024, std=1.0, bias=7.43)["biased_weight"].value, 2)
    0.5
    """
    n_keys = require_whole("n_keys", n_keys, 2, MOST_KEYS)
    bias = require_number("bias", bias)
    if not isinstance(causal, bool | np.bool):
        raise InputError(f"causal must be True or False, got {show(causal)}")
    rows = scales_of(n_keys, std, d_k, divisor)
    if not -MOST_BIAS <= bias <= MOST_BIAS:
        raise InputError(
            f"bias must lie between {-MOST_BIAS:g} and {MOST_BIAS:g}, got {bias!r}"
        )
    if bias and rows.d_k is not None:
        raise InputError(f"bias must be 0 where d_k is given, got {bias!r}")

    def expect(n: float) -> Expectations:
        if rows.d_k is not None:
            return expect_gaussian_length(rows.d_k, n, rows.scale)
        if bias:
            return expect_biased_row(rows.scale, bias, n)
        return expect_gaussian_row(rows.scale, n)

    found = expect(float(n_keys))
    if causal:
        # a row of one key: Z is its exponential, whose mean logarithm is the bias
        alone = np.array([bias, 0.0, 1.0, 0.0, 0.0, 1.0])
        found = mean_over_lengths(expect, alone, n_keys)
    names = BIASED_NAMES if bias else ROW_NAMES
    pairs = zip(found.values.tolist(), found.errors.tolist(), strict=True)
    return dict(zip(names, (Reference(*pair) for pair in pairs), strict=True))


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of Gaussian scores: of one standard deviation, or of normal queries.

    Attributes
    ----------
    scale : float
        Standard deviation of a score; with ``d_k`` that over |q|.
    d_k : int or None
    """

    scale: float
    d_k: int | None


def scales_of(
    n_keys: int, std: float | None, d_k: int | None, divisor: str | float
) -> Rows:
    """Return the rows that were asked for by ``std``, or by ``d_k`` and ``divisor``.

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
        std = require_number("std", std)
        if not LEAST_STD <= std <= MOST_STD:
            raise InputError(
                f"std must lie between {LEAST_STD:g} and {MOST_STD:g}, got {std!r}"
            )
        return Rows(float(std), None)
    d_k = require_whole("d_k", d_k, 1, MOST_SIZE)
    if not isinstance(divisor, str):
        divisor = repr(require_number("divisor", divisor))
    name = name_divisor(divisor)
    number = divisor_value(name, parse_point("gaussian", "gaussian", d_k, n_keys))
    if number is None:
        raise InputError(f"divisor must be one divisor, got {name!r}")
    if not LEAST_STD <= (spread := math.sqrt(d_k) / number) <= MOST_STD:
        raise InputError(
            f"sqrt(d_k) over the divisor must lie between {LEAST_STD:g} and "
            f"{MOST_STD:g}, got {spread:g} for {name!r}"
        )
    return Rows(1.0 / number, d_k)

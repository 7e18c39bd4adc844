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

from montecarlo.attention.divisors import name_divisor
from montecarlo.errors import InputError
from montecarlo.sampling.design_points import parse_point
from montecarlo.theory.gaussian_rows import expect_gaussian_row
from montecarlo.theory.references import (
    MOST_STD,
    Reference,
    divisor_value,
    expect_row,
)
from montecarlo.theory.row_integrals import ROW_NAMES

#: Keys of a row at most, a million and some: beyond, grids do not reach far enough.
MOST_KEYS = 2**20
#: Below this standard deviation a row is uniform to nine digits, and is not asked for.
LEAST_STD = 1e-6


def expected_row(
    n_keys: int,
    *,
    std: float | None = None,
    d_k: int | None = None,
    divisor: str | float = "sqrt",
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
        Only with ``d_k``: a name, a number or a formula, as `montecarlo.measure` has.

    Returns
    -------
    dict
        By name: ``log_partition`` (E ln Z), ``entropy`` (in nats),
        ``inverse_participation`` (E Σp²), ``jacobian_trace`` (E tr J),
        ``jacobian_frobenius_squared`` (E ‖J‖_F²) and ``weight_max`` (E p_max), each
        with ``value`` and ``error``, how far numerics may have moved it.

    Raises
    ------
    InputError
        If a number is out of its range, or not one of ``std`` and ``d_k`` is given.

    Notes
    -----
    No approximation by large n or large d_k is made: for Gaussian keys the scores of a
    row are exactly normal given the query.  The integrals are those of
    `montecarlo.theory.row_integrals` and `montecarlo.theory.largest_weight`.

    Examples
    --------
    >>> round(expected_row(1024, d_k=64, divisor="none")["weight_max"].value, 4)
    0.7048
    """
    if isinstance(n_keys, bool) or not 2 <= n_keys <= MOST_KEYS:
        raise InputError(f"n_keys must lie between 2 and {MOST_KEYS}, got {n_keys!r}")
    if (std is None) == (d_k is None):
        raise InputError(f"one of std and d_k must be given, got {std!r} and {d_k!r}")
    if std is not None:
        if not LEAST_STD <= std <= MOST_STD:
            raise InputError(
                f"std must lie between {LEAST_STD:g} and {MOST_STD:g}, got {std!r}"
            )
        found = expect_gaussian_row(float(std), n_keys)
    else:
        point = parse_point("gaussian", "gaussian", d_k or 0, n_keys)
        name = name_divisor(str(divisor))
        known = expect_row(point, name)
        if known is None:
            spread = math.sqrt(point.d_k) / (divisor_value(name, point) or 1.0)
            raise InputError(
                f"sqrt(d_k) over one divisor must be at most {MOST_STD:g}, got "
                f"{spread:g} for the divisor {name!r}"
            )
        found = known
    pairs = zip(found.values.tolist(), found.errors.tolist(), strict=True)
    return dict(zip(ROW_NAMES, (Reference(*pair) for pair in pairs), strict=True))

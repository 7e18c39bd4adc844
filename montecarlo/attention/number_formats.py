"""Softmax computed in a number format: float16, bfloat16, float32, float64, or float8.

In the first four, each operation is rounded to the format, to nearest even, in one of
four ways.  ``naive`` exponentiates the scores as they are, ``shifted`` subtracts the
largest score first, as libraries do; both then sum the exponentials one by one in the
format.  With the suffix ``_wide`` the sum is computed in float64 and rounded once.

In the two formats of eight bits, e4m3 and e5m2, exponentials are only stored.  They are
computed and summed in float64 as ``shifted_wide`` and then rounded, as kernels do
before the product with the values.

Rounding is done on the bits of a float64 and not by ml_dtypes.  The casts of ml_dtypes
from float64 go through float32, so that one in seven of a million values next to a tie
is rounded twice, and turn what is too large for e4m3 into NaN.  For long rows they take
three times as long, or a third of the time for bfloat16.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from montecarlo.attention.softmax import Array

#: Ways to compute softmax.
SOFTMAXES = ("naive", "naive_wide", "shifted", "shifted_wide")
#: Largest numbers of rows and of scores of a replicate that are computed in formats.
FORMAT_ROWS = 16
FORMAT_SCORES = 2**16
#: Largest number of keys for an emulated sum, which takes one step for each key.
MOST_STEPS = 4096
#: Bits of the exponent of a float64.
EXPONENT = np.uint64(0x7FF << 52)


@dataclass(frozen=True)
class NumberFormat:
    """A binary floating-point format.

    Attributes
    ----------
    name : str
    bits : int
        Precision: bits of the significand, including the leading one.  The relative
        rounding error of a normal number is at most 2**-bits.
    least_exponent : int
        Exponent of the smallest positive normal number, 2**least_exponent.
    largest : float
        Largest finite number.
    native : type or None
        The type of NumPy; None if sums in the format are emulated.
    storage_only : bool
        Whether exponentials are only stored in the format.
    """

    name: str
    bits: int
    least_exponent: int
    largest: float
    native: type[np.floating] | None = None
    storage_only: bool = False

    @property
    def log_largest(self) -> float:
        """Natural logarithm of the largest finite number."""
        return float(np.log(self.largest))

    @cached_property
    def _lifting(self) -> tuple[np.uint64, np.uint64]:
        """Two integers for `round`: (bit pattern of 2**least_exponent, lift).

        Bit patterns are those of float64.  Let a number lie between 2**x and 2**(x+1).
        The bit pattern of 2**x plus the lift is that of a = 1.5 * 2**(x + 53 - p), with
        p = ``self.bits``.  Adding a to the number and subtracting it again rounds the
        number to the format.
        """
        lift = (53 - self.bits << 52) + (1 << 51)
        return np.uint64(1023 + self.least_exponent << 52), np.uint64(lift)

    def round(self, values: Array) -> Array:
        """Return values rounded to the nearest number of the format, as float64.

        Values that round to more than the largest number become infinite, also in e4m3,
        which has no infinity.  NaN stays.  For float64, ``values`` itself is returned.
        For float16 this is ten times as fast as NumPy's conversion.
        """
        if self.native is np.float64:
            return values
        if self.native is np.float32:
            with np.errstate(over="ignore", under="ignore"):
                return values.astype(np.float32).astype(np.float64)
        floor, lift = self._lifting
        bits = values.view(np.uint64) & EXPONENT
        np.maximum(bits, floor, out=bits)
        bits += lift
        anchor = bits.view(np.float64)
        with np.errstate(invalid="ignore"):
            rounded = values + anchor
            rounded -= anchor
            np.copysign(rounded, values, out=rounded)
            finite = np.abs(rounded) <= self.largest
        if not finite.all():
            others = np.where(np.isnan(values), values, np.copysign(np.inf, values))
            np.copyto(rounded, others, where=~finite)
        return rounded


NUMBER_FORMATS = {
    number_format.name: number_format
    for number_format in (
        NumberFormat("float16", 11, -14, 65504.0, np.float16),
        NumberFormat("bfloat16", 8, -126, (2.0 - 2.0**-7) * 2.0**127),
        NumberFormat("float32", 24, -126, float(np.finfo("f4").max), np.float32),
        NumberFormat("float64", 53, -1022, float(np.finfo("f8").max), np.float64),
    )
}
#: Formats of eight bits: Micikevicius et al. (2022), FP8 formats for deep learning,
#: arXiv:2209.05433.
FLOAT8 = {
    "e4m3": NumberFormat("e4m3", 4, -6, 448.0, storage_only=True),
    "e5m2": NumberFormat("e5m2", 3, -14, 57344.0, storage_only=True),
}
#: The way in which softmax with formats of eight bits is computed.
FLOAT8_SOFTMAX = "shifted_wide"
ALL_FORMATS = NUMBER_FORMATS | FLOAT8


def softmax_in(scores: Array, number_format: NumberFormat, softmax: str) -> Array:
    """Return the softmax weights of divided scores, computed in a number format.

    Parameters
    ----------
    scores : ndarray, shape (..., n_keys)
        Divided scores.
    number_format : NumberFormat
    softmax : {"naive", "naive_wide", "shifted", "shifted_wide"}
        Algorithm of softmax: ``shifted`` subtracts the largest score, ``wide`` adds up
        in float64.  Formats that are ``storage_only`` always add up in float64.

    Returns
    -------
    ndarray, shape (..., n_keys)
        As float64; NaN, infinite or all 0 in rows where the format overflows.
    """
    shifted = softmax.startswith("shifted")
    e = exponentials_in(scores, number_format, shifted=shifted)
    return weights_in(e, number_format, wide=softmax.endswith("_wide"))


def exponentials_in(
    scores: Array, number_format: NumberFormat, *, shifted: bool
) -> Array:
    """Return the exponentials of divided scores, each step rounded to a number format.

    Parameters
    ----------
    scores : ndarray, shape (..., n_keys)
    number_format : NumberFormat
    shifted : bool
        Whether the largest score of a row is subtracted first.

    Returns
    -------
    ndarray, shape (..., n_keys)
        As float64; not rounded if the format is for storage only.
    """
    exact = NUMBER_FORMATS["float64"]
    rounded = (exact if number_format.storage_only else number_format).round
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        x = rounded(scores)
        if shifted:  # NaN if the largest score is infinite
            x = rounded(x - x.max(axis=-1, keepdims=True))
        return rounded(np.exp(x))


def weights_in(e: Array, number_format: NumberFormat, *, wide: bool) -> Array:
    """Return softmax weights, exponentials / their sum, rounded to a number format.

    Every step is rounded.  For a format that is for storage only, just the exponentials
    in the numerator are rounded, which happens here; their sum and the weights are not.

    Parameters
    ----------
    e : ndarray, shape (..., n_keys)
        From `exponentials_in`.
    number_format : NumberFormat
    wide : bool
        Whether the sum is added up in float64 and only the total is rounded.  It has no
        effect on a format that is for storage only.

    Returns
    -------
    ndarray, shape (..., n_keys)
        As float64; NaN or infinite, or all 0, where the format overflows.
    """
    rounded = number_format.round
    if number_format.storage_only:
        return np.asarray(rounded(e) / e.sum(axis=-1, keepdims=True))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        total = rounded(e.sum(axis=-1)) if wide else _sum_in(e, number_format)
        return rounded(e / total[..., np.newaxis])


def _sum_in(values: Array, number_format: NumberFormat) -> Array:
    """Return the sums along the last axis, every partial sum rounded to a format.

    ``values`` has the shape (..., n_keys), the result (...).  All values must be
    numbers of the format, and not negative.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if number_format.native is not None:
            # accumulate adds in order and rounds each partial sum; sum does not
            parts = np.add.accumulate(values.astype(number_format.native), axis=-1)
            return parts[..., -1].astype(np.float64)
        # `round`, for numbers that are not negative, in half as many operations
        total = np.zeros(values.shape[:-1])
        bits, lost = total.view(np.uint64), np.uint64(53 - number_format.bits)
        half = (np.uint64(1) << lost - np.uint64(1)) - np.uint64(1)
        for terms in np.ascontiguousarray(np.moveaxis(values, -1, 0)):
            total += terms
            bits += (bits >> lost & np.uint64(1)) + half
            bits >>= lost
            bits <<= lost
        return np.where(total > number_format.largest, np.inf, total)


def n_compared_rows(n_queries: int, n_keys: int) -> int:
    """Return the number of rows of a replicate that are also computed in formats.

    At least 1, and at most `FORMAT_ROWS`, ``n_queries`` and `FORMAT_SCORES` // n_keys.
    """
    return max(1, min(FORMAT_ROWS, FORMAT_SCORES // n_keys, n_queries))


def format_ways(n_keys: int) -> list[tuple[NumberFormat, str]]:
    """Return the pairs (number format, softmax algorithm) that are computed for n keys.

    Such as (float16, ``naive``).  They are all pairs of `NUMBER_FORMATS` and
    `SOFTMAXES`; formats of eight bits are not among them.  For more than `MOST_STEPS`
    keys, bfloat16 is left out where its sums are emulated term by term: ``naive`` and
    ``shifted``.
    """
    return [
        (number_format, softmax)
        for number_format in NUMBER_FORMATS.values()
        for softmax in SOFTMAXES
        if number_format.native or n_keys <= MOST_STEPS or softmax.endswith("_wide")
    ]


def overflows(weights: Array) -> Array:
    """Return 1.0 for each row of weights in which softmax overflowed, else 0.0.

    If an exponential overflows, a weight is not finite; if only the sum does, all
    weights are 0.

    Parameters
    ----------
    weights : ndarray, shape (..., n_keys)

    Returns
    -------
    ndarray, shape (...)
    """
    overflowed = ~np.isfinite(weights).all(axis=-1) | ~(weights > 0.0).any(axis=-1)
    return np.asarray(overflowed, dtype=np.float64)


def distinct_share(weights: Array) -> Array:
    """Return (number of different weights / number of keys) for each row.

    From 1/n to 1; weights that are not finite count as 0.

    Parameters
    ----------
    weights : ndarray, shape (..., n_keys)

    Returns
    -------
    ndarray, shape (...)
    """
    ordered = np.sort(np.where(np.isfinite(weights), weights, 0.0))
    changes = (ordered[..., 1:] != ordered[..., :-1]).sum(axis=-1)
    return np.asarray((changes + 1.0) / weights.shape[-1])


def weight_error(weights: Array, exact: Array) -> Array:
    """Return half the sum of the absolute errors of the weights of each row.

    It is 1 for a row that overflowed, and may exceed 1: if partial sums stop growing
    because of rounding, weights are too large.

    Parameters
    ----------
    weights, exact : ndarray, shape (..., n_keys)

    Returns
    -------
    ndarray, shape (...)
    """
    with np.errstate(invalid="ignore"):
        error = 0.5 * np.abs(weights - exact).sum(axis=-1)
    return np.where(overflows(weights) > 0.0, 1.0, error)


def most_weight_error(number_format: NumberFormat, n_keys: int, softmax: str) -> float:
    """Return an upper bound of the `weight_error` of a row of ``n_keys`` keys.

    It is 1 for formats that are ``storage_only`` and for a ``softmax`` whose name ends
    in ``_wide``: these do not round each step of the sum of exponentials.  Otherwise it
    is 1 + n 2**-bits.  ``softmax`` is one of `SOFTMAXES`.

    Notes
    -----
    The error is at most half the sum of the exact and of the computed weights.  The
    exact ones sum to 1.  Each rounded step of the sum of exponentials loses at most
    2**-bits of it, so that the computed weights sum to at most 1 + 2 n 2**-bits,
    including their own rounding.
    """
    if number_format.storage_only or softmax.endswith("_wide"):
        return 1.0
    return 1.0 + n_keys * 2.0**-number_format.bits

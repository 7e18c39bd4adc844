"""Softmax in a number format: float16, bfloat16, float32, float64; float8 weights.

Every operation is rounded to the format, to nearest even.  Three ways to compute:
``naive`` exponentiates the scores as they are; ``shifted`` subtracts the largest first,
as libraries do; both add the exponentials up in the format, one by one.  The ``_wide``
ones add them up in float64 and round the sum.

In eight bits, e4m3 and e5m2, only exponentials are stored, less the largest score: they
are made and added up in float64, then rounded, as kernels do before the product with
the values.

Short formats are rounded here by their bits, not by ml_dtypes: its casts from float64
go by way of float32, which rounds one in seven of a million values beside ties twice,
make NaN of what is too large for e4m3, and of long rows take three times as long, but
for bfloat16 (a third).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from montecarlo.attention.softmax import Array

SOFTMAXES = ("naive", "naive_wide", "shifted", "shifted_wide")
#: Rows, and scores, of a replicate on which number formats are compared at most.
FORMAT_ROWS = 16
FORMAT_SCORES = 2**16
#: An emulated sum takes a step per key: beyond this many it is left out.
MOST_STEPS = 4096
#: The exponent among the bits of a float64.
EXPONENT = np.uint64(0x7FF << 52)


@dataclass(frozen=True)
class NumberFormat:
    """A floating-point format.

    Attributes
    ----------
    name : str
    bits : int
        Of a number's fraction, the leading one included; rounding moves a number by
        2**-bits of itself at most.
    least_exponent : int
        Of the least number that has all of these bits; below it the distance of
        numbers stays.
    largest : float
        The largest finite number.
    native : type or None
        NumPy's type, None where it is emulated.
    storage_only : bool
        Whether exponentials are stored in it, and nothing is computed.
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
        """The bits of the least power of 2, and what makes an anchor of one.

        An anchor is 1.5 times 2**(53 - bits) times a number's power of 2: added to the
        number and taken away again, it leaves it rounded to its last place.
        """
        lift = (53 - self.bits << 52) + (1 << 51)
        return np.uint64(1023 + self.least_exponent << 52), np.uint64(lift)

    def round(self, values: Array) -> Array:
        """Return the nearest numbers of the format, as float64.

        Beyond the largest, infinity, also in e4m3, which has none.  Of float16 ten
        times as fast as NumPy's own.
        """
        if self.native is np.float64:
            return values
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
#: Formats of eight bits.  e4m3 is the one without an infinity: NVIDIA and others,
#: "FP8 Formats for Deep Learning", arXiv:2209.05433.
FLOAT8 = {
    "e4m3": NumberFormat("e4m3", 4, -6, 448.0, storage_only=True),
    "e5m2": NumberFormat("e5m2", 3, -14, 57344.0, storage_only=True),
}
#: The way in which they are computed.
FLOAT8_SOFTMAX = "shifted_wide"
ALL_FORMATS = NUMBER_FORMATS | FLOAT8


def softmax_in(scores: Array, number_format: NumberFormat, softmax: str) -> Array:
    """Compute the weights of rows of divided scores in a number format.

    Parameters
    ----------
    scores : ndarray, shape (..., n_keys)
    number_format : NumberFormat
    softmax : {"naive", "naive_wide", "shifted", "shifted_wide"}

    Returns
    -------
    ndarray, shape (..., n_keys)
        As float64; NaN or infinite where the format overflows.
    """
    shifted = softmax.startswith("shifted")
    e = exponentials_in(scores, number_format, shifted=shifted)
    return weights_in(e, number_format, wide=softmax.endswith("_wide"))


def exponentials_in(
    scores: Array, number_format: NumberFormat, *, shifted: bool
) -> Array:
    """Exponentiate rows of divided scores in a number format, as float64.

    Where a format only stores them, they are not rounded yet.
    """
    exact = NUMBER_FORMATS["float64"]
    rounded = (exact if number_format.storage_only else number_format).round
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        x = rounded(scores)
        if shifted:  # from an infinite score nothing is left
            x = rounded(x - x.max(axis=-1, keepdims=True))
        return rounded(np.exp(x))


def weights_in(e: Array, number_format: NumberFormat, *, wide: bool) -> Array:
    """Divide exponentials by their sum in a number format, as float64.

    Parameters
    ----------
    e : ndarray, shape (..., n_keys)
        From `exponentials_in`.
    number_format : NumberFormat
    wide : bool
        Whether they are added up in float64.
    """
    rounded = number_format.round
    if number_format.storage_only:
        return np.asarray(rounded(e) / e.sum(axis=-1, keepdims=True))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        total = rounded(e.sum(axis=-1)) if wide else _sum_in(e, number_format)
        return rounded(e / total[..., np.newaxis])


def _sum_in(values: Array, number_format: NumberFormat) -> Array:
    """Add along the last axis, one by one, rounding every partial sum."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if number_format.native is not None:
            # accumulate, not sum: it rounds each step and adds in order
            parts = np.add.accumulate(values.astype(number_format.native), axis=-1)
            return parts[..., -1].astype(np.float64)
        total = np.zeros(values.shape[:-1])
        for terms in np.ascontiguousarray(np.moveaxis(values, -1, 0)):
            total = number_format.round(total + terms)
        return total


def compared_rows(n_queries: int, n_keys: int) -> int:
    """Return the rows of a replicate on which number formats are compared."""
    return max(1, min(FORMAT_ROWS, FORMAT_SCORES // n_keys, n_queries))


def combinations(n_keys: int) -> list[tuple[NumberFormat, str]]:
    """Return the formats and ways of softmax that are compared at a number of keys."""
    return [
        (number_format, softmax)
        for number_format in NUMBER_FORMATS.values()
        for softmax in SOFTMAXES
        if number_format.native or n_keys <= MOST_STEPS or softmax.endswith("_wide")
    ]


def overflows(weights: Array) -> Array:
    """Return 1 for rows that overflowed, else 0.

    An overflowing exponential leaves a weight that is no finite number; an overflowing
    sum leaves no weight above 0.
    """
    lost = ~np.isfinite(weights).all(axis=-1) | ~(weights > 0.0).any(axis=-1)
    return np.asarray(lost, dtype=np.float64)


def distinct_share(weights: Array) -> Array:
    """Return the number of different weights in a row over the number of keys."""
    ordered = np.sort(np.where(np.isfinite(weights), weights, 0.0))
    changes = (ordered[..., 1:] != ordered[..., :-1]).sum(axis=-1)
    return np.asarray((changes + 1.0) / weights.shape[-1])


def weight_error(weights: Array, exact: Array) -> Array:
    """Return half the sum of absolute errors of a row, 1 where the format overflows.

    Above 1 where the sum of exponentials stands still, so that weights are too large.
    """
    with np.errstate(invalid="ignore"):
        error = 0.5 * np.abs(weights - exact).sum(axis=-1)
    return np.where(overflows(weights) > 0.0, 1.0, error)


def most_weight_error(number_format: NumberFormat, n_keys: int, softmax: str) -> float:
    """Return a bound of `weight_error`.

    Notes
    -----
    It is at most half of 1 and the sum of the weights.  Each step of a sum that is
    rounded loses at most 2**-bits of the result, so that what n weights add up to is
    at most 1 + 2 n 2**-bits, with their own rounding.
    """
    if number_format.storage_only or softmax.endswith("_wide"):
        return 1.0
    return 1.0 + n_keys * 2.0**-number_format.bits

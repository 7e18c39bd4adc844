"""How a number is laid out: its power of ten and its decimals, and nothing of language.

As many digits as the error supports; ends of intervals get those that tell on which
side of an end of a region they lie.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache

#: Below and above these sizes a number is shown as a mantissa times a power of ten.
SMALL, LARGE = 1e-3, 1e6
#: Digits of a number that has no error of its own.
PLAIN_DIGITS = 4
MOST_DECIMALS = 17
#: Numbers whose layout is kept: that of one page is that of all languages.
CACHED = 65536


@dataclass(frozen=True, slots=True)
class Layout:
    """How a number is laid out: times a power of ten, with so many decimals."""

    exponent: int
    decimals: int

    def mantissa(self, value: float) -> Decimal:
        """Return a number over the power of ten, exactly."""
        return exact(value).scaleb(-self.exponent)

    def shown(self, value: float) -> Decimal:
        """Return the number that a reader sees."""
        return round_decimal(self.mantissa(value), self.decimals).scaleb(self.exponent)

    def rounds_to_zero(self, value: float) -> bool:
        """Tell whether a reader sees a number as 0."""
        return self.shown(value) == 0


def exact(value: float | Decimal) -> Decimal:
    """Return the decimal number that the shortest writing of a float is."""
    return value if isinstance(value, Decimal) else Decimal(repr(float(value)))


def round_decimal(value: Decimal, decimals: int) -> Decimal:
    """Round to a number of decimals, halves to even."""
    return value.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_EVEN)


@lru_cache(maxsize=CACHED)
def lay_out(value: float, error: float | None = None) -> Layout:
    """Choose exponent and decimals; an error larger than the value sets the scale."""
    known = error is not None and error > 0.0 and math.isfinite(error)
    scale = max(abs(value), error if known and error else 0.0)
    exponent = 0
    if scale and math.isfinite(scale) and not SMALL <= scale < LARGE:
        exponent = math.floor(math.log10(scale))
    if known and error:
        place = math.floor(math.log10(error)) - exponent
        return Layout(exponent, min(max(0, 1 - place), MOST_DECIMALS))
    return Layout(exponent, _plain_decimals(float(exact(value).scaleb(-exponent))))


def _plain_decimals(value: float) -> int:
    """Return the decimals of a number without an error: no more than it needs."""
    for decimals in range(PLAIN_DIGITS):
        if math.isclose(round(value, decimals), value, rel_tol=1e-9):
            return decimals
    return PLAIN_DIGITS


@lru_cache(maxsize=CACHED)
def shared_error(low: float, high: float, region: tuple[float | None, ...]) -> float:
    """Return an error whose digits tell where an interval lies in its region."""
    ends = [end for end in region if end is not None]
    width = (high - low) / 4.0 or abs(low) / 1e2 or 1.0
    errors = [width / 10.0**finer for finer in range(18)]
    return next(
        (
            error
            for error in errors
            if all(_tells(v, end, error) for v in (low, high) for end in ends)
        ),
        errors[-1],
    )


@lru_cache(maxsize=CACHED)
def error_unless_nothing(
    value: float, error: float, region: tuple[float | None, ...]
) -> float:
    """Return an error of an end's own size where its interval's would show it as 0."""
    if value == 0.0 or not lay_out(value, error).rounds_to_zero(value):
        return error
    finer = abs(value) / 10.0
    ends = [end for end in region if end is not None]
    return finer if all(_tells(value, end, finer) for end in ends) else error


def _tells(value: float, end: float, error: float) -> bool:
    """Tell whether both as shown, and shown against exact, compare as they do."""
    shown = lay_out(value, error).shown(value)
    beside = lay_out(end, error_of_end(end, error)).shown(end)
    sides = {(v > e) - (v < e) for v, e in ((shown, beside), (shown, exact(end)))}
    return sides == {(value > end) - (value < end)}


@lru_cache(maxsize=CACHED)
def error_of_end(end: float, error: float | None) -> float | None:
    """Return None for an end that four decimals write in full: it needs no more."""
    shown = float(lay_out(end, None).shown(end))
    return None if math.isclose(shown, end, rel_tol=1e-9) else error

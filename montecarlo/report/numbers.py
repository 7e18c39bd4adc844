"""Numbers as a page shows them: as many digits as the error supports, in the
language's own format, with the raw value beside the shown one.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from babel import Locale
from babel.numbers import format_decimal
from markupsafe import Markup, escape

#: Below and above these sizes a number is shown as a mantissa times a power of ten.
SMALL, LARGE = 1e-3, 1e6
#: Digits of a number that has no error of its own.
PLAIN_DIGITS = 4
#: From this size on, whole numbers are grouped: 1024 reads better as it is.
GROUPED = 10_000
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """How one language writes numbers."""

    locale: Locale

    def text(self, value: float, decimals: int) -> str:
        """Write a number with a fixed number of decimals, as plain text."""
        pattern = "#,##0" if abs(value) >= GROUPED else "0"
        if decimals > 0:
            pattern += "." + "0" * decimals
        exact = Decimal(repr(float(value)))
        rounded = exact.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_EVEN)
        if rounded == 0:
            rounded = abs(rounded)  # no "-0.00"
        written = format_decimal(rounded, pattern, self.locale)
        return written.replace("-", MINUS)

    def plain(self, value: float, error: float | None = None) -> str:
        """Write a number as plain text, for alternative texts."""
        mantissa, exponent, decimals = _layout(value, error)
        written = self.text(mantissa, decimals)
        return written if exponent == 0 else f"{written}·10^{exponent}"

    def number(
        self, value: float | None, error: float | None = None, row: str = ""
    ) -> Markup:
        """Write a number with its raw value in ``data-value``.

        Parameters
        ----------
        value : float or None
            None is an open end of a window, infinite.
        error : float, optional
            Its standard error: the number gets the digits that the error's first two
            need.
        row : str
            The row of the table it comes from.
        """
        if value is None:
            return Markup('<span class="open" aria-hidden="true">–</span>')
        mantissa, exponent, decimals = _layout(value, error)
        return self._span(value, mantissa, exponent, decimals, row)

    def with_error(self, value: float, error: float | None, row: str = "") -> Markup:
        """Write a value and its standard error, both to the error's digits."""
        if error is None or not math.isfinite(error):
            return self.number(value, row=row)
        mantissa, exponent, decimals = _layout(value, error)
        shown = self._span(value, mantissa, exponent, decimals, row, power=False)
        scaled = error / 10.0**exponent
        beside = self._span(error, scaled, exponent, decimals, "", power=False)
        if exponent == 0:
            return Markup("{} ± {}").format(shown, beside)
        return Markup("({} ± {}){}").format(shown, beside, _power(exponent))

    def interval(
        self, low: float | None, high: float | None, window: tuple[float | None, ...]
    ) -> Markup:
        """Write an interval with digits enough that it compares with the window's ends
        as the raw one does.
        """
        if low is None or high is None:
            return Markup("[{}, {}]").format(self.number(low), self.number(high))
        ends = [end for end in window if end is not None]
        width = (high - low) / 4.0
        for finer in range(12):
            error = (width or abs(low) or 1.0) / 10.0**finer
            if all(_same_side(value, end, error) for value in (low, high) for end in ends):
                break
        return Markup("[{}, {}]").format(
            self.number(low, error), self.number(high, error)
        )

    def _span(
        self,
        value: float,
        mantissa: float,
        exponent: int,
        decimals: int,
        row: str,
        *,
        power: bool = True,
    ) -> Markup:
        attributes = Markup(' data-value="{}"').format(repr(float(value)))
        if row:
            attributes += Markup(' data-row="{}"').format(row)
        if not power and exponent:
            attributes += Markup(' data-power="{}"').format(exponent)
        shown = escape(self.text(mantissa, decimals))
        if power and exponent:
            shown += _power(exponent)
        return Markup("<span{}>{}</span>").format(attributes, shown)


def _power(exponent: int) -> Markup:
    written = str(exponent).replace("-", MINUS)
    return Markup('<span class="power"> · 10<sup>{}</sup></span>').format(written)


def _layout(value: float, error: float | None) -> tuple[float, int, int]:
    """Return mantissa, exponent and decimals of a number to show."""
    size = abs(value)
    if size == 0.0 or not math.isfinite(value):
        return value, 0, 0 if error is None else min(_decimals(error), 6)
    exponent = 0
    if size < SMALL or size >= LARGE:
        exponent = math.floor(math.log10(size))
        if error and error > size:  # the error sets the scale
            exponent = math.floor(math.log10(error))
        if error and SMALL <= error < LARGE and size < SMALL:
            exponent = 0
    mantissa = value / 10.0**exponent
    if error is None or error <= 0.0 or not math.isfinite(error):
        return mantissa, exponent, _plain_decimals(mantissa)
    return mantissa, exponent, min(_decimals(error / 10.0**exponent), 12)


def _decimals(error: float) -> int:
    """Return the decimals that show the first two digits of an error."""
    if error <= 0.0 or not math.isfinite(error):
        return PLAIN_DIGITS
    return max(0, 1 - math.floor(math.log10(error)))


def _plain_decimals(value: float) -> int:
    """Return the decimals of a number without an error: no more than it needs."""
    for decimals in range(PLAIN_DIGITS):
        if math.isclose(round(value, decimals), value, rel_tol=1e-9):
            return decimals
    return PLAIN_DIGITS


def _same_side(value: float, end: float, error: float) -> bool:
    """Tell whether rounding for this error keeps a value on its side of an end."""
    mantissa, exponent, decimals = _layout(value, error)
    shown = round(mantissa, decimals) * 10.0**exponent
    side = (value > end) - (value < end)
    return side == (shown > end) - (shown < end)

"""Numbers as a page shows them, in the language's own format.

As many digits as the error supports, and the raw value beside the shown one.
"""

import math
import re
from dataclasses import dataclass
from decimal import Decimal

from babel import Locale
from babel.numbers import format_decimal
from markupsafe import Markup, escape

from montecarlo.report.language.layout import (
    error_of_end,
    error_unless_nothing,
    exact,
    lay_out,
    round_decimal,
    shared_error,
)

#: From this size on, whole numbers are grouped: 1024 reads better as it is.
GROUPED = 10_000
MINUS = "\N{MINUS SIGN}"
#: Around what must not begin a line: a sign of error, of per cent, a bracket's power.
KEPT = "\N{NO-BREAK SPACE}"
PLUS_MINUS = f"{KEPT}\N{PLUS-MINUS SIGN}{KEPT}"
#: Languages that write the sign of per cent without a space before it.
CLOSE_PERCENT = frozenset({"zh", "ja"})
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
UP_TO, FROM = "\N{LESS-THAN OR EQUAL TO}", "\N{GREATER-THAN OR EQUAL TO}"
#: What may stand in HTML without quotes.
UNQUOTED = re.compile(r"[\w./-]*\w")


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """How one language writes numbers."""

    locale: Locale

    def text(self, value: float | Decimal, decimals: int) -> str:
        """Write a number with a fixed number of decimals, as plain text."""
        shown = round_decimal(exact(value), decimals)
        pattern = "#,##0" if abs(shown) >= GROUPED else "0"
        if decimals > 0:
            pattern += "." + "0" * decimals
        if shown == 0:
            shown = abs(shown)  # no "-0.00"
        written = format_decimal(shown, pattern, self.locale)
        return written.replace("-", MINUS)

    @property
    def mark(self) -> str:
        """The decimal sign."""
        return self.text(0.5, 1)[1]

    def plain(self, value: float, error: float | None = None) -> str:
        """Write a number as plain text, for alternative texts."""
        layout = lay_out(value, error)
        written = self.text(layout.mantissa(value), layout.decimals)
        return f"{written}{_plain_power(layout.exponent)}"

    def number(
        self, value: float | None, error: float | None = None, row: str = ""
    ) -> Markup:
        """Write a number as a ``data`` element, whose value is the raw one.

        Parameters
        ----------
        value : float or None
            None is an open end of a region, infinite.
        error : float, optional
            Its standard error: the number gets the digits that the error's first two
            need.
        row : str
            The row of the table it comes from.
        """
        if value is None:
            return Markup('<span class="open" aria-hidden="true">–</span>')
        layout = lay_out(value, error)
        mantissa = self.text(layout.mantissa(value), layout.decimals)
        return Markup("<data{}>{}{}</data>").format(
            _attributes(value, row), mantissa, _power(layout.exponent)
        )

    def with_error(self, value: float, error: float | None, row: str = "") -> Markup:
        """Write a value and its standard error, both to the error's digits.

        An error of 0 is not written: the interval of a median of whole numbers may have
        no width, and is no promise.
        """
        if not error or not math.isfinite(error):
            return self.number(value, row=row)
        layout = lay_out(value, error)
        if error > 0.0 and layout.rounds_to_zero(error):
            return Markup("{}{}{}").format(
                self.number(value, error, row), PLUS_MINUS, self.number(error)
            )
        pair = Markup("<data{}>{}</data>{}<data{}>{}</data>").format(
            _attributes(value, row, layout.exponent),
            self.text(layout.mantissa(value), layout.decimals),
            PLUS_MINUS,
            _attributes(error, "", layout.exponent),
            self.text(layout.mantissa(error), layout.decimals),
        )
        if layout.exponent == 0:
            return pair
        return Markup("({}){}").format(pair, _power(layout.exponent))

    def percent(self, value: float, error: float | None, row: str = "") -> Markup:
        """Write a share in per cent, with its error where it has one.

        The raw value is that of the share; ``data-percent`` says that it is shown a
        hundredfold.
        """
        shown = [(value, row)]
        if error and math.isfinite(error):
            shown.append((error, ""))
        hundredfold = [exact(raw).scaleb(2) for raw, _ in shown]
        layout = lay_out(float(hundredfold[0]), *map(float, hundredfold[1:]))
        elements = [
            Markup("<data{} data-percent>{}</data>").format(
                _attributes(raw, of_row, layout.exponent),
                self.text(number.scaleb(-layout.exponent), layout.decimals),
            )
            for (raw, of_row), number in zip(shown, hundredfold, strict=True)
        ]
        brackets = "({}){}" if layout.exponent and len(elements) > 1 else "{}{}"
        joined = escape(PLUS_MINUS).join(elements)
        power = _power(layout.exponent)
        return escape(brackets).format(joined, power) + f"{self._before_percent}%"

    @property
    def _before_percent(self) -> str:
        return "" if self.locale.language in CLOSE_PERCENT else KEPT

    @property
    def _between(self) -> str:
        """What stands between two numbers: no comma where that marks decimals."""
        return f"{';' if self.mark == ',' else ','}{KEPT}"

    def interval(
        self, low: float | None, high: float | None, region: tuple[float | None, ...]
    ) -> Markup:
        """Write an interval that compares with a region's ends as the raw one does."""
        if low is None or high is None:
            ends = [self.number(low), self.number(high)]
        else:
            error = shared_error(low, high, region)
            ends = [
                self.number(v, error_unless_nothing(v, error, region))
                for v in (low, high)
            ]
        return Markup("[{}]").format(escape(self._between).join(ends))

    def region(
        self, region: tuple[float | None, ...], low: float | None, high: float | None
    ) -> Markup:
        """Write a region with as many digits as the interval beside it needs.

        One that is open to a side is written as a bound.
        """
        error = None
        if low is not None and high is not None:
            error = shared_error(low, high, region)
        ends = [
            self.number(end, error_of_end(end, error))
            for end in region
            if end is not None
        ]
        if len(ends) == 1:
            return Markup("{}{}{}").format(
                UP_TO if region[0] is None else FROM, KEPT, ends[0]
            )
        return escape(f"{KEPT}…{KEPT}").join(ends)


def decimal_mark(code: str) -> str:
    """Return the decimal sign of a language."""
    return NumberFormat(Locale.parse(code)).mark


def _attributes(value: float, row: str, exponent: int = 0) -> Markup:
    """Return the raw value, its row, and the power of ten that stands outside.

    Thousands of them stand on a page, so they have no quotes, which HTML asks for
    around spaces and a few signs only.
    """
    raw = repr(int(value)) if float(value).is_integer() else repr(float(value))
    attributes = f" value={raw}"
    if row:
        if not UNQUOTED.fullmatch(row):
            raise ValueError(f"row must need no quotes in HTML, got {row!r}")
        attributes += f" data-row={row}"
    if exponent:
        attributes += f" data-power={exponent}"
    return Markup(attributes)  # noqa: S704 - numbers, and letters and digits


def _power(exponent: int) -> Markup:
    """Return the power of ten of a mantissa; nothing for 10 to the 0."""
    if exponent == 0:
        return Markup()
    written = str(exponent).replace("-", MINUS)
    return Markup("<span class=power>×10<sup>{}</sup></span>").format(written)


def _plain_power(exponent: int) -> str:
    """Return the same as plain text."""
    return f"×10{str(exponent).translate(_RAISED)}" if exponent else ""

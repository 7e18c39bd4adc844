"""Numbers as a page shows them, in the language's own format.

First its layout, which is that of all languages: a power of ten and decimals.  There
are as many digits as the error supports; ends of intervals are rounded outwards, and
get the digits that tell on which side of an end of a region they lie.  The raw value
stands beside the shown one.
"""

import math
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import cached_property, lru_cache
from typing import NamedTuple

from babel import Locale
from babel.numbers import get_decimal_symbol, get_group_symbol
from markupsafe import Markup

#: Below and above these sizes a number is shown as a mantissa times a power of ten.
SMALL, LARGE = 1e-3, 1e6
#: Digits of a number that has no error of its own.
PLAIN_DIGITS = 4
MOST_DECIMALS = 17
#: Numbers whose layout is kept: that of one page is that of all languages.
CACHED = 65536
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


class Layout(NamedTuple):
    """How a number is laid out: times a power of ten, with so many decimals."""

    exponent: int
    decimals: int

    def mantissa(self, value: float) -> Decimal:
        """Return a number over the power of ten, exactly."""
        return exact(value).scaleb(-self.exponent)

    def shown(self, value: float, rounding: str = ROUND_HALF_EVEN) -> Decimal:
        """Return the number that a reader sees."""
        mantissa = round_decimal(self.mantissa(value), self.decimals, rounding)
        return mantissa.scaleb(self.exponent)


def exact(value: float | Decimal) -> Decimal:
    """Return the decimal number that the shortest writing of a float is."""
    return value if isinstance(value, Decimal) else Decimal(repr(float(value)))


def round_decimal(
    value: Decimal, decimals: int, rounding: str = ROUND_HALF_EVEN
) -> Decimal:
    """Round to a number of decimals, halves to even by default."""
    return value.quantize(Decimal(1).scaleb(-decimals), rounding)


@lru_cache(maxsize=CACHED)
def lay_out(value: float, error: float | None = None) -> Layout:
    """Choose exponent and decimals; an error larger than the value sets the scale."""
    error = error if error and math.isfinite(error) else 0.0
    scale = max(abs(value), error)
    exponent = 0
    if scale and math.isfinite(scale) and not SMALL <= scale < LARGE:
        exponent = math.floor(math.log10(scale))
    if error:
        place = math.floor(math.log10(error)) - exponent
        return Layout(exponent, min(max(0, 1 - place), MOST_DECIMALS))
    mantissa = float(exact(value).scaleb(-exponent))
    enough = (
        decimals
        for decimals in range(PLAIN_DIGITS)
        if math.isclose(round(mantissa, decimals), mantissa, rel_tol=1e-9)
    )
    return Layout(exponent, next(enough, PLAIN_DIGITS))


@lru_cache(maxsize=CACHED)
def shared_error(
    low: float | None, high: float | None, region: tuple[float | None, ...]
) -> float | None:
    """Return an error whose digits tell where an interval lies in its region.

    None where the interval is open to a side.
    """
    if low is None or high is None:
        return None
    width = (high - low) / 4.0 or abs(low) / 1e2 or 1.0
    sides = (low, ROUND_FLOOR), (high, ROUND_CEILING)
    for error in (width / 10.0**finer for finer in range(18)):
        if all(_tells(end, region, error, rounding) for end, rounding in sides):
            break
    return error


@lru_cache(maxsize=CACHED)
def error_unless_nothing(
    value: float, error: float, region: tuple[float | None, ...], rounding: str
) -> float:
    """Return an error of an end's own size where its interval's would show it as 0."""
    if value == 0.0 or lay_out(value, error).shown(value, rounding) != 0:
        return error
    finer = abs(value) / 10.0
    return finer if _tells(value, region, finer, rounding) else error


def _tells(
    value: float, region: tuple[float | None, ...], error: float, rounding: str
) -> bool:
    """Return whether a value as shown compares with all ends of a region as it does.

    It is compared with each end as shown, and as it is.
    """
    shown = lay_out(value, error).shown(value, rounding)
    return all(
        (shown > e) - (shown < e) == (value > end) - (value < end)
        for end in region
        if end is not None
        for e in (lay_out(end, error_of_end(end, error)).shown(end), exact(end))
    )


@lru_cache(maxsize=CACHED)
def error_of_end(end: float, error: float | None) -> float | None:
    """Return None for an end that four decimals write in full: it needs no more."""
    shown = float(lay_out(end, None).shown(end))
    return None if math.isclose(shown, end, rel_tol=1e-9) else error


@dataclass(frozen=True)
class NumberFormat:
    """How one language writes numbers."""

    locale: Locale

    @cached_property
    def signs(self) -> dict[int, str]:
        """What it writes for the point, comma and minus of a number in Python."""
        point, comma = get_decimal_symbol(self.locale), get_group_symbol(self.locale)
        return str.maketrans({".": point, ",": comma, "-": MINUS})

    @property
    def mark(self) -> str:
        """The decimal sign."""
        return self.signs[ord(".")]

    def text(
        self, value: float | Decimal, decimals: int, rounding: str = ROUND_HALF_EVEN
    ) -> str:
        """Write a number with a fixed number of decimals, as plain text."""
        shown = round_decimal(exact(value), decimals, rounding)
        if shown == 0:
            shown = abs(shown)  # no "-0.00"
        grouped = "," if abs(shown) >= GROUPED else ""
        return f"{shown:{grouped}.{decimals}f}".translate(self.signs)

    def plain(
        self, value: float, error: float | None = None, rounding: str = ROUND_HALF_EVEN
    ) -> str:
        """Write a number as plain text, for alternative texts."""
        layout = lay_out(value, error)
        written = self.text(layout.mantissa(value), layout.decimals, rounding)
        power = str(layout.exponent).translate(_RAISED)
        return f"{written}×10{power}" if layout.exponent else written

    def number(
        self,
        value: float | None,
        error: float | None = None,
        row: str = "",
        rounding: str = ROUND_HALF_EVEN,
    ) -> Markup:
        """Write a number as a ``data`` element, whose value is the raw one.

        With the digits that the first two of its standard error need, and the row of
        the table that it comes from; None is an open end of a region.
        """
        if value is None:
            return Markup('<span class="open" aria-hidden="true">–</span>')
        layout = lay_out(value, error)
        mantissa = self.text(layout.mantissa(value), layout.decimals, rounding)
        return _markup(_data(value, f"{mantissa}{_power(layout.exponent)}", row))

    def with_error(self, value: float, error: float | None, row: str = "") -> Markup:
        """Write a value and its standard error, both to the error's digits.

        An error of 0 is not written: the interval of a median of whole numbers may have
        no width, and is no promise.
        """
        if not error or not math.isfinite(error):
            return self.number(value, row=row)
        layout = lay_out(value, error)
        if error > 0.0 and layout.shown(error) == 0:
            pair = self.number(value, error, row), self.number(error)
            return _markup(PLUS_MINUS.join(pair))
        return self._of_layout((value, error), layout, row)

    def percent(self, value: float, error: float | None, row: str = "") -> Markup:
        """Write a share in per cent, with its error where it has one.

        The raw value is that of the share; ``data-percent`` says that it is shown a
        hundredfold.
        """
        raws = (value, error) if error and math.isfinite(error) else (value,)
        layout = lay_out(*(float(exact(raw).scaleb(2)) for raw in raws))
        return self._of_layout(raws, layout, row, percent=True)

    def _of_layout(
        self,
        raws: tuple[float, ...],
        layout: Layout,
        row: str,
        *,
        percent: bool = False,
    ) -> Markup:
        """Write a number, or it and its error in brackets, times a power of ten."""
        exponent, decimals = layout
        elements = []
        for raw, of_row in zip(raws, (row, ""), strict=False):
            mantissa = exact(raw).scaleb((2 if percent else 0) - exponent)
            written = self.text(mantissa, decimals)
            elements.append(_data(raw, written, of_row, exponent, percent=percent))
        joined = PLUS_MINUS.join(elements)
        joined = f"({joined})" if exponent and len(elements) > 1 else joined
        sign = f"{self.before_percent}%" if percent else ""
        return _markup(f"{joined}{_power(exponent)}{sign}")

    def brief(
        self,
        value: float,
        error: float | None = None,
        row: str = "",
        *,
        percent: bool = False,
        digits: int = 3,
    ) -> Markup:
        """Write a number for prose: a few digits at most, and those that are sure.

        The last one is the first of its error; ``percent``: a share in per cent.
        """
        shown = exact(value).scaleb(2) if percent else exact(value)
        size = abs(float(shown))
        whole = float(value).is_integer() and not error
        # the layout has two digits of an error: ten times it leaves the first
        coarse = 10.0 ** (math.floor(math.log10(size)) + 2 - digits) if size else 0.0
        known = 10.0 * (error or 0.0) * (100.0 if percent else 1.0)
        layout = lay_out(float(shown), None if whole else max(coarse, known))
        if layout.shown(float(shown)) == 0:
            layout = lay_out(float(shown), size)
        if not error:  # no more than it needs
            decimals = min(layout.decimals, lay_out(float(shown)).decimals)
            layout = layout._replace(decimals=decimals)
        return self._of_layout((value,), layout, row, percent=percent)

    @cached_property
    def before_percent(self) -> str:
        """What stands before a sign of per cent: a space, or nothing."""
        return "" if self.locale.language in CLOSE_PERCENT else KEPT

    def interval(
        self, low: float | None, high: float | None, region: tuple[float | None, ...]
    ) -> Markup:
        """Write an interval that compares with a region's ends as the raw one does.

        It holds all that the raw one holds.
        """
        shared = shared_error(low, high, region)
        ends = []
        for end, rounding in ((low, ROUND_FLOOR), (high, ROUND_CEILING)):
            error = shared
            if end is not None and error is not None:
                error = error_unless_nothing(end, error, region, rounding)
            ends.append(self.number(end, error, rounding=rounding))
        between = ";" if self.mark == "," else ","
        return _markup(f"[{f'{between}{KEPT}'.join(ends)}]")

    def bound(self, low: float | None, high: float | None) -> Markup:
        """Write an interval; of one end a bound with two digits, rounded outwards."""
        if low is not None and high is not None:
            return self.interval(low, high, (None, None))
        sign, rounding = (FROM, ROUND_FLOOR) if high is None else (UP_TO, ROUND_CEILING)
        end = low if high is None else high
        error = None if end is None else abs(end)
        return _markup(f"{sign}{KEPT}{self.number(end, error, rounding=rounding)}")

    def with_factor(self, value: float, factor: float, row: str = "") -> Markup:
        """Write a value that is known to a factor, two digits of each."""
        shown = self.number(value, abs(value), row)
        error = self.number(factor, factor)
        return _markup(f"{shown}{KEPT}×/÷{KEPT}{error}")

    def region(
        self, region: tuple[float | None, ...], low: float | None, high: float | None
    ) -> Markup:
        """Write a region with as many digits as the interval beside it needs.

        One that is open to a side is written as a bound.
        """
        error = shared_error(low, high, region)
        ends = [
            self.number(end, error_of_end(end, error))
            for end in region
            if end is not None
        ]
        if len(ends) == 1:
            return _markup(f"{UP_TO if region[0] is None else FROM}{KEPT}{ends[0]}")
        return _markup(f"{KEPT}…{KEPT}".join(ends))


def _markup(written: str) -> Markup:
    return Markup(written)  # noqa: S704 - digits, our own elements, names of rows


def _data(
    value: float, written: str, row: str, exponent: int = 0, *, percent: bool = False
) -> str:
    """Return a ``data`` element: the raw value, its row, the power that stands outside.

    Thousands of them stand on a page, so attributes have no quotes, which HTML asks for
    around spaces and a few signs only.
    """
    raw = repr(int(value)) if float(value).is_integer() else repr(float(value))
    if row and not UNQUOTED.fullmatch(row):
        raise ValueError(f"row must need no quotes in HTML, got {row!r}")
    of_row = f" data-row={row}" if row else ""
    power = f" data-power={exponent}" if exponent else ""
    hundredfold = " data-percent" if percent else ""
    return f"<data value={raw}{of_row}{power}{hundredfold}>{written}</data>"


def _power(exponent: int) -> str:
    """Return the power of ten of a mantissa; nothing for 10 to the 0."""
    written = str(exponent).replace("-", MINUS)
    return f"<span class=power>×10<sup>{written}</sup></span>" if exponent else ""

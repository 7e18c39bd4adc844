"""Numbers on pages: rounding, and the format of a language.

The `Layout` of a number, the same in all languages, is a power of ten and a number of
decimals.  A number with a standard error has two digits of that error.  Ends of an
interval are rounded outwards, with enough digits that they compare with the ends of the
equivalence region as the exact ends do.  The exact value stands in an attribute.
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

#: Below SMALL and from LARGE on, a number is shown as a mantissa times a power of ten.
SMALL, LARGE = 1e-3, 1e6
#: Most decimals of a number without an error.
PLAIN_DIGITS = 4
MOST_DECIMALS = 17
#: Size of caches of layouts, which pages of all languages share.
CACHED = 65536
#: Smallest number whose digits are grouped: 1024 is not.
GROUPED = 10_000
MINUS = "\N{MINUS SIGN}"
#: Space before a sign that must not begin a line.
KEPT = "\N{NO-BREAK SPACE}"
PLUS_MINUS = f"{KEPT}\N{PLUS-MINUS SIGN}{KEPT}"
#: Languages without a space before the percent sign.
CLOSE_PERCENT = frozenset({"zh", "ja"})
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
UP_TO, FROM = "\N{LESS-THAN OR EQUAL TO}", "\N{GREATER-THAN OR EQUAL TO}"
#: Values of attributes that HTML allows without quotes.
UNQUOTED = re.compile(r"[\w./-]*\w")


class Layout(NamedTuple):
    """How a number is written: a power of ten, and the decimals of its mantissa."""

    exponent: int
    decimals: int

    def mantissa(self, value: float) -> Decimal:
        """Return a number divided by the layout's power of ten, not rounded."""
        return as_decimal(value).scaleb(-self.exponent)

    def shown(self, value: float, rounding: str = ROUND_HALF_EVEN) -> Decimal:
        """Return a number as it is shown: a rounded mantissa times 10 to the exponent.

        The mantissa has the decimals of the layout.  ``rounding`` is a mode of the
        module ``decimal``.
        """
        mantissa = round_decimal(self.mantissa(value), self.decimals, rounding)
        return mantissa.scaleb(self.exponent)


def as_decimal(value: float | Decimal) -> Decimal:
    """Return a float as the shortest decimal number that converts back to it.

    A `Decimal` is returned as it is.
    """
    return value if isinstance(value, Decimal) else Decimal(repr(float(value)))


def round_decimal(value: Decimal, decimals: int, rounding: str) -> Decimal:
    """Return a number rounded to ``decimals`` decimals; ``rounding`` is decimal's."""
    return value.quantize(Decimal(1).scaleb(-decimals), rounding)


@lru_cache(maxsize=CACHED)
def lay_out(value: float, error: float | None = None) -> Layout:
    """Return the layout of a number with a standard error: exponent and decimals.

    ``Layout(exponent=0, decimals=4)`` for 1.0012 with the error 0.003.  Let s be the
    larger of abs(value) and error.  The exponent is that of s if s is below `SMALL`, or
    `LARGE` and above; otherwise, and for s = 0, it is 0.  The decimals, at most
    `MOST_DECIMALS`, show two significant digits of the error.  Without an error (None,
    0, infinite or NaN) they show the number itself, at most `PLAIN_DIGITS`.
    """
    error = error if error and math.isfinite(error) else 0.0
    scale = max(abs(value), error)
    exponent = 0
    if scale and math.isfinite(scale) and not SMALL <= scale < LARGE:
        exponent = math.floor(math.log10(scale))
    if error:
        place = math.floor(math.log10(error)) - exponent
        return Layout(exponent, min(max(0, 1 - place), MOST_DECIMALS))
    mantissa = float(as_decimal(value).scaleb(-exponent))
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
    """Return the error by which `lay_out` chooses the digits of an interval.

    There must be so many digits that each end of the interval, rounded outwards, is on
    the same side of each end of the equivalence region as the exact end.  The error is
    the largest of width / 4, width / 40, width / 400 and so on with which this is true,
    where width is that of the interval.  A width of 0 counts as 4 % of the end, or as 4
    if the end is 0.  The region is written with the same error.  None if an end of the
    interval is open (None).
    """
    if low is None or high is None:
        return None
    width = (high - low) / 4.0 or abs(low) / 1e2 or 1.0
    sides = (low, ROUND_FLOOR), (high, ROUND_CEILING)
    for error in (width / 10.0**finer for finer in range(18)):
        if all(_same_sides(end, region, error, rounding) for end, rounding in sides):
            break
    return error


@lru_cache(maxsize=CACHED)
def error_showing_nonzero(
    value: float, error: float, region: tuple[float | None, ...], rounding: str
) -> float:
    """Return an error with which `lay_out` does not show a nonzero end as 0.

    ``value`` is an end of an interval, ``region`` the equivalence region, and
    ``rounding`` a mode of the module ``decimal``.  The result is the given error if it
    suffices, else a tenth of the end.  If that would move the rounded end to another
    side of an end of the region, it is the given error after all.
    """
    if value == 0.0 or lay_out(value, error).shown(value, rounding) != 0:
        return error
    finer = abs(value) / 10.0
    return finer if _same_sides(value, region, finer, rounding) else error


def _same_sides(
    value: float, region: tuple[float | None, ...], error: float, rounding: str
) -> bool:
    """Return whether a value, once rounded, stays on its side of each end of a region.

    It is rounded to the digits that `lay_out` chooses for ``error``, by the mode
    ``rounding`` of the module ``decimal``.  It is compared with each end, rounded and
    exact.
    """
    shown = lay_out(value, error).shown(value, rounding)
    return all(
        (shown > e) - (shown < e) == (value > end) - (value < end)
        for end in region
        if end is not None
        for e in (lay_out(end, error_of_end(end, error)).shown(end), as_decimal(end))
    )


@lru_cache(maxsize=CACHED)
def error_of_end(end: float, error: float | None) -> float | None:
    """Return the error by which `lay_out` chooses the digits of an end of a region.

    None if four decimals show the end exactly, otherwise ``error``.
    """
    shown = float(lay_out(end, None).shown(end))
    return None if math.isclose(shown, end, rel_tol=1e-9) else error


@dataclass(frozen=True)
class NumberFormat:
    """Writes numbers in the format of a language."""

    locale: Locale

    @cached_property
    def signs(self) -> dict[int, str]:
        """Point, comma and minus -> the signs of the language, for `str.translate`."""
        point, comma = get_decimal_symbol(self.locale), get_group_symbol(self.locale)
        return str.maketrans({".": point, ",": comma, "-": MINUS})

    @property
    def decimal_sign(self) -> str:
        """The decimal point or comma of the language."""
        return self.signs[ord(".")]

    def text(
        self, value: float | Decimal, decimals: int, rounding: str = ROUND_HALF_EVEN
    ) -> str:
        """Return a number as plain text with a fixed number of decimals: ``1.50``.

        ``rounding`` is a mode of the module ``decimal``; from `GROUPED` on, digits are
        grouped.
        """
        shown = round_decimal(as_decimal(value), decimals, rounding)
        if shown == 0:
            shown = abs(shown)  # no "-0.00"
        grouped = "," if abs(shown) >= GROUPED else ""
        return f"{shown:{grouped}.{decimals}f}".translate(self.signs)

    def plain(
        self, value: float, error: float | None = None, rounding: str = ROUND_HALF_EVEN
    ) -> str:
        """Return a number as plain text, with two significant digits of its error.

        1.001 with the error 0.003 is ``1.0010``; without an error there are at most
        four decimals, as in ``1.234×10⁻⁷``.  ``rounding`` is as for `text`.
        """
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
        """Return a number as an HTML ``data`` element, which also has the exact value.

        Parameters
        ----------
        value : float or None
            None is the open end of an interval, shown as a dash.
        error : float, optional
            Standard error, which decides the digits.
        row : str
            Row id in measurements.csv, for the attribute ``data-row``.
        rounding : str
            A mode of the module ``decimal``.
        """
        if value is None:
            return Markup('<span class="open" aria-hidden="true">–</span>')
        layout = lay_out(value, error)
        mantissa = self.text(layout.mantissa(value), layout.decimals, rounding)
        return _markup(_data(value, f"{mantissa}{_power(layout.exponent)}", row))

    def with_error(self, value: float, error: float | None, row: str = "") -> Markup:
        """Return value ± standard error as HTML, with two digits of the error.

        It reads ``1.0010 ± 0.0030``.  An error that is None, infinite or NaN is left
        out.  So is an error of 0: that of a median of whole numbers can be 0 by chance.
        ``row`` is as for `number`.
        """
        if not error or not math.isfinite(error):
            return self.number(value, row=row)
        layout = lay_out(value, error)
        if error > 0.0 and layout.shown(error) == 0:
            pair = self.number(value, error, row), self.number(error)
            return _markup(PLUS_MINUS.join(pair))
        return self._of_layout((value, error), layout, row)

    def percent(self, value: float, error: float | None, row: str = "") -> Markup:
        """Return a share, in [0, 1], as HTML in per cent, with its error if known.

        0.123 with the error 0.004 reads ``12.30 ± 0.40 %``.  The exact value in the
        element is the share itself; the attribute ``data-percent`` says that 100 times
        the share is shown.  ``row`` is as for `number`.
        """
        raws = (value, error) if error and math.isfinite(error) else (value,)
        layout = lay_out(*(float(as_decimal(raw).scaleb(2)) for raw in raws))
        return self._of_layout(raws, layout, row, percent=True)

    def _of_layout(
        self,
        raws: tuple[float, ...],
        layout: Layout,
        row: str,
        *,
        percent: bool = False,
    ) -> Markup:
        """Return a number, or number ± error, as HTML, written by a layout.

        ``raws`` are the exact values: (number,) or (number, error).  ``row`` is the row
        id in measurements.csv, or empty.
        """
        exponent, decimals = layout
        elements = []
        for raw, of_row in zip(raws, (row, ""), strict=False):
            mantissa = as_decimal(raw).scaleb((2 if percent else 0) - exponent)
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
        """Return a number as HTML for prose: at most ``digits`` significant digits.

        The last digit's unit is more than a quarter of the standard ``error``.  A whole
        number without an error is shown in full.  With ``percent`` the value is a
        share, in [0, 1], and shown in per cent.  ``row`` is as for `number`.
        """
        shown = as_decimal(value).scaleb(2) if percent else as_decimal(value)
        size = abs(float(shown))
        whole = float(value).is_integer() and not error
        # the layout has two digits of an error: of 25 times it, a unit above a quarter
        coarse = 10.0 ** (math.floor(math.log10(size)) + 2 - digits) if size else 0.0
        known = 25.0 * (error or 0.0) * (100.0 if percent else 1.0)
        layout = lay_out(float(shown), None if whole else max(coarse, known))
        is_below_one = abs(layout.mantissa(float(shown))) < 1
        if layout.exponent and layout.decimals and is_below_one:
            layout = Layout(layout.exponent - 1, layout.decimals - 1)
        if layout.shown(float(shown)) == 0:
            layout = lay_out(float(shown), size)
        if not error:  # no more than it needs
            decimals = min(layout.decimals, lay_out(float(shown)).decimals)
            layout = layout._replace(decimals=decimals)
        return self._of_layout((value,), layout, row, percent=percent)

    @cached_property
    def before_percent(self) -> str:
        """The space before a percent sign in the language; an empty string if none."""
        return "" if self.locale.language in CLOSE_PERCENT else KEPT

    def interval(
        self, low: float | None, high: float | None, region: tuple[float | None, ...]
    ) -> Markup:
        """Return a confidence interval as HTML, rounded outwards: ``[0.950, 1.050]``.

        The ends that are shown are on the same sides of the ends of the equivalence
        region as the exact ends.  An open end is None, and shown as a dash.
        """
        shared = shared_error(low, high, region)
        ends = []
        for end, rounding in ((low, ROUND_FLOOR), (high, ROUND_CEILING)):
            error = shared
            if end is not None and error is not None:
                error = error_showing_nonzero(end, error, region, rounding)
            ends.append(self.number(end, error, rounding=rounding))
        between = ";" if self.decimal_sign == "," else ","
        return _markup(f"[{f'{between}{KEPT}'.join(ends)}]")

    def bound(self, low: float | None, high: float | None) -> Markup:
        """Return an interval as HTML, rounded outwards; ≤ or ≥ its end if one is open.

        An open end is None.  A single end has two significant digits: ``≤ 0.010``.
        """
        if low is not None and high is not None:
            return self.interval(low, high, (None, None))
        sign, rounding = (FROM, ROUND_FLOOR) if high is None else (UP_TO, ROUND_CEILING)
        end = low if high is None else high
        error = None if end is None else abs(end)
        return _markup(f"{sign}{KEPT}{self.number(end, error, rounding=rounding)}")

    def with_factor(self, value: float, factor: float, row: str = "") -> Markup:
        """Return value ×/÷ factor as HTML, with two significant digits of each.

        ``row`` is as for `number`.
        """
        shown = self.number(value, abs(value), row)
        return _markup(f"{shown}{KEPT}×/÷{KEPT}{self.number(factor, factor)}")

    def region(
        self, region: tuple[float | None, ...], low: float | None, high: float | None
    ) -> Markup:
        """Return an equivalence region as HTML: ``0.9 … 1.1``.

        If an end is open (None), it is ≤ or ≥ the other end.  An end that four decimals
        show exactly has no more than it needs.  Otherwise it has the digits of the
        interval from ``low`` to ``high``, which is shown with the region.
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
    """Return HTML as `Markup`, which templates do not escape again."""
    return Markup(written)  # noqa: S704 - digits, our own elements, names of rows


def _data(
    value: float, written: str, row: str, exponent: int = 0, *, percent: bool = False
) -> str:
    """Return an HTML ``data`` element: a number as written, with its exact value.

    Such as ``<data value=0.5 data-row=r12>0.50</data>``.  A power of ten is an
    attribute, too.  Attributes are without quotes, which HTML allows: a page has
    thousands of them.  A ``row`` that would need quotes raises a ValueError.
    """
    raw = repr(int(value)) if float(value).is_integer() else repr(float(value))
    if row and not UNQUOTED.fullmatch(row):
        raise ValueError(f"row must need no quotes in HTML, got {row!r}")
    of_row = f" data-row={row}" if row else ""
    power = f" data-power={exponent}" if exponent else ""
    hundredfold = " data-percent" if percent else ""
    return f"<data value={raw}{of_row}{power}{hundredfold}>{written}</data>"


def _power(exponent: int) -> str:
    """Return ``×10`` with an exponent as HTML; an empty string for the exponent 0."""
    written = str(exponent).replace("-", MINUS)
    return f"<span class=power>×10<sup>{written}</sup></span>" if exponent else ""

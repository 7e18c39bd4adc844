"""Rows of measurements.csv: columns, row ids, and the text that describes a row."""

import hashlib
import html
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from montecarlo.attention.divisors import Product, parse_divisor
from montecarlo.attention.quantities import (
    NOT_NEGATIVE,
    QUANTITIES,
    SHARE,
    Range,
    quantile_level,
    range_of,
)
from montecarlo.estimation.intervals import FEWEST_OUTLIERS, factor_of, round_end
from montecarlo.estimation.summaries import RowKey
from montecarlo.names import NONE
from montecarlo.sampling.design_points import DesignPoint

#: Descriptions of the summaries over attention rows.
SUMMARIES = {
    "mean": "mean over rows",
    "median": "median over rows",
    "first": "mean of the first row or key",
    "last": "mean of the last row or key",
    "spread": "90 % quantile over 10 % quantile",
    "share_above": "share of rows above the mean under the second divisor",
}


def summary_words(summary: str) -> str:
    """Return a summary over attention rows in words, such as ``median over rows``.

    For ``q99`` it is ``99 % quantile over rows``.  It is an empty string for ``value``,
    which is no summary over rows, and for unknown names.
    """
    if summary in SUMMARIES or quantile_level(summary) is None:
        return SUMMARIES.get(summary, "")
    return f"{summary.removeprefix('q')} % quantile over rows"


@dataclass(frozen=True, slots=True, repr=False)
class Measurement:
    """A row of measurements.csv; its attributes are the columns.

    Printing it shows a description, with as many digits as its error supports.  If a
    quantile lies beyond the grid on which rows are counted, the estimate is NaN and the
    interval is a bound.
    """

    distribution_q: str
    distribution_k: str
    normalisation: str
    dependence: str
    initialisation: str
    mask: str
    d_k: int
    n_queries: int
    n_keys: int | None
    divisor: str
    number_format: str
    softmax: str
    quantity: str
    summary: str
    estimate: float
    std_error: float
    ci_low: float
    ci_high: float
    n_replicates: int
    reference: float | None
    reference_error: float | None
    row_id: str

    def __str__(self) -> str:
        """Return a description of several lines: quantity, design point and numbers."""
        lines = [f"{name:<10}  {value}" for name, value in self.lines()]
        return "\n".join([self.heading, f"  {self.point}", *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the description of `__str__` as an HTML table for notebooks."""
        rows = "".join(
            f"<tr><th scope=row>{html.escape(name)}</th>"
            f"<td>{html.escape(value)}</td></tr>"
            for name, value in self.lines()
        )
        heading, point = html.escape(self.heading), html.escape(self.point)
        return f"<table><caption>{heading}<br>{point}</caption>{rows}</table>"

    @property
    def heading(self) -> str:
        """The quantity and its summary in words, with the quantity's name, as text.

        Such as ``largest weight of a row; mean over rows (weight_max)``.
        """
        is_ratio = "/" in self.divisor and self.summary != "share_above"
        words = plain_words(QUANTITIES[self.quantity].words)
        ratio = "ratio under two divisors" * is_ratio
        parts = [words, summary_words(self.summary), ratio]
        return f"{'; '.join(filter(None, parts))} ({self.quantity})"

    @property
    def point(self) -> str:
        """The design point and the divisor in words, as text.

        Such as ``gaussian entries, d_k = 64, n = 128, scores / (sqrt(d_k) = 8)``.
        """
        parts = [f"{self.distribution_q} entries"]
        if self.distribution_q != self.distribution_k:
            parts = [f"q {self.distribution_q}, k {self.distribution_k}"]
        conditions = (
            *(("dependence ", self.dependence), ("", self.initialisation)),
            *(("normalised by ", self.normalisation), ("mask ", self.mask)),
        )
        parts += [words + name for words, name in conditions if name not in ("", NONE)]
        parts.append(f"d_k = {self.d_k}")
        parts += [f"n = {self.n_keys}"] * (self.n_keys is not None)
        if self.number_format != "float64":
            parts.append(f"weights in {self.number_format}, softmax {self.softmax}")
        return ", ".join([*parts, self._divisor_words()])

    def _divisor_words(self) -> str:
        """Return what scores are divided by in words: a formula, and its value.

        Such as ``scores / (sqrt(d_k) = 8)`` or ``undivided scores``; for a ratio
        ``scores / 1 over scores / (sqrt(d_k) = 8)``.  For a quantity that does not
        depend on the divisor it is ``the same by any divisor``.
        """
        if not QUANTITIES[self.quantity].divided:
            return "the same by any divisor"
        parts = []
        for name in self.divisor.split("/"):
            one = parse_divisor(name)
            value = f"{one.value(self.d_k, self.n_keys):.6g}"
            words = value if one.text == value else f"({one.text} = {value})"
            parts.append(f"scores / {words}")
        return " over ".join(parts) if parts != ["scores / 1"] else "undivided scores"

    def lines(self) -> list[tuple[str, str]]:
        """Return the numbers of the measurement as a list of (label, text).

        Labels are ``note`` (if a divisor is below 1), ``estimate``, ``95 %``, ``exact``
        (if theory has a value) and ``replicates``, such as in
        ``("95 %", "[0.0681, 0.0692]")``.  If nothing was sampled, there is only
        ``exact``, after any ``note``.
        """
        notes = self._notes()
        if not self.n_replicates:
            known_to = f"known to {self.reference_error:.1g}"
            return [*notes, ("exact", f"{self.reference:.12g}, {known_to}")]
        error = self.std_error
        estimate = self._bound() or round_to(self.estimate, error)
        if self.is_binned:
            estimate = f"in {self._interval()}, a bin of a histogram"
        if self.is_all_or_none:
            which = "none" if self.estimate == 0.0 else "all"
            estimate = f"{self.estimate:g}: {which} of the rows drawn"
        elif factor := self.factor:
            estimate += f" ×/÷ {round_end(factor, 3, up=True):.3g}"
        elif error > 0.0 and not self._open_side():
            estimate += f" ± {round_to(error, error)}"
        lines = [*notes, ("estimate", estimate), ("95 %", self._interval())]
        if self.reference is not None:
            exact = round_to(self.reference, error / 100.0)
            rounding = 1e-12 * abs(self.estimate) + (self.reference_error or 0.0)
            if error > 10.0 * rounding:
                exact += f" (z = {(self.estimate - self.reference) / error:+.2f})"
            lines.append(("exact", exact))
        return [*lines, ("replicates", str(self.n_replicates))]

    def _notes(self) -> Iterator[tuple[str, str]]:
        """Yield ("note", text) for each divisor below 1, which may not be meant.

        Scores are multiplied by a number above 1 then.  The note says so, and which
        divisor multiplies them by the number below 1.
        """
        for one in map(parse_divisor, self.divisor.split("/")):
            if (value := one.value(self.d_k, self.n_keys)) < 1.0:
                inverse = Product(1.0).times(one.formula, -1.0).text
                times = f"scores are multiplied by {1.0 / value:.6g}; to multiply them"
                yield "note", f"{times} by {value:.6g}, divide by {inverse}"

    @property
    def is_binned(self) -> bool:
        """Whether the interval is a bin of a histogram; the standard error is then NaN.

        Further replicates would not make it smaller.
        """
        ends = self.estimate, self.ci_low, self.ci_high
        return math.isnan(self.std_error) and all(map(math.isfinite, ends))

    @property
    def factor(self) -> float | None:
        """The error of a quantile as a factor f, for the text ``estimate ×/÷ f``.

        It follows from the 95 % interval, see `factor_of`.  None if the error is small,
        and for other summaries than quantiles and their ratio.
        """
        if quantile_level(self.summary) is None and self.summary != "spread":
            return None
        return factor_of(self.ci_low, self.ci_high)

    @property
    def digits(self) -> float:
        """The error that determines to how many digits numbers are rounded.

        It is the standard error, or a quarter of the width of a bin; see `round_to`.
        """
        return (self.ci_high - self.ci_low) / 4.0 if self.is_binned else self.std_error

    @property
    def is_all_or_none(self) -> bool:
        """Whether the estimate is a share of attention rows, and is 0 or 1."""
        is_share = QUANTITIES[self.quantity].indicator and "/" not in self.divisor
        return is_share and self.estimate in (0.0, 1.0)

    def _open_side(self) -> str:
        """Return the side on which a share is bounded: ``most``, ``least``, or "".

        ``most`` for a share that may be 0, ``least`` for one that may be 1.  An empty
        string if the interval is to be shown with both ends.
        """
        is_share = self.summary == "mean" and self._range() == SHARE
        may_be_0, may_be_1 = self.ci_low == 0.0, self.ci_high == 1.0
        if not is_share or may_be_0 == may_be_1:
            return ""
        return "most" if may_be_0 else "least"

    def _bound(self) -> str:
        """Return the bound of a quantile that lies beyond the grid, in words.

        Such as ``at most 1e-07: smaller values are not distinguished``.  An empty
        string if there is an estimate, or if there is no interval.
        """
        if not math.isnan(self.estimate) or math.isnan(self.ci_low):
            return ""
        if math.isfinite(self.ci_high):
            high = round_to(self.ci_high, 0.0, ROUND_CEILING)
            return f"at most {high}: smaller values are not distinguished"
        low = round_to(self.ci_low, 0.0, ROUND_FLOOR)
        return f"at least {low}: larger values are not distinguished"

    def _range(self) -> Range:
        """Return the smallest and the largest possible value of the estimated number.

        Intervals are clipped to this range.
        """
        if "/" in self.divisor or self.summary == "spread":
            return NOT_NEGATIVE
        return range_of(self.quantity, self.n_keys, self.number_format, self.softmax)

    def _interval(self) -> str:
        """Return the 95 % interval as text, or the reason why there is none.

        Such as ``[0.0681, 0.0692]``, ``at most 0.0012`` or ``none: ...``.  Ends are
        rounded outwards.
        """
        if math.isnan(self.ci_low):
            return "none: the distribution lacks the moments that it needs"
        if math.isinf(self.ci_high) and (self.ci_low, self.ci_high) == self._range():
            return (
                "none: nearly all of the variance comes from fewer than "
                f"{FEWEST_OUTLIERS} replicates"
            )
        low = round_to(self.ci_low, self.digits, ROUND_FLOOR)
        high = round_to(self.ci_high, self.digits, ROUND_CEILING)
        side = self._open_side()
        if not side:
            return f"[{low}, {high}]"
        end = f"at {side} {high if side == 'most' else low}"
        if self.is_all_or_none:
            end += ", whatever the rows of a replicate have in common"
        return end


MEASUREMENTS = "measurements.csv"
#: The columns of measurements.csv, in order; docs/results-folder.md describes them.
COLUMNS = tuple(one.name for one in fields(Measurement))
#: The columns that identify a row.
IDENTITY = COLUMNS[: COLUMNS.index("estimate")]


def identity(point: DesignPoint, key: RowKey) -> tuple[str | int | None, ...]:
    """Return the values that identify a row of measurements.csv.

    They are the values of the columns `IDENTITY`, in order, such as
    ``("gaussian", ...)``.
    """
    return (
        *point.names,
        point.d_k,
        point.shape[0],
        point.n_keys,
        key.divisor,
        key.number_format,
        key.softmax,
        key.quantity,
        key.summary,
    )


def table_row(
    point: DesignPoint, key: RowKey, *numbers: float | None
) -> tuple[object, ...]:
    """Return the values of a row of measurements.csv, in the order of `COLUMNS`.

    ``numbers`` are the values of the columns from ``estimate`` to ``reference_error``.
    """
    return (*identity(point, key), *numbers, row_id(point, key))


def row_id(point: DesignPoint, key: RowKey) -> str:
    """Return the ``row_id`` of a row, a short hash of the columns that identify it.

    Such as ``r49caa916ae5``.  The columns ``normalisation`` and ``mask`` are omitted
    where they are none, so that ids are the same as in versions without them.
    """
    named = dict(zip(IDENTITY, identity(point, key), strict=True))
    if not point.is_normalised:
        del named["normalisation"]
    if not point.is_masked:
        del named["mask"]
    text = ";".join(map(str, named.values()))
    return "r" + hashlib.sha256(text.encode()).hexdigest()[:11]


def round_to(value: float, error: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a number as text, rounded to the second significant digit of its error.

    Parameters
    ----------
    value, error : float
        If the error is NaN, infinite or 0, or beyond the digits of a double, eight
        significant digits are shown.
    rounding : str
        A rounding mode of `decimal`, such as one that rounds ends of intervals
        outwards.

    Examples
    --------
    >>> round_to(7.4166726, 0.00027), round_to(123456.0, 4321.0), round_to(2e-20, 1e-22)
    ('7.41667', '123500', '2.000e-20')
    """
    if not math.isfinite(value):
        return f"{value:.8g}"

    def rounded(digits: int) -> float:
        """Return ``value`` rounded to ``digits`` significant digits by ``rounding``."""
        return float(Context(digits, rounding).create_decimal(repr(float(value))))

    if not error > 0.0 or not math.isfinite(error):
        return f"{rounded(8):.8g}"
    last = math.floor(math.log10(error)) - 1
    first = math.floor(math.log10(abs(value))) if value else last
    if -5 <= first < 9 or not value:
        if last < -15:
            return f"{rounded(8):.8g}"
        shown = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(last), rounding)
        return f"{shown:.{max(0, -last)}f}"
    digits = max(0, min(first - last, 15))
    return f"{rounded(digits + 1):.{digits}e}"


def plain_words(message: str) -> str:
    r"""Return the description of a quantity as plain text, without LaTeX.

    Examples
    --------
    >>> plain_words(r"share of rows with $p_{\max} \ge 0.9$")
    'share of rows with p_max >= 0.9'
    """
    return re.sub(r"[${}]|\\(?=max)", "", message).replace(r"\ge", ">=")

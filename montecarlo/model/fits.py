"""What a fit of the applied scale says, and which of several is believed.

A fit is of a *form*: what becomes of a score s before softmax.  ``plain`` is λ s; the
others add something that is no scale.  The simplest form that no later one beats
clearly is taken; where it leaves more than rounding does, none is.  What is taken is
examined once more: for a bend that its interval has to cover, and for rows that have
scales of their own.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from montecarlo.attention.number_formats import ALL_FORMATS, NumberFormat
from montecarlo.attention.softmax import Array
from montecarlo.estimation.estimates import POINTWISE
from montecarlo.estimation.intervals import Interval

#: A later form is believed if it leaves less than this part of what an earlier leaves.
CLEARLY = 0.8
#: And if its further parameters explain so many times what they would by chance: with
#: 20 degrees of freedom or more a single one does once in 10,000 heads at most.
BEYOND_CHANCE = 25.0
#: Forms that may be mistaken for each other where little bends.
SIMPLE = ("plain", "distance", "cap")
#: What may be left, as a part of what the form explains: sums in a narrower format,
#: such as a graphics card's, leave more than the rounding of what was captured.
MOST_LEFT = 0.01
#: What rounding leaves at most, in multiples of one operation's part; that of scores is
#: not believed to be more than this part of what is explained.
MOST_ROUNDING, MOST_OF_SCORES = 3.0, 0.05
#: Degrees of freedom that a further form has to leave, in all and as a part of its own;
#: and numbers beyond a constant of each row without which any have a scale.
FEWEST_LEFT, PART_LEFT, FEWEST_NUMBERS = 20, 0.5, 4
#: Rows of equal influence that agree by more than chance.
FEWEST_ROWS = 4
#: What a sum of squares is counted as at least, so that it can be divided by.
LEAST_SQUARE = 1e-300
#: Standard errors beyond which a bend is believed: by chance 3 of 1,000 are.
BEND = 3.0
#: Scores that differ by less than this part of their size are the same: sums of
#: products were rounded.
LEAST_SPREAD = 1e-6


@dataclass(frozen=True, slots=True)
class Fit:
    """A form, fitted to the rows of a head."""

    form: str
    scale: float  # λ: what scores are multiplied by
    std_error: float  # of it, over rows; no less than rounding of each step makes
    n_rows: float  # that it is worth
    left: float  # root mean square of what the form leaves, per degree of freedom
    n_free: int  # degrees of freedom that it leaves
    direct: float  # what rounding of weights or outputs leaves at most
    by_scores: float  # what that of scores leaves, were they of the same format
    moved: float  # by that a score after the scale at most, in roots of mean squares
    #: Whether what is left where scores matter shows that these were not rounded, on
    #: enough rows to believe it.
    is_fine: bool
    explained: float  # root mean square that scores explain, beside the rest
    spread: float  # of the scores within rows: λ matters as a multiple of it
    parameter: float = math.nan  # of the form: the slope of a bias, the cap
    misfit: float = 0.0  # see `_examine`

    @property
    def rounding(self) -> float:
        """What rounding leaves at most, where what it makes of scores is believed."""
        return math.hypot(
            self.direct, min(self.by_scores, MOST_OF_SCORES * self.explained)
        )

    @property
    def is_exact(self) -> bool:
        """Whether it leaves no more than rounding does."""
        return self.left <= self.rounding

    @property
    def holds(self) -> bool:
        """Whether what it leaves is small enough for the form to be believed."""
        return self.left <= max(self.rounding, MOST_LEFT * self.explained)

    @property
    def interval(self) -> Interval:
        """95 % interval of the scale: Student's over rows, and the misfit beside it."""
        return self.interval_at(POINTWISE)

    def interval_at(self, error: float) -> Interval:
        """Return the interval that misses the scale on either side so often."""
        quantile = -float(stdtrit(max(self.n_rows - 1.0, 1.0), error))
        half = quantile * self.std_error + self.misfit
        return Interval(self.scale - half, self.scale + half)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a form is fitted to, and what it leaves: arrays of shape (n,).

    A number is the logarithm of a weight, or an entry of an output.
    """

    direction: Array  # the scale's column without what the other columns explain
    left: Array  # what the fit leaves
    rows: NDArray[np.intp]
    weights: Array  # of the squares that were made least
    own: Array  # what rounding moves directly, in units of its part
    by_scores: Array  # what rounding of scores moves, likewise
    per_score: Array  # what moving each score by 1 would move it by
    unit: float  # what rounding moves a number by, as a part of it

    def size(self, values: Array) -> float:
        """Return the weighted root mean square."""
        return math.sqrt(self.product(values, values) / float(self.weights.sum()))

    def product(self, first: Array, second: Array) -> float:
        """Return the weighted sum of products."""
        return float((self.weights * first * second).sum())


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fit, what it was made from, and what makes the columns that its form may lack.

    The columns are without what the form's further columns explain.
    """

    fit: Fit
    numbers: Numbers
    bends: Callable[[], Sequence[Array]]


def describe_fit(  # noqa: PLR0913 - what each way of fitting knows alone
    form: str,
    scale: float,
    numbers: Numbers,
    *,
    n_free: int,
    explained: float,
    spread: float,
    parameter: float = math.nan,
    groups: NDArray[np.intp] | None = None,
) -> Fit:
    """Return what a fit says.

    Of numbers with a constant for each of some ``groups`` the error is that over rows
    or that over groups, whichever is larger: a constant is rounded once for all.
    """
    n_free = max(n_free, 1)
    direction, left, weights = numbers.direction, numbers.left, numbers.weights
    error, n_rows = _error_of(direction, left, numbers.rows, weights)
    if groups is not None:
        error = max(error, _error_of(direction, left, groups, weights)[0])
    scores, each = numbers.size(numbers.by_scores), numbers.size(numbers.per_score)
    least = MOST_ROUNDING * numbers.unit
    shown, rounded = (
        numbers.size(one * numbers.per_score) for one in (left, numbers.own)
    )
    is_fine = n_rows >= FEWEST_ROWS and shown <= least * rounded
    error = max(error, _rounding_error(numbers, of_scores=not is_fine))
    # numbers that agree to the last bit still come from sums in float64
    floor = 2.0**-50 * (abs(scale) + 1.0 / spread)
    return Fit(
        form,
        scale,
        math.hypot(error, floor),
        n_rows,
        numbers.size(left) * math.sqrt(len(left) / n_free),
        n_free,
        least * numbers.size(numbers.own),
        least * scores,
        numbers.unit * scores / each if each else 0.0,
        is_fine,
        explained,
        spread,
        parameter,
    )


def _rounding_error(numbers: Numbers, *, of_scores: bool) -> float:
    """Return the standard error that rounding makes, that of scores or without it.

    Few rows may agree with each other by chance, and then say nothing of their error.
    What is rounded is off by up to its unit, evenly: by a third of its square.
    """
    variances = (numbers.own**2 + of_scores * numbers.by_scores**2) / 3.0
    moved = numbers.weights * numbers.direction
    square = numbers.product(numbers.direction, numbers.direction)
    error = math.sqrt(float((np.square(moved) * variances).sum()))
    return numbers.unit * error / square if square else math.inf


def believe(fits: Iterable[Fitted]) -> Fit:
    """Return the fit that is believed, of those of all forms, the simplest first."""
    found = list(fits)
    chosen = _choose([one.fit for one in found])
    (made,) = (one for one in found if one.fit.form == chosen.form)
    return _examine(chosen, made.numbers, made.bends())


def _choose(found: Sequence[Fit]) -> Fit:
    """Return the first fit that no later one beats clearly.

    None does where that leaves no more than the rounding of weights or outputs: what a
    further form explains then is smaller than one can see, a chance of roundings that
    depend on each other.  The interval holds its scale nevertheless.

    It also holds the scales of simple forms that leave hardly more, where so much is
    left that rounding of the scores has to be called upon: any of them may be the
    model's.
    """
    first, unseen = found[0], list[float]()
    for one in found[1:]:
        if not _is_better(one, first):
            continue
        if first.left <= first.direct:
            unseen.append(abs(one.scale - first.scale))
        else:
            first = one
    if first.left <= first.direct:
        others = unseen
    elif first.form in SIMPLE:
        others = [
            abs(one.scale - first.scale)
            for one in found
            if one.form in SIMPLE and one.left <= first.left / CLEARLY
        ]
    else:
        return first
    return replace(first, std_error=math.hypot(first.std_error, max(others, default=0)))


def _is_better(one: Fit, first: Fit) -> bool:
    """Tell whether a form explains clearly more than a simpler one."""
    if not one.left < CLEARLY * first.left:
        return False
    more = first.n_free - one.n_free
    gain = first.left**2 * first.n_free - one.left**2 * one.n_free
    return gain >= BEYOND_CHANCE * one.left**2 * max(more, 1)


def _examine(fit: Fit, numbers: Numbers, bends: Sequence[Array]) -> Fit:
    """Look for what a form leaves that noise does not: bends, and rows that disagree.

    The ``misfit`` is the largest shift of the scale by a column that explains something
    beyond chance: to first order what the column's absence does to the scale.  Where
    rows have scales of their own it is of the form ``row``; if rounding can be the
    reason, the spread of their scales is a misfit.
    """
    direction, left = numbers.direction, numbers.left
    total, square = (numbers.product(one, one) for one in (left, direction))
    shifts = [0.0]
    for bend in bends if square else ():
        share = numbers.product(bend, direction) / square
        alone = bend - share * direction
        size = numbers.product(alone, alone)
        if size <= LEAST_SPREAD**2 * numbers.product(bend, bend):
            continue  # the same as the scale's own column
        slope = numbers.product(alone, left) / size
        error, _ = _error_of(alone, left - slope * alone, numbers.rows, numbers.weights)
        if abs(slope) > BEND * error:
            shifts.append(abs(slope * share))
    fit = replace(fit, misfit=max(shifts))
    squares = np.bincount(numbers.rows, numbers.weights * direction**2)
    products = np.bincount(numbers.rows, numbers.weights * direction * left)
    some = squares > 0.0
    slopes = products[some] / squares[some]
    n_free = fit.n_free - len(slopes) + 1
    if n_free < max(FEWEST_LEFT, PART_LEFT * len(slopes)):
        return fit
    rest = max(total - float((products[some] * slopes).sum()), 0.0)
    rest *= len(left) / float(numbers.weights.sum())
    apart = replace(fit, form="row", left=math.sqrt(rest / n_free), n_free=n_free)
    bent = replace(fit, left=_leave(numbers, bends) * fit.left)
    if not (_is_better(apart, fit) and _is_better(apart, bent) and apart.holds):
        return fit
    if fit.is_exact:
        spread = math.sqrt(float((squares[some] * slopes**2).sum()) / square)
        return replace(fit, misfit=max(fit.misfit, spread))
    return replace(
        apart, scale=fit.scale + float(np.median(slopes)), parameter=math.nan
    )


def _leave(numbers: Numbers, bends: Sequence[Array]) -> float:
    """Return what bends leave, as a part of what was left without them."""
    root = np.sqrt(numbers.weights)
    columns = np.stack([numbers.direction, *bends], axis=1) * root[:, None]
    columns /= np.maximum(np.sqrt(np.square(columns).sum(axis=0)), LEAST_SQUARE)
    left = numbers.left * root
    rest = left - columns @ np.linalg.lstsq(columns, left)[0]
    return math.sqrt(float(rest @ rest) / max(float(left @ left), LEAST_SQUARE))


def _error_of(
    direction: Array, left: Array, rows: NDArray[np.intp], weights: Array
) -> tuple[float, float]:
    """Return the standard error of a coefficient, by leaving each row out.

    With it, how many rows of equal influence it is worth: fewer than there are where
    some count much more than others.

    Errors within a row may depend on each other.  A row's influence is divided by one
    less its leverage, as the jackknife over rows does for a single coefficient.  The
    second is what Satterthwaite's formula makes of influences in proportion to
    leverages.
    """
    squares = np.bincount(rows, weights * direction * direction)
    slopes = np.bincount(rows, weights * direction * left)
    total = squares.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        influence = np.where(squares > 0.0, slopes / (total - squares), 0.0)
    n_rows = np.count_nonzero(squares)
    if n_rows < 2:
        return math.inf, 1.0
    error = float(np.sqrt(np.square(influence).sum() * (n_rows - 1) / n_rows))
    return error, float(total**2 / np.square(squares).sum())


def format_of(arrays: Sequence[Array]) -> NumberFormat:
    """Return the narrowest number format that holds all of some numbers.

    What an array is kept in says less: weights of a bfloat16 model are often stored as
    float32.
    """
    narrow = sorted(ALL_FORMATS.values(), key=lambda one: one.bits)
    for one in narrow[:-1]:
        if all(np.array_equal(one.round(array), array) for array in arrays):
            return one
    return narrow[-1]


@lru_cache
def spacing_of(number_format: NumberFormat) -> float:
    """Return the least positive number of a format: distances below are no smaller."""
    power = 1074
    while not number_format.round(np.array([2.0**-power]))[0]:
        power -= 1
    return float(2.0**-power)


def unit_of(number_format: NumberFormat) -> float:
    """Return what rounding moves a number by at most, as a part of it."""
    return float(2.0**-number_format.bits)

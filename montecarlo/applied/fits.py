"""What a fit of the applied scale says, and which of several is believed.

A fit is of a *form*: what becomes of a score s before softmax.  ``plain`` is λ s; the
others add something that is no scale.  The simplest form that no later one beats
clearly is taken; where it leaves more than rounding does, none is.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

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
#: Degrees of freedom that a further form has to leave; and numbers beyond a constant of
#: each row without which any have a scale.
FEWEST_LEFT, FEWEST_NUMBERS = 20, 4
#: Scores that differ by less than this part of their size are the same: sums of
#: products were rounded.
LEAST_SPREAD = 1e-6


@dataclass(frozen=True, slots=True)
class Fit:
    """A form, fitted to the rows of a head.

    Attributes
    ----------
    form : str
    scale : float
        λ: what scores are multiplied by.
    std_error : float
        Of it, over rows.
    n_rows : float
        Rows that it is worth.
    left : float
        Root mean square of what the form leaves, per degree of freedom.
    n_free : int
        Degrees of freedom that it leaves.
    rounding : float
        What rounding of the numbers at hand leaves at most.
    explained : float
        Root mean square of what the scores explain, beside the rest of the form.
    spread : float
        Standard deviation of the scores within rows: λ matters as a multiple of it.
    parameter : float
        Of the form: the slope of a bias, the cap; NaN for those without.
    direct : float
        The part of ``rounding`` that is not that of scores.

    Notes
    -----
    The interval is of errors that look like noise.  That the scores of a model were
    rounded before softmax may move a scale by more than it says: in bfloat16 by less
    than a thousandth where it was tried.
    """

    form: str
    scale: float
    std_error: float
    n_rows: float
    left: float
    n_free: int
    rounding: float
    explained: float
    spread: float
    parameter: float = math.nan
    direct: float = 0.0

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
        """Student's 95 % interval of the scale over rows."""
        half = -float(stdtrit(max(self.n_rows - 1.0, 1.0), POINTWISE)) * self.std_error
        return Interval(self.scale - half, self.scale + half)


def bound_rounding(
    unit: float, own: float, scores: float, explained: float
) -> tuple[float, float]:
    """Return what rounding leaves at most, and the part of it that is not of scores.

    Parameters
    ----------
    unit : float
        What rounding moves a number by, as a part of it.
    own : float
        Root mean square of what it moves directly.
    scores : float
        The same of what the rounding of scores moves.
    explained : float
        Root mean square of what is explained.
    """
    direct = MOST_ROUNDING * unit * own
    by_scores = min(MOST_ROUNDING * unit * scores, MOST_OF_SCORES * explained)
    return math.hypot(direct, by_scores), direct


def choose(fits: Iterable[Fit]) -> Fit:
    """Return the first fit that no later one beats clearly.

    Its interval holds the scales of simple forms that leave hardly more, where so much
    is left that rounding of the scores has to be called upon: any of them may be the
    model's.
    """
    found = list(fits)
    first = found[0]
    for one in found[1:]:
        if is_better(one, first):
            first = one
    if first.left <= first.direct or first.form not in SIMPLE:
        return first
    others = [
        abs(one.scale - first.scale)
        for one in found
        if one.form in SIMPLE and one.left <= first.left / CLEARLY
    ]
    return replace(first, std_error=math.hypot(first.std_error, max(others, default=0)))


def is_better(one: Fit, first: Fit) -> bool:
    """Tell whether a form explains clearly more than a simpler one."""
    if not one.left < CLEARLY * first.left:
        return False
    more = first.n_free - one.n_free
    gain = first.left**2 * first.n_free - one.left**2 * one.n_free
    return gain >= BEYOND_CHANCE * one.left**2 * max(more, 1)


def error_of(
    direction: Array, left: Array, rows: NDArray[np.intp], weights: Array
) -> tuple[float, float]:
    """Return the standard error of a coefficient, by leaving each row out.

    Parameters
    ----------
    direction : ndarray, shape (n,)
        The coefficient's column without what the other columns explain.
    left : ndarray, shape (n,)
        What the fit leaves.
    rows : ndarray of int, shape (n,)
    weights : ndarray, shape (n,)
        Of the squares that were made least.

    Returns
    -------
    float, float
        The error, and how many rows of equal influence it is worth: fewer than there
        are where some count much more than others.

    Notes
    -----
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

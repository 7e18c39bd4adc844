"""What a fit of the applied scale says, and which of several is believed.

A fit is of a *form*: what becomes of a score s before softmax.  ``plain`` is λ s; the
others add something that is no scale.  The simplest form that no later one beats
clearly is taken; where it leaves more than rounding does, none is.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.softmax import Array
from montecarlo.estimation.estimates import POINTWISE
from montecarlo.estimation.intervals import Interval, t_quantile

#: A later form is believed if it leaves less than this part of what an earlier leaves.
CLEARLY = 0.8
#: What may be left, as a part of what the form explains: sums in a narrower format,
#: such as a graphics card's, leave more than the rounding of what was captured.
MOST_LEFT = 0.01
#: What rounding leaves at most, in multiples of one operation's part; that of scores is
#: not believed to be more than this part of what is explained.
MOST_ROUNDING, MOST_OF_SCORES = 3.0, 0.05


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
    n_rows : int
    left : float
        Root mean square of what the form leaves, per degree of freedom.
    rounding : float
        What rounding of the numbers at hand leaves at most.
    explained : float
        Root mean square of what the form explains.
    spread : float
        Standard deviation of the scores within rows: λ matters as a multiple of it.
    parameter : float
        Of the form: the slope of a bias, the cap; NaN for those without.
    """

    form: str
    scale: float
    std_error: float
    n_rows: int
    left: float
    rounding: float
    explained: float
    spread: float
    parameter: float = math.nan

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
        half = t_quantile(POINTWISE, max(self.n_rows, 2)) * self.std_error
        return Interval(self.scale - half, self.scale + half)


def bound_rounding(unit: float, own: float, scores: float, explained: float) -> float:
    """Return what rounding leaves at most.

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
    return math.hypot(direct, by_scores)


def choose(fits: Iterable[Fit]) -> Fit:
    """Return the first fit that no later one beats clearly."""
    first, *later = fits
    for one in later:
        if one.left < CLEARLY * first.left:
            first = one
    return first


def error_of(
    direction: Array, left: Array, rows: NDArray[np.intp], weights: Array
) -> float:
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

    Notes
    -----
    Errors within a row may depend on each other.  A row's influence is divided by one
    less its leverage, as the jackknife over rows does for a single coefficient.
    """
    squares = np.bincount(rows, weights * direction * direction)
    slopes = np.bincount(rows, weights * direction * left)
    total = squares.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        influence = np.where(squares > 0.0, slopes / (total - squares), 0.0)
    n_rows = np.count_nonzero(squares)
    if n_rows < 2:
        return math.inf
    return float(np.sqrt(np.square(influence).sum() * (n_rows - 1) / n_rows))

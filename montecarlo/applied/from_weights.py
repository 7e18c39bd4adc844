"""The scale from attention weights: a regression within rows.

Within a row softmax is known up to a constant: ln p_j - ln p_l = λ (s_j - s_l).  Each
logarithm is weighed by what rounding leaves of it; a weight that rounding has nearly
eaten up is left out, and so are those that are 0.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import lsmr

from montecarlo.applied.fits import Fit, bound_rounding, choose, error_of
from montecarlo.applied.rows import WeightBlock, format_of, spacing_of, unit_of
from montecarlo.attention.softmax import Array

#: Weights that are fewer times the least number of their format are left out.
FEWEST_STEPS = 32
#: What float64 leaves of logarithms and their sums, at least.
LEAST_UNIT = 2.0**-48
#: Degrees of freedom that a form has to leave, at least and as a part of its own.
FEWEST_LEFT, PART_LEFT = 20, 0.5
#: Caps that are tried, in standard deviations of the scores, before the best is
#: refined.
CAPS = np.geomspace(0.5, 200.0, 24)
#: Steps of that.
STEPS = 12
#: What a sum of squares is counted as at least, so that it can be divided by.
LEAST_SQUARE = 1e-300
Labels = NDArray[np.intp]


@dataclass(frozen=True)
class Pairs:
    """Pairs of a head's rows whose weight can be used, one after the other.

    Attributes
    ----------
    scores, logs, weights : ndarray, shape (n,)
        Score, logarithm of the attention weight, and what it counts.
    rows, offsets, keys, places : ndarray of int, shape (n,)
        Of each pair: its row; the key's place less the query's; the key, of which each
        sequence has its own; the two places, the same in all sequences.
    unit : float
        What rounding moves an attention weight by, as a part of it.
    """

    scores: Array
    logs: Array
    weights: Array
    rows: Labels
    offsets: Labels
    keys: Labels
    places: Labels
    unit: float

    @cached_property
    def totals(self) -> Array:
        """Sum of what counts in each row."""
        return np.asarray(np.bincount(self.rows, self.weights), dtype=np.float64)

    @property
    def n_rows(self) -> int:
        """Rows with at least one pair."""
        return int(np.count_nonzero(self.totals))

    def within(self, values: Array) -> Array:
        """Return values less their mean over the row."""
        with np.errstate(invalid="ignore"):
            means = np.bincount(self.rows, self.weights * values) / self.totals
        found: Array = values - means[self.rows]
        return found

    def square(self, values: Array) -> float:
        """Return the weighted sum of squares."""
        return float((self.weights * values * values).sum())


def gather_pairs(blocks: Sequence[WeightBlock]) -> Pairs:
    """Return the pairs of blocks whose attention weight can be used."""
    number_format = format_of([block.weights for block in blocks])
    unit = max(unit_of(number_format), LEAST_UNIT)
    least = spacing_of(number_format)
    longest = max(block.scores.shape[1] for block in blocks)
    reals: list[tuple[Array, ...]] = []
    labels: list[tuple[Labels, ...]] = []
    n_rows = n_keys = 0
    for block in blocks:
        row, key = np.nonzero(block.weights >= FEWEST_STEPS * least)
        p = block.weights[row, key]
        counts = unit**2 / (unit**2 + (least / p) ** 2 / 4.0)  # a half step beside it
        reals.append((block.scores[row, key], np.log(p), counts))
        places = block.places[row] * longest + key
        labels.append((row + n_rows, block.offsets[row, key], key + n_keys, places))
        n_rows, n_keys = n_rows + len(block.weights), n_keys + block.weights.shape[1]
    scores, logs, weights = (
        np.concatenate(parts) for parts in zip(*reals, strict=True)
    )
    rows, offsets, keys, pairs = (
        np.concatenate(parts) for parts in zip(*labels, strict=True)
    )
    return Pairs(scores, logs, weights, rows, offsets, keys, pairs, unit)


def fit_weights(blocks: Sequence[WeightBlock]) -> Fit | None:
    """Fit the applied scale to attention weights; None where nothing can be told."""
    pairs = gather_pairs(blocks)
    if len(pairs.scores) - pairs.n_rows < 2:
        return None
    spread = pairs.square(pairs.within(pairs.scores)) / pairs.weights.sum()
    if not spread > 0.0 or not math.isfinite(spread):
        return None
    return choose(_fits(pairs, math.sqrt(spread)))


def _fits(pairs: Pairs, spread: float) -> Iterator[Fit]:
    """Yield fits of all forms that have enough pairs, from the simplest on.

    Those with many constants are not asked once no more is left than rounding leaves.
    """
    found = [
        _regress(pairs, "plain", [], spread),
        _regress(pairs, "distance", [np.abs(pairs.offsets).astype(float)], spread),
        _fit_cap(pairs, spread),
    ]
    yield from found
    groups = {"offset": pairs.offsets, "key": pairs.keys, "pair": pairs.places}
    for form, labels in groups.items():
        if any(one.is_exact for one in found):
            return
        if _is_enough(pairs, pairs.n_rows + len(np.unique(labels))):
            found.append(_regress_groups(pairs, form, labels, spread))
            yield found[-1]
    if _is_enough(pairs, 2 * pairs.n_rows):
        yield _fit_rows(pairs, spread)


def _is_enough(pairs: Pairs, n_parameters: int) -> bool:
    left = len(pairs.scores) - n_parameters
    return left >= max(FEWEST_LEFT, PART_LEFT * n_parameters)


def _make_fit(  # noqa: PLR0913, PLR0917 - what a form's own way of fitting found
    pairs: Pairs,
    form: str,
    scale: float,
    direction: Array,
    left: Array,
    n_parameters: int,
    spread: float,
    parameter: float = math.nan,
) -> Fit:
    free = max(len(left) - pairs.n_rows - n_parameters, 1)
    squares = pairs.square(left) * len(left) / pairs.weights.sum()
    explained = pairs.within(pairs.logs) - left
    error = error_of(direction, left, pairs.rows, pairs.weights)
    # numbers that agree to the last bit still come from sums in float64
    floor = 2.0**-50 * (abs(scale) + 1.0 / spread)
    part, sizes = (
        math.sqrt(pairs.square(values) / pairs.weights.sum())
        for values in (explained, scale * pairs.scores)
    )
    return Fit(
        form,
        scale,
        math.hypot(error, floor),
        pairs.n_rows,
        math.sqrt(squares / free),
        bound_rounding(pairs.unit, 1.0, sizes, part),
        part,
        spread,
        parameter,
    )


def _regress(pairs: Pairs, form: str, columns: list[Array], spread: float) -> Fit:
    """Regress logarithms on scores and further columns, within rows."""
    root = np.sqrt(pairs.weights)
    others = [pairs.within(column) for column in columns]

    def without(values: Array) -> Array:
        """Take off what the further columns explain."""
        if not others:
            return values
        design = np.stack(others, axis=1)
        found = np.linalg.lstsq(design * root[:, None], values * root)[0]
        rest: Array = values - design @ found
        return rest

    scores, logs = pairs.within(pairs.scores), pairs.within(pairs.logs)
    direction, target = without(scores), without(logs)
    square = pairs.square(direction)
    scale = float((pairs.weights * direction * target).sum() / square) if square else 0
    left = target - scale * direction
    slope = math.nan
    if others:
        rest = logs - scale * scores
        slope = float(
            (pairs.weights * others[0] * rest).sum() / pairs.square(others[0]) or 0.0
        )
    return _make_fit(
        pairs, form, scale, direction, left, 1 + len(others), spread, slope
    )


def _regress_groups(pairs: Pairs, form: str, labels: Labels, spread: float) -> Fit:
    """Regress with a constant of each row and of each group of pairs."""
    _, groups = np.unique(labels, return_inverse=True)
    n, n_groups, n_rows = len(groups), int(groups.max()) + 1, len(pairs.totals)
    root = np.sqrt(pairs.weights)
    places = np.concatenate([pairs.rows, n_rows + groups])
    design = sparse.csr_array(
        (np.tile(root, 2), (np.tile(np.arange(n), 2), places)),
        shape=(n, n_rows + n_groups),
    )
    sizes = np.sqrt(np.maximum(design.power(2).sum(axis=0), 1e-300))
    design = design @ sparse.diags_array(1.0 / sizes)

    def without(values: Array) -> Array:
        rest = values
        for _ in range(2):  # the second time for what the first left of its accuracy
            found = lsmr(design, rest * root, atol=1e-14, btol=1e-14, maxiter=2000)[0]
            rest = rest - (design @ found) / root
        return rest

    direction, target = without(pairs.scores), without(pairs.logs)
    square = pairs.square(direction)
    scale = float((pairs.weights * direction * target).sum() / square) if square else 0
    left = target - scale * direction
    return _make_fit(pairs, form, scale, direction, left, n_groups, spread)


def _fit_cap(pairs: Pairs, spread: float) -> Fit:
    """Fit c tanh(λ s / c): for each t = c / λ it is linear in c."""
    logs = pairs.within(pairs.logs)

    def product(first: Array, second: Array) -> float:
        return float((pairs.weights * first * second).sum())

    def at(t: float) -> tuple[float, Array, Array]:
        """Return c for a t, its column, and what is left."""
        column = pairs.within(np.tanh(pairs.scores / t))
        cap = product(column, logs) / max(pairs.square(column), LEAST_SQUARE)
        return cap, column, logs - cap * column

    def bend(t: float, cap: float) -> Array:
        """Return the derivative of the form by the logarithm of t."""
        bent = pairs.scores / t
        return pairs.within(-cap * bent / np.cosh(np.minimum(np.abs(bent), 300.0)) ** 2)

    t = min(CAPS * spread, key=lambda one: pairs.square(at(one)[2]))
    for _ in range(STEPS):  # Gauss and Newton's, shortened where it goes too far
        cap, column, left = at(t)
        slope = bend(t, cap)
        slope -= (
            product(slope, column) / max(pairs.square(column), LEAST_SQUARE) * column
        )
        step = product(slope, left) / max(pairs.square(slope), LEAST_SQUARE)
        t *= math.exp(float(np.clip(step, -0.5, 0.5)))
    cap, column, left = at(t)
    column *= t  # by λ; what follows is by t, with λ as it is
    other = cap / t * column + bend(t, cap)
    share = product(column, other) / max(pairs.square(other), LEAST_SQUARE)
    direction = column - share * other
    return _make_fit(pairs, "cap", cap / t, direction, left, 2, spread, abs(cap))


def _fit_rows(pairs: Pairs, spread: float) -> Fit:
    """Fit a scale of each row; the scale is the median's row."""
    scores, logs = pairs.within(pairs.scores), pairs.within(pairs.logs)
    squares = np.bincount(pairs.rows, pairs.weights * scores * scores)
    products = np.bincount(pairs.rows, pairs.weights * scores * logs)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.where(squares > 0.0, products / squares, 0.0)
    used = slopes[squares > 0.0]
    left = logs - slopes[pairs.rows] * scores
    return _make_fit(
        pairs,
        "row",
        float(np.median(used)),
        scores,
        left,
        pairs.n_rows,
        spread,
    )

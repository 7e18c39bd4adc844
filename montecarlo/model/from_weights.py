"""The scale from attention weights: a regression within rows.

Within a row softmax is known up to a constant: ln p_j - ln p_l = λ (s_j - s_l).  Each
logarithm is weighed by what rounding leaves of it; a weight that rounding has nearly
eaten up is left out, and so are those that are 0.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsmr

from montecarlo.attention.softmax import Array
from montecarlo.model.fits import (
    FEWEST_LEFT,
    FEWEST_NUMBERS,
    LEAST_SPREAD,
    LEAST_SQUARE,
    PART_LEFT,
    Fit,
    Numbers,
    choose,
    describe_fit,
    examine,
)
from montecarlo.model.pairs import Labels, Pairs, gather_pairs
from montecarlo.model.rows import WeightBlock

#: Caps that are tried, in standard deviations of the scores, before the best is
#: refined.
CAPS = np.geomspace(0.5, 200.0, 24)
#: Steps of that.
STEPS = 12


def fit_weights(blocks: Sequence[WeightBlock]) -> Fit | None:
    """Fit the applied scale to attention weights; None where nothing can be told."""
    pairs = gather_pairs(blocks)
    if len(pairs.scores) - pairs.n_rows < FEWEST_NUMBERS:
        return None
    count = pairs.weights.sum()
    spread = math.sqrt(pairs.square(pairs.within(pairs.scores)) / count)
    size = math.sqrt(pairs.square(pairs.scores) / count)
    if not LEAST_SPREAD * size < spread < math.inf:
        return None
    found = {one.fit.form: one for one in _fits(pairs, spread)}
    chosen = choose([one.fit for one in found.values()])
    one = found[chosen.form]
    bends = [one.without(bend) for bend in _bends(pairs, spread)]
    return examine(chosen, one.numbers, bends)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fit, what it was made from, and what takes its further columns off others."""

    fit: Fit
    numbers: Numbers
    without: Callable[[Array], Array]


def _bends(pairs: Pairs, spread: float) -> Iterator[Array]:
    """Yield what a form may lack: squares and cubes of scores, and ties to distance."""
    size = pairs.scores / spread
    yield size**2
    yield size**3
    yield size * np.abs(pairs.offsets)


def _fits(pairs: Pairs, spread: float) -> Iterator[Fitted]:
    """Yield fits of all forms that have enough pairs, from the simplest on.

    Those with many constants are not asked once no more is left than rounding leaves.
    """
    found = [_regress(pairs, "plain", [], spread)]
    if _is_enough(pairs, pairs.n_rows + 2):
        distance = np.abs(pairs.offsets).astype(float)
        found.append(_regress(pairs, "distance", [distance], spread))
        found.append(_fit_cap(pairs, spread))
    yield from found
    groups = {"offset": pairs.offsets, "key": pairs.keys, "pair": pairs.places}
    for form, labels in groups.items():
        if any(one.fit.is_exact for one in found):
            return
        if _is_enough(pairs, pairs.n_rows + len(np.unique(labels))):
            found.append(_regress_groups(pairs, form, labels, spread))
            yield found[-1]


def _is_enough(pairs: Pairs, n_parameters: int) -> bool:
    left = len(pairs.scores) - n_parameters
    return left >= max(FEWEST_LEFT, PART_LEFT * (n_parameters - pairs.n_rows))


def _make_fit(  # noqa: PLR0913, PLR0917 - what a form's own way of fitting found
    pairs: Pairs,
    form: str,
    scale: float,
    direction: Array,
    left: Array,
    n_parameters: int,
    spread: float,
    without: Callable[[Array], Array],
    parameter: float = math.nan,
    explained: Array | None = None,
    groups: Labels | None = None,
) -> Fitted:
    ones = np.ones_like(left)
    scores = np.abs(scale * pairs.scores)
    numbers = Numbers(
        direction, left, pairs.rows, pairs.weights, ones, scores, ones, pairs.unit
    )
    fit = describe_fit(
        form,
        scale,
        numbers,
        n_free=len(left) - pairs.n_rows - n_parameters,
        explained=numbers.size(scale * direction if explained is None else explained),
        spread=spread,
        parameter=parameter,
        groups=groups,
    )
    return Fitted(fit, numbers, without)


def _regress(pairs: Pairs, form: str, columns: list[Array], spread: float) -> Fitted:
    """Regress logarithms on scores and further columns, within rows."""
    root = np.sqrt(pairs.weights)
    others = [pairs.within(column) for column in columns]

    def without(values: Array) -> Array:
        """Take off what rows and the further columns explain."""
        values = pairs.within(values)
        if not others:
            return values
        design = np.stack(others, axis=1)
        found = np.linalg.lstsq(design * root[:, None], values * root)[0]
        rest: Array = values - design @ found
        return rest

    direction, target = without(pairs.scores), without(pairs.logs)
    square = pairs.square(direction)
    scale = float((pairs.weights * direction * target).sum() / square) if square else 0
    left = target - scale * direction
    slope = math.nan
    if others:
        rest = pairs.within(pairs.logs - scale * pairs.scores)
        square = max(pairs.square(others[0]), LEAST_SQUARE)
        slope = float((pairs.weights * others[0] * rest).sum() / square)
    return _make_fit(
        pairs, form, scale, direction, left, 1 + len(others), spread, without, slope
    )


def _regress_groups(pairs: Pairs, form: str, labels: Labels, spread: float) -> Fitted:
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
    return _make_fit(
        pairs, form, scale, direction, left, n_groups, spread, without, groups=groups
    )


def _fit_cap(pairs: Pairs, spread: float) -> Fitted:
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

    def without(values: Array) -> Array:
        """Take off what rows and another cap explain."""
        values = pairs.within(values)
        share = product(values, other) / max(pairs.square(other), LEAST_SQUARE)
        rest: Array = values - share * other
        return rest

    return _make_fit(
        pairs,
        "cap",
        cap / t,
        without(column),
        left,
        2,
        spread,
        without,
        abs(cap),
        logs - left,
    )

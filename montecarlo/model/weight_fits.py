"""The scale from attention weights: a regression within rows; and the mask.

Within a row softmax is known up to a constant: ln p_j - ln p_l = λ (s_j - s_l).  Each
logarithm is weighed by what rounding leaves of it; a weight that rounding has nearly
eaten up is left out, and so are those that are 0, which tell the mask.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import lsmr

from montecarlo.attention.softmax import Array
from montecarlo.model.arrays import Rows
from montecarlo.model.fits import (
    FEWEST_LEFT,
    FEWEST_NUMBERS,
    LEAST_SPREAD,
    LEAST_SQUARE,
    PART_LEFT,
    Fit,
    Fitted,
    Numbers,
    believe,
    describe_fit,
    format_of,
    spacing_of,
    unit_of,
)

#: Weights that are fewer times the least number of their format are left out.
FEWEST_STEPS = 32
#: What float64 leaves of logarithms and their sums, at least.
LEAST_UNIT = 2.0**-48
#: Caps that are tried, in standard deviations of the scores, before the best is
#: refined, and the steps of that.
CAPS, STEPS = np.geomspace(0.5, 200.0, 24), 12
#: How far a row's weights may add up to something else than 1, in roundings; and at
#: least: numbers that were written with few digits do not add up to 1 either.
MOST_ROUNDINGS, LEAST_LOST = 4.0, 2e-3
Labels = NDArray[np.intp]


@dataclass(frozen=True)
class Pairs:
    """Pairs of a head's rows whose weight can be used: arrays of shape (n,)."""

    scores: Array
    logs: Array  # of attention weights
    weights: Array  # what each counts
    rows: Labels
    offsets: Labels  # the key's place less the query's
    keys: Labels  # of which each sequence has its own
    places: Labels  # both, the same in all sequences
    unit: float  # what rounding moves an attention weight by, as a part of it

    @cached_property
    def totals(self) -> Array:
        """Sum of what counts in each row."""
        return np.asarray(np.bincount(self.rows, self.weights), dtype=np.float64)

    @property
    def n_rows(self) -> int:
        """Rows with at least one pair."""
        return int(np.count_nonzero(self.totals))

    @cached_property
    def spread(self) -> float:
        """Standard deviation of the scores within rows."""
        centred = self.within(self.scores)
        return math.sqrt(self.product(centred, centred) / self.weights.sum())

    def within(self, values: Array) -> Array:
        """Return values less their mean over the row."""
        with np.errstate(invalid="ignore"):
            means = np.bincount(self.rows, self.weights * values) / self.totals
        found: Array = values - means[self.rows]
        return found

    def product(self, first: Array, second: Array) -> float:
        """Return the weighted sum of products."""
        return float((self.weights * first * second).sum())

    def slope(self, values: Array, column: Array) -> float:
        """Return what a column has to be multiplied by to explain values best."""
        square = max(self.product(column, column), LEAST_SQUARE)
        return self.product(column, values) / square

    def without(self, values: Array, column: Array) -> Array:
        """Return values less their mean over the row, and what a column explains."""
        values = self.within(values)
        return values - self.slope(values, column) * column


def _gather_pairs(blocks: Sequence[Rows]) -> Pairs:
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


def fit_weights(blocks: Sequence[Rows]) -> Fit | None:
    """Fit the applied scale to attention weights; None where nothing can be told."""
    pairs = _gather_pairs(blocks)
    if len(pairs.scores) - pairs.n_rows < FEWEST_NUMBERS:
        return None
    size = math.sqrt(pairs.product(pairs.scores, pairs.scores) / pairs.weights.sum())
    if not LEAST_SPREAD * size < pairs.spread < math.inf:
        return None
    return believe(_fits(pairs))


def _fits(pairs: Pairs) -> Iterator[Fitted]:
    """Yield fits of all forms that have enough pairs, from the simplest on.

    Those with many constants are not asked once no more is left than rounding leaves.
    """
    found = [_regress(pairs, "plain", pairs.within, 1)]
    if _is_enough(pairs, pairs.n_rows + 2):
        found += [_fit_distance(pairs), _fit_cap(pairs)]
    yield from found
    groups = {"offset": pairs.offsets, "key": pairs.keys, "pair": pairs.places}
    for form, labels in groups.items():
        if any(one.fit.is_exact for one in found):
            return
        if _is_enough(pairs, pairs.n_rows + len(np.unique(labels))):
            found.append(_fit_groups(pairs, form, labels))
            yield found[-1]


def _is_enough(pairs: Pairs, n_parameters: int) -> bool:
    left = len(pairs.scores) - n_parameters
    return left >= max(FEWEST_LEFT, PART_LEFT * (n_parameters - pairs.n_rows))


def _describe(  # noqa: PLR0913 - what a form's own way of fitting found
    pairs: Pairs,
    form: str,
    scale: float,
    without: Callable[[Array], Array],
    *,
    direction: Array,
    left: Array,
    explained: Array,
    n_parameters: int,
    parameter: float = math.nan,
    groups: Labels | None = None,
) -> Fitted:
    """Return what a fit says; ``without`` takes the other columns off an array."""
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
        explained=numbers.size(explained),
        spread=pairs.spread,
        parameter=parameter,
        groups=groups,
    )

    def bends() -> list[Array]:
        """Return squares and cubes of scores, and ties to distance."""
        size = pairs.scores / pairs.spread
        lacking = (size**2, size**3, size * np.abs(pairs.offsets))
        return [without(one) for one in lacking]

    return Fitted(fit, numbers, bends)


def _regress(
    pairs: Pairs,
    form: str,
    without: Callable[[Array], Array],
    n_parameters: int,
    groups: Labels | None = None,
) -> Fitted:
    """Regress logarithms on scores, without what other columns explain of both."""
    direction, target = without(pairs.scores), without(pairs.logs)
    scale = pairs.slope(target, direction)
    return _describe(
        pairs,
        form,
        scale,
        without,
        direction=direction,
        left=target - scale * direction,
        explained=scale * direction,
        n_parameters=n_parameters,
        groups=groups,
    )


def _fit_distance(pairs: Pairs) -> Fitted:
    """Fit λ s and a slope by the distance of key and query."""
    distance = pairs.within(np.abs(pairs.offsets).astype(float))
    made = _regress(pairs, "distance", lambda x: pairs.without(x, distance), 2)
    rest = pairs.within(pairs.logs - made.fit.scale * pairs.scores)
    slope = pairs.slope(rest, distance)
    return replace(made, fit=replace(made.fit, parameter=slope))


def _fit_groups(pairs: Pairs, form: str, labels: Labels) -> Fitted:
    """Fit λ s, and a constant of each group of pairs beside that of each row."""
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

    return _regress(pairs, form, without, n_groups, groups)


def _fit_cap(pairs: Pairs) -> Fitted:
    """Fit c tanh(λ s / c): for each t = c / λ it is linear in c."""
    logs = pairs.within(pairs.logs)

    def at(t: float) -> tuple[float, Array, Array]:
        """Return c for a t, its column, and what is left."""
        column = pairs.within(np.tanh(pairs.scores / t))
        cap = pairs.slope(logs, column)
        return cap, column, logs - cap * column

    def bend(t: float, cap: float) -> Array:
        """Return the derivative of the form by the logarithm of t."""
        bent = pairs.scores / t
        return pairs.within(-cap * bent / np.cosh(np.minimum(np.abs(bent), 300.0)) ** 2)

    def left_at(t: float) -> float:
        left = at(t)[2]
        return pairs.product(left, left)

    t = min(CAPS * pairs.spread, key=left_at)
    for _ in range(STEPS):  # Gauss and Newton's, shortened where it goes too far
        cap, column, left = at(t)
        step = pairs.slope(left, pairs.without(bend(t, cap), column))
        t *= math.exp(float(np.clip(step, -0.5, 0.5)))
    cap, column, left = at(t)
    column *= t  # by λ; what follows is by t, with λ as it is
    other = cap / t * column + bend(t, cap)

    return _describe(
        pairs,
        "cap",
        cap / t,
        lambda values: pairs.without(values, other),
        direction=pairs.without(column, other),
        left=left,
        explained=logs - left,
        n_parameters=2,
        parameter=abs(cap),
    )


@dataclass(frozen=True, slots=True)
class Mask:
    """Which keys rows do not see, and what their weights add up to."""

    #: ``none``; ``causal``, where the last query sees the last key; ``causal_start``,
    #: where the first sees the first alone; ``window``, causal and not far back;
    #: ``chunks``, causal within chunks; ``keys``, which no row of a sequence sees;
    #: ``causal_keys``, both; ``other``; empty where it is not known.
    mask: str = ""
    window: int = 0  # keys that a row sees in a window, or that a chunk has
    row_sum: float = math.nan  # mean over rows of what their weights add up to
    sums: str = ""  # ``one``; ``less``, as with a sink; ``other``, as with dropout


def find_mask(blocks: Sequence[Rows], fit: Fit) -> Mask:
    """Find the mask in attention weights: zeros where scores do not make them."""
    hidden = [_hidden_pairs(block, fit) for block in blocks]
    mask, window = name_mask(blocks, hidden, [one.weights > 0.0 for one in blocks])
    weights = [block.weights for block in blocks]
    sums = np.concatenate([p.sum(axis=1) for p in weights])
    unit, found = unit_of(format_of(weights)), "one"
    if not are_one(sums, unit):
        found = "less" if (sums < 1.0 + _allowed(unit)).all() else "other"
    return Mask(mask, window, float(sums.mean()), found)


def are_one(sums: Array, unit: float) -> bool:
    """Tell whether most sums of weights are 1, up to what rounding leaves of them."""
    return bool(np.median(np.abs(sums - 1.0)) <= _allowed(unit))


def _allowed(unit: float) -> float:
    return max(MOST_ROUNDINGS * unit, LEAST_LOST)


def _hidden_pairs(block: Rows, fit: Fit) -> NDArray[np.bool_]:
    """Return where a weight is 0 although a smaller one of its row is not."""
    expected: Array = fit.scale * block.scores
    if fit.form == "distance":
        expected = expected + fit.parameter * np.abs(block.offsets)
    seen = block.weights > 0.0
    least = np.where(seen, expected, np.inf).min(axis=1, keepdims=True)
    found: NDArray[np.bool_] = ~seen & (expected > least)
    return found


def name_mask(  # noqa: PLR0911 - a return for each name
    blocks: Sequence[Rows],
    hidden: Sequence[NDArray[np.bool_]],
    seen: Sequence[NDArray[np.bool_]],
) -> tuple[str, int]:
    """Return what a mask is called, and how many keys its window has.

    ``hidden`` are pairs that surely are, ``seen`` those that surely are not.
    """
    if not any(one.any() for one in hidden):
        return "none", 0
    ahead = [block.offsets > 0 for block in blocks]
    if any(block.shift > 0 for block in blocks):
        later = [block.offsets > -block.shift for block in blocks]
        inside = all(not (h & ~a).any() for h, a in zip(hidden, later, strict=True))
        if inside and _are_hidden(later, seen):
            return "causal_start", 0
    is_causal = _are_hidden(ahead, seen)
    # what a mask of the future does not say
    rest = [h & ~a if is_causal else h for h, a in zip(hidden, ahead, strict=True)]
    if not any(one.any() for one in rest):
        return "causal", 0
    if is_causal:
        away = [-block.offsets for block in blocks]
        nearest = min(
            int(w[r].min()) for w, r in zip(away, rest, strict=True) if r.any()
        )
        if not any((s & (w >= nearest)).any() for s, w in zip(seen, away, strict=True)):
            return "window", nearest
        if width := _chunk_of(blocks, rest, seen):
            return "chunks", width
    columns = [h.any(axis=0) for h in rest]
    if any((s & c).any() for s, c in zip(seen, columns, strict=True)):
        return "other", 0
    return ("causal_keys" if is_causal else "keys"), 0


def _chunk_of(
    blocks: Sequence[Rows],
    hidden: Sequence[NDArray[np.bool_]],
    seen: Sequence[NDArray[np.bool_]],
) -> int:
    """Return of how many keys chunks are, outside of which none is seen; 0 if of none.

    The last key that a row does not see ends the chunk before its own.
    """
    ends = {
        int(np.flatnonzero(row)[-1]) + 1
        for block, one in zip(blocks, seen, strict=True)
        for row in ~one & (block.offsets <= 0)
        if row.any()
    }
    width = math.gcd(*ends)
    first = [(one.places >= width // 2) & (one.places < width) for one in blocks]
    if len(ends) < 2 and not any(one.any() for one in first):
        return 0  # rows of a single chunk do not tell where those before it ended
    for block, h, s in zip(blocks, hidden, seen, strict=True):
        own = block.places // width * width
        before = np.arange(h.shape[1]) < own[:, None]
        if (s & before).any() or (h & ~before).any():
            return 0
    return width


def _are_hidden(
    places: Sequence[NDArray[np.bool_]], seen: Sequence[NDArray[np.bool_]]
) -> bool:
    """Tell whether there are such places, and none of them is seen."""
    return any(one.any() for one in places) and not any(
        (s & p).any() for s, p in zip(seen, places, strict=True)
    )

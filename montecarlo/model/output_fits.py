"""The scale from outputs alone: least squares on softmax(λ s) V.

A row's weights are not seen.  The mask is the one that was passed, with the bias that
it may hold; where it is not known, it has to be found beside the scale: each of a few
is tried.  Biases of positions cannot be told apart this way; what they leave is seen,
and the scale is refused.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from montecarlo.attention.softmax import Array
from montecarlo.model.arrays import UNSEEN, Rows
from montecarlo.model.fits import (
    FEWEST_LEFT,
    FEWEST_NUMBERS,
    LEAST_SPREAD,
    Fit,
    Fitted,
    Numbers,
    believe,
    describe_fit,
    format_of,
    unit_of,
)

#: Scales that are tried before the best is refined, over the spread of the scores; and
#: the rows that they are tried on.
TRIED = (0.0, *np.geomspace(0.01, 100.0, 17), -0.1, -1.0, -10.0)
TRIAL_ROWS = 32
#: Where the search for a cap begins, in spreads of the scaled scores.
CAPS = (1.0, 4.0, 16.0)
#: Beyond this logarithm a cap is none.
MOST_LOG = 300.0
#: Evaluations of a search at most.
MOST_STEPS = 60
MASKS: dict[str, Callable[[Rows], NDArray[np.bool_]]] = {
    "none": lambda block: np.ones(block.scores.shape, bool),
    "causal": lambda block: block.offsets <= 0,
    "causal_start": lambda block: block.offsets <= -block.shift,
}
#: The mask that was passed.
GIVEN = "given"
#: From parameters and a block to what goes into softmax, and its derivatives.
Terms = tuple[Array, list[Array]]


def keys_seen(block: Rows, mask: str = GIVEN) -> NDArray[np.bool_]:
    """Return which keys rows see under a mask: one of `MASKS`, or the one passed."""
    if mask != GIVEN or block.added is None:
        return MASKS[mask](block)
    seen: NDArray[np.bool_] = block.added > UNSEEN
    return seen


def _plain(parameters: Array, block: Rows) -> Terms:
    return parameters[0] * block.scores, [block.scores]


def _distance(parameters: Array, block: Rows) -> Terms:
    away = np.abs(block.offsets).astype(float)
    return parameters[0] * block.scores + parameters[1] * away, [block.scores, away]


def _cap(parameters: Array, block: Rows) -> Terms:
    """λ s, capped; the second parameter is the logarithm of c / λ."""
    t = math.exp(float(np.clip(parameters[1], -MOST_LOG, MOST_LOG)))
    bent = np.tanh(block.scores / t)
    by_t = t * bent - block.scores * (1.0 - bent * bent)
    return parameters[0] * t * bent, [t * bent, parameters[0] * by_t]


FORMS: dict[str, Callable[[Array, Rows], Terms]] = {
    "plain": _plain,
    "distance": _distance,
    "cap": _cap,
    "sink": _plain,  # with one more key, of value 0, whose logit is a parameter
}
#: How large the further parameters of a form are, for the steps of a search.
SIZES = {"plain": (), "distance": (0.01,), "cap": (1.0,), "sink": (1.0,)}


@dataclass(frozen=True, slots=True)
class Made:
    """What a form makes of a block."""

    outputs: Array  # shape (n_rows, d_v)
    slopes: list[Array]  # their derivatives by the parameters
    weights: Array  # shape (n_rows, n_keys)
    moved: Callable[[Array], Array]  # what adding to the scores moves the outputs by


def make_outputs(form: str, parameters: Array, block: Rows, mask: str) -> Made:
    """Return what softmax makes of a block's scores."""
    terms, slopes = FORMS[form](parameters, block)
    if mask == GIVEN and block.added is not None:
        terms = terms + block.added
    seen = keys_seen(block, mask)
    shown = np.where(seen, terms, -np.inf)
    largest = shown.max(axis=1, keepdims=True)
    if form == "sink":
        largest = np.maximum(largest, parameters[1])
    e = np.exp(shown - largest)
    total = e.sum(axis=1, keepdims=True)
    if form == "sink":
        extra = np.exp(parameters[1] - largest)
        total += extra
    weights = e / total
    outputs = weights @ block.values

    def moved(added: Array) -> Array:
        pulled = weights * added
        change: Array = pulled @ block.values
        change -= pulled.sum(axis=1)[:, None] * outputs
        return change

    made = [moved(slope) for slope in slopes]
    if form == "sink":
        made.append(-extra / total * outputs)
    return Made(outputs, made, weights, moved)


@dataclass(frozen=True, slots=True)
class Task:
    """What is fitted to: rows with outputs, under a mask."""

    blocks: Sequence[Rows]
    mask: str  # a key of `MASKS`, or `GIVEN`
    spread: float  # standard deviation of the scores within rows
    unit: float  # what rounding moves an output by, as a part of it

    def make(self, form: str, parameters: Array) -> Iterator[tuple[Rows, Made]]:
        """Yield blocks with what a form makes of them."""
        for block in self.blocks:
            yield block, make_outputs(form, parameters, block, self.mask)

    def left(self, form: str, parameters: Array) -> Array:
        """Return what a form makes less the outputs, one after the other."""
        made = self.make(form, parameters)
        return np.concatenate([(m.outputs - b.outputs).ravel() for b, m in made])

    def slopes(self, form: str, parameters: Array) -> Array:
        """Return derivatives of the outputs by the parameters, one in each column."""
        made = self.make(form, parameters)
        parts = [np.stack([s.ravel() for s in m.slopes], axis=1) for _, m in made]
        return np.concatenate(parts)


def fit_outputs(blocks: Sequence[Rows]) -> tuple[Fit, str] | None:
    """Fit the applied scale to outputs.

    Returns
    -------
    Fit and str, or None
        With the mask, a key of `MASKS`, or `GIVEN` where rows have one; None where
        nothing can be told.
    """
    variances = [float(block.scores.var(axis=1).mean()) for block in blocks]
    spread = math.sqrt(math.fsum(variances) / len(variances))
    size = max(float(np.sqrt(np.square(b.scores).mean())) for b in blocks)
    count = sum(block.outputs.size for block in blocks)
    if not LEAST_SPREAD * size < spread < math.inf or count < FEWEST_NUMBERS:
        return None
    unit = unit_of(format_of([block.outputs for block in blocks]))
    masks = (
        [GIVEN]
        if blocks[0].added is not None
        else [
            name
            for name, seen in MASKS.items()
            if all(seen(block).any(axis=1).all() for block in blocks)
            and (name != "causal_start" or any(block.shift for block in blocks))
        ]
    )
    tasks = [Task(blocks, mask, spread, unit) for mask in masks]
    plain = {task.mask: _fit(task, "plain") for task in tasks}
    best = min(plain, key=lambda mask: plain[mask].fit.left)
    if plain[best].fit.holds:
        tasks = [task for task in tasks if task.mask == best]
    chosen = [(believe(_fits(one, plain[one.mask])), one.mask) for one in tasks]
    return min(chosen, key=lambda one: one[0].left)


def _fits(task: Task, plain: Fitted) -> Iterator[Fitted]:
    """Yield the fits of all forms, the simplest first."""
    yield plain
    if plain.fit.n_free <= FEWEST_LEFT:
        return
    for form in list(FORMS)[1:]:
        yield _fit(task, form, plain.fit.scale if plain.fit.holds else None)


def _fit(task: Task, form: str, scale: float | None = None) -> Fitted:
    """Fit a form; if a scale is given, begin there."""
    blocks, n_rows = task.blocks, TRIAL_ROWS // len(task.blocks) + 1
    few = [one.some(slice(None, None, -(-len(one.places) // n_rows))) for one in blocks]
    trial = replace(task, blocks=few)
    scales = [one / task.spread for one in TRIED] if scale is None else [scale]
    more = [[0.0] * len(SIZES[form])]
    if form == "cap":
        more = [[math.log(cap * task.spread)] for cap in CAPS]
    starts = [np.array([one, *rest]) for one in scales for rest in more]
    solution = least_squares(
        partial(task.left, form),
        min(starts, key=lambda one: float(np.square(trial.left(form, one)).sum())),
        partial(task.slopes, form),
        x_scale=np.array([1.0 / task.spread, *SIZES[form]]),
        xtol=1e-14,
        ftol=1e-14,
        gtol=1e-14,
        max_nfev=MOST_STEPS,
    )
    return _describe(task, form, solution.x)


def _describe(task: Task, form: str, parameters: Array) -> Fitted:
    """Return what a fit says, by its parameters."""
    left, columns = task.left(form, parameters), task.slopes(form, parameters)
    others = columns[:, 1:]

    def without(values: Array) -> Array:
        """Take off what the further parameters explain."""
        if not others.size:
            return values
        rest: Array = values - others @ np.linalg.lstsq(others, values)[0]
        return rest

    direction = without(columns[:, 0])
    n_rows = sum(len(block.places) for block in task.blocks)
    rows = np.repeat(np.arange(n_rows), task.blocks[0].outputs.shape[1])
    parts: list[tuple[Array, ...]] = []
    for block, made in task.make(form, parameters):
        seen = keys_seen(block, task.mask)
        even = seen @ block.values / seen.sum(axis=1, keepdims=True)
        weights = np.square(made.weights)
        own = np.sqrt(np.square(made.outputs) + weights @ np.square(block.values))
        size = block.scores / task.spread
        terms = parameters[0] * block.scores
        if block.added is not None:
            terms = np.where(seen, terms + block.added, 0.0)
        parts.append(
            (
                own,
                _size_of_changes(weights * terms**2, made, block),
                _size_of_changes(weights, made, block),
                made.outputs - even,
                *map(made.moved, (size**2, size**3, size * np.abs(block.offsets))),
            )
        )
    own, by_scores, per_score, explained, *bends = (
        np.concatenate([one.ravel() for one in part])
        for part in zip(*parts, strict=True)
    )
    ones = np.ones(len(left))
    numbers = Numbers(
        direction, -left, rows, ones, own, by_scores, per_score, task.unit
    )
    parameter = float(parameters[-1]) if others.size else math.nan
    if form == "cap":
        parameter = abs(parameters[0]) * math.exp(min(parameter, MOST_LOG))
    part = numbers.size(explained)
    if form != "plain":  # what a bias explains says nothing of the scale
        part = min(part, numbers.size(parameters[0] * direction))
    fit = describe_fit(
        form,
        float(parameters[0]),
        numbers,
        n_free=len(left) - len(parameters),
        explained=part,
        spread=task.spread,
        parameter=parameter,
    )
    return Fitted(fit, numbers, lambda: [without(bend) for bend in bends])


def _size_of_changes(squares: Array, made: Made, block: Rows) -> Array:
    """Return what independent changes of scores move each output by.

    ``squares`` are those of the changes, times those of the weights.  The derivative of
    an output by a score is the weight times what the value is off the output.
    """
    values = block.values
    found: Array = (
        squares @ np.square(values)
        - 2.0 * made.outputs * (squares @ values)
        + squares.sum(axis=1, keepdims=True) * np.square(made.outputs)
    )
    return np.sqrt(np.maximum(found, 0.0))

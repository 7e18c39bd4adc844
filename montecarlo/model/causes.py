"""Why the attention of a port is not its reference's: causes, each tried on arrays.

A cause is a hypothesis that predicts an array of the port from the reference's: what it
leaves of their difference is held against what rounding can make.  The simplest one
that explains it is named, and several where they explain it equally.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.softmax import Array
from montecarlo.model.answers import say_numbers
from montecarlo.model.arrays import Rows
from montecarlo.model.expected import KNOWN, divisors_within
from montecarlo.model.fits import (
    GIVEN,
    MASKS,
    Fit,
    Made,
    fit_outputs,
    fit_weights,
    make_outputs,
)
from montecarlo.model.masks import name_mask

#: Roundings of one operation that a sound port may be off by.
ROUNDINGS = 4.0
#: What a difference has to be to be one, whatever the format, as a part of the norm.
LEAST = 1e-4
#: What a cause has to explain of a difference; from where on it explains all.
EXPLAINS, ALL = 0.8, 0.98
#: And how much where no more is left than rounding makes.
HALF = 0.5
#: How near numbers are to what they are called.
NEAR = 0.005
#: How near ratios and angles are to what a cause has.
ALIKE = 0.05
#: Lengths of rows that spread by less than this part of them are normalised.
EVEN = 0.02
#: What is divided by at least.
TINY = 1e-300
#: Weights below this may be 0 in another format.
SMALL_WEIGHT = 4e-6
#: Standard errors beyond which a scale below rounding is another, how far it has to be
#: off, and rows that have to show it.
BEYOND_CHANCE, OTHER_SCALE, FEWEST_ROWS = 8.0, 0.02, 8
#: Of Gauss and Newton to the scale of outputs.
STEPS = 4
#: Rows that a fit takes.
FIT_ROWS = 64


Seen = NDArray[np.bool_]
#: Entries of a query, heads, and heads of keys.
Sizes = tuple[int, int, int]


class Cause(NamedTuple):
    """A hypothesis of what the port does, and what it leaves of the difference."""

    quantity: str  # where it is: q, k, v, scale, cap, mask, bias, sink, ...
    text: str  # what the port does
    explained: float  # part of the difference that it explains
    port: float = math.nan  # a number of the port, and the reference's, if it has one
    reference: float = math.nan
    sizes: Sizes = (1, 1, 1)


def choose(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """Return the simplest that explains all, or what explains most, and its equals."""
    if whole := [one for one in causes if one.explained >= ALL]:
        return (whole[0],)
    best = max((one.explained for one in causes), default=0.0)
    if best < EXPLAINS:
        return ()
    return tuple(one for one in causes if one.explained >= best - 0.01)


def explained_by(left: float, before: float, rounding: float) -> float:
    """Return the part of a difference that is explained, but for rounding."""
    part = 1.0 - left / before
    return 1.0 if left <= rounding and part >= HALF else part


def name_factor(
    factor: float, d_k: int, n_heads: int, key_heads: int, *, is_scale: bool = False
) -> str:
    """Write a factor, with what it is in closed form, if it is near to something.

    One that is no scale is a power of the root of d_k, or looks like others by chance.
    """
    size, plain = abs(factor), f"{factor:.4g}"
    if size == 0.0 or not math.isfinite(size) or abs(size - 1.0) < NEAR:
        return plain
    value, is_part = (size, False) if size > 1.0 else (1.0 / size, True)
    known = divisors_within(value * (1 - NEAR), value * (1 + NEAR), d_k, n_heads)
    names = [one.text for one in known if is_scale or one.name in {"sqrt", "linear"}]
    grouped = math.sqrt(key_heads * d_k)
    if is_scale and key_heads not in {1, n_heads} and abs(value / grouped - 1.0) < NEAR:
        names.append("sqrt(kv_heads d_k)")
    if is_part:
        names = [f"1/({name})" if " " in name else f"1/{name}" for name in names]
    return f"{plain} = {' or '.join(names)}" if names else plain


# --- Queries, keys and values -------------------------------------------------------


class Trial(NamedTuple):
    """What a cause leaves of vectors, axes (head, token, d)."""

    text: str  # what the port does to {name}, with a {factor}
    left: NDArray[Any]  # the port less what the cause makes of the reference
    n_free: int = 0  # numbers that were fitted to the port
    factor: float = math.nan


def _factors(port: Array, reference: Array) -> Iterator[Trial]:
    """Try multiples: one, of each head, of each position, of each entry."""
    for axes, text in (
        ((0, 1, 2), "multiplies {name} by {factor}"),
        ((1, 2), "multiplies {name} by a factor by head, %.4g to %.4g"),
        ((0, 2), "multiplies {name} by a factor by position, %.4g to %.4g"),
        ((0, 1), "multiplies entries of {name} by %.4g to %.4g, as a norm's gain does"),
    ):
        square = np.square(reference).sum(axis=axes, keepdims=True)
        factor = (port * reference).sum(axis=axes, keepdims=True)
        factor = factor / np.where(square > 0.0, square, 1.0)
        ends = float(factor.min()), float(factor.max())
        told = text % ends if "%" in text else text
        yield Trial(told, port - factor * reference, factor.size, ends[0])


def _norms(port: Array, reference: Array) -> Iterator[Trial]:
    """Try rows that one side alone normalises, and norms over the tokens."""
    ours, theirs = (np.linalg.norm(one, axis=-1) for one in (port, reference))
    columns = np.linalg.norm(port, axis=-2)
    spread, other, by_entry = (
        one.std() / one.mean() for one in (ours, theirs, columns)
    )
    if by_entry < EVEN and other < EVEN:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(np.abs(port / reference))
        ratio = np.where(np.isfinite(ratio), ratio, 0.0)
        of_token = ratio.mean(axis=-1, keepdims=True)
        of_entry = (ratio - of_token).mean(axis=-2, keepdims=True)
        told = "normalises {name} over the tokens, the reference over entries"
        left = port - reference * np.exp(of_token + of_entry)
        yield Trial(told, left, of_token.size + of_entry.size)
    if theirs.all() and min(spread, other) * 3.0 < max(spread, other):
        told = "does not normalise {name}, the reference does"
        if spread < other:
            told = "normalises {name}, the reference does not"
        yield Trial(told, port - reference * (ours / theirs)[..., None], ours.size)


def _orders(port: Array, reference: Array) -> Iterator[Trial]:
    """Try heads in another order, tokens a place off, and rows read otherwise."""
    heads, tokens, d = port.shape
    products = port.reshape(heads, -1) @ reference.reshape(heads, -1).T
    nearest = np.argmax(np.abs(products), axis=1)
    order = ", ".join(map(str, nearest[:8]))
    told = f"has heads of {{name}} in another order: the reference's {order}"
    n_groups = len(set(nearest.tolist()))
    if n_groups < heads and (nearest == np.resize(nearest[:n_groups], heads)).all():
        told = "tiles key heads (interleaved), the reference repeats each (blocked)"
    yield Trial(told, port - reference[nearest])
    for shift, side in ((-1, "after"), (1, "before")) if tokens > 2 else ():
        told = f"has {{name}} of the token {side} in its place"
        yield Trial(told, port - np.roll(reference, shift, axis=1))
    if heads > 1:
        told = "swaps heads and tokens of {name}: reshaped without a transpose"
        swapped = reference.swapaxes(0, 1).reshape(heads, tokens, d)
        yield Trial(told, port - swapped)
        swapped = reference.reshape(tokens, heads, d).swapaxes(0, 1)
        yield Trial(told, port - swapped)


def _rotations(port: Array, reference: Array) -> Iterator[Trial]:
    """Try pairs of entries that are turned, or turned before a gain, not after it."""
    heads, tokens, d = port.shape
    neighbours = np.arange(d).reshape(-1, 2).T.ravel() if d % 2 == 0 else ()
    for order in (np.arange(d), neighbours) if d % 2 == 0 else ():
        ours, theirs = (
            one[..., order].reshape(heads, tokens, 2, -1) for one in (port, reference)
        )
        z, w = (one[:, :, 0] + 1j * one[:, :, 1] for one in (ours, theirs))
        turn = (z * w.conj()).sum(axis=0)
        turn /= np.maximum(np.abs(turn), TINY)
        yield Trial(_say_turn(turn), z - turn * w, turn.size)
        if heads > 2:
            cross = np.einsum("htip,htjp->tpij", ours, theirs)
            square = np.einsum("htip,htjp->tpij", theirs, theirs)
            matrix = cross @ np.linalg.pinv(square)
            if np.median(np.abs(np.linalg.det(matrix) - 1.0)) < ALIKE:
                left = ours - np.einsum("tpij,htjp->htip", matrix, theirs)
                told = "applies norm and rotation of {name} in another order: one side "
                yield Trial(told + "rotates before its gain", left, matrix.size)


def _say_turn(turn: NDArray[np.complex128]) -> str:
    """Say how angles (token, pair) by which the port is turned farther grow."""
    steps = np.angle((turn[1:] * turn[:-1].conj()).mean(axis=0))
    if len(turn) < 2 or np.abs(steps).max() < LEAST:
        return f"turns {{name}} as of positions {np.angle(turn[0, 0]):.3g} farther on"
    told = "rotates {name} otherwise: "
    if abs(steps[0] + 1.0) < ALIKE:
        return f"{told}it does not, and the reference does; or it rotates backwards"
    if abs(steps[0] - 1.0) < ALIKE:
        return f"{told}the reference does not; or the port does twice"
    return f"{told}another base or scaling of the rotation"


#: The simplest first.
VECTOR_CAUSES: tuple[Callable[[Array, Array], Iterator[Trial]], ...] = (
    _factors,
    _orders,
    _norms,
    _rotations,
)


def explain_vectors(
    name: str, port: Array, reference: Array, rounding: float, sizes: Sizes
) -> tuple[Cause, ...]:
    """Return what explains how queries, keys or values differ, (head, token, d)."""
    before, norm = np.linalg.norm(port - reference), np.linalg.norm(reference)
    found = []
    for cause in VECTOR_CAUSES:
        for one in cause(port, reference):
            left = float(np.linalg.norm(one.left))
            part = explained_by(left, float(before), rounding * float(norm))
            told = one.text.replace("{factor}", name_factor(one.factor, *sizes))
            if 2 * one.n_free <= port.size:
                found.append(Cause(name, told, part))
    return choose(found)


# --- Weights and outputs ------------------------------------------------------------


class Law(NamedTuple):
    """How a head makes logits of scores."""

    form: str  # a key of `FORMS` in fits, or of groups there
    scale: float
    parameter: float  # of the form
    mask: str = GIVEN
    is_fit: bool = True  # not just a slope of few numbers

    def logits(self, scores: Array) -> Array:
        """Return logits, but for what is added."""
        scaled: Array = self.scale * scores
        if self.form == "cap":
            scaled = self.parameter * np.tanh(scaled / self.parameter)
        return scaled


@dataclass(frozen=True)
class HeadSide:
    """A head of one side: rows of a sequence, and the law that its weights follow."""

    rows: Rows
    rounding: float  # what rounding moves numbers by, as a part of them

    def allowed(self, scale: float, drift: float = 0.0) -> float:
        """Return what rounding of scores moves weights and outputs by, as a part.

        ``drift`` is what queries and keys are off already.
        """
        scores = self.rows.scores
        weights = self.rows.made.get("weights")
        seen = scores if weights is None else scores[weights > SMALL_WEIGHT]
        largest = float(np.abs(seen).max(initial=0.0))
        off = max(self.rounding, drift)
        return max(LEAST, ROUNDINGS * off * (1.0 + abs(scale) * largest))

    @property
    def d_k(self) -> int:
        """Entries of a query."""
        return int(self.rows.queries.shape[1])

    @cached_property
    def law(self) -> Law | None:
        """The law of weights or outputs; None where none holds."""
        few = self.rows.some(slice(None, None, -(-len(self.rows.places) // FIT_ROWS)))
        if "weights" in self.rows.made:
            few = few.some(np.any(few.weights > 0.0, axis=1))
            fit = fit_weights([few]) if len(few.places) else None
            return _law_of(fit, GIVEN) or self._line(few)
        masks = [GIVEN] if few.added is not None else list(MASKS)
        plain = min((self._plain(few, one) for one in masks), key=lambda one: one[0])[1]
        if self._is_made(few, plain):
            return plain
        fit, mask = fit_outputs([few]) or (None, GIVEN)
        found = _law_of(fit, mask)
        return found if found and self._is_made(few, found) else None

    def _plain(self, rows: Rows, mask: str) -> tuple[float, Law]:
        """Return the scale that makes outputs best, and what it leaves of them."""

        def make(scale: float) -> tuple[Made, Array]:
            made = make_outputs("plain", np.array([scale]), rows, mask)
            return made, rows.outputs - made.outputs

        known = [1.0 / one.value(self.d_k, 1) for one in KNOWN.values()]
        scale = min(known, key=lambda one: float(np.linalg.norm(make(one)[1])))
        for _ in range(STEPS):
            made, left = make(scale)
            slope = made.moved(rows.scores)
            scale += float((left * slope).sum() / max((slope**2).sum(), TINY))
        return float(np.linalg.norm(make(scale)[1])), Law(
            "plain", scale, math.nan, mask
        )

    def _is_made(self, rows: Rows, law: Law) -> bool:
        """Tell whether a law makes the outputs of rows."""
        outputs = _make(law, rows) @ rows.values
        left, norm = (np.linalg.norm(x) for x in (outputs - rows.outputs, outputs))
        return bool(left <= self.allowed(law.scale) * norm)

    @staticmethod
    def _line(rows: Rows) -> Law | None:
        """Return the slope of logarithms of few weights by their scores."""
        with np.errstate(divide="ignore"):
            logs = np.where(rows.weights > SMALL_WEIGHT, np.log(rows.weights), -np.inf)
        slope = float(_slope(rows.scores, logs, rows.weights))
        law = Law("plain", slope, math.nan, is_fit=False)
        return law if math.isfinite(slope) else None

    @cached_property
    def weights(self) -> Array | None:
        """Attention weights: captured, or made by the law of the outputs."""
        if "weights" in self.rows.made:
            return self.rows.weights
        return None if self.law is None else _make(self.law, self.rows)


def _law_of(fit: Fit | None, mask: str) -> Law | None:
    """Return the law of a fit that holds."""
    if fit is None or not fit.holds or not math.isfinite(fit.std_error):
        return None
    return Law(fit.form, fit.scale, fit.parameter, mask)


def _make(law: Law, rows: Rows) -> Array:
    """Return the weights that a law of outputs makes."""
    more = {"plain": [], "distance": [law.parameter], "sink": [law.parameter]}
    more["cap"] = (
        [math.log(law.parameter / abs(law.scale))] if law.form == "cap" else []
    )
    parameters = np.array([law.scale, *more.get(law.form, [])])
    form = law.form if law.form in more else "plain"
    return make_outputs(form, parameters, rows, law.mask).weights


def _centred(values: Array, weights: Array) -> Array:
    """Return values less their weighted mean over each row, 0 where the weight is."""
    counted = np.where(weights > 0.0, values, 0.0)
    total = np.maximum(weights.sum(axis=1, keepdims=True), TINY)
    mean = (weights * counted).sum(axis=1, keepdims=True) / total
    found: Array = np.where(weights > 0.0, counted - mean, 0.0)
    return found


def _slope(x: Array, y: Array, weights: Array, axis: int | None = None) -> Array:
    """Return the slopes of y by x within rows: of all, or of each."""
    counted = np.where(np.isfinite(y), weights, 0.0)
    x, y = _centred(x, counted), _centred(y, counted)
    square = (counted * x * x).sum(axis=axis, keepdims=axis is not None)
    found = (counted * x * y).sum(axis=axis, keepdims=axis is not None)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(square > 0.0, found / square, np.nan)[()]


def _softmax(logits: Array, total: Array | float = 1.0) -> Array:
    """Return weights of rows that add up to a total, 0 of rows without a key."""
    largest = logits.max(axis=1, keepdims=True)
    e = np.exp(logits - np.where(np.isfinite(largest), largest, 0.0))
    found: Array = e * (total / np.maximum(e.sum(axis=1, keepdims=True), TINY))
    return found


#: Quantities whose causes fit much by chance: they have to explain all.
FREE = ("by position", "weights")


class Guess(NamedTuple):
    """What a cause makes of a head's weights."""

    quantity: str
    text: str  # what the port does
    weights: Array
    port: float = math.nan
    reference: float = math.nan
    values: Array | None = None  # in place of the head's own


@dataclass(frozen=True)
class HeadPair:
    """A head of the port beside that of the reference, of the same tokens."""

    port: HeadSide
    reference: HeadSide
    head: int
    sizes: Sizes
    keys: Array  # of all heads of the port, shape (head of keys, token, d)
    values: Array | None
    is_whole: bool  # whether all rows of the sequence are here

    @cached_property
    def law(self) -> Law:
        """The reference's."""
        return self.reference.law or Law("plain", 1.0 / self.root, math.nan)

    @property
    def root(self) -> float:
        """The root of the reference's d_k."""
        return math.sqrt(self.reference.d_k)

    def allowed_by(self, scale: float, drift: float = 0.0) -> float:
        """Return what rounding on both sides may make, as a part of the norm."""
        return max(one.allowed(scale, drift) for one in (self.port, self.reference))

    @cached_property
    def allowed(self) -> float:
        """The same by the scale that the reference applies."""
        return self.allowed_by(self.law.scale)

    @cached_property
    def score_factor(self) -> float:
        """What the port's scores are multiples of the reference's by; NaN if none."""
        ours, theirs = self.port.rows.scores, self.reference.rows.scores
        factor = float((ours * theirs).sum() / max((theirs**2).sum(), TINY))
        left = np.linalg.norm(ours - factor * theirs)
        allowed = max(LEAST, ROUNDINGS * self.rounding) * np.linalg.norm(ours)
        return factor if left <= allowed else math.nan

    @property
    def rounding(self) -> float:
        """Of the narrower format of both sides."""
        return max(self.port.rounding, self.reference.rounding)

    @cached_property
    def scores(self) -> Array:
        """The port's scores; with another d_k, up to the factor that they differ by."""
        scores = self.port.rows.scores
        if self.port.d_k != self.reference.d_k and math.isfinite(self.score_factor):
            scores = scores / self.score_factor
        return scores

    @property
    def theirs(self) -> Array:
        """The reference's weights, where they are known."""
        return np.asarray(self.reference.weights)

    @cached_property
    def logits(self) -> Array:
        """Logits as the reference would make them of the port's queries and keys."""
        before = self.reference.rows.scores
        with np.errstate(divide="ignore"):
            logs = np.log(self.theirs)
        if self.has_same_scores:
            return logs
        return logs + self.law.logits(self.scores) - self.law.logits(before)

    @cached_property
    def has_same_scores(self) -> bool:
        """Whether nothing but the last digits of scores differs."""
        ours, theirs = self.scores, self.reference.rows.scores
        return bool(np.abs(ours - theirs).max() <= 1e-12 * np.abs(theirs).max())

    @cached_property
    def full(self) -> Array:
        """The same, also of keys that the reference hides."""
        plain, seen = self.law.logits(self.scores), np.isfinite(self.logits)
        count = np.maximum(seen.sum(axis=1, keepdims=True), 1)
        away = np.where(seen, self.logits - plain, 0.0).sum(axis=1, keepdims=True)
        return np.where(seen, self.logits, plain + away / count)

    @cached_property
    def sinks(self) -> tuple[float, float]:
        """Logits of what takes part of the weight, of port and reference; or -inf."""
        found = []
        for weights, scores in (
            (self.port.weights, self.scores),
            (self.theirs, self.reference.rows.scores),
        ):
            found.append(-math.inf)
            lost = np.zeros(1) if weights is None else 1.0 - weights.sum(axis=1)
            if weights is not None and 4.0 * self.rounding < np.median(lost) < 1.0:
                logits = np.where(weights > 0.0, self.law.logits(scores), -np.inf)
                some = (lost > 0.0) & (lost < 1.0)
                odds = np.log(lost[some]) - np.log1p(-lost[some])
                found[-1] = float(np.median(odds + _log_sum(logits[some])))
        return found[0], found[1]

    def total(self, sink: float) -> Array:
        """Return what weights of rows add up to beside a sink."""
        logits = np.where(
            np.isfinite(self.logits), self.law.logits(self.scores), -np.inf
        )
        return np.exp(-np.logaddexp(0.0, sink - _log_sum(logits)))[:, None]

    @cached_property
    def expected(self) -> Array:
        """Weights as the reference would make them of the port's queries and keys."""
        total = self.theirs.sum(axis=1, keepdims=True)
        if math.isfinite(self.sinks[1]) and not self.has_same_scores:
            total = self.total(self.sinks[1])
        return _softmax(self.logits, total)

    @cached_property
    def seen(self) -> tuple[Seen, Seen]:
        """Which keys rows of the port see, and of the reference, as far as it shows."""
        ours, likely = self.port.weights, _softmax(self.full)
        seen = np.isfinite(self.logits) & (self.theirs > 0.0)
        if ours is None:
            return seen, seen
        hidden = (ours == 0.0) & (np.where(seen, self.expected, likely) > SMALL_WEIGHT)
        shown = (ours > SMALL_WEIGHT) & ~seen
        return (seen & ~hidden) | shown, seen

    def scale_beyond_rounding(self) -> Cause | None:
        """Return another scale that all rows show, though rounding could hide it."""
        port, reference = self.port.rows.made, self.reference.rows.made
        theirs = self.reference.weights
        if theirs is None or len(theirs) < FEWEST_ROWS or not self.has_same_scores:
            return None
        mean = (theirs * self.scores).sum(axis=1, keepdims=True)
        by_scale = theirs * (self.scores - mean)  # what 1 more of the scale adds
        name = "weights" if "weights" in port else "outputs"
        if name == "outputs":
            by_scale = by_scale @ reference["v"]
        away = port[name] - reference[name]
        square = float((by_scale**2).sum())
        slope = float((away * by_scale).sum()) / max(square, TINY)
        by_row = ((away - slope * by_scale) * by_scale).sum(axis=1)
        error = float(np.linalg.norm(by_row)) / max(square, TINY)
        scale = self.law.scale
        if abs(slope) <= max(BEYOND_CHANCE * error, OTHER_SCALE * abs(scale)):
            return None
        return Cause("scale", "", 1.0, scale + slope, scale, self.sizes)

    @property
    def sees_the_same(self) -> bool:
        """Whether no key is hidden on one side alone, as far as weights show it."""
        if "weights" not in self.port.rows.made:
            return True
        ours, theirs = self.port.rows.weights, self.reference.rows.weights
        other = (ours == 0.0) != (theirs == 0.0)
        return not bool((other & (np.maximum(ours, theirs) > SMALL_WEIGHT)).any())

    def distance(
        self, weights: Array, values: Array | None = None
    ) -> tuple[float, float]:
        """Return how far the port is off predicted weights, and their norm."""
        made = self.port.rows.made
        if self.port.weights is not None:
            away = self.port.weights - weights
            return float(np.linalg.norm(away)), float(np.linalg.norm(weights))
        outputs = weights @ (made["v"] if values is None else values)
        away = made["outputs"] - outputs
        return float(np.linalg.norm(away)), float(np.linalg.norm(outputs))

    def explain(self) -> tuple[float, float, tuple[Cause, ...]]:
        """Return the difference, what rounding makes, and what explains it."""
        before, norm = self.distance(self.expected)
        allowed = self.allowed * norm
        if before <= allowed and not (self.seen[0] ^ self.seen[1]).any():
            return before / max(norm, TINY), self.allowed, ()
        guesses = [one for cause in WEIGHT_CAUSES for one in cause(self)]
        found = [self._judge(one, before, allowed) for one in guesses]
        size = before / max(norm, TINY), self.allowed
        free = [one for one in found if one.quantity in FREE]
        guesses = [one for one in guesses if one.quantity not in FREE]
        found = [one for one in found if one.quantity not in FREE]
        if all(one.explained < ALL for one in found):
            for one, alone in zip(guesses, found, strict=True):
                with np.errstate(divide="ignore"):
                    more = next(_scale(self, np.log(one.weights)), None)
                if more is None or alone.quantity == "scale":
                    continue
                both = self._judge(more, before, allowed)
                if both.explained >= ALL:
                    return *size, (both, alone._replace(explained=both.explained))
            found += [one for one in free if one.explained >= ALL]
        return *size, choose(found)

    def _judge(self, one: Guess, before: float, allowed: float) -> Cause:
        """Return a guess as a cause, with what it explains."""
        left, _ = self.distance(one.weights, one.values)
        part = explained_by(left, max(before, TINY), allowed)
        return Cause(one.quantity, one.text, part, one.port, one.reference, self.sizes)


def _mask(pair: HeadPair) -> Iterator[Guess]:
    """Try the keys that the port hides."""
    ours, theirs = pair.seen
    if (ours == theirs).all() or pair.port.weights is None:
        return
    weights = _softmax(np.where(ours, pair.full, -np.inf))
    yield Guess("mask", _say_masks(pair, ours, theirs), weights)


MASKS_SAID = {
    "none": "no mask",
    "causal": "a causal mask",
    "window": "a window of {0} keys",
    "chunks": "chunks of {0} keys",
    "keys": "keys {1} hidden",
    "causal_keys": "a causal mask and keys {1} hidden",
    "other": "another mask",
}


def _say_masks(pair: HeadPair, ours: Seen, theirs: Seen) -> str:
    """Say which keys the port hides, and which the reference."""
    rows = pair.port.rows
    if pair.is_whole and (ours == theirs[0]).all():
        return "applies the reference's mask of the first row to all rows"
    (mine, width), (other, wanted) = (
        name_mask([rows], [~one], [one]) for one in (ours, theirs)
    )
    if mine == other == "window":
        off = f"{abs(width - wanted)} too {'long' if width > wanted else 'short'}"
        return f"masks {width} keys back where the reference masks {wanted}: {off}"
    ahead = int(rows.offsets[ours].max(initial=0))
    near = theirs | (np.abs(rows.offsets) <= ahead)
    if (mine, other) == ("other", "causal") and (ours == near).all():
        return f"sees {ahead} keys ahead of its query, the reference none"
    hidden = [
        say_numbers(np.flatnonzero(~one.any(axis=0)).tolist()) for one in (ours, theirs)
    ]
    said = [
        MASKS_SAID.get(name, name).format(size, keys)
        for name, size, keys in zip((mine, other), (width, wanted), hidden, strict=True)
    ]
    more, fewer = (int(one.sum()) for one in (theirs & ~ours, ours & ~theirs))
    counts = f"{more} pairs more are hidden, {fewer} fewer"
    return f"has {said[0]} where the reference has {said[1]}: {counts}"


def _scale(pair: HeadPair, logits: Array | None = None) -> Iterator[Guess]:
    """Try another factor of the scores: of all, or of each row.

    Of the reference's logits, or of those that another cause makes.
    """
    ours = pair.port.weights
    if ours is None:
        return
    logits = pair.logits if logits is None else logits
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.where(ours > SMALL_WEIGHT, np.log(ours), -np.inf) - logits
    both = np.sqrt(ours * pair.expected)
    total = pair.expected.sum(axis=1, keepdims=True)
    for axis in (None, 1):
        slope = _slope(pair.scores, change, both, axis)
        if not np.isfinite(slope).any():
            return
        weights = _softmax(logits + np.nan_to_num(slope) * pair.scores, total)
        if axis is None:
            theirs = pair.law.scale
            told = "" if pair.law.is_fit else f"has a scale {float(slope):+.4g} off"
            yield Guess("scale", told, weights, theirs + float(slope), theirs)
        elif pair.scores.shape[1] > 8:
            told = "multiplies scores by a factor by position"
            yield Guess("by position", told, weights)


def _cap(pair: HeadPair) -> Iterator[Guess]:
    """Try no cap, another one, and one after the mask."""
    ours, theirs = pair.port.law, pair.law
    caps = [
        one.parameter if one and one.form == "cap" else math.inf
        for one in (ours, theirs)
    ]
    total = pair.expected.sum(axis=1, keepdims=True)
    seen = np.isfinite(pair.logits)
    if math.isfinite(caps[1]):
        last = np.where(seen, theirs.logits(pair.scores), -caps[1])
        told = f"caps after the mask: hidden keys get the logit -{caps[1]:.4g}"
        yield Guess("cap", told, _softmax(last), caps[0], caps[1])
    for cap in {caps[0], math.inf}:
        if cap == caps[1]:
            continue
        law = Law("cap" if math.isfinite(cap) else "plain", theirs.scale, cap)
        logits = np.where(seen, law.logits(pair.scores), -np.inf)
        said = [
            f"a cap of {one:.4g}" if math.isfinite(one) else "no cap"
            for one in (cap, caps[1])
        ]
        told = f"has {said[0]} where the reference has {said[1]}"
        yield Guess("cap", told, _softmax(logits, total), cap, caps[1])


def _bias(pair: HeadPair) -> Iterator[Guess]:
    """Try a number of times of what is added to scores."""
    ours = pair.port.weights
    if ours is None or pair.law.form == "cap":
        return
    both = np.sqrt(ours * pair.expected)
    plain = pair.law.logits(pair.scores)
    with np.errstate(divide="ignore", invalid="ignore"):
        theirs = _centred(pair.logits - plain, both)
        mine = _centred(np.log(ours) - plain, both)
    square, total = float((both * theirs**2).sum()), max(float(both.sum()), TINY)
    if math.sqrt(square / total) <= 10.0 * pair.allowed:
        law = pair.port.law
        if law is not None and law.form == "distance":
            away = np.abs(pair.port.rows.offsets)
            told = "adds a bias by distance, the reference none"
            yield Guess("bias", told, _softmax(pair.logits + law.parameter * away))
        return
    factor = float((both * mine * theirs).sum()) / square
    told = f"adds its bias {factor:.4g} times"
    if abs(factor + 1.0) < ALIKE:
        told = "adds its bias with the sign reversed"
    elif abs(factor) < ALIKE:
        told = "adds no bias, the reference does"
    elif abs(factor / pair.law.scale - 1.0) < ALIKE:
        told = f"scales its bias, too: it is {factor:.4g} times the reference's"
    logits = pair.logits + np.where(both > 0.0, (factor - 1.0) * theirs, 0.0)
    yield Guess("bias", told, _softmax(logits), factor, 1.0)


def _sink(pair: HeadPair) -> Iterator[Guess]:
    """Try other logits of a sink."""
    ours, theirs = pair.sinks
    told = "has another logit for its sink"
    if math.isinf(theirs):
        told = "has a sink, the reference has none"
    guesses = {
        "has no sink, the reference has one": -math.inf,
        "counts its sink twice": theirs + math.log(2.0),
        "scales its sink, too": theirs * pair.law.scale,
        told: ours,
    }
    if ours != theirs:
        for text, logit in guesses.items():
            weights = _softmax(pair.logits, pair.total(logit))
            yield Guess("sink", text, weights, ours, theirs)


def _log_sum(logits: Array) -> Array:
    largest: Array = logits.max(axis=1)
    found: Array = largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))
    return found


def _softmax_order(pair: HeadPair) -> Iterator[Guess]:
    """Try softmax before the mask, over the queries, and with dropout after it."""
    ours, seen = pair.port.weights, pair.seen[1]
    everything = _softmax(pair.law.logits(pair.scores))
    if not seen.all():
        told = "masks after softmax: weights of a row no longer add up to 1"
        yield Guess("mask", told, np.where(seen, everything, 0.0))
    if pair.is_whole:
        logits = np.where(seen, pair.law.logits(pair.scores), -np.inf)
        told = "takes softmax over the queries, not over the keys"
        yield Guess("softmax", told, _softmax(logits.T).T)
    made = pair.expected
    if ours is None:
        return
    for told, kept in (
        ("multiplies weights by {:.4g}", np.ones_like(made)),
        ("drops weights and multiplies others by {:.2g}: dropout", ours > 0.0),
    ):
        some = made * kept
        factor = float((ours * some).sum() / max((some**2).sum(), TINY))
        yield Guess("weights", told.format(factor), factor * some)


def _grouping(pair: HeadPair) -> Iterator[Guess]:
    """Try key heads that are tiled where the reference repeats each."""
    heads, key_heads = pair.sizes[1], len(pair.keys)
    if key_heads in {1, heads}:
        return
    other = pair.head % key_heads
    scores = pair.port.rows.queries @ pair.keys[other].T
    moved = pair.law.logits(scores) - pair.law.logits(pair.scores)
    told = "tiles key heads (interleaved), the reference repeats each (blocked)"
    values = None if pair.values is None else pair.values[other]
    yield Guess("grouping", told, _softmax(pair.logits + moved), values=values)


#: The simplest first.
WEIGHT_CAUSES: tuple[Callable[[HeadPair], Iterator[Guess]], ...] = (
    _mask,
    _sink,
    _cap,
    _softmax_order,
    _grouping,
    _bias,
    _scale,
)

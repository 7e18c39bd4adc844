"""Why the attention of a port is not its reference's: causes, each tried on arrays.

A cause predicts an array of the port from the reference's.  `explain` holds what each
leaves of the difference against what rounding can make: the simplest that leaves no
more is named; where none does, the one that explains most, and its equals.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.special import logsumexp

from montecarlo.attention.softmax import Array
from montecarlo.estimation.intervals import t_quantile
from montecarlo.model.answers import say_mask, say_numbers
from montecarlo.model.arrays import Rows
from montecarlo.model.expected import KNOWN
from montecarlo.model.fits import (
    GIVEN,
    MASKS,
    Fit,
    fit_outputs,
    fit_weights,
    make_outputs,
)
from montecarlo.model.masks import name_mask

#: How often rounding alone exceeds what it is allowed, in one array at most.
FALSE_ALARM = 1e-6
#: What a number of a sound port may be off by, in roundings of its format.  Each side
#: makes it in at most four steps (product, scale, bias or cap, softmax): eight even
#: roundings have the standard deviation 1.63.  The norm of ten of them and more exceeds
#: `ROUNDINGS` by chance less often than `FALSE_ALARM`: see `roundings_of`.
STEP, ROUNDINGS = math.sqrt(8.0 / 3.0), 4.0
#: What a difference has to be to be one, whatever the format, as a part of the norm:
#: `ROUNDINGS` of float32 of scaled scores of 400.
LEAST = 1e-4
#: What a cause has to explain of a difference; and how much of one twice as large as
#: rounding.  By chance one that fits half as many numbers as there are, which is the
#: most that is tried, explains 1 - sqrt(1/2) = 0.29.
EXPLAINS, HALF = 0.8, 0.5
#: From where on it explains all, so that none is sought beside it.  Measured on rebuilt
#: faults: 99.8 % of 2,528 differences are explained so by what is named, and of wrong
#: causes 138 explain between `EXPLAINS` and this; `test_the_cause_is_named` holds it.
ALL = 0.98
#: Lengths of normalised rows spread by less than this part of them: rounding to
#: bfloat16 makes 0.004, normal entries 1 / sqrt(2 d_k), 0.044 of 256.
EVEN = 0.02
#: How near ratios and angles are to what they are called; nothing is decided by it.
ALIKE = 0.05
#: What rounding to float32 moves a number by: in fewer bits a scale alone makes the
#: outputs of a cap, too.
FLOAT32 = 2.0**-24
#: What is divided by at least.
TINY = 1e-300
#: Weights below this may be 0 in another format: float16 holds them to a part of 64.
SMALL_WEIGHT = 2.0**-18
#: How far off a scale below rounding has to be, as a part of it: what is less, the
#: tests of one side's scale tell.
OTHER_SCALE = 0.02
#: Of Gauss and Newton to the scale of outputs.
STEPS = 4
#: Rows that a fit takes.
FIT_ROWS = 64
#: Bases of rotary embeddings, and parts of a head that are rotated, of public models.
BASES = (1e4, 1e3, 5e4, 1e5, 1.5e5, 1.6e5, 5e5, 1e6, 5e6, 8e6, 1e7)
ROTATED = (1.0, 0.75, 0.5, 0.4, 0.25)
#: Tokens at even distances, of two heads, from which rotary embeddings are recognised.
ROTARY_TOKENS = 16
#: Products that differ by a smaller part are of rotations that are the same.
SAME_ROTATION = 1e-9
#: Logarithm of a base at most.
MOST_LOG_BASE = 50.0
Seen = NDArray[np.bool_]


class Cause(NamedTuple):
    """What a port may do, and what its array would then be."""

    quantity: str  # where it is: q, k, v, scale, cap, mask, bias, sink, ...
    text: str  # what the port does, with its {name} and its numbers {port}, {reference}
    made: Array  # vectors (head, token, d), or weights or outputs of a head
    n_free: int = 0  # numbers that were fitted to the port
    port: float = math.nan  # a number of the port, and the reference's, if it has one
    reference: float = math.nan
    is_free: bool = False  # fits much by chance: it has to explain all
    beside: "Cause | None" = None  # a further cause without which this explains less
    explained: float = 0.0  # the part of the difference that it explains


def explain(
    array: Array, before: Array, causes: Iterable[Cause], rounding: float
) -> tuple[Cause, ...]:
    """Return the simplest cause that explains how an array differs, or the best.

    ``before`` is the array without a cause, ``rounding`` the norm of what rounding can
    make of it; ``causes`` are the simplest first.
    """
    difference, judged = _norm(array - before), list[Cause]()
    for one in causes:
        left = _norm(array - one.made)
        part = 1.0 - left / max(difference, TINY)
        if part >= ALL or (left <= rounding and part >= HALF):
            return tuple(
                each._replace(explained=max(part, ALL), made=np.empty(0))
                for each in (one, one.beside)
                if each is not None
            )
        if not one.is_free:
            judged.append(one._replace(explained=part, made=np.empty(0)))
    best = max((one.explained for one in judged), default=0.0)
    if best < EXPLAINS:
        return ()
    return tuple(one for one in judged if one.explained >= best - 0.01)


def roundings_of(n: int) -> float:
    """Return how many roundings the norm of so many numbers may be off by.

    Squares of even roundings have lighter tails than those of normal ones, whose sum
    is bounded by Laurent and Massart (2000, lemma 1).
    """
    log = -math.log(FALSE_ALARM) / max(n, 1)
    return max(ROUNDINGS, STEP * math.sqrt(1.0 + 2.0 * math.sqrt(log) + 2.0 * log))


def _norm(array: Array) -> float:
    return float(np.linalg.norm(array))


# --- Queries, keys and values -------------------------------------------------------


def _factors(port: Array, reference: Array, _: int) -> Iterator[Cause]:
    """Try multiples: one, of each head, of each position, of each entry."""
    for axes, text in (
        ((0, 1, 2), "multiplies {name} by {port:.4g}"),
        ((1, 2), "multiplies {name} by a factor by head"),
        ((0, 2), "multiplies {name} by a factor by position"),
        ((0, 1), "multiplies entries of {name} as a norm's gain does, by a factor"),
    ):
        square = np.square(reference).sum(axis=axes, keepdims=True)
        factor = (port * reference).sum(axis=axes, keepdims=True)
        factor = factor / np.where(square > 0.0, square, 1.0)
        ends = f", {factor.min():.4g} to {factor.max():.4g}" * (factor.size > 1)
        made = factor * reference
        yield Cause("", text + ends, made, factor.size, float(factor.min()))


def _norms(port: Array, reference: Array, _: int) -> Iterator[Cause]:
    """Try rows that one side alone normalises, and norms over the tokens."""
    ours, theirs = (np.linalg.norm(one, axis=-1) for one in (port, reference))
    by_entry = np.linalg.norm(port, axis=-2)
    spread, other, of_columns = (x.std() / x.mean() for x in (ours, theirs, by_entry))
    if of_columns < EVEN and other < EVEN:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(np.abs(port / reference))
        ratio = np.where(np.isfinite(ratio), ratio, 0.0)
        of_token = ratio.mean(axis=-1, keepdims=True)
        of_entry = (ratio - of_token).mean(axis=-2, keepdims=True)
        told = "normalises {name} over the tokens, the reference over entries"
        made = reference * np.exp(of_token + of_entry)
        yield Cause("", told, made, of_token.size + of_entry.size)
    yield from _norm_widths(port, reference, 0)
    if theirs.all() and min(spread, other) * 3.0 < max(spread, other):
        told = "does not normalise {name}, the reference does"
        if spread < other:
            told = "normalises {name}, the reference does not"
        yield Cause("", told, reference * (ours / theirs)[..., None], ours.size)


def _norm_widths(port: Array, reference: Array, _: int) -> Iterator[Cause]:
    """Try a norm of each head where the reference normalises all heads together.

    With lengths |u_h| of H heads before the norm, and f_h the port's factor over the
    reference's, f_h^-2 = H |u_h|^2 / sum |u|^2 has the mean 1 over heads, of every
    token and whatever the gain; the other way round f_h^2 has.
    """
    square = np.square(reference).sum(axis=-1, keepdims=True)
    factor = (port * reference).sum(axis=-1, keepdims=True)
    factor = factor / np.where(square > 0.0, square, 1.0)
    made, (mine, other) = factor * reference, ("of each head", "over all heads")
    for power, ways in ((-2.0, (mine, other)), (2.0, (other, mine))):
        with np.errstate(divide="ignore"):
            means = (np.abs(factor) ** power).mean(axis=0)
        if len(port) > 1 and np.abs(means - 1.0).max() < EVEN:
            told = "normalises {{name}} {}, the reference {}".format(*ways)
            yield Cause("", told, made, len(port) * port.shape[1])


def _orders(port: Array, reference: Array, _: int) -> Iterator[Cause]:
    """Try heads in another order, tokens a place off, and rows read otherwise."""
    heads, tokens, d = port.shape
    products = port.reshape(heads, -1) @ reference.reshape(heads, -1).T
    nearest = np.argmax(np.abs(products), axis=1)
    order = ", ".join(map(str, nearest[:8]))
    told = f"has heads of {{name}} in another order: the reference's {order}"
    n_groups = len(set(nearest.tolist()))
    if n_groups < heads and (nearest == np.resize(nearest[:n_groups], heads)).all():
        told = TILED
    yield Cause("", told, reference[nearest])
    for shift, side in ((-1, "after"), (1, "before")) if tokens > 2 else ():
        told = f"has {{name}} of the token {side} in its place"
        yield Cause("", told, np.roll(reference, shift, axis=1))
    if heads > 1:
        told = "swaps heads and tokens of {name}: reshaped without a transpose"
        yield Cause("", told, reference.swapaxes(0, 1).reshape(heads, tokens, d))
        yield Cause("", told, reference.reshape(tokens, heads, d).swapaxes(0, 1))


class Rotary(NamedTuple):
    """Rotary embeddings: pairs of entries turned by the position times a frequency."""

    base: float = math.inf  # of the frequencies; infinite where nothing is rotated
    width: int = 2  # entries that are rotated, the first ones
    pairs: str = "halves"  # or "neighbours": entries i and i + width/2, or 2i and 2i+1
    sign: int = 1  # -1 where they are turned backwards

    def turn(self, x: Array, positions: Array, sign: int = 1) -> Array:
        """Return vectors (head, token, d) rotated; with sign -1 rotated back."""
        half, made = self.width // 2, x.copy()
        frequencies = self.base ** (-np.arange(half) / half)
        frequencies *= math.isfinite(self.base) * sign * self.sign
        entries = slice(0, self.width, 2), slice(1, self.width, 2)
        if self.pairs == "halves":
            entries = slice(half), slice(half, self.width)
        turn = np.exp(1j * positions[:, None] * frequencies)
        turned = (x[..., entries[0]] + 1j * x[..., entries[1]]) * turn
        made[..., entries[0]], made[..., entries[1]] = turned.real, turned.imag
        return made

    def say(self, other: "Rotary", d: int, side: str) -> str:
        """Say what of it is not as in another; the base is a number of the side."""
        if math.isinf(self.base):
            return "not at all"
        if math.isinf(other.base):
            other = self._replace(base=math.inf, width=d)
        said = [f"with base {{{side}:.6g}}"] * (self.base != other.base)
        said += [f"{self.width} of {d} entries"] * (self.width != other.width)
        said += [f"pairs of {self.pairs}"] * (self.pairs != other.pairs)
        return ", ".join([*said, *["backwards"] * (self.sign < 0)]) or "forwards"


def _rotary(port: Array, reference: Array, first: int) -> Iterator[Cause]:
    """Try other rotary embeddings of the same vectors: those of models, then any base.

    Rotations keep lengths: the nearest of all pairs of embeddings is the one whose
    unrotated vectors have the largest product.
    """
    lengths, other_lengths = (np.linalg.norm(x, axis=2) for x in (port, reference))
    if _norm(lengths - other_lengths) > EVEN * _norm(other_lengths):
        return
    _, tokens, d = port.shape
    widths = [w for part in ROTATED if (w := round(part * d)) % 2 == 0 and w]
    ways = [Rotary()] + [
        Rotary(base, width, pairs, sign)
        for sign in (1, -1)
        for pairs in ("halves", "neighbours")
        for width in widths
        for base in BASES
    ]
    positions = np.arange(first, first + tokens, dtype=float)
    few = slice(None, None, -(-tokens // ROTARY_TOKENS))
    unturned = [
        np.stack([way.turn(x[:2, few], positions[few], -1).ravel() for way in ways])
        for x in (port, reference)
    ]
    product = unturned[0] @ unturned[1].T
    nearest = np.argwhere(product >= (1.0 - SAME_ROTATION) * product.max())
    pairs_of_ways = [(ways[i], ways[j]) for i, j in nearest]
    mine, other = max(pairs_of_ways, key=lambda both: sum(one.sign for one in both))
    for digits in (6, 2):
        made = mine.turn(other.turn(reference, positions, -1), positions)
        base, other_base = (float(f"{x.base:.{digits}g}") for x in (mine, other))
        said = mine.say(other, d, "port"), other.say(mine, d, "reference")
        told = f"{ROTATES} (rotary embeddings): {said[0]}, the reference {said[1]}"
        told += "; or the port does twice" * math.isinf(other.base)
        yield Cause("", told, made, 2, base, other_base)
        mine, other = _refine(mine, other, port, reference, positions)


def _refine(
    mine: Rotary, other: Rotary, port: Array, reference: Array, positions: Array
) -> tuple[Rotary, Rotary]:
    """Return two rotary embeddings with the bases that fit the first tokens best."""
    few = slice(ROTARY_TOKENS)
    start = np.log([one.base for one in (mine, other) if math.isfinite(one.base)])

    def based(logs: Array) -> tuple[Rotary, Rotary]:
        left = iter(np.exp(np.clip(logs, 0.0, MOST_LOG_BASE)).tolist())
        first, second = (
            one._replace(base=next(left)) if math.isfinite(one.base) else one
            for one in (mine, other)
        )
        return first, second

    def residual(logs: Array) -> Array:
        both = zip(based(logs), (port, reference), strict=True)
        made = [one.turn(x[:2, few], positions[few], -1).ravel() for one, x in both]
        return made[0] - made[1]

    return based(least_squares(residual, start).x) if start.size else (mine, other)


def _rotations(port: Array, reference: Array, _: int) -> Iterator[Cause]:
    """Try pairs of entries that are turned, or turned before a gain, not after it."""
    heads, tokens, d = port.shape
    neighbours = np.arange(d).reshape(-1, 2).T.ravel() if d % 2 == 0 else ()
    for order in (np.arange(d), neighbours) if d % 2 == 0 else ():
        ours, theirs = (
            one[..., order].reshape(heads, tokens, 2, -1) for one in (port, reference)
        )
        back = np.argsort(order)
        z, w = (one[:, :, 0] + 1j * one[:, :, 1] for one in (ours, theirs))
        turn = (z * w.conj()).sum(axis=0)
        turn /= np.maximum(np.abs(turn), TINY)
        made = np.concatenate([(turn * w).real, (turn * w).imag], -1)[..., back]
        yield Cause("", _say_turn(turn), made, turn.size)
        if heads > 2:
            cross = np.einsum("htip,htjp->tpij", ours, theirs)
            square = np.einsum("htip,htjp->tpij", theirs, theirs)
            matrix = cross @ np.linalg.pinv(square)
            if np.median(np.abs(np.linalg.det(matrix) - 1.0)) < ALIKE:
                made = np.einsum("tpij,htjp->htip", matrix, theirs)
                made = made.reshape(port.shape)[..., back]
                told = "applies norm and rotation of {name} in another order: one side "
                yield Cause("", told + "rotates before its gain", made, matrix.size)


def _say_turn(turn: NDArray[np.complex128]) -> str:
    """Say how angles (token, pair) by which the port is turned farther grow."""
    steps = np.angle((turn[1:] * turn[:-1].conj()).mean(axis=0))
    if len(turn) < 2 or np.abs(steps).max() < LEAST:
        return f"turns {{name}} as of positions {np.angle(turn[0, 0]):.3g} farther on"
    told = f"{ROTATES}: "
    if abs(steps[0] + 1.0) < ALIKE:
        return f"{told}it does not, and the reference does; or it rotates backwards"
    if abs(steps[0] - 1.0) < ALIKE:
        return f"{told}the reference does not; or the port does twice"
    return f"{told}another base or scaling of the rotation"


#: The simplest first.
VECTOR_CAUSES = (_factors, _orders, _norms, _rotary, _rotations)
ROTATES = "rotates {name} otherwise"
TILED = "tiles key heads (interleaved), the reference repeats each (blocked)"


def explain_vectors(
    name: str, port: Array, reference: Array, rounding: float, first: int = 0
) -> tuple[Cause, ...]:
    """Return what explains how queries, keys or values differ, (head, token, d).

    A cause that fits more than half as many numbers as there are explains nothing.
    Positions of tokens count from ``first``.
    """
    tried = (one for way in VECTOR_CAUSES for one in way(port, reference, first))
    causes = (one for one in tried if 2 * one.n_free <= port.size)
    found = explain(port, reference, causes, rounding * _norm(reference))
    return tuple(one._replace(quantity=name) for one in found)


# --- Weights and outputs ------------------------------------------------------------


class LogitRule(NamedTuple):
    """How a head makes logits of scores."""

    form: str  # a key of `FORMS` in fits, or of groups there
    scale: float
    parameter: float = math.nan  # of the form
    mask: str = GIVEN
    is_fit: bool = True  # not just a slope of few numbers

    def logits(self, scores: Array) -> Array:
        """Return logits, but for what is added."""
        scaled: Array = self.scale * scores
        if self.form == "cap":
            scaled = self.parameter * np.tanh(scaled / self.parameter)
        return scaled

    @property
    def slope(self) -> float:
        """What is added for each position of distance."""
        return self.parameter if self.form == "distance" else 0.0

    def weights(self, rows: Rows) -> Array:
        """Return the weights that this makes of the scores of rows."""
        more = {"distance": [self.parameter], "sink": [self.parameter]}
        if self.form == "cap":
            more["cap"] = [math.log(self.parameter / abs(self.scale))]
        parameters = np.array([self.scale, *more.get(self.form, [])])
        form = self.form if self.form in more else "plain"
        return make_outputs(form, parameters, rows, self.mask).weights


@dataclass(frozen=True)
class HeadSide:
    """A head of one side: rows of a sequence, and the rule that its weights follow."""

    rows: Rows
    rounding: float  # what rounding moves numbers by, as a part of them
    #: The scale, as it was passed to attention that has no cap; None: not known.
    passed: float | None = None

    def allowed(self, scale: float, drift: float = 0.0) -> float:
        """Return what rounding of scores moves weights and outputs by, as a part.

        ``drift`` is what queries and keys are off already.
        """
        scores = self.rows.scores
        weights = self.rows.made.get("weights")
        seen = scores if weights is None else scores[weights > SMALL_WEIGHT]
        largest = float(np.abs(seen).max(initial=0.0))
        off = roundings_of(seen.size) * max(self.rounding, drift)
        return max(LEAST, off * (1.0 + abs(scale) * largest))

    @property
    def d_k(self) -> int:
        """Entries of a query."""
        return int(self.rows.queries.shape[1])

    @cached_property
    def rule(self) -> LogitRule | None:
        """The rule of weights or outputs; None where none holds."""
        few = self.rows.some(slice(None, None, -(-len(self.rows.places) // FIT_ROWS)))
        if "weights" in self.rows.made:
            few = few.some(np.any(few.weights > 0.0, axis=1))
            fit = fit_weights([few]) if len(few.places) else None
            return _rule_of(fit, GIVEN) or self._line(few)
        masks = [GIVEN] if few.added is not None else list(MASKS)
        if self.passed is not None and few.added is not None:
            passed = LogitRule("plain", self.passed)
            if self._is_made(few, passed):
                return passed
        plain = min((self._plain(few, one) for one in masks), key=lambda one: one[0])[1]
        if self._is_made(few, plain):
            return plain
        found = _rule_of(*(fit_outputs([few]) or (None, GIVEN)))
        return found if found and self._is_made(few, found) else None

    def _plain(self, rows: Rows, mask: str) -> tuple[float, LogitRule]:
        """Return what the scale that makes outputs best leaves of them, and a rule."""

        def left_at(scale: float) -> tuple[Array, Array]:
            made = make_outputs("plain", np.array([scale]), rows, mask)
            return rows.outputs - made.outputs, made.moved(rows.scores)

        known = [1.0 / one.value(self.d_k, 1) for one in KNOWN.values()]
        scale = min(known, key=lambda one: _norm(left_at(one)[0]))
        for _ in range(STEPS):
            left, slope = left_at(scale)
            scale += float((left * slope).sum() / max((slope**2).sum(), TINY))
        return _norm(left_at(scale)[0]), LogitRule("plain", scale, mask=mask)

    def _is_made(self, rows: Rows, rule: LogitRule) -> bool:
        """Tell whether a rule makes the outputs of rows."""
        outputs = rule.weights(rows) @ rows.values
        allowed = self.allowed(rule.scale) * _norm(outputs)
        return _norm(outputs - rows.outputs) <= allowed

    @staticmethod
    def _line(rows: Rows) -> LogitRule | None:
        """Return the slope of logarithms of few weights by their scores."""
        logs = _logs(np.where(rows.weights > SMALL_WEIGHT, rows.weights, 0.0))
        slope = float(_slope(rows.scores, logs, rows.weights))
        return LogitRule("plain", slope, is_fit=False) if math.isfinite(slope) else None

    @property
    def is_sure(self) -> bool:
        """Whether no other rule than its own makes outputs to within rounding."""
        is_passed = self.rule is not None and self.rule[:2] == ("plain", self.passed)
        return is_passed or (self.rule is not None and self.rounding <= FLOAT32)

    @cached_property
    def weights(self) -> Array | None:
        """Attention weights: captured, or made by the rule of the outputs."""
        if "weights" in self.rows.made:
            return self.rows.weights
        return None if self.rule is None else self.rule.weights(self.rows)


def _rule_of(fit: Fit | None, mask: str) -> LogitRule | None:
    """Return the rule of a fit that holds."""
    if fit is None or not fit.holds or not math.isfinite(fit.std_error):
        return None
    return LogitRule(fit.form, fit.scale, fit.parameter, mask)


def _logs(weights: Array) -> Array:
    """Return logarithms of weights, -inf of 0."""
    with np.errstate(divide="ignore"):
        found: Array = np.log(weights)
    return found


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


@dataclass(frozen=True)
class HeadPair:
    """A head of the port beside that of the reference, of the same tokens."""

    port: HeadSide
    reference: HeadSide
    head: int
    heads: int  # of queries
    keys: Array  # of all heads of the port, shape (head of keys, token, d)
    values: Array | None
    is_whole: bool  # whether all rows of the sequence are here

    @cached_property
    def rule(self) -> LogitRule:
        """The reference's."""
        return self.reference.rule or LogitRule("plain", self.reference.d_k**-0.5)

    def allowed_by(self, scale: float, drift: float = 0.0) -> float:
        """Return what rounding on both sides may make, as a part of the norm."""
        return max(one.allowed(scale, drift) for one in (self.port, self.reference))

    @property
    def rounding(self) -> float:
        """Of the narrower format of both sides."""
        return max(self.port.rounding, self.reference.rounding)

    @cached_property
    def score_factor(self) -> float:
        """What the port's scores are multiples of the reference's by; NaN if none."""
        ours, theirs = self.port.rows.scores, self.reference.rows.scores
        factor = float((ours * theirs).sum() / max((theirs**2).sum(), TINY))
        allowed = max(LEAST, ROUNDINGS * self.rounding) * _norm(ours)
        return factor if _norm(ours - factor * theirs) <= allowed else math.nan

    @cached_property
    def scores(self) -> Array:
        """The port's scores; with another d_k, up to the factor that they differ by."""
        scores = self.port.rows.scores
        if self.port.d_k != self.reference.d_k and math.isfinite(self.score_factor):
            scores = scores / self.score_factor
        return scores

    @cached_property
    def has_same_scores(self) -> bool:
        """Whether nothing but the last digits of scores differs."""
        ours, theirs = self.scores, self.reference.rows.scores
        return bool(np.abs(ours - theirs).max() <= 1e-12 * np.abs(theirs).max())

    @property
    def theirs(self) -> Array:
        """The reference's weights, where they are known."""
        return np.asarray(self.reference.weights)

    @cached_property
    def plain(self) -> Array:
        """What the reference's scale and cap make of the port's scores."""
        return self.rule.logits(self.scores)

    @cached_property
    def logits(self) -> Array:
        """Logits as the reference would make them of the port's queries and keys."""
        logs = _logs(self.theirs)
        if self.has_same_scores:
            return logs
        return logs + self.plain - self.rule.logits(self.reference.rows.scores)

    @cached_property
    def full(self) -> Array:
        """The same, also of keys that the reference hides."""
        seen = np.isfinite(self.logits)
        count = np.maximum(seen.sum(axis=1, keepdims=True), 1)
        away = np.where(seen, self.logits - self.plain, 0.0)
        away = away.sum(axis=1, keepdims=True) / count
        return np.where(seen, self.logits, self.plain + away)

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
                logits = np.where(weights > 0.0, self.rule.logits(scores), -np.inf)
                some = (lost > 0.0) & (lost < 1.0)
                odds = np.log(lost[some]) - np.log1p(-lost[some])
                found[-1] = float(np.median(odds + logsumexp(logits[some], axis=1)))
        return found[0], found[1]

    def total(self, sink: float) -> Array:
        """Return what weights of rows add up to beside a sink."""
        logits = np.where(np.isfinite(self.logits), self.plain, -np.inf)
        return np.exp(-np.logaddexp(0.0, sink - logsumexp(logits, axis=1)))[:, None]

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

    @property
    def sees_the_same(self) -> bool:
        """Whether no key is hidden on one side alone, as far as weights show it."""
        if "weights" not in self.port.rows.made:
            return True
        ours, theirs = self.port.rows.weights, self.reference.rows.weights
        other = (ours == 0.0) != (theirs == 0.0)
        return not bool((other & (np.maximum(ours, theirs) > SMALL_WEIGHT)).any())

    def predict(self, weights: Array, values: Array | None = None) -> Array:
        """Return what weights make of what is known of the port: these, or outputs."""
        if self.port.weights is not None:
            return weights
        made: Array = weights @ (self.port.rows.values if values is None else values)
        return made

    def explain(self) -> tuple[float, float, tuple[Cause, ...]]:
        """Return the difference, what rounding makes, and what explains it."""
        weights, allowed = self.port.weights, self.allowed_by(self.rule.scale)
        array = self.port.rows.outputs if weights is None else weights
        before = self.predict(self.expected)
        norm = _norm(before)
        size = _norm(array - before) / max(norm, TINY)
        if size <= allowed and not (self.seen[0] ^ self.seen[1]).any():
            return size, allowed, ()
        return size, allowed, explain(array, before, self._causes(), allowed * norm)

    def _causes(self) -> Iterator[Cause]:
        """Yield causes alone, then with another scale, then those that fit by chance.

        What explains a scale is not said of what another scale leaves of it.
        """
        tried = list(chain.from_iterable(cause(self) for cause in WEIGHT_CAUSES))
        yield from (one for one in tried if not one.is_free)
        if self.port.weights is not None:
            for one in tried:
                more = next(_scale(self, _logs(one.made)), None)
                if not one.is_free and more and one.quantity != "scale":
                    yield more._replace(is_free=True, beside=one)
        yield from (one for one in tried if one.is_free)

    def find_hidden_scale(self) -> Cause | None:
        """Return another scale that all rows show, though rounding could hide it."""
        port, reference = self.port.rows.made, self.reference.rows.made
        theirs = self.reference.weights
        if theirs is None or len(theirs) < 2 or not self.has_same_scores:
            return None
        mean = (theirs * self.scores).sum(axis=1, keepdims=True)
        by_scale = theirs * (self.scores - mean)  # what 1 more of the scale adds
        name = "weights" if "weights" in port else "outputs"
        if name == "outputs":
            by_scale = by_scale @ reference["v"]
        away = port[name] - reference[name]
        square = max(float((by_scale**2).sum()), TINY)
        slope = float((away * by_scale).sum()) / square
        by_row = ((away - slope * by_scale) * by_scale).sum(axis=1)
        error, scale = _norm(by_row) / square, self.rule.scale
        error *= t_quantile(FALSE_ALARM, len(by_row))
        if abs(slope) <= max(error, OTHER_SCALE * abs(scale)):
            return None
        return Cause("scale", "", theirs, 1, scale + slope, scale, explained=1.0)


def _mask(pair: HeadPair) -> Iterator[Cause]:
    """Try the keys that the port hides."""
    ours, theirs = pair.seen
    if (ours != theirs).any() and pair.port.weights is not None:
        weights = _softmax(np.where(ours, pair.full, -np.inf))
        yield Cause("mask", _say_masks(pair, ours, theirs), weights)


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
    said = [
        say_mask(name, size, say_numbers(np.flatnonzero(~one.any(axis=0)).tolist()))
        for name, size, one in ((mine, width, ours), (other, wanted, theirs))
    ]
    more, fewer = (int(one.sum()) for one in (theirs & ~ours, ours & ~theirs))
    counts = f"{more} pairs more are hidden, {fewer} fewer"
    return f"has {said[0]} where the reference has {said[1]}: {counts}"


def _scale(pair: HeadPair, logits: Array | None = None) -> Iterator[Cause]:
    """Try another factor of the scores: of all, or of each row.

    Of the reference's logits, or of those that another cause makes.
    """
    ours = pair.port.weights
    if ours is None:
        return
    logits = pair.logits if logits is None else logits
    with np.errstate(invalid="ignore"):
        change = _logs(np.where(ours > SMALL_WEIGHT, ours, 0.0)) - logits
    both = np.sqrt(ours * pair.expected)
    total = pair.expected.sum(axis=1, keepdims=True)
    for axis in (None, 1):
        slope = _slope(pair.scores, change, both, axis)
        if not np.isfinite(slope).any():
            return
        weights = _softmax(logits + np.nan_to_num(slope) * pair.scores, total)
        if axis is None:
            scale = pair.rule.scale
            told = "" if pair.rule.is_fit else f"has a scale {float(slope):+.4g} off"
            yield Cause("scale", told, weights, 1, scale + float(slope), scale)
        elif pair.scores.shape[1] > 8:
            told = "multiplies scores by a factor by position"
            yield Cause("scale", told, weights, len(weights), is_free=True)


def _cap(pair: HeadPair) -> Iterator[Cause]:
    """Try no cap, another one, and one after the mask."""
    mine, theirs = (
        one.parameter if one and one.form == "cap" else math.inf
        for one in (pair.port.rule, pair.rule)
    )
    total = pair.expected.sum(axis=1, keepdims=True)
    seen = np.isfinite(pair.logits)
    if math.isfinite(theirs):
        last = _softmax(np.where(seen, pair.plain, -theirs))
        told = "caps after the mask: hidden keys get the logit -{reference:.4g}"
        yield Cause("cap", told, pair.predict(last), port=mine, reference=theirs)
    for cap in {mine, math.inf} - {theirs}:
        rule = LogitRule("cap" if math.isfinite(cap) else "plain", pair.rule.scale, cap)
        logits = np.where(seen, rule.logits(pair.scores), -np.inf)
        made = pair.predict(_softmax(logits, total))
        told = "has no cap where the reference has a cap of {reference:.4g}"
        if math.isfinite(cap):
            told = "has a cap of {port:.4g} where the reference has " + (
                "a cap of {reference:.4g}" if math.isfinite(theirs) else "no cap"
            )
        yield Cause("cap", told, made, port=cap, reference=theirs)


def _bias(pair: HeadPair) -> Iterator[Cause]:
    """Try another slope of a bias by distance, and a multiple of any other bias."""
    ours, rule = pair.port.weights, pair.port.rule
    if ours is None or rule is None or pair.rule.form == "cap":
        return
    mine, theirs = rule.slope, pair.rule.slope
    if mine != theirs:
        made = _softmax(pair.logits + (mine - theirs) * np.abs(pair.port.rows.offsets))
        yield Cause("bias", "", made, 1, mine, theirs)
        return
    both = np.sqrt(ours * pair.expected)
    with np.errstate(invalid="ignore"):
        bias, other = (
            _centred(logs - pair.plain, both) for logs in (_logs(ours), pair.logits)
        )
    square, total = float((both * other**2).sum()), max(float(both.sum()), TINY)
    if math.sqrt(square / total) <= 10.0 * pair.allowed_by(pair.rule.scale):
        return
    factor = float((both * bias * other).sum()) / square
    told = SCALED_BIAS if abs(factor / pair.rule.scale - 1.0) < ALIKE else ""
    logits = pair.logits + np.where(both > 0.0, (factor - 1.0) * other, 0.0)
    yield Cause("bias", told, _softmax(logits), 1, factor, 1.0)


def _sink(pair: HeadPair) -> Iterator[Cause]:
    """Try another logit of a sink, or none."""
    ours, theirs = pair.sinks
    if ours == theirs:
        return
    told = "has the sink logit {ports}, the reference {references}{of_layer}"
    if math.isinf(theirs):
        told = "has a sink, the reference has none"
    elif math.isinf(ours):
        told = "has no sink, the reference has one"
    elif abs(ours - theirs - math.log(2.0)) < ALIKE:
        told = "counts its sink twice"
    elif abs(ours - theirs * pair.rule.scale) < ALIKE:
        told = "scales its sink, too"
    made = pair.predict(_softmax(pair.logits, pair.total(ours)))
    yield Cause("sink", told, made, 0, ours, theirs)


def _softmax_order(pair: HeadPair) -> Iterator[Cause]:
    """Try softmax before the mask, and over the queries."""
    seen = pair.seen[1]
    if not seen.all():
        told = "masks after softmax: weights of a row no longer add up to 1"
        made = np.where(seen, _softmax(pair.plain), 0.0)
        yield Cause("mask", told, pair.predict(made))
    if pair.is_whole:
        logits = np.where(seen, pair.plain, -np.inf)
        told = "takes softmax over the queries, not over the keys"
        yield Cause("softmax", told, pair.predict(_softmax(logits.T).T))


def _dropped(pair: HeadPair) -> Iterator[Cause]:
    """Try a factor of weights, and dropout."""
    ours = pair.port.weights
    if ours is None:
        return
    for told, kept in (
        ("multiplies weights by {port:.4g}", np.ones_like(ours)),
        ("drops weights and multiplies others by {port:.2g}: dropout", ours > 0.0),
    ):
        some = pair.expected * kept
        factor = float((ours * some).sum() / max((some**2).sum(), TINY))
        yield Cause("weights", told, factor * some, 1, factor, 1.0, is_free=True)


def _grouping(pair: HeadPair) -> Iterator[Cause]:
    """Try key heads that are tiled where the reference repeats each."""
    if len(pair.keys) in {1, pair.heads}:
        return
    other = pair.head % len(pair.keys)
    scores = pair.port.rows.queries @ pair.keys[other].T
    weights = _softmax(pair.logits + pair.rule.logits(scores) - pair.plain)
    values = None if pair.values is None else pair.values[other]
    yield Cause("grouping", TILED, pair.predict(weights, values))


SCALED_BIAS = "scales its bias, too: it is {factor} times the reference's"
#: The simplest first.
WEIGHT_CAUSES: tuple[Callable[[HeadPair], Iterator[Cause]], ...] = (
    _mask,
    _sink,
    _cap,
    _softmax_order,
    _grouping,
    _bias,
    _scale,
    _dropped,
)

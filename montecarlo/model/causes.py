"""Causes by which the attention of a port may differ from its reference's.

Each cause predicts an array of the port from the reference's.  `explain` compares the
residual of the prediction with the rounding error: it returns the simplest cause whose
residual is no larger, else the causes that explain most.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from montecarlo.attention.softmax import Array
from montecarlo.estimation.intervals import t_quantile
from montecarlo.model import fits
from montecarlo.model.answers import SENTENCES, say_mask, say_numbers
from montecarlo.model.arrays import Rows
from montecarlo.model.masks import name_mask
from montecarlo.model.scales import FLOAT32

#: Probability that rounding alone exceeds its bound in an array.
FALSE_ALARM = 1e-6
#: Standard deviation of a number of a sound port, in roundings of its format: each side
#: takes at most four steps (product, scale, bias or cap, softmax), and eight uniform
#: roundings have 1.63.  The root mean square of ten numbers and more exceeds
#: `ROUNDINGS` with less than `FALSE_ALARM`: see `roundings_of`.
STEP, ROUNDINGS = math.sqrt(8.0 / 3.0), 4.0
#: Least relative difference that counts, whatever the format: `ROUNDINGS` of float32 of
#: scaled scores of 400.
LEAST = 1e-4
#: Share of a difference that a cause must explain; and of one that is up to twice the
#: rounding error.  By chance a cause that fits half as many numbers as there are, the
#: most that is tried, explains 1 - sqrt(1/2) = 0.29.
EXPLAINS, HALF = 0.8, 0.5
#: Share from which on no further cause is sought.  Measured on rebuilt faults: 99.8 %
#: of 2,528 differences are explained so by the cause that is named, and 138 by wrong
#: causes between `EXPLAINS` and this; `test_the_cause_is_named` tests it.
ALL = 0.98
#: Relative spread of lengths of normalised rows: rounding to bfloat16 makes 0.004, and
#: normal entries 1 / sqrt(2 d_k), 0.044 at 256.
EVEN = 0.02
#: Tolerance of ratios, angles and logits for the words of a cause, not for its choice.
ALIKE = 0.05
#: Least denominator.
TINY = 1e-300
#: Weights that may be 0 in another format: float16 resolves it to a part of 64.
SMALL_WEIGHT = 2.0**-18
#: Least relative difference of a scale that is hidden by rounding of weights.
OTHER_SCALE = 0.02
#: Largest factor that is ascribed to the eps of a norm.
MOST_OF_EPS = 1.25
#: Steps to a factor by token and by entry: to choose a rotation, and to judge it.
STEPS, MANY_STEPS = 4, 50
#: Rows of a fit to weights; and to outputs, where each has d_k numbers, by pairs.
FIT_ROWS, FIT_PAIRS, FEWEST_ROWS = 64, 2**13, 8
#: Bases of rotary embeddings, and shares of rotated entries, of public models.
BASES = (1e4, 1e3, 5e4, 1e5, 1.5e5, 1.6e5, 5e5, 1e6, 5e6, 8e6, 1e7)
ROTATED = (1.0, 0.75, 0.5, 0.4, 0.25)
#: Tokens at even distances, of two heads, by which rotary embeddings are recognised.
ROTARY_TOKENS = 16
#: Relative difference of products below which two rotations are the same.
SAME_ROTATION = 1e-9
#: Relative difference of factors that are the same, and the most that are listed.
SAME_FACTOR, MOST_STEPS = 0.01, 8
#: Most offsets of a fitted bias by relative position.
MOST_OFFSETS = 512
#: Relative difference of scores that are the same up to the last digits.
SAME_SCORES = 1e-12
Seen = NDArray[np.bool_]


class Cause(NamedTuple):
    """A possible cause of a difference, and the array of the port that it predicts."""

    quantity: str  # q, k, v, scale, cap, mask, bias, sink, ...
    text: str  # predicate of "the port"; {name}, {port} and so on are filled in later
    made: Array  # vectors (head, token, d), or weights of a head
    n_free: int = 0  # numbers that were fitted to the port
    port: float = math.nan  # the parameter of the port, and the reference's
    reference: float = math.nan
    is_free: bool = False  # many fitted numbers: it must explain `ALL`
    beside: "Cause | None" = None  # a second cause, which the prediction includes
    explained: float = 0.0  # share of the difference


def explain(
    array: Array, before: Array, causes: Iterable[Cause], rounding: float
) -> tuple[Cause, ...]:
    """Return the simplest cause that explains a difference, or the best ones.

    Parameters
    ----------
    array, before : ndarray
        The port's array, and its prediction without a cause.
    causes : iterable of Cause
        The simplest first.
    rounding : float
        Bound of the norm of the rounding error.

    Returns
    -------
    tuple of Cause
        The first cause that explains `ALL` of the difference, or that explains `HALF`
        and leaves no more than rounding.  Its share ``explained`` is at least `ALL`.
        If it has a second cause ``beside``, that follows it.  If there is no such
        cause, those that explain most, up to 0.01 less than the best, but none with
        ``is_free``.  Empty if the best explains less than `EXPLAINS`.  In the result,
        the arrays ``made`` are empty.
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
    """Return a bound of the root mean square of n errors, over the rounding error.

    Rounding alone exceeds it with a probability below `FALSE_ALARM`.  It is at least
    `ROUNDINGS`.  Squares of uniform errors have lighter tails than those of normal
    ones, whose sum is bounded by Laurent and Massart (2000, lemma 1).
    """
    log = -math.log(FALSE_ALARM) / max(n, 1)
    return max(ROUNDINGS, STEP * math.sqrt(1.0 + 2.0 * math.sqrt(log) + 2.0 * log))


def _norm(array: Array) -> float:
    """Return the Euclidean norm of all entries."""
    return float(np.linalg.norm(array))


# --- Queries, keys and values -------------------------------------------------------


def say_by_position(factors: Array, positions: NDArray[Any]) -> str:
    """Return in words how a factor depends on the position: ``2 from position 0, ...``.

    ``factors`` and ``positions`` have the shape (n_positions,).  A position is listed
    where the factor changes.  Of more than `MOST_STEPS` changes some are listed:
    ``2 at position 0, 3 at position 8``.
    """
    steps, joint = [0], "from"
    for n, factor in enumerate(factors):
        if abs(factor - factors[steps[-1]]) > SAME_FACTOR * abs(factors[steps[-1]]):
            steps.append(n)
    if len(steps) > MOST_STEPS:
        steps, joint = steps[:: -(-len(steps) // MOST_STEPS)], "at"
    return _say_steps(factors, positions, steps, joint)


def _say_steps(
    values: Array, positions: Array, steps: Sequence[int], joint: str = "from"
) -> str:
    """Return values at some positions in words: ``2 from position 0, 3 from ...``.

    ``steps`` are the indices of these positions.  ``joint`` is the word before each.
    """
    return ", ".join(
        f"{values[n]:.4g} {joint} position {positions[n]:.0f}" for n in steps
    )


def say_ends(values: Array) -> str:
    """Return the least and the largest of some values in words: ``0.5 to 2``."""
    return f"{values.min():.4g} to {values.max():.4g}"


def explain_factor(
    name: str, port: Array, reference: Array, rounding: float
) -> tuple[Cause, ...]:
    """Return (cause,) if an array is a multiple of the reference's; () if it is not.

    The factor is one number for all rows, or one for each row.  ``rounding`` is the
    rounding error relative to the norm of ``reference``, and ``name`` is that of the
    array.
    """
    factor = best_factor(port, reference)
    numbers = 1, factor.item(), 1.0
    cause = Cause(name, MULTIPLIES, factor * reference, *numbers, is_free=True)
    rows = best_factor(port, reference, axis=1)
    told = f"{BY_QUERY}, {say_ends(rows)}: its softmax has another sum, as of a sink"
    by_row = Cause(name, told, rows * reference, rows.size, is_free=True)
    return explain(port, reference, [cause, by_row], rounding * _norm(reference))


def best_factor(
    port: Array, reference: Array, axis: int | tuple[int, ...] | None = None
) -> Array:
    """Return the factor f for which f * ``reference`` is nearest to ``port``.

    A least-squares fit over ``axis``, by default over all axes.  In the result these
    axes have the length 1.  The factor is 0 where the reference is 0.
    """
    square = np.square(reference).sum(axis=axis, keepdims=True)
    found = (port * reference).sum(axis=axis, keepdims=True)
    return np.asarray(found / np.maximum(square, TINY))


def _factors(port: Array, reference: Array, positions: Array) -> Iterator[Cause]:
    """Yield causes by which the port is a multiple of the reference.

    The factor is one number, then one for each head, then one for each position.
    """
    factor = best_factor(port, reference)
    yield Cause("", MULTIPLIES, factor * reference, 1, factor.item())
    factor = best_factor(port, reference, (1, 2))
    told = f"multiplies {{name}} by a factor by head, {say_ends(factor)}"
    yield Cause("", told, factor * reference, factor.size)
    factor = best_factor(port, reference, (0, 2))
    told = say_by_position(factor.ravel(), positions)
    told = f"{BY_POSITION.format('{name}')}: {told}"
    yield Cause("", told, factor * reference, factor.size)


def _few_tokens(
    port: Array, reference: Array, positions: Array
) -> tuple[list[Array], Array]:
    """Return some tokens of the two heads that differ most, and their positions.

    The result is ([port, reference], positions), shapes (n_heads, n_tokens, d) and
    (n_tokens,), with at most `ROTARY_TOKENS` evenly spaced tokens.
    """
    few = slice(None, None, -(-len(positions) // ROTARY_TOKENS))
    heads = np.argsort(np.square(port - reference).sum(axis=(1, 2)))[-2:]
    return [x[heads][:, few] for x in (port, reference)], positions[few]


def _norms(port: Array, reference: Array, positions: Array) -> Iterator[Cause]:
    """Yield causes that act before rotary embeddings: a gain, bias, norm or clamp.

    Both sides are rotated back by the public rotary embedding after which such a cause
    fits best.
    """
    few, at = _few_tokens(port, reference, positions)
    ways = [Rotary(), *public_rotations(port.shape[2])]
    ours, theirs = (np.stack([way.turn(x, at, -1) for way in ways]) for x in few)
    factor, gain = _fit_norm(ours, theirs, STEPS)
    shift = (ours - theirs).mean(axis=-2, keepdims=True)
    made = factor * gain * theirs, theirs + shift, *_clamped(ours, theirs)
    left = [np.square(ours - one).sum(axis=(1, 2, 3)) for one in made]
    way = ways[int(np.min(left, axis=0).argmin())]
    ours, theirs = (way.turn(x, positions, -1) for x in (port, reference))
    for one in _unturned(ours, theirs):
        yield one._replace(made=way.turn(one.made, positions))


def _unturned(ours: Array, theirs: Array) -> Iterator[Cause]:
    """Yield the causes of `_norms` for vectors of both sides that were rotated back."""
    gain = best_factor(ours, theirs, 1)
    told = "multiplies entries of {name} as a norm's gain does, by a factor, "
    yield Cause("", told + say_ends(gain), gain * theirs, gain.size)
    shift = (ours - theirs).mean(axis=1, keepdims=True)
    lacks = _norm(ours.mean(axis=1)) < _norm(theirs.mean(axis=1))
    told = f"{'lacks' if lacks else 'adds'} a bias of {{name}}, a vector for each head"
    yield Cause("", told, theirs + shift, shift.size)
    factor, gain = _fit_norm(ours, theirs, MANY_STEPS)
    told = _say_norm(ours, theirs, factor, gain)
    yield Cause("", told, factor * gain * theirs, factor.size + gain.size)
    mine, other = (float(np.abs(x).max()) for x in (ours, theirs))
    both = SENTENCES["comparison"]["clamps"], _clamped(ours, theirs)
    for told, made in zip(*both, strict=True):
        yield Cause("", told, made, int((made != theirs).sum()), mine, other)


def _clamped(ours: Array, theirs: Array) -> tuple[Array, Array]:
    """Return predictions of a port: (if it clamps its vectors, if the reference does).

    The first are those of the reference, clipped at the largest entry of ``ours``.  The
    second are those of the reference, with entries of ``ours`` in the places where they
    have their largest size, of either sign.  All arrays have the shape (..., head,
    token, d), and largest entries are over the last three axes.
    """
    ends = (np.abs(x).max(axis=(-3, -2, -1), keepdims=True) for x in (ours, theirs))
    largest, other = ends
    at_end = np.abs(theirs) > (1.0 - SAME_FACTOR) * other
    return theirs.clip(-largest, largest), np.where(at_end, ours, theirs)


def _fit_norm(port: Array, reference: Array, steps: int) -> tuple[Array, Array]:
    """Return factors of tokens and gains of entries: port ≈ factor * gain * reference.

    They are fitted in each head, in ``steps`` steps.  Shapes (..., token, 1) and (...,
    1, d).
    """
    factor = np.ones((*port.shape[:-1], 1))
    for _ in range(steps):
        gain = best_factor(port, factor * reference, -2)
        factor = best_factor(port, gain * reference, -1)
    return factor, gain


def _say_norm(port: Array, reference: Array, factor: Array, gain: Array) -> str:
    """Return in words which side normalises, over what, or that only eps differs.

    ``factor`` and ``gain`` are from `_fit_norm`.

    Notes
    -----
    Let u_h be the vector of head h of H before a norm, and f_h the factor where the
    port normalises each head and the reference all together.  Then f_h^-2 = H |u_h|^2 /
    sum |u|^2 has the mean 1 over heads, at every token; in the other case f_h^2 has.
    """
    ways = "of each head", "over all heads"
    if np.ptp(gain, axis=2).max() < EVEN * np.abs(gain).max():
        factor = factor * gain.mean(axis=2, keepdims=True)
        low, high = factor.min(), factor.max()
        for power, (mine, other) in ((-2.0, ways), (2.0, ways[::-1])):
            means = (np.maximum(np.abs(factor), TINY) ** power).mean(axis=0)
            if len(port) > 1 and np.abs(means - 1.0).max() < EVEN:
                return f"normalises {{name}} {mine}, the reference {other}"
        if max(high, 1.0 / low) < MOST_OF_EPS and min(high, 1.0 / low) < 1.0 + EVEN:
            return f"normalises {{name}} with another eps: {say_ends(factor)} times"
    gain = np.where(gain == 0.0, 1.0, gain)
    both = np.linalg.norm(port, axis=1), np.linalg.norm(reference, axis=2)
    if all(x.std() < EVEN * x.mean() for x in both):
        return "normalises {name} over the tokens, the reference over entries"
    over_entries = (np.linalg.norm(x, axis=2) for x in (port / gain, reference * gain))
    ours, theirs = (x.std() / x.mean() for x in over_entries)
    if min(ours, theirs) * 3.0 > max(ours, theirs):
        return "multiplies {name} by a factor by head and position"
    if ours < theirs:
        return "normalises {name}, the reference does not"
    return "does not normalise {name}, the reference does"


def _orders(port: Array, reference: Array, _: Array) -> Iterator[Cause]:
    """Yield causes by which heads and tokens are swapped."""
    heads, tokens, d = port.shape
    if heads > 1:
        told = "swaps heads and tokens of {name}: reshaped without a transpose"
        yield Cause("", told, reference.swapaxes(0, 1).reshape(heads, tokens, d))
        yield Cause("", told, reference.reshape(tokens, heads, d).swapaxes(0, 1))


class Rotary(NamedTuple):
    """A rotary embedding: pairs of entries, rotated by position times frequency."""

    base: float = math.inf  # of the frequencies; infinite where nothing is rotated
    width: int = 2  # entries that are rotated, the first ones
    pairs: str = "halves"  # or "neighbours": entries i and i + width/2, or 2i and 2i+1
    sign: int = 1  # -1 where they are turned backwards
    over: int = 2  # the frequency of pair i is base^(-2i / over); mostly the width

    def turn(self, x: Array, positions: Array, sign: int = 1) -> Array:
        """Return vectors (head, token, d) rotated; with ``sign`` -1 rotated back."""
        if math.isinf(self.base):
            return x
        turn = np.exp(1j * sign * positions[:, None] * self.frequencies)
        return self.with_pairs(x, self.complex_pairs(x) * turn)

    @property
    def frequencies(self) -> Array:
        """The angle of each pair at position 1, shape (width/2,)."""
        exponents = -2.0 * np.arange(self.width // 2) / self.over
        return np.asarray(self.sign * self.base**exponents)

    @property
    def entries(self) -> tuple[slice, slice]:
        """(first entries of all pairs, their second entries), as slices of a vector."""
        if self.pairs == "halves":
            return slice(self.width // 2), slice(self.width // 2, self.width)
        return slice(0, self.width, 2), slice(1, self.width, 2)

    def complex_pairs(self, x: Array) -> NDArray[np.complex128]:
        """Return the pairs of entries of vectors (head, token, d) as complex numbers.

        The first entry of a pair is the real part.  Nothing is rotated.  Entries from
        ``width`` on are left out.  Shape (head, token, width/2).
        """
        first, second = self.entries
        return np.asarray(x[..., first] + 1j * x[..., second])

    def with_pairs(self, x: Array, pairs: NDArray[np.complex128]) -> Array:
        """Return a copy of vectors (head, token, d) with other complex ``pairs``.

        The pairs are as from `complex_pairs`; entries from ``width`` on stay.
        """
        made, (first, second) = x.copy(), self.entries
        made[..., first], made[..., second] = pairs.real, pairs.imag
        return made

    def say(self, other: "Rotary", d: int, side: str) -> str:
        """Return in words how this embedding differs from another one.

        Such as ``with base {port:.6g}, pairs of neighbours``: the base is a field to be
        filled in later, which ``side``, ``port`` or ``reference``, names.  ``forwards``
        if nothing differs, and ``not at all`` if this embedding rotates nothing.  ``d``
        is the number of entries of a vector.
        """
        if math.isinf(self.base):
            return "not at all"
        if math.isinf(other.base):
            other = self._replace(base=math.inf, width=d, over=d)
        said = [f"with base {{{side}:.6g}}"] * (self.base != other.base)
        said += [f"{self.width} of {d} entries"] * (self.width != other.width)
        said += [f"pairs of {self.pairs}"] * (self.pairs != other.pairs)
        if self.over != self.width or other.over != other.width:
            width = "d_k" if self.over == d else "the rotated width"
            told = f"frequencies of {self.width} entries by exponents over {width}"
            said += [f"{told}, {self.over}"]
        return ", ".join([*said, *["backwards"] * (self.sign < 0)]) or "forwards"


def public_rotations(d: int) -> list[Rotary]:
    """Return the rotary embeddings that public models use, for vectors of d entries."""
    widths = [w for part in ROTATED if (w := round(part * d)) % 2 == 0 and w]
    return [
        Rotary(base, width, pairs, 1, over)
        for pairs, width in product(("halves", "neighbours"), widths)
        for over in dict.fromkeys((width, d))
        for base in BASES
    ]


def _rotary(port: Array, reference: Array, positions: Array) -> Iterator[Cause]:
    """Yield the cause that port and reference use different rotary embeddings, if any.

    Each side is rotated back by every embedding of public models.  The cause is that of
    the two embeddings which leave the most similar vectors.  As rotations do not change
    lengths, these have the largest inner product.  Nothing is yielded if lengths of
    vectors differ.
    """
    lengths, other_lengths = (np.linalg.norm(x, axis=2) for x in (port, reference))
    if _norm(lengths - other_lengths) > EVEN * _norm(other_lengths):
        return
    d = port.shape[2]
    forwards = public_rotations(d)
    ways = [Rotary(), *forwards, *(one._replace(sign=-1) for one in forwards)]
    few, at = _few_tokens(port, reference, positions)
    ours, theirs = ([way.turn(x, at, -1).ravel() for way in ways] for x in few)
    products = np.array(ours) @ np.array(theirs).T
    largest = products.max()
    nearest = np.argwhere(products >= largest - SAME_ROTATION * abs(largest))
    mine, other = max(((ways[i], ways[j]) for i, j in nearest), key=_rank)
    said = mine.say(other, d, "port"), other.say(mine, d, "reference")
    told = f"{ROTATES} (rotary embeddings): {said[0]}, the reference {said[1]}"
    told += "; or the port does twice" * math.isinf(other.base)
    made = mine.turn(other.turn(reference, positions, -1), positions)
    yield Cause("", told, made, 2, mine.base, other.base)


def _rank(both: tuple[Rotary, Rotary]) -> tuple[int, bool, int]:
    """Return a sort key of two rotary embeddings, larger if they are more usual.

    ``both`` are (that of the port, that of the reference).
    """
    usual = sum(one.over == one.width for one in both)
    return sum(one.sign for one in both), both[0].base == both[1].base, usual


def _rotations(port: Array, reference: Array, positions: Array) -> Iterator[Cause]:
    """Yield causes by which vectors are rotated otherwise.

    These are other positions, rotations by any angles, and a rotation before the gain
    of a norm.
    """
    heads, tokens, d = port.shape
    turns = dict[tuple[str, int], NDArray[np.complex128]]()
    for way in public_rotations(d):
        if (way.pairs, way.width) not in turns:
            z, w = (way.complex_pairs(one) for one in (port, reference))
            turn = (z * w.conj()).sum(axis=0)
            turns[way.pairs, way.width] = turn / np.maximum(np.abs(turn), TINY)
        turn, farther = turns[way.pairs, way.width], np.zeros(tokens)
        for angles, one in zip(turn.T[::-1], way.frequencies[::-1], strict=True):
            farther += np.angle(angles * np.exp(-1j * farther * one)) / one
        if np.abs(turn - np.exp(1j * farther[:, None] * way.frequencies)).max() < ALIKE:
            told = _say_positions(farther, positions)
            yield Cause("", told, way.turn(reference, farther), tokens)
    for pairs in ("halves", "neighbours") if d % 2 == 0 else ():
        way, turn = Rotary(1.0, d, pairs, 1, d), turns[pairs, d]
        z, w = (way.complex_pairs(one) for one in (port, reference))
        steps = np.abs(np.angle((turn[1:] * turn[:-1].conj()).mean(axis=0)))
        alike = int(np.argmax(steps > LEAST))
        told = f"{ROTATES}: another base, scaling or precision of the rotation"
        told += f"; the first {alike} of {d // 2} pairs agree" * (alike > 1)
        yield Cause("", told, way.with_pairs(reference, turn * w), turn.size)
        ours, theirs = (np.stack([x.real, x.imag], axis=2) for x in (z, w))
        cross = np.einsum("htip,htjp->tpij", ours, theirs)
        square = np.einsum("htip,htjp->tpij", theirs, theirs)
        matrix = cross @ np.linalg.pinv(square)
        if heads > 2 and np.median(np.abs(np.linalg.det(matrix) - 1.0)) < ALIKE:
            made = np.einsum("tpij,htjp->ihtp", matrix, theirs)
            made = way.with_pairs(reference, made[0] + 1j * made[1])
            told = "applies norm and rotation of {name} in another order: one side "
            told += "rotates before its gain"
            yield Cause("", told, made, matrix.size, is_free=True)


def _say_positions(farther: Array, positions: Array) -> str:
    """Return in words by how much the positions of a port are shifted.

    That is by the same number for all, in proportion to the position, or by token.
    ``farther`` are the shifts, and ``positions`` the reference's positions, both of
    shape (n_tokens,).
    """
    if np.ptp(farther) < ALIKE:
        return f"turns {{name}} as of positions {farther[0]:.3g} farther on"
    part = float(np.polyfit(positions, farther, 1)[0])
    if np.ptp(farther - part * positions) < ALIKE and 0.0 < abs(part) < 1.0:
        divided = f"divided by {1.0 / (1.0 - abs(part)):.4g}"
        both = f"as they are, the reference's {divided}" if part > 0.0 else divided
        return f"{ROTATES}: as of positions {both}"
    steps = [0, *(np.flatnonzero(np.abs(np.diff(farther)) > ALIKE) + 1)][:MOST_STEPS]
    said = _say_steps(farther.round(2) + 0.0, positions, steps)
    return f"{ROTATES}: as of other positions, farther on by {said}"


#: The simplest first.
VECTOR_CAUSES = (_factors, _orders, _rotary, _norms, _rotations)
ROTATES = "rotates {name} otherwise"
MULTIPLIES = "multiplies {name} by {port:.4g}"
BY_POSITION = "multiplies {} by a factor by position"
BY_QUERY = "multiplies {name} by a factor by query"
#: Beginnings of texts whose fitted numbers may differ by layer.
FITTED = (ROTATES, BY_QUERY, *map(BY_POSITION.format, ("{name}", "scores")))


def explain_vectors(
    name: str, port: Array, reference: Array, rounding: float, first: int = 0
) -> tuple[Cause, ...]:
    """Return the causes by which queries, keys or values (head, token, d) differ.

    As from `explain`: one cause, or several that explain equally much, or () if none
    does.  Causes whose fitted numbers are more than half as many as the port's are not
    tried.

    Parameters
    ----------
    name : str
        ``q``, ``k`` or ``v``.
    port, reference : ndarray
    rounding : float
        Rounding error, relative to the norm.
    first : int
        Position of the first token.
    """
    positions = np.arange(first, first + port.shape[1], dtype=float)
    tried = (one for way in VECTOR_CAUSES for one in way(port, reference, positions))
    causes = (one for one in tried if 2 * one.n_free <= port.size)
    found = explain(port, reference, causes, rounding * _norm(reference))
    return tuple(one._replace(quantity=name) for one in found)


# --- Weights and outputs ------------------------------------------------------------


class LogitRule(NamedTuple):
    """The rule by which a head computes logits from scores: a scale, a cap or so."""

    form: str  # a key of `FORMS` in fits, or ``offset``, ``key``, ``pair``
    scale: float
    parameter: float = math.nan  # of the form
    mask: str = fits.GIVEN
    is_fit: bool = True  # False for the scale of a fit that does not hold

    def logits(self, scores: Array) -> Array:
        """Return the logits of scores by the scale and the cap, without a bias.

        They have the shape of the scores.
        """
        scaled = self.scale * scores
        if self.form == "cap":
            scaled = self.parameter * np.tanh(scaled / self.parameter)
        return np.asarray(scaled)

    def weights(self, rows: Rows) -> Array:
        """Return the attention weights of rows by this rule, shape (n_rows, n_keys).

        A bias of form ``offset``, ``key`` or ``pair`` is left out.
        """
        form, parameter = self.form, self.parameter
        form = form if form in fits.FORMS else "plain"
        if form == "cap":
            parameter = math.log(parameter / abs(self.scale))
        parameters = np.array([self.scale, parameter])
        return fits.make_outputs(form, parameters, rows, self.mask).weights


@dataclass(frozen=True)
class HeadSide:
    """A head of the port or of the reference: rows of a sequence, and their rule."""

    rows: Rows
    rounding: float  # rounding error of its numbers, relative
    #: The scale that was passed to attention without a cap; None where not known.
    passed: float | None = None
    has_weights: bool = True  # whether they were captured

    def allowed(self, scale: float, drift: float = 0.0) -> float:
        """Return the relative error of weights and outputs by rounding of scores.

        It is at least `LEAST`.  ``scale`` is the factor of scores, and ``drift`` the
        relative error of queries and keys.
        """
        scores = self.rows.scores
        weights = self.rows.made.get("weights")
        seen = scores if weights is None else scores[weights > SMALL_WEIGHT]
        largest = float(np.abs(seen).max(initial=0.0))
        off = roundings_of(seen.size) * max(self.rounding, drift)
        return max(LEAST, off * (1.0 + abs(scale) * largest))

    @property
    def d_k(self) -> int:
        """Number of entries of a query."""
        return int(self.rows.queries.shape[1])

    @cached_property
    def rule(self) -> LogitRule | None:
        """The rule that makes the weights or outputs; None if none fits.

        With captured weights it is None only if they allow no fit at all: if no rule
        holds, it is the fitted scale alone, with ``is_fit`` False.
        """
        n_rows, n_keys = self.rows.scores.shape
        is_captured = "weights" in self.rows.made
        most = FIT_ROWS if is_captured else max(FEWEST_ROWS, FIT_PAIRS // n_keys)
        few = self.rows.some(slice(None, None, -(-n_rows // most)))
        if is_captured:
            few = few.some(np.any(few.weights > 0.0, axis=1, keepdims=False))
            fit = fits.fit_weights([few], is_quick=True) if len(few.places) else None
            if fit and fit.holds and math.isfinite(fit.std_error):
                return LogitRule(fit.form, fit.scale, fit.parameter)
            return LogitRule("plain", fit.scale, is_fit=False) if fit else None
        return next((one for one in self._tried(few) if self._is_made(few, one)), None)

    def _tried(self, rows: Rows) -> Iterator[LogitRule]:
        """Yield rules that may make the outputs of ``rows``, the most likely first.

        First the scale that was passed, then the fit of a scale alone, then of any
        form.
        """
        if self.passed is not None and rows.added is not None:
            yield LogitRule("plain", self.passed)
        for forms in (["plain"], list(fits.FORMS)):
            if found := fits.fit_outputs([rows], forms):
                fit, mask = found
                yield LogitRule(fit.form, fit.scale, fit.parameter, mask)

    def _is_made(self, rows: Rows, rule: LogitRule) -> bool:
        """Return whether a rule reproduces the outputs of rows up to rounding."""
        outputs = rule.weights(rows) @ rows.values
        allowed = self.allowed(rule.scale) * _norm(outputs)
        return _norm(outputs - rows.outputs) <= allowed

    @property
    def likely_scale(self) -> float:
        """A scale to judge rounding by if no rule is known.

        The scale that is fitted to outputs, or 1/√d_k if that is larger.
        """
        found = fits.fit_outputs([self.rows], ["plain"])
        default = 1.0 / math.sqrt(self.d_k)
        return max(default, abs(found[0].scale)) if found else default

    @property
    def is_sure(self) -> bool:
        """Whether weights were captured, or the rule that makes them is known for sure.

        It is if it was passed, or if it reproduces outputs in float32 or more.  In
        fewer bits a scale without a cap may reproduce the outputs of a cap.
        """
        if "weights" in self.rows.made or self.rule is None:
            return "weights" in self.rows.made
        return self.rule[:2] == ("plain", self.passed) or self.rounding <= FLOAT32

    @cached_property
    def weights(self) -> Array | None:
        """Attention weights, captured or computed by `rule`; None without both.

        Shape (n_rows, n_keys).
        """
        if "weights" in self.rows.made:
            return self.rows.weights
        return None if self.rule is None else self.rule.weights(self.rows)


def have_same_outputs(port: HeadSide, reference: HeadSide) -> bool:
    """Return whether outputs agree up to rounding, so that no weights are needed.

    The rounding is that of scores with the scale 1/√d_k.  False if shapes differ.
    """
    sides = port, reference
    allowed = max(one.allowed(one.d_k**-0.5) for one in sides)
    ours, theirs = (one.rows.outputs for one in sides)
    most = allowed * _norm(theirs)
    return ours.shape == theirs.shape and _norm(ours - theirs) <= most


def _logs(weights: Array) -> Array:
    """Return logarithms of weights, -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights))


def _centred(values: Array, weights: Array) -> Array:
    """Return values minus their weighted mean over each row; 0 where a weight is 0."""
    counted = np.where(weights > 0.0, values, 0.0)
    total = np.maximum(weights.sum(axis=1, keepdims=True), TINY)
    mean = (weights * counted).sum(axis=1, keepdims=True) / total
    return np.asarray(np.where(weights > 0.0, counted - mean, 0.0))


def _slope(x: Array, y: Array, weights: Array, axis: int | None = None) -> Array:
    """Return the weighted regression slope of y on x, with an intercept for each row.

    By default one number for all rows.  With ``axis`` 1 one for each row, shape
    (n_rows, 1).  NaN where x does not vary.
    """
    counted = np.where(np.isfinite(y), weights, 0.0)
    x, y = _centred(x, counted), _centred(y, counted)
    square = (counted * x * x).sum(axis=axis, keepdims=axis is not None)
    found = (counted * x * y).sum(axis=axis, keepdims=axis is not None)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(square > 0.0, found / square, np.nan)[()]


def _softmax(logits: Array, total: Array | float = 1.0) -> Array:
    """Return softmax over keys, times ``total``; 0 in rows that see no key."""
    largest = logits.max(axis=1, keepdims=True)
    e = np.exp(logits - np.where(np.isfinite(largest), largest, 0.0))
    return np.asarray(e * total / np.maximum(e.sum(axis=1, keepdims=True), TINY))


@dataclass(frozen=True)
class HeadPair:
    """The same head of port and reference, for the same tokens."""

    port: HeadSide
    reference: HeadSide
    head: int  # its number among the heads of queries
    own: int  # that of its key head among ``keys``
    keys: Array  # of the port, shape (head of keys, token, d)
    is_whole: bool  # whether all rows of the sequence are here

    @cached_property
    def rule(self) -> LogitRule:
        """The rule of the reference; if that is not known, the scale 1/√d_k alone."""
        usual = LogitRule("plain", self.reference.d_k**-0.5, is_fit=False)
        return self.reference.rule or usual

    def allowed_by(self, scale: float, drift: float = 0.0) -> float:
        """Return the relative error by rounding of scores: the larger of both sides.

        Arguments are those of `HeadSide.allowed`.
        """
        return max(one.allowed(scale, drift) for one in (self.port, self.reference))

    @property
    def rounding(self) -> float:
        """Relative rounding error of the number format of the less precise side."""
        return max(self.port.rounding, self.reference.rounding)

    @cached_property
    def score_factor(self) -> float:
        """The factor f for which the port's scores are f times the reference's.

        NaN if there is none.
        """
        ours, theirs = self.port.rows.scores, self.reference.rows.scores
        factor = best_factor(ours, theirs).item()
        allowed = max(LEAST, ROUNDINGS * self.rounding) * _norm(ours)
        return factor if _norm(ours - factor * theirs) <= allowed else math.nan

    @cached_property
    def scores(self) -> Array:
        """The port's scores, shape (n_rows, n_keys).

        If port and reference differ in d_k, they are divided by `score_factor`, if
        there is such a factor.
        """
        scores = self.port.rows.scores
        if self.port.d_k != self.reference.d_k and math.isfinite(self.score_factor):
            scores = scores / self.score_factor
        return scores

    @property
    def ours(self) -> Array:
        """Weights of the port, shape (n_rows, n_keys).

        They must be known.
        """
        return np.asarray(self.port.weights)

    @property
    def theirs(self) -> Array:
        """Weights of the reference, shape (n_rows, n_keys).

        They must be known.
        """
        return np.asarray(self.reference.weights)

    @cached_property
    def plain(self) -> Array:
        """The port's scores with the reference's scale and cap, without bias and mask.

        Shape (n_rows, n_keys).
        """
        return self.rule.logits(self.scores)

    @cached_property
    def logits(self) -> Array:
        """The port's scores with the reference's scale, cap, bias and mask.

        Shape (n_rows, n_keys), up to a constant of each row; -inf where the reference
        has a weight of 0.
        """
        reference = self.rule.logits(self.reference.rows.scores)
        return _logs(self.theirs) + self.plain - reference

    @cached_property
    def full(self) -> Array:
        """The same as `logits`, but finite also for keys that the reference hides.

        Such keys have their value in `plain`, plus the mean of `logits` - `plain` over
        the other keys of the row.
        """
        seen = np.isfinite(self.logits)
        count = np.maximum(seen.sum(axis=1, keepdims=True), 1)
        away = np.where(seen, self.logits - self.plain, 0.0)
        away = away.sum(axis=1, keepdims=True) / count
        return np.where(seen, self.logits, self.plain + away)

    @cached_property
    def sinks(self) -> tuple[float, float]:
        """(logit of the port's sink, logit of the reference's); -inf for no sink."""
        found, theirs = [], (self.theirs, self.reference.rows.scores)
        for weights, scores in ((self.ours, self.scores), theirs):
            found.append(-math.inf)
            lost = 1.0 - weights.sum(axis=1)
            if 4.0 * self.rounding < np.median(lost) < 1.0:
                logits = np.where(weights > 0.0, self.rule.logits(scores), -np.inf)
                some = (lost > 0.0) & (lost < 1.0)
                odds = np.log(lost[some]) - np.log1p(-lost[some])
                found[-1] = float(np.median(odds + logsumexp(logits[some], axis=1)))
        return found[0], found[1]

    def total(self, sink: float) -> Array:
        """Return the sum of the weights of each row if there is a sink, (n_rows, 1).

        The sink takes the rest of 1.  ``sink`` is its logit.
        """
        logits = np.where(np.isfinite(self.logits), self.plain, -np.inf)
        return np.exp(-np.logaddexp(0.0, sink - logsumexp(logits, axis=1)))[:, None]

    @cached_property
    def expected(self) -> Array:
        """The weights that the reference's rule makes of the port's queries and keys.

        Shape (n_rows, n_keys).
        """
        has_sink = math.isfinite(self.sinks[1])
        total = self.theirs.sum(axis=1, keepdims=True)
        return _softmax(self.logits, self.total(self.sinks[1]) if has_sink else total)

    @cached_property
    def seen(self) -> tuple[Seen, Seen]:
        """Which keys the rows of the port see, and which those of the reference.

        Two boolean arrays, shape (n_rows, n_keys), by weights.
        """
        ours, likely = self.ours, _softmax(self.full)
        seen = np.isfinite(self.logits) & (self.theirs > 0.0)
        hidden = (ours == 0.0) & (np.where(seen, self.expected, likely) > SMALL_WEIGHT)
        least = min(SMALL_WEIGHT, 2.0 ** fits.format_of([self.theirs]).least_exponent)
        shown = (ours > np.maximum(SMALL_WEIGHT * likely, least)) & ~seen
        return (seen & ~hidden) | shown, seen

    @property
    def sees_the_same(self) -> bool:
        """Whether no key is hidden on one side only, as far as weights show it.

        True if the port's rows have no weights.
        """
        if "weights" not in self.port.rows.made:
            return True
        ours, theirs = self.port.rows.weights, self.reference.rows.weights
        other = (ours == 0.0) != (theirs == 0.0)
        return not bool((other & (np.maximum(ours, theirs) > SMALL_WEIGHT)).any())

    def makes_outputs(self, allowed: float) -> bool:
        """Return whether outputs without weights follow from the other side's weights.

        For the port, `expected` times its values must make its outputs; for the
        reference, the port's weights times the reference's values.  If no weights were
        captured, both must; if those of both were, the result is False.  ``allowed`` is
        the relative rounding error of outputs.

        Weights that are computed by a rule tell less: the rule may leave out what is
        within the rounding of outputs, such as a small sink.
        """
        sides = (self.port, self.expected), (self.reference, self.ours)
        made = [
            (side.rows.made["outputs"], weights @ side.rows.values)
            for side, weights in sides
            if not side.has_weights
        ]
        near = [_norm(x - y) <= allowed * _norm(x) for x, y in made]
        return bool(near) and all(near)

    def explain(self) -> tuple[float, float, tuple[Cause, ...]]:
        """Return (difference, rounding, causes) for the weights of the port.

        Returns
        -------
        difference : float
            Norm of the difference from `expected`, relative to the norm of `expected`.
        rounding : float
            The largest such difference that rounding can make.
        causes : tuple of Cause
            Empty if nothing explains the difference, or if it is within rounding and
            rows see the same keys.  Also empty if weights of one side reproduce the
            outputs of the other, unless the cause is a scale or a mask.
        """
        allowed, norm = self.allowed_by(self.rule.scale), _norm(self.expected)
        size = _norm(self.ours - self.expected) / max(norm, TINY)
        if size <= allowed and not (self.seen[0] ^ self.seen[1]).any():
            return size, allowed, ()
        found = explain(self.ours, self.expected, self._causes(), allowed * norm)
        is_passed = any(one.quantity in {"scale", "mask"} for one in found)
        if not is_passed and self.makes_outputs(allowed):
            return min(size, allowed), allowed, ()
        return size, allowed, found

    def _causes(self) -> Iterator[Cause]:
        """Yield causes in the order in which they are tried.

        First each cause alone, then each together with another scale, then causes with
        many fitted numbers.
        """
        tried = list[Cause]()
        for one in chain.from_iterable(cause(self) for cause in WEIGHT_CAUSES):
            tried.append(one)
            if not one.is_free:
                yield one
        for one in tried:
            more = next(_scale(self, _logs(one.made)), None)
            if not one.is_free and more and one.quantity != "scale":
                yield more._replace(is_free=True, beside=one)
        yield from (one for one in tried if one.is_free)

    def find_hidden_scale(self) -> Cause | None:
        """Return the cause that the port has another scale, if rows agree on it.

        It is for weights or outputs whose difference is so small that rounding could
        make it.  None if rows do not agree, or if the scales differ by less than
        `OTHER_SCALE`.  Also None if the scores of both sides differ, without weights of
        the reference, or with fewer than two rows.
        """
        port, reference = self.port.rows.made, self.reference.rows.made
        theirs, away = self.reference.weights, self.scores - self.reference.rows.scores
        is_same = np.abs(away).max() <= SAME_SCORES * np.abs(self.scores).max()
        if theirs is None or len(theirs) < 2 or not is_same:
            return None
        mean = (theirs * self.scores).sum(axis=1, keepdims=True)
        by_scale = theirs * (self.scores - mean)  # derivative of weights by the scale
        name = "weights" if "weights" in port else "outputs"
        if name == "outputs":
            by_scale = by_scale @ reference["v"]
        away = port[name] - reference[name]
        square = max(float((by_scale**2).sum()), TINY)
        slope = float((away * by_scale).sum()) / square
        # a row that alone depends on the scale fits itself, and tells nothing
        others = np.maximum(1.0 - (by_scale**2).sum(axis=1) / square, SMALL_WEIGHT)
        by_row = ((away - slope * by_scale) * by_scale).sum(axis=1) / others
        by_row[others == SMALL_WEIGHT] = np.inf
        scale, t = self.rule.scale, t_quantile(FALSE_ALARM, len(by_row))
        if abs(slope) <= max(t * _norm(by_row) / square, OTHER_SCALE * abs(scale)):
            return None
        return Cause("scale", "", theirs, 1, scale + slope, scale, explained=1.0)


def _mask(pair: HeadPair) -> Iterator[Cause]:
    """Yield the cause that the port has another mask, if rows see different keys."""
    ours, theirs = pair.seen
    if (ours != theirs).any():
        shown = pair.ours > 0.0  # small weights are no evidence, but part of a pattern
        if name_mask([pair.port.rows], [~shown], [shown])[0] != "other":
            ours = shown
        weights = _softmax(np.where(ours, pair.full, -np.inf))
        yield Cause("mask", _say_masks(pair, ours, theirs), weights)


def _say_masks(pair: HeadPair, ours: Seen, theirs: Seen) -> str:
    """Return in words that port and reference have different masks, and which.

    ``ours`` and ``theirs`` say which keys the rows of each side see.
    """
    rows = pair.port.rows
    if pair.is_whole and (ours == theirs[0]).all():
        return "applies the reference's mask of the first row to all rows"
    (mine, width), (other, wanted) = (
        name_mask([rows], [~one], [one]) for one in (ours, theirs)
    )
    if mine == other == "window":
        off = f"{abs(width - wanted)} too {'long' if width > wanted else 'short'}"
        return f"masks {width} keys back where the reference masks {wanted}: {off}"
    said = [
        (name == "other" and _say_offsets(rows, one))
        or say_mask(name, size, say_numbers(np.flatnonzero(~one.any(axis=0)).tolist()))
        for name, size, one in ((mine, width, ours), (other, wanted, theirs))
    ]
    more, fewer = (int(one.sum()) for one in (theirs & ~ours, ours & ~theirs))
    counts = f"{more} pairs more are hidden, {fewer} fewer"
    return f"has {said[0]} where the reference has {said[1]}: {counts}"


def _say_offsets(rows: Rows, seen: Seen) -> str:
    """Return a mask in words as a range of key minus query: a window on both sides.

    An empty string if the mask is no such range.  The first row does not count: without
    keys it may have even weights.
    """
    away = rows.offsets
    low, high = int(away[1:][seen[1:]].min()), int(away[1:][seen[1:]].max())
    if (seen == (low <= away) & (away <= high))[1:].all():
        return f"a mask of offsets {low} to {high} (key minus query)"
    return ""


def _scale(pair: HeadPair, logits: Array | None = None) -> Iterator[Cause]:
    """Yield the cause that all rows have another scale, then that each row has one.

    The second needs more than 8 keys.  ``logits`` are those that the scale is added to,
    by default `HeadPair.logits`.
    """
    ours = pair.ours
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
            factors = 1.0 + slope[:, 0] / pair.rule.scale
            known = np.isfinite(factors)
            told = say_by_position(factors[known], pair.port.rows.places[known])
            told = f"{BY_POSITION.format('scores')}: {told}"
            yield Cause("scale", told, weights, len(weights), is_free=True)


def _cap(pair: HeadPair) -> Iterator[Cause]:
    """Yield causes: a cap after the mask, no cap, and another cap."""
    mine, theirs = (
        one.parameter if one and one.form == "cap" else math.inf
        for one in (pair.port.rule, pair.rule)
    )
    total = pair.expected.sum(axis=1, keepdims=True)
    seen = np.isfinite(pair.logits)
    if math.isfinite(theirs):
        last = _softmax(np.where(seen, pair.plain, -theirs))
        told = "caps after the mask: hidden keys get the logit -{reference:.4g}"
        yield Cause("cap", told, last, port=mine, reference=theirs)
    for cap in {mine, math.inf} - {theirs}:
        rule = LogitRule("cap" if math.isfinite(cap) else "plain", pair.rule.scale, cap)
        logits = np.where(seen, rule.logits(pair.scores), -np.inf)
        said = [
            f"a cap of {{{side}:.4g}}" if math.isfinite(one) else "no cap"
            for side, one in (("port", cap), ("reference", theirs))
        ]
        is_early = math.isclose(cap, theirs * pair.rule.scale, rel_tol=ALIKE)
        told = f"has {said[0]} where the reference has {said[1]}"
        told += ", as if it were applied before the scale" * is_early
        yield Cause("cap", told, _softmax(logits, total), port=cap, reference=theirs)


def _bias(pair: HeadPair) -> Iterator[Cause]:
    """Yield the cause that the port has another bias.

    That is another slope by distance; or else a multiple of the reference's bias.
    """
    ours, rule = pair.ours, pair.port.rule
    if rule is None or pair.rule.form == "cap":
        return
    mine, theirs = (
        one.parameter if one.form == "distance" else 0.0 for one in (rule, pair.rule)
    )
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


def _relative_bias(pair: HeadPair) -> Iterator[Cause]:
    """Yield the cause that the port has another bias by relative position.

    The bias may have any shape.
    """
    both = np.sqrt(pair.ours * pair.expected)
    known, offsets = both > SMALL_WEIGHT, pair.port.rows.offsets
    places, n_offsets = offsets - offsets.min(), int(np.ptp(offsets)) + 1
    if 4 * n_offsets > known.sum() or n_offsets > MOST_OFFSETS:
        return
    with np.errstate(invalid="ignore"):
        change = np.where(known, _logs(pair.ours) - pair.logits, 0.0)
    weight, moved = np.zeros((2, len(places), n_offsets))
    np.put_along_axis(weight, places, np.where(known, both, 0.0), axis=1)
    np.put_along_axis(moved, places, np.where(known, both * change, 0.0), axis=1)
    # least squares, without the constants of rows
    share = weight / np.maximum(weight.sum(axis=1, keepdims=True), TINY)
    matrix = np.diag(weight.sum(axis=0)) - weight.T @ share
    bias = np.linalg.lstsq(matrix, moved.sum(axis=0) - share.T @ moved.sum(axis=1))[0]
    told = "adds another bias by relative position"
    made = _softmax(pair.logits + bias[places])
    yield Cause("bias", told, made, len(bias), is_free=True)


def _sink(pair: HeadPair) -> Iterator[Cause]:
    """Yield the cause that the port has another sink, or none."""
    ours, theirs = pair.sinks
    if ours == theirs:
        return
    told = ""
    if math.isinf(theirs):
        told = "has a sink, the reference has none"
    elif math.isinf(ours):
        told = "has no sink, the reference has one"
    elif abs(ours - theirs - math.log(2.0)) < ALIKE:
        told = "counts its sink twice"
    elif abs(ours - theirs * pair.rule.scale) < ALIKE:
        told = "scales its sink, too"
    made = _softmax(pair.logits, pair.total(ours))
    yield Cause("sink", told, made, 0, ours, theirs)


def _softmax_order(pair: HeadPair) -> Iterator[Cause]:
    """Yield causes: softmax before the mask, and softmax over the queries."""
    seen = pair.seen[1]
    if not seen.all():
        told = "masks after softmax: weights of a row no longer add up to 1"
        yield Cause("mask", told, np.where(seen, _softmax(pair.plain), 0.0))
    if pair.is_whole:
        logits = np.where(seen, pair.plain, -np.inf)
        told = "takes softmax over the queries, not over the keys"
        yield Cause("softmax", told, _softmax(logits.T).T)


def _dropped(pair: HeadPair) -> Iterator[Cause]:
    """Yield causes: all weights times a factor, and dropout."""
    kept = pair.expected * (pair.ours > 0.0)
    for told, some in ((MULTIPLIES, pair.expected), (DROPS, kept)):
        factor = best_factor(pair.ours, some)
        made, number = factor * some, factor.item()
        yield Cause("weights", told, made, 1, number, 1.0, is_free=True)


def _grouping(pair: HeadPair) -> Iterator[Cause]:
    """Yield causes by which a query head of one side uses another key head.

    First the key head that belongs to it if key heads are tiled.
    """
    own, count, rule = pair.own, len(pair.keys), pair.port.rule or pair.rule
    others = [n for n in range(count) if n != own]
    for other in sorted(others, key=lambda n: n != pair.head % count):
        scores = pair.port.rows.queries @ pair.keys[other].T
        change = pair.rule.logits(scores) - pair.plain
        made = _softmax(pair.logits + change)
        yield Cause("grouping", "", made, port=other, reference=own)
        change = rule.logits(pair.scores) - rule.logits(scores)
        made = _softmax(_logs(pair.theirs) + change)
        yield Cause("grouping", "", made, port=own, reference=other)


DROPS = "drops weights and multiplies others by {port:.2g}: dropout"
SCALED_BIAS = "scales its bias, too: it is {factor} times the reference's"
#: The simplest first.
WEIGHT_CAUSES: tuple[Callable[[HeadPair], Iterator[Cause]], ...] = (
    _mask,
    _sink,
    _cap,
    _softmax_order,
    _bias,
    _scale,
    _grouping,
    _relative_bias,
    _dropped,
)

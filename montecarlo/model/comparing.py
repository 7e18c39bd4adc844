"""Comparison of a port with its reference: where they differ first, and why.

Layers are compared in the order of the computation: queries, keys and values, then
attention weights with those that the reference's rule makes of the port's own queries
and keys.  Differences within the rounding error of both formats do not count.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.softmax import Array
from montecarlo.errors import InputError
from montecarlo.model import causes
from montecarlo.model.answers import MOST_FINDINGS, SENTENCES, say_place
from montecarlo.model.arrays import (
    ADDED,
    AXES,
    EVIDENCE,
    UNSEEN,
    Head,
    Model,
    Rows,
    require_weights,
)
from montecarlo.model.captured import ONE_KEY, Captured
from montecarlo.model.checking import Source, open_source
from montecarlo.model.expected import CLOSE, say_factor
from montecarlo.model.fits import format_of, rounding_error_of, see_keys
from montecarlo.model.head_summary import BY_DEFAULT
from montecarlo.model.scales import are_even
from montecarlo.names import require_number

if TYPE_CHECKING:  # as long to import as all the rest
    import pandas as pd

#: Relative difference from which on one without a known cause counts.
RTOL = 0.01
#: Quantities in the order of the computation.
STAGES = ("q", "k", "v", "weights", "outputs")
COLUMNS = ("layer", "head", "quantity", "port", "reference", "difference", "rounding")
#: Limits: sequences; weights in all (256 MB); and the least number of rows.
MOST_SEQUENCES, MOST_WEIGHTS, FEWEST_ROWS = 8, 2**25, 64
#: Factor by which a layer may enlarge the rounding error of those before: measured, see
#: `test_no_sound_port_is_accused`.
GROWTH = 3.0
#: Largest rounding error that is believed of captured numbers, that of bfloat16: few
#: numbers may look as if they had fewer bits.
BFLOAT16 = 2.0**-8
#: Numbers by which a format is recognised.
MOST_RECOGNISED = 2**14
SIDES = ("port", "reference")
VECTORS = ("q", "k", "v")
#: Heads whose numbers are listed.
MOST_NUMBERS = 8
#: What is said beside findings.
NOTES: dict[str, str] = SENTENCES["comparison"]
#: Beginnings of what is said where nothing explains a difference.
ANOTHER, OTHER = "has another {name}", "has other"
#: Of one side, by name; axes (head, token, d).
Vectors = dict[str, Array]


class Finding(NamedTuple):
    """A difference between a port and its reference, and its cause.

    Attributes
    ----------
    layers, heads : tuple of int
        Layers and heads in which the difference occurs.
    quantity : str
        ``q``, ``k``, ``v``, ``scale``, ``mask``, ``cap``, ``bias``, ``sink``,
        ``weights``, ``outputs`` and others.
    text : str
        The cause, as a predicate of "the port".
    difference : float
        Norm of the difference over that of the reference.  Weights are compared with
        those that the reference's rule makes of the port's queries and keys.
    rounding : float
        Bound of the rounding error of ``difference``.
    explained : float
        Share of the difference that the cause explains, 0 to 1; 0 without a cause.
    port, reference : float
        The parameter of the cause on both sides, such as the scale; NaN if it has none.
    """

    layers: tuple[int, ...]
    heads: tuple[int, ...]
    quantity: str
    text: str
    difference: float
    rounding: float
    explained: float
    port: float = math.nan
    reference: float = math.nan

    @property
    def is_vector(self) -> bool:
        """Whether it is a difference of queries, keys or values."""
        return self.quantity in VECTORS


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """The differences between a port and its reference; ``str`` of it is an answer.

    Attributes
    ----------
    first : Finding or None
        The first of ``findings``; None if no head differs by more than rounding.
    findings : tuple of Finding
        What the port does differently, in the order in which a model computes.
    frame : DataFrame
        A row per layer, head and quantity: ``port`` and ``reference``, the norms on
        both sides; ``difference``, the norm of the difference over that of the
        reference; ``rounding``, the difference that rounding can make.
    rtol : float
        Relative difference from which on a difference without a known cause is a
        finding.
    left_out : tuple of str
        What was not compared, such as rows that were not captured.  If there is any, a
        comparison without findings is not conclusive.
    n_layers, n_heads : int
        Numbers of layers, and of heads of a layer, that were compared.
    note : str
        A remark on the whole comparison; mostly empty.
    """

    findings: tuple[Finding, ...]
    frame: "pd.DataFrame"
    rtol: float
    left_out: tuple[str, ...] = ()
    n_layers: int = 0
    n_heads: int = 0
    note: str = ""  # a remark, such as that there is a single key

    @property
    def first(self) -> Finding | None:
        """The first finding; None if there is none."""
        return self.findings[0] if self.findings else None

    def __str__(self) -> str:
        """Return the first difference and its cause, then the others, a line for each.

        At most `MOST_FINDINGS` are listed, and further ones counted.
        """
        if not self.findings:
            return self._say_alike()
        lines = [self._say(one) for one in self.findings[:MOST_FINDINGS]]
        if len(self.findings) > 1:
            lines[0] += f"; {len(self.findings) - 1} more:"
        if len(self.findings) > MOST_FINDINGS:
            lines.append(f"and {len(self.findings) - MOST_FINDINGS} more")
        lines += map("compared: {}".format, self.left_out)
        return "\n  ".join(filter(None, [*lines, self.note]))

    __repr__ = __str__

    def _say_alike(self) -> str:
        """Return the sentence that nothing differs, with the sizes of differences.

        Unless ``left_out`` is empty, it begins with ``cannot be told:``.
        """
        ratios = self.frame["difference"] / self.frame["rounding"]
        made = ratios[~self.frame["quantity"].isin(["q", "k"])].max()
        largest, said = ratios.max(), "no head differs by more than rounding"
        if made <= 1.0 < largest:
            largest, said = made, NOTES["same_weights"]
        elif largest > 1.0:
            said = said.replace("rounding", f"{self.rtol:g}, and nothing explains it")
        if largest > 0.0:
            said += f": at most {largest:.2g} times what rounding can make"
        compared = set(self.frame["quantity"][ratios.notna()])
        unseen = [words for name, words in RESULTS.items() if name not in compared]
        if unseen and not self.left_out:
            said += f"; {' and '.join(unseen)} were not compared"
        said = "; ".join(filter(None, [said, self.note]))
        told = ", ".join([said, *self.left_out])
        return f"cannot be told: {told}" if self.left_out else said

    def _say(self, one: Finding) -> str:
        """Return a finding as a sentence, with its layers and heads."""
        heads = () if len(one.heads) == self.n_heads else one.heads
        place = say_place(one.layers, heads)
        if 1 < len(one.layers) == self.n_layers:
            place = ", ".join(filter(None, ["all layers", say_place((), heads)]))
        part = f" (explains {one.explained:.0%} of the difference)"
        part *= 0.0 < one.explained < causes.ALL
        return f"the port {one.text}; {place}{part}"


#: What an answer without findings says where it was not compared.  Values are not where
#: one side lacks them, nor outputs beside weights.
RESULTS = {"v": "values", "outputs": "outputs"}


def compare(
    port: Source,
    reference: Source,
    rtol: float = RTOL,
    axes: Sequence[str] | None = None,
) -> Comparison:
    """Compare what was captured of a port with its reference, head by head.

    Both must have seen the same tokens.  The first 8 sequences are compared.  If the
    weights of all heads fit into 256 MB, all rows that both sides have are compared;
    else some at even distances.  If only one side has weights, those of the other are
    computed from its queries, keys, mask and outputs, as
    ``scaled_dot_product_attention`` has them.

    Parameters
    ----------
    port : Captured, mapping, or path
        The result of `montecarlo.capture`, arrays by name, or a file of arrays, as for
        `assert_attention_scale`.
    reference : Captured, mapping, or path
        The same for the reference.
    rtol : float
        Relative difference from which on a difference without a known cause counts,
        above 0 and below 1.  With a known cause it counts if it is larger than the
        rounding error.
    axes : sequence of str, optional
        Names of the axes of arrays and files, such as ``("head", "token", "d")``; by
        default all axes of `montecarlo.observe`.

    Returns
    -------
    Comparison
        ``str`` of it is the answer; ``findings`` and ``frame`` have the numbers.

    Raises
    ------
    InputError
        If sizes of both sides differ, arrays of the reference are not finite, or an
        argument is not usable.
    """
    require_number("rtol", rtol, 0.0, 1.0, ends=False)
    both = [one for one in (port, reference) if isinstance(one, Captured)]
    rows = min((one.rows for one in both if one.rows), default=0)
    sources = [
        one.last_rows(rows) if rows and isinstance(one, Captured) else one
        for one in (port, reference)
    ]
    captured = [one for one in sources if isinstance(one, Captured)]
    left_out = [f"of {one.rows_kept}" for one in captured if one.rows_kept]
    missed = [told for one in captured for told in one.missed]
    left_out += map("attention was not followed: {}".format, missed)
    ours, theirs = (
        _open_layers(*each, axes) for each in zip(SIDES, sources, strict=True)
    )
    _require_same("layers", len(ours), len(theirs))
    counts = ([len(one.model.sequences) for one in side] for side in (ours, theirs))
    _require_same("sequences", *counts)
    whole = theirs[0].model
    n_rows = _rows_that_fit(whole, len(theirs))
    n_queries = max(int(one.layers["q"][0].shape[1]) for one in whole.sequences)
    if n_rows < n_queries:
        left_out.append(f"of {n_rows} rows of {n_queries}")
    results, drift = list[LayerComparison](), 0.0
    for place, sides in enumerate(zip(ours, theirs, strict=True)):
        one = LayerComparison(*sides, n_rows, rtol, drift)
        one.compare(causes.ROUNDINGS * math.sqrt(place + 1.0))
        results.append(one)
        drift = one.grown
        if one.is_last:
            break
    if not all(one.has_weights or one.is_last for one in results):
        left_out.append(NOTES["not_compared"])
    return _join(results, rtol, tuple(dict.fromkeys(left_out)), len(theirs))


def _rows_that_fit(model: Model, n_layers: int) -> int:
    """Return how many rows of a sequence can be compared, by the memory they take.

    The weights of all layers, heads and sequences are at most `MOST_WEIGHTS` numbers,
    but there are at least `FEWEST_ROWS` rows.
    """
    n_sequences = min(len(model.sequences), MOST_SEQUENCES)
    each = n_layers * len(model.head_labels) * n_sequences * model.most_tokens
    return max(MOST_WEIGHTS // each, FEWEST_ROWS)


@dataclass
class LayerSide:
    """A layer of the port or of the reference; one sequence is read at a time."""

    name: str  # ``port`` or ``reference``
    layer: int
    model: Model
    passed: float | None  # the scale without a cap; None where it is not known
    vectors: Vectors = field(default_factory=dict)
    rounding: float = 0.0  # relative rounding error of vectors

    def require_finite(self, sequence: int, names: Sequence[str]) -> None:
        """Raise an error if arrays of a sequence have values that are not finite.

        ``sequence`` is the index of the sequence.  ``names`` are the arrays to check,
        in every head of the layer.  The message names the first operation whose result
        is not finite.  The error is an `_EndError` for the port and an `InputError` for
        the reference.
        """
        for head in self.model.head_labels:
            arrays = self.model.take(Head(self.layer, head), sequence)
            some = [n for n in names if not np.isfinite(arrays.get(n, 0.0)).all()]
            if some:
                told = f"not finite first in {say_first_lost(arrays)}"
                if self.name == "port":
                    raise _EndError("not finite", f"is {told}")
                raise InputError(
                    f"reference, layer {self.layer}: {some[0]} must be finite, got "
                    f"others in head {head}: {told}"
                )

    def read(self, sequence: int) -> None:
        """Read the queries, keys and values of a sequence into ``vectors``.

        Raises an error if they are not finite, as `require_finite`.
        """
        self.require_finite(sequence, VECTORS)
        self.vectors = self.model.read_vectors(self.layer, sequence)
        self.rounding = max(map(rounding_of, self.vectors.values()))

    def read_rows(self, head: int, sequence: int, n_rows: int) -> Rows:
        """Return at most ``n_rows`` rows of a head in a sequence, with all keys."""
        return self.model.read_rows(Head(self.layer, head), sequence, n_rows)

    @property
    def n_keys(self) -> int:
        """Number of keys of the sequence that was read."""
        return int(self.vectors["k"].shape[1])


def _open_layers(
    name: str, source: Source, axes: Sequence[str] | None
) -> list[LayerSide]:
    """Return the layers of port or reference, in order.

    ``name`` is ``port`` or ``reference``.  The scale of a layer is that which was
    passed to attention, or torch's default 1 / sqrt(d_k) if none was.  It is None if it
    is not known, as for arrays and files, or if scores have a cap.
    """
    passed: dict[int, float] = {}
    if isinstance(source, Captured):
        frame = source.passed
        frame = frame[frame["source"].isin(BY_DEFAULT) & frame["cap"].isna()]
        passed = dict(zip(frame["layer"], frame["scale"].astype(float), strict=True))
    elif isinstance(source, Mapping) and axes is None:
        axes = AXES
    found = []
    try:
        models = open_source(source, axes, name)
    except InputError as error:
        prefix = f"{name}: " * (not str(error).startswith(name))
        raise InputError(f"{prefix}{error}") from None
    for model in models:
        for layer in model.layers:
            scale = passed.get(layer)
            scale = model.d_k**-0.5 if scale and math.isnan(scale) else scale
            found.append(LayerSide(name, layer, model, scale))
    return sorted(found, key=lambda one: one.layer)


def _require_same(name: str, ours: object, theirs: object) -> None:
    """Raise an `InputError` if a size of the port is not that of the reference.

    ``ours`` and ``theirs`` are the sizes, and ``name`` says which they are.
    """
    if ours != theirs:
        raise InputError(f"port must have the reference's {name}, {theirs}, got {ours}")


class _EndError(Exception):
    """What ends the comparison: (quantity, words); later results would not count."""


@dataclass
class LayerComparison:
    """The comparison of a layer of port and reference, in order of computation."""

    port: LayerSide
    reference: LayerSide
    n_rows: int
    rtol: float
    drift: float  # relative rounding error of what layers before made
    lines: list[tuple[Any, ...]] = field(default_factory=list)  # of the frame
    findings: list[Finding] = field(default_factory=list)
    off: float = 0.0  # the same of queries and keys of a sequence of this layer
    grown: float = 0.0  # the same of what it makes
    is_last: bool = False  # whether later layers need no comparison
    has_one_key: bool = False
    #: Sides with computed weights, where those of the other were captured.
    computed: set[str] = field(default_factory=set)
    has_weights: bool = True  # whether weights, or outputs, of all heads are compared
    #: Of each head of each sequence, whether scores and weights are the same.
    alike: list[bool] = field(default_factory=list)

    def compare(self, roundings: float) -> None:
        """Compare queries, keys and values of each sequence, then weights or outputs.

        What differs is added to ``findings``, and every number to ``lines``.
        Differences of queries and keys that leave all scores and weights the same are
        no findings.  If the port has swapped axes, repeated keys, or numbers that are
        not finite, ``is_last`` becomes True.  ``roundings`` is the allowed difference
        of vectors, as a multiple of a rounding error.
        """
        try:
            for sequence in range(self.n_sequences):
                for side in self.sides:
                    side.read(sequence)
                self._require_shape()
                self._compare_vectors(roundings)
                self._compare_heads(sequence)
            same_scores = bool(self.alike) and all(self.alike)
            if same_scores and {one.quantity for one in self.findings} <= {"q", "k"}:
                self.findings.clear()  # written otherwise, to the same scores
        except _EndError as end:
            quantity, text = end.args
            cause = causes.Cause(quantity, text, np.empty(0), explained=1.0)
            self._note(cause, self.heads, math.inf, 0.0)
            self.is_last = True

    @property
    def sides(self) -> tuple[LayerSide, LayerSide]:
        """(port, reference)."""
        return self.port, self.reference

    @property
    def layer(self) -> int:
        """Number of the layer."""
        return self.reference.layer

    @property
    def heads(self) -> tuple[int, ...]:
        """Numbers of the query heads of the reference, from 0."""
        return self.reference.model.head_labels

    @property
    def n_sequences(self) -> int:
        """Number of sequences that are compared."""
        return min(len(self.reference.model.sequences), MOST_SEQUENCES)

    def _note(
        self,
        cause: causes.Cause,
        heads: Sequence[int],
        difference: float,
        rounding: float,
    ) -> None:
        """Add a `Finding` of some heads of the layer, with its cause."""
        where = (self.layer,), tuple(heads), cause.quantity, cause.text
        numbers = difference, rounding, cause.explained, cause.port, cause.reference
        self.findings.append(Finding(*where, *numbers))

    def _require_shape(self) -> None:
        """Raise an error if arrays of port and reference have different sizes.

        An `_EndError`, which is reported as a finding, if axes are swapped or keys
        repeated; an `InputError` for other sizes.
        """
        ours, theirs = self.port.vectors, self.reference.vectors
        (heads, tokens, _), (other, n_tokens, _) = ours["q"].shape, theirs["q"].shape
        n_keys, wanted = self.port.n_keys, self.reference.n_keys
        if heads != tokens and _are_near(ours["q"].swapaxes(0, 1), theirs["q"]):
            raise _EndError("axes", "has heads and tokens swapped")
        times, rest = divmod(n_keys, wanted)
        each = ours["k"][:, :: times or 1], ours["k"][:, :wanted]
        if times > 1 and not rest and any(_are_near(x, theirs["k"]) for x in each):
            told = f"has {n_keys} keys where the reference has {wanted}: each is "
            told += f"repeated {times} times along the tokens"
            raise _EndError("k", told)
        where = f" in layer {self.layer}"
        _require_same(f"heads{where}", heads, other)
        sizes = (tokens, n_keys), (n_tokens, wanted)
        _require_same(f"tokens: numbers of queries and keys{where}", *sizes)

    def _compare_vectors(self, roundings: float) -> None:
        """Compare queries, keys and values of a sequence; update ``off`` and ``grown``.

        ``roundings`` is as in `compare`.
        """
        ours, theirs = self.port.vectors, self.reference.vectors
        by_format = roundings * max(self.port.rounding, self.reference.rounding)
        allowed, near = max(causes.LEAST, by_format, GROWTH * self.drift), [self.drift]
        for name in dict.fromkeys([*ours, *theirs]):
            lacking = np.full_like(ours.get(name, theirs.get(name)), math.nan)
            both = [one.get(name, lacking) for one in (ours, theirs)]
            count = max(map(len, both))
            port, reference = (np.repeat(x, count // len(x), axis=0) for x in both)
            if port.shape != reference.shape:  # scores are compared
                told = f"has {port.shape[2]} entries of {{name}}, the reference "
                cause = causes.Cause(name, f"{told}{reference.shape[2]}", port)
                if name != "v":
                    self._note(cause._replace(explained=1.0), self.heads, math.inf, 0.0)
                continue
            each = list(map(_apart, port, reference))
            heads = []
            for place, head in enumerate(self.heads):
                norms, apart = each[place * count // len(self.heads)]
                self.lines.append((self.layer, head, name, *norms, apart, allowed))
                heads += [head] * (apart > allowed)
            largest = max(apart for _, apart in each)
            if not heads:
                near += [largest] * (name != "v")
            elif name not in {one.quantity for one in self.findings}:
                first = self.port.n_keys - len(port[0])
                found = self._find_misplaced(name, port, reference)
                found = found or causes.explain_vectors(
                    name, port, reference, allowed, first
                )
                if not found and largest > self.rtol:
                    told = f"{ANOTHER}: {largest:.2g} of its norm apart, "
                    tokens = range(first, first + len(port[0]))
                    told += say_farthest(name, port, reference, range(count), tokens)
                    found = (causes.Cause(name, told, port),)
                for cause in found:
                    self._note(cause, heads, largest, allowed)
        self.off = max(near)
        self.grown = max(self.grown, self.off)

    def _find_misplaced(
        self, name: str, port: Array, reference: Array
    ) -> tuple[causes.Cause, ...]:
        """Return (cause,) if heads of the port have vectors of other heads, else ().

        Such as heads in another order, or keys in place of queries.  At least half of
        the heads must have vectors that the reference has, too.

        Parameters
        ----------
        name : str
            ``q``, ``k`` or ``v``.
        port, reference : ndarray
            Vectors (head, token, d).
        """
        known = {
            f"{which} {head}": one
            for which, heads in self.reference.vectors.items()
            for head, one in enumerate(distinct_heads(heads)[0])
        }
        found, own = (
            [
                next((label for label, x in known.items() if _are_near(head, x)), "")
                for head in heads
            ]
            for heads in (port, reference)
        )
        told = f"has in place of {name}, by head, the reference's "
        told += ", ".join(label or "none" for label in found[:MOST_NUMBERS])
        told = say_groups(found, own, "value" if name == "v" else "key") or told
        cause = causes.Cause(name, told, port, explained=1.0)
        moved = sum(
            label not in {"", mine} for label, mine in zip(found, own, strict=True)
        )
        is_sure = 2 * sum(map(bool, found)) >= len(found) and moved > 0
        return (cause,) if is_sure and (all(found) or moved > 1) else ()

    def _compare_heads(self, sequence: int) -> None:
        """Compare the weights of each head in a sequence, or else its outputs."""
        self.has_one_key = self.port.n_keys == 1
        for side in self.sides:
            side.require_finite(sequence, list(EVIDENCE))
        keys, numbers = distinct_heads(self.port.vectors["k"])
        for n, head in enumerate(self.heads):
            rows = [one.read_rows(head, sequence, self.n_rows) for one in self.sides]
            if "weights" in rows[1].made:
                named = self.layer, head, "reference: weights"
                require_weights([rows[1].weights], *named)
            added = [np.unique(() if one.added is None else one.added) for one in rows]
            if [*added[0]] == [0.0, 1.0] != [*added[1]]:
                cause = causes.Cause("mask", NOTES["zero_one"], added[0], explained=1.0)
                self._note(cause, [head], math.inf, 0.0)
            is_whole = len(rows[0].places) == self.port.vectors["q"].shape[1]
            both = self._with_weights(rows)
            if both is None:
                self.has_weights = self.has_one_key
                continue
            own = numbers[n * len(numbers) // len(self.heads)]
            pair = causes.HeadPair(both[0], both[1], n, own, keys, is_whole)
            self.alike.append(self._compare_head(head, pair))

    def _with_weights(self, rows: Sequence[Rows]) -> list[causes.HeadSide] | None:
        """Return the `HeadSide` of port and reference, with weights where possible.

        ``rows`` are those of both sides.  For a side with outputs, weights are computed
        by its mask, bias and scale, if these are known and reproduce the outputs.  None
        if a side has neither weights nor outputs, or if only one side has weights and
        those of the other cannot be computed.
        """
        rows = _some(rows, list(map(see_keys, rows)))
        sides, names = [], [side.model.source for side in self.sides]
        for side, name, one in zip(self.sides, names, rows, strict=True):
            if name is None:
                return None
            rounding = max(side.rounding, rounding_of(one.made[name]))
            sides.append(causes.HeadSide(one, rounding, side.passed, name == "weights"))
        lacking = [side.name for side in self.sides if side.model.source == "outputs"]
        if len(lacking) == 2 and causes.have_same_outputs(*sides):
            return sides
        is_sure = all(one.is_sure for one in sides)
        is_wide = len(lacking) == 2 and len({one.outputs.shape for one in rows}) > 1
        if not is_sure and (len(lacking) == 1 or is_wide):
            return None
        self.computed.update(lacking if len(lacking) == 1 else ())
        if is_sure:
            weights = [np.asarray(one.weights) for one in sides]
            rows = [
                replace(one, made={**one.made, "weights": made})
                for one, made in zip(rows, weights, strict=True)
            ]
            # rows of padding have even weights, where a large number hides all keys
            even = [are_even(one, rounding_of(one.weights)) for one in rows]
            rows = _some(rows, [~one for one in even])
        return [replace(one, rows=r) for one, r in zip(sides, rows, strict=True)]

    def _compare_head(self, head: int, pair: causes.HeadPair) -> bool:
        """Compare weights or outputs of a head; return whether they are the same.

        True only if they agree up to rounding and scores are proportional.  Differences
        are added to ``findings``.
        """
        port, reference = (side.rows.made for side in (pair.port, pair.reference))
        name = next(one for one in ("weights", "outputs") if one in port)
        norms, apart = _apart(port[name], reference[name])
        allowed = pair.allowed_by(pair.reference.d_k**-0.5)
        found: tuple[causes.Cause, ...] = ()
        if is_alike := apart <= allowed and pair.sees_the_same:
            is_alike = math.isfinite(pair.score_factor)
            hidden = pair.find_hidden_scale() if apart > causes.LEAST else None
            if hidden:
                self._note(hidden, [head], apart, allowed)
                is_alike = False
        elif pair.port.weights is None or pair.reference.weights is None:
            allowed = max(
                one.allowed(one.likely_scale, self.off)
                for one in (pair.port, pair.reference)
            )
        else:
            with np.errstate(invalid="ignore"):  # of weights below 0
                direct, (apart, allowed, found) = apart, pair.explain()
            if name == "outputs" and direct <= allowed:  # the rule is less exact
                apart, found = direct, ()
        self.lines.append((self.layer, head, name, *norms, apart, allowed))
        if apart <= allowed:
            self.grown = max(self.grown, apart)
        elif not found and apart > self.rtol:
            before = reference[name] if name == "outputs" else pair.expected
            found = causes.explain_factor(name, port[name], before, allowed)
            if not found:
                told = f"{OTHER} {name} of the same queries and keys: {apart:.2g} of "
                both = port[name][None], before[None]
                places = pair.port.rows.places.tolist()
                told += f"their norm apart, {say_farthest(name, *both, [head], places)}"
                found = (causes.Cause(name, told, port[name]),)
        for cause in found:
            self._note(cause, [head], apart, allowed)
        if name == "weights" and {"v", "outputs"} <= {*port} & {*reference}:
            self._compare_outputs(head, pair, allowed)
        return is_alike

    def _compare_outputs(
        self, head: int, pair: causes.HeadPair, allowed: float
    ) -> None:
        """Compare outputs of a head with the product of its own weights and values.

        A finding is added if they agree for the reference but not for the port, as with
        dropout.  ``allowed`` is the relative difference that rounding can make.
        """
        sides = pair.port.rows, pair.reference.rows
        made = [one.weights @ one.made["v"] for one in sides]
        ours, theirs = (
            _apart(one.outputs, x) for one, x in zip(sides, made, strict=True)
        )
        line = self.layer, head, "outputs", ours[0][0], theirs[0][0], ours[1], allowed
        self.lines.append(line)
        if theirs[1] <= allowed and ours[1] > max(allowed, self.rtol):
            told = "has other outputs than its weights and values make, as with dropout"
            found = causes.explain_factor("outputs", sides[0].outputs, made[0], allowed)
            for cause in found or (causes.Cause("outputs", told, made[0]),):
                self._note(cause, [head], ours[1], allowed)


def say_farthest(
    name: str,
    port: Array,
    reference: Array,
    heads: Sequence[int],
    tokens: Sequence[int],
) -> str:
    """Return in words where two arrays are farthest apart, and the two numbers there.

    Such as ``most in q of head 3, query 7, entry 0: 1.2 in place of 0.8``.

    Parameters
    ----------
    name : str
        Name of the array.
    port, reference : ndarray
        Axes (head, token, d or key).
    heads, tokens : sequence of int
        Numbers of the heads and tokens on the first two axes.
    """
    away = np.abs(port - reference)
    place = np.unravel_index(int(away.argmax()), away.shape)
    head, token, last = map(int, place)
    return (
        f"most in {name} of {'key ' * (name in 'kv')}head {heads[head]}, "
        f"{'key' if name in 'kv' else 'query'} {tokens[token]}, "
        f"{'key' if name == 'weights' else 'entry'} {last}: "
        f"{port[place]:.3g} in place of {reference[place]:.3g}"
    )


def distinct_heads(heads: Array) -> tuple[Array, list[int]]:
    """Return heads without repetitions, and for each given head its index among them.

    ``heads`` are vectors (head, token, d), and so are the returned ones.
    """
    first = [
        next(n for n, one in enumerate(heads) if np.array_equal(one, head))
        for head in heads
    ]
    chosen = sorted(set(first))
    return heads[chosen], [chosen.index(n) for n in first]


def say_first_lost(arrays: Mapping[str, Array]) -> str:
    """Return in words the first operation of attention whose result is not finite.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        The arrays of a head in one sequence, not all of them finite: ``q`` and ``k``,
        ``weights`` or ``outputs``, and ``v`` and ``added`` as far as they are known.
    """
    lost = {name: ~np.isfinite(array) for name, array in arrays.items()}
    for name in VECTORS:
        if name in lost and lost[name].any():
            return f"{name} is what attention is given: look at what makes it"
    made = "weights" if "weights" in lost else "outputs"
    rows = lost[made].any(axis=1)
    if not rows.any():
        return "the output: weights and values are finite"
    q, k = (np.asarray(arrays[name], dtype=float) for name in "qk")
    largest, narrow = float(np.abs(q[rows] @ k.T).max()), format_of([q, k])
    if not math.log(max(largest, 1.0)) < narrow.log_largest:
        return (
            f"the scores: q and k of {narrow.name} make up to {largest:.3g}, and it "
            f"holds {narrow.largest:.6g}"
        )
    added = arrays.get(ADDED)
    if added is not None and (added[rows] <= UNSEEN).all():
        return "the mask: it hides every key of these rows"
    if added is None and lost[made][rows].all():
        return f"softmax in {rows.sum()} of {rows.size} rows, as if a mask hid them"
    return "the mask, softmax or later: which cannot be told"


def _some(rows: Sequence[Rows], chosen: Sequence[NDArray[np.bool_]]) -> list[Rows]:
    """Return the rows of both sides that all masks choose; all rows if none is chosen.

    ``chosen`` are boolean masks of shape (n_rows,).
    """
    kept = np.logical_and.reduce([np.ones(len(rows[0].places), bool), *chosen])
    return [one.some(kept) for one in rows] if kept.any() else list(rows)


def _apart(port: Array, reference: Array) -> tuple[tuple[float, float], float]:
    """Return ((norm of port, norm of reference), norm of the difference / the latter).

    If the norm of the reference is 0, the last number is the norm of the difference.
    """
    ours, theirs, away = (
        float(np.linalg.norm(one)) for one in (port, reference, port - reference)
    )
    return (ours, theirs), away / theirs if theirs else away


def rounding_of(array: Array) -> float:
    """Return the relative rounding error of an array's format, at most bfloat16's."""
    some = array.ravel()[:: -(-array.size // MOST_RECOGNISED)]
    return min(rounding_error_of([some]), BFLOAT16)


def _are_near(port: Array, reference: Array) -> bool:
    """Return whether arrays have one shape, and relatively differ by at most `RTOL`."""
    return port.shape == reference.shape and _apart(port, reference)[1] <= RTOL


def _join(
    results: Sequence[LayerComparison],
    rtol: float,
    left_out: tuple[str, ...],
    n_layers: int,
) -> Comparison:
    """Return the comparison of all layers, from those of single layers.

    ``n_layers`` is the number of layers of the model, and ``left_out`` says what was
    not compared.
    """
    import pandas as pd

    lines = [line for one in results for line in one.lines]
    frame = pd.DataFrame.from_records(lines, columns=list(COLUMNS))
    places, stages = list(COLUMNS[:3]), pd.CategoricalDtype(list(STAGES))
    frame = frame.astype({"quantity": stages}).groupby(places, observed=True).mean()
    frame = frame.reset_index().astype({"quantity": str})
    found = [one for result in results for one in result.findings]
    # inputs differ after the first fault: later layers count where a cause is certain
    first = [one for one in found if one.layers == found[0].layers]
    explained = {one.is_vector for one in first if one.explained}
    known_words = {words_before_numbers(one.text) for one in first if one.explained}
    counted = [
        one for one in first if one.explained or one.is_vector not in explained
    ] + [
        one
        for one in found[len(first) :]
        if one.explained >= (causes.ALL if one.is_vector else causes.EXPLAINS)
        and (not one.is_vector or words_before_numbers(one.text) in known_words)
    ]
    sizes = results[0].reference.model.sizes
    computed = sorted({side for one in results for side in one.computed})
    notes = [NOTES["computed"].format(" and ".join(computed))] * bool(computed)
    if all(one.has_one_key for one in results):
        notes = [ONE_KEY]
    findings, known = _merge(counted, sizes), {one.layers for one in counted}
    start = findings[0].layers[0] if findings else 0
    if start > results[0].layer and counted[0].is_vector and not counted[0].explained:
        before = max(one.layer for one in results if one.layer < start)
        notes.insert(0, NOTES["behind"].format(before))
    elif any(one.is_vector and one.layers not in known for one in found[len(first) :]):
        notes.insert(0, NOTES["other_inputs"].format(found[0].layers[0]))
    note = "\n  ".join(notes)
    return Comparison(findings, frame, rtol, left_out, n_layers, sizes[1], note)


def words_before_numbers(text: str) -> str:
    """Return the words of a cause up to its first comma or colon."""
    return text.partition(":")[0].partition(",")[0]


def _merge(found: Sequence[Finding], sizes: Sequence[int]) -> tuple[Finding, ...]:
    """Return findings, with those of the same cause in several heads and layers as one.

    ``sizes`` are d_k, number of heads and number of key heads.
    """
    masks: dict[tuple[int, ...], Counter[str]] = {}
    for one in found:  # texts of masks differ by head where few weights show them
        if one.quantity == "mask":
            masks.setdefault(one.layers, Counter())[words_before_numbers(one.text)] += 1
    groups: dict[tuple[str, str], list[Finding]] = {}
    for one in found:
        kind, text = "q" if one.is_vector else one.quantity, one.text
        if kind == "mask":
            ((text, _),) = masks[one.layers].most_common(1)
        elif kind in SAY and kind != "scale":
            text = ""
        starts = (*causes.FITTED, ANOTHER, OTHER)
        text = next((start for start in starts if text.startswith(start)), text)
        groups.setdefault((kind, text), []).append(one)
    merged = []
    for (kind, _), group in groups.items():
        names = dict.fromkeys(one.quantity for one in group)
        ((text, _),) = Counter(one.text for one in group).most_common(1)
        if not group[0].explained:
            text = max(group, key=lambda one: one.difference).text
        if kind in SAY:
            text = SAY[kind](group, text, sizes)
        alike = [one for one in group if one.text == text] or group
        said = text.format(name=" and ".join(names), **_numbers_of(alike))
        merged.append(
            group[0]._replace(
                layers=tuple(sorted({n for one in group for n in one.layers})),
                heads=tuple(sorted({n for one in group for n in one.heads})),
                text=said,
            )
        )
    return tuple(merged)


def _numbers_of(group: Sequence[Finding]) -> dict[str, Any]:
    """Return the values of the fields that texts of causes contain, by name.

    ``port`` and ``reference`` are medians of the parameter, and ``factor`` is the
    median of its ratio.  ``ports`` and ``references`` are lists by head in the first
    layer, which ``of_layer`` names if other layers differ.
    """
    first = {one.heads: one for one in group if one.layers == group[0].layers}
    both, numbers = _parameters(group), dict[str, Any]()
    for side, each in zip(SIDES, both, strict=True):
        numbers[side] = float(np.median(each))
        by_head = [f"{getattr(one, side):.3g}" for one in first.values()]
        some = by_head[: MOST_NUMBERS if len(set(by_head)) > 1 else 1]
        more = [f"... ({len(by_head)} heads)"] * (len(by_head) > MOST_NUMBERS)
        numbers[f"{side}s"] = ", ".join(some + more)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.median(both[0] / both[1])
    by_layer = {(one.heads, f"{one.port:.2g} {one.reference:.2g}") for one in group}
    of_layer = f" in layer {group[0].layers[0]}" * (len(by_layer) > len(first))
    return numbers | {"factor": f"{factor:.4g}", "of_layer": of_layer}


def _parameters(group: Sequence[Finding]) -> Array:
    """Return the parameters of port and reference as an array, (2, n_findings)."""
    return np.array([[getattr(one, side) for one in group] for side in SIDES])


def say_sink(group: Sequence[Finding], text: str, _: Sequence[int]) -> str:
    """Return the text of a finding about sinks.

    If all findings have the same ``text``, it is that text.  Else it says the logits of
    port and reference.

    Notes
    -----
    The result may contain fields such as ``{ports}``, which `_numbers_of` fills in
    later.  This holds for all functions in `SAY`.
    """
    told = "has the sink logit {ports}, the reference {references}{of_layer}"
    return text if text and {one.text for one in group} == {text} else told


def say_grouping(group: Sequence[Finding], _: str, sizes: Sequence[int]) -> str:
    """Return the text of a finding that query heads use other key heads.

    That of `say_groups` if port and reference repeat key heads in different orders,
    else one that lists the key heads.  ``sizes`` are d_k, number of heads and of key
    heads.
    """
    count, heads = 1 + int(_parameters(group).max()), sizes[1]
    own = {head: head * count // heads for head in range(heads)}
    met, theirs = (
        own | {one.heads[0]: getattr(one, side) for one in group} for side in SIDES
    )
    told = "attends to key head {ports} where the reference attends to {references}"
    return say_groups([*met.values()], [*theirs.values()]) or told + "{of_layer}"


def say_groups(
    met: Sequence[object], theirs: Sequence[object], kind: str = "key"
) -> str:
    """Return words for key heads that port and reference repeat in different orders.

    One side tiles its heads (0 1 0 1), the other repeats each of them (0 0 1 1):
    ``has key heads of other groups (tiled, not interleaved)``.  An empty string in any
    other case.

    Parameters
    ----------
    met, theirs : sequence
        For each query head its key head, in the port and in the reference.
    kind : str
        ``key`` or ``value``, for the text.
    """
    names, heads = list(dict.fromkeys(theirs)), range(len(theirs))
    ways = {
        "tiled": [names[n % len(names)] for n in heads],
        "interleaved": [names[n * len(names) // len(heads)] for n in heads],
    }
    mine, other = (
        [way for way, each in ways.items() if each == one] for one in (met, theirs)
    )
    is_so = len(mine) == len(other) == 1 and mine != other
    return NOTES["grouped"].format(kind, *mine, *other) if is_so else ""


def say_bias(group: Sequence[Finding], text: str, _: Sequence[int]) -> str:
    """Return the text of a finding that the port has another bias.

    It says how the slope or the multiple of the bias differs, for one head or by head.
    """
    port, reference = _parameters(group)
    if np.isnan(port).any():  # by relative position: it has no slope
        return group[int(np.argmax(np.isnan(port)))].text
    if not reference.any():
        return "adds a bias by distance, {ports} per position, the reference none"
    ratios = port / np.where(reference == 0.0, math.nan, reference)
    largest = np.abs(ratios).max()
    if largest < causes.ALIKE:
        return "adds no bias, the reference does"
    if np.ptp(ratios) <= causes.ALIKE * largest:
        reversed_ = np.abs(ratios + 1.0).max() < causes.ALIKE
        told = "adds its bias {factor} times"
        return "adds its bias with the sign reversed" if reversed_ else text or told
    is_same = np.allclose(np.sort(port), np.sort(reference), rtol=causes.ALIKE)
    return NOTES["slopes"] + ": those of other heads" * is_same


def say_scale(group: Sequence[Finding], text: str, sizes: Sequence[int]) -> str:
    """Return the text of a finding that the port has another scale.

    It says whether scales differ by one factor, by layer, or by head.  A ``text`` that
    is given is returned.  ``sizes`` are d_k, number of heads and of key heads.
    """
    if text:
        return text
    port, reference = _parameters(group)
    ratios, layers = port / reference, np.array([one.layers[0] + 1.0 for one in group])
    near = max(CLOSE, *(one.rounding for one in group)) * np.median(np.abs(ratios))
    if np.ptp(ratios) <= near:
        ours, theirs, times = (float(np.median(x)) for x in (port, reference, ratios))
        mine, other = (say_factor(one, *sizes) for one in (ours, theirs))
        told = f"has scale {mine} where the reference has {other}: {times:.4g} times"
        again = abs(ours / theirs**2 - 1.0) < CLOSE
        return told + ", as if it were applied again" * again
    for power, does in ((1.0, "divided"), (-1.0, "multiplied")):
        if np.ptp(ratios * layers**power) < near:
            return f"has another scale by layer: {does} by the layer's number"
    heads = [one.heads for one in group]
    of_heads = (ratios[[one == head for one in heads]] for head in heads)
    by = "head" if all(np.ptp(one) <= near for one in of_heads) else "layer"
    return f"has another scale by {by}, {causes.say_ends(ratios)} times the reference's"


#: Functions of findings of a quantity, a text and sizes, which return a common text.
SAY = {
    "sink": say_sink,
    "grouping": say_grouping,
    "bias": say_bias,
    "scale": say_scale,
}

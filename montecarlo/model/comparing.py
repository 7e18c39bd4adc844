"""Comparison of a port with its reference: where they differ first, and why.

Layers are compared in the order of the computation: queries, keys and values, then
attention weights with those that the reference's rule makes of the port's own queries
and keys.  Differences within the rounding error of both formats do not count.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.softmax import Array
from montecarlo.errors import InputError
from montecarlo.model.answers import MOST_FINDINGS, say_place
from montecarlo.model.arrays import (
    ADDED,
    AXES,
    OF_KEYS,
    UNSEEN,
    Head,
    Model,
    NotFiniteError,
    Rows,
)
from montecarlo.model.captured import ONE_KEY, Captured
from montecarlo.model.causes import (
    ALIKE,
    ALL,
    EXPLAINS,
    FITTED,
    LEAST,
    ROUNDINGS,
    TILED,
    Cause,
    HeadPair,
    HeadSide,
    best_factor,
    explain_vectors,
    say_ends,
)
from montecarlo.model.checking import Source, open_source
from montecarlo.model.expected import CLOSE, say_factor
from montecarlo.model.fits import format_of, keys_seen, rounding_error_of
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
#: Least numbers of queries and keys of a sequence.
ONE = {"q": 1, "k": 1}
#: Largest rounding error that is believed of captured numbers, that of bfloat16: few
#: numbers may look as if they had fewer bits.
BFLOAT16 = 2.0**-8
#: Numbers by which a format is recognised.
MOST_RECOGNISED = 2**14
SIDES = ("port", "reference")
VECTORS = ("q", "k", "v")
#: Heads whose numbers are listed.
MOST_NUMBERS = 8
COMPUTED = (
    "weights of the {}, which were not captured, are computed from its queries, keys, "
    "mask and scale"
)
OTHER_INPUTS = (
    "first seen in layer {}; later layers have other inputs, so that their q, k and v "
    "are not judged: compare them with the reference's inputs"
)
SAME_WEIGHTS = (
    "q and k differ and make the same weights: no weights or outputs differ by more "
    "than rounding"
)
BETWEEN = (
    "q, k and weights of layer {0} agree: the cause is in its values, its outputs or "
    "what follows them, or in the projections of the next layer"
)
#: Of one side, by name; axes (head, token, d).
Vectors = dict[str, Array]


class Finding(NamedTuple):
    """A difference between a port and its reference, and its cause.

    Attributes
    ----------
    layers, heads : tuple of int
        Where they occur.
    quantity : str
        ``q``, ``k``, ``v``, ``scale``, ``mask``, ``cap``, ``bias``, ``sink``,
        ``weights``, ``outputs`` and others.
    text : str
        The cause, as a predicate of "the port".
    difference : float
        Norm of the difference over that of the reference; weights are compared with
        those that the reference's rule makes of the port's queries and keys.
    rounding : float
        Bound of the rounding error of ``difference``.
    explained : float
        Share of the difference that the cause explains, 0 to 1; 0 without a cause.
    port, reference : float
        The parameter of both sides, such as the scale; NaN if the cause has none.
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
        """Whether queries, keys or values differ."""
        return self.quantity in VECTORS


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """The differences between a port and its reference; it prints as sentences.

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
        Difference from which on what nothing explains counts.
    left_out : tuple of str
        What was not compared, such as rows that were not captured.  If there is any,
        a comparison without findings is not conclusive.
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
        """The first finding; None where nothing differs."""
        return self.findings[0] if self.findings else None

    def __str__(self) -> str:
        """Return the first difference and its cause; then all, a line for each."""
        if not self.findings:
            return self._say_alike()
        lines = [self._say(one) for one in self.findings[:MOST_FINDINGS]]
        if len(self.findings) > 1:
            lines.insert(0, f"{lines[0]}; {len(self.findings) - 1} more:")
        if len(self.findings) > MOST_FINDINGS:
            lines.append(f"and {len(self.findings) - MOST_FINDINGS} more")
        lines += map("compared: {}".format, self.left_out)
        return "\n  ".join(filter(None, [*lines, self.note]))

    __repr__ = __str__

    def _say_alike(self) -> str:
        """Return the sentence that nothing differs, with the size of differences."""
        ratios = self.frame["difference"] / self.frame["rounding"]
        made = ratios[~self.frame["quantity"].isin(["q", "k"])].max()
        largest, said = ratios.max(), "no head differs by more than rounding"
        if made <= 1.0 < largest:
            largest, said = made, SAME_WEIGHTS
        elif largest > 1.0:
            said = said.replace("rounding", f"{self.rtol:g}, and nothing explains it")
        if largest > 0.0:
            said += f": at most {largest:.2g} times what rounding can make"
        said = "; ".join(filter(None, [said, self.note]))
        told = ", ".join([said, *self.left_out])
        return f"cannot be told: {told}" if self.left_out else said

    def _say(self, one: Finding) -> str:
        """Return a finding as a sentence, with its layers and heads."""
        heads = () if len(one.heads) == self.n_heads else one.heads
        place = say_place(one.layers, heads)
        if 1 < len(one.layers) == self.n_layers:
            place = ", ".join(filter(None, ["all layers", say_place((), heads)]))
        part = ""
        if 0.0 < one.explained < ALL:
            part = f" (explains {one.explained:.0%} of the difference)"
        return f"the port {one.text}; {place}{part}"


#: The remark where weights of a side are neither captured nor computed.
NOT_COMPARED = (
    "queries, keys and values alone: no side has weights, or v and outputs, that the "
    "other has as well, so that scale and mask were not looked at"
)


def compare(
    port: Source,
    reference: Source,
    rtol: float = RTOL,
    axes: Sequence[str] | None = None,
) -> Comparison:
    """Compare what was captured of a port with its reference, head by head.

    Both must have seen the same tokens.  Up to 8 sequences are compared; of each all
    rows, if the weights of all heads fit into 256 MB.  Where one side has weights and
    the other values, outputs and a mask, as of ``scaled_dot_product_attention``,
    weights of the latter are computed.

    Parameters
    ----------
    port : Captured, mapping, or path
        The result of `montecarlo.capture`, arrays by name, or a file of arrays, as for
        `assert_attention_scale`.
    reference : Captured, mapping, or path
        The same of its reference.
    rtol : float
        Relative difference from which on one without a known cause counts; those with a
        cause count beyond the rounding error.
    axes : sequence of str, optional
        Names of the axes of arrays, ``("head", "token", "d")``.

    Returns
    -------
    Comparison
        ``str`` of it is the answer; ``findings`` and ``frame`` have the numbers.

    Raises
    ------
    InputError
        If sizes of both sides differ, or an argument is not usable.
    """
    require_number("rtol", rtol, 0.0, 1.0, ends=False)
    sources = (port, reference)
    captured = [one for one in sources if isinstance(one, Captured)]
    left_out = [f"of {one.rows_kept}" for one in captured if one.rows_kept]
    missed = [told for one in captured for told in one.missed]
    left_out += map("attention was not followed: {}".format, missed)
    of_arrays = AXES if axes is None else axes
    sides = [
        open_source(one, of_arrays if isinstance(one, Mapping) else axes, ONE, side)
        for side, one in zip(SIDES, sources, strict=True)
    ]
    pairs = _pair(*sides)
    whole = pairs[0][2]
    n_rows = _rows_that_fit(whole, len(pairs))
    if n_rows < whole.most_tokens:
        left_out.append(f"of {n_rows} rows of {whole.most_tokens}")
    scales = [_passed_scales(*both) for both in zip(sources, sides, strict=True)]
    results, drift = list[LayerComparison](), 0.0
    for place, (layer, ours, theirs) in enumerate(pairs):
        passed = dict(zip(SIDES, (one.get(layer) for one in scales), strict=True))
        one = LayerComparison(layer, ours, theirs, n_rows, rtol, drift, passed)
        one.compare(ROUNDINGS * math.sqrt(place + 1.0))
        results.append(one)
        drift = one.drift
        if one.is_last:
            break
    if not all(one.has_weights or one.is_last for one in results):
        left_out.append(NOT_COMPARED)
    return _join(results, rtol, tuple(dict.fromkeys(left_out)), len(pairs))


def _passed_scales(source: Source, models: Sequence[Model]) -> dict[int, float]:
    """Return the scale that was passed to attention, by layer, where that is known.

    Where none was it is the default of torch, 1 / sqrt(d_k); layers with a cap are left
    out.
    """
    if not isinstance(source, Captured):
        return {}
    frame = source.passed
    frame = frame[frame["source"].isin(BY_DEFAULT) & frame["cap"].isna()]
    passed = dict(zip(frame["layer"], frame["scale"].astype(float), strict=True))
    return {
        layer: one.d_k**-0.5 if math.isnan(passed[layer]) else passed[layer]
        for one in models
        for layer in one.layers
        if layer in passed
    }


def _rows_that_fit(model: Model, n_layers: int) -> int:
    """Return the number of rows of a sequence whose weights fit into memory."""
    n_sequences = min(len(model.sequences), MOST_SEQUENCES)
    each = n_layers * len(model.head_labels) * n_sequences * model.most_tokens
    return min(max(MOST_WEIGHTS // each, FEWEST_ROWS), model.most_tokens)


def _pair(
    ours: Sequence[Model], theirs: Sequence[Model]
) -> list[tuple[int, Model, Model]]:
    """Return each layer with the models of both sides that hold it."""
    mine, other = (
        {layer: model for model in models for layer in model.layers}
        for models in (ours, theirs)
    )
    layers = sorted(other)
    _require_same("layers", sorted(mine), layers)
    counts = ([len(side[n].sequences) for n in layers] for side in (mine, other))
    _require_same("sequences", *counts)
    return [(layer, mine[layer], other[layer]) for layer in layers]


def _require_same(name: str, ours: object, theirs: object) -> None:
    """Raise an `InputError` if a size of both sides differs."""
    if ours != theirs:
        raise InputError(f"port must have the reference's {name}, {theirs}, got {ours}")


class _LostError(Exception):
    """An array of the port is not finite."""


@dataclass
class LayerComparison:
    """The comparison of a layer, in the order of the computation."""

    layer: int
    port: Model
    reference: Model
    n_rows: int
    rtol: float
    drift: float  # relative rounding error of queries and keys in layers before
    passed: Mapping[str, float | None]  # scales, by side; None where not known
    lines: dict[tuple[str, int], list[tuple[float, ...]]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    is_last: bool = False  # whether later layers need no comparison
    has_one_key: bool = False
    #: Sides with computed weights, where those of the other were captured.
    computed: set[str] = field(default_factory=set)
    #: By side, the place of a key, first or last, that is a sink.
    sinks: dict[str, int] = field(default_factory=dict)
    has_weights: bool = True  # whether weights, or outputs, of all heads are compared

    def compare(self, roundings: float) -> None:
        """Compare queries, keys and values, then weights or outputs."""
        for sequence in range(min(len(self.reference.sequences), MOST_SEQUENCES)):
            try:
                ours, theirs = (self._read(side, sequence) for side in SIDES)
                self._drop_sinks(sequence, ours, theirs)
                if self._find_misshapen(ours, theirs):
                    return
                self._compare_vectors(sequence, ours, theirs, roundings)
                self._compare_heads(sequence, ours)
            except _LostError as lost:
                self._end("not finite", f"is not finite first in {lost}")
                return

    @property
    def heads(self) -> tuple[int, ...]:
        """Heads of queries."""
        return self.reference.head_labels

    def _note(
        self, cause: Cause, heads: Sequence[int], difference: float, rounding: float
    ) -> None:
        """Add a finding of some heads."""
        where = (self.layer,), tuple(heads), cause.quantity, cause.text
        numbers = difference, rounding, cause.explained, cause.port, cause.reference
        self.findings.append(Finding(*where, *numbers))

    def _end(self, quantity: str, text: str) -> None:
        """Add a finding after which nothing else can be compared."""
        cause = Cause(quantity, text, np.empty(0), explained=1.0)
        self._note(cause, self.heads, math.inf, 0.0)
        self.is_last = True

    def _read(self, side: str, sequence: int, head: int | None = None) -> Any:  # noqa: ANN401
        """Return vectors of a sequence, or rows of a head; raise if not finite."""
        model: Model = getattr(self, side)
        try:
            if head is None:
                return model.read_vectors(self.layer, sequence)
            return model.read_rows(Head(self.layer, head), sequence, self.n_rows)
        except NotFiniteError as error:
            lost = self._say_lost(model, sequence, head) or str(error)
            if side == "port":
                raise _LostError(lost) from None
            told = f"{side}, layer {self.layer}: {error}; first not finite: {lost}"
            raise InputError(told) from None
        except InputError as error:
            raise InputError(f"{side}, layer {self.layer}: {error}") from None

    def _say_lost(self, model: Model, sequence: int, head: int | None) -> str:
        """Return the first operation that is not finite, of the first such head."""
        for one in model.head_labels if head is None else [head]:
            arrays = model.take(Head(self.layer, one), sequence)
            made = [a for name, a in arrays.items() if name != ADDED]
            if not all(np.isfinite(a).all() for a in made):
                return say_first_lost(arrays)
        return ""

    def _drop_sinks(self, sequence: int, ours: Vectors, theirs: Vectors) -> None:
        """Drop keys and values that are sinks, and note their places, 0 or -1.

        With as many keys on both sides, both must have one.
        """
        vectors = dict(zip(SIDES, (ours, theirs), strict=True))
        self.sinks = {}
        for side, place in product(SIDES, (0, -1)):
            model: Model = getattr(self, side)
            if not vectors[side]["k"][:, place].any():
                heads = (Head(self.layer, head) for head in model.head_labels)
                if all(is_sink(model.take(one, sequence), place) for one in heads):
                    self.sinks[side] = place
        if len(self.sinks) < len(SIDES) and ours["k"].shape[1] == theirs["k"].shape[1]:
            self.sinks = {}
        for side, name in product(self.sinks, "kv"):
            if name in vectors[side]:
                one = vectors[side][name]
                vectors[side][name] = np.delete(one, self.sinks[side], axis=1)

    def _find_misshapen(self, ours: Vectors, theirs: Vectors) -> bool:
        """Return whether axes are swapped or keys repeated; refuse other sizes."""
        (heads, tokens, d), other = ours["q"].shape, theirs["q"].shape
        n_keys, wanted = ours["k"].shape[1], theirs["k"].shape[1]
        times = n_keys // wanted
        if (tokens, heads, d) == other and heads != tokens:
            if _are_near(ours["q"].swapaxes(0, 1), theirs["q"]):
                self._end("axes", "has heads and tokens swapped")
        elif n_keys == times * wanted and times > 1:
            told = f"has {n_keys} keys where the reference has {wanted}"
            each = ours["k"][:, ::times], ours["k"][:, :wanted]
            if any(_are_near(keys, theirs["k"]) for keys in each):
                told += f": each is repeated {times} times along the tokens"
                self._end("k", told)
        if not self.is_last:
            where = f" in layer {self.layer}"
            _require_same("heads" + where, heads, other[0])
            name = f"tokens: numbers of queries and keys{where}"
            _require_same(name, (tokens, n_keys), (other[1], wanted))
        return self.is_last

    def _compare_vectors(
        self, sequence: int, ours: Vectors, theirs: Vectors, roundings: float
    ) -> None:
        """Compare queries, keys and values, and update the rounding errors."""
        self.rounding = {
            side: max(map(rounding_of, one.values()))
            for side, one in zip(SIDES, (ours, theirs), strict=True)
        }
        by_format = roundings * max(self.rounding.values())
        allowed, near = max(LEAST, by_format, GROWTH * self.drift), [self.drift]
        for name in [one for one in ours if one in theirs]:
            count = max(len(ours[name]), len(theirs[name]))
            port, reference = (
                np.repeat(one[name], count // len(one[name]), axis=0)
                for one in (ours, theirs)
            )
            if port.shape != reference.shape:
                continue  # another d_k: scores are compared
            each = [_apart(*both) for both in zip(port, reference, strict=True)]
            heads = []
            for place, head in enumerate(self.heads):
                norms, apart = each[place * count // len(self.heads)]
                self._add(name, head, *norms, apart, allowed)
                heads += [head] * (apart > allowed)
            largest = max(apart for _, apart in each)
            if not heads:
                near += [largest] * (name != "v")
            elif name not in {one.quantity for one in self.findings}:
                first = ours["k"].shape[1] - len(port[0])
                causes = self._find_misplaced(sequence, name, ours[name])
                causes = causes or explain_vectors(
                    name, port, reference, allowed, first
                )
                if not causes and largest > self.rtol:
                    told = f"has another {{name}}: {largest:.2g} of its norm apart"
                    causes = (Cause(name, told, port),)
                for cause in causes:
                    self._note(cause, heads, largest, allowed)
        self.drift = max(near)

    def _find_misplaced(
        self, sequence: int, name: str, port: Array
    ) -> tuple[Cause, ...]:
        """Return which vectors of the reference heads of the port have; () if none."""
        count = min(len(self.reference.sequences), MOST_SEQUENCES)
        known = {
            f"{which} {head}" + f" of sequence {n}" * (n != sequence): one
            for n in sorted(range(count), key=lambda n: n != sequence)
            for which, heads in self._read("reference", n).items()
            for head, one in enumerate(heads)
        }
        found = [
            next((label for label, one in known.items() if _are_near(head, one)), "")
            for head in port
        ]
        own = [f"{name} {n}" for n in range(len(port))]
        told = f"has in place of {name}, by head, the reference's "
        told += ", ".join(label or "none" for label in found[:MOST_NUMBERS])
        cause = Cause(name, told, port, explained=1.0)
        moved = sum(
            label not in {"", mine} for label, mine in zip(found, own, strict=True)
        )
        is_sure = 2 * sum(map(bool, found)) >= len(found) and moved > 0
        return (cause,) if is_sure and (all(found) or moved > 1) else ()

    def _add(self, name: str, head: int, *numbers: float) -> None:
        """Add the numbers of a row of the table."""
        self.lines.setdefault((name, head), []).append(numbers)

    def _compare_heads(self, sequence: int, ours: Vectors) -> None:
        """Compare weights, or outputs, of each head."""
        self.has_one_key = ours["k"].shape[1] == 1
        alike = []
        for number, head in enumerate(self.heads):
            rows = [self._read(side, sequence, head) for side in SIDES]
            is_whole = len(rows[0].places) == len(ours["q"][0])
            sides = self._with_weights(rows)
            if sides is None:
                self.has_weights = False
                continue
            port, reference = sides
            more = number, len(self.heads), ours["k"], is_whole
            alike.append(self._compare_head(head, HeadPair(port, reference, *more)))
        same_scores = alike and all(alike)
        if same_scores and {one.quantity for one in self.findings} <= {"q", "k"}:
            self.findings.clear()  # written otherwise, to the same scores

    def _with_weights(self, rows: Sequence[Rows]) -> list[HeadSide] | None:
        """Return both sides of a head, with weights or with outputs; None with neither.

        Weights of a side that has outputs are computed by its mask, bias and scale, if
        these are known and reproduce the outputs.
        """
        masked = [one for one in rows if one.added is not None]
        rows = _some(rows, [np.any(keys_seen(one), axis=1) for one in masked])
        sides = []
        for side, one in zip(SIDES, rows, strict=True):
            name = "weights" if "weights" in one.made else "outputs"
            if name not in one.made:
                return None
            rounding = max(self.rounding[side], rounding_of(one.made[name]))
            sides.append(HeadSide(one, rounding, self.passed.get(side)))
        both = list(zip(SIDES, sides, strict=True))
        lacking = [side for side, half in both if "weights" not in half.rows.made]
        is_sure = all(one.is_sure for one in sides)
        if len(lacking) == 1:
            if not is_sure:
                return None
            self.computed.update(lacking)
        rows = []
        for side, half in both:
            made = {"weights": np.asarray(half.weights)} if is_sure else half.rows.made
            own, place = replace(half.rows, made=made), self.sinks.get(side)
            rows.append(own if place is None else without_key(own, place))
        if is_sure:
            # rows of padding have even weights, where a large number hides all keys
            even = [are_even(one, rounding_of(one.weights)) for one in rows]
            rows = _some(rows, [~one for one in even])
        return [replace(one, rows=r) for one, r in zip(sides, rows, strict=True)]

    def _compare_head(self, head: int, pair: HeadPair) -> bool:
        """Compare weights or outputs of a head; return whether scores are the same."""
        port, reference = (side.rows.made for side in (pair.port, pair.reference))
        name = next(one for one in ("weights", "outputs") if one in port)
        norms, apart = _apart(port[name], reference[name])
        allowed, causes = pair.allowed_by(pair.reference.d_k**-0.5), tuple[Cause, ...]()
        if is_alike := apart <= allowed and pair.sees_the_same:
            is_alike = math.isfinite(pair.score_factor)
            hidden = pair.find_hidden_scale() if apart > LEAST else None
            if hidden:
                self._note(hidden, [head], apart, allowed)
                is_alike = False
        elif pair.port.weights is None or pair.reference.weights is None:
            allowed = pair.allowed_by(1.0, self.drift)
        else:
            direct, (apart, allowed, causes) = apart, pair.explain()
            if name == "outputs" and direct <= allowed:  # the rule is less exact
                apart, causes = direct, ()
        self._add(name, head, *norms, apart, allowed)
        if apart <= allowed:
            self.drift = max(self.drift, apart)
        elif not causes and apart > self.rtol:
            told = f"has other {name} of the same queries and keys"
            causes = (Cause(name, told, port[name]),)
            factor = best_factor(port[name], reference[name]).item()
            if _apart(port[name], factor * reference[name])[1] <= allowed:
                told = f"multiplies {name} by {{port:.4g}}"
                causes = (Cause(name, told, port[name], 1, factor, 1.0, explained=1.0),)
        for cause in causes:
            self._note(cause, [head], apart, allowed)
        return is_alike


def is_sink(arrays: Mapping[str, Array], place: int) -> bool:
    """Return whether a key of a head, the first or last, is there for its logit alone.

    Key and value are 0, and all rows add the same number to its score.
    """
    if len(arrays["k"]) <= len(arrays["q"]) or arrays["k"][place].any():
        return False
    if ADDED in arrays:
        added = arrays[ADDED][:, place]
        is_same = np.ptp(added) == 0.0 and added[0] > UNSEEN
    else:
        is_same = "weights" not in arrays or arrays["weights"][:, place].all()
    return bool(is_same) and not ("v" in arrays and arrays["v"][place].any())


def without_key(rows: Rows, place: int) -> Rows:
    """Return rows without their first key (0) or last one (-1), which is no token."""
    of_keys = {name: rows.made[name] for name in OF_KEYS if name in rows.made}
    made = {name: np.delete(one, place, axis=1) for name, one in of_keys.items()}
    if "v" in rows.made:
        made["v"] = np.delete(rows.values, place, axis=0)
    return replace(
        rows,
        keys=np.delete(rows.keys, place, axis=0),
        scores=np.delete(rows.scores, place, axis=1),
        places=rows.places - 1,
        shift=rows.shift - 1,
        made={**rows.made, **made},
    )


def say_first_lost(arrays: Mapping[str, Array]) -> str:
    """Return the first operation of attention whose result is not finite.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        One sequence of a head: ``q`` and ``k``, and of ``weights``, ``v``, ``outputs``
        and ``added`` those that are known.
    """
    lost = {name: ~np.isfinite(array) for name, array in arrays.items()}
    for name in ("q", "k", "v"):
        if name in lost and lost[name].any():
            return f"{name} is what attention is given: look at what makes it"
    made = "weights" if "weights" in lost else "outputs"
    rows = lost[made].any(axis=1)
    if not rows.any():
        return "the output: weights and values are finite"
    queries, keys = arrays["q"][rows], arrays["k"]
    with np.errstate(over="ignore", invalid="ignore"):
        largest = float(np.abs(queries @ keys.T).max())
    narrow = format_of([arrays["q"], arrays["k"]])
    if not math.log(max(largest, 1.0)) < narrow.log_largest:
        return (
            f"the scores: q and k of {narrow.name} make up to {largest:.3g}, and it "
            f"holds {narrow.largest:.6g}"
        )
    added = arrays.get(ADDED)
    if added is not None and (added[rows] <= UNSEEN).all():
        return "the mask: it hides every key of these rows"
    whole = " of whole rows, as of a mask that hides every key"
    is_whole = bool(lost[made][rows].all())
    return f"the mask, softmax or later{whole * is_whole}: which cannot be told"


def _some(rows: Sequence[Rows], chosen: Sequence[NDArray[np.bool_]]) -> list[Rows]:
    """Return the rows of both sides that all masks choose; all rows if none is."""
    kept = np.logical_and.reduce([np.ones(len(rows[0].places), bool), *chosen])
    return [one.some(kept) for one in rows] if kept.any() else list(rows)


def _apart(port: Array, reference: Array) -> tuple[tuple[float, float], float]:
    """Return the norms of two arrays, and their relative difference."""
    ours, theirs, away = (
        float(np.linalg.norm(one)) for one in (port, reference, port - reference)
    )
    return (ours, theirs), away / theirs if theirs else away


def rounding_of(array: Array) -> float:
    """Return the relative rounding error of an array, at most that of bfloat16."""
    some = array.ravel()[:: -(-array.size // MOST_RECOGNISED)]
    return min(rounding_error_of([some]), BFLOAT16)


def _are_near(port: Array, reference: Array) -> bool:
    """Return whether two arrays agree to `RTOL`."""
    return port.shape == reference.shape and _apart(port, reference)[1] <= RTOL


def _join(
    results: Sequence[LayerComparison],
    rtol: float,
    left_out: tuple[str, ...],
    n_layers: int,
) -> Comparison:
    """Return the comparison of all layers."""
    import pandas as pd

    lines = [
        (one.layer, head, name, *np.mean(numbers, axis=0).tolist())
        for one in results
        for (name, head), numbers in sorted(
            one.lines.items(), key=lambda line: (line[0][1], STAGES.index(line[0][0]))
        )
    ]
    frame = pd.DataFrame.from_records(lines, columns=list(COLUMNS))
    found = [one for result in results for one in result.findings]
    # inputs differ after the first fault: later layers count where a cause is certain
    first = [one for one in found if one.layers == found[0].layers]
    explained = {one.is_vector for one in first if one.explained}
    causes = {words_before_numbers(one.text) for one in first if one.explained}
    counted = [
        one for one in first if one.explained or one.is_vector not in explained
    ] + [
        one
        for one in found[len(first) :]
        if one.explained >= (ALL if one.is_vector else EXPLAINS)
        and (not one.is_vector or words_before_numbers(one.text) in causes)
    ]
    sizes = results[0].reference.sizes
    computed = sorted({side for one in results for side in one.computed})
    notes = [COMPUTED.format(" and ".join(computed))] * bool(computed)
    if all(one.has_one_key for one in results):
        notes = [ONE_KEY]
    known = {one.layers for one in counted if one.is_vector}
    if any(one.is_vector and one.layers not in known for one in found[len(first) :]):
        notes.insert(0, OTHER_INPUTS.format(found[0].layers[0]))
    before = [one for one in results if found and one.layer < found[0].layers[0]]
    is_of_vectors = bool(first) and first[0].is_vector and not explained
    if before and before[-1].has_weights and is_of_vectors:
        notes.insert(0, BETWEEN.format(before[-1].layer))
    findings = _merge(counted, sizes)
    note = "\n  ".join(notes)
    return Comparison(findings, frame, rtol, left_out, n_layers, sizes[1], note)


def words_before_numbers(text: str) -> str:
    """Return the words of a cause up to its first comma or colon."""
    return text.partition(":")[0].partition(",")[0]


def _merge(found: Sequence[Finding], sizes: Sequence[int]) -> tuple[Finding, ...]:
    """Return findings, those of the same cause in several heads and layers as one."""
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
        text = next((start for start in FITTED if text.startswith(start)), text)
        groups.setdefault((kind, text), []).append(one)
    merged = []
    for (kind, _), group in groups.items():
        names = dict.fromkeys(one.quantity for one in group)
        ((text, _),) = Counter(one.text for one in group).most_common(1)
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
    """Return the numbers that texts of causes contain.

    ``port``, ``reference`` and ``factor``, their ratio, are medians; ``ports`` and
    ``references`` are lists by head in the first layer, which ``of_layer`` names where
    other layers differ.
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
    """Return the parameters of port and reference, shape (2, n_findings)."""
    return np.array([[getattr(one, side) for one in group] for side in SIDES])


def say_sink(group: Sequence[Finding], text: str, _: Sequence[int]) -> str:
    """Return the text that all heads of other sinks have in common, or their logits."""
    told = "has the sink logit {ports}, the reference {references}{of_layer}"
    return text if text and {one.text for one in group} == {text} else told


def say_grouping(group: Sequence[Finding], _: str, sizes: Sequence[int]) -> str:
    """Return the text of other key heads: tiled, or which they are."""
    heads, count = sizes[1:]
    met = {one.heads[0]: one.port for one in group}
    tiled = {n: n % count for n in range(heads) if n % count != n * count // heads}
    told = "attends to key head {ports} where the reference attends to {references}"
    return TILED if met == tiled else told + "{of_layer}"


def say_bias(group: Sequence[Finding], text: str, _: Sequence[int]) -> str:
    """Return the text of other slopes by distance, or other multiples of a bias."""
    port, reference = _parameters(group)
    if np.isnan(port).any():  # by relative position: it has no slope
        return group[int(np.argmax(np.isnan(port)))].text
    if not reference.any():
        return "adds a bias by distance, {ports} per position, the reference none"
    ratios = port / np.where(reference == 0.0, math.nan, reference)
    largest = np.abs(ratios).max()
    if largest < ALIKE:
        return "adds no bias, the reference does"
    if np.ptp(ratios) <= ALIKE * largest:
        reversed_ = np.abs(ratios + 1.0).max() < ALIKE
        told = "adds its bias {factor} times"
        return "adds its bias with the sign reversed" if reversed_ else text or told
    if (reference == 1.0).all():
        return "multiplies its bias by another factor in each head: {ports}"
    told = "has another slope of its bias by distance in each head: {ports}, the "
    told += "reference {references}{of_layer}"
    is_same = np.allclose(np.sort(port), np.sort(reference), rtol=ALIKE)
    return told + ": those of other heads" * is_same


def say_scale(group: Sequence[Finding], text: str, sizes: Sequence[int]) -> str:
    """Return the text of other scales: one for all, by layer, or by head."""
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
    return f"has another scale by {by}, {say_ends(ratios)} times the reference's"


#: Functions of findings of a quantity, a text and sizes, which return a common text.
SAY = {
    "sink": say_sink,
    "grouping": say_grouping,
    "bias": say_bias,
    "scale": say_scale,
}

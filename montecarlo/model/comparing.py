"""A port beside its reference: where they part, and why.

Each layer is gone through in the order of the computation: queries, keys and values;
weights, or outputs, held against what the reference would make of the port's own
queries and keys.  What rounding in the formats of both sides makes is no difference.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from montecarlo.attention.softmax import Array
from montecarlo.errors import InputError
from montecarlo.model.answers import say_numbers
from montecarlo.model.arrays import (
    ADDED,
    AXES,
    UNSEEN,
    Head,
    Model,
    NotFiniteError,
    Rows,
)
from montecarlo.model.captured import Captured
from montecarlo.model.causes import (
    ALL,
    EXPLAINS,
    LEAST,
    NEAR,
    ROUNDINGS,
    Cause,
    HeadPair,
    HeadSide,
    explain_vectors,
    name_factor,
)
from montecarlo.model.checking import Source, open_source
from montecarlo.model.fits import format_of, rounding_error_of
from montecarlo.model.scales import are_even
from montecarlo.names import require_number

if TYPE_CHECKING:  # as long to import as all the rest
    import pandas as pd

#: How far apart they may be, beyond rounding, where nothing known explains it.
RTOL = 0.01
#: Quantities in the order in which a model makes them.
STAGES = ("q", "k", "v", "weights", "outputs")
#: Sequences that are compared at most, and numbers of weights in all: 256 MB.
MOST_SEQUENCES, MOST_WEIGHTS, FEWEST_ROWS = 8, 2**25, 64
#: Layers may make so many times as much of the rounding of those before.
GROWTH = 3.0
#: Queries and keys of a sequence at least.
ONE = {"q": 1, "k": 1}
#: What bfloat16 moves a number by: few numbers may look as if they had fewer bits.
BFLOAT16 = 2.0**-8
#: Numbers by which a format is recognised.
MOST_RECOGNISED = 2**14
SIDES = ("port", "reference")
VECTORS = ("q", "k", "v")
#: Of one side, by name; axes (head, token, d).
Vectors = dict[str, Array]
#: Findings that are printed.
MOST_LINES = 12


class Difference(NamedTuple):
    """A head and a quantity in which a port is not as its reference.

    Attributes
    ----------
    layer, head : int
    quantity : str
        ``q``, ``k``, ``v``, ``weights`` or ``outputs``; of the first difference also
        the cause: ``scale``, ``mask``, ``cap``, ``bias``, ``sink`` and others.
    port, reference : float
        Its value; of an array the norm.
    difference : float
        The port's value less the reference's, as a part of that; of an array the norm
        of the difference over the reference's; of weights and outputs to what the
        reference would make of the port's queries and keys.
    rounding : float
        What rounding can make of it.
    """

    layer: int
    head: int
    quantity: str
    port: float
    reference: float
    difference: float
    rounding: float = math.nan


class Finding(NamedTuple):
    """Why a layer of the port is not as the reference's."""

    layers: tuple[int, ...]
    heads: tuple[int, ...]
    quantity: str
    text: str  # what the port does
    explained: float  # the part of the difference that it explains; 0 without a cause
    port: float = math.nan
    reference: float = math.nan


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Two models side by side.

    Attributes
    ----------
    frame : DataFrame
        One row per head and quantity, columns as of `first`.
    rtol : float
    first : Difference or None
        The first, in the order in which a model computes: ``layer``, ``head``,
        ``quantity``, ``port``, ``reference``, ``difference``, ``rounding``.
    findings : tuple of Finding
        What is not as in the reference, and why, in that order.
    left_out : tuple of str
        What was not compared: rows that were not captured, and attention that was not
        followed.  Where there is some, that no head differs cannot be told.
    """

    frame: "pd.DataFrame"
    rtol: float
    first: Difference | None
    findings: tuple[Finding, ...] = ()
    left_out: tuple[str, ...] = ()
    n_layers: int = 0
    n_heads: int = 0
    note: str = ""  # what else is to be known, as that there is a single key

    def __str__(self) -> str:
        """Say in one sentence whether and why they differ; then layer by layer."""
        if self.first is None:
            return self._say_alike()
        lines = [self._say(one) for one in self.findings[:MOST_LINES]]
        if len(self.findings) > 1:
            lines.insert(0, f"{lines[0]}; {len(self.findings) - 1} more:")
        if len(self.findings) > MOST_LINES:
            lines.append(f"and {len(self.findings) - MOST_LINES} more")
        return "\n  ".join([*lines, *map("compared: {}".format, self.left_out)])

    __repr__ = __str__

    def _say_alike(self) -> str:
        """Say that nothing differs, and how much rounding would make."""
        ratio = (self.frame["difference"] / self.frame["rounding"]).abs().max()
        told = "no head differs by more than rounding"
        if ratio > 1.0:
            told = (
                f"no head differs by more than {self.rtol:g}, and nothing explains it"
            )
        if ratio > 0.0:
            told += f": at most {ratio:.2g} times what rounding can make"
        told = "; ".join(filter(None, [told, self.note]))
        if not self.left_out:
            return told
        return f"cannot be told: {', '.join([told, *self.left_out])}"

    def _say(self, one: Finding) -> str:
        """Say what the port does, and in which layers and heads."""
        layers = f"layer{'s' * (len(one.layers) > 1)} {say_numbers(one.layers)}"
        if 1 < len(one.layers) == self.n_layers:
            layers = "all layers"
        heads = f", head{'s' * (len(one.heads) > 1)} {say_numbers(one.heads)}"
        if len(one.heads) in {0, self.n_heads}:
            heads = ""
        part = ""
        if 0.0 < one.explained < ALL:
            part = f" (explains {one.explained:.0%} of the difference)"
        return f"the port {one.text}; {layers}{heads}{part}"


def compare(
    port: Source,
    reference: Source,
    rtol: float = RTOL,
    axes: Sequence[str] | None = None,
    names: str | None = None,
) -> Comparison:
    """Set what was captured of a port beside the same of its reference, head by head.

    Both have to have seen the same tokens.  Of each head 8 sequences are looked at; all
    rows where the weights of all heads fit into 256 MB.

    Parameters
    ----------
    port, reference : Captured, mapping, or path
        As for `assert_attention_scale`.
    rtol : float
        From what difference on they part where nothing known explains it; what is
        explained counts where it is more than rounding can make.
    axes, names
        Of arrays and files, as for `montecarlo.observe`.

    Raises
    ------
    InputError
        If they cannot be compared, or one is not usable.
    """
    require_number("rtol", rtol, 0.0, 1.0, ends=False)
    captured = [one for one in (port, reference) if isinstance(one, Captured)]
    left_out = [f"of {one.rows_kept}" for one in captured if one.rows_kept]
    left_out += [
        f"attention was not followed: {told}" for one in captured for told in one.missed
    ]
    results, drift = [], 0.0
    with ExitStack() as stack:
        sides = [
            open_source(
                one,
                Path(stack.enter_context(TemporaryDirectory())),
                AXES if axes is None and isinstance(one, Mapping) else axes,
                names,
                ONE,
            )
            for one in (port, reference)
        ]
        pairs = _pair(*sides)
        reference_model = pairs[0][2]
        n_rows = _rows_that_fit(reference_model, len(pairs))
        if n_rows < reference_model.most_tokens:
            left_out.append(f"of {n_rows} rows of {reference_model.most_tokens}")
        for place, (layer, ours, theirs) in enumerate(pairs):
            one = LayerComparison(layer, ours, theirs, n_rows, rtol, drift)
            one.compare(ROUNDINGS * math.sqrt(place + 1.0))
            results.append(one)
            drift = one.drift
            if one.is_last:
                break
    return _join(results, rtol, tuple(dict.fromkeys(left_out)), len(pairs))


def _rows_that_fit(model: Model, n_layers: int) -> int:
    """Return how many rows of each sequence fit into memory, of all heads."""
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
    common = [n for n in sorted(other) if n in mine]
    counts = [[len(side[n].sequences) for n in common] for side in (mine, other)]
    for name, one, wanted in (
        ("layers", sorted(mine), sorted(other)),
        ("sequences", *counts),
    ):
        if one != wanted:
            raise InputError(
                f"port must have the reference's {name}, {wanted}, got {one}"
            )
    return [(layer, mine[layer], other[layer]) for layer in common]


class Place(NamedTuple):
    """A cause, where it was found, and the difference that it explains."""

    layer: int
    heads: tuple[int, ...]
    cause: Cause
    difference: float
    rounding: float


class _LostError(Exception):
    """What in a port is not finite."""


@dataclass
class LayerComparison:
    """A layer of both sides, gone through in the order of the computation."""

    layer: int
    port: Model
    reference: Model
    n_rows: int
    rtol: float
    drift: float  # what rounding made of queries and keys until here
    lines: dict[tuple[str, int], list[tuple[float, ...]]] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    is_last: bool = False  # whether later layers say nothing
    has_one_key: bool = False

    def compare(self, roundings: float) -> None:
        """Compare queries, keys and values, then weights or outputs."""
        for sequence in range(min(len(self.reference.sequences), MOST_SEQUENCES)):
            try:
                ours, theirs = (self._read(side, sequence) for side in SIDES)
                self._require_shapes(ours, theirs)
                if self.is_last:
                    return
                self._compare_vectors(ours, theirs, roundings)
                self._compare_heads(sequence, ours)
            except _LostError as lost:
                cause = Cause("not finite", f"is not finite first in {lost}", 1.0)
                self._note(cause, self.heads, math.inf, 0.0)
                self.is_last = True
                return

    @property
    def heads(self) -> tuple[int, ...]:
        """Heads of queries."""
        return self.reference.head_labels

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Entries of a query of the reference, heads, and heads of keys."""
        key_heads = len(set(self.reference.key_heads.values()))
        return self.reference.d_k, len(self.heads), key_heads

    def _note(
        self, cause: Cause, heads: Sequence[int], difference: float, rounding: float
    ) -> None:
        self.places.append(Place(self.layer, tuple(heads), cause, difference, rounding))

    def _read(self, side: str, sequence: int, head: int | None = None) -> Any:  # noqa: ANN401
        """Read vectors of a sequence, or rows of a head; name what is not finite."""
        model: Model = getattr(self, side)
        try:
            if head is None:
                return model.read_vectors(self.layer, sequence)
            return model.read_rows(Head(self.layer, head), sequence, self.n_rows)
        except NotFiniteError as error:
            lost = str(error)
            for one in model.head_labels if head is None else [head]:
                arrays = model.take(Head(self.layer, one), sequence)
                if not all(
                    np.isfinite(a).all() for n, a in arrays.items() if n != ADDED
                ):
                    lost = say_first_lost(arrays)
                    break
            told = f"{side}, layer {self.layer}: {error}; first not finite: {lost}"
            if side == "port":
                raise _LostError(lost) from None
            raise InputError(told) from None
        except InputError as error:
            raise InputError(f"{side}, layer {self.layer}: {error}") from None

    def _require_shapes(self, ours: Vectors, theirs: Vectors) -> None:
        """Refuse other sizes, and name swapped axes and repeated keys."""
        cause = None
        (heads, tokens, d), other = ours["q"].shape, theirs["q"].shape
        n_keys, wanted = ours["k"].shape[1], theirs["k"].shape[1]
        times = n_keys // wanted
        if (tokens, heads, d) == other and heads != tokens:
            if _are_near(ours["q"].swapaxes(0, 1), theirs["q"]):
                cause = Cause("axes", "has heads and tokens swapped", 1.0)
        elif n_keys == times * wanted and times > 1:
            told = f"has {n_keys} keys where the reference has {wanted}"
            for keys in (ours["k"][:, ::times], ours["k"][:, :wanted]):
                if keys.shape == theirs["k"].shape and _are_near(keys, theirs["k"]):
                    told += f": each is repeated {times} times along the tokens"
                    cause = Cause("k", told, 1.0)
                    break
        if cause is not None:
            self._note(cause, self.heads, math.inf, 0.0)
            self.is_last = True
            return
        for name, one, wanted in (
            ("heads", heads, other[0]),
            ("tokens", (tokens, n_keys), (other[1], theirs["k"].shape[1])),
        ):
            if one != wanted:
                raise InputError(
                    f"port must have the reference's {name} in layer {self.layer}, "
                    f"{wanted}, got {one}"
                )

    def _compare_vectors(
        self, ours: Vectors, theirs: Vectors, roundings: float
    ) -> None:
        """Compare queries, keys and values, and note what rounding made of them."""
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
            times = len(self.heads) // count
            each = [_apart(*both) for both in zip(port, reference, strict=True)]
            heads = []
            for head, (norms, apart) in zip(
                self.heads, (one for one in each for _ in range(times)), strict=True
            ):
                self._add(name, head, *norms, apart, allowed)
                heads += [head] * (apart > allowed)
            largest = max(apart for _, apart in each)
            if not heads:
                near += [largest] * (name != "v")
            elif not self._has(name):
                causes = explain_vectors(name, port, reference, allowed, self.sizes)
                if not causes and largest > self.rtol:
                    told = f"has another {{name}}: {largest:.2g} of its norm apart"
                    causes = (Cause(name, told, 0.0),)
                for cause in causes:
                    self._note(cause, heads, largest, allowed)
        self.drift = max(near)

    def _has(self, quantity: str) -> bool:
        return any(one.cause.quantity == quantity for one in self.places)

    def _add(self, name: str, head: int, *numbers: float) -> None:
        self.lines.setdefault((name, head), []).append(numbers)

    def _compare_heads(self, sequence: int, ours: Vectors) -> None:
        """Compare weights, or outputs, of each head."""
        self.has_one_key = ours["k"].shape[1] == 1
        alike = []
        for number, head in enumerate(self.heads):
            rows = [self._read(side, sequence, head) for side in SIDES]
            is_whole = len(rows[0].places) == len(ours["q"][0])
            rows = _without_padding(rows)
            made = [n for n in ("weights", "outputs") if all(n in r.made for r in rows)]
            if not made:
                continue
            port, reference = (
                HeadSide(one, max(self.rounding[side], rounding_of(one.made[made[0]])))
                for side, one in zip(SIDES, rows, strict=True)
            )
            more = number, self.sizes, ours["k"], ours.get("v")
            pair = HeadPair(port, reference, *more, is_whole)
            alike.append(self._compare_head(head, pair))
        if all(alike) and {one.cause.quantity for one in self.places} <= {"q", "k"}:
            self.places.clear()  # written otherwise, to the same scores

    def _compare_head(self, head: int, pair: HeadPair) -> bool:
        """Compare weights or outputs of a head: tell whether scores are the same."""
        port, reference = (side.rows.made for side in (pair.port, pair.reference))
        name = next(one for one in ("weights", "outputs") if one in port)
        norms, apart = _apart(port[name], reference[name])
        allowed, causes = pair.allowed_by(1.0 / pair.root), tuple[Cause, ...]()
        if is_alike := apart <= allowed and pair.sees_the_same:
            is_alike = math.isfinite(pair.score_factor)
            hidden = apart > LEAST and pair.scale_beyond_rounding()
            if hidden:
                self._note(hidden, [head], apart, allowed)
                is_alike = False
        elif pair.reference.weights is None:  # how scores are scaled is not known
            allowed = pair.allowed_by(1.0, self.drift)
        else:
            direct, (apart, allowed, causes) = apart, pair.explain()
            if name == "outputs" and direct <= allowed:  # the law is less exact
                apart, causes = direct, ()
        self._add(name, head, *norms, apart, allowed)
        if apart <= allowed:
            self.drift = max(self.drift, apart)
        elif not causes and apart > self.rtol:
            told = f"has other {name} of the same queries and keys"
            causes = (Cause(name, told, 0.0),)
        for cause in causes:
            self._note(cause, [head], apart, allowed)
        return is_alike

    def differences(self) -> list[Difference]:
        """Return the lines of the table, means over sequences."""
        order = sorted(self.lines, key=lambda one: (one[1], STAGES.index(one[0])))
        return [
            Difference(self.layer, h, n, *np.mean(self.lines[n, h], axis=0).tolist())
            for n, h in order
        ]


def say_first_lost(arrays: Mapping[str, Array]) -> str:
    """Say which operation of attention first gave a number that is not finite.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Of one sequence of a head: ``q`` and ``k``, and of ``weights``, ``v``,
        ``outputs`` and ``added`` those that are known.
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
    if added is not None and (added[rows] <= UNSEEN).all(axis=1).all():
        return "the mask: it hides every key of these rows"
    if added is not None and (added[rows] > UNSEEN).any(axis=1).all():
        return f"softmax or later: {narrow.name} holds q k, and keys are not all hidden"
    whole = " of whole rows, as of a mask that hides every key" * bool(
        lost[made][rows].all()
    )
    return f"the mask, softmax or later{whole}: which cannot be told"


def _without_padding(rows: list[Rows]) -> list[Rows]:
    """Leave out rows whose keys are all hidden on a side: weights there are even."""
    if not all("weights" in one.made for one in rows):
        return rows
    even = [are_even(one, rounding_of(one.weights)) for one in rows]
    kept = ~(even[0] | even[1])
    return [one.some(kept) for one in rows] if kept.any() else rows


def _apart(port: Array, reference: Array) -> tuple[tuple[float, float], float]:
    """Return the norms of two arrays, and how far they are apart."""
    ours, theirs, away = (
        float(np.linalg.norm(one)) for one in (port, reference, port - reference)
    )
    return (ours, theirs), away / theirs if theirs else away


def rounding_of(array: Array) -> float:
    """Return what rounding moves numbers by: of bfloat16, or less."""
    some = array.ravel()[:: -(-array.size // MOST_RECOGNISED)]
    return min(rounding_error_of([some]), BFLOAT16)


def _are_near(port: Array, reference: Array) -> bool:
    return _apart(port, reference)[1] <= RTOL


def _join(
    results: Sequence[LayerComparison],
    rtol: float,
    left_out: tuple[str, ...],
    n_layers: int,
) -> Comparison:
    """Return what layers' comparisons say together."""
    import pandas as pd

    lines = [line for one in results for line in one.differences()]
    frame = pd.DataFrame.from_records(lines, columns=Difference._fields)
    places = [place for one in results for place in one.places]
    # after the first fault inputs differ, and what is explained has more effects
    start = min((one.layer for one in places), default=0)
    explained = {
        one.cause.quantity in VECTORS
        for one in places
        if one.layer == start and one.cause.explained
    }
    places = [one for one in places if _counts(one, start, explained)]
    heads = results[0].heads
    findings = _merge(places)
    first = None
    if places:
        one = places[0]
        cause, head = one.cause, one.heads[0]
        line = [
            x
            for x in lines
            if x[:3] == (one.layer, head, cause.quantity) and math.isnan(cause.port)
        ]
        apart = one.difference
        if math.isfinite(cause.port) and cause.reference:
            apart = cause.port / cause.reference - 1.0
        more = cause.quantity, cause.port, cause.reference, apart, one.rounding
        first = line[0] if line else Difference(one.layer, head, *more)
    one_key = "a single key: all weights are 1, and the scale does not matter here"
    note = one_key if all(x.has_one_key for x in results) else ""
    sizes = n_layers, len(heads)
    return Comparison(frame, rtol, first, findings, left_out, *sizes, note)


def _counts(one: Place, start: int, explained: set[bool]) -> bool:
    """Tell whether a place says more than what is explained before it."""
    is_vector = one.cause.quantity in VECTORS
    if one.layer == start:
        return one.cause.explained > 0.0 or is_vector not in explained
    return one.cause.explained >= (ALL if is_vector else EXPLAINS)


def _merge(places: Sequence[Place]) -> tuple[Finding, ...]:
    """Return findings: what is the same in several heads and layers is one."""
    groups: dict[tuple[str, str], list[Place]] = {}
    for one in places:
        kind = "q" if one.cause.quantity in VECTORS else one.cause.quantity
        # heads see other parts of a mask
        text = one.cause.text if kind != "mask" or "softmax" in one.cause.text else ""
        groups.setdefault((kind, text), []).append(one)
    found = []
    for (quantity, _), group in groups.items():
        layers = sorted({one.layer for one in group})
        heads = sorted({head for one in group for head in one.heads})
        names = " and ".join(dict.fromkeys(one.cause.quantity for one in group))
        (common, _), *_ = Counter(one.cause.text for one in group).most_common(1)
        said = common or say_scale(group)
        explained = group[0].cause.explained
        cause = group[0].cause
        numbers = explained, cause.port, cause.reference
        said = said.replace("{name}", names)
        found.append(Finding(tuple(layers), tuple(heads), quantity, said, *numbers))
    return tuple(found)


def say_scale(group: Sequence[Place]) -> str:
    """Say what scales are beside the reference's, of some heads by their layers."""
    first = group[0].cause
    port, reference = (
        np.array([getattr(one.cause, side) for one in group]) for side in SIDES
    )
    ratios, layers = port / reference, np.array([one.layer + 1.0 for one in group])
    near = max(NEAR, *(one.rounding for one in group)) * np.median(np.abs(ratios))
    if np.ptp(ratios) <= near:
        middle = [float(np.median(one)) for one in (port, reference, ratios)]
        names = [
            name_factor(one, *first.sizes, is_scale=number < 2)
            for number, one in enumerate(middle)
        ]
        told = "has scale {} where the reference has {}: {} times".format(*names)
        again = abs(middle[0] / middle[1] ** 2 - 1.0) < NEAR
        return told + ", as if it were applied again" * again
    for power, does in ((1.0, "divided"), (-1.0, "multiplied")):
        if np.ptp(ratios * layers**power) < near:
            return f"has another scale by layer: {does} by the layer's number"
    by_head: dict[tuple[int, ...], list[float]] = {}
    for one, ratio in zip(group, ratios, strict=True):
        by_head.setdefault(one.heads, []).append(ratio)
    by = "head" if all(np.ptp(one) <= near for one in by_head.values()) else "layer"
    ends = f"{ratios.min():.4g} to {ratios.max():.4g}"
    return f"has another scale by {by}, {ends} times the reference's"

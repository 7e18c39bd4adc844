"""For tests of others: that a model divides by what it should, and as another does."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from montecarlo.attention.softmax import Array
from montecarlo.errors import InputError, show
from montecarlo.model.answers import (
    RTOL,
    YES,
    ScaleAnswer,
    answer_scales,
    say_answer,
    say_findings,
)
from montecarlo.model.arrays import (
    ADDED,
    NAMES,
    UNSEEN,
    Head,
    Model,
    NotFiniteError,
    Rows,
    open_arrays,
)
from montecarlo.model.captured import Captured
from montecarlo.model.expected import Caller, Config, find_expected
from montecarlo.model.files import open_files
from montecarlo.model.fits import format_of
from montecarlo.model.scales import find_scale, find_scales
from montecarlo.names import require_number

if TYPE_CHECKING:  # as long to import as all the rest
    import pandas as pd

#: Quantities in the order in which a model makes them, each from those before.
STAGES = ("q", "k", "scale", "weights", "outputs")
#: Of these, arrays, the norms say nothing; that of their difference does.
VECTORS = {"q", "k", "weights", "outputs"}
#: Rows of a sequence, and sequences, that are compared at most.
MOST_ROWS, MOST_SEQUENCES = 256, 8


#: Something captured; a path of an npz file; arrays by name: q, k, and weights or v and
#: outputs, with all axes.
Source = Captured | Mapping[str, ArrayLike] | str | Path


def _open(
    source: Source, scratch: Path, axes: Sequence[str] | None = None
) -> tuple[Model, ...]:
    if isinstance(source, str | Path):
        return (open_files([Path(source)], scratch, axes=axes),)
    if isinstance(source, Mapping):
        if unknown := [name for name in source if name not in NAMES]:
            raise InputError(
                f"arrays must be among {', '.join(NAMES)}, got {unknown[0]!r}"
            )
        return (open_arrays(source, axes),)
    if axes is not None:
        raise InputError(f"axes must stand with arrays or a file, got {axes!r}")
    if not callable(getattr(source, "models", None)):
        raise InputError(
            "captured must be what capture() gave, arrays by name, or a path, got "
            f"{show(source)}"
        )
    return source.models()


def assert_attention_scale(
    captured: Source,
    expect: str | float | None = None,
    rtol: float = RTOL,
    axes: Sequence[str] | None = None,
    config: Config | str | Path | None = None,
) -> None:
    """Make sure that every head divides its scores by what is expected.

    Parameters
    ----------
    captured : Captured, mapping, or path
        What `montecarlo.capture` recorded; arrays ``q`` and ``k`` with ``weights``, or
        with ``v`` and ``outputs``, axes as for `montecarlo.observe`; or an npz file of
        these.
    expect : str or float, optional
        The divisor: ``config`` for what the model's configuration says, by the
        convention of its architecture; a name, such as ``sqrt``; or a number.  By
        default ``config`` where there is a configuration, else ``sqrt``.
    rtol : float
        How far it may be off, as a part of it.
    axes : sequence of str, optional
        Of arrays, as for `montecarlo.observe`: ``("head", "token", "d")``.
    config : mapping or path, optional
        A configuration of transformers, or its ``config.json``, for arrays, files and
        models of one's own; by default that of the captured model.

    Raises
    ------
    AssertionError
        If a head divides by something else, or it cannot be told, as where the
        architecture is not known.
    InputError
        If what was captured, or an option, is not usable.
    """
    __tracebackhide__ = True
    told = answer_models(captured, expect, rtol, axes, config)
    if any(one.answer != YES for one in told):
        said = ["\n  ".join([say_answer(one), *say_findings(one)]) for one in told]
        raise AssertionError("\n".join(said))


def answer_models(
    captured: Source,
    expect: str | float | None = None,
    rtol: float = RTOL,
    axes: Sequence[str] | None = None,
    config: Config | str | Path | None = None,
) -> list[ScaleAnswer]:
    """Return what `assert_attention_scale` asserts, for each kind of layer."""
    require_number("rtol", rtol, 0.0, 1.0, ends=False)
    if expect is not None and not isinstance(expect, str):
        require_number("expect", expect)
    with TemporaryDirectory() as scratch:
        models = _open(captured, Path(scratch), axes)
        callers: Sequence[Caller] = ()
        missed: tuple[str, ...] = ()
        if not isinstance(captured, str | Path | Mapping):
            callers, missed = captured.callers, captured.missed
        answers = []
        for model in models:
            expected = find_expected(model, expect, config, callers)
            answers.append(answer_scales(find_scales(model), expected, rtol, missed))
    return answers


class Difference(NamedTuple):
    """A head and a quantity in which a port is not as its reference.

    Attributes
    ----------
    layer, head : int
    quantity : str
        ``q``, ``k``, ``scale``, ``weights`` or ``outputs``.
    port, reference : float
        Its value; of an array the norm.
    difference : float
        The port's value less the reference's, as a part of that; of an array the norm
        of the difference over the reference's.  Infinite where a scale is told of one
        of them alone.
    """

    layer: int
    head: int
    quantity: str
    port: float
    reference: float
    difference: float


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Two models side by side.

    Attributes
    ----------
    frame : DataFrame
        One row per head and quantity, columns as of `first`.
    rtol : float
    first : Difference or None
        The first, in the order in which a model computes, that is larger: ``layer``,
        ``head``, ``quantity``, ``port``, ``reference``, ``difference``.
    left_out : tuple of str
        What was not compared: rows that were not captured, and attention that was not
        followed.  Where there is some, that no head differs cannot be told.
    """

    frame: "pd.DataFrame"
    rtol: float
    first: Difference | None
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Say where they part first."""
        if self.first is None:
            told = f"no head differs by more than {self.rtol:g}"
            if not self.left_out:
                return told
            return f"cannot be told: {', '.join([told, *self.left_out])}"
        one = self.first
        heads = self.frame[
            self.frame["layer"].eq(one.layer) & self.frame["quantity"].eq(one.quantity)
        ]
        also = int((heads["difference"].abs() > self.rtol).sum())
        told = (
            f"port and reference are {one.difference:.3g} of the reference's norm apart"
            if one.quantity in VECTORS
            else f"{one.port:.6g} against {one.reference:.6g} "
            f"(difference {one.difference:.3g})"
        )
        return (
            f"they part first in layer {one.layer}, head {one.head}, at "
            f"{one.quantity}: {told}, in {also} of {len(heads)} heads of the layer"
        )

    __repr__ = __str__


def compare(port: Source, reference: Source, rtol: float = RTOL) -> Comparison:
    """Set what was captured of a port beside the same of its reference, head by head.

    Both have to have seen the same tokens.  Of each head 8 sequences are looked at, and
    256 rows of each.

    Parameters
    ----------
    port, reference : Captured, mapping, or path
        As for `assert_attention_scale`.
    rtol : float
        From what difference on they part.

    Raises
    ------
    InputError
        If they differ in sizes, or one is not usable.
    """
    require_number("rtol", rtol, 0.0, 1.0, ends=False)
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        rows: list[Difference] = []
        for ours, theirs in _pair(
            _open(port, Path(one)), _open(reference, Path(other))
        ):
            for head in ours.heads():
                rows += _compare(ours, theirs, head)
    import pandas as pd

    far = [one for one in rows if abs(one.difference) > rtol]
    first = min(
        far,
        key=lambda one: (one.layer, STAGES.index(one.quantity), one.head),
        default=None,
    )
    frame = pd.DataFrame.from_records(rows, columns=Difference._fields)
    both = [one for one in (port, reference) if isinstance(one, Captured)]
    left_out = [f"of {one.rows_kept}" for one in both if one.rows_kept]
    left_out += [
        f"attention was not followed: {told}" for one in both for told in one.missed
    ]
    return Comparison(frame, rtol, first, tuple(dict.fromkeys(left_out)))


def _pair(
    ours: Sequence[Model], theirs: Sequence[Model]
) -> Sequence[tuple[Model, Model]]:
    """Return models with those that they are compared with, which are alike."""
    if len(ours) != len(theirs):
        raise InputError(
            "port must have the reference's kinds of layers, "
            f"{[one.layers for one in theirs]}, got {[one.layers for one in ours]}"
        )
    pairs = list(zip(ours, theirs, strict=True))
    for mine, other in pairs:
        for name, one, wanted in (
            ("layers", mine.layers, other.layers),
            ("head_labels", mine.head_labels, other.head_labels),
            ("d_k", mine.d_k, other.d_k),
            ("sequences", len(mine.sequences), len(other.sequences)),
        ):
            if one != wanted:
                raise InputError(
                    f"port must have the reference's {name}, {wanted}, got {one}"
                )
    return pairs


def _compare(ours: Model, theirs: Model, head: Head) -> list[Difference]:
    """Return the lines of a head."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for sequence in range(min(len(ours.sequences), MOST_SEQUENCES)):
        mine = _read(ours, "port", head, sequence)
        other = _read(theirs, "reference", head, sequence)
        pairs = {"q": (mine.queries, other.queries), "k": (mine.keys, other.keys)}
        for name in ("outputs", "weights"):
            if name in mine.made and name in other.made:
                pairs[name] = mine.made[name], other.made[name]
        for name, (a, b) in pairs.items():
            if a.shape != b.shape:
                raise InputError(
                    f"port must have the reference's tokens in layer {head.layer}, "
                    f"head {head.head}: {name} of shape {b.shape}, got {a.shape}"
                )
            found.setdefault(name, []).append(_apart(a, b))
    if ours.source and theirs.source:
        scales = [
            find_scale(model, head, source).scale
            for model, source in ((ours, ours.source), (theirs, theirs.source))
        ]
        found["scale"] = [_ratio(*scales)]
    return [
        Difference(head.layer, head.head, name, *np.mean(found[name], axis=0).tolist())
        for name in STAGES
        if name in found
    ]


def _read(model: Model, side: str, head: Head, sequence: int) -> Rows:
    """Read rows of one side; what cannot be read of it is said of that side."""
    try:
        return model.read_rows(head, sequence, MOST_ROWS)
    except NotFiniteError as error:
        first = say_first_lost(model.take(head, sequence))
        told = f"{side}, layer {head.layer}: {error}; first not finite: {first}"
        raise InputError(told) from None
    except InputError as error:
        raise InputError(f"{side}, layer {head.layer}: {error}") from None


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
        return f"the scores: q and k of {narrow.name} make up to {largest:.3g}"
    added = arrays.get(ADDED)
    if added is not None and (added[rows] <= UNSEEN).all(axis=1).all():
        return "the mask: it hides every key of these rows"
    if added is not None and (added[rows] > UNSEEN).any(axis=1).all():
        return f"softmax or later: {narrow.name} holds q k, and keys are not all hidden"
    whole = " of whole rows, as of a mask that hides every key" * bool(
        lost[made][rows].all()
    )
    return f"the mask, softmax or later{whole}: which cannot be told"


def _apart(port: Array, reference: Array) -> tuple[float, float, float]:
    """Return the norms of two arrays, and how far they are apart."""
    sizes = [float(np.linalg.norm(one)) for one in (port, reference, port - reference)]
    return sizes[0], sizes[1], sizes[2] / sizes[1] if sizes[1] else sizes[2]


def _ratio(port: float, reference: float) -> tuple[float, float, float]:
    """Return two numbers and how far they are apart: infinitely if one is not told."""
    if math.isnan(port) != math.isnan(reference):
        return port, reference, math.inf
    away = port - reference
    return port, reference, away / abs(reference) if reference else away

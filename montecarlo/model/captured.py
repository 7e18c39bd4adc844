"""What a model hands to attention, recorded while it runs.

It records torch's own attention, its modules, and flex attention; the attention
functions that transformers (from version 5 on) hands out to its models; and attention
that is written out, from the product of queries and keys through softmax to that with
values.  Queries and keys are those that are multiplied, after rotary embeddings, with
heads of keys still grouped; where attention is written out they are recorded before
plain numbers that they are multiplied by, which belong to the scale.  With them come
attention weights where they are there, before dropout, else values, outputs and what
was added to scores; and the scale, mask and cap that were passed.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from montecarlo.errors import InputError
from montecarlo.model.arrays import (
    ADDED,
    Arrays,
    Model,
    SequenceArrays,
    Sink,
    Source,
    make_model,
)
from montecarlo.model.expected import Caller
from montecarlo.model.head_summary import HeadSummary, measure_rows, summarise
from montecarlo.model.scales import find_scales, scales_table
from montecarlo.names import require_whole
from montecarlo.small_files import write_file

if TYPE_CHECKING:  # as long to import as all the rest
    import pandas as pd

#: Rows of a sequence that are kept where all would not fit into so many bytes; and
#: sequences, unless more are asked for.
ROWS, MOST_BYTES, SEQUENCES = 64, 2**28, 16
#: Arrays that have a row of each query.
OF_QUERIES = ("q", "weights", "outputs", "added")
#: Reasons that are kept why attention was not followed.
MOST_MISSED = 16


class Call(NamedTuple):
    """One call of an attention function."""

    #: ``q``, ``k``, and ``weights``, or ``v``, ``outputs`` and perhaps ``added``.
    arrays: Arrays
    passed: Mapping[str, Any]  # what else: ``scale``, ``mask``, ``cap``, ``source``

    def last_rows(self, n_rows: int) -> "Call":
        """Return the call with the last rows of each sequence alone."""
        arrays = {
            name: [one[:, -n_rows:].copy() for one in many]
            if name in OF_QUERIES
            else many
            for name, many in self.arrays.items()
        }
        passed = dict(self.passed)
        if "hidden" in passed:
            passed["hidden"] = passed["hidden"][:, :, -n_rows:].copy()
        return Call(arrays, passed)

    @property
    def kind(self) -> tuple[object, ...]:
        """What layers of one model have in common: sizes, and names of arrays."""
        (heads, _, d_k), (key_heads, *_) = (self.arrays[n][0].shape for n in "qk")
        return heads, key_heads, d_k, *self.arrays


@dataclass(slots=True, repr=False)
class Captured:
    """What was recorded.

    Attributes
    ----------
    rows : int or None
        The last queries of each sequence that are kept, None for all; of the others
        only the keys are.  Where all do not fit into 256 MB it becomes 64.
    sequences : int
        That are kept, of all that the model saw.
    config : dict or None
        The model's configuration, where it is one of transformers.
    """

    rows: int | None = None
    sequences: int = SEQUENCES
    config: Mapping[str, object] | None = None
    #: None for a call with a single key, which has nothing beside it.
    _passes: list[list[Call | None]] = field(default_factory=list)
    _is_open: bool = False
    _missed: dict[str, bool] = field(default_factory=dict)
    _bytes: int = 0

    def __repr__(self) -> str:
        return (
            f"<Captured: layers: {len(self._layers)}, passes: {len(self._passes)}, "
            f"missed: {len(self._missed)}>"
        )

    def begin(self) -> None:
        """Begin another pass of the model: layers are counted anew."""
        self._is_open = False

    def add(self, arrays: Arrays, passed: Mapping[str, object]) -> None:
        """Keep a call, as the next layer of this pass."""
        if not self._is_open:
            self._passes.append([])
            self._is_open = True
        if max(one.shape[1] for one in arrays["k"]) < 2:
            self._passes[-1].append(None)
            return
        self._bytes += sum(
            one.nbytes for name, many in arrays.items() for one in many if name != ADDED
        )
        self._passes[-1].append(Call(arrays, passed))
        if self.rows is None and self._bytes > MOST_BYTES:
            self.rows = ROWS
            for calls in self._passes:
                calls[:] = [one and one.last_rows(ROWS) for one in calls]

    def room(self) -> int:
        """Return how many sequences there is room for in this pass."""
        done = self._passes[:-1] if self._is_open else self._passes
        kept = (len(one.arrays["q"]) for calls in done for one in calls[:1] if one)
        return max(self.sequences - sum(kept), 0)

    @property
    def _layers(self) -> list[list[Call]]:
        """The calls of each layer.

        Passes with as many calls are further sequences of the same layers; others are
        of other layers, as where generate() runs an encoder once, then a decoder.
        """
        parts: dict[int, list[list[Call | None]]] = {}
        for calls in self._passes:
            parts.setdefault(len(calls), []).append(calls)
        found = (
            [one for one in calls if one is not None]
            for passes in parts.values()
            for calls in zip(*passes, strict=True)
        )
        return [calls for calls in found if calls]

    @property
    def _first(self) -> list[Mapping[str, Any]]:
        """What was passed to the first call of each layer."""
        return [calls[0].passed for calls in self._layers]

    def miss(self, told: str, *, is_certain: bool) -> None:
        """Note attention that could not be followed."""
        if len(self._missed) < MOST_MISSED:
            self._missed.setdefault(told, is_certain)

    @property
    def missed(self) -> tuple[str, ...]:
        """What may be attention and could not be followed, and why."""
        return tuple(self._missed)

    @property
    def rows_kept(self) -> str:
        """Which rows are kept of the longest sequence; empty where all are."""
        found = [
            (int(call.passed["queries"]), call.arrays["q"][0].shape[1])
            for call in chain.from_iterable(self._layers)
            if "queries" in call.passed
        ]
        n_rows, kept = max(found, key=lambda one: one[0] - one[1], default=(0, 0))
        return f"the last {kept} rows of {n_rows}" if kept < n_rows else ""

    @property
    def passed(self) -> "pd.DataFrame":
        """What was passed to each layer at first: a row per layer."""
        columns = ["layer", "source", "scale", "mask", "cap"]
        rows = [{"layer": n, **passed} for n, passed in enumerate(self._first)]
        import pandas as pd

        return pd.DataFrame.from_records(rows, columns=columns)

    @property
    def callers(self) -> tuple[Caller, ...]:
        """Which module called attention, for each layer."""
        return tuple(
            one["caller"]
            if "caller" in one
            else Caller("", self.config, is_whole=one["source"] == "written out")
            for one in self._first
        )

    @property
    def caps(self) -> dict[int, float | None]:
        """What scores are capped at in layers where that was seen; None for nothing."""
        seen = {"torch", "transformers", "written out"}
        return {n: p["cap"] for n, p in enumerate(self._first) if p["source"] in seen}

    def models(self, layers: Sequence[int] | None = None) -> tuple[Model, ...]:
        """Return what was recorded as models, each of layers that are alike.

        Raises
        ------
        InputError
            If nothing was recorded, or some attention could not be followed.
        """
        return tuple(map(self._join, self._groups(layers).values()))

    def _groups(
        self, layers: Sequence[int] | None
    ) -> dict[tuple[object, ...], list[int]]:
        """Return layers by what they have in common."""
        certain = [told for told, is_certain in self._missed.items() if is_certain]
        found = self._layers
        if not found or (certain and layers is None):
            told = "; ".join(certain or self._missed) or "none"
            if self._passes and not certain:
                told = "attention to a single key alone: all weights are 1, and the "
                told += "scale does not matter"
            raise InputError(
                "capture must be able to follow every attention from queries and keys "
                f"to values, got {told}: name the layers that it follows, or give q, k "
                "and weights as arrays"
            )
        chosen = range(len(found)) if layers is None else layers
        if missing := [n for n in chosen if not 0 <= n < len(found)]:
            raise InputError(
                f"layers must be among 0 to {len(found) - 1}, got {missing[0]}"
            )
        groups: dict[tuple[object, ...], list[int]] = {}
        for layer in chosen:
            kind, *others = dict.fromkeys(call.kind for call in found[layer])
            if others:
                raise InputError(
                    f"layer {layer} must be the same in every pass, got {others[0]} "
                    f"after {kind}: capture training and evaluation apart"
                )
            counts = [len(call.arrays["q"]) for call in found[layer]]
            groups.setdefault((*kind, *counts), []).append(layer)
        return groups

    def _join(self, layers: Sequence[int]) -> Model:
        """Return layers that are alike as a model."""
        calls = [self._layers[layer] for layer in layers]
        names = {name: name for name in calls[0][0].arrays}
        lists = {
            name: [list(chain(*(one.arrays[name] for one in each))) for each in calls]
            for name in names
        }
        sequences = [
            SequenceArrays(
                n, names, {name: [one[n] for one in lists[name]] for name in names}
            )
            for n in range(len(lists["q"][0]))
        ]
        return make_model([Source(sequences)], layers=layers)

    def summary(self) -> "pd.DataFrame":
        """Summarise the scores and weights of each head.

        Returns
        -------
        DataFrame
            A row per layer and head, columns as `montecarlo.model.head_summary`
            defines them: ``score_max`` and quantiles, ``entropy``, ``entropy_share``,
            ``weight_max``, ``saturated_rows``, ``scale``.
        """
        self._groups(None)  # something was recorded, as much in every pass
        numbers = [
            [measure_rows(call.arrays, call.passed) for call in calls]
            for calls in self._layers
        ]
        heads = [one for n, calls in enumerate(numbers) for one in summarise(n, calls)]
        import pandas as pd

        return pd.DataFrame.from_records(heads, columns=list(HeadSummary._fields))

    def applied_scale(self, layers: Sequence[int] | None = None) -> "pd.DataFrame":
        """Tell the scale that the model applies: `montecarlo.applied_scale`."""
        scales = [find_scales(model) for model in self.models(layers)]
        heads = chain.from_iterable(one.heads for one in scales)
        return scales_table(sorted(heads, key=lambda one: one.head))

    def save(self, path: str | Path, layers: Sequence[int] | None = None) -> None:
        """Write an npz file that ``python -m montecarlo observe`` reads.

        Raises
        ------
        InputError
            If layers or sequences differ in a size: name layers that do not.
        """
        chosen, *others = self._groups(layers).values()
        joined, calls = {}, [self._layers[layer] for layer in chosen]
        for name in calls[0][0].arrays:
            found = [[a for call in each for a in call.arrays[name]] for each in calls]
            if others or len({a.shape for each in found for a in each}) > 1:
                raise InputError(
                    "arrays must have one shape in all layers and passes to be "
                    f"written, {name} has several: name layers that are alike"
                )
            joined[name] = np.stack([np.stack(each) for each in found], axis=1)
        content = io.BytesIO()
        np.savez(content, **joined)  # type: ignore[arg-type]
        name = str(path) if str(path).endswith(".npz") else f"{path}.npz"
        write_file("path", Path(name), content.getvalue())


@contextmanager
def capture(
    model: object | None = None,
    *,
    rows: int | None = None,
    sequences: int = SEQUENCES,
) -> Iterator[Captured]:
    """Record what is handed to attention while the block runs.

    Parameters
    ----------
    model : torch.nn.Module, optional
        Each call of it is a pass over further sequences; without it, all calls of
        attention are layers of one pass.
    rows : int, optional
        Queries of each sequence that are kept, the last ones; by default all where they
        fit into 256 MB, else 64.
    sequences : int
        That are kept at most.

    Yields
    ------
    Captured

    Notes
    -----
    Attention is told by what runs: a product of two tensors that are no parameters,
    softmax, a product with values.  What cannot be followed, such as attention without
    softmax or over more keys than one product makes, is refused when it is asked for.
    What runs compiled is not seen.  transformers is seen if it was imported before.
    What runs is not changed, but for what torch itself does otherwise under any mode:
    it rounds singular values otherwise, and the check of ``torch.jit.trace`` fails.

    Raises
    ------
    InputError
        If an option is not usable, or torch is not there.
    """
    rows = None if rows is None else require_whole("rows", rows, 2)
    sequences = require_whole("sequences", sequences, 1)
    from montecarlo.model.torch_calls import config_of, recording

    captured = Captured(rows, sequences, config_of(model))

    def keep(arrays: Arrays, passed: Mapping[str, object]) -> None:
        captured.add(arrays, passed)
        sink.rows = captured.rows

    sink = Sink(rows, captured.room, keep, captured.miss, captured.config)
    with recording(sink, model, captured.begin):
        yield captured

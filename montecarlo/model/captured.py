"""Records what a running model hands to attention, and what attention returns.

Recorded are `torch.nn.functional.scaled_dot_product_attention`, the modules of torch
that compute attention, and flex attention; the attention functions that transformers
(from version 5 on) hands to its models; and attention that is written out, from the
product of queries and keys through softmax to the product with values.

Queries and keys are those that are multiplied, after rotary embeddings; keys that
several heads share are recorded once.  Where attention is written out, numbers that
queries or keys are multiplied by belong to the scale, and both are recorded before.
With them come attention weights before dropout, where there are any, else values,
outputs and what was added to scores; and the scale and the cap.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from montecarlo.errors import InputError
from montecarlo.model.answers import say_numbers
from montecarlo.model.arrays import (
    ADDED,
    OF_QUERIES,
    Arrays,
    Model,
    Receiver,
    SequenceArrays,
    make_model,
)
from montecarlo.model.expected import Caller
from montecarlo.model.head_summary import HeadSummary, measure_rows, summarise_rows
from montecarlo.model.scales import find_scales, scales_table
from montecarlo.names import require_whole
from montecarlo.small_files import write_file

if TYPE_CHECKING:  # as long to import as all the rest
    import pandas as pd

#: Rows that are kept of each sequence once all rows take more than `MOST_BYTES`.
ROWS, MOST_BYTES = 64, 2**28
#: Sequences that are kept by default.
SEQUENCES = 16
ONE_KEY = "a single key: all weights are 1, and the scale does not matter here"
#: What is told where nothing was recorded, and nothing seen that was missed.
NONE_RAN = "none that ran in the block, uncompiled (call the model in the block)"
#: Reasons why attention was missed that are kept.
MOST_MISSED = 16


class Call(NamedTuple):
    """One call of attention, for one or several sequences."""

    #: By name: ``q``, ``k``, and ``weights``, or ``v``, ``outputs`` and perhaps
    #: ``added``; each has an array of every sequence.
    arrays: Arrays
    passed: Mapping[str, Any]  # its options: ``source``, ``scale``, ``cap``

    def last_rows(self, n_rows: int) -> "Call":
        """Return the call with only the last ``n_rows`` queries of each sequence.

        All keys stay.
        """
        arrays = {
            name: [array[:, -n_rows:].copy() for array in arrays]
            if name in OF_QUERIES
            else arrays
            for name, arrays in self.arrays.items()
        }
        passed = dict(self.passed)
        if "hidden" in passed:
            passed["hidden"] = passed["hidden"][:, :, -n_rows:].copy()
        return Call(arrays, passed)

    @property
    def kind(self) -> tuple[object, ...]:
        """What must be equal in all layers of one `Model`.

        (number of query heads, number of key heads, d_k, names of arrays), such as
        ``(8, 2, 64, "q", "k", "weights")``.
        """
        (heads, _, d_k), (key_heads, *_) = (self.arrays[n][0].shape for n in "qk")
        return heads, key_heads, d_k, *self.arrays


@dataclass(slots=True, repr=False)
class Captured:
    """The calls of attention of a model that `capture` recorded, layer by layer.

    A *pass* is one run of the model; its calls of attention are layers 0, 1, ...  A
    layer whose calls all have a single key has a number, and is left out of all tables.

    Attributes
    ----------
    rows : int or None
        How many queries of each sequence are kept, from its end; None for all.  All
        keys are kept.  If all queries take more than 256 MB, it becomes 64.
    sequences : int
        Largest number of sequences that are kept.
    config : dict or None
        Configuration of the model, if it is one of transformers.
    """

    rows: int | None = None
    sequences: int = SEQUENCES
    config: Mapping[str, object] | None = None
    #: Calls of each pass of the model; None for a call with a single key.
    _passes: list[list[Call | None]] = field(default_factory=list)
    _is_open: bool = False  # whether the next call belongs to the last pass
    #: Reasons why attention was missed, each with whether it surely was attention.
    _missed: dict[str, bool] = field(default_factory=dict)
    _bytes: int = 0  # of all arrays, except those that were added to scores

    def begin(self) -> None:
        """Begin a new pass of the model: the next call is that of layer 0."""
        self._is_open = False

    def add(self, arrays: Arrays, passed: Mapping[str, object]) -> None:
        """Record a call as the next layer of this pass, with its options ``passed``.

        If ``rows`` is None and the recorded arrays exceed `MOST_BYTES`, without those
        that were added to scores, ``rows`` becomes `ROWS`: all calls so far are cut to
        that many last queries of each sequence.  Of a call in which every sequence has
        a single key, only the place in the pass is recorded.
        """
        if not self._is_open:
            self._passes.append([])
            self._is_open = True
        if max(keys.shape[1] for keys in arrays["k"]) < 2:
            self._passes[-1].append(None)
            return
        self._bytes += sum(
            array.nbytes for n in arrays if n != ADDED for array in arrays[n]
        )
        self._passes[-1].append(Call(arrays, passed))
        if self.rows is None and self._bytes > MOST_BYTES:
            self.rows, self._passes = ROWS, self._last_rows(ROWS)

    def last_rows(self, rows: int) -> "Captured":
        """Return a copy with only the last ``rows`` queries of each sequence."""
        return replace(self, rows=rows, _passes=self._last_rows(rows))

    def _last_rows(self, rows: int) -> list[list[Call | None]]:
        """Return the calls of each pass, cut to the last queries of each sequence."""
        return [[one and one.last_rows(rows) for one in each] for each in self._passes]

    def room(self) -> int:
        """Return how many sequences of this pass are still to be recorded: 0 or more.

        It is ``sequences`` minus the number of those from earlier passes.
        """
        earlier = self._passes[:-1] if self._is_open else self._passes
        first_calls = (call for calls in earlier for call in [*filter(None, calls)][:1])
        kept = sum(len(call.arrays["q"]) for call in first_calls)
        return max(self.sequences - kept, 0)

    @property
    def _layers(self) -> dict[int, list[Call]]:
        """The calls of each layer, by its number: a list with one call for each pass.

        Calls with a single key are left out, and so are layers without others: their
        numbers are missing.

        Passes with the same number of calls are further sequences of the same layers.
        Passes with another number of calls have layers of their own, such as if
        generate() runs an encoder once and a decoder several times.
        """
        parts: dict[int, list[list[Call | None]]] = {}
        for calls in self._passes:
            parts.setdefault(len(calls), []).append(calls)
        layers = (
            [call for call in calls if call is not None]
            for passes in parts.values()
            for calls in zip(*passes, strict=True)
        )
        return {n: calls for n, calls in enumerate(layers) if calls}

    @property
    def _options(self) -> dict[int, Mapping[str, Any]]:
        """Options of the first call of each layer, by its number.

        Such as ``{"source": "torch", "scale": None, "cap": None, "queries": 512}``.
        """
        return {n: calls[0].passed for n, calls in self._layers.items()}

    def miss(self, reason: str, *, is_certain: bool) -> None:
        """Note the reason why an operation could not be recorded.

        ``is_certain`` says whether the operation surely was attention.  At most
        `MOST_MISSED` different reasons are noted; further ones are ignored.
        """
        if len(self._missed) < MOST_MISSED:
            self._missed.setdefault(reason, is_certain)

    @property
    def missed(self) -> tuple[str, ...]:
        """Operations that may be attention and were not recorded, with the reasons.

        One text for each, such as ``_softmax of a nested tensor``.  Empty if there are
        none.
        """
        return tuple(self._missed)

    @property
    def rows_kept(self) -> str:
        """Words for the rows that are kept of a sequence: ``the last 64 rows of 512``.

        They describe the sequence of which most rows were dropped.  An empty string if
        all rows are kept.
        """
        counts = [
            (int(call.passed["queries"]), call.arrays["q"][0].shape[1])
            for call in chain.from_iterable(self._layers.values())
            if "queries" in call.passed
        ]
        n_rows, kept = max(counts, key=lambda one: one[0] - one[1], default=(0, 0))
        return f"the last {kept} rows of {n_rows}" if kept < n_rows else ""

    @property
    def passed(self) -> "pd.DataFrame":
        """A table of the options of the first call of each layer, a row per layer.

        Columns are ``layer``; ``source``, which is ``torch``, ``flex_attention``,
        ``transformers`` or ``written out``; ``scale``, None if it was not given; and
        ``cap``, which is not known for flex attention.
        """
        import pandas as pd

        columns = ["layer", "source", "scale", "cap"]
        rows = [{"layer": n, **passed} for n, passed in self._options.items()]
        return pd.DataFrame.from_records(rows, columns=columns)

    @property
    def callers(self) -> dict[int, Caller]:
        """By layer, the module whose call was its first, with its configuration.

        If the module is not known, its name is empty, and the configuration is the
        model's.
        """
        return {
            n: one.get("caller")
            or Caller("", self.config, is_whole=one["source"] == "written out")
            for n, one in self._options.items()
        }

    @property
    def caps(self) -> dict[int, float | None]:
        """The cap of scores of each layer, by its number; None for no cap.

        Such as ``{0: 50.0, 1: None}``.  A layer whose cap is not known is missing.
        """
        return {n: p["cap"] for n, p in self._options.items() if "cap" in p}

    def models(self, layers: Sequence[int] | None = None) -> tuple[Model, ...]:
        """Return the recorded arrays as models, one for each group of similar layers.

        Layers are similar if their sizes, arrays and numbers of sequences are the same.

        Parameters
        ----------
        layers : sequence of int, optional
            Numbers of layers, from 0 on; by default all.

        Raises
        ------
        InputError
            If nothing was recorded; if some attention could not be traced and
            ``layers`` are not given; if a number is not that of a layer; or if sizes or
            arrays of a layer differ by pass.
        """
        return tuple(map(self._model_of, self._layers_by_kind(layers).values()))

    def _layers_by_kind(
        self, layers: Sequence[int] | None
    ) -> dict[tuple[object, ...], list[int]]:
        """Return the numbers of layers in groups that can be one `Model`, by a key.

        The key of a group is `Call.kind` and the number of sequences of each call:
        ``{(8, 2, 64, "q", "k", "weights", 4): [0, 1]}``.

        Raises
        ------
        InputError
            If nothing was recorded; if attention surely was missed and no ``layers``
            are named; if a number is not that of a layer; or if a layer differs by
            pass.
        """
        certain = [reason for reason, is_certain in self._missed.items() if is_certain]
        recorded = self._layers
        if not recorded or (certain and layers is None):
            got, *more = certain or self.missed or [NONE_RAN]
            got += f" (and {len(more)} more in `missed`)" if more else ""
            if self._passes and not certain:
                got = f"attention to {ONE_KEY}"
            raise InputError(
                "capture must be able to trace every attention from queries and keys "
                f"through softmax to values, got {got}: give arrays that a hook keeps, "
                "q, k and weights or q, k, v and outputs, or name layers that it traces"
            )
        chosen = recorded if layers is None else np.atleast_1d(layers).tolist()
        if missing := [n for n in chosen if n not in recorded]:
            raise InputError(
                f"layers must be among {say_numbers([*recorded])}, which attend to "
                f"several keys, got {missing[0]}"
            )
        groups: dict[tuple[object, ...], list[int]] = {}
        for layer in chosen:
            kind, *others = dict.fromkeys(call.kind for call in recorded[layer])
            if others:
                raise InputError(
                    f"layer {layer} must be the same in every pass, got {others[0]} "
                    f"after {kind}: capture training and evaluation apart"
                )
            counts = [len(call.arrays["q"]) for call in recorded[layer]]
            groups.setdefault((*kind, *counts), []).append(layer)
        return groups

    def _model_of(self, layers: Sequence[int]) -> Model:
        """Return the `Model` of similar layers, given by their numbers.

        The sequences of all calls of a layer follow one another.
        """
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
        return make_model(sequences, layers=layers)

    def summary(self) -> "pd.DataFrame":
        """Return a summary of the scores and weights of each head.

        Returns
        -------
        DataFrame
            A row per layer and head, columns as `montecarlo.model.head_summary`
            defines them: ``score_max`` and quantiles, ``entropy``, ``entropy_share``,
            ``weight_max``, ``saturated_rows``, ``scale``.

        Raises
        ------
        InputError
            As from `models`: if nothing was recorded, or some attention could not be
            traced.
        """
        import pandas as pd

        self._layers_by_kind(None)  # refuses what cannot be summarised
        heads = [
            one
            for n, calls in self._layers.items()
            for one in summarise_rows(n, [measure_rows(*call) for call in calls])
        ]
        return pd.DataFrame.from_records(heads, columns=list(HeadSummary._fields))

    def applied_scale(self, layers: Sequence[int] | None = None) -> "pd.DataFrame":
        """Return the scale that each head applies, as `montecarlo.applied_scale` does.

        A table with a row for each head.  ``layers`` are numbers of layers, by default
        all.  An `InputError` is raised in the same cases as by `models`.
        """
        scales = [find_scales(model) for model in self.models(layers)]
        heads = chain.from_iterable(one.heads for one in scales)
        return scales_table(sorted(heads, key=lambda one: one.head))

    def save(self, path: str | Path, layers: Sequence[int] | None = None) -> None:
        """Write an npz file that ``python -m montecarlo observe`` reads.

        An existing file is replaced.

        Parameters
        ----------
        path : str or Path
            Ends in ``.npz``, or has no suffix and gets this one.
        layers : sequence of int, optional
            Numbers of layers; by default all.  In the file they are counted from 0.

        Raises
        ------
        InputError
            If layers or sequences differ in a size: then name layers that do not.  Also
            if the path has another suffix or its folder does not exist, and in the
            cases of `models`.
        """
        if Path(path).suffix not in {"", ".npz"}:
            raise InputError(f"path must end in .npz, got {str(path)!r}")
        model, *others = self.models(layers)
        joined = {}
        for name in model.sequences[0].layers:
            found = [one.layers[name] for one in model.sequences]
            if others or len({array.shape for each in found for array in each}) > 1:
                raise InputError(
                    "arrays must have one shape in all layers and passes to be "
                    f"written, {name} has several: name layers that are alike"
                )
            joined[name] = np.stack([np.stack(list(each)) for each in found])
        content = io.BytesIO()
        np.savez(content, **joined)  # type: ignore[arg-type]
        write_file("path", Path(path).with_suffix(".npz"), content.getvalue())


@contextmanager
def capture(
    model: object | None = None, *, rows: int | None = None, sequences: int = SEQUENCES
) -> Iterator[Captured]:
    """Record the attention that runs in a ``with`` block.

    Parameters
    ----------
    model : torch.nn.Module, optional
        Each call of it is a pass over further sequences.  Without it, all calls of
        attention are layers of one pass.
    rows : int, optional
        How many queries of each sequence are kept, from its end: 2 or more.  By default
        all if they take at most 256 MB, else 64.
    sequences : int
        Largest number of sequences that are kept.

    Yields
    ------
    Captured

    Notes
    -----
    Attention is recognised by the operations that run: a product of two tensors that
    are no parameters, softmax, and a product with values.  Attention that cannot be
    traced, such as one without softmax or over blocks of keys, is an error when its
    scale is asked for.  Compiled code is not seen; transformers is, if it was imported
    before.

    The model computes the same as without recording, with two exceptions: torch does
    not use its fused layers (``torch.backends.mha``), and rounds singular values
    otherwise under any mode.  In the block ``torch.jit.trace`` fails, and a copy of the
    model is recorded as the model is.

    Raises
    ------
    InputError
        If an option is not usable, or torch is not installed.
    """
    rows = None if rows is None else require_whole("rows", rows, 2)
    sequences = require_whole("sequences", sequences, 1)
    from montecarlo.model.torch_calls import config_of, recording

    captured = Captured(rows, sequences, config_of(model))

    def keep(arrays: Arrays, passed: Mapping[str, object]) -> None:
        """Record a call, and the number of rows to record of the calls after it."""
        captured.add(arrays, passed)
        receiver.rows = captured.rows

    receiver = Receiver(rows, captured.room, keep, captured.miss, captured.config)
    with recording(receiver, model, captured.begin):
        yield captured

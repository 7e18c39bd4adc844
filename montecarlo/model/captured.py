"""What a model hands to attention, recorded while it runs.

It records calls of ``torch.nn.functional.scaled_dot_product_attention``, and of the
attention functions that transformers (from version 5 on) hands out to its models:
queries and keys as they are multiplied, after rotary embeddings, with heads of keys
still grouped; attention weights where the function gives them back, else values and
outputs; and the scale, mask and cap that were passed.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from montecarlo.errors import InputError
from montecarlo.model.arrays import Model, make_model, make_source, wrap_array
from montecarlo.model.head_summary import HeadSummary, measure_rows, summarise
from montecarlo.model.scales import find_scales, scales_table

if TYPE_CHECKING:  # as long to import as all the rest
    import pandas as pd

#: Rows of a sequence, and sequences, that are kept unless more are asked for.
ROWS, SEQUENCES = 64, 16
#: Axes of a recorded array, of one sequence of one layer.
AXES = ("head", "token", "d")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an attention function.

    Attributes
    ----------
    arrays : dict of ndarray, shape (n_sequences, n_heads, n_tokens, ...)
        ``q``, ``k``, and ``weights``, or ``v`` and ``outputs``.
    passed : dict
        What else was passed: ``scale``, ``mask``, ``cap``, ``source``.
    """

    arrays: dict[str, NDArray[Any]]
    passed: Mapping[str, object]


@dataclass(slots=True)
class Captured:
    """What was recorded.

    Attributes
    ----------
    rows : int or None
        The last queries of each sequence that are kept, None for all: of the others
        only the keys are.
    sequences : int
        That are kept, of all that the model saw.
    """

    rows: int | None = ROWS
    sequences: int = SEQUENCES
    _passes: list[list[Call]] = field(default_factory=list)
    _is_open: bool = False

    def begin(self) -> None:
        """Begin another pass of the model: layers are counted anew."""
        self._is_open = False

    def add(
        self, arrays: dict[str, NDArray[Any]], passed: Mapping[str, object]
    ) -> None:
        """Keep a call, as the next layer of this pass.

        One with a single query is left out: its row has nothing beside it.
        """
        if arrays["q"].shape[2] < 2:
            return
        if not self._is_open:
            self._passes.append([])
            self._is_open = True
        self._passes[-1].append(Call(arrays, passed))

    def room(self) -> int:
        """Return how many sequences there is room for in this pass."""
        done = self._passes[:-1] if self._is_open else self._passes
        kept = sum(len(calls[0].arrays["q"]) for calls in done)
        return max(self.sequences - kept, 0)

    @property
    def passed(self) -> "pd.DataFrame":
        """What was passed to each layer of the first pass: a row per layer."""
        calls = self._passes[0] if self._passes else []
        columns = ["layer", "source", "scale", "mask", "cap"]
        rows = [{"layer": n, **call.passed} for n, call in enumerate(calls)]
        import pandas as pd

        return pd.DataFrame.from_records(rows, columns=columns)

    def model(self, layers: Sequence[int] | None = None) -> Model:
        """Return what was recorded as a model, of all layers or of some.

        Raises
        ------
        InputError
            If nothing was recorded, or layers differ in heads or in d_k.
        """
        self._require_calls()
        chosen = range(len(self._passes[0])) if layers is None else layers
        if missing := [n for n in chosen if not 0 <= n < len(self._passes[0])]:
            raise InputError(
                f"layers must be among 0 to {len(self._passes[0]) - 1}, got "
                f"{missing[0]}"
            )
        found: dict[str, dict[tuple[int, ...], Any]] = {}
        start = 0
        for calls in self._passes:
            for layer in chosen:
                for name, array in calls[layer].arrays.items():
                    for number, one in enumerate(array):
                        place = f"{name} of layer {layer}"
                        key = (start + number, layer)
                        found.setdefault(name, {})[key] = wrap_array(place, one)
            start += len(calls[0].arrays["q"])
        _require_alike(found)
        return make_model(
            [make_source(found, AXES, ("sequence", "layer"))], causal=False
        )

    def summary(self) -> "pd.DataFrame":
        """Summarise the scores and weights of each head.

        Returns
        -------
        DataFrame
            A row per layer and head, columns as `montecarlo.model.head_summary`
            defines them: ``score_max`` and quantiles, ``entropy``, ``entropy_share``,
            ``weight_max``, ``saturated_rows``, ``scale``.
        """
        self._require_calls()
        numbers = [
            [measure_rows(call.arrays, call.passed) for call in calls]
            for calls in zip(*self._passes, strict=True)
        ]
        heads = [one for n, calls in enumerate(numbers) for one in summarise(n, calls)]
        import pandas as pd

        return pd.DataFrame.from_records(heads, columns=list(HeadSummary._fields))

    def _require_calls(self) -> None:
        """Make sure that something was recorded, in each pass as much as another."""
        if not self._passes:
            raise InputError(
                "a model must call scaled_dot_product_attention, or an attention "
                "function of transformers, with at least 2 queries, got no such call"
            )
        for calls in self._passes:
            if len(calls) != len(self._passes[0]):
                raise InputError(
                    f"every pass must have as many calls of attention as the first, "
                    f"{len(self._passes[0])}, got {len(calls)}: give the model to "
                    "capture(), so that its passes are told apart"
                )

    def applied_scale(self, layers: Sequence[int] | None = None) -> "pd.DataFrame":
        """Tell the scale that the model applies: `montecarlo.applied_scale`."""
        return scales_table(find_scales(self.model(layers)))

    def save(self, path: str | Path, layers: Sequence[int] | None = None) -> None:
        """Write an npz file that ``python -m montecarlo observe`` reads.

        Raises
        ------
        InputError
            If layers or sequences differ in a size: name layers that do not.
        """
        self.model(layers)
        chosen = range(len(self._passes[0])) if layers is None else layers
        joined = {}
        for name in self._passes[0][0].arrays:
            passes = [
                [calls[layer].arrays[name] for layer in chosen]
                for calls in self._passes
            ]
            shapes = {array.shape[1:] for arrays in passes for array in arrays}
            if len(shapes) > 1:
                raise InputError(
                    f"{name} must have one shape in all layers and passes to be "
                    f"written, got {', '.join(map(str, sorted(shapes)))}: name layers"
                )
            stacked = [np.stack(arrays, axis=1) for arrays in passes]
            joined[name] = np.concatenate(stacked)
        np.savez(path, **joined)  # type: ignore[arg-type]


def _require_alike(found: dict[str, dict[tuple[int, ...], Any]]) -> None:
    """Make sure that layers have the same heads and the same d_k."""
    sizes: dict[tuple[str, int, int], list[int]] = {}
    for name in ("q", "k"):
        for (_, layer), tensor in found[name].items():
            size = name, tensor.shape[0], tensor.shape[2]
            if layer not in sizes.setdefault(size, []):
                sizes[size].append(layer)
    if len(sizes) > 2:
        told = "; ".join(
            f"{name} of {heads} heads of {d_k} in layers {', '.join(map(str, layers))}"
            for (name, heads, d_k), layers in sizes.items()
        )
        raise InputError(f"layers must have the same heads, got {told}: name layers")


@contextmanager
def capture(
    model: object | None = None,
    *,
    rows: int | None = ROWS,
    sequences: int = SEQUENCES,
) -> Iterator[Captured]:
    """Record what is handed to attention while the block runs.

    Parameters
    ----------
    model : torch.nn.Module, optional
        Each call of it is a pass over further sequences; without it, all calls of
        attention are layers of one pass.
    rows : int or None
        Queries of each sequence that are kept, the last ones; None for all.
    sequences : int
        That are kept at most.

    Yields
    ------
    Captured

    Notes
    -----
    What a model multiplies and puts through softmax by itself is not seen, nor what
    runs compiled, nor the fast path of ``torch.nn.MultiheadAttention`` in evaluation
    without gradients.  transformers is seen if it was imported before.

    Raises
    ------
    InputError
        If an option is not usable, or torch is not there.
    """
    for name, value in (("rows", rows), ("sequences", sequences)):
        wrong = not isinstance(value, int) or value < (2 if name == "rows" else 1)
        if wrong and not (name == "rows" and value is None):
            least = 2 if name == "rows" else 1
            raise InputError(
                f"{name} must be a whole number of at least {least}, got {value!r}"
            )
    from montecarlo.model.torch_calls import recording

    captured = Captured(rows, sequences)
    with recording(captured, model):
        yield captured

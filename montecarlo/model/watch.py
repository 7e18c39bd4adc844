"""Watches a model in training: a summary of every head at intervals, and warnings.

In: a model that trains.  Out: every so many steps a summary of each head.  Warnings
name heads whose scores are large or grow, and heads whose weights are nearly one-hot.
A watched pass is summarised call by call; its arrays are not kept.
"""

import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from montecarlo.errors import InputError, show
from montecarlo.model.answers import say_numbers
from montecarlo.model.arrays import Arrays, Receiver
from montecarlo.model.head_summary import (
    HeadSummary,
    RowNumbers,
    measure_rows,
    summarise_rows,
)
from montecarlo.names import require_number, require_whole

if TYPE_CHECKING:
    import pandas as pd

#: Steps from one look to the next.  A look is a pass of the model that is summarised.
EVERY = 100
#: Rows of a sequence, and sequences, that a look takes.
ROWS, SEQUENCES = 16, 4
#: Largest score from which on a head is hot: models whose scores are larger cap them,
#: or normalise queries and keys.
HOT = 100.0
#: Ratio of the last largest score to the first from which on a head is growing.
GROWTH = 2.0
#: Share of the largest possible entropy below which a head is frozen.
FROZEN = 0.01
#: Looks over which growth is judged, and the largest score from which on it is: in all
#: models scores grow at first.
LOOKS, GROWN = 5, 20.0
#: Attribute of a module that torch calls in place of the module's own call; torch
#: leaves it out of copies and of saved files.
CALLED_FIRST = "_compiled_call_impl"
KINDS = ("hot", "growing", "frozen")
#: What a writer is given of each layer: a column of the summary -> which of the values
#: of its heads.
SCALARS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "score_max": max,
    "entropy_share": min,
    "weight_max": max,
    "saturated_rows": max,
}
#: Frames between a warning and the caller of the model: those of this module, and one
#: of torch.
STACKLEVEL = 4
Writer = Callable[[str, float, int], object]


class ScoreWarning(UserWarning):
    """Warns that attention scores in training are large or grow, or weights one-hot."""


class Alarm(NamedTuple):
    """A warning about heads of a layer, at most one for each head and kind.

    Attributes
    ----------
    step : int
    kind : str
        ``hot``, ``growing`` or ``frozen``.
    layer : int
    heads : tuple of int
        Numbers of the heads, within the layer.
    text : str
        Text of the warning.
    """

    step: int
    kind: str
    layer: int
    heads: tuple[int, ...]
    text: str


class _WatchedCall:
    """Replaces the call of a model by one that the watch runs.

    As long as the watch exists, it returns ``run(call, args, kwargs)``, where ``run``
    is a method of the watch; afterwards ``call(*args, **kwargs)``.  Copies and saved
    files of the model do without it.
    """

    def __init__(self, run: Callable[..., Any], call: Callable[..., Any]) -> None:
        self._run, self._call = weakref.WeakMethod(run), call

    def __call__(self, *args: object, **kwargs: object) -> Any:  # noqa: ANN401
        """Call the model, through the watch if there is one."""
        run = self._run()
        if run is None:
            return self._call(*args, **kwargs)
        return run(self._call, args, kwargs)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Return how to pickle it: as None, the value in a model without a watch."""
        return type(None), ()


def _detach(attributes: dict[str, Any], watched: _WatchedCall, before: object) -> None:
    """Restore a model's own call, unless something else has replaced it meanwhile.

    ``attributes`` are those of the model, ``watched`` is what replaces its call, and
    ``before`` is what is restored.
    """
    if attributes.get(CALLED_FIRST) is watched:
        attributes[CALLED_FIRST] = before


class ScoreWatch:
    """Watch the attention scores of a model while it trains.

    A *look* is a pass of the model that is summarised, head by head.  As a context
    manager the watch counts the passes in training mode and looks at every hundredth
    (``every``).  It warns at its end if there was no such pass.  If it is called with
    the number of a step before the pass of this step, it does not count: it looks if
    ``every`` divides this number.

    Parameters
    ----------
    model : torch.nn.Module
        The model that is trained, also one by ``torch.compile``.
    every : int
        Steps from one look to the next; the first step is looked at.
    writer : callable, optional
        ``writer(name, value, step)`` is called at each look, with extremes over the
        heads of each layer: the largest ``attention/layer 0/score_max``, ``weight_max``
        and ``saturated_rows``, and the smallest ``entropy_share``.
        ``SummaryWriter().add_scalar`` of TensorBoard is such a function.
    hot : float
        Warn of a head whose largest absolute score is larger than this; above 0.
    growth : float
        Warn of a head whose largest absolute score rose from look to look over the last
        5 looks, is now above 20, and is at least this many times that of the first of
        the 5; above 1.
    frozen : float
        Warn of a head whose mean entropy is less than this share of the largest
        possible; above 0 and below 1.

    Attributes
    ----------
    summaries : list of (int, HeadSummary)
        Step and summary, for each look and head.
    alarms : list of Alarm
        The warnings, at most one for each head and kind.

    Raises
    ------
    InputError
        If an option is not usable.

    Warns
    -----
    ScoreWarning
        Of heads; and once, if the first look finds no attention to several keys.

    Notes
    -----
    It does not warn of saturation, rows with a weight near 1, which heads that copy
    have in models that train well.  ``weight_max`` and ``saturated_rows`` of `frame`
    tell it.  In `frame` a call of attention with a single key is no row, but counts as
    a layer.
    """

    def __init__(  # noqa: PLR0913 - how often, a writer, and three thresholds
        self,
        model: object,
        *,
        every: int = EVERY,
        writer: Writer | None = None,
        hot: float = HOT,
        growth: float = GROWTH,
        frozen: float = FROZEN,
    ) -> None:
        if writer is not None and not callable(writer):
            raise InputError(
                f"writer must be a function of name, value and step, got {show(writer)}"
            )
        if isinstance(model, type) or not hasattr(model, "register_forward_pre_hook"):
            got = type(model).__name__
            raise InputError(f"model must be a torch.nn.Module, got {got}")
        self.every, self.writer = require_whole("every", every, 1), writer
        self.hot = require_number("hot", hot, 0.0, ends=False)
        self.growth = require_number("growth", growth, 1.0, ends=False)
        self.frozen = require_number("frozen", frozen, 0.0, 1.0, ends=False)
        self.summaries: list[tuple[int, HeadSummary]] = []
        self.alarms: list[Alarm] = []
        self._model: Any = model
        self._end: Callable[[], object] | None = None  # while it watches
        self._has_warned_of_none = False  # that no attention was found
        self._step = -1
        self._passes_in_eval_mode = 0
        self._is_step_given = False  # by whoever calls the watch
        self._is_due = False
        self._largest: dict[tuple[int, int], list[float]] = {}  # score, at last looks
        self._warned: set[tuple[str, int, int]] = set()

    def __enter__(self) -> Self:
        self._attach()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if kind is None and self._step < 0:
            warnings.warn(
                "ScoreWatch has looked at nothing: it waits for a pass of its model in "
                f"training mode, got none, and {self._passes_in_eval_mode} in eval "
                "mode; watch(step) before a pass makes it look in any mode",
                stacklevel=2,
            )

    def __call__(self, step: int) -> None:
        """Set the number of the step of the next pass, 0 or more.

        From then on the watch no longer counts passes.  Outside of a with block this
        also begins the watch, which `close` ends.
        """
        self._step = require_whole("step", step, 0)
        self._attach()
        self._is_step_given = True
        self._is_due = step % self.every == 0

    def close(self) -> None:
        """End the watch; summaries and alarms stay."""
        if self._end is not None:
            self._end()
            self._end = None

    @property
    def frame(self) -> "pd.DataFrame":
        """Summaries as a table: a row per look, layer and head.

        Columns are ``step`` and those of `Captured.summary`.
        """
        import pandas as pd

        rows = [(step, *one) for step, one in self.summaries]
        return pd.DataFrame.from_records(rows, columns=["step", *HeadSummary._fields])

    def _attach(self) -> None:
        """Replace the model's call until the watch is closed or deleted."""
        if self._end is None:
            attributes = vars(self._model)
            before = attributes.get(CALLED_FIRST)
            call = before or self._model._call_impl  # noqa: SLF001
            watched = _WatchedCall(self._run, call)
            attributes[CALLED_FIRST] = watched
            self._end = weakref.finalize(self, _detach, attributes, watched, before)

    def _run(self, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:  # noqa: ANN401
        """Run a pass of the model and return its result; look at it if a look is due.

        ``call`` is the model's own call, and ``args`` and ``kwargs`` are its arguments.
        """
        if self._end is None or not self._is_look_due():
            return call(*args, **kwargs)
        from montecarlo.model.torch_calls import recording, uncompiled

        calls: list[RowNumbers | None] = []
        missed: list[str] = []

        def measure(arrays: Arrays, passed: Mapping[str, object]) -> None:
            """Append the numbers of the rows of a call to ``calls``.

            None for a call with a single key, which has a number, too.
            """
            has_one_key = max(keys.shape[1] for keys in arrays["k"]) < 2
            calls.append(None if has_one_key else measure_rows(arrays, passed))

        receiver = Receiver(
            ROWS, lambda: SEQUENCES, measure, lambda reason, **_: missed.append(reason)
        )
        with uncompiled(), recording(receiver):
            result = call(*args, **kwargs)
        alarms = self._summarise(calls)
        texts = [one.text for one in alarms]
        self.alarms += alarms
        if not (self.summaries or self._has_warned_of_none):
            self._has_warned_of_none = True
            text = (
                f"step {self._step}: no attention with several keys was followed, so "
                f"there is nothing to watch; missed: {next(iter(missed), 'none')}"
            )
            texts.append(text)
        for text in texts:
            warnings.warn(text, ScoreWarning, stacklevel=STACKLEVEL)
        return result

    def _is_look_due(self) -> bool:
        """Return whether a look is due; count a pass, unless step numbers are given."""
        if not self._is_step_given:
            if not self._model.training:
                self._passes_in_eval_mode += 1
                return False
            self._step += 1
            self._is_due = self._step % self.every == 0
        is_due, self._is_due = self._is_due, False
        return is_due

    def _summarise(self, calls: Sequence[RowNumbers | None]) -> list[Alarm]:
        """Append the summaries of a pass, call the writer, and return new alarms.

        ``calls`` are the numbers of the rows of each layer, in order, or None.
        """
        alarms = []
        for layer, call in ((n, one) for n, one in enumerate(calls) if one):
            heads = list(summarise_rows(layer, [call]))
            self.summaries += [(self._step, one) for one in heads]
            if self.writer is not None:
                for name, extreme in SCALARS.items():
                    value = extreme([getattr(one, name) for one in heads])
                    self.writer(f"attention/layer {layer}/{name}", value, self._step)
            for one in heads:
                past = self._largest.setdefault((layer, one.head), [])
                past[:] = [*past[1 - LOOKS :], one.score_max]
            for kind in KINDS:
                new = [
                    one
                    for one in heads
                    if self._is_of_kind(kind, one)
                    and (kind, *one[:2]) not in self._warned
                ]
                if new:
                    self._warned |= {(kind, *one[:2]) for one in new}
                    numbers = tuple(one.head for one in new)
                    plural = "s" * (len(new) > 1)
                    place = f"layer {layer}, head{plural} {say_numbers(numbers)}"
                    text = f"step {self._step}: {place}: {self._say_reason(kind, new)}"
                    alarms.append(Alarm(self._step, kind, layer, numbers, text))
        return alarms

    def _is_of_kind(self, kind: str, one: HeadSummary) -> bool:
        """Return whether a head is ``hot``, ``growing`` or ``frozen``: a ``kind``."""
        if kind == "hot":
            return one.score_max > self.hot
        if kind == "frozen":
            return one.entropy_share < self.frozen
        past = self._largest[one.layer, one.head]
        return (
            len(past) == LOOKS
            and past[-1] > GROWN
            and past[-1] >= self.growth * past[0]
            and bool(np.all(np.diff(past) > 0.0))
        )

    def _say_reason(self, kind: str, heads: Sequence[HeadSummary]) -> str:
        """Return the reason of a warning in words: ``largest score 120, beyond 100``.

        ``kind`` is one of `KINDS`.  The number is the extreme one of ``heads``.
        """
        if kind == "hot":
            largest = max(one.score_max for one in heads)
            return f"largest score {largest:.4g}, beyond {self.hot:g}"
        if kind == "frozen":
            least = min(one.entropy_share for one in heads)
            return (
                f"entropy {100.0 * least:.2g} % of the largest possible, below "
                f"{100.0 * self.frozen:g} %: a query looks at one key"
            )
        pasts = [self._largest[one.layer, one.head] for one in heads]
        past = max(pasts, key=lambda some: some[-1] / some[0])
        steps = self.every * (LOOKS - 1)
        return f"largest score grows, {past[0]:.4g} to {past[-1]:.4g} in {steps} steps"

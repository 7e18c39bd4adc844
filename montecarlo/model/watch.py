"""Watching training: the scores of every head, now and then, and when to be warned.

A model that trains in, every so many steps the summary of each head out, with warnings
where scores are large or grow, or where a head has nearly stopped to mix.  A watched
pass is reduced call by call: nothing of it is kept but a few numbers per head.
"""

import sys
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from montecarlo.errors import InputError, show
from montecarlo.model.answers import say_numbers
from montecarlo.model.arrays import Arrays, Receiver
from montecarlo.model.head_summary import (
    HeadSummary,
    RowNumbers,
    measure_rows,
    summarise,
)
from montecarlo.names import require_number, require_whole

if TYPE_CHECKING:
    import pandas as pd

#: Steps from one look to the next.
EVERY = 100
#: Rows of a sequence and sequences that a look takes.
ROWS, SEQUENCES = 16, 4
#: A scaled score beyond this is what practice takes measures against, such as capping
#: scores or normalising queries and keys.
HOT = 100.0
#: Largest scores that become so many times as large grow.
GROWTH = 2.0
#: A part of the largest possible entropy, below which a head looks at one key.
FROZEN = 0.01
#: Growth is judged over so many looks, and only of scores that have come so far: from
#: where scores start, all of them grow.
LOOKS, GROWN = 5, 20.0
#: What torch calls in place of a module's own call, where a module has it; torch leaves
#: it out of copies and of what it saves.
CALLED_FIRST = "_compiled_call_impl"
KINDS = ("hot", "growing", "frozen")
#: Of a layer, what a writer is handed: the column, and of its heads' values the one.
SCALARS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "score_max": max,
    "entropy_share": min,
    "weight_max": max,
    "saturated_rows": max,
}
Writer = Callable[[str, float, int], object]


class ScoreWarning(UserWarning):
    """Scores of attention that practice takes measures against."""


class Alarm(NamedTuple):
    """What was warned of, once for each head.

    Attributes
    ----------
    step : int
    kind : str
        ``hot``, ``growing`` or ``frozen``.
    layer : int
    heads : tuple of int
    text : str
    """

    step: int
    kind: str
    layer: int
    heads: tuple[int, ...]
    text: str


class _Watched:
    """What runs a watched model.  Copies of the model, and what is saved, hold none."""

    def __init__(self, run: Callable[..., Any], call: Callable[..., Any]) -> None:
        self._run, self._call = weakref.WeakMethod(run), call

    def __call__(self, *args: object, **kwargs: object) -> Any:  # noqa: ANN401
        """Run it, through the watch as long as there is one."""
        run = self._run()
        if run is None:
            return self._call(*args, **kwargs)
        return run(self._call, args, kwargs)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Leave nothing, which is what torch has there."""
        return type(None), ()


def _detach(held: dict[str, Any], watched: _Watched, before: object) -> None:
    """Call the model as before, unless somebody else stands there by now."""
    if held.get(CALLED_FIRST) is watched:
        held[CALLED_FIRST] = before


class ScoreWatch:
    """Watch the scores of a model while it trains.

    As a context manager it counts the passes of the model in training mode, and looks
    at every hundredth; it warns at its end if there was none.  Called with a step
    before the pass it looks where ``every`` divides the step; nothing is counted then.

    Parameters
    ----------
    model : torch.nn.Module
    every : int
        Steps from one look to the next; the first is looked at.
    writer : callable, optional
        ``writer(name, value, step)`` is handed the extremes over the heads of each
        layer: ``attention/layer 0/score_max`` and ``weight_max`` and
        ``saturated_rows``, the largest, and ``entropy_share``, the smallest.
        ``SummaryWriter().add_scalar`` of TensorBoard is such a writer.
    hot : float
        Warn of a head whose largest absolute score is beyond this.
    growth : float
        Warn of a head whose largest absolute score rose at each of the last looks, 5
        of them, is now beyond 20, and so many times that of the first of them.
    frozen : float
        Warn of a head whose mean entropy is below this share of the largest possible.

    Attributes
    ----------
    summaries : list of (int, HeadSummary)
        Step and numbers, for each look and head.
    alarms : list of Alarm
        What was warned of: each kind once for each head.

    Raises
    ------
    InputError
        If an option is not usable.

    Warns
    -----
    ScoreWarning
        Of heads; and once, if the first look sees no attention with several keys.
    """

    def __init__(  # noqa: PLR0913 - how often, whom to tell, and three thresholds
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
        if not callable(getattr(model, "register_forward_pre_hook", None)):
            raise InputError(
                f"model must be a torch.nn.Module, got {type(model).__name__}"
            )
        self.every, self.writer = require_whole("every", every, 1), writer
        self.hot = require_number("hot", hot, 0.0, ends=False)
        self.growth = require_number("growth", growth, 1.0, ends=False)
        self.frozen = require_number("frozen", frozen, 0.0, 1.0, ends=False)
        self.summaries: list[tuple[int, HeadSummary]] = []
        self.alarms: list[Alarm] = []
        self._model: Any = model
        self._end: Callable[[], object] | None = None  # while it watches
        self._has_seen_nothing = False
        self._step = -1
        self._passes_in_eval_mode = 0
        self._is_told = False  # the steps, by whoever calls
        self._is_due = False
        self._largest: dict[tuple[int, int], list[float]] = {}
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

    def __repr__(self) -> str:
        looks = len({step for step, _ in self.summaries})
        return f"<ScoreWatch: looks: {looks}, alarms: {len(self.alarms)}>"

    def __call__(self, step: int) -> None:
        """Say which step the next pass belongs to."""
        self._step = require_whole("step", step, 0)
        self._attach()
        self._is_told = True
        self._is_due = step % self.every == 0

    def close(self) -> None:
        """Watch no longer; what was found stays."""
        if self._end is not None:
            self._end()
            self._end = None

    @property
    def frame(self) -> "pd.DataFrame":
        """All summaries: a row per look, layer and head, columns as of `summary`."""
        import pandas as pd

        rows = [(step, *one) for step, one in self.summaries]
        return pd.DataFrame.from_records(rows, columns=["step", *HeadSummary._fields])

    def _attach(self) -> None:
        """Stand between the model and whoever calls it, until closed or let go."""
        if self._end is None:
            held = vars(self._model)
            before = held.get(CALLED_FIRST)
            watched = _Watched(self._run, before or self._model._call_impl)  # noqa: SLF001
            held[CALLED_FIRST] = watched
            self._end = weakref.finalize(self, _detach, held, watched, before)

    def _run(self, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:  # noqa: ANN401
        """Run a pass of the model, and look at it where that is due."""
        if self._end is None or not self._is_to_look():
            return call(*args, **kwargs)
        from montecarlo.model.torch_calls import recording, uncompiled

        found: list[RowNumbers] = []
        missed: list[str] = []

        def measure(arrays: Arrays, passed: Mapping[str, object]) -> None:
            if max(one.shape[1] for one in arrays["k"]) > 1:  # else there is no choice
                found.append(measure_rows(arrays, passed))

        def note(told: str, **_: object) -> None:
            missed.append(told)

        with uncompiled(), recording(Receiver(ROWS, lambda: SEQUENCES, measure, note)):
            made = call(*args, **kwargs)
        if found:
            self._tell(found)
        elif not (self.summaries or self._has_seen_nothing):
            self._has_seen_nothing = True
            warnings.warn(
                f"step {self._step}: no attention with several keys was followed, so "
                f"there is nothing to watch; missed: {next(iter(missed), 'none')}",
                ScoreWarning,
                stacklevel=_frames_to_user(),
            )
        return made

    def _is_to_look(self) -> bool:
        """Count a pass, unless steps are told, and tell whether a look is due."""
        if not self._is_told:
            if not self._model.training:
                self._passes_in_eval_mode += 1
                return False
            self._step += 1
            self._is_due = self._step % self.every == 0
        is_due, self._is_due = self._is_due, False
        return is_due

    def _tell(self, calls: Sequence[RowNumbers]) -> None:
        """Keep what was found, hand it on, and warn."""
        for layer, call in enumerate(calls):
            heads = list(summarise(layer, [call]))
            self.summaries += [(self._step, one) for one in heads]
            if self.writer is not None:
                for name, extreme in SCALARS.items():
                    value = extreme([getattr(one, name) for one in heads])
                    self.writer(f"attention/layer {layer}/{name}", value, self._step)
            for one in heads:
                past = self._largest.setdefault((layer, one.head), [])
                past[:] = [*past[1 - LOOKS :], one.score_max]
            self._warn(layer, heads)

    def _warn(self, layer: int, heads: Sequence[HeadSummary]) -> None:
        """Warn of heads that were not warned of before."""
        for kind in KINDS:
            found = [one for one in heads if self._holds(kind, one)]
            new = [one for one in found if (kind, *one[:2]) not in self._warned]
            if not new:
                continue
            self._warned |= {(kind, *one[:2]) for one in new}
            numbers = tuple(one.head for one in new)
            place = f"layer {layer}, head{'s' * (len(new) > 1)} {say_numbers(numbers)}"
            text = f"step {self._step}: {place}: {self._say(kind, new)}"
            self.alarms.append(Alarm(self._step, kind, layer, numbers, text))
            warnings.warn(text, ScoreWarning, stacklevel=_frames_to_user())

    def _holds(self, kind: str, one: HeadSummary) -> bool:
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

    def _say(self, kind: str, heads: Sequence[HeadSummary]) -> str:
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


def _frames_to_user() -> int:
    """Return how far up the one is who calls the model, for `warnings.warn`."""
    frame, level = sys._getframe(1), 1  # noqa: SLF001 - as `warnings` does itself
    while frame.f_back is not None and _is_between(frame):
        frame, level = frame.f_back, level + 1
    return level


def _is_between(frame: FrameType) -> bool:
    """Tell whether a frame is of what stands between a user's loop and the watch."""
    name = str(frame.f_globals.get("__name__"))
    return name.partition(".")[0] in {"montecarlo", "torch", "transformers"}

"""`ScoreWatch` as a callback of transformers' `Trainer`; importing it needs both."""
# ruff: noqa: ANN401 - arguments that a `Trainer` passes have no types here

from typing import Any

from transformers import TrainerCallback

from montecarlo.model.watch import ScoreWatch


class ScoreWatchCallback(TrainerCallback):  # type: ignore[misc]
    """Watch the scores of the model that a `Trainer` trains, in its main process.

    Of a step that accumulates gradients it watches the first batch.

    Parameters
    ----------
    **options
        Those of `ScoreWatch`: ``every``, ``writer``, ``hot``, ``growth``, ``frozen``.

    Attributes
    ----------
    watch : ScoreWatch or None
        None until training begins.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self.watch: ScoreWatch | None = None

    def on_train_begin(self, _: Any, state: Any, _control: Any, **others: Any) -> None:
        """Start watching the model, in the main process only."""
        if state.is_world_process_zero:
            self.watch = ScoreWatch(others["model"], **self._options)

    def on_step_begin(self, _: Any, state: Any, *_more: Any, **_others: Any) -> None:
        """Pass the number of the step that begins to the watch."""
        if self.watch is not None:
            self.watch(state.global_step)

    def on_train_end(self, *_: Any, **_others: Any) -> None:
        """End the watch; its summaries and alarms stay."""
        if self.watch is not None:
            self.watch.close()

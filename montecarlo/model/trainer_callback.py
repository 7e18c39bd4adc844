"""The watch as a callback of transformers' `Trainer`; only who uses it imports this."""
# ruff: noqa: ANN401 - what a `Trainer` hands over has no types here

from typing import Any

from transformers import TrainerCallback

from montecarlo.model.watch import ScoreWatch


class ScoreWatchCallback(TrainerCallback):  # type: ignore[misc]
    """Watch the scores of the model that a `Trainer` trains, in its main process.

    Of steps that accumulate gradients it looks at the first batch.

    Parameters
    ----------
    **options
        Of `ScoreWatch`: ``every``, ``writer``, ``hot``, ``growth``, ``frozen``.

    Attributes
    ----------
    watch : ScoreWatch or None
        None until training begins.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self.watch: ScoreWatch | None = None

    def on_train_begin(self, _: Any, state: Any, _control: Any, **others: Any) -> None:
        """Begin to watch."""
        if state.is_world_process_zero:
            self.watch = ScoreWatch(others["model"], **self._options)

    def on_step_begin(self, _: Any, state: Any, *_more: Any, **_others: Any) -> None:
        """Say which step it is."""
        if self.watch is not None:
            self.watch(state.global_step)

    def on_train_end(self, *_: Any, **_others: Any) -> None:
        """Watch no longer; what was found stays."""
        if self.watch is not None:
            self.watch.close()

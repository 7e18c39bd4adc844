"""A bar that shows how far sampling is, on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from montecarlo.printing import printing
from montecarlo.sampling.cost import replicate_seconds
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.presets import Advance

#: Lines of a table that is piped are not cut to a terminal's width.
PIPED_WIDTH = 160


class _Console(Console):
    """A console whose stream may refuse what it is given, as `printing` has it."""

    def print(self, *objects: Any, **settings: Any) -> None:  # noqa: ANN401 - as rich has it
        with printing(self.file):  # type: ignore[arg-type]
            super().print(*objects, **settings)

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - rich calls this where it handles it, and would exit


def open_console(stream: TextIO, *, highlight: bool = True) -> Console:
    """Return a console that takes no text for markup."""
    width = None if stream.isatty() else PIPED_WIDTH
    return _Console(
        file=stream, width=width, markup=False, emoji=False, highlight=highlight
    )


@contextmanager
def open_bar(task: str, *, quiet: bool) -> Iterator[Callable[..., object]]:
    """Show a progress bar on standard error, if that is a terminal.

    Yields
    ------
    callable
        To be told ``total`` and ``completed``.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda **_: None
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=open_console(sys.stderr),
        transient=True,
    ) as bar:
        yield partial(bar.update, bar.add_task(task, total=0.0))


@contextmanager
def progress_bar(n_divisors: int, *, quiet: bool) -> Iterator[Advance]:
    """Show the seconds that sampling takes; yields what `run_study` tells of it.

    What is wanted grows with each round, so the part that is done would fall: the bar
    waits then, and never goes back.
    """
    with open_bar("sampling", quiet=quiet) as update:
        wanted = done = shown = 0.0

        def advance(point: DesignPoint, finished: int, newly_wanted: int) -> None:
            nonlocal wanted, done, shown
            seconds = replicate_seconds(point, n_divisors)
            wanted, done = wanted + newly_wanted * seconds, done + finished * seconds
            shown = max(shown, done / wanted if wanted else 0.0)
            update(total=wanted, completed=shown * wanted)

        yield advance

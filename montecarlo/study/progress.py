"""A bar that shows how far sampling is, on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from montecarlo.sampling.cost import replicate_seconds
from montecarlo.sampling.design_points import DesignPoint

#: Told of a point: replicates just finished, and replicates newly wanted of it.
Advance = Callable[[DesignPoint, int, int], None]


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
    # slow to import, and of no use where nothing is shown
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from montecarlo.study.console import open_console

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

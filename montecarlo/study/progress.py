"""How far work is: a bar on a terminal, a few lines in a log."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from montecarlo.printing import print_lines
from montecarlo.sampling.cost import replicate_seconds, say_time
from montecarlo.sampling.design_points import DesignPoint

#: Told of a point: replicates just finished, and replicates newly wanted of it.
Advance = Callable[[DesignPoint, int, int], None]
#: Seconds up to which work leaves no line in a log.
SHORT = 10.0


@contextmanager
def open_bar(task: str, *, quiet: bool) -> Iterator[Callable[..., object]]:
    """Show on standard error how far a task is.

    A bar on a terminal; elsewhere, where it takes longer than `SHORT`, a line at each
    quarter.

    Yields
    ------
    callable
        To be told ``total`` and ``completed``.
    """
    if quiet:
        yield lambda **_: None
        return
    if not sys.stderr.isatty():
        yield _quarters(task)
        return
    # slow to import, and of no use where nothing is shown
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        yield partial(bar.update, bar.add_task(task, total=0.0))


def _quarters(task: str) -> Callable[..., object]:
    """Return what prints a line at each quarter, of work that takes a while."""
    started, whole, reached = time.perf_counter(), 0.0, 0

    def update(total: float | None = None, completed: float = 0.0) -> None:
        nonlocal whole, reached
        whole = whole if total is None else total
        seconds = time.perf_counter() - started
        quarters = min(3, int(4.0 * completed / whole) if whole else 0)
        if quarters > reached and seconds > SHORT:
            reached = quarters
            told = f"{task}: {25 * quarters} % after {say_time(round(seconds))}"
            print_lines(told, sys.stderr)

    return update


@contextmanager
def progress_bar(n_divisors: int, *, quiet: bool) -> Iterator[Advance]:
    """Show the seconds that sampling takes; yields what `run_study` tells of it.

    What is wanted grows with each round, so the part that is done would fall: the bar
    waits then, and never goes back.  A log begins with what the first round takes.
    """
    with open_bar("sampling", quiet=quiet) as update:
        wanted = done = shown = 0.0
        points: set[DesignPoint] = set()
        is_told = quiet or sys.stderr.isatty()

        def advance(point: DesignPoint, finished: int, newly_wanted: int) -> None:
            nonlocal wanted, done, shown, is_told
            seconds = replicate_seconds(point, n_divisors)
            points.add(point)
            if finished and not is_told:
                is_told = True
                if wanted > SHORT:
                    takes = f"about {say_time(round(wanted))} on one core"
                    told = f"sampling: {len(points)} points, {takes}"
                    print_lines(told, sys.stderr)
            wanted, done = wanted + newly_wanted * seconds, done + finished * seconds
            shown = max(shown, done / wanted if wanted else 0.0)
            update(total=wanted, completed=shown * wanted)

        yield advance

"""Progress on standard error: a bar on a terminal, a few lines in a log."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from montecarlo.estimation.engine import Advance
from montecarlo.printing import print_lines
from montecarlo.sampling.cost import replicate_seconds, say_time
from montecarlo.sampling.design_points import DesignPoint

#: Longest duration of work that writes no line to a log, in seconds.
SHORT = 10.0


@contextmanager
def open_bar(task: str, *, quiet: bool) -> Iterator[Callable[..., object]]:
    """Show the progress of a task on standard error within a with block.

    On a terminal it is a bar.  Elsewhere a line is printed at each quarter of a task
    that takes longer than `SHORT`; with ``quiet`` nothing.

    Yields
    ------
    callable
        Called with the keywords ``total`` and ``completed``, in any unit, to update the
        progress.
    """
    if quiet:
        yield lambda **_: None
        return
    if not sys.stderr.isatty():
        yield _quarter_printer(task)
        return
    # slow to import
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


def _quarter_printer(task: str) -> Callable[..., object]:
    """Return a function that prints the progress of a long task at each quarter.

    The function takes the total and the completed amount, in any unit.
    """
    started, quarters_printed = time.perf_counter(), 0

    def update(total: float, completed: float) -> None:
        """Print a line if ``completed`` has passed a further quarter of ``total``.

        At most three lines are printed, and none before `SHORT` seconds.
        """
        nonlocal quarters_printed
        seconds = time.perf_counter() - started
        quarters = min(3, int(4.0 * completed / total) if total else 0)
        if quarters > quarters_printed and seconds > SHORT:
            quarters_printed = quarters
            line = f"{task}: {25 * quarters} % after {say_time(round(seconds))}"
            print_lines(line, sys.stderr)

    return update


@contextmanager
def progress_bar(n_divisors: int, *, quiet: bool) -> Iterator[Advance]:
    """Show the progress of sampling within a with block.

    The unit is the estimated time on one core.  The bar never goes back: it stops while
    a new round increases the total.  A log begins with the estimated time of the first
    round.

    Parameters
    ----------
    n_divisors : int
        Number of divisors at each point, from which the time is estimated.
    quiet : bool
        Whether to show nothing.

    Yields
    ------
    callable
        The function to call with progress, as `montecarlo.estimation.engine.run` does.
    """
    with open_bar("sampling", quiet=quiet) as update:
        total = done = largest_share = 0.0
        points: set[DesignPoint] = set()
        has_begun = quiet or sys.stderr.isatty()

        def advance(point: DesignPoint, finished: int, requested: int) -> None:
            """Update the bar when replicates of a point have finished or are requested.

            ``finished`` and ``requested`` are numbers of replicates since the last
            call.
            """
            nonlocal total, done, largest_share, has_begun
            seconds = replicate_seconds(point, n_divisors)
            points.add(point)
            if finished and not has_begun:
                has_begun = True
                if total > SHORT:
                    duration = f"about {say_time(round(total))} on one core"
                    line = f"sampling: {len(points)} points, {duration}"
                    print_lines(line, sys.stderr)
            total, done = total + requested * seconds, done + finished * seconds
            largest_share = max(largest_share, done / total if total else 0.0)
            update(total=total, completed=largest_share * total)

        yield advance

"""What the terminal shows of an observation."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from montecarlo.printing import print_lines, printable
from montecarlo.report.content.observed.views import ObservedView
from montecarlo.report.terminal import open_console

#: Heads that the terminal lists.
MOST_LINES = 12


@contextmanager
def heads_bar(n_heads: int, *, quiet: bool) -> Iterator[Callable[[int], object]]:
    """Show a progress bar on standard error, if that is a terminal.

    Yields
    ------
    callable
        Told how many heads are done.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=open_console(sys.stderr),
        transient=True,
    ) as bar:
        task = bar.add_task("observing", total=float(n_heads))
        yield lambda done: bar.update(task, completed=float(done))


def print_observed(view: ObservedView, written: Sequence[Path]) -> None:
    """Print the heads farthest off, what is said of all, and the paths written."""
    console = open_console(sys.stdout, highlight=False)
    table = Table(box=None, pad_edge=False)
    for heading in ("layer", "head"):
        table.add_column(heading, justify="right")
    for heading in ("Var(q.k)", "within rows", "divided", "right divisor"):
        table.add_column(heading, justify="right")
    table.add_column("state")
    table.add_column("what fails, and the factor it alone makes")
    for line in view.lines[:MOST_LINES]:
        names = ("score_variance", "score_row_variance", "scaled_row_variance")
        values = [line.cells[name].value for name in (*names, "unit_divisor")]
        causes = ", ".join(f"{name} {cell.value:.3g}" for name, cell in line.causes)
        shown = [f"{value:.4g}" for value in values]
        cells = (line.layer, line.head, *shown, line.state, causes or "-")
        table.add_row(*map(printable, cells))
    console.print(table)
    states = ", ".join(f"{count} {state}" for state, count in view.states if count)
    console.print(
        printable(
            f"{view.n_heads} heads, d_k = {view.record['d_k']}, "
            f"divisor {view.record['divisor']:.4g}: {states}"
        )
    )
    if not view.record["intervals"]:
        console.print("fewer than 5 sequences: these tokens are described, no more")
    for path in written:
        print_lines(path)

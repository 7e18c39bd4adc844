"""What the terminal shows: lists, a progress bar, the table of claims at the end."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from montecarlo.attention.quantities import QUANTITIES
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.recorded import RECORDED
from montecarlo.names import look_up
from montecarlo.printing import print_lines, printable
from montecarlo.report.content.views import Findings
from montecarlo.report.figures import FIGURES
from montecarlo.report.language.catalogues import LANGUAGES
from montecarlo.sampling.cost import replicate_seconds
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.distributions import DISTRIBUTIONS
from montecarlo.study.presets import PRESETS
from montecarlo.study.running import Advance

#: Lines of a table that is piped are not cut to a terminal's width.
PIPED_WIDTH = 160


def open_console(stream: TextIO, *, highlight: bool = True) -> Console:
    """Return a console that takes no text for markup."""
    width = None if stream.isatty() else PIPED_WIDTH
    return Console(
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
    """Show the seconds that sampling takes; yields what `run_study` tells of it."""
    with open_bar("sampling", quiet=quiet) as update:
        total = completed = 0.0

        def advance(point: DesignPoint, finished: int, wanted: int) -> None:
            nonlocal total, completed
            seconds = replicate_seconds(point, n_divisors)
            total, completed = total + wanted * seconds, completed + finished * seconds
            update(total=total, completed=completed)

        yield advance


def make_table(
    headings: Iterable[str], rows: Iterable[Iterable[str]], *, right: int = 0
) -> Table:
    """Return a table without borders, its first columns set to the right."""
    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number < right else "left")
    for row in rows:
        table.add_row(*map(printable, row))
    return table


def print_outcome(findings: Findings, written: Sequence[Path]) -> None:
    """Print the table of claims with their verdicts, and the paths written."""
    rows = []
    for claim in findings.claims:
        interpretations = [f"{r.id}: {r.verdict}" for r in claim.interpretations]
        several = interpretations if interpretations[1:] else []
        rows.append((claim.id, claim.verdict, ", ".join(several)))
    console = open_console(sys.stdout)
    console.print(make_table(("claim", "verdict", "interpretations"), rows))
    if refuted := findings.record.failed_self_checks():
        failed = ", ".join(refuted)
        console.print(printable(f"self-checks refuted: {failed}"))
    for path in sorted(written, key=lambda path: path.name == "index.html"):
        print_lines(path)  # last what to open


def print_list(kind: str) -> None:
    """Print what there is of one kind.

    Raises
    ------
    ValueError
        If the kind is none of these.
    """
    open_console(sys.stdout).print(make_table(*look_up("list", kind, _LISTS)()))


Listing = tuple[tuple[str, ...], list[tuple[str, ...]]]


def _list_presets() -> Listing:
    rows: list[tuple[str, ...]] = []
    for name, grid in PRESETS.items():
        least, most = grid.seconds()
        rows.append(
            (
                name,
                f"{grid.d_k[0]} to {max(grid.d_k)}",
                f"{grid.n_keys[0]} to {max(grid.n_keys)}",
                ", ".join(f"({d}, {n})" for d, n in grid.edges) or "-",
                str(1 + len(grid.distributions)),
                str(len(grid.points())),
                f"{grid.first} to {grid.most}",
                f"{least:.0f} to {most:.0f} s",
            )
        )
    headings = ("preset", "d_k", "n", "edges (d_k, n)", "distributions", "points")
    return (*headings, "replicates", "CPU time, about"), rows


#: What there is to be listed: headings and rows of each kind.
_LISTS: dict[str, Callable[[], Listing]] = {
    "figures": lambda: (
        ("figure", "shows"),
        [(f.id, f.shows) for f in FIGURES.values()],
    ),
    "distributions": lambda: (
        ("distribution", "kurtosis", "finite moments below order"),
        [
            (one.name, f"{one.kurtosis:g}", f"{one.moments:g}")
            for one in DISTRIBUTIONS.values()
        ],
    ),
    "claims": lambda: (
        ("claim", "topic", "texts"),
        [
            (c.id, c.topic, ", ".join(f"{s.text} {s.section}" for s in c.source))
            for c in read_catalogue().claim
        ],
    ),
    "languages": lambda: (
        ("language", "tag", "name"),
        [(code, tag, name) for code, (tag, name) in LANGUAGES.items()],
    ),
    "quantities": lambda: (
        ("quantity", "symbol"),
        [
            (name, known.symbol)
            for name, known in {**QUANTITIES, **RECORDED}.items()
            if known.symbol
        ],
    ),
    "presets": _list_presets,
}

"""What the terminal shows: lists, a progress bar, the table of claims at the end."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from montecarlo.attention.quantities import QUANTITIES
from montecarlo.claims.catalogue import read_catalogue
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
def progress_bar(n_divisors: int, *, quiet: bool) -> Iterator[Advance]:
    """Show a progress bar on standard error while sampling, if that is a terminal.

    Yields
    ------
    callable
        For `montecarlo.study.running.run_study`.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda *_: None
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=open_console(sys.stderr),
        transient=True,
    ) as bar:
        task = bar.add_task("sampling", total=0.0)
        total = 0.0

        def advance(point: DesignPoint, finished: int, wanted: int) -> None:
            nonlocal total
            seconds = replicate_seconds(point, n_divisors)
            total += wanted * seconds
            bar.update(task, total=total, advance=finished * seconds)

        yield advance


def print_outcome(findings: Findings, written: Sequence[Path]) -> None:
    """Print the table of claims with their verdicts, and the paths written."""
    table = Table(box=None, pad_edge=False)
    for heading in ("claim", "verdict", "interpretations"):
        table.add_column(heading)
    for claim in findings.claims:
        interpretations = ", ".join(
            f"{r.id}: {r.verdict}" for r in claim.interpretations
        )
        cells = (
            claim.id,
            claim.verdict,
            interpretations if claim.interpretations[1:] else "",
        )
        table.add_row(*map(printable, cells))
    console = open_console(sys.stdout)
    console.print(table)
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
    headings, rows = look_up("list", kind, _LISTS)()
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*map(printable, row))
    open_console(sys.stdout).print(table)


Listing = tuple[tuple[str, ...], list[tuple[str, ...]]]


def _list_distributions() -> Listing:
    return ("distribution", "kurtosis", "finite moments below order"), [
        (distribution.name, f"{distribution.kurtosis:g}", f"{distribution.moments:g}")
        for distribution in DISTRIBUTIONS.values()
    ]


def _list_claims() -> Listing:
    return ("claim", "topic", "texts"), [
        (c.id, c.topic, ", ".join(f"{s.text} {s.section}" for s in c.source))
        for c in read_catalogue().claim
    ]


def _list_languages() -> Listing:
    return ("language", "tag", "name"), [
        (code, tag, name) for code, (tag, name) in LANGUAGES.items()
    ]


def _list_quantities() -> Listing:
    return ("quantity", "symbol"), [(q.name, q.symbol) for q in QUANTITIES.values()]


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
    return (
        "preset",
        "d_k",
        "n",
        "edges (d_k, n)",
        "distributions",
        "points",
        "replicates",
        "CPU time, about",
    ), rows


def _list_figures() -> Listing:
    return ("figure", "shows"), [(f.id, f.shows) for f in FIGURES.values()]


_LISTS = {
    "figures": _list_figures,
    "distributions": _list_distributions,
    "claims": _list_claims,
    "languages": _list_languages,
    "quantities": _list_quantities,
    "presets": _list_presets,
}

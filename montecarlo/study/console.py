"""Prints tables to standard output, laid out by rich."""

import sys
from collections.abc import Iterable
from io import StringIO

from rich.console import Console
from rich.table import Table

from montecarlo.plain_text import printable
from montecarlo.printing import write_out


def print_table(
    headings: Iterable[str], rows: Iterable[Iterable[str]], *, right: int = 0
) -> None:
    """Print a table to standard output, without borders.

    The first ``right`` columns are right-aligned, the others left-aligned.
    """
    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(
            heading,
            justify="right" if number < right else "left",
            overflow="fold",  # wrap words that are too long, instead of truncating them
        )
    for row in rows:
        table.add_row(*map(printable, row))
    printed, is_terminal = StringIO(), sys.stdout.isatty()
    console = Console(
        file=printed,
        force_terminal=is_terminal,
        width=None if is_terminal else 160,
        markup=False,
        emoji=False,
        highlight=False,
    )
    console.print(table)
    write_out(printed.getvalue(), sys.stdout)

"""Tables on standard output, as rich sets them."""

import sys
from collections.abc import Iterable
from io import StringIO

from rich.console import Console
from rich.table import Table

from montecarlo.plain_text import printable
from montecarlo.printing import write_out

#: Lines of a table that is piped are not cut to a terminal's width.
PIPED_WIDTH = 160


def print_table(
    headings: Iterable[str], rows: Iterable[Iterable[str]], *, right: int = 0
) -> None:
    """Print a table without borders, its first columns set to the right."""
    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(
            heading,
            justify="right" if number < right else "left",
            overflow="fold",  # a phrase without spaces is wrapped, not cut
        )
    for row in rows:
        table.add_row(*map(printable, row))
    printed, is_terminal = StringIO(), sys.stdout.isatty()
    console = Console(
        file=printed,
        force_terminal=is_terminal,
        width=None if is_terminal else PIPED_WIDTH,
        markup=False,
        emoji=False,
        highlight=False,
    )
    console.print(table)
    write_out(printed.getvalue(), sys.stdout)

"""Tables on the terminal."""

from collections.abc import Iterable

from rich.table import Table

from montecarlo.plain_text import printable


def make_table(
    headings: Iterable[str], rows: Iterable[Iterable[str]], *, right: int = 0
) -> Table:
    """Return a table without borders, its first columns set to the right."""
    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(
            heading,
            justify="right" if number < right else "left",
            overflow="fold",  # a phrase without spaces is wrapped, not cut
        )
    for row in rows:
        table.add_row(*map(printable, row))
    return table

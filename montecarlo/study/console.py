"""A console on a stream, and tables on it, as rich has them."""

from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table

from montecarlo.plain_text import printable
from montecarlo.printing import printing

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

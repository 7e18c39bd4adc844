"""What a report can be written as: a module here is a format, by its own name.

Its ``files`` takes contents and yields the files that it has: the name of each, what
renders it, and the code of its language.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from montecarlo.report.render.contents import Contents, File

#: What is written where nothing else is asked for.
DEFAULT = "html"
#: The one that has flavours.
MARKDOWN = "markdown"
#: Their names; nothing of them is imported before it is asked for.
FORMATS = (DEFAULT, *(m.name for m in iter_modules(__path__) if m.name != DEFAULT))


def read_format(name: str) -> "Callable[[Contents], Iterator[File]]":
    """Return what yields the files of a format."""
    files: Callable[[Contents], Iterator[File]]
    files = import_module(f"{__name__}.{name}").files
    return files

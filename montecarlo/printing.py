"""What is printed: no control characters of others, and in any terminal's encoding.

A member of an archive, a tensor, a key or a file may be called anything: escapes that
colour, that rename the window, that turn the direction of writing.
"""

import codecs
import os
import sys
import unicodedata
from typing import TextIO

#: Control, format, surrogate, private and unassigned characters; ends of lines and
#: paragraphs.
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
#: What an encoding without these gets in their place.
_SPELLED = {"±": "+-", "×": "*", "–": "-", "−": "-"}
_HANDLER = "montecarlo.spelled"


def printable(text: object) -> str:
    r"""Return a text whose characters can all be seen; lines stay lines.

    Examples
    --------
    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(
        repr(one)[1:-1] if unicodedata.category(one) in _UNSEEN and one != "\n" else one
        for one in str(text)
    )


def print_lines(text: object, stream: TextIO | None = None) -> None:
    """Print a text as `printable` has it; by default on standard output.

    Where who reads it has ended, as ``head`` does, there is nobody left to tell.
    """
    try:
        print(printable(text), file=stream, flush=True)
    except BrokenPipeError:
        print_nowhere(stream or sys.stdout)


def print_nowhere(stream: TextIO) -> None:
    """Let a stream lead nowhere from now on, so that what remains is done as well."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def spell_out() -> None:
    """Let streams of this process spell what their encoding lacks, and not fail."""
    codecs.register_error(_HANDLER, _spell)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_HANDLER)


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    found = "".join(_SPELLED.get(one, ascii(one)[1:-1]) for one in lacking)
    return found, error.end

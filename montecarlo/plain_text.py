r"""Escapes text that a terminal or a CI runner would interpret as commands.

Names of archive members, tensors, fields and files are not trusted.  They may contain
escape sequences that change colours, the window's title or the writing direction, and
workflow commands such as ``::error::`` and ``##[error]``, which GitHub's runner reads
from the output.
"""

import re
import unicodedata

#: Unicode categories: control, format, surrogate, private-use and unassigned
#: characters, line and paragraph separators.
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
#: Where a command of GitHub's runner begins: ``::`` after white space or at the start
#: of a line (a table cell may become one), and ``##[`` anywhere.
_RUNNER_COMMAND = re.compile(r"(?<!\S)(?=::)|(?<=##)(?=\[)")


def printable(text: object) -> str:
    r"""Return a text with invisible characters and commands of CI runners escaped.

    Line feeds stay as they are.

    Examples
    --------
    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    >>> print(printable("::error::no ##[error]"))
    \::error::no ##\[error]
    """
    shown = "".join(
        repr(char)[1:-1]
        if unicodedata.category(char) in _INVISIBLE and char != "\n"
        else char
        for char in str(text)
    )
    return _RUNNER_COMMAND.sub(r"\\", shown)


def on_one_line(text: object) -> str:
    r"""Return a text escaped as by `printable`, and its line feeds as well.

    Examples
    --------
    >>> on_one_line("a\nb")
    'a\\nb'
    """
    return printable(text).replace("\n", r"\n")

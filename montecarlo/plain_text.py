r"""Text that neither a terminal nor a runner of continuous integration obeys.

Names of archive members, tensors, fields and files come from others: they may hold
escapes that colour, rename the window or turn the direction of writing, and commands
such as ``::error::`` and ``##[error]``, which GitHub's runner takes from the output.
"""

import re
import unicodedata

#: Control, format, surrogate, private and unassigned characters; ends of lines and
#: paragraphs.
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
#: Where a command begins: ``::`` at the start of a line, which may be that of a table's
#: cell, too; ``##[`` anywhere.
_COMMAND = re.compile(r"(?<!\S)(?=::)|(?<=##)(?=\[)")


def printable(text: object) -> str:
    r"""Return a text with invisible characters and commands escaped; lines are kept.

    Examples
    --------
    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    >>> print(printable("::error::no ##[error]"))
    \::error::no ##\[error]
    """
    shown = "".join(
        repr(one)[1:-1] if unicodedata.category(one) in _UNSEEN and one != "\n" else one
        for one in str(text)
    )
    return _COMMAND.sub(r"\\", shown)


def on_one_line(text: object) -> str:
    r"""Return a text as `printable` has it, and with ends of lines escaped, too.

    Examples
    --------
    >>> on_one_line("a\nb")
    'a\\nb'
    """
    return printable(text).replace("\n", r"\n")

"""Validates user input: names, folders and numbers.

`parse_...` functions take text from the command line or a file, `require_...` functions
an argument from Python.  All raise `InputError` for invalid input; ``name`` is what the
message calls it.
"""

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from numbers import Integral, Real
from pathlib import Path
from typing import TypeVar

from montecarlo.errors import InputError, show

Entry = TypeVar("Entry")
#: The name of the distribution package; `montecarlo` on PyPI is another project.
PROJECT = "montecarlo-attention"
#: Messages show a list of names in full up to this number of characters.
MOST_LISTED = 160
#: Kind of names -> KIND of ``--list`` that shows them, with a note.
LISTS = {"quantity": "quantities", "claim": "claims", "distribution": "distributions"}
#: The name that means an empty list of names.
NONE = "none"
#: Largest number of digits of an integer; any such number is in the range of a float.
MOST_DIGITS = 50
MOST_SEED = 2**63 - 1
MOST_JOBS = 1024
#: Largest number of replicates of a design point.
MOST_REPLICATES = 2**20
#: Exclusive limits of a nominal error rate.  Lower ones cannot be verified by
#: simulation.
LEAST_ERROR_RATE, MOST_ERROR_RATE = 1e-12, 0.5
#: Largest d_k or number of keys, in the range of a float; only far less can be sampled.
MOST_SIZE = 10**MOST_DIGITS
#: Stricter than `int` and `float`, which accept digits of any script and underscores.
_INTEGER = re.compile(f"[+-]?[0-9]{{1,{MOST_DIGITS}}}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def suggest(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'NAME'?" with the most similar known name, or "".

    Words of a name, which ``_`` joins, may be in another order, and in capitals.  Of
    several names with commas between them, the hint is that one alone is taken.
    """
    alone = " One name alone is taken here." * ("," in name)
    by_words = {" ".join(sorted(one.lower().split("_"))): one for one in known}
    asked = " ".join(sorted(name.lower().split("_")))
    near = difflib.get_close_matches(asked, by_words, n=1)
    return alone or (f" Did you mean {by_words[near[0]]!r}?" if near else "")


def look_up(kind: str, name: str, table: Mapping[str, Entry]) -> Entry:
    """Return ``table[name]``, or raise an `InputError` that suggests known names.

    Parameters
    ----------
    kind : str
        What the names denote, for messages: ``"distribution"``, ``"claim"``.
    name : str
    table : mapping

    Raises
    ------
    InputError
        If the table lacks the name, or the name is no string.  The message lists the
        known names, or the three most similar ones and how to list all, and suggests a
        similar name.
    """
    require_text(kind, name)
    if name in table:
        return table[name]
    known = ", ".join(table)
    if len(known) > MOST_LISTED:
        nearest = difflib.get_close_matches(name[:MOST_LISTED], table, n=3, cutoff=0.0)
        many = f"{len(table)} in all: python -m montecarlo --list {LISTS.get(kind, '')}"
        known = f"{', '.join(nearest)}, ... ({many.strip()})"
    raise InputError(
        f"{kind} must be one of {known}; got {show(name)}.{suggest(name, table)}"
    )


def require_names(kind: str, names: Sequence[str], known: Iterable[str]) -> list[str]:
    """Return a user's names as a list, after checking that all are known.

    ``["none"]`` gives an empty list.  ``kind`` is what messages call the names.  An
    unknown name raises an `InputError`, as from `look_up`.
    """
    table = {name: name for name in known}
    return [] if list(names) == [NONE] else [look_up(kind, x, table) for x in names]


def parse_folder(name: str, text: str) -> Path:
    """Return the path in a text, with ``~`` expanded.  The folder need not exist.

    ``name`` is what messages call the input.

    Raises
    ------
    InputError
        If the path is empty or cannot be accessed, for lack of permission or because of
        a loop of symbolic links.
    """
    if not text.strip() or "\0" in text:
        raise InputError(f"{name} must name a folder, got {text!r}")
    try:
        folder = Path(text).expanduser()
        folder.stat()
    except (FileNotFoundError, NotADirectoryError):  # reported on first use
        return folder
    except (RuntimeError, UnicodeEncodeError, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{name} must name a folder, got {text!r}: {reason}") from None
    return folder


def parse_whole(
    name: str, text: str, least: float = -math.inf, most: float = math.inf
) -> int:
    """Return the integer in a text of ASCII digits with an optional sign.

    ``name`` is what messages call the input.

    Raises
    ------
    InputError
        If it is no integer, has more than `MOST_DIGITS` digits, or is not from
        ``least`` to ``most``, ends included.
    """
    if _INTEGER.fullmatch(text) is None:
        hint = "; in Python, grid takes lists" * (name in {"d-k", "keys"})
        raise InputError(f"{name} must be a whole number, got {show(text)}{hint}")
    number = int(text)
    if not least <= number <= most:
        raise InputError(f"{name} must lie between {least} and {most}, got {number}")
    return number


def parse_decimal(name: str, text: str) -> float:
    """Return the finite number in a text such as 0.01 or 1e-2, as a float.

    For any other text an `InputError` is raised, which calls it ``name``.
    """
    number = float(text) if _DECIMAL.fullmatch(text) else math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} must be a number such as 0.01, got {text!r}")
    return number


def require_text(name: str, value: object) -> str:
    """Return ``value`` if it is a string; otherwise raise an `InputError`.

    ``name`` is what the message calls it.
    """
    if not isinstance(value, str):
        raise InputError(f"{name} must be a text, got {show(value)}")
    return value


def require_whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return ``value`` as an `int` if it is an integer from ``least`` to ``most``.

    Both ends are included.  Integers of Python and NumPy are accepted, and bools are
    not.  Otherwise an `InputError` is raised, which calls the value ``name``.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InputError(
            f"{name} must be an integer of at least {least}, got {show(value)}"
        )
    if most is not None and int(value) > most:
        raise InputError(f"{name} must be at most {most}, got {show(value)}")
    return int(value)


def require_flag(name: str, value: object) -> bool:
    """Return ``value`` as a `bool` if it is True or False, of Python or NumPy.

    Otherwise an `InputError` is raised, which calls the value ``name``.
    """
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return bool(value)
    raise InputError(f"{name} must be True or False, got {show(value)}")


def require_number(
    name: str,
    value: object,
    least: float = -math.inf,
    most: float = math.inf,
    *,
    ends: bool = True,
) -> float:
    """Return ``value`` as a float if it is a real number from ``least`` to ``most``.

    ``ends`` says whether the limits themselves are allowed.  So an infinite value is
    accepted only if a limit is infinite, as both are by default, and ``ends`` is True.
    NaN and bools are never accepted.  Otherwise an `InputError` is raised, which calls
    the value ``name``.
    """
    number = math.nan
    if not isinstance(value, bool) and isinstance(value, Real):
        with suppress(OverflowError):
            number = float(value)
    if least <= number <= most and (ends or least < number < most):
        return number
    words = " from {:g} to {:g}" if ends else " above {:g} and below {:g}"
    limits = words.format(least, most) if least > -math.inf else ""
    raise InputError(f"{name} must be a number{limits}, got {show(value)}")


def require_executor(value: object) -> None:
    """Raise `InputError` unless ``value`` is None or has a ``submit`` method."""
    if value is not None and not callable(getattr(value, "submit", None)):
        raise InputError(
            f"executor must be a concurrent.futures.Executor, got {show(value)}"
        )

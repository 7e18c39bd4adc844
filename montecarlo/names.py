"""Reads what a user types or passes to a function: names, folders and numbers.

Anything else, or out of its limits, is refused with an `InputError`.
"""

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from numbers import Integral, Real
from pathlib import Path
from typing import TypeVar

from montecarlo.errors import InputError, show

Entry = TypeVar("Entry")
#: The name of the distribution package; `montecarlo` on PyPI is another project.
PROJECT = "montecarlo-attention"
#: Characters of a list of names that a message shows whole.
MOST_LISTED = 160
#: The name that means an empty list of names.
NONE = "none"
#: Digits of a whole number at most: any such number fits in a float.
MOST_DIGITS = 50
MOST_SEED = 2**63 - 1
MOST_JOBS = 1024
#: Replicates of a point, whatever the grid.
MOST_REPLICATES = 2**20
#: Bounds of a nominal error rate: below the least nothing could ever be counted.
LEAST_ERROR_RATE, MOST_ERROR_RATE = 1e-12, 0.5
#: Sizes up to here are floats; what can be sampled is far less.
MOST_SIZE = 10**MOST_DIGITS
#: Python's own `int` and `float` take digits of every script, and underscores.
_WHOLE = re.compile("[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def look_up(kind: str, name: str, table: Mapping[str, Entry]) -> Entry:
    """Return the entry of a table by its name.

    ``kind`` is what the table holds, for messages: ``"distribution"``, ``"claim"``.

    Raises
    ------
    InputError
        If there is none; lists the known names, of a long list the nearest three and
        how to see all, and the nearest if one is close.
    """
    require_text(kind, name)
    if name in table:
        return table[name]
    near = difflib.get_close_matches(name, table, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    known = ", ".join(table)
    if len(known) > MOST_LISTED:
        nearest = difflib.get_close_matches(name[:MOST_LISTED], table, n=3, cutoff=0.0)
        many = f"{len(table)} in all: python -m montecarlo --list"
        known = f"{', '.join(nearest)}, ... ({many})"
    raise InputError(f"{kind} must be one of {known}; got {show(name)}.{hint}")


def look_up_all(
    kind: str, names: Sequence[str], table: Mapping[str, Entry]
) -> list[Entry]:
    """Return the entries of a table by their names; ``["none"]`` gives no entry."""
    if list(names) == [NONE]:
        return []
    return [look_up(kind, name, table) for name in names]


def parse_folder(name: str, typed: str) -> Path:
    """Return a folder named by an option or a file, with ``~`` expanded.

    Expanded once, here, so that all later writes go to the same place.

    Raises
    ------
    InputError
        If the name is empty, or the path cannot be reached: no permission, or a loop of
        links.  The folder need not exist.
    """
    if not typed.strip() or "\0" in typed:
        raise InputError(f"{name} must name a folder, got {typed!r}")
    try:
        folder = Path(typed).expanduser()
        folder.stat()
    except (FileNotFoundError, NotADirectoryError):  # reported where it is made or read
        return folder
    except (RuntimeError, UnicodeEncodeError, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{name} must name a folder, got {typed!r}: {reason}"
        ) from None
    return folder


def parse_whole(name: str, typed: str) -> int:
    """Return a typed whole number, in the digits 0 to 9."""
    if len(typed) > MOST_DIGITS:
        raise InputError(
            f"{name} must be a whole number of at most {MOST_DIGITS} digits, got "
            f"{len(typed)} characters"
        )
    if _WHOLE.fullmatch(typed) is None:
        raise InputError(f"{name} must be a whole number, got {typed!r}")
    return int(typed)


def parse_within(name: str, typed: str, least: int, most: int) -> int:
    """Return a typed whole number within limits."""
    number = parse_whole(name, typed)
    if not least <= number <= most:
        raise InputError(f"{name} must lie between {least} and {most}, got {number}")
    return number


def parse_decimal(name: str, typed: str) -> float:
    """Return a typed finite number, in the digits 0 to 9: 0.01 or 1e-2."""
    number = float(typed) if _DECIMAL.fullmatch(typed) else math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} must be a number, got {typed!r}")
    return number


def require_text(name: str, value: object) -> str:
    """Return an argument that must be a string."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a text, got {show(value)}")
    return value


def require_whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return an argument that must be a whole number within limits, as an `int`.

    NumPy's integers are accepted; True and False are not.
    """
    number = (
        int(value) if isinstance(value, Integral) and not is_no_number(value) else None
    )
    if number is None or number < least:
        raise InputError(
            f"{name} must be an integer of at least {least}, got {show(value)}"
        )
    if most is not None and number > most:
        raise InputError(f"{name} must be at most {most}, got {show(value)}")
    return number


def require_flag(name: str, value: object) -> bool:
    """Return an argument that must be True or False, perhaps NumPy's."""
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return bool(value)
    raise InputError(f"{name} must be True or False, got {show(value)}")


def is_no_number(value: object) -> bool:
    """Tell whether it is a bool or a time, which Python and NumPy count as numbers."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return isinstance(value, bool) or kind == "m"


def require_number(
    name: str,
    value: object,
    least: float = -math.inf,
    most: float = math.inf,
    *,
    ends: bool = True,
) -> float:
    """Return an argument that must be a number, perhaps infinite, as a float.

    ``ends`` says whether the limits themselves are allowed.
    """
    number = math.nan
    if isinstance(value, Real) and not is_no_number(value):
        with suppress(OverflowError):
            number = float(value)
    if least <= number <= most and (ends or least < number < most):
        return number
    limits = f" between {least:g} and {most:g}" if least > -math.inf else ""
    raise InputError(f"{name} must be a number{limits}, got {show(value)}")


def require_error_rate(name: str, value: object) -> float:
    """Return an argument that must be a nominal error rate."""
    number = require_number(name, value)
    if not LEAST_ERROR_RATE <= number < MOST_ERROR_RATE:
        raise InputError(
            f"{name} must be at least {LEAST_ERROR_RATE} and below {MOST_ERROR_RATE}, "
            f"got {show(value)}"
        )
    return number


def require_executor(value: object) -> None:
    """Require None or an object with a ``submit`` method."""
    if value is not None and not callable(getattr(value, "submit", None)):
        raise InputError(
            f"executor must be a concurrent.futures.Executor, got {show(value)}"
        )

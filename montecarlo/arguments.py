"""Arguments of every command, as typed: what no option can mean is refused at once."""

import argparse
from collections.abc import Iterable, Mapping
from typing import TypeVar

from montecarlo.names import look_up

Entry = TypeVar("Entry")
#: Options whose name in the namespace is not that on the command line.
_TYPED = {"source": "from", "figures": "only"}
#: Options of which nothing is a value.
_MAY_BE_EMPTY = {"initialisation"}
#: What stands for an empty list of names.
NONE = "none"


def require_values(arguments: argparse.Namespace) -> None:
    """Refuse options without a value: ``--config=``, and ``--seed=--``.

    Parameters
    ----------
    arguments : argparse.Namespace
        As parsed.

    Raises
    ------
    ValueError
        One line: the option, requirement, what came.

    Notes
    -----
    Up to Python 3.12 argparse drops a value ``--`` and leaves an empty list.
    """
    for name, value in vars(arguments).items():
        values = value if isinstance(value, list) and value else [value]
        for one in values:
            empty = one == "" and name not in _MAY_BE_EMPTY
            if empty or one in ([], "--"):
                typed = "--" if one == [] else one
                raise ValueError(f"{flag(name)} must have a value, got {typed!r}")


def flag(name: str) -> str:
    """Return an option's name as it is typed, without the dashes."""
    return _TYPED.get(name, name).replace("_", "-")


def require_defaults(
    arguments: argparse.Namespace,
    parser: argparse.ArgumentParser,
    names: Iterable[str],
    why: str,
) -> None:
    """Refuse options that do not act beside others.

    Parameters
    ----------
    arguments : argparse.Namespace
    parser : argparse.ArgumentParser
        Which knows the defaults.
    names : iterable of str
        Options that do not act.
    why : str
        Beside what, for the message: ``"--replicates"``.

    Raises
    ------
    ValueError
        If one is given all the same.
    """
    for name in sorted(names):
        value = getattr(arguments, name)
        if value != parser.get_default(name):
            raise ValueError(f"{why} must stand without --{flag(name)}, got {value!r}")


def named_list(name: str, typed: str, table: Mapping[str, Entry]) -> list[Entry]:
    """Return the entries of a table that a list with commas names.

    Parameters
    ----------
    name : str
        The option, for the message.
    typed : str
        ``none`` for an empty list, which has to be meant.
    table : mapping

    Raises
    ------
    ValueError
        If there is no name, or one is not in the table.
    """
    names = [part.strip() for part in typed.split(",") if part.strip()]
    if not names:
        raise ValueError(
            f"{name} must name some of {', '.join(table)}, or be {NONE}, got {typed!r}"
        )
    if names == [NONE]:
        return []
    return [look_up(name, each, table) for each in names]

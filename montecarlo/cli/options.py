"""Options: how a command line becomes a record with types, and what is shared.

A command's options are a frozen dataclass of `command_line`.  A field's type says what
may be typed, its `option_field` what it means and under which heading of the help it
stands.  Lists have commas between their names, and an option that is given again adds
to its list.  What no option can mean is an `InputError` of one line.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, field, fields
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, NewType, NoReturn, get_args, get_origin, get_type_hints

from montecarlo.errors import InputError, show
from montecarlo.names import (
    MOST_JOBS,
    MOST_SEED,
    parse_decimal,
    parse_folder,
    parse_whole,
    suggest,
)
from montecarlo.printing import write_out
from montecarlo.study.executors import EXECUTORS

#: Heading of the options that most people need; a page of help begins with it.
FIRST = "what most people need"
SAMPLING = "sampling"
OTHER = "this command"
#: Options of which nothing is a value.
_MAY_BE_EMPTY = {"initialisation"}

# --- Types ----------------------------------------------------------------------------

Folder = NewType("Folder", Path)
Seed = NewType("Seed", int)
Jobs = NewType("Jobs", int)
Names = tuple[str, ...]


def parse_indices(name: str, typed: str) -> range:
    """Return the indices of replicates that ``A:B`` names."""
    first, _, stop = typed.partition(":")
    indices = range(parse_whole(name, first), parse_whole(name, stop))
    if not indices or indices.start < 0:
        raise InputError(f"{name} must be A:B with A below B, got {typed!r}")
    return indices


#: What stands for a value of a type in the help, and its value: of the option's name
#: and what was typed.
TYPES: dict[Any, tuple[str, Callable[[str, str], Any]]] = {
    str: ("NAME", lambda _, typed: typed),
    int: ("N", parse_whole),
    float: ("X", parse_decimal),
    range: ("A:B", parse_indices),
    Path: ("FILE", lambda _, typed: Path(typed)),
    Folder: ("DIR", parse_folder),
    Seed: ("N", partial(parse_whole, least=0, most=MOST_SEED)),
    Jobs: ("N", partial(parse_whole, least=1, most=MOST_JOBS)),
}


def split_names(typed: str) -> list[str]:
    """Return the names of a list as typed; one that is missing stays, empty."""
    return [part.strip() for part in typed.split(",")]


#: An option with a list of names.
NAMES: dict[str, Any] = {"action": "extend", "type": split_names, "metavar": "NAMES"}
_SWITCH = {"action": "store_true"}
#: What an option means, whichever command has it.
SHARED: dict[str, dict[str, Any]] = {
    "--output": {"help": "folder to write (default: output)", "metavar": "DIR"},
    "--lang": {"help": "languages, with commas, or all (default)", **NAMES},
    "--json": {"help": "print one JSON object", **_SWITCH},
    "--fail-on": {"help": "outcomes that make the command exit 1", **NAMES},
    "--preset": {"help": "quick, standard (default) or full"},
    "--seed": {"help": "of all random numbers (default: 1)", "metavar": "N"},
    "--jobs": {"help": "workers (default: one per core)", "metavar": "N"},
    "--executor": {"help": f"{', '.join(EXECUTORS)} (docs/cluster.md)"},
    "--scheduler": {"help": "address of a Dask scheduler", "metavar": "ADDRESS"},
    "--quiet": {"help": "print nothing but errors", **_SWITCH},
    "--help": {"help": "print this, and stop", "action": "help"},
}


def option_field(
    heading: str,
    told: str | None = None,
    default: Any = None,  # noqa: ANN401
    flag: str | None = None,
    **settings: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401 - as `dataclasses.field`
    """Declare a field of a command's options.

    ``told`` is its help, by default that of `SHARED`; ``flag`` how it is typed, where
    that is not the field's name: a positional argument has no dashes.  Settings are
    argparse's, in the place of those that the type has.
    """
    if told is not None:
        settings["help"] = told
    return field(default=default, metadata={"": (heading, flag, settings)})


def _flag(one: Field[Any]) -> str:
    _, flag, _ = one.metadata[""]
    return flag or f"--{one.name.replace('_', '-')}"


def _type_of(hint: Any) -> tuple[bool, Any]:  # noqa: ANN401
    """Return whether a field holds a list, and the type of one value of it."""
    args = get_args(hint)
    if NoneType in args:
        return _type_of(next(one for one in args if one is not NoneType))
    return (True, args[0]) if get_origin(hint) is tuple else (False, hint)


# --- The command line -----------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """A command's parser: options under headings, complaints of one line.

    ``options`` is the dataclass of them, whose docstring says what the command does.
    """

    def __init__(self, command: str, options: Any) -> None:  # noqa: ANN401 - a dataclass
        given = [one for one in fields(options) if not _flag(one).startswith("-")]
        names = [one.metadata[""][2]["metavar"] for one in given]
        files = "".join(f"{name} [{name} ...] " for name in names)
        super().__init__(
            prog=f"python -m montecarlo {command}".rstrip(),
            usage=f"%(prog)s {files}[options]",
            description=options.__doc__,
            epilog="Names in a list have commas between them; an option given again "
            "adds to its list.",
            add_help=False,
            allow_abbrev=False,  # --n would be taken for --number-format
        )
        self.command = command
        self.options = options
        self.groups: dict[str, argparse._ArgumentGroup] = {}
        hints = get_type_hints(options)
        self.types = {name: _type_of(hint) for name, hint in hints.items()}
        ordered = sorted(fields(options), key=lambda one: one.metadata[""][0] == OTHER)
        for one in sorted(ordered, key=lambda one: one not in given):
            heading, _, special = one.metadata[""]
            several, kind = self.types[one.name]
            settings: dict[str, Any] = {"default": one.default}
            if (flag := _flag(one)).startswith("-"):
                settings |= {"dest": one.name}
                if kind is bool:
                    settings |= _SWITCH
                else:
                    settings |= NAMES if several else {"metavar": TYPES[kind][0]}
            self._add(heading, flag, **settings | special)
        self._add(OTHER, "-h", "--help")

    def _add(self, heading: str, *flags: str, **special: Any) -> None:  # noqa: ANN401
        """Add an option under a heading, and say what `SHARED` does of it."""
        if heading not in self.groups:
            self.groups[heading] = self.add_argument_group(heading)
        settings = SHARED.get(flags[-1], {}) | special
        if default := settings.get("default"):
            settings["help"] += f" (default: {default})"
        self.groups[heading].add_argument(*flags, **settings)

    def read(self, typed: Sequence[str]) -> Any:  # noqa: ANN401 - the command's options
        """Return the options that a command line asks for.

        Raises
        ------
        InputError
            If an argument is not known, with the nearest that is, or has no value, or
            one that cannot be meant.
        """
        for word in typed:  # results name the command that made them, in UTF-8
            try:
                word.encode()
            except UnicodeEncodeError:
                raise InputError(
                    f"arguments must be in the encoding of this system, got {word!r}"
                ) from None
        arguments, unknown = self.parse_known_args(typed)
        if unknown:
            self._refuse(unknown[0].partition("=")[0])
        return self.options(
            **{
                one.name: self._value(one, getattr(arguments, one.name))
                for one in fields(self.options)
            }
        )

    def _refuse(self, name: str) -> NoReturn:
        """Refuse an option that is not known; name the nearest."""
        if not name.startswith("-"):
            raise InputError(f"arguments must be options, got {show(name)}")
        hint = suggest(name, self._option_string_actions)
        raise InputError(
            f"option must be one that --help lists, got {show(name)}.{hint}"
        )

    def _value(self, one: Field[Any], given: Any) -> Any:  # noqa: ANN401
        """Return a value of a field's type from what was typed.

        No value is ``--config=``, and ``--seed=--``, of which argparse leaves an empty
        list up to Python 3.12.
        """
        if not isinstance(given, str | list):
            return given  # what was not typed, and switches
        several, kind = self.types[one.name]
        name, values = _flag(one).removeprefix("--"), []
        for typed in [given] if isinstance(given, str) else given or ["--"]:
            if typed == "--" or not (typed or name in _MAY_BE_EMPTY):
                raise InputError(f"{name} must have a value, got {typed!r}")
            values.append(TYPES[kind][1](name, typed))
        return tuple(values) if several else values[0]

    def complete(self, known: Mapping[str, object]) -> None:
        """Tell shtab what values are, by what stands for them in the help."""
        for action in self._actions:
            if (shown := str(action.metavar)) in known:
                vars(action)["complete"] = known[shown]

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ANN401 - as argparse has it
        write_out(message, file or sys.stderr)

    def error(self, message: str) -> NoReturn:
        """Refuse a command line that argparse cannot read."""
        raise InputError(message)


def require_defaults(
    options: Any,  # noqa: ANN401 - a command's options
    names: Iterable[str],
    why: str,
) -> None:
    """Refuse options that do not act beside others.

    ``why`` says beside what: ``"--replicates"``.
    """
    known = {one.name: one for one in fields(options)}
    for name in sorted(names):
        one, value = known[name], getattr(options, name)
        if value != one.default:
            raise InputError(
                f"{why} must stand without {_flag(one)}, got {show(value)}"
            )

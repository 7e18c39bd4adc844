"""Parses a command line into a command's options, a dataclass.

The options are the frozen dataclasses of `command_line`.  The type of a field
determines its parser, its `option_field` the help text and heading.  Lists are
separated by commas, and an option that is given again extends its list.  Invalid values
raise `InputError`, whose message is one line.
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

#: Headings of the help; it begins with the most common options.
FIRST = "common options"
SAMPLING = "sampling"
OTHER = "other options"
#: What is typed for an option that is named otherwise -> that option.
MEANT = {"--n": "--keys"}

# --- Types ----------------------------------------------------------------------------

Folder = NewType("Folder", Path)
Seed = NewType("Seed", int)
Jobs = NewType("Jobs", int)
Names = tuple[str, ...]


def parse_indices(name: str, text: str) -> range:
    """Return the range of replicate indices A to B - 1 from a text ``A:B``.

    An `InputError` is raised unless A is at least 0 and below B.  ``name`` is that of
    the option, for the message.
    """
    ends = [parse_whole(name, end) for end in text.split(":")]
    if len(ends) != 2 or not 0 <= ends[0] < ends[1]:
        raise InputError(
            f"{name} must be A:B with A below B, got {text!r}; --most sets how many"
        )
    return range(*ends)


#: Type -> placeholder of a value in the help, and parser: (option, text) -> value.
TYPES: dict[Any, tuple[str, Callable[[str, str], Any]]] = {
    str: ("NAME", lambda _, text: text),
    int: ("N", parse_whole),
    float: ("X", parse_decimal),
    range: ("A:B", parse_indices),
    Path: ("FILE", lambda _, text: Path(text)),
    Folder: ("DIR", parse_folder),
    Seed: ("N", partial(parse_whole, least=0, most=MOST_SEED)),
    Jobs: ("N", partial(parse_whole, least=1, most=MOST_JOBS)),
}


def split_names(text: str) -> list[str]:
    """Return the names in a comma-separated text as a list, without spaces around them.

    Between adjacent commas the name is empty: ``"a, b,,c"`` gives
    ``["a", "b", "", "c"]``.
    """
    return [part.strip() for part in text.split(",")]


#: Settings of an option with a list of names.
NAMES: dict[str, Any] = {"action": "extend", "type": split_names, "metavar": "NAMES"}
_SWITCH = {"action": "store_true"}
#: Settings of options that several commands have.
SHARED: dict[str, dict[str, Any]] = {
    "--output": {"help": "folder to write (default: output)", "metavar": "DIR"},
    "--lang": {"help": "languages, with commas, or all (default)", **NAMES},
    "--json": {"help": "print one JSON object", **_SWITCH},
    "--fail-on": {"help": "outcomes that make the command exit 1", **NAMES},
    "--preset": {"help": "quick, standard (default) or full"},
    "--seed": {"help": "of all random numbers (default: 1)", "metavar": "N"},
    "--jobs": {"help": "workers (default: one per core)", "metavar": "N"},
    "--executor": {"help": f"{', '.join(EXECUTORS)}: see docs/cluster.md"},
    "--scheduler": {"help": "address of a Dask scheduler", "metavar": "ADDRESS"},
    "--quiet": {"help": "print nothing but errors", **_SWITCH},
    "--help": {"help": "print this, and stop", "action": "help"},
}


def option_field(
    heading: str,
    help_text: str | None = None,
    default: Any = None,  # noqa: ANN401
    flag: str | None = None,
    **settings: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401 - as `dataclasses.field`
    """Return a dataclass field that declares a command-line option of a command.

    Parameters
    ----------
    heading : str
        Heading of the help under which the option is listed.
    help_text : str, optional
        By default that of the option of this name in `SHARED`.
    default : object
        Value of the field if the option is not given.
    flag : str, optional
        Name on the command line, by default made from the field's name.  A name without
        dashes is a positional argument.
    **settings
        Arguments of ``ArgumentParser.add_argument``.  They replace the defaults that
        follow from the field's type and from `SHARED`.
    """
    if help_text is not None:
        settings["help"] = help_text
    return field(default=default, metadata={"": (heading, flag, settings)})


def _flag(option: Field[Any]) -> str:
    """Return the name of an option on the command line, such as ``--fail-on``."""
    return option.metadata[""][1] or f"--{option.name.replace('_', '-')}"


def _type_of(hint: Any) -> tuple[bool, Any]:  # noqa: ANN401
    """Return (whether an option takes several values, type of each value).

    (True, X) if the type hint of its field is ``tuple[X, ...]``, else (False, hint).
    None in a union is ignored.
    """
    args = get_args(hint)
    if NoneType in args:
        return _type_of(next(one for one in args if one is not NoneType))
    return (True, args[0]) if get_origin(hint) is tuple else (False, hint)


# --- The command line -----------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """Parser of a command's arguments, with grouped options and one-line errors.

    Parameters
    ----------
    command : str
        Name of the command; may be empty.
    options : dataclass
        Options of the command; their docstring is its description.
    commands : mapping, optional
        Options of all commands, by name, for hints.
    """

    def __init__(self, command: str, options: Any, commands: Any = None) -> None:  # noqa: ANN401 - dataclasses
        positional = [one for one in fields(options) if not _flag(one).startswith("-")]
        names = [one.metadata[""][2]["metavar"] for one in positional]
        files = "".join(f"{name} [{name} ...] " for name in names)
        super().__init__(
            prog=f"python -m montecarlo {command}".rstrip(),
            usage=f"%(prog)s {files}[options]",
            description=options.__doc__,
            epilog="NAMES are separated by commas; an option of NAMES that is given "
            "again extends its list.",
            add_help=False,
            allow_abbrev=False,  # --n would stand for --number-format
        )
        self.command, self.commands = command, commands or {}
        self.options = options
        self.groups: dict[str, argparse._ArgumentGroup] = {}
        hints = get_type_hints(options)
        self.types = {name: _type_of(hint) for name, hint in hints.items()}
        for one in sorted(
            fields(options),
            key=lambda one: (one not in positional, one.metadata[""][0] == OTHER),
        ):
            heading, _, special = one.metadata[""]
            several, kind = self.types[one.name]
            settings: dict[str, Any] = {"default": one.default}
            if (flag := _flag(one)).startswith("-"):
                single = _SWITCH if kind is bool else {"metavar": TYPES[kind][0]}
                settings |= {"dest": one.name} | (NAMES if several else single)
            self._add(heading, flag, **settings | special)
        self._add(OTHER, "-h", "--help")

    def _add(self, heading: str, *flags: str, **special: Any) -> None:  # noqa: ANN401
        """Add an option under a heading of the help.

        ``flags`` are its names, such as ``-h`` and ``--help``.  ``special`` are
        arguments of ``add_argument``; they replace the settings of the option in
        `SHARED`.
        """
        if heading not in self.groups:
            self.groups[heading] = self.add_argument_group(heading)
        settings = SHARED.get(flags[-1], {}) | special
        if default := settings.get("default"):
            settings["help"] += f" (default: {default})"
        self.groups[heading].add_argument(*flags, **settings)

    def read(self, argv: Sequence[str]) -> Any:  # noqa: ANN401 - the command's options
        """Return the command's options, a dataclass, from its command-line arguments.

        With ``--help``, the help is printed and SystemExit raised.

        Raises
        ------
        InputError
            If an option is unknown (the message suggests the most similar one), lacks
            its value, has an invalid value, or is given twice but takes one name.
            Also if no file is named for a command that needs some, or if ``--list``
            stands with a command.
        """
        for word in argv:  # results contain the command line, in UTF-8
            if word.encode(errors="ignore").decode() != word:
                raise InputError(
                    f"arguments must be in the encoding of this system, got {word!r}"
                )
        if "--list" in argv and self.command:
            raise InputError("--list must stand alone: python -m montecarlo --list")
        arguments, unknown = self.parse_known_args(argv)
        if unknown:
            self._refuse(unknown[0].partition("=")[0])
        declared, typed = fields(self.options), [x.partition("=")[0] for x in argv]
        for one in declared:
            if typed.count(_flag(one)) > 1 and self.types[one.name] == (False, str):
                raise InputError(f"{_flag(one)} must be given once, got it again")
        values = {x.name: self._value(x, getattr(arguments, x.name)) for x in declared}
        return self.options(**values)

    def _refuse(self, name: str) -> NoReturn:
        """Raise `InputError` for an unknown option, with a similar one as a hint.

        ``name`` is what was typed, such as ``--sed``.  If other commands have the
        option, the hint names them.
        """
        if not name.startswith("-"):
            kind = "--quantity" if self.command == "measure" else "(--help lists them)"
            raise InputError(f"{show(name)} must follow its option {kind}")
        others = [n for n, x in self.commands.items() if name in map(_flag, fields(x))]
        hint = f" It is one of {' and '.join(others)}." * bool(others)
        hint = hint or suggest(MEANT.get(name, name), self._option_string_actions)
        raise InputError(f"option must be listed by --help, got {show(name)}.{hint}")

    def _value(self, option: Field[Any], given: Any) -> Any:  # noqa: ANN401
        """Return the value of an option from what argparse read; a default stays.

        ``given`` is a text, a list of texts, or the default.  The result is a tuple if
        the option takes several values.  An empty text is from ``--config=``, or from
        ``--seed=--``, for which argparse up to Python 3.12 returns an empty list.
        """
        if not isinstance(given, str | list):
            return given  # the default, or a switch
        several, kind = self.types[option.name]
        name, values = _flag(option).removeprefix("--"), []
        for text in [given] if isinstance(given, str) else given or ["--"]:
            if text == "--" or not (text or name == "initialisation"):
                raise InputError(f"{name} must have a value, got {text!r}")
            values.append(TYPES[kind][1](name, text))
        return tuple(values) if several else values[0]

    def complete(self, known: Mapping[str, object]) -> None:
        """Set how shtab completes the values of options in a shell.

        ``known`` maps placeholders of values in the help, such as ``FILE``, to
        completions of shtab.
        """
        for action in self._actions:
            if (shown := str(action.metavar)) in known:
                vars(action)["complete"] = known[shown]

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ANN401 - as argparse has it
        """Write a text of argparse, such as the help, to a stream."""
        write_out(message, file or sys.stderr)

    def error(self, message: str) -> NoReturn:
        """Raise `InputError` for a command line that argparse cannot parse."""
        raise InputError(message)


def require_defaults(options: Any, names: Iterable[str], why: str) -> None:  # noqa: ANN401 - a command's options
    """Raise `InputError` if any of the named options was given a value.

    An option that has its default value counts as not given.  ``names`` are those of
    fields, such as ``fail_on``.  ``why`` is the option with which they have no effect,
    such as ``--replicates``.
    """
    known = {one.name: one for one in fields(options)}
    for name in sorted(names):
        one, value = known[name], getattr(options, name)
        if value != one.default:
            got = "" if value is True else f", got {show(value)}"  # a switch
            raise InputError(f"{why} must stand without {_flag(one)}{got}")

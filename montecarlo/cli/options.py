"""Options: what several commands share, and how a command line becomes typed options.

A command's options are a frozen dataclass of `command_line`, whose fields are each an
`option_field`; its `Parser` reads a command line into it.  A list of names has commas
between them, and an option that is given again adds to its list.  What no option can
mean is an `InputError` of one line.
"""

import argparse
import difflib
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import Field, field, fields
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from montecarlo.errors import InputError
from montecarlo.names import MOST_JOBS, MOST_SEED, parse_folder, parse_within, show
from montecarlo.printing import write_out
from montecarlo.study.executors import EXECUTORS

#: Heading of the options that most people need; a page of help begins with it.
FIRST = "what most people need"
SAMPLING = "sampling"
OTHER = "this command"
#: Options of which nothing is a value.
_MAY_BE_EMPTY = {"initialisation"}
#: What options are taken for that are spelt too differently to be near.
_MEANT = {"--n": "--keys"}
#: Name of an option and what was typed, to its value.
Parse = Callable[[str, str], Any]


def split_names(typed: str) -> list[str]:
    """Return the names of a list as typed; one that is missing stays, empty."""
    return [part.strip() for part in typed.split(",")]


def parse_path(_: str, typed: str) -> Path:
    """Return the path of a file; whoever reads it says what is wrong with it."""
    return Path(typed)


#: An option with a list of names.
NAMES: dict[str, Any] = {"action": "extend", "type": split_names, "metavar": "NAMES"}
#: What an option means, whichever command has it.
SHARED: dict[str, dict[str, Any]] = {
    "--output": {"metavar": "DIR", "help": "folder to write (default: output)"},
    "--from": {
        "dest": "source",
        "metavar": "DIR",
        "help": "read an earlier report from here, and sample nothing",
    },
    "--lang": {**NAMES, "help": "languages, with commas, or all (default)"},
    "--json": {"action": "store_true", "help": "print one JSON object"},
    "--fail-on": {**NAMES, "help": "outcomes that make the command exit 1"},
    "--preset": {"metavar": "NAME", "help": "quick, standard (default) or full"},
    "--seed": {"metavar": "N", "help": "of all random numbers (default: 1)"},
    "--jobs": {"metavar": "N", "help": "workers (default: one per core)"},
    "--executor": {
        "metavar": "NAME",
        "help": f"{', '.join(EXECUTORS)} (docs/cluster.md)",
    },
    "--config": {"metavar": "FILE", "help": "a TOML file; flags override it"},
    "--fresh": {
        "action": "store_true",
        "help": "start anew, whatever an interrupted run left in the folder",
    },
    "--quiet": {"action": "store_true", "help": "print nothing but errors"},
    "--help": {"action": "help", "help": "print this, and stop"},
}
#: What makes a value of what was typed for these.
PARSED: dict[str, Parse] = {
    "--output": parse_folder,
    "--from": parse_folder,
    "--config": parse_path,
    "--seed": partial(parse_within, least=0, most=MOST_SEED),
    "--jobs": partial(parse_within, least=1, most=MOST_JOBS),
}


def option(told: str, metavar: str | None = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return what argparse is told of an option: its help, and the rest."""
    named = {} if metavar is None else {"metavar": metavar}
    return {"help": told, **named, **more}


def option_field(  # noqa: PLR0913 - as argparse has it
    heading: str,
    told: str | None = None,
    metavar: str | None = None,
    *,
    default: Any = None,  # noqa: ANN401
    flag: str | None = None,
    parse: Parse | None = None,
    **settings: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401 - as `dataclasses.field`
    """Declare a field of a command's options as an option of the command line.

    Parameters
    ----------
    heading : str
        Which group of the help it stands in.
    told : str, optional
        Its help; by default that of `SHARED`, which other settings come from as well.
    metavar : str, optional
        What stands for its value in the help.
    default : object
        Its value where it is not typed.
    flag : str, optional
        How it is typed, where that is not the field's name; a positional argument has
        no dashes.
    parse : callable, optional
        Makes the value of what was typed, or of each part of a list; by default as
        `PARSED` has it, else it stays a text.
    settings
        Of argparse.
    """
    if told is not None:
        settings |= option(told, metavar)
    declared = {"heading": heading, "flag": flag, "parse": parse, "settings": settings}
    return field(default=default, metadata=declared)


class Parser(argparse.ArgumentParser):
    """A command's parser: options under headings, complaints of one line.

    Parameters
    ----------
    command : str
        Its name; empty for the program itself.
    description : str
    usage : str
        What stands before the options.
    epilog : str
    options : type, optional
        The dataclass of the command's options, which are added in its order.
    """

    def __init__(
        self,
        command: str,
        description: str,
        usage: str = "",
        epilog: str = "",
        options: Any = None,  # noqa: ANN401 - a dataclass
    ) -> None:
        super().__init__(
            prog=f"python -m montecarlo {command}".rstrip(),
            usage=f"%(prog)s {usage}[options]",
            description=description,
            epilog=f"{epilog}  Names in a list have commas between them; an option "
            "given again adds to its list.".lstrip(),
            add_help=False,
            allow_abbrev=False,  # --n would be taken for --number-format
        )
        self.command = command
        self.options = options
        self.groups: dict[str, argparse._ArgumentGroup] = {}
        for one in () if options is None else fields(options):
            settings = {"default": one.default, **one.metadata["settings"]}
            if (flag := _flag(one)).startswith("-"):
                settings["dest"] = one.name
            self.add(one.metadata["heading"], {flag: settings})
        if options is not None:
            self.add(OTHER, {"--help": {}})

    def add(self, heading: str, options: dict[str, dict[str, Any]]) -> None:
        """Add options, or what stands without a flag, under a heading.

        Parameters
        ----------
        heading : str
        options : dict
            Flag to what is special about it here, beside what `SHARED` says.
        """
        if heading not in self.groups:
            self.groups[heading] = self.add_argument_group(heading)
        for flag, special in options.items():
            settings = SHARED.get(flag, {}) | special
            flags = ("-h", flag) if flag == "--help" else (flag,)
            self.groups[heading].add_argument(*flags, **settings)

    def read(self, typed: Sequence[str]) -> Any:  # noqa: ANN401 - the command's options
        """Return the options that a command line asks for.

        Raises
        ------
        InputError
            If an argument is not known, with the nearest that is, or has no value, or
            one that cannot be meant.
        """
        arguments, unknown = self.parse_known_args(typed)
        if unknown:
            name = unknown[0].partition("=")[0]
            if not name.startswith("-"):
                raise InputError(f"arguments must be options, got {show(name)}")
            known = self._option_string_actions
            near = [_MEANT[name]] if _MEANT.get(name) in known else []
            near += difflib.get_close_matches(name, known, n=1)
            hint = f". Did you mean {near[0]!r}?" if near else ""
            raise InputError(
                f"option must be one that --help lists, got {show(name)}{hint}"
            )
        for name, value in vars(arguments).items():
            self._require_value(name, value)
        if self.options is None:
            return arguments
        values = {
            one.name: _value(one, getattr(arguments, one.name), self.spelled(one.name))
            for one in fields(self.options)
        }
        return self.options(**values)

    def _require_value(self, name: str, value: object) -> None:
        """Refuse options without a value: ``--config=``, and ``--seed=--``.

        Up to Python 3.12 argparse drops a value ``--`` and leaves an empty list.
        """
        for one in value if isinstance(value, list) and value else [value]:
            if (one == "" and name not in _MAY_BE_EMPTY) or one in ([], "--"):
                typed = "--" if one == [] else one
                raise InputError(
                    f"{self.spelled(name)} must have a value, got {typed!r}"
                )

    def spelled(self, name: str) -> str:
        """Return an option's name as it is typed, without the dashes."""
        (action,) = (one for one in self._actions if one.dest == name)
        return (action.option_strings or [name])[-1].removeprefix("--")

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ANN401 - as argparse has it
        write_out(message, file or sys.stderr)

    def error(self, message: str) -> NoReturn:
        """Refuse a command line that argparse cannot read."""
        raise InputError(message)


def _flag(one: Field[Any]) -> str:
    return one.metadata["flag"] or f"--{one.name.replace('_', '-')}"


def _value(one: Field[Any], given: Any, name: str) -> Any:  # noqa: ANN401
    """Return a value of a field's type from what was typed."""
    parse = one.metadata["parse"] or PARSED.get(_flag(one)) or (lambda _, typed: typed)
    if isinstance(given, list):
        return tuple(parse(name, part) for part in given)
    return parse(name, given) if isinstance(given, str) else given


def require_text(typed: Iterable[str]) -> None:
    """Refuse bytes that are no text, such as a file's name may have.

    Results name the command that made them, in UTF-8.
    """
    for word in typed:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"arguments must be in the encoding of this system, got {word!r}"
            ) from None


def require_defaults(
    options: Any,  # noqa: ANN401 - a command's options
    parser: Any,  # noqa: ANN401 - a `Parser`
    names: Iterable[str],
    why: str,
) -> None:
    """Refuse options that do not act beside others.

    ``why`` says beside what: ``"--replicates"``.
    """
    for name in sorted(names):
        value = getattr(options, name)
        if value != parser.get_default(name):
            raise InputError(
                f"{why} must stand without --{parser.spelled(name)}, got {show(value)}"
            )

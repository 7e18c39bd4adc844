"""Options: what several commands have is defined here, once; a command picks.

A list of names has commas between them, and an option that is given again adds to its
list.  Values stay as typed, and what no option can mean is an `InputError` at once.
"""

import argparse
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from montecarlo.errors import InputError
from montecarlo.printing import printable, write_out
from montecarlo.study.executors import EXECUTORS

#: Heading of the options that most people need; a page of help begins with it.
FIRST = "what most people need"
SAMPLING = "sampling"
OTHER = "this command"
#: Options whose name in the namespace is not that on the command line.
_TYPED = {"source": "from", "figures": "only"}
#: Options of which nothing is a value.
_MAY_BE_EMPTY = {"initialisation"}


def split_names(typed: str) -> list[str]:
    """Return the names of a list as typed; one that is missing stays, empty."""
    return [part.strip() for part in typed.split(",")]


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
    "--fail-on": {**NAMES, "help": "end with status 1 if one of these comes out"},
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


def option(told: str, metavar: str | None = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return what argparse is told of an option: its help, and the rest."""
    named = {} if metavar is None else {"metavar": metavar}
    return {"help": told, **named, **more}


class Parser(argparse.ArgumentParser):
    """A command's parser: options under headings, complaints that are printable.

    Parameters
    ----------
    command : str
        Its name.
    description : str
    usage : str
        What stands before the options.
    epilog : str
    """

    def __init__(
        self, command: str, description: str, usage: str = "", epilog: str = ""
    ) -> None:
        super().__init__(
            prog=f"python -m montecarlo {command}",
            usage=f"%(prog)s {usage}[options]",
            description=description,
            epilog=f"{epilog}  Names in a list have commas between them; an option "
            "given again adds to its list.".lstrip(),
            add_help=False,
            allow_abbrev=False,  # --n would be taken for --number-format
        )

    def add(self, heading: str, options: dict[str, dict[str, Any]]) -> None:
        """Add options, or what stands without a flag, under a heading.

        Parameters
        ----------
        heading : str
        options : dict
            Flag to what is special about it here, beside what `SHARED` says.
        """
        group = self.add_argument_group(heading)
        for flag, special in options.items():
            settings = SHARED.get(flag, {}) | special
            if flag == "--help":
                group.add_argument("-h", flag, **settings)
            else:
                group.add_argument(flag, **settings)

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ANN401 - as argparse has it
        write_out(message, file or sys.stderr)

    def error(self, message: str) -> NoReturn:
        """Print usage and message, and leave with status 2."""
        super().error(printable(InputError(message)))


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


def require_values(arguments: argparse.Namespace) -> None:
    """Refuse options without a value: ``--config=``, and ``--seed=--``.

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
                raise InputError(f"{flag(name)} must have a value, got {typed!r}")


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

    ``why`` says beside what: ``"--replicates"``.
    """
    for name in sorted(names):
        value = getattr(arguments, name)
        if value != parser.get_default(name):
            raise InputError(f"{why} must stand without --{flag(name)}, got {value!r}")

"""``python -m montecarlo COMMAND``, and the console script ``montecarlo COMMAND``."""

import sys
from collections.abc import Sequence
from importlib import import_module

import montecarlo
from montecarlo.cli.command_line import COMMANDS, purpose_of
from montecarlo.cli.exits import DONE, INPUT_ERROR, complain_of, run
from montecarlo.errors import InputError, UnfinishedError
from montecarlo.names import PROJECT, look_up
from montecarlo.printing import prepare_streams, print_lines

#: What may stand in the place of a command.
OPTIONS = ("--help", "--list", "--version")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that is named first; returns its exit status."""
    typed = list(sys.argv[1:] if argv is None else argv)
    prepare_streams()
    try:
        require_own_package()
        if not typed:
            print_lines(list_commands(), sys.stderr)
            return INPUT_ERROR
        name, *rest = typed
        if name in {"-h", "--help"}:
            print_lines(list_commands())
            return DONE
        if name == "--version":
            print_lines(f"montecarlo {montecarlo.__version__}")
            return DONE
        look_up("command", name, dict.fromkeys((*COMMANDS, *OPTIONS)))
    except (InputError, UnfinishedError) as error:
        return complain_of("", error)
    return run("", typed) if name == "--list" else run(name, rest)


def require_own_package() -> None:
    """Make sure that the package was not overwritten.

    Another distribution has the same import: installed after this one, it puts its own
    ``montecarlo/__init__.py`` in the place of ours.

    Raises
    ------
    UnfinishedError
        If it did; says what to do.
    """
    if hasattr(montecarlo, "_LIBRARY"):
        return
    owners = import_module("importlib.metadata").packages_distributions()
    others = {*owners.get("montecarlo", ())} - {PROJECT}
    name = " ".join(sorted(others)) or "montecarlo"
    raise UnfinishedError(
        f"montecarlo/__init__.py must be that of {PROJECT}, got one of {name} "
        f"({montecarlo.__file__}): python -m pip uninstall {name}, then install "
        f"{PROJECT} again with --force-reinstall --no-deps"
    )


def list_commands() -> str:
    """Return what there is, a line each."""
    lines = [f"  {name:<10} {purpose_of(name)}" for name in COMMANDS]
    return "\n".join(
        [
            "usage: python -m montecarlo COMMAND [options]",
            "",
            *lines,
            "",
            "python -m montecarlo COMMAND --help says more;",
            "python -m montecarlo --list [KIND] what can be asked for;",
            "--version prints that.",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())

"""``python -m montecarlo COMMAND``, and the console script ``montecarlo COMMAND``."""

import sys
from collections.abc import Sequence

try:
    import montecarlo
    from montecarlo.cli.command_line import COMMANDS, purpose_of
    from montecarlo.cli.exits import DONE, INPUT_ERROR, print_error, run
    from montecarlo.errors import InputError, UnfinishedError
    from montecarlo.names import look_up
    from montecarlo.printing import prepare_streams, print_lines
except KeyboardInterrupt:  # in the first tenths of a second: no traceback
    sys.exit(130)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    ``argv`` is the name of the command and its arguments; default: ``sys.argv[1:]``.
    Without a name the commands are listed on standard error, and the status is
    `INPUT_ERROR`.  Errors are printed, not raised.  Only ``COMMAND --help`` raises, as
    argparse does: SystemExit with the status 0.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        prepare_streams()
        if not arguments:
            print_lines(list_commands(), sys.stderr)
            return INPUT_ERROR
        name, *rest = arguments
        if name in {"-h", "--help"}:
            print_lines(list_commands())
            return DONE
        if name == "--version":
            print_lines(f"montecarlo {montecarlo.__version__}")
            return DONE
        if name in montecarlo.__all__ and name not in COMMANDS:
            call = f"{name} must be called in Python: from montecarlo import {name}"
            return print_error("", InputError(call))
        look_up("command", name, dict.fromkeys((*COMMANDS, "--list", "--version")))
        return run("", arguments) if name == "--list" else run(name, rest)
    except (InputError, UnfinishedError, KeyboardInterrupt) as error:
        return print_error("", error)


def list_commands() -> str:
    """Return the general help as text: usage, and each command with its purpose.

    One line for each command, such as ``  judge      Judge claims of your own, ...``.
    """
    return "\n".join(
        [
            "usage: python -m montecarlo COMMAND [options]",
            "",
            *(f"  {name:<10} {purpose_of(name)}" for name in COMMANDS),
            "",
            "python -m montecarlo COMMAND --help describes its options;",
            "python -m montecarlo --list [KIND] lists names, such as quantities;",
            "--version prints the version.",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())

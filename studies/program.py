"""What the programs here share: options, tables, and parts that are made once."""

import argparse
import csv
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecarlo.claims import training as training_record
from montecarlo.cli.exits import EXPECTED, INPUT_ERROR
from montecarlo.errors import InputError
from montecarlo.study.fingerprint import fingerprint

HERE = Path(__file__).parent
ROOT = HERE.parent
Arrays = dict[str, NDArray[Any]]
#: What the options of programs are for; the type of each is that of its default.
HELP = {
    "jobs": "workers",
    "output": "what to write",
    "quick": "the smallest sizes only",
    "runs": "runs of each row",
    "seed": "of all draws",
    "stages": "where the CPU time of the standard report goes, alone",
    "short": "a small run, compared with the record or written beside it",
    "tasks": "empty tasks to send",
    "work": "folder that keeps finished parts; the same command goes on from there",
}
#: What is said of an end that says nothing itself.
TOLD = {KeyboardInterrupt: "interrupted", MemoryError: "out of memory"}


def parse(
    name: str, doc: str | None, argv: Sequence[str] | None, **defaults: object
) -> argparse.Namespace:
    """Parse the options of a program.

    Parameters
    ----------
    name : str
        Of its module.
    doc : str or None
        The docstring of the module, whose first line says what it is for.
    argv : sequence of str or None
        None: the arguments of the process.
    **defaults
        Options of `HELP` with their defaults; False: a flag.
    """
    description = (doc or "").split("\n", maxsplit=1)[0]
    parser = argparse.ArgumentParser(f"python -m studies.{name}", None, description)
    for option, default in defaults.items():
        if default is False:
            parser.add_argument(f"--{option}", action="store_true", help=HELP[option])
            continue
        parser.add_argument(
            f"--{option}",
            type=Path if isinstance(default, Path) else type(default),
            default=default,
            help=f"{HELP[option]} (default: %(default)s)",
        )
    options = parser.parse_args(argv)
    if getattr(options, "jobs", 1) < 1:
        parser.error(f"jobs must be at least 1, got {options.jobs}")
    return options


def run_program(name: str, main: Callable[[], int]) -> int:
    """Run a program; returns its status.

    What is expected to end one, an error of the project or an interruption, is told in
    one line, with the status that a command has for it; anything else is a bug.

    Parameters
    ----------
    name : str
        Of its module.
    main : callable
        The program: returns the status.
    """
    try:
        return main()
    except tuple(EXPECTED) as error:
        told = " ".join(str(error).split()) or TOLD.get(type(error), "")
        print(f"python -m studies.{name}: {told}", file=sys.stderr)
        return next(EXPECTED[kind] for kind in EXPECTED if isinstance(error, kind))


def require_extra(name: str, extra: str, *modules: str) -> None:
    """End a program where modules that it imports are not installed, in one line.

    Raises
    ------
    SystemExit
        With the status of an input error.
    """
    if lacking := [module for module in modules if find_spec(module) is None]:
        print(
            f"python -m studies.{name}: needs {' and '.join(lacking)}: python -m pip "
            f"install '.[{extra}]'",
            file=sys.stderr,
        )
        raise SystemExit(INPUT_ERROR)


def write_table(path: Path, lines: Sequence[Mapping[str, object]]) -> None:
    """Write a CSV table; its columns are the names in the first line."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def markdown(lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, numbers to the right; the first line is its head."""
    head, *body = lines
    rule = ["---", *["--:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *body))


def keep(
    work: Path | None, name: str, made_of: object, make: Callable[[], Arrays]
) -> Arrays:
    """Return arrays that a folder keeps, made where it does not have them.

    A file is named after all that its bytes depend on, and there whole or not at all:
    one of other code is not found.

    Parameters
    ----------
    work : Path or None
        None: nothing is kept.
    name : str
        How the name of the file begins.
    made_of : object
        What the arrays depend on, beside the code and the machine.
    make : callable

    Raises
    ------
    InputError
        If a file is not as it was written.
    """
    if work is None:
        return make()
    recipe = json.dumps([made_of, code(), fingerprint()], sort_keys=True).encode()
    path = work / f"{name}-{hashlib.sha256(recipe).hexdigest()[:16]}.npz"
    if path.exists():
        return _read(path)
    arrays = make()
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(file, **dict[str, Any](arrays))
    part.replace(path)
    return arrays


def _read(path: Path) -> Arrays:
    try:
        with path.open("rb") as file, np.load(file) as kept:
            damaged = kept.zip.testzip()  # no member is read to its end below
            arrays = dict(kept)
    except Exception as why:  # a changed byte may be anything
        raise InputError(f"{path} must be as it was written, got: {why}") from why
    if damaged:
        raise InputError(f"{path} must be as it was written, got another {damaged}")
    return arrays


@cache
def code() -> str:
    """Return a hash of the programs here, and of what they record."""
    found = hashlib.sha256()
    for path in (*sorted(HERE.glob("*.py")), Path(training_record.__file__)):
        found.update(path.read_bytes())
    return found.hexdigest()

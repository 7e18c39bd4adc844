"""What the programs here share: options, tables, and parts that are made once."""

import argparse
import csv
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecarlo import records
from montecarlo.study.fingerprint import fingerprint

HERE = Path(__file__).parent
ROOT = HERE.parent
Arrays = dict[str, NDArray[Any]]
#: What the options of programs are for; the type of each is that of its default.
HELP = {
    "jobs": "workers",
    "output": "what to write",
    "page": "the page whose tables to make anew",
    "preset": "a preset of the report",
    "quick": "the smallest sizes only",
    "runs": "runs of each row",
    "seed": "of all draws",
    "short": "a small run, compared with the record or written beside it",
    "tasks": "empty tasks to send",
    "work": "folder that keeps finished parts; the same command goes on from there",
}


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
    ValueError
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
        np.savez(file, **arrays)
    part.replace(path)
    return arrays


def _read(path: Path) -> Arrays:
    try:
        with path.open("rb") as file, np.load(file) as kept:
            damaged = kept.zip.testzip()  # no member is read to its end below
            arrays = dict(kept)
    except Exception as why:  # a changed byte may be anything
        raise ValueError(f"{path} must be as it was written, got: {why}") from why
    if damaged:
        raise ValueError(f"{path} must be as it was written, got another {damaged}")
    return arrays


@cache
def code() -> str:
    """Return a hash of the programs here, and of what they record."""
    found = hashlib.sha256()
    for folder in (HERE, Path(records.__path__[0])):
        for path in sorted(folder.glob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()

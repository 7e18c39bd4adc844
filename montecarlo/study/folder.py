"""A results folder: its files, their hashes in run.json, and reading it back."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from montecarlo.errors import InputError
from montecarlo.small_files import read_small

RUN_FILE = "run.json"
#: What may differ between equal runs, and so is not hashed.
TIMING_FILE = "timing.json"
#: Where a new set of files is made, beside the old one.
STAGING = ".montecarlo-partial"
#: What an interrupted run has sampled.
JOURNAL = ".montecarlo-journal"
#: What a run.json calls the hash of its own content.
DIGEST = "digest"
SCHEMA = 11
#: Bytes of a run.json at most; that of the full preset has 40 thousand.
MOST_RUN = 2**24


class ResultsError(InputError):
    """A results folder that cannot be read; one line."""


def files_of(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, in a canonical order."""
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_inside(name: str) -> bool:
    """Tell whether a name that a record has is of a file below its folder."""
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts


def write_json(path: Path, data: object) -> None:
    """Write data as JSON, the same bytes for the same data."""
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text, the same bytes on every system; its folder is made if missing."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def write_run(folder: Path, run: Mapping[str, Any]) -> None:
    """Write run.json of a folder: hashes of its files, and a digest of itself.

    ``run`` is what is said of how the files were made.
    """
    hashes = {
        path.relative_to(folder).as_posix(): file_hash(path)
        for path in files_of(folder)
        if path.name not in (RUN_FILE, TIMING_FILE)
    }
    record = {"program": "montecarlo", "schema": SCHEMA, **run, "sha256": hashes}
    # whole or not at all: where it is, the set is complete and only has to be moved
    unfinished = folder / f"{RUN_FILE}.part"
    write_json(unfinished, record | {DIGEST: digest(record)})
    unfinished.replace(folder / RUN_FILE)


def digest(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a record's own content; it is no signature."""
    content = {name: value for name, value in record.items() if name != DIGEST}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_run(folder: Path) -> dict[str, Any]:
    """Read run.json of a finished folder and check the hashes of its files.

    Raises
    ------
    ResultsError
        If there is none, its schema is another, or it or a file was changed.
    """
    run = read_record(folder / RUN_FILE, "results")
    for name, expected in run["sha256"].items():
        file = folder / name  # a pipe would be waited for
        whole = is_inside(name) and file.is_file() and file_hash(file) == expected
        if not whole:
            raise ResultsError(
                f"results must be as they were written, but {name!r} in "
                f"{str(folder)!r} is missing or changed"
            )
    return run


def read_record(path: Path, name: str = "replicates-from") -> dict[str, Any]:
    """Read a run.json, without the files that it speaks of.

    ``name`` is what messages call it.
    """
    try:
        record = dict(json.loads(read_small(RUN_FILE, path, MOST_RUN)))
        program, schema = record["program"], record["schema"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ResultsError(
            f"{name} must have a readable {RUN_FILE}, got {str(path)!r}"
        ) from error
    if (program, schema) != ("montecarlo", SCHEMA):
        raise ResultsError(
            f"{name} must be of montecarlo's schema {SCHEMA}, "
            f"got {schema!r:.40} of {program!r:.40}"
        )
    if record.get(DIGEST) != digest(record):
        raise ResultsError(
            f"{name} must be as they were written, but {str(path)!r} was changed"
        )
    return record

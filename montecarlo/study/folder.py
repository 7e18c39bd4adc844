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
SCHEMA = 10
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


def is_finished(folder: Path) -> bool:
    """Tell whether a staged set is complete, so that it only has to be moved."""
    return (folder / STAGING / RUN_FILE).exists()


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
    # whole or not at all: from its presence on, the next run finishes the renaming
    unfinished = folder / f"{RUN_FILE}.part"
    write_json(unfinished, seal(record))
    unfinished.replace(folder / RUN_FILE)


def seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the digest of its own content.

    It tells a record that was edited by mistake, or half written by another program;
    it is no signature.
    """
    content = {name: value for name, value in record.items() if name != DIGEST}
    text = json.dumps(content, sort_keys=True).encode()
    return {**record, DIGEST: hashlib.sha256(text).hexdigest()}


def read_run(folder: Path) -> dict[str, Any]:
    """Read run.json of a finished folder and check the hashes of its files.

    Raises
    ------
    ResultsError
        If there is none, its schema is another, or it or a file was changed.
    """
    if is_finished(folder) and not (folder / RUN_FILE).exists():
        raise ResultsError(
            f"results must be whole, got {str(folder)!r}, into which a run was moving "
            "its files when it ended; the same command goes on"
        )
    path = folder / RUN_FILE
    run = _read_sealed(path, "results", f"a folder with a readable {RUN_FILE}", folder)
    for name, expected in run["sha256"].items():
        try:
            file = folder / name  # a pipe would be waited for
            unchanged = (
                is_inside(name) and file.is_file() and file_hash(file) == expected
            )
        except (OSError, ValueError):  # ValueError: a name that no file can have
            unchanged = False
        if not unchanged:
            raise ResultsError(
                f"results must be as they were written, but {name!r} in "
                f"{str(folder)!r} is missing or changed"
            )
    return run


def read_record(path: Path) -> dict[str, Any]:
    """Read a run.json wherever it lies, without the files that it speaks of."""
    return _read_sealed(path, "replicates-from", f"a readable {RUN_FILE}", path)


def _read_sealed(path: Path, name: str, wanted: str, shown: Path) -> dict[str, Any]:
    """Read a record and check it against its own digest."""
    try:
        record = json.loads(read_small(RUN_FILE, path, MOST_RUN))
        program, schema = record["program"], record["schema"]
        digest = seal(record)[DIGEST]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as err:
        raise ResultsError(f"{name} must be {wanted}, got {str(shown)!r}") from err
    if (program, schema) != ("montecarlo", SCHEMA):
        raise ResultsError(
            f"{name} must be of montecarlo's schema {SCHEMA}, "
            f"got {schema!r:.40} of {program!r:.40}"
        )
    if record.get(DIGEST) != digest:
        raise ResultsError(
            f"{name} must be as they were written, but {RUN_FILE} of {str(shown)!r} "
            f"has the digest {digest[:12]}, and says {record.get(DIGEST)!r:.14}"
        )
    if not isinstance(record.get("sha256"), dict):
        raise ResultsError(f"{name} must have hashes in their {RUN_FILE}, got none")
    return dict(record)

"""The output folder: made aside, renamed into place, run.json last.

A folder is ours if it has our run.json, or an unfinished set of ours, or holds nothing
but ignored keep-files.  A run that fails leaves the previous output as it was.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from montecarlo.small_files import read_small

STAGING = ".montecarlo-partial"
#: Holds what an interrupted run has sampled.
JOURNAL = ".montecarlo-journal"
RUN_FILE = "run.json"
#: What a run.json calls the hash of its own content.
DIGEST = "digest"
#: The old run.json while the new set is moved into place.
PREVIOUS_FILE = "previous.json"
#: What may differ between equal runs, and so is not hashed.
TIMING_FILE = "timing.json"
KEEP_FILES = frozenset({".gitkeep", ".gitignore", ".DS_Store", "README.md"})
SCHEMA = 2
#: Bytes of a run.json at most; that of the full preset has 40 thousand.
MOST_RUN = 2**24


class OutputError(ValueError):
    """An output folder that must not, or cannot, be written; one line."""


class ResultsError(ValueError):
    """A results folder that cannot be read; one line."""


def claim_folder(output: Path) -> None:
    """Make the output folder if it is missing, and see that it is ours.

    Raises
    ------
    OutputError
        If the folder is not ours or cannot be made.
    """
    with _explained(output):
        if output.exists() and not output.is_dir():
            raise OutputError(f"output must be a folder, got the file {str(output)!r}")
        output.mkdir(parents=True, exist_ok=True)
        _require_ours(output)


def open_staging(output: Path) -> Path:
    """Make an empty place beside the old output for a new set of files.

    Parameters
    ----------
    output : Path
        The output folder; made if missing.

    Returns
    -------
    Path
        A folder to write into; `commit` moves it into place.

    Raises
    ------
    OutputError
        If the folder is not ours or cannot be written.
    """
    claim_folder(output)
    staging = output / STAGING
    with _explained(output):
        if is_finished(output):
            commit(output)
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
    return staging


def is_finished(output: Path) -> bool:
    """Tell whether a staged set is complete, so that it only has to be moved."""
    return (output / STAGING / RUN_FILE).exists()


@contextmanager
def _explained(output: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            "output must be a folder that can be written, "
            f"got {str(output)!r}: {reason}"
        ) from error


def _require_ours(output: Path) -> None:
    names = {entry.name for entry in output.iterdir()}
    if names & {STAGING, JOURNAL} or names <= KEEP_FILES:
        return
    if RUN_FILE in names:
        try:
            program = json.loads((output / RUN_FILE).read_bytes()).get("program")
        except (ValueError, AttributeError):
            program = None
        if program == "montecarlo":
            return
    raise OutputError(
        "output must be empty or hold an earlier report of montecarlo, got "
        f"{str(output)!r}, which holds {min(names - KEEP_FILES)!r}"
    )


def finish_staging(output: Path, run: Mapping[str, Any]) -> None:
    """Write run.json of a staged set, with the hashes of its files."""
    write_run(output / STAGING, run)


def write_run(folder: Path, run: Mapping[str, Any]) -> None:
    """Write run.json of a folder: hashes of its files, and a digest of itself.

    Parameters
    ----------
    folder : Path
    run : mapping
        What is said of how the files were made.
    """
    hashes = {
        path.relative_to(folder).as_posix(): file_hash(path)
        for path in files_of(folder)
        if path.name not in (RUN_FILE, TIMING_FILE)
    }
    record = seal({"program": "montecarlo", "schema": SCHEMA, **run, "sha256": hashes})
    # whole or not at all: from its presence on, the next run finishes the renaming
    unfinished = folder / f"{RUN_FILE}.part"
    write_json(unfinished, record)
    unfinished.replace(folder / RUN_FILE)


def commit(output: Path) -> list[Path]:
    """Move a finished staged set into place, run.json last.

    Can be repeated after an interruption at any point.

    Returns
    -------
    list of Path
        The files written, in a canonical order.
    """
    staging = output / STAGING
    hashes = json.loads((staging / RUN_FILE).read_bytes())["sha256"]
    old, previous = output / RUN_FILE, staging / PREVIOUS_FILE
    if old.exists():
        old.replace(previous)
    for path in files_of(staging):
        name = path.relative_to(staging)
        if name.as_posix() not in (RUN_FILE, PREVIOUS_FILE):
            target = output / name
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
    for gone in _files_named(previous) - set(hashes):
        if (output / gone).resolve().is_relative_to(output.resolve()):
            (output / gone).unlink(missing_ok=True)
    (staging / RUN_FILE).replace(old)
    shutil.rmtree(staging)
    return [output / name for name in (*sorted(hashes), RUN_FILE)]


def _files_named(run_file: Path) -> set[str]:
    """Return the files that a run.json names; none where it cannot be read."""
    try:
        return set(json.loads(run_file.read_bytes())["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def discard_staging(output: Path) -> None:
    """Drop a set that was not finished."""
    shutil.rmtree(output / STAGING, ignore_errors=True)


def seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the digest of its own content.

    It tells a record that was edited by mistake, or half written by another program;
    it is no signature.
    """
    return {**record, DIGEST: _digest(record)}


def _digest(record: Mapping[str, Any]) -> str:
    content = {name: value for name, value in record.items() if name != DIGEST}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_run(folder: Path, needed: Iterable[str] = ()) -> dict[str, Any]:
    """Read run.json of a finished folder and check the hashes of its files.

    Parameters
    ----------
    folder : Path
    needed : iterable of str
        Files that it has to name, so that they are checked.

    Raises
    ------
    ResultsError
        If there is none, its schema is another, it or a file was changed, or it does
        not name a file that is needed.
    """
    run = _read_sealed(
        folder / RUN_FILE, "results", f"a folder with a readable {RUN_FILE}", folder
    )
    hashes = run["sha256"]
    for name in needed:
        if name not in hashes:
            raise ResultsError(
                f"results must have {name!r} among the files of their {RUN_FILE}, got "
                f"{len(hashes)} others"
            )
    for name, expected in hashes.items():
        if not _is_as_written(folder, name, expected):
            raise ResultsError(
                f"results must be as they were written, but {name!r} in "
                f"{str(folder)!r} is missing or changed"
            )
    return run


def _is_as_written(folder: Path, name: str, expected: object) -> bool:
    """Tell whether a file of a folder is there and has its hash."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        return False
    try:
        return (folder / name).is_file() and file_hash(folder / name) == expected
    except (OSError, ValueError):  # a name that is none
        return False


def read_record(path: Path) -> dict[str, Any]:
    """Read a run.json wherever it lies, without the files that it speaks of.

    Raises
    ------
    ResultsError
        If it is none, of another schema, or was changed.
    """
    return _read_sealed(path, "replicates-from", f"a readable {RUN_FILE}", path)


def _read_sealed(path: Path, name: str, wanted: str, shown: Path) -> dict[str, Any]:
    """Read a record and check it against its own digest."""
    try:
        record = json.loads(read_small(RUN_FILE, path, MOST_RUN))
        program, schema = record["program"], record["schema"]
        digest = _digest(record)
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise ResultsError(f"{name} must be {wanted}, got {str(shown)!r}") from error
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
    hashes = record.get("sha256")
    if not isinstance(hashes, dict):
        raise ResultsError(f"{name} must have hashes in their {RUN_FILE}, got none")
    return dict(record)


def files_of(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, in a canonical order."""
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Path, data: object) -> None:
    """Write data as JSON, the same bytes for the same data."""
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")

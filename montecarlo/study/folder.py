"""The output folder: made aside, renamed into place, run.json last.

A folder is ours if it has our run.json, or an unfinished set of ours, or holds nothing
but ignored keep-files; files in it are ours if they are as we wrote them (`ownership`).
A run that fails leaves the previous output as it was.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from montecarlo.errors import InputError, writing
from montecarlo.study.ownership import (
    OutputError,
    file_hash,
    is_inside,
    require_place,
    require_replaceable,
    require_unchanged,
)
from montecarlo.study.sealing import seal

STAGING = ".montecarlo-partial"
#: Holds what an interrupted run has sampled.
JOURNAL = ".montecarlo-journal"
RUN_FILE = "run.json"
#: The old run.json while the new set is moved into place.
PREVIOUS_FILE = "previous.json"
#: What may differ between equal runs, and so is not hashed.
TIMING_FILE = "timing.json"
KEEP_FILES = frozenset({".gitkeep", ".gitignore", ".DS_Store", "README.md"})
SCHEMA = 7


class ResultsError(InputError):
    """A results folder that cannot be read; one line."""


def claim_folder(output: Path) -> None:
    """Make the output folder if it is missing, and see that it is ours.

    Raises
    ------
    OutputError
        If the folder is not ours or cannot be made.
    """
    with _explain_errors(output):
        if output.exists() and not output.is_dir():
            raise OutputError(f"output must be a folder, got the file {str(output)!r}")
        output.mkdir(parents=True, exist_ok=True)
        _require_ours(output)
        if not is_finished(output):  # one that is half moved is seen to by `commit`
            require_unchanged(output, _hashes_in(output / RUN_FILE))


@contextmanager
def claiming(output: Path) -> Iterator[None]:
    """Claim an output folder for a block; if it fails, no new empty folder is left."""
    with _explain_errors(output):
        new = [path for path in (output, *output.parents) if not path.exists()]
    try:
        with writing(output):
            claim_folder(output)
            yield
    except BaseException:
        for path in new:
            with suppress(OSError):
                path.rmdir()
        raise


def open_staging(output: Path) -> Path:
    """Make an empty place beside the old output for a new set of files.

    Returns
    -------
    Path
        A folder to write into; `commit` moves it into place.
    """
    claim_folder(output)
    staging = output / STAGING
    with _explain_errors(output):
        if is_finished(output):
            commit(output)
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
    return staging


def is_finished(output: Path) -> bool:
    """Tell whether a staged set is complete, so that it only has to be moved."""
    return (output / STAGING / RUN_FILE).exists()


@contextmanager
def _explain_errors(output: Path) -> Iterator[None]:
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
    for name in (STAGING, JOURNAL, RUN_FILE):
        require_place(output, name, folder=name == STAGING)
    if names & {STAGING, JOURNAL} or names <= KEEP_FILES:
        return
    if RUN_FILE in names:
        try:
            program = json.loads((output / RUN_FILE).read_bytes()).get("program")
        except (ValueError, AttributeError, RecursionError):
            program = None
        if program == "montecarlo":
            return
    raise OutputError(
        "output must be empty or hold an earlier report of montecarlo, got "
        f"{str(output)!r}, which holds {min(names - KEEP_FILES)!r}"
    )


def finish_staging(output: Path, run: Mapping[str, Any]) -> None:
    """Write run.json of a staged set, with the hashes of its files."""
    staging = output / STAGING
    _require_free(output, _hashes(staging))
    write_run(staging, run)


def write_run(folder: Path, run: Mapping[str, Any]) -> None:
    """Write run.json of a folder: hashes of its files, and a digest of itself.

    ``run`` is what is said of how the files were made.
    """
    record = {"program": "montecarlo", "schema": SCHEMA, **run}
    record = seal({**record, "sha256": _hashes(folder)})
    # whole or not at all: from its presence on, the next run finishes the renaming
    unfinished = folder / f"{RUN_FILE}.part"
    write_json(unfinished, record)
    unfinished.replace(folder / RUN_FILE)


def _hashes(folder: Path) -> dict[str, str]:
    """Return the hashes of a folder's files but run.json and timing.json."""
    return {
        path.relative_to(folder).as_posix(): file_hash(path)
        for path in files_of(folder)
        if path.name not in (RUN_FILE, TIMING_FILE)
    }


def commit(output: Path) -> list[Path]:
    """Move a finished staged set into place, run.json last.

    Can be repeated after an interruption at any point.

    Returns
    -------
    list of Path
        The files written, in a canonical order.

    Raises
    ------
    OutputError
        If it would take the place of a file that is not ours; nothing is moved then.
    """
    staging = output / STAGING
    hashes = _hashes_in(staging / RUN_FILE)
    staged, gone = _require_free(output, hashes)
    old, previous = output / RUN_FILE, staging / PREVIOUS_FILE
    if old.exists():
        old.replace(previous)
    for name, path in staged.items():
        target = output / name
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
    for name in gone:
        (output / name).unlink(missing_ok=True)
    (staging / RUN_FILE).replace(old)
    shutil.rmtree(staging)
    return [output / name for name in (*sorted(hashes), RUN_FILE)]


def _require_free(
    output: Path, hashes: Mapping[str, str]
) -> tuple[dict[str, Path], list[str]]:
    """See that a staged set takes no place of a file that is not ours.

    Returns
    -------
    dict, list of str
        Name of each file that is to be moved to where it lies, and those of an earlier
        run that are to go.
    """
    staging = output / STAGING
    old, previous = output / RUN_FILE, staging / PREVIOUS_FILE
    earlier = _hashes_in(old if old.exists() else previous)
    staged = {path.relative_to(staging).as_posix(): path for path in files_of(staging)}
    for name in (RUN_FILE, PREVIOUS_FILE):
        staged.pop(name, None)
    gone = {
        name: found
        for name, found in sorted(earlier.items())
        if name not in hashes and is_inside(name)
    }
    require_unchanged(output, gone)
    require_replaceable(output, staged, earlier, (TIMING_FILE,))
    return staged, list(gone)


def _hashes_in(run_file: Path) -> dict[str, str]:
    """Return the files that a run.json names; none where it cannot be read."""
    try:
        return dict(json.loads(run_file.read_bytes())["sha256"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def discard_staging(output: Path) -> None:
    """Drop a set that was not finished."""
    shutil.rmtree(output / STAGING, ignore_errors=True)


def files_of(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, in a canonical order."""
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def write_json(path: Path, data: object) -> None:
    """Write data as JSON, the same bytes for the same data."""
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text, the same bytes on every system; its folder is made if missing."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")

"""Results folders: writing them atomically, and reading them with their hashes checked.

A folder may be written if its run.json is from this program, an interrupted run is in
it, or it is empty but for `KEEP_FILES`.  Files that an earlier run wrote are replaced
or removed, provided that their hashes in run.json still match.  Any other file in their
place is an error.

New files are made in a subfolder, so that the output may be a mount point or a link.
Then run.json is removed, the files are moved one by one, and the new run.json comes
last: where there is one, the folder is complete.  A run that fails leaves the earlier
files unchanged; one that is killed while it moves files is completed by the next.

Until then the batches of a run are in its journal, a file each, in a folder that is
named by a hash of what they depend on: batches of different runs are never mixed.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from filelock import FileLock, Timeout

from montecarlo.errors import InputError, UnfinishedError, is_file_limit, writing
from montecarlo.estimation.engine import PART
from montecarlo.small_files import read_small

RUN_FILE = "run.json"
#: The file of what may differ between equal runs; it has no hash.
TIMING_FILE = "timing.json"
#: Subfolder in which a new set of files is made.
STAGING = ".montecarlo-partial"
#: Subfolder of the batches of an unfinished run.
JOURNAL = ".montecarlo-journal"
#: Entry of run.json with the hash of its other entries.
DIGEST = "digest"
#: Version of the format of results folders.
SCHEMA = 13
#: Largest size of a run.json in bytes; that of the full preset has 40 thousand.
MOST_RUN = 2**24


def files_of(folder: Path) -> Iterator[Path]:
    """Yield the paths of all files in a folder and its subfolders, sorted."""
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_inside(name: str) -> bool:
    """Return whether a relative path stays inside its folder, as ``../x`` does not.

    Paths are those in run.json, with slashes on every system.
    """
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts


def write_json(path: Path, data: object) -> None:
    """Write data to a JSON file; equal data give equal bytes.

    Raises ValueError for NaN and infinity.
    """
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file, with the same bytes on every system.

    The file's folder is created if it is missing; that folder's parent must exist.
    """
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def write_run(folder: Path, run: Mapping[str, Any]) -> None:
    """Write run.json, which describes how the files of a folder were made.

    ``run`` is that description.  Added are program, version of the format, the hashes
    of all files in the folder but timing.json, and a hash of run.json itself.
    """
    hashes = {
        path.relative_to(folder).as_posix(): file_hash(path)
        for path in files_of(folder)
        if path.name not in (RUN_FILE, TIMING_FILE)
    }
    record = {"program": "montecarlo", "schema": SCHEMA, **run, "sha256": hashes}
    # atomic: if it is there, the set of files is complete and only has to be moved
    part = folder / f"{RUN_FILE}.part"
    write_json(part, record | {DIGEST: digest(record)})
    part.replace(folder / RUN_FILE)


def digest(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 hash, in hex digits, of the entries of run.json but `DIGEST`.

    It detects edits by mistake, and is no signature.
    """
    content = {name: value for name, value in record.items() if name != DIGEST}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_run(folder: Path) -> dict[str, Any]:
    """Return the content of a folder's run.json, after checking the hashes of files.

    The file timing.json has no hash, and may differ.

    Raises
    ------
    InputError
        If run.json is missing or of another program or schema, or if it or a file was
        changed or is missing.
    """
    run = _load(folder / RUN_FILE)
    if run is None:
        what = "the folder" if folder.is_dir() else "what is no folder,"
        raise InputError(
            "results (--from) must be in the folder of a finished report, with a "
            f"readable {RUN_FILE}, got {what} {str(folder.absolute())!r}"
        )
    program, schema = run["program"], run["schema"]
    if (program, schema) != ("montecarlo", SCHEMA):
        raise InputError(
            f"results must be of montecarlo's schema {SCHEMA}, "
            f"got {schema!r:.40} of {program!r:.40}"
        )
    if run.get(DIGEST) != digest(run):
        raise InputError(
            f"results must be as they were written, but {RUN_FILE} in {str(folder)!r} "
            "was changed"
        )
    for name, expected in run["sha256"].items():
        file = folder / name  # reading a pipe would block: `is_file` is checked first
        if not (is_inside(name) and file.is_file() and file_hash(file) == expected):
            raise InputError(
                f"results must be as they were written, but {name!r} in "
                f"{str(folder)!r} is missing or changed"
            )
    return run


def _load(path: Path) -> dict[str, Any] | None:
    """Return the content of a run.json of any program or schema.

    None if the file is missing or cannot be read, or lacks program, schema or hashes.
    """
    try:
        record = dict(json.loads(read_small(RUN_FILE, path, MOST_RUN)))
        record["program"], record["schema"], record["sha256"].items()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return record


#: Name of the old run.json while the new files are moved into place.
PREVIOUS_FILE = "previous.json"
LOCK = ".montecarlo-lock"
#: Files that a folder may hold before the first run; they are kept.
KEEP_FILES = frozenset({".gitkeep", ".gitignore", ".DS_Store", "README.md", LOCK})


@dataclass(slots=True)
class Edition:
    """New files for a results folder, while they are being made.

    Attributes
    ----------
    folder : Path
        Where to write the files.
    journal : Path
        Folder of the batches of this run.
    timing : dict
        Content of timing.json: what may differ between equal runs.
    record : dict
        Entries of run.json: how the files were made.
    written : sequence of Path
        The files in their final place; empty until they are moved there.
    """

    folder: Path
    journal: Path
    timing: dict[str, Any]
    record: dict[str, Any] = field(default_factory=dict)
    written: Sequence[Path] = ()
    _started: float = field(default_factory=time.perf_counter)

    def end_part(self, part: str) -> None:
        """Store the duration of the part of a run that ends now, in seconds.

        It becomes ``timing["seconds"][part]``.  The part began when the previous one
        ended.
        """
        now = time.perf_counter()
        self.timing.setdefault("seconds", {})[part] = round(now - self._started, 3)
        self._started = now


@contextmanager
def publishing(
    output: Path,
    typed: Sequence[str],
    recipe: Mapping[str, object] | None = None,
    *,
    fresh: bool = False,
) -> Iterator[Edition]:
    """Provide a folder for new files in a with block, then move them to ``output``.

    If the block raises an exception, its files are deleted, and ``output`` stays as it
    was.

    Parameters
    ----------
    output : Path
        The output folder; created if missing.
    typed : sequence of str
        The command line, for timing.json.
    recipe : mapping, optional
        For a run that samples: what its batches depend on.
    fresh : bool
        Whether to delete the batches of an interrupted run.

    Yields
    ------
    Edition
        The block writes files to its folder, and fills ``timing`` and ``record``.

    Raises
    ------
    InputError
        If the folder cannot be written, or holds files of another origin.
    UnfinishedError
        If another run uses the folder, or, unless ``fresh``, it has batches of an
        interrupted run with another recipe.
    KeyboardInterrupt
        On Ctrl-C, with a message of what is kept, if anything is.
    """
    with _locked(output):
        staging = output / STAGING
        if (staging / RUN_FILE).exists():
            _commit(output)
        journal = open_journal(output, recipe, fresh=fresh)
        edition = Edition(staging, journal, {"command": list(typed)})
        try:
            try:
                if staging.exists():  # of a run that was killed
                    shutil.rmtree(staging)
                staging.mkdir()
                yield edition
                write_json(staging / TIMING_FILE, edition.timing)
                write_run(staging, edition.record)
                _plan(output)
            except BaseException:
                shutil.rmtree(staging, ignore_errors=True)
                raise
            edition.written = _commit(output)
        except KeyboardInterrupt:
            if n_batches := count_batches(journal):
                kept = f"{n_batches} finished batches are kept in {str(output)!r}"
                raise KeyboardInterrupt(f"interrupted; {kept}; to go on") from None
            raise
        finally:
            if recipe is not None and (edition.written or not count_batches(journal)):
                shutil.rmtree(journal.parent, ignore_errors=True)


@contextmanager
def _locked(output: Path) -> Iterator[None]:
    """Make an output folder, and lock it against other runs within a with block.

    Folders that were created for it and are still empty at the end are removed again.

    Raises
    ------
    UnfinishedError
        If another run holds the lock, or writing in the block fails.
    InputError
        If the folder cannot be written, or fails `_require_ours`.
    """
    new: list[Path] = []
    try:
        try:
            new += [path for path in (output, *output.parents) if not path.exists()]
            output.mkdir(parents=True, exist_ok=True)
            _require_ours(output)
            lock = FileLock(output / LOCK, timeout=0)
            lock.acquire()
        except Timeout:
            raise UnfinishedError(
                "output must not be in use by another run that has not ended, got "
                f"{str(output)!r}"
            ) from None
        except OSError as error:
            if is_file_limit(error):
                raise
            raise InputError(
                "output must be a folder that can be written, "
                f"got {str(output)!r}: {error.strerror or error}"
            ) from error
        try:
            with writing(output):
                yield
        finally:
            with suppress(OSError):  # on Windows an open file cannot be deleted
                (output / LOCK).unlink()
            lock.release()
    finally:
        with suppress(OSError):  # it is not empty
            for path in new:
                path.rmdir()


def _require_ours(output: Path) -> None:
    """Raise `InputError` for a folder that a run must not write to.

    It must not hold files of other programs, or files of an earlier run that were
    changed.
    """
    for name in (RUN_FILE, LOCK, f"{STAGING}/{RUN_FILE}", f"{JOURNAL}/batches"):
        _require_free(output, name)
    names = {entry.name for entry in output.iterdir()}
    earlier = _hashes(output / RUN_FILE)
    if earlier is None and not (names <= KEEP_FILES or names & {STAGING, JOURNAL}):
        raise InputError(
            "output must be empty or hold an earlier report of montecarlo, got "
            f"{str(output)!r}, which holds {min(names - KEEP_FILES)!r}"
        )
    if not (output / STAGING / RUN_FILE).exists():  # else files are being moved
        for name, digest in (earlier or {}).items():
            _require_free(output, name, digest)


def _plan(output: Path) -> tuple[dict[str, Path], list[str]]:
    """Return (new files to move into place, old files to delete) of an output folder.

    The new files may replace only files of an earlier run.

    Returns
    -------
    staged : dict
        Relative path of each file that is to be moved -> where it is now.
    gone : list of str
        Relative paths of the files of an earlier run that are to be deleted.

    Raises
    ------
    InputError
        If another file is in the place of a new one.
    """
    staging, run = output / STAGING, output / RUN_FILE
    previous = _hashes(run if run.exists() else staging / PREVIOUS_FILE)
    earlier, new = previous or {}, _hashes(staging / RUN_FILE) or {}
    staged = {path.relative_to(staging).as_posix(): path for path in files_of(staging)}
    for name in (RUN_FILE, PREVIOUS_FILE):
        staged.pop(name, None)
    gone = [name for name in earlier if name not in new]
    for name in gone:
        _require_free(output, name, earlier[name])
    for name, path in staged.items():
        ours: tuple[str | None, ...] = (earlier.get(name), file_hash(path))
        if name == TIMING_FILE and previous is not None:
            ours = ()  # any: it has no hash in run.json
        _require_free(output, name, *ours)
    return staged, gone


def _commit(output: Path) -> list[Path]:
    """Move the new files into place, run.json last, and return their paths.

    The paths are sorted, with those of timing.json and run.json last.
    An interrupted call can be repeated.
    """
    staged, gone = _plan(output)
    staging, run = output / STAGING, output / RUN_FILE
    names = sorted(_hashes(staging / RUN_FILE) or {})
    if run.exists():
        run.replace(staging / PREVIOUS_FILE)
    for name, path in staged.items():
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        path.replace(output / name)
    for name in gone:
        (output / name).unlink(missing_ok=True)
    (staging / RUN_FILE).replace(run)
    shutil.rmtree(staging)
    return [output / name for name in (*names, TIMING_FILE, RUN_FILE)]


def _hashes(run_file: Path) -> dict[str, str] | None:
    """Return the hashes of files that a run.json has: relative path -> hash.

    None if run.json is missing, invalid or from another program.  Paths that lead out
    of the folder are left out.
    """
    run = _load(run_file)
    if run is None or run["program"] != "montecarlo":
        return None
    return {name: one for name, one in run["sha256"].items() if is_inside(name)}


def _require_free(output: Path, name: str, *digests: str | None) -> None:
    """Raise `InputError` unless a file may be written at a path of the output folder.

    There must be no file, or one with one of the hashes ``digests``.  If none are
    given, any file may be there.  Its parent folders must not be links or files.
    """
    path = output / name
    for place in (path, *path.parents):
        if place == output:
            return
        fits = place.is_file() if place == path else place.is_dir()
        if (
            place.is_symlink()
            or (place.exists() and not fits)
            or (place == path and fits and digests and file_hash(path) not in digests)
        ):
            raise InputError(
                "output must hold no other files in the place of new ones, got "
                f"{str(place)!r}, which is a link, or not as an earlier run wrote it; "
                "move it away, or name another folder"
            )


def open_journal(
    output: Path, recipe: Mapping[str, object] | None, *, fresh: bool = False
) -> Path:
    """Return the folder for the finished batches of a run; make the folder if missing.

    It is a folder of the journal, named by the hash of the recipe.  A batch is a number
    of replicates that one worker sampled.  An interrupted run continues from the
    batches in its folder.

    Parameters
    ----------
    output : Path
        The results folder.
    recipe : mapping, optional
        What the batches depend on.  None for a run that does not sample: then the
        folder is not made, and batches of other runs are ignored.
    fresh : bool
        Whether to delete the batches of every recipe first.

    Raises
    ------
    UnfinishedError
        If there are batches of a run with another recipe.
    """
    journal = output / JOURNAL
    if fresh and journal.exists():
        shutil.rmtree(journal)
    text = json.dumps(recipe, sort_keys=True).encode()
    batches = journal / hashlib.sha256(text).hexdigest()[:16]
    if recipe is None:
        return batches
    others = [path for path in journal.glob("*/*") if path.parent != batches]
    if others:
        raise UnfinishedError(
            f"journal {str(journal)!r} must be of this run, got that of another one "
            "that was interrupted; its command continues it, --fresh deletes it"
        )
    batches.mkdir(parents=True, exist_ok=True)
    return batches


def count_batches(journal: Path) -> int:
    """Return the number of finished batches in a folder from `open_journal`.

    0 if it does not exist.
    """
    return sum(path.suffix != PART for path in journal.glob("*"))

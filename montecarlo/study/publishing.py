"""Publishing a folder, the one way of all commands: locked, made aside, moved in place.

A folder is ours if its run.json says so, an unfinished run of ours is in it, or it
holds nothing but ignored keep-files.  Of its files, those are replaced or removed that
are as an earlier run wrote them, by their hashes in its run.json; anything else is
somebody's, and refused by name.

The new set is made in a folder within, so that the output may be a mount or a link.
Then run.json goes, files are renamed one by one, and run.json comes back last: where it
is, all is whole.  A run that fails leaves the earlier files as they were; one that is
killed while it renames is finished by the next.
"""

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from montecarlo.errors import InputError, UnfinishedError, lacks_files, writing
from montecarlo.small_files import read_small
from montecarlo.study.folder import (
    JOURNAL,
    MOST_RUN,
    RUN_FILE,
    STAGING,
    TIMING_FILE,
    file_hash,
    files_of,
    is_inside,
    write_json,
    write_run,
)
from montecarlo.study.journal import count_batches, open_journal

#: The old run.json while the new set is moved into place.
PREVIOUS_FILE = "previous.json"
LOCK = ".montecarlo-lock"
KEEP_FILES = frozenset({".gitkeep", ".gitignore", ".DS_Store", "README.md", LOCK})


class OutputError(InputError):
    """An output folder that must not, or cannot, be written; one line."""


@dataclass(slots=True)
class Edition:
    """A set of files in the making.

    Attributes
    ----------
    folder : Path
        Aside, to write them into.
    journal : Path
        Where the batches of this run are written.
    timing : dict
        To be filled: what may differ between equal runs, for timing.json.
    record : dict
        The same for run.json: how the files were made.
    written : sequence of Path
        The files in their place, once they are there.
    """

    folder: Path
    journal: Path
    timing: dict[str, Any]
    record: dict[str, Any] = field(default_factory=dict)
    written: Sequence[Path] = ()
    _noted: float = field(default_factory=time.perf_counter)

    def note_time(self, part: str) -> None:
        """Note the time since the last note, or the beginning, as that of a part."""
        now = time.perf_counter()
        self.timing.setdefault("seconds", {})[part] = round(now - self._noted, 3)
        self._noted = now


@contextmanager
def publishing(
    output: Path,
    typed: Sequence[str],
    recipe: Mapping[str, object] | None = None,
    *,
    fresh: bool = False,
) -> Iterator[Edition]:
    """Let a block make the files of a folder, and move them into place.

    Parameters
    ----------
    output : Path
    typed : sequence of str
        The command line, for timing.json.
    recipe : mapping, optional
        Of a run that samples: what the bytes of its batches depend on.
    fresh : bool
        Whether to drop what an interrupted run left.

    Yields
    ------
    Edition
        To be written and filled by the block.

    Raises
    ------
    OutputError
        If the folder is not ours, cannot be written, or holds somebody's files.
    UnfinishedError
        If another run has the folder, or the batches of an interrupted run are of
        another recipe, and ``fresh`` is not set.
    KeyboardInterrupt
        Of a run that samples, with how to go on.
    """
    with _claiming(output):
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
            raise KeyboardInterrupt(_how_to_go_on(journal)) from None
        finally:
            if recipe is not None and (edition.written or not count_batches(journal)):
                shutil.rmtree(journal.parent, ignore_errors=True)


def _how_to_go_on(journal: Path) -> str:
    if not (kept := count_batches(journal)):
        return "interrupted, nothing was written"
    return (
        f"interrupted; {kept} finished batches are kept, the same command goes on from "
        "there"
    )


@contextmanager
def _claiming(output: Path) -> Iterator[None]:
    """Lock an output folder for a block; if it fails, no new empty folder is left."""
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
            if lacks_files(error):
                raise
            raise OutputError(
                "output must be a folder that can be written, "
                f"got {str(output)!r}: {error.strerror or error}"
            ) from error
        try:
            with writing(output):
                yield
        finally:
            with suppress(OSError):  # Windows keeps a file that is open
                (output / LOCK).unlink()
            lock.release()
    finally:
        with suppress(OSError):  # one that is not empty stays
            for path in new:
                path.rmdir()


def _require_ours(output: Path) -> None:
    """Refuse a folder that is not ours, or whose files were changed since."""
    for name in (RUN_FILE, LOCK, f"{STAGING}/{RUN_FILE}", f"{JOURNAL}/batches"):
        _require_free(output, name)
    names = {entry.name for entry in output.iterdir()}
    earlier = _hashes(output / RUN_FILE)
    if earlier is None and not (names <= KEEP_FILES or names & {STAGING, JOURNAL}):
        raise OutputError(
            "output must be empty or hold an earlier report of montecarlo, got "
            f"{str(output)!r}, which holds {min(names - KEEP_FILES)!r}"
        )
    if not (output / STAGING / RUN_FILE).exists():  # what is half moved: `_plan`
        for name, digest in (earlier or {}).items():
            _require_free(output, name, digest)


def _plan(output: Path) -> tuple[dict[str, Path], list[str]]:
    """See that a staged set takes no place of a file that is not ours.

    Returns
    -------
    dict, list of str
        Name of each file that is to be moved to where it lies, and those of an earlier
        run that are to go.
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
            ours = ()  # its hash is not written down
        _require_free(output, name, *ours)
    return staged, gone


def _commit(output: Path) -> list[Path]:
    """Move a finished staged set into place, run.json last.

    Can be repeated after an interruption at any point.  Returns the files written, in a
    canonical order.
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
    return [output / name for name in (*names, RUN_FILE)]


def _hashes(run_file: Path) -> dict[str, str] | None:
    """Return the files below its folder that a run.json names, and their hashes.

    None where there is none of ours.
    """
    try:
        run = json.loads(read_small(RUN_FILE, run_file, MOST_RUN))
        named = run["sha256"].items()
        if run["program"] != "montecarlo":
            return None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return {name: digest for name, digest in named if is_inside(name)}


def _require_free(output: Path, name: str, *digests: str | None) -> None:
    """Refuse a place of a file that holds anything but a file with one of the hashes.

    Without any, but any file.  Links on the way to it are refused, and what is no
    folder.
    """
    path = output / name
    for place in (path, *path.parents):
        if place == output:
            return
        right = place.is_file() if place == path else place.is_dir()
        if place.is_symlink() or (place.exists() and not right):
            raise _refusal(place)
        if place == path and right and digests and file_hash(path) not in digests:
            raise _refusal(place)


def _refusal(path: Path) -> OutputError:
    return OutputError(
        "output must hold nothing else where files are to come, got "
        f"{str(path)!r}, which is a link, or not as an earlier run wrote it; move it "
        "away, or name another folder"
    )

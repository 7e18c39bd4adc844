"""The journal: every finished batch of a run, kept until its report is written.

One SQLite file, which is the lock of its folder as well: SQLite holds it for as long as
the run lives, and lets go however the run ends; what was committed stays.
"""

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from montecarlo.errors import UnfinishedError
from montecarlo.estimation.engine import SampleStore
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.folder import JOURNAL

#: A commit in WAL mode is one write, and needs no shared memory in exclusive mode.
_SETUP = """
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
BEGIN EXCLUSIVE;
CREATE TABLE IF NOT EXISTS recipe (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS batch (place TEXT PRIMARY KEY, content BLOB NOT NULL);
COMMIT;
"""
_IN_USE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
#: Codes of a file or disk that cannot be written, rather than of content.
_DISK = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
_DISK |= {sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY}


class JournalError(UnfinishedError):
    """A journal that cannot be had, read or written; one line."""


class DamagedError(JournalError):
    """A file that is no journal, or not as it was written."""


@dataclass(slots=True)
class Journal:
    """An open journal; nobody else has it."""

    path: Path
    _connection: sqlite3.Connection

    def find(self, name: str, start: int, stop: int) -> bytes | None:
        """Return the batch with these replicates of a point, if it is as written."""
        place = f"{name} {start}:{stop}"
        rows = self._execute("SELECT content FROM batch WHERE place = ?", (place,))
        for (content,) in rows:  # a changed one, perhaps of another type, is none
            if isinstance(content, bytes):
                packed = content[len(_checksum(place, b"")) :]
                if content == _checksum(place, packed) + packed:
                    return packed
        return None

    def keep(self, name: str, start: int, stop: int, packed: bytes) -> None:
        """Write a batch, whole or not at all; what was written before stays."""
        place = f"{name} {start}:{stop}"
        values = (place, _checksum(place, packed) + packed)
        self._execute("INSERT OR REPLACE INTO batch VALUES (?, ?)", values)

    def n_batches(self) -> int:
        """Return how many batches are there."""
        ((number,),) = self._execute("SELECT count(*) FROM batch")
        return int(number)

    def take_up(self, recipe: Mapping[str, object], *, finished: bool = False) -> None:
        """Go on with what an interrupted run left, if its recipe was this one.

        ``recipe``: what the bytes of batches, and which there are, depend on;
        ``finished``: whether that run's results are in place, so that nothing is lost.
        """
        ours = {name: json.dumps(value) for name, value in recipe.items()}
        kept = dict(self._execute("SELECT name, value FROM recipe"))
        if kept == ours:
            return
        if finished:
            self._execute("DELETE FROM batch")
        if self.n_batches():
            names = sorted({name for name, _ in kept.items() ^ ours.items()})
            raise JournalError(
                f"journal {str(self.path)!r} of an interrupted run must be of this "
                f"run, got one that differs in {', '.join(names)}; that run's command "
                "goes on with it, --fresh starts anew"
            )
        self._execute("DELETE FROM recipe")
        for item in ours.items():
            self._execute("INSERT INTO recipe VALUES (?, ?)", item)

    def close(self, *, done: bool = False) -> None:
        """Let go of the folder; a journal that is done with, or empty, is deleted."""
        with suppress(JournalError):
            done = done or not self.n_batches()
        if done:
            try:
                _delete(self.path)
            except PermissionError:  # Windows: an open file stays, and is empty then
                self._execute("DELETE FROM batch")
        self._connection.close()

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with _explaining(self.path):
            return self._connection.execute(statement, values).fetchall()


@dataclass(slots=True, kw_only=True)
class JournaledStore(SampleStore):
    """Batches in a journal; in memory is only which there are."""

    journal: Journal

    def add(self, point: DesignPoint, start: int, stop: int, packed: bytes) -> None:
        """Take a finished batch, in any order, and write it down."""
        self.journal.keep(point.name, start, stop, packed)
        SampleStore.add(self, point, start, stop, b"")

    def recall(self, point: DesignPoint, start: int, stop: int) -> bool:
        """Count a batch in that is in the journal."""
        found = self.journal.find(point.name, start, stop) is not None
        if found:
            SampleStore.add(self, point, start, stop, b"")
        return found

    def packed(self, point: DesignPoint) -> list[bytes]:
        """Read the batches of a point, in the order of the indices.

        Raises
        ------
        DamagedError
            If one is no longer as it was written.
        """
        found = []
        for start, (stop, _) in sorted(self._batches[point].items()):
            packed = self.journal.find(point.name, start, stop)
            if packed is None:
                raise DamagedError(
                    f"journal {str(self.journal.path)!r} must hold replicates {start} "
                    f"to {stop - 1} of {point.name} as they were written; the same "
                    "command samples them again"
                )
            found.append(packed)
        return found


def open_journal(folder: Path, *, fresh: bool = False) -> Journal:
    """Open the journal of a folder, and with it lock the folder.

    Parameters
    ----------
    folder : Path
        An existing folder of ours.
    fresh : bool
        Whether to drop what is there, be it a journal or not.

    Raises
    ------
    JournalError
        If another run has the folder, or what is there is no journal.
    """
    path = folder / JOURNAL
    if fresh:
        try:
            Journal(path, _connect(path)).close(done=True)  # not while another has it
        except DamagedError:
            _delete(path)
    return Journal(path, _connect(path))


def _checksum(place: str, packed: bytes) -> bytes:
    """Return what tells a batch that is as written, and of its own place."""
    return zlib.crc32(packed, zlib.crc32(place.encode())).to_bytes(4, "big")


def _connect(path: Path) -> sqlite3.Connection:
    """Open and lock; again, if who had the file deleted it meanwhile."""
    while True:
        path.touch()
        before = path.stat().st_ino
        with _explaining(path):
            connection = sqlite3.connect(path, timeout=0.0, isolation_level=None)
            try:
                connection.executescript(_SETUP)
            except BaseException:
                connection.close()
                raise
        if path.exists() and path.stat().st_ino == before:
            return connection
        connection.close()


def _delete(path: Path) -> None:
    for suffix in ("", "-wal"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


@contextmanager
def _explaining(path: Path) -> Iterator[None]:
    """Say in a line what SQLite finds wrong with a file, and what can be done."""
    try:
        yield
    # UnicodeDecodeError: what SQLite says of a broken file may hold parts of it
    except (sqlite3.Error, UnicodeDecodeError) as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        reason = " ".join(str(error).split())
        if code in _IN_USE:
            raise JournalError(
                "output must not be in use by another run that has not ended, got "
                f"{str(path.parent)!r}"
            ) from error
        if code in _DISK:
            raise JournalError(
                f"journal {str(path)!r} must be writable, got: {reason}; what it holds "
                "is kept, and the same command goes on from there"
            ) from error
        raise DamagedError(
            f"journal {str(path)!r} of an interrupted run must be as it was written, "
            f"got: {reason}; --fresh starts anew"
        ) from error

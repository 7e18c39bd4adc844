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
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from montecarlo.errors import UnfinishedError
from montecarlo.estimation.engine import SampleStore
from montecarlo.sampling.batches import Batch, PackedBatch, pack
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

    def find(self, name: str, start: int, stop: int) -> PackedBatch | None:
        """Return the batch with these replicates of a point, if it is as written."""
        place = f"{name} {start}:{stop}"
        rows = self._execute("SELECT content FROM batch WHERE place = ?", (place,))
        with suppress(zlib.error, TypeError):  # a changed one is drawn again
            for (content,) in rows:
                kept = np.load(BytesIO(zlib.decompress(content)))
                if kept["place"] == place:
                    shapes = tuple((m, n) for m, n in kept["shapes"].tolist())
                    bins = np.frombuffer(zlib.decompress(kept["bins"]), np.int64)
                    rises, counts = bins.reshape(2, -1)
                    places = np.cumsum(rises).astype(np.int32)
                    return PackedBatch(kept["means"], places, counts, shapes)
        return None

    def keep(self, name: str, start: int, stop: int, packed: PackedBatch) -> None:
        """Write a batch, whole or not at all; what was written before stays."""
        place, file = f"{name} {start}:{stop}", BytesIO()
        rises = np.diff(packed.places, prepend=np.int32(0))
        bins = zlib.compress(np.array([rises, packed.counts], np.int64).tobytes(), 1)
        np.savez(
            file,
            place=np.array(place),
            means=packed.means,
            shapes=np.array(packed.shapes, int),
            bins=np.frombuffer(bins, np.uint8),
        )
        values = (place, zlib.compress(file.getvalue(), 0))  # for its checksum
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
    """Batches in memory that are also in a journal."""

    journal: Journal

    def add(self, point: DesignPoint, start: int, batch: Batch) -> None:
        """Take a finished batch, in any order, and write it down."""
        packed = pack(batch)
        self.journal.keep(point.name, start, start + len(packed.means), packed)
        self.add_packed(point, start, packed)

    def recall(self, point: DesignPoint, start: int, stop: int) -> bool:
        """Take a batch from the journal, if it is there."""
        packed = self.journal.find(point.name, start, stop)
        if packed is not None:
            self.add_packed(point, start, packed)
        return packed is not None


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

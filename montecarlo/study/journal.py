"""The journal: every finished batch of a run, kept until its report is written.

A run that was killed goes on from it.  The file is also the lock of the output folder:
SQLite holds it for as long as the run lives, and lets go however the run ends.  A file
for each batch would need a lock beside it and come to 53,000 for the full preset.
"""

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from montecarlo.estimation.engine import SampleStore
from montecarlo.sampling.batches import Batch, PackedBatch, pack
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.folder import JOURNAL, is_finished
from montecarlo.study.locking import (
    DamagedError,
    JournalError,
    connect,
    delete,
    explain_errors,
)

_TABLES = """
CREATE TABLE IF NOT EXISTS recipe (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS batches (
    point TEXT, start INTEGER, stop INTEGER, content BLOB, digest BLOB,
    PRIMARY KEY (point, start, stop)
);
"""
#: Under this name a recipe says that the run's report is complete.
FINISHED = "finished"
#: Values of a recipe up to this length are shown where they are not as expected.
SHOWN_LENGTH = 40
#: What a batch is kept as: columns of its means, shapes of its counts, and arrays.
Content = tuple[int, tuple[tuple[int, int], ...], bytes, bytes, bytes]


@dataclass(slots=True)
class Journal:
    """An open journal; nobody else has it."""

    path: Path
    _connection: sqlite3.Connection

    def find(self, name: str, start: int, stop: int) -> PackedBatch | None:
        """Return the batch with these replicates of a point, if it is there."""
        place = (name, start, stop)
        rows = self._execute(
            "SELECT content, digest FROM batches "
            "WHERE point = ? AND start = ? AND stop = ?",
            place,
        )
        if not rows:
            return None
        ((content, digest),) = rows
        if not isinstance(content, bytes) or digest != _digest(place, content):
            raise DamagedError(self.path, f"a batch of {name} was changed")
        return _decode(content)

    def keep(self, name: str, start: int, stop: int, packed: PackedBatch) -> None:
        """Write a batch, whole or not at all.

        Raises
        ------
        JournalError
            If it cannot be written; what was written before is still there.
        """
        place, content = (name, start, stop), _encode(packed)
        self._execute(
            "INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?, ?)",
            (*place, content, _digest(place, content)),
        )

    def finish(self) -> None:
        """Say that the run's report is complete: nothing here is needed any more."""
        self._execute("INSERT OR REPLACE INTO recipe VALUES (?, '')", (FINISHED,))

    def n_batches(self) -> int:
        """Return how many batches are there."""
        ((number,),) = self._execute("SELECT count(*) FROM batches")
        return int(number)

    def goes_on(self) -> str:
        """Say, after an interruption, how to continue."""
        kept = self.n_batches()
        if not kept:
            return "interrupted, nothing was written"
        return (
            f"interrupted; {kept} finished batches are kept, the same command goes on "
            "from there"
        )

    def take_up(self, recipe: Mapping[str, object], *, finished: bool) -> None:
        """Check what an earlier run left, or drop it where nothing is lost by that.

        ``finished``: whether the earlier run's report is complete.
        """
        if self._execute("PRAGMA quick_check") != [("ok",)]:
            raise DamagedError(self.path, "its structure is broken")
        for statement in _TABLES.split(";"):
            self._execute(statement)
        ours = {name: json.dumps(value) for name, value in recipe.items()}
        kept = dict(self._execute("SELECT name, value FROM recipe"))
        done = kept.pop(FINISHED, None) is not None or finished
        if kept == ours:
            self._check_all()
        elif done or not self.n_batches():
            self._start_anew(ours)
        else:
            raise _of_another(self.path, kept, ours)

    def remove(self) -> None:
        """Delete the file, and let go of the folder."""
        delete(self.path)
        self._connection.close()
        delete(self.path)

    def close(self) -> None:
        """Let go of the folder; a journal without batches goes."""
        with closing(self._connection), suppress(JournalError):
            tables = self._execute("SELECT 1 FROM sqlite_schema WHERE name = 'batches'")
            if not tables or not self.n_batches():
                delete(self.path)

    def _check_all(self) -> None:
        """Read every batch once, so that damage is found before anything is drawn."""
        for name, start, stop in self._execute(
            "SELECT point, start, stop FROM batches"
        ):
            if self.find(name, start, stop) is None:
                raise DamagedError(self.path, f"a batch of {name} is not found")

    def _start_anew(self, recipe: Mapping[str, str]) -> None:
        self._execute("DELETE FROM batches")
        self._execute("DELETE FROM recipe")
        for item in recipe.items():
            self._execute("INSERT INTO recipe VALUES (?, ?)", item)

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with explain_errors(self.path):
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


@contextmanager
def open_journal(
    output: Path, recipe: Mapping[str, object] | None = None, *, fresh: bool = False
) -> Iterator[Journal]:
    """Open the journal of an output folder, and with it lock the folder.

    Parameters
    ----------
    output : Path
        An existing folder of ours.
    recipe : mapping, optional
        What the bytes of batches, and which there are, depend on; without it the folder
        is only locked, whatever its journal holds.
    fresh : bool
        Whether to drop what an interrupted run left.

    Yields
    ------
    Journal
        With the batches that an interrupted run of the same recipe left.

    Raises
    ------
    JournalError
        If another run has the folder; if what an interrupted run left is damaged or of
        another recipe, and ``fresh`` is not set: it is left as it is then.
    """
    path = output / JOURNAL
    journal = Journal(path, connect(path, fresh=fresh))
    try:
        if recipe is not None:
            journal.take_up(recipe, finished=is_finished(output))
        yield journal
    finally:
        journal.close()


def _encode(batch: PackedBatch) -> bytes:
    rises = np.diff(batch.places, prepend=np.int32(0)).astype("<i4")
    content: Content = (
        batch.means.shape[1],
        batch.shapes,
        batch.means.astype("<f8").tobytes(),
        zlib.compress(rises.tobytes(), 1),
        zlib.compress(batch.counts.astype("<i8").tobytes(), 1),
    )
    return msgspec.msgpack.encode(content)


def _decode(content: bytes) -> PackedBatch:
    columns, shapes, means, rises, counts = msgspec.msgpack.decode(
        content, type=Content
    )
    return PackedBatch(
        np.frombuffer(means, "<f8").reshape(-1, columns),
        np.cumsum(np.frombuffer(zlib.decompress(rises), "<i4"), dtype=np.int32),
        np.frombuffer(zlib.decompress(counts), "<i8"),
        shapes,
    )


def _digest(place: tuple[str, int, int], content: bytes) -> bytes:
    found = hashlib.blake2b(repr(place).encode(), digest_size=16)
    found.update(b"\0" + content)
    return found.digest()


def _of_another(
    path: Path, kept: Mapping[str, str], ours: Mapping[str, str]
) -> JournalError:
    names = sorted(name for name in {*kept, *ours} if kept.get(name) != ours.get(name))
    name = names[0]
    texts = [recipe.get(name, "none") for recipe in (ours, kept)]
    got = ", ".join(names)
    if max(map(len, texts)) <= SHOWN_LENGTH:
        got = f"{name} {texts[1]} in place of {texts[0]}"
    return JournalError(
        f"journal {str(path)!r} of an interrupted run must be of this run, got one "
        f"that differs in {got}; that run's command goes on with it, --fresh starts "
        "anew"
    )

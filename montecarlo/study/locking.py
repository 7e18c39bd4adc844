"""A database file that one process at a time has: SQLite, and what it complains about.

What it complains about becomes a `JournalError`.

The lock ends with the process, however that ends; what was committed stays.  A lock by
filelock (tried) would need a second file, which it cannot delete safely and so leaves.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from montecarlo.errors import UnfinishedError

#: What SQLite says of a file or disk that cannot be written, rather than of content.
DISK_ERRORS = {
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}
IN_USE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class JournalError(UnfinishedError):
    """A journal that cannot be had, read or written; one line."""


class DamagedError(JournalError):
    """A journal that is not as it was written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"journal {str(path)!r} of an interrupted run must be as it was written, "
            f"got: {' '.join(reason.split())}; nothing was touched, --fresh starts anew"
        )


def connect(path: Path, *, fresh: bool = False) -> sqlite3.Connection:
    """Open a database and lock it; made if it is not there.

    ``fresh`` replaces what is there, be it a database or not.
    """
    try:
        with explain_errors(path):
            connection = _open(path)
    except DamagedError:
        if not fresh:
            raise
        delete(path)
        return connect(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise JournalError(
            "output must be a folder that can be written, "
            f"got {str(path.parent)!r}: {reason}"
        ) from error
    if not fresh:
        return connection
    delete(path)
    connection.close()
    return connect(path)


def delete(path: Path) -> None:
    """Delete a database and what belongs to it, if that is there."""
    for suffix in ("", "-wal"):
        with suppress(PermissionError):  # Windows: not while it is open
            Path(f"{path}{suffix}").unlink(missing_ok=True)


def _open(path: Path) -> sqlite3.Connection:
    """Open and lock; again, if who had the file deleted it meanwhile."""
    while True:
        path.touch()
        before = path.stat().st_ino
        connection = sqlite3.connect(path, timeout=0.0, isolation_level=None)
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            # a commit is one write, and needs no shared memory while nobody shares
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        if path.exists() and path.stat().st_ino == before:
            return connection
        connection.close()


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Say in a line what SQLite finds wrong with a file, and what can be done."""
    try:
        yield
    # UnicodeDecodeError: what SQLite says of a broken file may hold parts of it
    except (sqlite3.Error, UnicodeDecodeError) as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in IN_USE:
            raise JournalError(
                "output must not be in use by another run that has not ended, got "
                f"{str(path.parent)!r}"
            ) from error
        if code in DISK_ERRORS:
            raise JournalError(
                f"journal {str(path)!r} must be writable, got: {error}; what it holds "
                "is kept, and the same command goes on from there"
            ) from error
        raise DamagedError(path, str(error)) from error

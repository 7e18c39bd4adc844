"""What of an output folder may be replaced or removed: only what has the hash we wrote.

Anything else is somebody's: an `OutputError` names it, and it is left as it is.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from montecarlo.errors import InputError

_WAY_OUT = "; move it away, or name another folder"


class OutputError(InputError):
    """An output folder that must not, or cannot, be written; one line."""


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_inside(name: str) -> bool:
    """Tell whether a name that a record has is of a file below its folder."""
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts


def require_unchanged(output: Path, written: Mapping[str, str]) -> None:
    """See that files of an earlier run have the hashes it wrote down, or are gone."""
    for name, expected in written.items():
        if not is_inside(name):
            continue
        require_place(output, name)
        path = output / name
        if path.exists() and file_hash(path) != expected:
            raise _refusal(path, "was changed since it was written")


def require_replaceable(
    output: Path,
    staged: Mapping[str, Path],
    written: Mapping[str, str],
    timing: Iterable[str],
) -> None:
    """See that no file of somebody else is in the place of one that is to come.

    Parameters
    ----------
    output : Path
        The folder.
    staged : mapping
        Name of each file to come to where it lies now.
    written : mapping
        As for `require_unchanged`, of the earlier run.
    timing : iterable of str
        Names of files whose hashes are not written down: those of an earlier run are
        taken for its own.
    """
    for name, source in staged.items():
        require_place(output, name)
        path = output / name
        if not path.exists() or (name in timing and written):
            continue
        found = file_hash(path)
        if found != written.get(name) and found != file_hash(source):
            raise _refusal(path, "was not written by an earlier run, or changed since")


def require_place(output: Path, name: str, *, folder: bool = False) -> None:
    """Refuse a name if a link, or something of the other kind, is in its way.

    ``folder``: whether a folder is to be there, and no file.
    """
    path, parts = output, PurePosixPath(name).parts
    for number, part in enumerate(parts, start=1):
        path /= part
        if path.is_symlink():
            raise _refusal(path, "is a link")
        above = folder or number < len(parts)
        if path.exists() and not (path.is_dir() if above else path.is_file()):
            raise _refusal(path, f"is no {'folder' if above else 'file'}")


def _refusal(path: Path, reason: str) -> OutputError:
    return OutputError(
        f"output must hold nothing else where files are to come, got {str(path)!r}, "
        f"which {reason}{_WAY_OUT}"
    )

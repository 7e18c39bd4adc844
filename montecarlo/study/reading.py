"""Reading run.json back, and holding a folder against it."""

import json
from pathlib import Path
from typing import Any

from montecarlo.small_files import read_small
from montecarlo.study.folder import RUN_FILE, SCHEMA, ResultsError, is_finished
from montecarlo.study.ownership import file_hash, is_inside
from montecarlo.study.sealing import DIGEST, digest_of

#: Bytes of a run.json at most; that of the full preset has 40 thousand.
MOST_RUN = 2**24


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
    run = _read_sealed(
        folder / RUN_FILE, "results", f"a folder with a readable {RUN_FILE}", folder
    )
    for name, expected in run["sha256"].items():
        if not _is_as_written(folder, name, expected):
            raise ResultsError(
                f"results must be as they were written, but {name!r} in "
                f"{str(folder)!r} is missing or changed"
            )
    return run


def _is_as_written(folder: Path, name: str, expected: object) -> bool:
    """Tell whether a file of a folder is there and has its hash."""
    try:
        return (
            is_inside(name)
            and (folder / name).is_file()
            and file_hash(folder / name) == expected
        )
    except (OSError, ValueError):  # a name that is none
        return False


def read_record(path: Path) -> dict[str, Any]:
    """Read a run.json wherever it lies, without the files that it speaks of."""
    return _read_sealed(path, "replicates-from", f"a readable {RUN_FILE}", path)


def _read_sealed(path: Path, name: str, wanted: str, shown: Path) -> dict[str, Any]:
    """Read a record and check it against its own digest."""
    try:
        record = json.loads(read_small(RUN_FILE, path, MOST_RUN))
        program, schema = record["program"], record["schema"]
        digest = digest_of(record)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
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

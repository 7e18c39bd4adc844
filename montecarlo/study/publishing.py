"""Publishing a folder, the one way of all commands: locked, made aside, moved in place.

A run that fails or is interrupted leaves the earlier files as they were.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from montecarlo.study.folder import (
    TIMING_FILE,
    claiming,
    commit,
    discard_staging,
    finish_staging,
    open_staging,
    write_json,
)
from montecarlo.study.journal import Journal, open_journal


@dataclass(slots=True)
class Edition:
    """A set of files in the making.

    Attributes
    ----------
    folder : Path
        Aside, to write them into.
    journal : Journal
        That of the output folder.
    record : dict
        To be filled: what run.json says of how they were made.
    timing : dict
        The same for timing.json: what may differ between equal runs.
    written : sequence of Path
        The files in their place, once they are there.
    """

    folder: Path
    journal: Journal
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
        What the journal of a run that samples is told by.
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
    JournalError
        As for `open_journal`.
    KeyboardInterrupt
        Of a run that samples, with how to go on.
    """
    with claiming(output), open_journal(output, recipe, fresh=fresh) as journal:
        try:
            staging = open_staging(output)
            edition = Edition(staging, journal, {"command": list(typed)})
            try:
                yield edition
                write_json(staging / TIMING_FILE, edition.timing)
                finish_staging(output, edition.record)
            except BaseException:
                discard_staging(output)
                raise
            if recipe is not None:
                journal.finish()
            edition.written = commit(output)
            if recipe is not None:
                journal.remove()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(journal.goes_on() if recipe else "") from None

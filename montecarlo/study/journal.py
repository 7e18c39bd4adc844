"""The journal: every finished batch of a run, a file each, until its report is written.

Batches lie in a folder that is named by the recipe of their run, so that those of two
runs are never mixed.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from montecarlo.errors import UnfinishedError
from montecarlo.estimation.engine import SampleStore
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.folder import JOURNAL

#: How a batch is called that is not yet whole.
PART = ".part"


class JournalError(UnfinishedError):
    """Batches of an interrupted run that cannot be used; one line."""


@dataclass(slots=True, kw_only=True)
class JournaledStore(SampleStore):
    """Batches in files; in memory is only which there are."""

    journal: Path

    def add(self, point: DesignPoint, start: int, stop: int, packed: bytes) -> None:
        """Take a finished batch, in any order, and write it, whole or not at all."""
        file = self._file(point, start, stop)
        part = file.with_suffix(PART)
        part.write_bytes(packed)
        part.replace(file)
        SampleStore.add(self, point, start, stop, b"")

    def recall(self, point: DesignPoint, start: int, stop: int) -> bool:
        """Count a batch in that an earlier run wrote."""
        found = self._file(point, start, stop).exists()
        if found:
            SampleStore.add(self, point, start, stop, b"")
        return found

    def packed(self, point: DesignPoint) -> list[bytes]:
        """Read the batches of a point, in the order of the indices."""
        batches = sorted(self._batches[point].items())
        return [
            self._file(point, start, stop).read_bytes() for start, (stop, _) in batches
        ]

    def _file(self, point: DesignPoint, start: int, stop: int) -> Path:
        name = hashlib.sha256(point.name.encode()).hexdigest()[:16]
        return self.journal / f"{name}-{start}-{stop}"


def open_journal(
    output: Path, recipe: Mapping[str, object] | None, *, fresh: bool = False
) -> Path:
    """Return the folder of a run's batches; it is made if missing.

    Parameters
    ----------
    output : Path
        The results folder.
    recipe : mapping, optional
        What the bytes of the batches depend on; without one nothing is sampled, and
        what an interrupted run left stays.
    fresh : bool
        Whether to drop what an interrupted run left.

    Raises
    ------
    JournalError
        If batches of another recipe are there.
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
        raise JournalError(
            f"journal {str(journal)!r} of an interrupted run must be of this run, got "
            "one of another; that run's command goes on with it, --fresh starts anew"
        )
    batches.mkdir(parents=True, exist_ok=True)
    return batches


def count_batches(journal: Path) -> int:
    """Return how many finished batches there are."""
    return sum(path.suffix != PART for path in journal.glob("*"))

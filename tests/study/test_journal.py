"""The journal: batches come back as they went in, and none of another run."""

import errno
import os
from pathlib import Path

import pytest

from montecarlo.errors import UnfinishedError
from montecarlo.estimation.engine import PART, SampleStore
from montecarlo.sampling.batches import join, pack
from montecarlo.sampling.design_points import parse_point
from montecarlo.study.folder import JOURNAL, count_batches, open_journal
from tests.samples import sample_all

ROWS = parse_point("gaussian", "gaussian", 2, 4)
PAIRS = parse_point("uniform", "uniform", 2)
#: Not in the order of their indices.
BATCHES = ((ROWS, 3, 4), (ROWS, 0, 3), (PAIRS, 0, 2))
RECIPE = {"seed": 1, "grid": {"d_k": [2] * 40}}
DIVISORS = ("none", "sqrt")


def drawn(point, start, stop):
    """Draw a batch."""
    return pack(sample_all(point, 1, start, stop, DIVISORS))


@pytest.fixture
def output(tmp_path):
    """A folder with what an interrupted run left."""
    store = SampleStore(open_journal(tmp_path, RECIPE))
    for point, start, stop in BATCHES:
        store.add(point, start, stop, drawn(point, start, stop))
    return tmp_path


def test_batches_come_back(output):
    """What was kept is recalled to the bit, in the order of the indices; what was not
    kept is not recalled, and in memory is only which there are.
    """
    store = SampleStore(open_journal(output, RECIPE))
    for batch in BATCHES:
        assert store.recall(*batch)
    assert not store.recall(ROWS, 0, 4)
    assert not store.recall(ROWS, 4, 5)
    assert store.n_replicates(ROWS) == 4
    assert not any(isinstance(one, bytes) for one in store._batches[ROWS].values())
    whole = sample_all(ROWS, 1, 0, 4, DIVISORS)
    assert join(store.packed(ROWS)).means.tobytes() == whole.means.tobytes()
    assert count_batches(store.journal) == len(BATCHES)


@pytest.mark.parametrize("change", [{"seed": 2}, {"grid": {"d_k": [4] * 40}}])
def test_batches_of_another_run(output, change):
    """They are refused in one line, and kept; with ``fresh`` they are dropped; without
    a recipe nobody asks.
    """
    with pytest.raises(UnfinishedError, match="--fresh") as caught:
        open_journal(output, {**RECIPE, **change})
    assert "\n" not in str(caught.value)
    open_journal(output, None)
    assert count_batches(open_journal(output, RECIPE)) == len(BATCHES)
    other = open_journal(output, {**RECIPE, **change}, fresh=True)
    assert not SampleStore(other).recall(*BATCHES[0])
    assert len(list((output / JOURNAL).iterdir())) == 1


@pytest.mark.parametrize("function", ["write_bytes", "replace"])
def test_a_batch_is_whole_or_not_there(output, monkeypatch, function):
    """Where the disk is full, or the run is killed, in the middle of one."""
    write = Path.write_bytes

    def fail(path, *arguments):
        write(path, b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *arguments[:0])

    journal = open_journal(output, RECIPE)
    store = SampleStore(journal)
    monkeypatch.setattr(Path, function, fail)
    with pytest.raises(OSError, match="No space"):
        store.add(ROWS, 4, 6, b"a batch")
    assert any(path.suffix == PART for path in journal.iterdir())
    assert count_batches(journal) == len(BATCHES)
    assert not store.recall(ROWS, 4, 6)

"""The journal: batches come back as they went in, or not at all; one run at a time."""

import multiprocessing
import random
import resource
import sqlite3

import numpy as np
import pytest
from montecarlo.study.locking import JournalError

from montecarlo.sampling.batches import pack
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.replicates import sample
from montecarlo.study.folder import JOURNAL, RUN_FILE, STAGING
from montecarlo.study.journal import JournaledStore, open_journal

ROWS = parse_point("gaussian", "gaussian", 2, 4)
PAIRS = parse_point("uniform", "uniform", 2)
BATCHES = ((ROWS, 0, 3), (ROWS, 3, 4), (PAIRS, 0, 2))
RECIPE = {"seed": 1, "grid": {"d_k": [2] * 40}}
DIVISORS = ("none", "sqrt")
#: Flipped bits that are tried, of a file of about a million.
FLIPS = 300


@pytest.fixture
def output(tmp_path):
    """A folder whose journal an interrupted run left."""
    with open_journal(tmp_path, RECIPE) as journal:
        store = JournaledStore(journal=journal)
        for point, start, stop in BATCHES:
            store.add(point, start, sample(point, 1, start, stop, DIVISORS))
    return tmp_path


def same(one, other):
    """Whether two packed batches are the same to the bit."""
    arrays = ("means", "places", "counts")
    return one.shapes == other.shapes and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays
    )


def test_batches_come_back(output):
    """What was kept is recalled to the bit, batch by batch; what was not, is not."""
    with open_journal(output, RECIPE) as journal:
        store = JournaledStore(journal=journal)
        for point, start, stop in BATCHES:
            assert store.recall(point, start, stop)
            drawn = pack(sample(point, 1, start, stop, DIVISORS))
            assert same(journal.find(point.name, start, stop), drawn)
        assert not store.recall(ROWS, 0, 4)
        assert not store.recall(ROWS, 4, 5)
        assert store.n_replicates(ROWS) == 4
        whole = sample(ROWS, 1, 0, 4, DIVISORS)
        assert store.samples(ROWS).means.tobytes() == whole.means.tobytes()


def test_what_is_recalled_is_not_written_again(output):
    """A journal does not grow by being read."""
    with open_journal(output, RECIPE) as journal:
        store = JournaledStore(journal=journal)
        for point, start, stop in BATCHES:
            store.recall(point, start, stop)
        assert journal.n_batches() == len(BATCHES)


def test_empty_journal_leaves_nothing(tmp_path):
    """Where nothing was sampled, and where the report is written, no file is left."""
    with open_journal(tmp_path, RECIPE):
        assert (tmp_path / JOURNAL).exists()
    assert list(tmp_path.iterdir()) == []
    with open_journal(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_finished_journal_goes(output):
    """After the report is in place nothing of the journal is left."""
    with open_journal(output, RECIPE) as journal:
        journal.finish()
        journal.remove()
    assert list(output.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 2}, "differs in seed 1 in place of 2"),
        ({"grid": {"d_k": [4] * 40}}, "differs in grid;"),
        ({"error_rate": 0.1}, "differs in error_rate none in place of 0.1"),
    ],
)
def test_journal_of_another_run(output, change, words):
    """It is refused, in one line that says what differs, and left as it was; with
    ``fresh`` it is dropped.
    """
    before = (output / JOURNAL).read_bytes()
    with (
        pytest.raises(JournalError, match=words),
        open_journal(output, {**RECIPE, **change}),
    ):
        pass
    assert (output / JOURNAL).read_bytes() == before
    with open_journal(output, {**RECIPE, **change}, fresh=True) as journal:
        assert journal.n_batches() == 0


def test_journal_of_a_finished_run_is_in_nobodys_way(output):
    """Once a report is complete, or only has to be moved, another run may start."""
    other = {**RECIPE, "seed": 2}
    (output / STAGING).mkdir()
    (output / STAGING / RUN_FILE).touch()
    with open_journal(output, other) as journal:
        assert journal.n_batches() == 0


def test_finished_run_is_repeated_without_drawing(output):
    """A run that was killed after its report was complete has its batches still."""
    with open_journal(output, RECIPE) as journal:
        journal.finish()
    with open_journal(output, RECIPE) as journal:
        assert journal.n_batches() == len(BATCHES)
    with open_journal(output, {**RECIPE, "seed": 2}) as journal:
        assert journal.n_batches() == 0


def test_every_flipped_bit_is_found_or_harmless(output):
    """With any bit of the file flipped, it is refused in one line and not touched, or
    gives the batches that were written; some flips are found.
    """
    path, rng = output / JOURNAL, random.Random(6)  # noqa: S311
    content = path.read_bytes()
    expected = {
        (point.name, start, stop): pack(sample(point, 1, start, stop, DIVISORS))
        for point, start, stop in BATCHES
    }
    found = 0
    for _ in range(FLIPS):
        damaged = bytearray(content)
        place = rng.randrange(len(content))
        damaged[place] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        refused = ""
        try:
            with open_journal(output, RECIPE) as journal:
                for place, packed in expected.items():
                    kept = journal.find(*place)
                    assert kept is None or same(kept, packed)
        except JournalError as error:
            refused = str(error)
            found += 1
        assert "\n" not in refused
        assert not refused or path.read_bytes() == bytes(damaged)
        path.write_bytes(content)
    assert found > FLIPS / 4  # about half of so small a file is empty


@pytest.mark.parametrize("left", [0.9, 0.5, 0.01])
def test_truncated_journal(output, left):
    """A journal that was cut short is refused and left; with ``fresh`` it goes."""
    path = output / JOURNAL
    content = path.read_bytes()
    path.write_bytes(content[: int(left * len(content))])
    with pytest.raises(JournalError, match="--fresh"), open_journal(output, RECIPE):
        pass
    assert len(path.read_bytes()) == int(left * len(content))
    with open_journal(output, RECIPE, fresh=True) as journal:
        assert journal.n_batches() == 0


def test_file_that_is_no_journal(output):
    """Something else under the name is refused and left; with ``fresh`` it goes."""
    (output / JOURNAL).write_text("not a database, but long enough to be one" * 99)
    with pytest.raises(JournalError, match="not a database"), open_journal(output):
        pass
    with open_journal(output, RECIPE, fresh=True) as journal:
        assert journal.n_batches() == 0


@pytest.mark.parametrize("fresh", [False, True])
def test_one_run_at_a_time(output, fresh):
    """While a run has the folder, a second is refused, ``fresh`` or not; after it has
    ended, it is not.
    """
    with (
        open_journal(output, RECIPE) as journal,
        pytest.raises(JournalError, match="in use by another run"),
        open_journal(output, RECIPE, fresh=fresh),
    ):
        pass
    with open_journal(output, RECIPE) as journal:
        assert journal.n_batches() == len(BATCHES)


def _keep_until_full(output, told):
    """Keep batches in a file that must not grow beyond a megabyte."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
    kept = 0
    try:
        with open_journal(output, RECIPE) as journal:
            packed = pack(sample(ROWS, 1, 0, 3, DIVISORS))
            for start in range(0, 3000, 3):
                journal.keep(ROWS.name, start, start + 3, packed)
                kept += 1
    except JournalError as error:
        told.put((kept, str(error)))


def test_full_disk_loses_nothing(tmp_path):
    """When no more can be written, one line says so, and what was kept is there."""
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    process = context.Process(target=_keep_until_full, args=(tmp_path, told))
    process.start()
    kept, message = told.get(timeout=60)
    process.join()

    assert "must be writable" in message
    assert "--fresh" not in message
    assert 0 < kept < 1000
    with open_journal(tmp_path, RECIPE) as journal:
        assert journal.n_batches() == kept
        packed = pack(sample(ROWS, 1, 0, 3, DIVISORS))
        assert same(journal.find(ROWS.name, 3 * (kept - 1), 3 * kept), packed)


def test_batches_are_small(output):
    """A journal takes a tenth of what its batches take in memory."""
    batches = [sample(c, 1, start, stop, DIVISORS) for c, start, stop in BATCHES]
    memory = sum(b.means.nbytes + sum(c.nbytes for c in b.counts) for b in batches)
    with sqlite3.connect(output / JOURNAL) as connection:
        ((stored,),) = connection.execute("SELECT sum(length(content)) FROM batches")
    connection.close()
    assert stored < memory / 10

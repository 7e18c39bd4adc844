"""The journal: batches come back as they went in, or not at all; one run at a time."""

import multiprocessing
import random
import resource
import sqlite3
from contextlib import closing

import pytest

from montecarlo.estimation.engine import SampleStore
from montecarlo.sampling.batches import pack
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.replicates import sample
from montecarlo.study.folder import JOURNAL
from montecarlo.study.journal import (
    JournaledStore,
    JournalError,
    open_journal,
)

ROWS = parse_point("gaussian", "gaussian", 2, 4)
PAIRS = parse_point("uniform", "uniform", 2)
BATCHES = ((ROWS, 0, 3), (ROWS, 3, 4), (PAIRS, 0, 2))
RECIPE = {"seed": 1, "grid": {"d_k": [2] * 40}}
DIVISORS = ("none", "sqrt")
#: Flipped bits that are tried, of a file of about a million.
FLIPS = 300


def drawn(point, start, stop):
    """Draw a batch."""
    return pack(sample(point, 1, start, stop, DIVISORS))


@pytest.fixture
def output(tmp_path):
    """A folder whose journal an interrupted run left."""
    with closing(open_journal(tmp_path)) as journal:
        journal.take_up(RECIPE)
        store = JournaledStore(journal=journal)
        for point, start, stop in BATCHES:
            store.add(point, start, stop, drawn(point, start, stop))
    return tmp_path


def read_all(output):
    """Read every batch."""
    with closing(open_journal(output)) as journal:
        journal.take_up(RECIPE)
        for point, start, stop in BATCHES:
            journal.find(point.name, start, stop)


def test_batches_come_back(output):
    """What was kept is recalled to the bit, batch by batch, and the journal does not
    grow by that; what was not kept is not recalled.
    """
    with closing(open_journal(output)) as journal:
        journal.take_up(RECIPE)
        store = JournaledStore(journal=journal)
        for point, start, stop in BATCHES:
            assert store.recall(point, start, stop)
            found = journal.find(point.name, start, stop)
            assert found == drawn(point, start, stop)
        assert not store.recall(ROWS, 0, 4)
        assert not store.recall(ROWS, 4, 5)
        assert store.n_replicates(ROWS) == 4
        whole = sample(ROWS, 1, 0, 4, DIVISORS)
        assert store.samples(ROWS).means.tobytes() == whole.means.tobytes()
        assert journal.n_batches() == len(BATCHES)


@pytest.mark.parametrize("done", [False, True])
def test_what_is_empty_or_done_with_goes(output, tmp_path, done):
    """A journal without batches leaves no file, and one that is done with neither."""
    folder = output if done else tmp_path / "empty"
    folder.mkdir(exist_ok=True)
    open_journal(folder).close(done=done)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 2}, "differs in seed;"),
        ({"grid": {"d_k": [4] * 40}}, "differs in grid;"),
        ({"error_rate": 0.1, "seed": 3}, "differs in error_rate, seed;"),
    ],
)
def test_journal_of_another_run(output, change, words):
    """It is refused, in one line that says what differs, and kept; with ``fresh`` it is
    dropped.
    """
    with closing(open_journal(output)) as journal:
        with pytest.raises(JournalError, match=words) as caught:
            journal.take_up({**RECIPE, **change})
        assert "--fresh" in str(caught.value)
    with closing(open_journal(output)) as journal:
        assert journal.n_batches() == len(BATCHES)
    with closing(open_journal(output, fresh=True)) as journal:
        journal.take_up({**RECIPE, **change})
        assert journal.n_batches() == 0


def test_every_flipped_bit_is_found_or_harmless(output):
    """With any bit of the file flipped, it is refused in one line, or gives the batches
    that were written, or none; some flips are found.
    """
    path, rng = output / JOURNAL, random.Random(6)  # noqa: S311
    content = path.read_bytes()
    expected = {
        (point.name, start, stop): drawn(point, start, stop)
        for point, start, stop in BATCHES
    }
    found = 0
    for _ in range(FLIPS):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            with closing(open_journal(output)) as journal:
                for place, packed in expected.items():
                    kept = journal.find(*place)
                    found += kept is None
                    assert kept in (None, packed)
        except JournalError as error:
            found += "\n" not in str(error)
    assert found > FLIPS / 10  # much of so small a file is empty


def test_a_batch_of_another_place_is_not_taken(output):
    """A batch knows its point and its replicates."""
    with closing(sqlite3.connect(output / JOURNAL)) as connection, connection:
        connection.execute(
            "UPDATE batch SET place = replace(place, '3:4', '4:5') WHERE true"
        )
    with closing(open_journal(output)) as journal:
        assert journal.find(ROWS.name, 4, 5) is None


def test_samples_stay_in_the_journal(output):
    """Of what is in the journal a store keeps the numbers alone; what was changed there
    meanwhile is not estimated from.
    """
    with closing(open_journal(output)) as journal:
        journal.take_up(RECIPE)
        store = JournaledStore(journal=journal)
        store.add(ROWS, 4, 6, drawn(ROWS, 4, 6))
        assert store.recall(ROWS, 0, 3)
        assert store.recall(ROWS, 3, 4)
        assert not any(SampleStore.packed(store, ROWS))
        whole = sample(ROWS, 1, 0, 6, DIVISORS)
        assert store.samples(ROWS).means.tobytes() == whole.means.tobytes()
        name = {"place": f"{ROWS.name} 3:4"}
        statement = "UPDATE batch SET content = zeroblob(9) WHERE place = :place"
        journal._connection.execute(statement, name)
        with pytest.raises(JournalError, match="replicates 3 to 3 of"):
            store.samples(ROWS)


@pytest.mark.parametrize("what", ["text", "cut", "earlier"])
def test_file_that_is_no_journal(output, what):
    """Something else under the name, half of a journal, and one of an earlier version
    are refused when they are opened or used; with ``fresh`` they go.
    """
    path = output / JOURNAL
    content = path.read_bytes()
    if what == "earlier":
        path.unlink()
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE batch (point, start, stop, content)")
    else:
        text = b"not a database, but long enough to be one" * 99
        path.write_bytes(text if what == "text" else content[: len(content) // 2])
    with pytest.raises(JournalError, match=r"as it was written.*--fresh"):
        read_all(output)
    with closing(open_journal(output, fresh=True)) as journal:
        journal.take_up(RECIPE)
        assert journal.n_batches() == 0


@pytest.mark.parametrize("fresh", [False, True])
def test_one_run_at_a_time(output, fresh):
    """While a run has the folder, a second is refused, ``fresh`` or not."""
    with (
        closing(open_journal(output)),
        pytest.raises(JournalError, match="in use by another run"),
    ):
        open_journal(output, fresh=fresh)
    with closing(open_journal(output)) as journal:
        assert journal.n_batches() == len(BATCHES)


def _keep_until_full(output, told):
    """Keep batches in a file that must not grow beyond a megabyte."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
    kept = 0
    try:
        with closing(open_journal(output)) as journal:
            packed = drawn(ROWS, 0, 3)
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
    with closing(open_journal(tmp_path)) as journal:
        assert journal.n_batches() == kept
        last = journal.find(ROWS.name, 3 * (kept - 1), 3 * kept)
        assert last == drawn(ROWS, 0, 3)


def test_batches_are_small(output):
    """A journal takes a tenth of what its batches take in memory."""
    batches = [sample(c, 1, start, stop, DIVISORS) for c, start, stop in BATCHES]
    memory = sum(b.means.nbytes + sum(c.nbytes for c in b.counts) for b in batches)
    with closing(sqlite3.connect(output / JOURNAL)) as connection:
        ((stored,),) = connection.execute("SELECT sum(length(content)) FROM batch")
    assert stored < memory / 10


def test_batches_of_a_finished_run_are_in_nobodys_way(output):
    """Its results are in place: another command drops what is left of it."""
    other = {**RECIPE, "seed": 2}
    with closing(open_journal(output)) as journal:
        with pytest.raises(JournalError, match="differs in seed"):
            journal.take_up(other)
        journal.take_up(other, finished=True)
        assert journal.n_batches() == 0

"""Publishing: one way for all commands, whole or not at all."""

import json

import numpy as np
import pytest
from montecarlo.study.reading import read_run

from montecarlo.errors import UnfinishedError
from montecarlo.sampling.batches import PackedBatch
from montecarlo.study.folder import JOURNAL, STAGING, TIMING_FILE, write_text
from montecarlo.study.journal import JournalError, open_journal
from montecarlo.study.publishing import publishing

RECIPE = {"seed": 1}
BATCH = PackedBatch(np.zeros((1, 1)), np.zeros(0, np.int32), np.zeros(0, np.int64), ())


def publish(output, text, recipe=None, error=None):
    """Publish one page; returns the edition."""
    with publishing(output, ["--seed", "1"], recipe) as edition:
        assert edition.written == ()
        edition.record = {"seed": 1}
        if recipe is not None:
            edition.journal.keep("point", 0, 1, BATCH)
        write_text(edition.folder / "pages" / "en.html", text)
        edition.note_time("rendering")
        if error is not None:
            raise error
    return edition


@pytest.mark.parametrize("recipe", [None, RECIPE])
def test_an_edition_is_moved_into_place(tmp_path, recipe):
    """Files, record and timing are there at the end, and nothing else is."""
    output = tmp_path / "output"
    publish(output, "old", recipe)
    edition = publish(output, "new", recipe)
    written = [path.relative_to(output).as_posix() for path in edition.written]
    assert written == ["pages/en.html", "run.json"]
    assert (output / "pages" / "en.html").read_text(encoding="utf-8") == "new"
    assert read_run(output)["seed"] == 1
    timing = json.loads((output / TIMING_FILE).read_bytes())
    assert timing["command"] == ["--seed", "1"]
    assert timing["seconds"]["rendering"] >= 0.0
    names = {path.name for path in output.iterdir()}
    assert names == {"pages", "run.json", TIMING_FILE}


@pytest.mark.parametrize("recipe", [None, RECIPE])
@pytest.mark.parametrize("error", [OSError("planted"), KeyboardInterrupt()])
def test_a_block_that_fails_leaves_the_old(tmp_path, recipe, error):
    """Whatever ends it; what a run has sampled is kept, and it says so."""
    output = tmp_path / "output"
    publish(output, "old")
    before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    told = UnfinishedError if isinstance(error, OSError) else type(error)
    with pytest.raises(told) as caught:
        publish(output, "new", recipe, error)
    assert (output / JOURNAL).exists() == (recipe is not None)
    (output / JOURNAL).unlink(missing_ok=True)
    after = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    assert after == before
    assert not (output / STAGING).exists()
    if recipe and isinstance(error, KeyboardInterrupt):
        assert "1 finished batches are kept" in str(caught.value)


def test_a_first_edition_that_fails_leaves_no_folder(tmp_path):
    """Nor what was above it, if it was made for it."""
    with pytest.raises(UnfinishedError, match="planted"):
        publish(tmp_path / "deep" / "output", "new", error=OSError("planted"))
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_locked_meanwhile(tmp_path):
    """Another edition is refused, with or without a journal of its own."""
    with publishing(tmp_path, []) as edition:
        edition.record = {}
        for recipe in (None, RECIPE):
            with pytest.raises(JournalError, match="in use"):
                publish(tmp_path, "other", recipe)
    assert not (tmp_path / JOURNAL).exists()
    with open_journal(tmp_path):
        pass

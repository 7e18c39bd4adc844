"""How commands end: an expected failure in one line, a bug in its traceback."""

import errno
import os
import shutil
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from montecarlo.__main__ import COMMANDS, main
from montecarlo.cli import exits
from montecarlo.errors import InputError, UnfinishedError, reading, writing
from montecarlo.model import observing
from montecarlo.sampling import replicates

CLAIM = Path(__file__).parents[2] / "docs" / "own-claim.toml"
STUDY = """
jobs = 1
lang = ["en"]
[grid]
d_k = [4]
n_keys = [8]
distributions = []
first = 4
most = 4
"""


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """What each command is given to work on."""
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY, encoding="utf-8")
    shutil.copy(CLAIM, "own.toml")
    arrays = np.random.default_rng(1).normal(size=(2, 2, 1, 1, 4, 3))
    np.savez("qk.npz", q=arrays[0], k=arrays[1])
    return {
        "report": ["--config", "study.toml"],
        "figures": ["--config", "study.toml", "--only", "variance"],
        "measure": ["--quantity", "entropy", "--d-k", "4", "--keys", "8"],
        "judge": ["own.toml", "--jobs", "1"],
        "observe": ["qk.npz"],
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_bug_is_a_traceback(command, typed, monkeypatch, capsys):
    """A wrong shape in an estimator: its traceback, status 70, and a line that asks to
    report it, with the command; nothing is written.
    """

    def wrong(*_, **__):
        return np.ones(3) + np.ones(4)

    for module, name in (
        (replicates, "row_values"),
        (replicates, "pair_means"),
        (observing, "sum_head"),
    ):
        monkeypatch.setattr(module, name, wrong)
    assert main([command, *typed[command]]) == exits.BUG
    told = capsys.readouterr()
    assert "Traceback (most recent call last)" in told.err
    assert "could not be broadcast together" in told.err
    line = told.err.splitlines()[-1]
    again = " ".join(["python -m montecarlo", command, *typed[command]])
    assert line.startswith(f"montecarlo {command}: a bug of montecarlo: please report")
    assert line.endswith(again)
    assert not list(Path().rglob("run.json"))


@pytest.mark.parametrize("command", COMMANDS)
def test_bad_input_is_a_line(command, typed, capsys):
    """One line that names the option, status 2."""
    assert main([command, *typed[command], "--seed", "x"]) == exits.INPUT_ERROR
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"montecarlo {command}: seed must be a whole number, got 'x'"


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (InputError("d_k must be"), 2, "d_k must be"),
        (UnfinishedError("a worker died"), 3, "a worker died"),
        (MemoryError(), 3, "out of memory"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 3, "Broken pipe"),
        (KeyboardInterrupt(), 130, exits.NOTHING_WRITTEN),
        (KeyboardInterrupt("2 batches are kept"), 130, "2 batches are kept"),
        (ValueError("d_k must be"), 70, "please report"),
        (OSError(errno.ENOENT, "no template"), 70, "please report"),
        (RuntimeError("dictionary changed"), 70, "please report"),
        (KeyError("sqrt"), 70, "please report"),
    ],
)
def test_one_place_maps_failures_to_statuses(error, status, said, capsys):
    """Only the project's own exceptions are expected, and what no program can help."""

    def work(*_):
        raise error

    parser = import_module("montecarlo.cli.report").build_parser()
    assert exits.run(parser, work, []) == status
    told = capsys.readouterr().err
    assert said in told.splitlines()[-1]
    assert ("Traceback" in told) == (status == exits.BUG)
    assert len(told.splitlines()) == 1 or status == exits.BUG


@pytest.mark.parametrize("name", ["absent", ".", "\ud800", "a\0b"])
def test_unreadable_file_is_bad_input(name):
    """No file, a folder, and names that none can have."""
    refused = pytest.raises(InputError, match="text must be a readable file, got ")
    with refused, reading("text", name):
        Path(name).open("rb").close()


def test_disk_that_refuses_is_no_bug(tmp_path):
    """Of the folder that is written, and not of files elsewhere."""
    refused = pytest.raises(UnfinishedError, match="written, got: No space left")
    with refused, writing(tmp_path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(UnfinishedError, match="No such file"), writing(tmp_path):
        (tmp_path / "gone" / "x").write_text("")
    with pytest.raises(FileNotFoundError), writing(tmp_path / "output"):
        (tmp_path / "template").read_text()

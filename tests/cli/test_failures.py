"""How commands end: an expected failure in one line, a bug in its traceback."""

import errno
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from montecarlo.__main__ import main
from montecarlo.cli import exits
from montecarlo.cli.options import Parser
from montecarlo.errors import InputError, UnfinishedError, reading, writing
from montecarlo.model import observing
from montecarlo.sampling import replicates
from tests.conftest import ALONE, NOTHING, small_study

ROOT = Path(__file__).parents[2]
#: What each command is given to work on.
TYPED = {
    "report": ["--config", "study.toml", *ALONE],
    "figures": ["--config", "study.toml", *ALONE, "--only", "variance"],
    "measure": ["--quantity", "entropy", "--d-k", "4", "--keys", "8"],
    "judge": ["own-claim.toml", "--jobs", "1"],
    "observe": ["qk.npz"],
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a small file of each kind."""
    monkeypatch.chdir(tmp_path)
    small_study(tmp_path, d_k=[4], n_keys=[8], first=4, most=4)
    shutil.copy(ROOT / "docs" / "own-claim.toml", tmp_path)
    arrays = np.random.default_rng(1).normal(size=(2, 2, 1, 1, 4, 3))
    np.savez("qk.npz", q=arrays[0], k=arrays[1])
    return tmp_path


@pytest.mark.parametrize("command", TYPED)
def test_bug_is_a_traceback(command, here, monkeypatch, capsys):
    """A wrong shape in an estimator: its traceback, status 70, and a line that asks to
    report it, with the command; nothing is written.
    """

    def wrong(*_, **__):
        return np.ones(3) + np.ones(4)

    monkeypatch.setattr(replicates, "row_values", wrong)
    monkeypatch.setattr(replicates, "pair_means", wrong)
    monkeypatch.setattr(observing, "sum_head", wrong)
    assert main([command, *TYPED[command]]) == exits.BUG
    told = capsys.readouterr().err
    assert "Traceback (most recent call last)" in told
    assert "could not be broadcast together" in told
    line = told.splitlines()[-1]
    again = " ".join(["python -m montecarlo", command, *TYPED[command]])
    assert line.startswith(f"montecarlo {command}: a bug of montecarlo: please report")
    assert line.endswith(again)
    assert not list(here.rglob("run.json"))


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (InputError("d_k must be"), 2, "error: d_k must be"),
        (UnfinishedError("a worker died"), 3, "error: a worker died"),
        (MemoryError(), 3, "error: out of memory"),
        (OSError(errno.EMFILE, "Too many open files", "x.ttf"), 3, "Too many open"),
        (OSError(errno.ENFILE, "Too many open files"), 3, "ulimit -n"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 3, "Broken pipe"),
        (KeyboardInterrupt(), 130, exits.NOTHING_WRITTEN),
        (KeyboardInterrupt("2 kept"), 130, "2 kept: python -m montecarlo x"),
        (ValueError("d_k must be"), 70, "please report"),
        (OSError(errno.ENOENT, "no template"), 70, "please report"),
        (RuntimeError("dictionary changed"), 70, "please report"),
    ],
)
def test_one_place_maps_failures_to_statuses(error, status, said, capsys):
    """Only the project's own exceptions are expected, and what no program can help."""

    def work(*_):
        raise error

    assert exits.run_work(Parser("x", NOTHING), work, []) == status
    *before, line = capsys.readouterr().err.splitlines()
    assert line.startswith("montecarlo x: ")
    assert said in line
    assert bool(before) == ("Traceback" in "".join(before)) == (status == exits.BUG)


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


def run_limited(typed, limit=None, **environment):
    """Run a command that may open so many files; returns its status and its lines.

    Ten minutes are some hundred times what one takes.
    """

    def restrict():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    done = subprocess.run(  # noqa: S603 - this Python
        [sys.executable, "-m", "montecarlo", *typed],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        preexec_fn=restrict,
    )
    return done.returncode, done.stderr.splitlines()


#: Typed with what they are given: alone, and with workers.
LIMITED = {
    "measure": TYPED["measure"],
    "observe": TYPED["observe"],
    "report": [*TYPED["report"], "--jobs", "2", "--quiet"],
}


@pytest.mark.slow
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", LIMITED)
def test_few_open_files_are_named(command):
    """A command that cannot go on with so few says so, in one line; or it works.

    Twice with the fewest: what a run left behind is not the reason that the next names.
    """
    for limit in (5, 5, 16):
        status, lines = run_limited([command, *LIMITED[command]], limit)
        if status == exits.DONE:
            assert not lines
        else:
            assert (status, len(lines)) == (exits.FAILED, 1), (limit, lines)
            assert "Too many open files" in lines[0], limit


@pytest.mark.slow
def test_a_report_asks_for_no_backend(here):
    """Nor do its workers: what the environment names is not there."""
    typed = ["report", *TYPED["report"], "--jobs", "2", "--quiet"]
    assert run_limited(typed, MPLBACKEND="nonsense") == (exits.DONE, [])
    assert (here / "output" / "index.html").exists()

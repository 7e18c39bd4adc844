"""A run that is killed goes on: the same bytes, and nothing finished is drawn again."""

import multiprocessing
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from montecarlo.cli.report import main
from montecarlo.estimation import engine
from montecarlo.report import command
from montecarlo.report.render import contents as gathering
from montecarlo.report.render import pages
from montecarlo.study.folder import (
    JOURNAL,
    RUN_FILE,
    STAGING,
    TIMING_FILE,
    files_of,
)
from montecarlo.study.journal import Journal
from montecarlo.study.workers import ROOM

STUDY = """
lang = ["ja"]
jobs = 1
only = ["linear-variance", "unscaled-one-hot"]
[grid]
d_k = [16, 64]
n_keys = [128]
distributions = []
first = 512
most = 1024
"""
#: Shorter batches than usual, so that there are many moments to be killed at.
BATCH_SECONDS = 0.002
#: Each chain is killed once at each of these, in this order, and then let finish.
MOMENTS = ("sampling", "committing", "rendering", "renaming")
CHAINS = 15
#: What the dying process and the draws are noted in, beside the output.
LOG = "log.txt"


def nothing(*_):
    """Do nothing."""


def leave_out():
    """Draw no figures, look for no missing translations: no kill is aimed there."""
    gathering.render_svg = nothing
    command.require_complete = nothing


def run_and_die(folder, moment, count, steps):
    """Run the command and die at the ``count``-th of a kind of moment, if there is one.

    ``steps`` says how far inside SQLite's work on a batch a commit is broken off.
    """
    engine.BATCH_SECONDS = BATCH_SECONDS
    seen = Counter()
    log = os.open(folder / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def die(*_):
        os.write(log, f"killed while {moment}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)

    def dying(kind, function):
        def counted(*arguments, **options):
            seen[kind] += 1
            if kind == moment and seen[kind] == count:
                if kind != "committing":
                    die()
                # in the middle of the transaction
                arguments[0]._connection.set_progress_handler(die, steps)
            if kind == "sampling":
                _, _, start, stop, *_ = arguments
                os.write(log, f"drawn {stop - start}\n".encode())
            return function(*arguments, **options)

        return counted

    engine.sample = dying("sampling", engine.sample)
    Journal.keep = dying("committing", Journal.keep)
    pages.render = dying("rendering", pages.render)
    leave_out()
    Path.replace = dying("renaming", Path.replace)
    arguments = ["--config", str(folder / "study.toml"), "--quiet"]
    sys.exit(main([*arguments, "--output", str(folder / "output")]))


@pytest.fixture(scope="module")
def server():
    """Processes that start with everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.warmed"])
    return context


@pytest.fixture
def attempt(server):
    """Run the command in a process of its own; returns its exit status."""

    def attempt_once(folder, moment="", count=0, steps=1):
        process = server.Process(
            target=run_and_die, args=(folder, moment, count, steps)
        )
        process.start()
        process.join(120)
        return process.exitcode

    return attempt_once


def prepare(folder):
    """Make a folder with the configuration of the study."""
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    return folder


def draws(folder):
    """How many replicates were drawn, over all attempts, in how many batches, and in
    the largest of them.
    """
    found = [int(n) for n in re.findall(r"drawn (\d+)", (folder / LOG).read_text())]
    return sum(found), len(found), max(found)


def contents(folder):
    """The bytes of every file of a report, but what may differ."""
    output = folder / "output"
    return {
        path.relative_to(output).as_posix(): path.read_bytes()
        for path in files_of(output)
        if path.name != TIMING_FILE
    }


@pytest.mark.slow
def test_killed_runs_go_on(attempt, tmp_path):
    """Sixty kills at moments drawn at random, fifteen of each kind: every run ends in
    the bytes of one that was never interrupted, with at most 1.05 times its draws.

    That holds however slow the machine is: each of two kills can lose the batches that
    the worker was given, and what is lost then is less than a twentieth.
    """
    whole = prepare(tmp_path / "whole")
    assert attempt(whole) == 0
    expected = contents(whole)
    drawn, batches, largest = draws(whole)
    assert 2 * ROOM * largest <= 0.05 * drawn
    rng = random.Random(20)  # noqa: S311
    moments = Counter()
    for number in range(CHAINS):
        folder = prepare(tmp_path / f"chain{number}")
        third = batches // 3
        counts = {
            "sampling": rng.randint(1, third),
            "committing": rng.randint(1, third),
            "rendering": 1,
            "renaming": rng.randint(1, 6),
        }
        for moment in MOMENTS:
            steps = rng.randint(1, 30)
            status = attempt(folder, moment, counts[moment], steps)
            assert status == -signal.SIGKILL, (number, moment, counts)
        assert attempt(folder) == 0
        assert contents(folder) == expected, (number, counts)
        assert draws(folder)[0] <= 1.05 * drawn, (number, counts)
        moments.update(re.findall(r"killed while (\w+)", (folder / LOG).read_text()))
    assert moments == dict.fromkeys(MOMENTS, CHAINS)
    assert moments.total() >= 60


@pytest.mark.slow
def test_the_test_would_see_a_journal_that_forgets(attempt, tmp_path):
    """With a batch less in the journal more is drawn; with a changed one, refused."""
    folder = prepare(tmp_path / "forgetful")
    assert attempt(folder, "rendering", 1) == -signal.SIGKILL
    before = draws(folder)
    journal = folder / "output" / JOURNAL
    with sqlite3.connect(journal) as connection:
        connection.execute("DELETE FROM batches WHERE rowid % 10 = 0")
    connection.close()
    assert attempt(folder, "rendering", 1) == -signal.SIGKILL
    again = draws(folder)[0] - before[0]
    assert again > 0.05 * before[0]
    with sqlite3.connect(journal) as connection:
        connection.execute("UPDATE batches SET start = start + 1 WHERE rowid = 3")
    connection.close()
    assert attempt(folder) == 3


def moment_of(output):
    """What a run that was killed from outside had come to."""
    if (output / STAGING / RUN_FILE).exists():
        return "renaming"
    if not (output / JOURNAL).exists():
        return "starting"
    if any((output / STAGING).glob("measurements.csv")):
        return "rendering"
    return "sampling"


def children_of(pid):
    """The processes that a process has started, as the kernel lists them."""
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in found.read_text().split()] if found.exists() else []


@pytest.mark.slow
def test_killed_from_outside_with_workers(tmp_path):
    """The real command with two workers, killed after times drawn at random, goes on to
    the bytes of one that was never interrupted, and no worker outlives it.
    """
    folder = prepare(tmp_path / "killed")
    typed = [sys.executable, "-m", "montecarlo", "report", "--quiet", "--jobs", "2"]
    typed += ["--config", str(folder / "study.toml")]
    started = time.monotonic()
    whole = tmp_path / "whole"
    subprocess.run([*typed, "--output", str(whole / "output")], check=True)  # noqa: S603
    seconds = time.monotonic() - started
    rng = random.Random(21)  # noqa: S311
    moments, killed = Counter(), 0
    for _ in range(6):
        process = subprocess.Popen(  # noqa: S603
            [*typed, "--output", str(folder / "output")]
        )
        try:
            process.wait(rng.uniform(0.3, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            workers = children_of(process.pid)
            moments[moment_of(folder / "output")] += 1
            process.kill()
            process.wait()
            killed += 1
            deadline = time.monotonic() + 10.0
            while any(Path(f"/proc/{worker}/stat").exists() for worker in workers):
                assert time.monotonic() < deadline, "a worker outlives the command"
                time.sleep(0.02)
    again = subprocess.run(  # noqa: S603
        [*typed, "--output", str(folder / "output")], check=False
    )
    assert again.returncode == 0, moments
    assert killed >= 3, moments
    assert contents(folder) == contents(whole), moments

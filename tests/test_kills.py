"""A run that is killed goes on: the same bytes, and nothing finished is drawn again."""

import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from montecarlo.estimation import engine
from montecarlo.estimation.engine import PART
from montecarlo.report import making
from montecarlo.report.render import pages
from montecarlo.study.executors import QUEUED
from montecarlo.study.folder import JOURNAL
from tests.commands import report as main
from tests.conftest import contents, small_study

SETTINGS = {"only": ["linear-variance", "unscaled-one-hot"]}
#: Shorter batches than usual, so that there are many moments to be killed at.
BATCH_SECONDS = 0.002
#: A run is killed once at each of these, in this order, and then let finish.
MOMENTS = ("sampling", "writing", "rendering", "renaming")
#: What the dying process and the draws are noted in, beside the output.
LOG = "log.txt"


def run_and_die(folder, moment, count):
    """Run the command and die at the ``count``-th of a kind of moment, if there is one:
    of writing, with half of a batch in its file.
    """
    engine.BATCH_SECONDS = BATCH_SECONDS
    seen = Counter()
    log = os.open(folder / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def dying(kind, function, concerns=lambda *_: True):
        def counted(*arguments, **options):
            seen[kind] += concerns(*arguments)
            if kind == moment and seen[kind] == count:
                if kind == "writing":
                    function(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.write(log, f"killed while {moment}\n".encode())
                os.kill(os.getpid(), signal.SIGKILL)
            if kind == "sampling":
                _, _, start, stop, *_ = arguments
                os.write(log, f"drawn {stop - start}\n".encode())
            return function(*arguments, **options)

        return counted

    engine.sample = dying("sampling", engine.sample)
    pages.render = dying("rendering", pages.render)
    making.FIGURES = {"variance": making.FIGURES["variance"]}  # no kill is aimed there
    is_batch = lambda path, *_: path.suffix == PART and JOURNAL in path.parts  # noqa: E731
    Path.write_bytes = dying("writing", Path.write_bytes, is_batch)
    Path.replace = dying("renaming", Path.replace, lambda *one: not is_batch(*one))
    arguments = ["--config", str(folder / "study.toml"), "--quiet", "--lang", "ja"]
    arguments += ["--jobs", "1"]
    sys.exit(main([*arguments, "--output", str(folder / "output")]))


@pytest.fixture(scope="module")
def server():
    """Processes that start with everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.test_kills", "montecarlo.cli.studies"])
    return context


@pytest.fixture
def attempt(server):
    """Run the command in a process of its own; returns its exit status."""

    def attempt_once(folder, moment="", count=0):
        process = server.Process(target=run_and_die, args=(folder, moment, count))
        process.start()
        process.join(120)
        return process.exitcode

    return attempt_once


def prepare(folder):
    """Make a folder with the configuration of the study."""
    folder.mkdir()
    sizes = {"first": 512, "most": 1024, "first_large": 512, "most_large": 1024}
    small_study(folder, SETTINGS, n_keys=[128], **sizes)
    return folder


def draws(folder):
    """How many replicates over all attempts, in how many batches, the most in one."""
    found = [int(n) for n in re.findall(r"drawn (\d+)", (folder / LOG).read_text())]
    return sum(found), len(found), max(found)


@pytest.mark.slow
def test_killed_runs_go_on(attempt, tmp_path):
    """Kills at moments drawn at random, one of each kind: the run ends in the bytes of
    one that was never interrupted, with at most 1.05 times its draws.

    That holds however slow the machine is: each of two kills can lose the batches that
    the worker was given, and what is lost then is less than a twentieth.
    """
    whole = prepare(tmp_path / "whole")
    assert attempt(whole) == 0
    expected = contents(whole / "output")
    drawn, batches, largest = draws(whole)
    assert 2 * QUEUED * largest <= 0.05 * drawn
    rng = random.Random(20)  # noqa: S311
    folder = prepare(tmp_path / "chain")
    third = batches // 3
    counts = {
        "sampling": rng.randint(1, third),
        "writing": rng.randint(1, third),
        "rendering": 1,
        "renaming": rng.randint(1, 6),
    }
    for moment in MOMENTS:
        status = attempt(folder, moment, counts[moment])
        assert status == -signal.SIGKILL, (moment, counts)
    assert attempt(folder) == 0
    assert contents(folder / "output") == expected, counts
    assert draws(folder)[0] <= 1.05 * drawn, counts
    told = re.findall(r"killed while (\w+)", (folder / LOG).read_text())
    assert tuple(told) == MOMENTS


def count_batches(folder):
    """Count the batches that a run has finished so far."""
    return sum(path.is_file() for path in (folder / "output" / JOURNAL).rglob("*"))


@pytest.mark.slow
def test_killed_from_outside_with_workers(tmp_path):
    """The real command with two workers, which is killed, or loses a worker, when some
    batches are there, a number drawn at random: it goes on to the bytes of one that was
    never interrupted.  A lost worker is a line and status 3; no process outlives the
    command.
    """
    folder, whole = prepare(tmp_path / "killed"), tmp_path / "whole"
    typed = [sys.executable, "-m", "montecarlo", "report", "--quiet", "--jobs", "2"]
    typed += [
        "--config",
        str(folder / "study.toml"),
        "--format",
        "markdown",
        "--lang",
        "ja",
    ]
    typed += ["--output"]
    subprocess.run([*typed, str(whole / "output")], check=True)  # noqa: S603
    rng, killed = random.Random(21), Counter()  # noqa: S311
    for victim in ("worker", "command"):
        process = subprocess.Popen(  # noqa: S603
            [*typed, str(folder / "output")], stderr=subprocess.PIPE, text=True
        )
        batches = count_batches(folder) + rng.randint(1, 3)
        while process.poll() is None and count_batches(folder) < batches:
            time.sleep(0.005)
        family = []
        if process.poll() is None:
            family = psutil.Process(process.pid).children(recursive=True)
            if victim == "command":
                process.kill()
            elif family:
                family[-1].kill()
        _, told = process.communicate(timeout=120)
        if victim == "worker" and process.returncode == 3:
            assert told.count("\n") == 1
            assert "a worker died" in told
        assert not psutil.wait_procs(family, timeout=10)[1]
        killed[process.returncode] += 1
    assert set(killed) <= {-signal.SIGKILL, 3, 0}
    assert killed[-signal.SIGKILL] >= 1
    subprocess.run([*typed, str(folder / "output")], check=True)  # noqa: S603
    assert contents(folder / "output") == contents(whole / "output"), killed

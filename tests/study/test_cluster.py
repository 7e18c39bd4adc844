"""Clusters: a real scheduler and real workers on loopback, some of which are killed.

Started by the commands of docs/cluster.md.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.running import Study, run_study, write_results
from montecarlo.errors import UnfinishedError
from montecarlo.estimation import engine
from montecarlo.study import cluster
from montecarlo.study.executors import finish, make_executor
from montecarlo.study.fingerprint import fingerprint
from montecarlo.study.folder import file_hash, files_of
from montecarlo.study.presets import Block, Grid
from tests.commands import report as main

ROOT = Path(__file__).parents[2]
#: Pairs, rows, a planted key, a projection, number formats and tails, in a few seconds.
GRID = Grid(
    d_k=(16, 64),
    n_keys=(32, 128),
    distributions=("laplace",),
    distribution_d_k=(16,),
    distribution_n_keys=(32,),
    blocks=(
        Block((16,), (32,), pairs=False, dependence="planted(0.5)"),
        Block(
            (16,), initialisation="init(kind=he_normal,norm=layer,shape=full,width=32)"
        ),
        Block((16,), (32,), pairs=False, formats=True),
    ),
    tails=((16, 4),),
    first=32,
    most=64,
)


def study_hashes(executor, folder, advance=lambda *_: None):
    """Run the study in small batches and return the hashes of its results."""
    folder.mkdir(exist_ok=True)
    study = Study(read_catalogue(), GRID, 1, 0.01)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "BATCH_SECONDS", 0.002)
        write_results(run_study(study, executor, advance), folder)
    return {path.name: file_hash(path) for path in files_of(folder)}


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Wait long for workers: on a busy machine they start slowly."""
    monkeypatch.setattr(cluster, "TIMEOUT", 60)


@pytest.fixture
def start(tmp_path):
    """Start a scheduler with a worker; returns its address, and both processes."""
    file, log = tmp_path / "scheduler.json", tmp_path / "log.txt"
    started = []

    def begin(*arguments):
        command = [sys.executable, "-m", "dask", *map(str, arguments)]
        with log.open("a") as told:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter
                [*command, "--no-dashboard", "--host", "127.0.0.1"],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=told,
                stderr=told,
            )
        started.append(process)
        return process

    def begin_both():
        scheduler = begin("scheduler", "--port", 0, "--scheduler-file", file)
        while not (file.exists() and file.read_text().endswith("}")):
            assert scheduler.poll() is None, log.read_text()
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        worker = ("worker", address, "--nthreads", 1, "--local-directory", tmp_path)
        return address, scheduler, begin(*worker)

    yield begin_both
    for process in started:
        with contextlib.suppress(psutil.NoSuchProcess):
            for one in psutil.Process(process.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
        process.kill()
        process.wait()


@pytest.mark.slow
def test_same_bytes_although_a_worker_is_killed(tmp_path, start):
    """A worker that is killed in mid-run changes no byte: the nanny that watches over
    it puts another in its place.  A task whose workers die again and again ends the run
    in a line, and so does a scheduler that goes.
    """
    with make_executor(1) as executor:
        expected = study_hashes(executor, tmp_path / "expected")
    address, scheduler, nanny = start()
    killed = []

    def advance(_point, finished, _wanted):
        if finished and not killed:
            # a nanny's last child is the worker
            killed.append(psutil.Process(nanny.pid).children(recursive=True)[-1].pid)
            os.kill(killed[0], signal.SIGKILL)

    with make_executor(kind="dask", scheduler=address) as executor:
        assert (executor.kind, executor.jobs) == ("dask", 1)
        assert study_hashes(executor, tmp_path / "results", advance) == expected
        assert killed
        assert not psutil.pid_exists(killed[0])
        with pytest.raises(UnfinishedError, match="a worker died"):
            list(finish(executor, os._exit, [(1,)]))
    with make_executor(kind="dask", scheduler=address) as executor:
        done = finish(executor, time.sleep, ((0.05 + 1e-6 * n,) for n in range(99)))
        next(done)
        scheduler.kill()
        with pytest.raises(UnfinishedError, match="could not be reached"):
            list(done)


def test_nobody_answers(monkeypatch, tmp_path, capsys):
    """One line, status 3, nothing written; of a cluster with certificates likewise
    where Dask's configuration has none.
    """
    monkeypatch.setattr(cluster, "TIMEOUT", 1)
    for address in ("tcp://127.0.0.1:1", "tls://127.0.0.1:1"):
        typed = ["--executor", "dask", "--scheduler", address, "--quiet"]
        assert main([*typed, "--output", str(tmp_path / "output")]) == 3
        (line,) = capsys.readouterr().err.splitlines()
        assert "scheduler must be" in line
        assert address in line
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize("name", fingerprint())
def test_unlike_workers_are_named(name):
    """Of several workers, the one that would give other bytes, with what it has."""
    ours = fingerprint()
    cluster.require_alike({"tcp://a:1": ours})
    with pytest.raises(
        UnfinishedError, match=rf"tcp://b:2 must have {name} .*got 0\.0"
    ):
        cluster.require_alike({"tcp://a:1": ours, "tcp://b:2": {**ours, name: "0.0"}})

"""Clusters: a real scheduler and real workers on loopback, some of which are killed.

Started by the commands of docs/cluster.md.
"""

import contextlib
import http.client
import json
import logging
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import dask.config
import psutil
import pytest
from distributed import Security

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.running import Study, run_study, write_results
from montecarlo.cli.report import main
from montecarlo.errors import UnfinishedError
from montecarlo.study import cluster
from montecarlo.study.cluster import ready, require_alike, run_checked
from montecarlo.study.executors import make_executor
from montecarlo.study.folder import file_hash, files_of
from montecarlo.study.presets import Block, Grid
from montecarlo.study.tasks import finish

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
#: Small batches: more moments to be killed at.
BATCH = 4
#: Another kind of processor, as far as OpenBLAS knows.
OTHER_KERNEL = {"OPENBLAS_CORETYPE": "Nehalem"}
FINGERPRINT = {"montecarlo": "1.0", "numpy": "2.0", "kernel": "Zen"}


def study_hashes(executor, folder, advance=lambda *_: None):
    """The hashes of what a study comes to, by file."""
    study = Study(read_catalogue(), GRID, 3, batch=BATCH)
    write_results(run_study(study, executor, advance), folder)
    return {path.name: file_hash(path) for path in files_of(folder)}


def start(folder, *arguments, **environment):
    """Start a part of a cluster in a process of its own."""
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
            [sys.executable, "-m", "dask", *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdout=log,
            stderr=log,
        )


@contextlib.contextmanager
def ended(process):
    """End a process, and those that it started, at the end of a block."""
    try:
        yield process
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            family = psutil.Process(process.pid).children(recursive=True)
            for one in [*family, process]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
        process.wait()


def wait_until(said, seconds=60):
    """Wait for something to hold."""
    until = time.monotonic() + seconds
    while not said():
        if time.monotonic() > until:
            pytest.fail("waited in vain")
        time.sleep(0.05)


class Scheduler(NamedTuple):
    """A scheduler: its address, how to start a worker of it, and its process."""

    address: str
    start_worker: Callable[..., subprocess.Popen]
    process: subprocess.Popen


@contextlib.contextmanager
def running_scheduler(folder, *options):
    """A scheduler without workers; its address, as it says it itself."""
    file = folder / "scheduler.json"
    plain = ("--no-dashboard", "--host", "127.0.0.1", *options)
    with contextlib.ExitStack() as stack:

        def begin(*arguments, **environment):
            process = start(folder, *arguments, *plain, **environment)
            return stack.enter_context(ended(process))

        process = begin("scheduler", "--port", 0, "--scheduler-file", file)
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        address = json.loads(file.read_text())["address"]
        worker = ("worker", address, "--nthreads", 1, "--local-directory", folder)
        yield Scheduler(address, partial(begin, *worker), process)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Wait long for workers: on a busy machine they start slowly."""
    monkeypatch.setattr(cluster, "PATIENCE", 60)


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler that lets anybody in, as it is asked for."""
    with running_scheduler(tmp_path) as found:
        yield found._replace(address=f"insecure+{found.address}")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The hashes of the study on one thread."""
    with make_executor(1) as executor:
        return study_hashes(executor, tmp_path_factory.mktemp("expected"))


def has_workers(address, number):
    """Whether a scheduler has so many workers; asked without counting on the code."""

    def asked():
        with make_executor(kind=address) as executor:
            return executor.jobs == number

    return asked


@pytest.mark.slow
def test_same_bytes_although_a_worker_is_killed(expected, tmp_path, scheduler):
    """A worker that is killed in mid-run changes no byte: the nanny that watches over
    it puts another in its place.
    """
    address, start_worker, _ = scheduler
    first, _ = start_worker(), start_worker()
    wait_until(has_workers(address, 2))
    # a nanny's last child is the worker
    victim = psutil.Process(first.pid).children(recursive=True)[-1].pid
    killed_at = []

    def advance(_point, finished, _wanted):
        if finished and not killed_at:
            os.kill(victim, signal.SIGKILL)
            killed_at.append(time.monotonic())

    output = tmp_path / "results"
    output.mkdir()
    with make_executor(kind=address) as executor:
        assert executor.jobs == 2
        assert study_hashes(executor, output, advance) == expected
    assert killed_at
    assert not psutil.pid_exists(victim)


@pytest.mark.slow
def test_a_task_that_kills_workers_ends_the_run(scheduler):
    """A task whose workers die again and again is a line, not a bug."""
    address, start_worker, _ = scheduler
    start_worker()
    with (
        make_executor(kind=address) as executor,
        pytest.raises(UnfinishedError, match="a worker died"),
    ):
        list(finish(executor, os._exit, [(1,)]))


@pytest.mark.slow
def test_a_worker_with_other_bytes_is_refused(scheduler):
    """A worker of another kind of processor is named, with what it has and what was
    expected, also if it joins later.
    """
    address, start_worker, _ = scheduler
    start_worker()
    with make_executor(kind=address) as executor:
        start_worker(**OTHER_KERNEL)
        line = "must have kernel .* got Nehalem"
        tasks = ((0.1 + 1e-6 * n,) for n in range(600))
        with pytest.raises(UnfinishedError, match=f"a worker that joined {line}"):
            list(finish(executor, time.sleep, tasks))
    with pytest.raises(UnfinishedError, match=rf"worker tcp://127.0.0.1:\d+ {line}"):
        make_executor(kind=address)


@pytest.mark.slow
def test_a_scheduler_that_ends_is_told(scheduler):
    """When the scheduler goes in mid-run and stays away, the run ends with a line."""
    address, start_worker, process = scheduler
    start_worker()
    tasks = ((0.05 + 1e-6 * n,) for n in range(99))
    with make_executor(kind=address) as executor:
        done = finish(executor, time.sleep, tasks)
        next(done)
        process.kill()
        with pytest.raises(UnfinishedError, match="could not be reached"):
            list(done)


@pytest.fixture(params=["nobody", "silent", "closing", "noisy"])
def listener(request):
    """The port of something that is no scheduler, and what it does."""
    said = {"closing": b"", "noisy": b"HTTP/1.1 400 Bad Request"}.get(request.param)
    held = []

    def serve(server):
        with contextlib.suppress(OSError):  # the test has ended
            while True:
                connection, _ = server.accept()
                held.append(connection)
                if said is not None:
                    connection.sendall(said)
                    connection.close()

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if request.param != "nobody":
            server.listen()
        thread = threading.Thread(target=serve, args=(server,), daemon=True)
        thread.start()
        yield server.getsockname()[1]
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in held:
        connection.close()


def test_a_listener_that_is_no_scheduler(monkeypatch, tmp_path, capsys, listener):
    """The command says in one line that no scheduler answers, waits no longer than it
    says, and writes nothing.
    """
    monkeypatch.setattr(cluster, "PATIENCE", 1)
    output, started = tmp_path / "output", time.monotonic()
    address = f"insecure+tcp://127.0.0.1:{listener}"
    assert main(["--executor", address, "--output", str(output), "--quiet"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"montecarlo report: error: executor {address} must be a running"
    )
    assert logging.getLogger("distributed.client").level == logging.CRITICAL
    assert not output.exists()
    assert time.monotonic() - started < 30.0


def ports(process):
    """The TCP ports that a process and its children listen at."""
    family = [process, *process.children(recursive=True)]
    return {
        one.laddr.port
        for member in family
        for one in member.net_connections("tcp")
        if one.status == psutil.CONN_LISTEN
    }


def heard(port, context=None):
    """What a port says to who connects, as any user of the machine can; a scheduler, a
    nanny or a worker that lets one in says first who it is.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
        plain.settimeout(1)
        try:
            if context is None:
                return plain.recv(99)
            with context.wrap_socket(plain) as encrypted:
                return encrypted.recv(99)
        except OSError:  # nothing comes, or the certificate is none of theirs
            return b""


def context_of(made):
    """How a client with a certificate would connect."""
    return made.get_connection_args("client")["ssl_context"]


def asked(port, path):
    """The status with which a port answers a request by HTTP; None: with nothing."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    try:
        with urllib.request.urlopen(request, timeout=2) as answer:  # noqa: S310
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, http.client.HTTPException):
        return None


#: What Dask answers by itself, and with bokeh.
PATHS = ("/", "/health", "/metrics", "/statics/css/base.css", "/statics/js/x.js")
PATHS += ("/info/main/workers.html", "/json/counts.json", "/proxy/1/localhost/x")
PATHS += ("/status", "/workers", "/tasks", "/profile", "/individual-plots")


@pytest.mark.slow
def test_a_cluster_of_this_machine(monkeypatch, expected, tmp_path):
    """It gives the bytes of a thread, and lets in nobody else: no port of scheduler,
    nannies and workers answers another user, by HTTP either, and there is no dashboard
    where the library for it is.  A scheduler that lets anybody in does, so that this
    can fail.
    """
    dashboard = ModuleType("distributed.dashboard.scheduler")
    dashboard.connect = lambda *_, **__: pytest.fail("there is a dashboard")
    monkeypatch.setitem(sys.modules, dashboard.__name__, dashboard)
    monkeypatch.setattr("distributed.dashboard.scheduler", dashboard, raising=False)
    stranger = context_of(Security.temporary())
    stranger.verify_mode = ssl.CERT_NONE  # who breaks in does not ask who is there
    output = tmp_path / "results"
    output.mkdir()
    with make_executor(2, "dask") as executor:
        assert executor.kind == "dask"
        assert study_hashes(executor, output) == expected
        there = ports(psutil.Process())
        assert len(there) >= 3
        assert {heard(n) for n in there} == {b""}
        assert {heard(n, stranger) for n in there} == {b""}
        assert {asked(n, path) for n in there for path in PATHS} == {404, None}
    with running_scheduler(tmp_path) as found:
        assert heard(int(found.address.rpartition(":")[2]))


def certificates(folder):
    """Files with a new certificate and its key, as options and as configuration."""
    folder.mkdir()
    made, files = Security.temporary(), [folder / "cert.pem", folder / "key.pem"]
    files[0].write_text(made.tls_client_cert)
    files[1].write_text(made.tls_client_key)
    cert, key = map(str, files)
    options = ("--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key)
    return options, configuration(cert, key)


def configuration(cert, key):
    """What Dask's configuration says of the certificates of a command."""
    values = {"ca-file": cert, "client.cert": cert, "client.key": key}
    return {f"distributed.comm.tls.{name}": value for name, value in values.items()}


@pytest.mark.slow
def test_a_scheduler_with_certificates(monkeypatch, tmp_path):
    """With the certificates of Dask's configuration a cluster works; with none, with
    others, or without workers, a line says what is wrong.
    """
    monkeypatch.setattr(cluster, "PATIENCE", 3)
    options, ours = certificates(tmp_path / "ours")
    _, others = certificates(tmp_path / "others")
    with running_scheduler(tmp_path, *options) as found:
        address = found.address
        assert address.startswith("tls://")
        with pytest.raises(UnfinishedError, match=r"certificates in .* got: none"):
            make_executor(kind=address)
        with dask.config.set(others), pytest.raises(UnfinishedError) as caught:
            make_executor(kind=address)
        assert "\n" not in str(caught.value)
        none_came = pytest.raises(UnfinishedError, match="none came within 3")
        with dask.config.set(ours), none_came:
            make_executor(kind=address)
        monkeypatch.setattr(cluster, "PATIENCE", 20)
        found.start_worker()
        with dask.config.set(ours), make_executor(kind=address) as executor:
            assert executor.submit(abs, -3).result() == 3


@pytest.mark.parametrize("where", ["nowhere.pem", ""])
def test_certificates_that_are_not_there(tmp_path, where):
    """A file of certificates that is missing, or none, is one line."""
    file = str(tmp_path / where)
    with (
        dask.config.set(configuration(file, file)),
        pytest.raises(UnfinishedError, match="must have readable certificates"),
    ):
        make_executor(kind="tls://127.0.0.1:1")


@pytest.mark.parametrize(
    ("has", "message"),
    [
        ({**FINGERPRINT, "numpy": "1.9"}, "numpy 2.0 for the same bytes, got 1.9"),
        ({"montecarlo": "1.0", "numpy": "2.0"}, "kernel Zen .* got none"),
        (ModuleNotFoundError("No module"), "montecarlo 1.0 .* got ModuleNotFoundError"),
    ],
)
def test_unlike_workers_are_named(has, message):
    """Of several workers, the one that is different is named, with what it has."""
    asked = {"tcp://a:1": FINGERPRINT, "tcp://b:2": has, "tcp://c:3": FINGERPRINT}
    with pytest.raises(RuntimeError, match=f"worker tcp://b:2 must have {message}"):
        require_alike(asked, FINGERPRINT)
    require_alike({"tcp://a:1": FINGERPRINT}, FINGERPRINT)


def test_a_task_is_not_done_by_an_unlike_worker():
    """What a worker is asked to do it does only if its bytes are those expected."""
    assert run_checked(ready(), abs, -3) == 3
    with pytest.raises(Exception, match=r"must have numpy 0\.0 for the same bytes"):
        run_checked({**ready(), "numpy": "0.0"}, pytest.fail, "done all the same")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "after"), [("processes", 4), ("dask", 0)])
def test_ctrl_c_ends_the_command_and_its_workers(tmp_path, kind, after):
    """Ctrl-C, which a terminal sends to every process, while workers are starting and
    in mid-run: the command ends with status 130 and one line, and no process is left.
    """
    arguments = f"-m montecarlo report --jobs 2 --executor {kind} --quiet --output"
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, *arguments.split(), tmp_path / "output"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with ended(process):
        parent = psutil.Process(process.pid)
        # two workers, and the resource tracker
        wait_until(lambda: len(parent.children(recursive=True)) >= 3)
        time.sleep(after)
        family = parent.children(recursive=True)
        os.killpg(process.pid, signal.SIGINT)
        _, complaint = process.communicate(timeout=30)
        assert process.returncode == 130, complaint
        assert complaint.count("\n") == 1, complaint
        assert complaint.startswith("montecarlo report: ")
        assert not psutil.wait_procs(family, timeout=5)[1]

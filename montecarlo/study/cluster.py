"""Workers of a Dask cluster: one that is running somewhere, or one of this machine.

Imported only where it is asked for: it needs the extra ``[cluster]``.  What does not
come up, does not answer or would give other bytes is an `UnfinishedError`.
"""

import logging
import multiprocessing
import signal
from asyncio import wait_for
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack
from functools import cache, partial
from multiprocessing.process import BaseProcess
from typing import TypeVar

import dask.config
from distributed import Client, LocalCluster, Security
from distributed.comm import connect as open_connection
from distributed.utils import LoopRunner

from montecarlo.errors import UnfinishedError
from montecarlo.study.fingerprint import Fingerprint, fingerprint
from montecarlo.study.workers import Workers, block_signals, limit_blas, postponing

T = TypeVar("T")
LOOPBACK = "127.0.0.1"
#: Seconds that a scheduler has to answer, and to have a worker.
PATIENCE = 10
#: Seconds that workers of this machine have to end by themselves.
FAREWELL = 1
INSECURE = "insecure+"
#: Where Dask looks for the certificates of this command.
KEYS = "distributed.comm.tls.ca-file, .client.cert and .client.key"
#: What a cluster of this machine's own answers by HTTP, which asks for no key: nothing.
ROUTES: dict[str, list[str]] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


def connect(address: str) -> Workers:
    """Connect to a running scheduler.

    Parameters
    ----------
    address : str
        ``tls://HOST:PORT``, with certificates from Dask's own configuration, or
        ``insecure+tcp://HOST:PORT``.
    """
    _keep_quiet()
    try:
        security = Security()
        if not address.startswith(INSECURE):
            _require_certificates(address, security)
        _greet(address.removeprefix(INSECURE), security)
        client = Client(
            address.removeprefix(INSECURE),
            timeout=PATIENCE,
            set_as_default=False,
            security=security,
        )
    except OSError as error:
        raise UnfinishedError(
            f"executor {address} must be a running Dask scheduler, none answered "
            f"within {PATIENCE} s: {error}"
        ) from None
    except (RuntimeError, ValueError) as error:  # Dask's configuration refuses it
        raise UnfinishedError(f"executor {address}: {error}") from None
    return _workers(client, client.close, address)


def _greet(address: str, security: Security) -> None:
    """See that a scheduler says who it is: a client waits for that without a limit."""

    async def greet() -> None:
        settings = security.get_connection_args("client")
        trying = open_connection(address, PATIENCE, **settings)
        comm = await wait_for(trying, PATIENCE)
        await comm.close()

    try:
        LoopRunner().run_sync(greet)
    except TimeoutError:
        raise OSError("it says nothing") from None
    except (ValueError, MemoryError) as error:  # what it says is taken for a size
        raise OSError(f"what it says is no greeting: {error}") from None


def _require_certificates(address: str, security: Security) -> None:
    """Refuse a connection that would be encrypted without what to encrypt it by."""
    context, reason = None, "none"
    try:
        context = security.get_connection_args("client")["ssl_context"]
    except OSError as error:  # of which SSLError is one
        reason = str(error)
    if context is None:
        raise UnfinishedError(
            f"executor {address} must have readable certificates in Dask's "
            f"configuration ({KEYS}; docs/cluster.md), got: {reason}"
        )


def start_local(jobs: int) -> Workers:
    """Start a scheduler and workers on this machine.

    They talk by TLS with a key that is made here and never written to a lasting place:
    other users of the machine reach their ports, and whoever is let in runs code.
    """
    _keep_quiet()
    others = set(multiprocessing.active_children())
    with ExitStack() as started:
        # half a cluster cannot be ended; blocked, its processes would keep SIGTERM so
        with (
            block_signals(signal.SIGINT),
            postponing(signal.SIGTERM),
            dask.config.set(ROUTES),
        ):
            try:
                cluster = LocalCluster(
                    n_workers=jobs,
                    threads_per_worker=1,
                    host=LOOPBACK,
                    # any port: it is opened in any case
                    dashboard_address=f"{LOOPBACK}:0",
                    scheduler_kwargs={"dashboard": False},
                    silence_logs=logging.CRITICAL,
                    security=Security.temporary(),
                )
            except (OSError, RuntimeError) as error:  # what Dask makes of a first one
                raise UnfinishedError(
                    f"executor dask must have room to start its workers, got: {error}; "
                    "fewer --jobs need less"
                ) from error
            started.callback(_end, cluster, others)
            try:
                client = Client(cluster, timeout=PATIENCE, set_as_default=False)
            except OSError as error:
                raise UnfinishedError(
                    f"executor dask must have a scheduler that answers, got: {error}"
                ) from error
            started.callback(client.close)
        # a signal that was postponed has ended all of it by now
        close = started.pop_all().close
    return _workers(client, close, "dask")


def _end(cluster: LocalCluster, others: set[BaseProcess]) -> None:
    """End a cluster of this machine, beside ``others`` that were there before."""
    try:
        cluster.close(FAREWELL)
    except TimeoutError:  # what is wanted of them is here, or not wanted any more
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
        cluster.shutdown_on_close = False  # or the interpreter waits for them again


def _workers(client: Client, close: Callable[[], None], name: str) -> Workers:
    """Return the workers of a client, once it is known that they are alike."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
        require_alike(client.run(ready, on_error="return"), ready())
        jobs = sum(client.nthreads().values())
    except TimeoutError:
        close()
        raise UnfinishedError(
            f"executor {name} must have workers, none came within {PATIENCE} s"
        ) from None
    except BaseException:
        close()
        raise
    # not pure: a result that the scheduler remembers would hide that work is redone
    executor = client.get_executor(pure=False)

    def end(at_once: bool) -> None:  # noqa: FBT001 - as `Workers` has it
        if client.status != "closed":
            executor.shutdown(wait=not at_once)
        close()

    return Workers(name, jobs, partial(executor.submit, run_checked, ready()), end)


def require_alike(
    asked: Mapping[str, Fingerprint | BaseException], expected: Fingerprint
) -> None:
    """Refuse workers that would give other bytes.

    Each has a fingerprint, or why it has none; expected is that of this process.
    """
    for worker, has in sorted(asked.items()):
        if has != expected:
            raise UnfinishedError(f"worker {worker} {_difference(has, expected)}")


def _difference(has: Fingerprint | BaseException, expected: Fingerprint) -> str:
    """Say what a worker must have, and what it has."""
    found = has if isinstance(has, dict) else {}
    name = next(name for name in expected if found.get(name) != expected[name])
    got = found.get(name, "none") if found else f"{type(has).__name__}: {has}"
    return f"must have {name} {expected[name]} for the same bytes, got {got}"


def run_checked(
    expected: Fingerprint, function: Callable[..., T], *arguments: object
) -> T:
    """Work on a task, on a worker that may have joined after all were asked.

    Raises
    ------
    BrokenExecutor
        If this worker would give other bytes.
    """
    if (has := ready()) != expected:
        raise BrokenExecutor(f"a worker that joined {_difference(has, expected)}")
    return function(*arguments)


@cache
def ready() -> Fingerprint:
    """Limit BLAS in this process, a worker, and say what its bytes depend on."""
    limit_blas()
    return fingerprint()


def _keep_quiet() -> None:
    """Leave it to the command to say what went wrong, in one line.

    Those that Dask has given a level of their own do not listen to their parents.
    """
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)

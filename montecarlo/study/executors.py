"""Who samples: threads, local processes or a Dask cluster, behind one `Executor`."""

import importlib.util
import os
import re

from montecarlo.errors import InputError
from montecarlo.names import PROJECT, look_up, parse_within
from montecarlo.study.workers import Workers, start_processes, start_threads

THREADS, PROCESSES, DASK = "threads", "processes", "dask"
#: A connection that asks for certificates, and one that lets anybody in, which has to
#: be asked for by that name: in a flag, a file and a record it says what it is.
SAFE, UNSAFE = "tls://HOST:PORT", "insecure+tcp://HOST:PORT"
#: What there is to choose from, with the modules of the extra ``[cluster]`` it imports.
EXECUTORS: dict[str, tuple[str, ...]] = {
    THREADS: (),
    PROCESSES: (),
    DASK: ("distributed", "cryptography"),
    SAFE: ("distributed",),
    UNSAFE: ("distributed",),
}
_ADDRESS = re.compile(r"(?P<scheme>tls|tcp|insecure\+tcp)://[^\s:/]+:(?P<port>[0-9]+)")
MOST_PORT = 2**16 - 1


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_executor(kind: str, jobs: int | None = None) -> None:
    """Refuse workers that there are none of.

    Parameters
    ----------
    kind : str
        One of `EXECUTORS`, or an address like the last two of them.
    jobs : int, optional
        How many were asked for.

    Raises
    ------
    InputError
        If the kind is not known, it needs an extra that is not installed, jobs were
        asked for where the cluster has its own, or a connection that lets anybody in
        was not asked for as one.
    """
    address = _ADDRESS.fullmatch(kind)
    if address is None:
        if kind in (SAFE, UNSAFE):
            raise InputError(f"executor must name a host and a port, got {kind!r}")
        look_up("executor", kind, EXECUTORS)
    else:
        parse_within("port of executor", address["port"], 1, MOST_PORT)
        if address["scheme"] == "tcp":
            raise InputError(
                "executor must be tls://HOST:PORT with certificates, got "
                f"{kind!r}, which asks for none: whoever reaches that scheduler can "
                "run code on its workers and in this process; in a network that you "
                f"trust, insecure+{kind} says so (docs/cluster.md)"
            )
    needed = EXECUTORS[kind if address is None else SAFE]
    if any(importlib.util.find_spec(name) is None for name in needed):
        raise InputError(
            f"executor {kind} needs the [cluster] extra, which is not installed: "
            f"python -m pip install '{PROJECT}[cluster]'"
        )
    if address is not None and jobs is not None:
        raise InputError(
            f"jobs must be left out with executor {kind}, which has workers of its "
            f"own, got {jobs}"
        )


def make_executor(jobs: int | None = None, kind: str | None = None) -> Workers:
    """Return workers.

    Parameters
    ----------
    jobs : int, optional
        At least 1; by default one for each core.  A cluster has its own.
    kind : str, optional
        One of `EXECUTORS`; by default a thread for one job, processes for more.

    Raises
    ------
    InputError
        If jobs is below 1, or the kind is not one to be had.
    UnfinishedError
        If they cannot be started, do not answer, or would give other bytes.
    """
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs must be an integer of at least 1, got {jobs!r}")
    n = jobs or available_cores()
    chosen = kind or (THREADS if n == 1 else PROCESSES)
    check_executor(chosen)
    if chosen == THREADS:
        return start_threads(chosen, n)
    if chosen == PROCESSES:
        return start_processes(chosen, n)
    from montecarlo.study import cluster

    return cluster.start_local(n) if chosen == DASK else cluster.connect(chosen)

"""Workers: threads, local processes or a Dask cluster, behind one `Executor`."""

import importlib.util
import os
import re
from functools import partial

from montecarlo.errors import InputError
from montecarlo.names import PROJECT, look_up, parse_within
from montecarlo.study.local_workers import LOCAL
from montecarlo.study.workers import Kind, Workers

THREADS, PROCESSES, DASK = "threads", "processes", "dask"
#: A connection that asks for certificates, and one that lets anybody in, which has to
#: be asked for by that name: in a flag, a file and a record it says what it is.
SAFE, UNSAFE = "tls://HOST:PORT", "insecure+tcp://HOST:PORT"
#: What there is to choose from; those of this machine stand with what starts them.
EXECUTORS = LOCAL | {
    DASK: Kind(needed=("distributed", "cryptography")),
    SAFE: Kind(needed=("distributed",)),
    UNSAFE: Kind(needed=("distributed",)),
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
        If the kind is not known, it needs an extra that is not installed, more were
        asked for than it can be or any where the cluster has its own, or a connection
        that lets anybody in was not asked for as one.
    """
    address = _ADDRESS.fullmatch(kind)
    remote = address is not None
    if not remote:
        if kind in (SAFE, UNSAFE):
            raise InputError(f"executor must name a host and a port, got {kind!r}")
        look_up("executor", kind, EXECUTORS)
    if address is not None:
        parse_within("port of executor", address["port"], 1, MOST_PORT)
    if address is not None and address["scheme"] == "tcp":
        raise InputError(
            "executor must be tls://HOST:PORT with certificates, got "
            f"{kind!r}, which asks for none: whoever reaches that scheduler can run "
            "code on its workers and in this process; in a network that you trust, "
            f"insecure+{kind} says so (docs/cluster.md)"
        )
    known = EXECUTORS[SAFE if remote else kind]
    if any(importlib.util.find_spec(name) is None for name in known.needed):
        raise InputError(
            f"executor {kind} needs the [cluster] extra, which is not installed: "
            f"python -m pip install '{PROJECT}[cluster]'"
        )
    if remote and jobs is not None:
        raise InputError(
            f"jobs must be left out with executor {kind}, which has workers of its "
            f"own, got {jobs}"
        )
    if jobs and known.most_jobs and jobs > known.most_jobs:
        raise InputError(
            f"jobs must be at most {known.most_jobs} with executor {kind}, got {jobs}"
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
    known = EXECUTORS.get(chosen, Kind())
    if known.start is not None:
        n = min(n, known.most_jobs or n)
        return Workers(chosen, partial(known.start, n), room=known.room * n)
    from montecarlo.study import cluster

    if chosen == DASK:
        from montecarlo.study.certificates import make_certificate

        return Workers(chosen, partial(cluster.start_local, n, make_certificate))
    return Workers(chosen, partial(cluster.connect, chosen))

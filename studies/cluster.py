"""How far a cluster carries: what a batch costs to send, and what a scheduler takes.

Run as ``python -m studies.cluster``; it needs the extra ``[cluster]``.  In: nothing.
Out: the two tables of docs/cluster.md.  Times are CPU seconds, so that another load on
the machine hardly changes them; the scheduler and two workers are processes of their
own, on loopback.
"""

import contextlib
import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from montecarlo.attention.divisors import DIVISORS
from montecarlo.estimation.engine import BATCH_SECONDS, Budget, Plan, sample_packed
from montecarlo.sampling.design_points import parse_point
from montecarlo.study.cluster import ready, run_checked
from montecarlo.study.executors import make_executor
from montecarlo.study.journal import Journal, JournaledStore, open_journal
from montecarlo.study.tasks import finish
from studies.program import markdown, parse, run_program

#: Replicates that a point of the standard report may get.
MOST = 512
GAUSSIAN = ("gaussian", "gaussian")
KINDS = {
    "pairs": parse_point(*GAUSSIAN, 64),
    "pairs, initialised": parse_point(
        *GAUSSIAN,
        64,
        initialisation="init(kind=xavier_uniform,norm=layer,shape=full,width=512)",
    ),
    "rows, n = 32": parse_point(*GAUSSIAN, 64, 32),
    "rows, n = 128": parse_point(*GAUSSIAN, 64, 128),
    "rows, n = 128, planted": parse_point(*GAUSSIAN, 64, 128, "planted(0.5)"),
    "rows, n = 512": parse_point(*GAUSSIAN, 64, 512),
    "rows, n = 16384": parse_point(*GAUSSIAN, 64, 16384),
    "rows, n = 128, formats": parse_point(*GAUSSIAN, 64, 128, formats=True),
    "rows, n = 65536, formats": parse_point(*GAUSSIAN, 64, 65536, formats=True),
}
TASKS = 5000
REPEATS = 20
WORKERS = 2
#: Most seconds to wait for a part of the cluster.
PATIENCE = 30.0


def costs(journal: Journal) -> Iterator[tuple[str, int, float, int, int, float]]:
    """Yield what a batch of each kind costs.

    Yields
    ------
    kind, replicates, seconds, task, result, taking
        CPU seconds of the worker, bytes sent to it and back, and CPU seconds in which
        the command reads the result and keeps it.
    """
    ready()
    divisors = tuple(DIVISORS)
    for kind, point in KINDS.items():
        plan = Plan({point: Budget(MOST, MOST)}, 1, divisors)
        first, stop = next(iter(plan.batches(point, 0, MOST)))
        arguments = (point, 1, first, stop, divisors)
        sample_packed(*arguments)  # warm
        begun = time.process_time()
        packed = sample_packed(*arguments)
        seconds = time.process_time() - begun
        task = pickle.dumps((run_checked, ready(), sample_packed, *arguments))
        result = pickle.dumps(packed)
        store = JournaledStore(journal=journal)
        begun = time.process_time()
        for number in range(REPEATS):
            start = number * stop
            store.add(point, start, start + stop, pickle.loads(result))  # noqa: S301
        taking = (time.process_time() - begun) / REPEATS
        yield kind, stop - first, seconds, len(task), len(result), taking


@contextlib.contextmanager
def small_cluster() -> Iterator[tuple[str, psutil.Process]]:
    """Start a scheduler and workers; yields its address and its process."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        file = Path(folder) / "scheduler.json"

        def start(*words: object) -> psutil.Process:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-m", "dask", *map(str, words), "--no-dashboard"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return psutil.Process(process.pid)

        loopback = ("--host", "127.0.0.1")
        scheduler = start("scheduler", *loopback, "--port", 0, "--scheduler-file", file)
        until = time.monotonic() + PATIENCE
        while not (file.exists() and file.read_text().endswith("}")):
            if time.monotonic() > until:
                raise TimeoutError("the scheduler did not start")
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        for _ in range(WORKERS):
            start("worker", address, "--nthreads", 1, "--local-directory", folder)
        yield address, scheduler


def cpu_seconds(process: psutil.Process) -> float:
    """Return what a process has used."""
    times = process.cpu_times()
    return float(times.user + times.system)


def rates(n_tasks: int) -> tuple[float, float, float]:
    """Return CPU seconds per task of scheduler and command, and tasks a second."""
    with small_cluster() as (address, scheduler):
        until = time.monotonic() + PATIENCE
        while True:  # until all workers are there
            executor = make_executor(kind=f"insecure+{address}")
            if executor.jobs == WORKERS or time.monotonic() > until:
                break
            executor.shutdown()
        with executor:
            list(finish(executor, abs, ((-n - 1,) for n in range(200))))  # warm
            theirs, ours = cpu_seconds(scheduler), time.process_time()
            begun = time.perf_counter()
            list(finish(executor, abs, ((n,) for n in range(n_tasks))))
            wall = time.perf_counter() - begun
            ours, theirs = time.process_time() - ours, cpu_seconds(scheduler) - theirs
    return theirs / n_tasks, ours / n_tasks, n_tasks / wall


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = parse("cluster", __doc__, argv, tasks=TASKS)
    lines = [("point", "replicates", "CPU, s", "task, B", "result, kB", "kept in, ms")]
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(open_journal(Path(folder))) as journal,
    ):
        for kind, replicates, seconds, task, result, taking in costs(journal):
            numbers = str(replicates), f"{seconds:.3f}", str(task)
            lines.append((kind, *numbers, f"{result / 1e3:.1f}", f"{1e3 * taking:.1f}"))
    print(markdown(lines))
    scheduler, command, together = rates(options.tasks)
    head = ("empty tasks", "CPU per task, ms", "tasks a second", "cores they feed")
    rows = [head]
    for name, seconds in (("scheduler", scheduler), ("command", command)):
        cores = f"{BATCH_SECONDS / seconds:.0f}"
        rows.append((name, f"{1e3 * seconds:.2f}", f"{1 / seconds:.0f}", cores))
    rows.append((f"both and {WORKERS} workers, here", "", f"{together:.0f}", ""))
    print(f"\n{markdown(rows)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("cluster", main))

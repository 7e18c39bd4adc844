"""Making the record of training: all seeds on workers, kept seed by seed, and written.

Into its folder as it is, as the report card is: it is part of the package.
"""

import argparse
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from montecarlo.errors import InputError
from montecarlo.names import parse_folder, parse_jobs
from montecarlo.study.executors import available_cores, make_executor
from montecarlo.study.fingerprint import fingerprint, made_with
from montecarlo.study.tasks import finish
from montecarlo.study.work_folders import read_whole, save_whole, work_folders
from montecarlo.study.workers import limit_blas
from montecarlo.training import retrieval
from montecarlo.training.arms import ARMS, D_K, JUDGED, LEARNED, RATES, TUNING
from montecarlo.training.record import (
    FILES,
    FOLDER,
    MEASURED,
    RUN,
    read_record,
    training_digest,
    write_record,
)
from montecarlo.training.rescaling import measure_rescaled
from montecarlo.training.runs import LAST, run_seed

#: What is kept of a seed.
KEPT = ["losses", *RUN, *MEASURED]


class SeedRuns(NamedTuple):
    """All runs of a seed.

    Attributes
    ----------
    table : DataFrame
        A line for each, with columns `RUN` and `MEASURED`.
    losses : ndarray, shape (n_runs, n_steps)
    """

    table: pd.DataFrame
    losses: NDArray[np.float32]


def make_record(arguments: argparse.Namespace) -> Iterator[str]:
    """Make the record and yield what to print on the way."""
    jobs = parse_jobs(arguments.jobs) or available_cores()
    work = parse_folder("work", arguments.work)
    output = FOLDER
    if arguments.output is not None:
        output = parse_folder("output", arguments.output)
    seeds = [*TUNING, *JUDGED]
    with work_folders(work, output, FILES, "an earlier record"):
        found = {}
        for number, (seed, one) in enumerate(run_seeds(seeds, jobs, work), start=1):
            found[seed] = one
            yield f"seed    {seed}, {number} of {len(seeds)}"
        tables, losses = zip(*(found[seed] for seed in seeds), strict=True)
        table = pd.concat(tables, ignore_index=True)
        yield "rescaled runs"
        limit_blas()
        about = {
            "command": "python -m montecarlo train",
            "configuration": configuration(),
            **made_with(),
        }
        rescaled = measure_rescaled()
        write_record(output, table, np.concatenate(losses), rescaled, about)
    read_record.cache_clear()
    yield from _lines(output)


def configuration() -> dict[str, object]:
    """Return what is trained, and how."""
    names = ("WIDTH", "KEY", "N_KEYS", "N_QUERIES", "BATCH", "STEPS", "WARM_UP")
    return {
        **{name.lower(): getattr(retrieval, name) for name in names},
        "d_k": D_K,
        "arms": {one.name: one.divisor for one in ARMS.values()},
        "rates": RATES,
        "learned": LEARNED,
        "last": LAST,
    }


def run_seeds(
    seeds: Iterable[int], jobs: int, work: Path | None
) -> Iterator[tuple[int, SeedRuns]]:
    """Run seeds on workers, and yield each as it is done.

    Those that a folder keeps are read; no folder keeps nothing.
    """
    with make_executor(jobs) as executor:
        tasks = [(seed, work) for seed in seeds]
        for (seed, _), future in finish(executor, read_or_run, tasks):
            yield seed, future.result()


def read_or_run(seed: int, work: Path | None) -> SeedRuns:
    """Return the runs of a seed, made where the folder does not have them."""
    made_of = [seed, retrieval.STEPS, training_digest(), fingerprint()]
    losses, *columns = keep(work, f"seed-{seed}", made_of, KEPT, partial(_run, seed))
    return SeedRuns(pd.DataFrame(dict(zip(KEPT[1:], columns, strict=True))), losses)


def keep(
    work: Path | None,
    beginning: str,
    made_of: object,
    names: Sequence[str],
    make: Callable[[], list[NDArray[Any]]],
) -> list[NDArray[Any]]:
    """Return arrays that a folder keeps, made where it does not have them.

    A file is named after all that its bytes depend on, so that one of other code is not
    found and made again.

    Parameters
    ----------
    work : Path or None
        None: nothing is kept.
    beginning : str
        Of the file's name.
    made_of : object
        What the arrays depend on.
    names : sequence of str
        Of the arrays.
    make : callable

    Raises
    ------
    InputError
        If a file is damaged, or another's under this one's name.
    """
    if work is None:
        return make()
    recipe = json.dumps(made_of, sort_keys=True)
    name = hashlib.sha256(recipe.encode()).hexdigest()[:16]
    path = work / f"{beginning}-{name}.npz"
    if path.exists():
        found, *arrays = read_whole(path, ["recipe", *names])
        if str(found) != recipe:
            raise InputError(
                f"work must hold files under their own names, got {str(path)!r}, which "
                "is another's; without that file the same command makes it anew"
            )
        return arrays
    arrays = make()
    kept = dict(zip(names, arrays, strict=True))
    save_whole(path, {"recipe": np.array(recipe), **kept})
    return arrays


def _run(seed: int) -> list[NDArray[Any]]:
    """Return what is kept of a seed's runs, in the order of `KEPT`."""
    trials = list(run_seed(seed, retrieval.STEPS))
    losses = np.stack([one.losses for one in trials]).astype(np.float32)
    columns = [np.array([getattr(one, name) for one in trials]) for name in KEPT[1:]]
    steps = KEPT[1:].index("steps")
    columns[steps] = np.array([math.inf if n is None else n for n in columns[steps]])
    return [losses, *columns]


def _lines(folder: Path) -> Iterator[str]:
    record = read_record(folder)
    for (optimiser, arm, d_k), rate in record.chosen.items():
        some = record.judged.query(
            "optimiser == @optimiser and arm == @arm and d_k == @d_k and rate == @rate"
        )["steps"]
        learned = int(np.isfinite(some).sum())
        yield (
            f"{optimiser:<7} {arm:<14} d_k {d_k:<4} rate {rate:<6g} median "
            f"{some.median():g} steps, {learned} of {len(some)} learn"
        )
    yield f"written {folder}"

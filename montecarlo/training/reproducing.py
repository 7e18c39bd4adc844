"""A part of the record made again, and compared.

With the libraries and the processor's kernels of the record every digit must come out.
Elsewhere the last bits of a product are others; where the rate is high a layer doubles
such a difference every few steps, so that half of all runs end elsewhere, while the
others agree to all digits that are kept.
"""

import argparse
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from montecarlo.names import parse_jobs
from montecarlo.study.executors import available_cores
from montecarlo.study.fingerprint import made_with
from montecarlo.training.record import MEASURED, RUN, read_record, round_runs
from montecarlo.training.recording import run_seeds

#: Seeds that are run again.
SEEDS = 2
#: With other kernels: relative difference of numbers that agree; columns known before
#: anything is learned, which agree in all runs; share of runs that agree altogether.
CLOSE, FIRST, SHARE = 1e-4, ["gradient", "update"], 1 / 3


def reproduce(arguments: argparse.Namespace) -> tuple[list[str], bool]:
    """Run the first judged seeds again; returns what to print, and if all agree."""
    record = read_record()
    jobs = parse_jobs(arguments.jobs) or available_cores()
    seeds = record.seeds["judged"][:SEEDS]
    found = [one.table for _, one in run_seeds(seeds, jobs, None)]
    kept = record.runs[record.runs["seed"].isin(seeds)]
    same = _libraries(made_with()) == _libraries(record.about)
    return compare(round_runs(pd.concat(found)), kept, exact=same)


def compare(
    found: pd.DataFrame, kept: pd.DataFrame, *, exact: bool
) -> tuple[list[str], bool]:
    """Compare runs with those of the record.

    Parameters
    ----------
    found, kept : DataFrame
    exact : bool
        Whether all digits must be the same.

    Returns
    -------
    list of str, bool
        What to print, and whether they agree.
    """
    if not found[RUN].reset_index(drop=True).equals(kept[RUN].reset_index(drop=True)):
        return ["runs are others than those of the record"], False
    numbers = zip(
        found[MEASURED].to_numpy().T, kept[MEASURED].to_numpy().T, strict=True
    )
    off = pd.DataFrame(
        {name: _relative(*two) for name, two in zip(MEASURED, numbers, strict=True)}
    )
    lines = [f"{'':<11} largest relative difference, runs that differ of {len(off)}"]
    lines += [
        f"{name:<11} {off[name].max():<27.2g} {int((off[name] > 0.0).sum())}"
        for name in MEASURED
    ]
    if exact:
        agree = not off.to_numpy().any()
        asked = "every digit, with the libraries and kernels of the record"
    else:
        share = float((off <= CLOSE).all(axis=1).mean())
        agree = bool((off[FIRST] <= CLOSE).all(axis=None)) and share >= SHARE
        lines.append(f"within {CLOSE:g} in all columns: {share:.0%} of runs")
        asked = (
            f"{' and '.join(FIRST)} within {CLOSE:g} and all columns in {SHARE:.0%} of "
            "runs, with other libraries or kernels than the record's"
        )
    return [*lines, f"{'agrees' if agree else 'does not agree'}; asked: {asked}"], agree


def _libraries(about: dict[str, Any]) -> tuple[str, str]:
    """Return what the bytes of a run depend on."""
    return about["versions"]["numpy"], about["kernel"]


def _relative(
    one: NDArray[np.float64], other: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return relative differences, infinite where only one is."""
    with np.errstate(invalid="ignore"):
        off = np.abs(one - other) / np.maximum(np.abs(one), np.abs(other))
    return np.where(one == other, 0.0, np.nan_to_num(off, nan=np.inf))

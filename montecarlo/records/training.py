"""The training records: what became of every recorded run, by divisor.

``python -m studies.training`` and ``python -m studies.language_model`` make their
files.  Rates of learning are chosen when a record is read, on seeds that are not
judged.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from montecarlo.errors import InputError, reading

#: The records that the report shows.
FOLDER = Path(__file__).parent / "data" / "training"
#: What is compared, by name: its divisor.  Queries of `small-queries` begin smaller by
#: sqrt(d_k), as T5 draws them; queries and keys of `normalised` are divided by their
#: root mean square, and their product is multiplied by a gain that is learned.
ARMS = {
    "none": "none",
    "sqrt": "sqrt",
    "linear": "linear",
    "small-queries": "none",
    "normalised": "sqrt",
}
D_K = (16, 64, 256)
#: Rates of learning, half a decade apart, by optimiser.
RATES = {
    "sgd": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
    "adam": (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0),
}
#: Steps of a run.
STEPS = 300
#: How many seeds are judged: from look to look twice as many, with an optimiser and a
#: d_k of which a check is undecided.  The error rate is split over these looks.
LOOKS = (48, 96, 192)
#: What has the same seeds in all its runs; what names an arm in a comparison, a setting
#: of it, and a run.
CASE = ["optimiser", "d_k"]
ARM = ["optimiser", "arm", "d_k"]
SETTING = [*ARM, "rate"]
RUN = [*SETTING, "seed"]
#: What is recorded of a run of the layer that retrieves.
MEASURED = ["steps", "final_loss", "gradient", "update"]

Chosen = dict[tuple[str, str, int], float]


@dataclass(frozen=True, slots=True)
class Rescaled:
    """How far a run with another divisor, made up for, went from the plain one.

    Attributes
    ----------
    optimiser : str
    d_k : int
    factor : float
        By which the divisor was smaller.
    steps : int
    weights : float
        Largest absolute difference of any weight, at the end.
    loss : float
        Largest relative difference of the loss, at any step.
    """

    optimiser: str
    d_k: int
    factor: float
    steps: int
    weights: float
    loss: float


@dataclass(frozen=True)
class Runs:
    """Recorded runs.

    Attributes
    ----------
    runs : DataFrame
        A line for each run, with columns `RUN` and what was measured; steps are
        infinite where the loss never was below the level for having learned.
    chosen : dict
        (optimiser, arm, d_k) to the rate of learning.
    seeds : dict
        ``tuning``: on which rates were chosen, and ``judged``.
    about : dict
        Configuration, versions and command.
    """

    runs: pd.DataFrame
    chosen: Chosen
    seeds: dict[str, tuple[int, ...]]
    about: dict[str, Any]

    @cached_property
    def judged(self) -> pd.DataFrame:
        """Runs of judged seeds."""
        return self.runs[self.runs["seed"].isin(self.seeds["judged"])]

    @cached_property
    def by_arm(self) -> dict[Any, pd.DataFrame]:
        """Runs of judged seeds, by optimiser, arm and d_k, for many look-ups."""
        return dict(iter(self.judged.groupby(ARM)))

    @cached_property
    def update_slopes(self) -> dict[Any, NDArray[np.float64]]:
        """Slope of the first step on the first gradient, by optimiser and d_k.

        Of each judged seed, over all arms; of logarithms, steps by their rates.
        """
        return {
            case: np.array([_slope(some) for _seed, some in runs.groupby("seed")])
            for case, runs in self.judged.groupby(CASE)
        }


def _slope(runs: pd.DataFrame) -> float:
    steps = np.log(runs["update"] / runs["rate"])
    return float(np.polyfit(np.log(runs["gradient"]), steps, 1)[0])


@dataclass(frozen=True)
class Record(Runs):
    """The record of the layer that retrieves.

    Attributes
    ----------
    losses : DataFrame
        Quantiles of the loss over judged seeds, at the chosen rates, by step; infinite
        where runs diverged.
    rescaled : tuple of Rescaled
    """

    losses: pd.DataFrame
    rescaled: tuple[Rescaled, ...]


@cache
def read_record(folder: Path = FOLDER) -> Record:
    """Read the record of the layer that retrieves, and choose its rates.

    Raises
    ------
    InputError
        If a file or a seed is missing, or arms that are compared have others.
    """
    found = read_runs(folder, "runs", "record")
    with reading("record", folder):
        losses = pd.read_csv(folder / "losses.csv")
    rescaled = tuple(Rescaled(**one) for one in found.about.pop("rescaled"))
    return Record(found.runs, found.chosen, found.seeds, found.about, losses, rescaled)


@cache
def read_language(folder: Path = FOLDER) -> Runs:
    """Read the language model's record, as `read_record` does the layer's."""
    return read_runs(folder, "language", "language")


def read_runs(folder: Path, table_name: str, about_name: str) -> Runs:
    """Read runs from a CSV file, and what they are from a JSON file."""
    with reading("record", folder):
        about = json.loads((folder / f"{about_name}.json").read_text(encoding="utf-8"))
        table = pd.read_csv(folder / f"{table_name}.csv")
    table["steps"] = table["steps"].astype(float).fillna(np.inf)
    seeds = {name: tuple(some) for name, some in about.pop("seeds").items()}
    return make_runs(table, seeds, about)


def make_runs(
    table: pd.DataFrame, seeds: dict[str, tuple[int, ...]], about: dict[str, Any]
) -> Runs:
    """Return runs with the rates that are chosen on their tuning seeds.

    Raises
    ------
    InputError
        If a seed is missing, or arms that are compared have others.
    """
    if missing := set().union(*seeds.values()).difference(table["seed"]):
        raise InputError(f"runs must have every seed, got none of {sorted(missing)}")
    require_paired(table)
    return Runs(table, choose_rates(table, seeds["tuning"]), seeds, about)


def require_paired(table: pd.DataFrame) -> None:
    """Refuse runs that are compared and have not the same seeds, each once."""
    for _, case in table.groupby(CASE):
        seeds = set(case["seed"])
        for setting, found in case.groupby(SETTING)["seed"]:
            if sorted(found) != sorted(seeds):
                other = sorted(seeds.symmetric_difference(found)) or "one twice"
                raise InputError(
                    f"runs must have the same seeds in all arms, got {setting} with "
                    f"other ones: {other}"
                )


def choose_rates(table: pd.DataFrame, seeds: Sequence[int]) -> Chosen:
    """Choose the rate of each arm, optimiser and d_k, on seeds that are not judged.

    The one with the smallest median number of steps, where never is infinite; of equal
    ones that at which more seeds learned, then the smaller mean of the loss at the end,
    then the smaller rate.
    """
    tuning = table[table["seed"].isin(seeds)]
    for _, case in tuning.groupby(CASE) if len(tuning) else [(None, tuning)]:
        if set(case["seed"]) != set(seeds):
            raise InputError(
                f"runs must have all seeds {seeds[0]} to {seeds[-1]} to choose rates "
                f"on, got {sorted(set(case['seed']))}"
            )
    require_paired(tuning)
    best: dict[Any, tuple[float, ...]] = {}
    for setting, some in tuning.groupby(SETTING):
        *names, rate = cast("tuple[str, str, int, float]", setting)
        steps = some["steps"].to_numpy()
        learned, left = int(np.isfinite(steps).sum()), float(some["final_loss"].mean())
        found = (float(np.median(steps)), -learned, left, rate)
        arm = tuple(names)
        best[arm] = min(found, best.get(arm, found))
    return {arm: rate for arm, (*_, rate) in best.items()}

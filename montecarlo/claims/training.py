"""The record of training on which claims are judged: steps to learn, first gradients.

``python -m studies.training`` trains an attention layer to retrieve, and reduces the
runs to these tables.  Judged seeds are distinct from those on which learning rates were
chosen.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from montecarlo.errors import reading

#: The record that ships with the package.
FOLDER = Path(__file__).parent / "training_record"
#: Arms of the experiment: name -> divisor.  In `small-queries` W_Q is initially divided
#: by sqrt(d_k), as in T5.  In `normalised` queries and keys are divided by their root
#: mean square, and their product is multiplied by a learned gain.
ARMS = {
    "none": "none",
    "sqrt": "sqrt",
    "linear": "linear",
    "small-queries": "none",
    "normalised": "sqrt",
}
#: The arm at whose learning rate other arms are run as well.
COMPARED = "sqrt"
D_K = (16, 64, 256)
#: The coarse grid of learning rates for each optimiser, half a decade apart; and the
#: factor between rates of the fine grid around the best of these.
RATES = {
    "sgd": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
    "adam": (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0),
}
SPACING = 10.0 ** (1 / 8)
#: Number of steps of a run.
STEPS = 300
#: Number of judged seeds at each look.  The number doubles for an optimiser and a d_k
#: with an undecided check.  The error rate is split over the looks.
LOOKS = (48, 96, 192)
#: Columns that identify a group of arms with the same seeds, and those of one arm.
CASE = ["optimiser", "d_k"]
ARM = ["optimiser", "arm", "d_k"]
#: Columns for each arm and seed: the chosen rate; at that rate, steps until learned and
#: mean loss of the last steps; steps until learned at the rate of `COMPARED`.
MEASURED = ["rate", "steps", "final_loss", "steps_same_rate"]
#: Columns for the seeds of the first look: the best of `RATES` and the steps at it;
#: steps at the rates a factor `SPACING` below and above the chosen one; the number of
#: `RATES` at which it learned.
SEARCHED = ["coarse_rate", "steps_coarse", "steps_below", "steps_above", "rates"]
#: Column of `Record.gradients`: the slope, over arms, of the logarithm of the size of
#: the first update over its rate, on the logarithm of the norm of the first gradient.
SLOPE = "update_slope"


@dataclass(frozen=True, slots=True)
class Rescaled:
    """How far a training run differs from an equivalent one with rescaled weights.

    The other run has another divisor, and weights and a rate that are rescaled for it.

    Attributes
    ----------
    optimiser : str
    d_k : int
    factor : float
        Original divisor / other divisor.
    steps : int
        Length of the runs.
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


@dataclass(frozen=True, eq=False)
class Record:
    """Results of training an attention layer to retrieve, for the judged seeds.

    Attributes
    ----------
    runs : DataFrame
        Columns `ARM`, seed and `MEASURED`.  Steps are infinite if the run did not
        learn.
    search : DataFrame
        Columns `ARM`, seed and `SEARCHED`, for the seeds of the first look.
    gradients : DataFrame
        Columns `CASE`, seed, the norm of the first gradient for each of `ARMS`, and
        `SLOPE`.
    rescaled : tuple of Rescaled
    about : dict
        Configuration, versions and command.
    """

    runs: pd.DataFrame
    search: pd.DataFrame
    gradients: pd.DataFrame
    rescaled: tuple[Rescaled, ...]
    about: Mapping[str, Any]

    @cached_property
    def by_arm(self) -> dict[Any, pd.DataFrame]:
        """(optimiser, arm, d_k) -> DataFrame of its lines of ``runs``, by seed.

        The seed is the index.  An arm is a divisor with an initialisation, a key of
        `ARMS`.
        """
        return dict(iter(self.runs.set_index("seed").groupby(ARM)))

    @cached_property
    def search_by_arm(self) -> dict[Any, pd.DataFrame]:
        """(optimiser, arm, d_k) -> DataFrame of its lines of ``search``, by seed."""
        return dict(iter(self.search.set_index("seed").groupby(ARM)))

    @cached_property
    def by_case(self) -> dict[Any, pd.DataFrame]:
        """(optimiser, d_k) -> DataFrame of its lines of ``gradients``, by seed.

        The seed is the index.  Columns: the norm of the first gradient of each of
        `ARMS`, `SLOPE`, and the two of `CASE`, which are constant.
        """
        return dict(iter(self.gradients.set_index("seed").groupby(CASE)))

    def values_by_seed(
        self, column: str, optimiser: str, arm: str, d_k: int
    ) -> "pd.Series[float]":
        """Return the values of a column for one arm, a Series with the seed as index.

        An arm is a divisor with an initialisation, a key of `ARMS`.  The columns
        `SEARCHED` have values for the seeds of the first look alone.

        Parameters
        ----------
        column : str
            One of `MEASURED` or `SEARCHED`, or ``gradient``, the norm of the first
            gradient.
        optimiser, arm : str
        d_k : int
        """
        if column == "gradient":
            return self.by_case[optimiser, d_k][arm].astype(float)
        tables = self.search_by_arm if column in SEARCHED else self.by_arm
        return tables[optimiser, arm, d_k][column].astype(float)


@cache
def read_record(folder: Path = FOLDER) -> Record:
    """Return the training record in a folder, by default the one in the package.

    Raises
    ------
    InputError
        If a file is missing or cannot be read.
    """
    about = read_about(folder, "record")
    names = ("steps", "search", "gradients")
    runs, search, gradients = (read_table(folder, name) for name in names)
    rescaled = tuple(Rescaled(**one) for one in about.pop("rescaled"))
    return Record(runs, search, gradients, rescaled, about)


def read_about(folder: Path, name: str) -> dict[str, Any]:
    """Return the content of ``NAME.json`` in the folder of a record, as a dict.

    It describes how the record came about: configuration, versions and command.

    Raises
    ------
    InputError
        If the file is missing or cannot be read.
    """
    with reading("record", folder):
        content = (folder / f"{name}.json").read_text(encoding="utf-8")
    return dict(json.loads(content))


def read_table(folder: Path, name: str) -> pd.DataFrame:
    """Return a table of a record: the content of ``NAME.csv`` in its folder.

    In columns whose names begin with ``steps``, empty fields become infinite: these
    runs did not learn.

    Raises
    ------
    InputError
        If the file is missing or cannot be read.
    """
    with reading("record", folder):
        table = pd.read_csv(folder / f"{name}.csv")
    steps = table.filter(regex="^steps").astype(float).fillna(np.inf)
    return table.assign(**{str(name): steps[name] for name in steps})

"""The record of training that claims are judged on: steps to learn, first gradients.

``python -m studies.training`` runs a layer that learns to retrieve, and reduces its
runs to these tables: of seeds that are judged, at learning rates that were chosen on
others.
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
#: The arm whose rate is used where another is to learn at the same one.
COMPARED = "sqrt"
D_K = (16, 64, 256)
#: Rates of learning that are tried first, half a decade apart, by optimiser; and the
#: factor between those that are tried around the best of them.
RATES = {
    "sgd": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
    "adam": (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0),
}
SPACING = 10.0 ** (1 / 8)
#: Steps of a run.
STEPS = 300
#: How many seeds are judged: from look to look twice as many, with an optimiser and a
#: d_k of which a check is undecided.  The error rate is split over these looks.
LOOKS = (48, 96, 192)
#: What has the same seeds in all its arms, and what names an arm in a comparison.
CASE = ["optimiser", "d_k"]
ARM = ["optimiser", "arm", "d_k"]
#: What is recorded of an arm and a seed: the chosen rate; steps, and the mean loss of
#: the last ones, at it; steps at that of `COMPARED`.
MEASURED = ["rate", "steps", "final_loss", "steps_same_rate"]
#: And of the seeds of the first look, how rates were searched: the best of `RATES` and
#: the steps at it; steps at the rates a `SPACING` below and above the chosen one; at
#: how many of `RATES` it learned.
SEARCHED = ["coarse_rate", "steps_coarse", "steps_below", "steps_above", "rates"]
#: Slope of the logarithm of the first update, by its rate, on that of the first
#: gradient, over arms: by optimiser, d_k and seed, beside the gradients.
SLOPE = "update_slope"


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


@dataclass(frozen=True, eq=False)
class Record:
    """The record of the layer that retrieves, of seeds that are judged.

    Attributes
    ----------
    runs : DataFrame
        Columns `ARM`, seed and `MEASURED`; steps are infinite where the loss never was
        below the level for having learned.
    search : DataFrame
        Columns `ARM`, seed and `SEARCHED`.
    gradients : DataFrame
        Columns `CASE`, seed, the norm of the first gradient in each of `ARMS`, and
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
        """Runs by optimiser, arm and d_k, with seeds as their index."""
        return dict(iter(self.runs.set_index("seed").groupby(ARM)))

    @cached_property
    def search_by_arm(self) -> dict[Any, pd.DataFrame]:
        """How rates were searched, likewise."""
        return dict(iter(self.search.set_index("seed").groupby(ARM)))

    @cached_property
    def by_case(self) -> dict[Any, pd.DataFrame]:
        """First gradients by optimiser and d_k, likewise."""
        return dict(iter(self.gradients.set_index("seed").groupby(CASE)))

    def values(
        self, column: str, optimiser: str, arm: str, d_k: int
    ) -> "pd.Series[float]":
        """Return a column of an arm by seed; ``gradient``: the norm of the first."""
        if column == "gradient":
            return self.by_case[optimiser, d_k][arm].astype(float)
        tables = self.search_by_arm if column in SEARCHED else self.by_arm
        return tables[optimiser, arm, d_k][column].astype(float)


@cache
def read_record(folder: Path = FOLDER) -> Record:
    """Read the record of the layer that retrieves.

    Raises
    ------
    InputError
        If a file is missing.
    """
    about = read_about(folder, "record")
    runs, search, gradients = (
        read_table(folder, name) for name in ("steps", "search", "gradients")
    )
    rescaled = tuple(Rescaled(**one) for one in about.pop("rescaled"))
    return Record(runs, search, gradients, rescaled, about)


def read_about(folder: Path, name: str) -> dict[str, Any]:
    """Read how a record was made: configuration, seeds and versions."""
    with reading("record", folder):
        found: dict[str, Any] = json.loads(
            (folder / f"{name}.json").read_text(encoding="utf-8")
        )
    return found


def read_table(folder: Path, name: str) -> pd.DataFrame:
    """Read a table of a record; an empty number of steps is infinite."""
    with reading("record", folder):
        table = pd.read_csv(folder / f"{name}.csv")
    steps = {
        str(column): table[column].astype(float).fillna(np.inf)
        for column in table
        if str(column).startswith("steps")
    }
    return table.assign(**steps)

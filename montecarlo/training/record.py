"""The record of training: what became of every run, in files of the package.

``python -m montecarlo train`` writes them anew.  Rates are chosen when they are read,
on seeds that are not judged.
"""

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from montecarlo.errors import InputError, reading
from montecarlo.training import language
from montecarlo.training.arms import JUDGED, TUNING
from montecarlo.training.rescaling import Rescaled

#: Where the record lies that the report shows.
FOLDER = Path(__file__).with_name("recorded")
#: All that a record is made of.
FILES = frozenset(
    {"runs.csv", "losses.csv", "record.json", "language.csv", "language.json"}
)
#: What names an arm in a comparison, a setting of it, and a run.
ARM = ["optimiser", "arm", "d_k"]
SETTING = [*ARM, "rate"]
RUN = [*SETTING, "seed"]
MEASURED = ["steps", "final_loss", "gradient", "update"]
LANGUAGE_MEASURED = [
    *("steps", "final_loss", "held_out", "gradient_queries", "gradient_keys")
]
#: The modules that train: whose code a record is made by.
CODE, LANGUAGE_CODE = ("retrieval", "arms", "runs"), ("language", "language_model")
#: Significant digits that are kept.
DIGITS = 5
#: Every which step of a curve is kept, and the quantiles over judged seeds.
EVERY = 5
QUANTILES = {"q10": 0.1, "median": 0.5, "q90": 0.9}

Chosen = dict[tuple[str, str, int], float]


@dataclass(frozen=True, slots=True)
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
        Configuration, versions, command, and a hash of the code.
    """

    runs: pd.DataFrame
    chosen: Chosen
    seeds: dict[str, tuple[int, ...]]
    about: dict[str, Any]

    @property
    def judged(self) -> pd.DataFrame:
        """Runs of judged seeds."""
        return self.runs[self.runs["seed"].isin(self.seeds["judged"])]


@dataclass(frozen=True, slots=True)
class Record(Runs):
    """A record of training the layer that retrieves.

    Attributes
    ----------
    losses : DataFrame
        Quantiles of the loss over judged seeds, at the chosen rates, by step; infinite
        where runs diverged.
    rescaled : tuple of Rescaled
    """

    losses: pd.DataFrame
    rescaled: tuple[Rescaled, ...]


def training_digest(modules: Iterable[str] = CODE) -> str:
    """Return a hash of the code that trains; its comments and docstrings are free."""
    found = hashlib.sha256()
    for module in modules:
        tree = ast.parse((FOLDER.parent / f"{module}.py").read_bytes())
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):  # a string that stands alone is documentation
                node.body = [one for one in body if not _is_text(one)]  # type: ignore[attr-defined]
        found.update(ast.unparse(tree).encode())
    return found.hexdigest()[:16]


def _is_text(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def require_paired(table: pd.DataFrame) -> None:
    """Refuse runs of which not all settings have the same seeds, each once."""
    seeds = set(table["seed"])
    for setting, found in table.groupby(SETTING)["seed"]:
        if sorted(found) != sorted(seeds):
            other = sorted(seeds.symmetric_difference(found)) or "one twice"
            raise InputError(
                f"runs must have the same seeds in all arms, got {setting} with other "
                f"ones: {other}"
            )


def choose_rates(table: pd.DataFrame, seeds: Sequence[int] = TUNING) -> Chosen:
    """Choose the rate of each arm, optimiser and d_k, on seeds that are not judged.

    The one with the smallest median number of steps, where never is infinite; of equal
    ones that at which more seeds learned, then the smaller mean of the loss at the end,
    then the smaller rate.
    """
    tuning = table[table["seed"].isin(seeds)]
    if set(tuning["seed"]) != set(seeds):
        raise InputError(
            f"runs must have all seeds {seeds[0]} to {seeds[-1]} to choose rates on, "
            f"got {sorted(set(tuning['seed']))}"
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


def summarise_losses(
    table: pd.DataFrame, losses: NDArray[np.float32], chosen: Chosen
) -> pd.DataFrame:
    """Return quantiles of curves over judged seeds, at the chosen rates.

    Parameters
    ----------
    table : DataFrame
        The runs.
    losses : ndarray, shape (n_runs, n_steps)
    chosen : dict
    """
    judged = table["seed"].isin(JUDGED).to_numpy()
    found = []
    for arm, rate in sorted(chosen.items()):
        values = zip(SETTING, (*arm, rate), strict=True)
        wanted = np.logical_and.reduce([table[name] == value for name, value in values])
        curves = losses[judged & wanted, ::EVERY].astype(float)
        with np.errstate(invalid="ignore"):  # between two infinite ones nothing is
            ends = np.quantile(curves, list(QUANTILES.values()), axis=0)
        columns = dict(zip(QUANTILES, np.nan_to_num(ends, nan=np.inf), strict=True))
        steps = np.arange(0, losses.shape[1], EVERY)
        names = dict(zip(SETTING, (*arm, rate), strict=True))
        found.append(pd.DataFrame({**names, "step": steps, **columns}))
    return pd.concat(found, ignore_index=True)


def round_runs(table: pd.DataFrame, measured: Iterable[str] = MEASURED) -> pd.DataFrame:
    """Return runs sorted, and rounded as they are kept."""
    rounded = {
        name: [float(f"{value:.{DIGITS}g}") for value in table[name]]
        for name in measured
    }
    return table[RUN].assign(**rounded).sort_values(RUN, ignore_index=True)


def write_record(
    folder: Path,
    table: pd.DataFrame,
    losses: NDArray[np.float32],
    rescaled: Iterable[Rescaled],
    about: Mapping[str, object],
) -> None:
    """Write the files of a record; `runs` and losses are in the same order."""
    rounded = round_runs(table)
    _write_runs(folder, "runs", rounded)
    _write_table(
        folder, "losses", summarise_losses(table, losses, choose_rates(rounded))
    )
    content = {
        **about,
        "code": training_digest(),
        "seeds": {"tuning": [*TUNING], "judged": [*JUDGED]},
        "rescaled": [asdict(one) for one in rescaled],
    }
    _write_about(folder, "record", content)


def write_language(
    folder: Path, table: pd.DataFrame, about: Mapping[str, object]
) -> None:
    """Write the files of the language model's record."""
    _write_runs(folder, "language", round_runs(table, LANGUAGE_MEASURED))
    content = {
        **about,
        "code": training_digest(LANGUAGE_CODE),
        "seeds": {"tuning": [*language.TUNING], "judged": [*language.JUDGED]},
    }
    _write_about(folder, "language", content)


@cache
def read_record(folder: Path = FOLDER) -> Record:
    """Read a record, and choose the rates.

    Raises
    ------
    InputError
        If a file or a seed is missing, or not all arms have the same seeds.
    """
    found = _read_runs(folder, "runs", "record")
    with reading("record", folder):
        losses = pd.read_csv(folder / "losses.csv")
    rescaled = tuple(Rescaled(**one) for one in found.about.pop("rescaled"))
    return Record(found.runs, found.chosen, found.seeds, found.about, losses, rescaled)


@cache
def read_language(folder: Path = FOLDER) -> Runs:
    """Read the language model's record as `read_record` does; this needs no extra."""
    return _read_runs(folder, "language", "language")


def _write_runs(folder: Path, name: str, rounded: pd.DataFrame) -> None:
    require_paired(rounded)
    steps = rounded["steps"].replace(np.inf, np.nan).astype("Int64")
    _write_table(folder, name, rounded.assign(steps=steps))


def _write_table(folder: Path, name: str, table: pd.DataFrame) -> None:
    table.to_csv(
        folder / f"{name}.csv",
        index=False,
        lineterminator="\n",
        float_format=f"%.{DIGITS}g",
    )


def _write_about(folder: Path, name: str, content: Mapping[str, object]) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    (folder / f"{name}.json").write_text(text, encoding="utf-8")


def _read_runs(folder: Path, table_name: str, about_name: str) -> Runs:
    with reading("record", folder):
        about = json.loads((folder / f"{about_name}.json").read_text(encoding="utf-8"))
        table = pd.read_csv(folder / f"{table_name}.csv")
    table["steps"] = table["steps"].astype(float).fillna(np.inf)
    seeds = {name: tuple(some) for name, some in about.pop("seeds").items()}
    if missing := set().union(*seeds.values()).difference(table["seed"]):
        raise InputError(f"runs must have every seed, got none of {sorted(missing)}")
    require_paired(table)
    return Runs(table, choose_rates(table, seeds["tuning"]), seeds, about)

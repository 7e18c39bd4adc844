"""The files of curves: one for each kind, in `FOLDER`, with columns of its own.

In memory the points of all curves are lines of one type, `CurveLine`, so that a figure
chooses its curves by name; a file calls the numbers by what they are.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

import pandas as pd
from msgspec import Struct
from msgspec.structs import astuple

from montecarlo.study.columns import (
    Count,
    Error,
    Finite,
    Size,
)
from montecarlo.study.csv_files import read_table, write_table
from montecarlo.study.validating import about

FOLDER = "curves"

Words = Annotated[str, about("", min_length=1)]
Distribution = Annotated[Words, about("as in measurements.csv")]
Divisor = Annotated[Words, about("what scores are divided by")]
Share = Annotated[float, about("", ge=0, le=1)]
Whole = Annotated[int, about("", ge=0, le=2**40)]


class CurveLine(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A point of any curve, in memory: ``curve`` says which, and so what x and y are.

    Attributes
    ----------
    distribution_q, distribution_k, dependence, initialisation, d_k, n_keys, divisor
        As in measurements.csv, where it is of a design point.
    optimiser, arm
        Of training.
    claim, interpretation
        Of outcomes over thresholds.
    outcome : str
        Which outcome, quantile or end of an interval it is of.
    n_replicates : int
        Replicates, or of training seeds, behind it.
    x, estimate, std_error : float
        Where it lies, how high, and how well that is known.
    """

    distribution_q: str | None = None
    distribution_k: str | None = None
    dependence: str | None = None
    initialisation: str | None = None
    d_k: int | None = None
    n_keys: int | None = None
    divisor: str | None = None
    optimiser: str | None = None
    arm: str | None = None
    curve: str
    claim: str | None = None
    interpretation: str | None = None
    outcome: str | None = None
    n_replicates: int | None = None
    x: float
    estimate: float | None = None
    std_error: float | None = None


class PointLine(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a curve of one design point and divisor is of."""

    distribution_q: Distribution
    distribution_k: Distribution
    dependence: Distribution
    initialisation: Distribution
    d_k: Size
    n_keys: Size
    divisor: Divisor


class WeightByRankLine(PointLine, frozen=True, kw_only=True):
    """A line of weight_by_rank.csv: the mean weight of the key at a rank of its row."""

    rank: Annotated[Size, about("1: the largest weight")]
    mean_weight: Annotated[float, about("mean over rows")]
    std_error: Annotated[Error, about("of the mean weight")]


class RowsFrobeniusLine(PointLine, frozen=True, kw_only=True):
    """A line of rows_jacobian_frobenius.csv: rows up to a norm of the Jacobian."""

    jacobian_frobenius: Annotated[float, about("Frobenius norm of the Jacobian")]
    share_of_rows: Annotated[Share, about("part of the rows with at most this")]
    std_error: Annotated[Error, about("of the share")]


class RowsGradientLine(PointLine, frozen=True, kw_only=True):
    """A line of rows_gradient_query_undivided.csv: rows up to a norm of a gradient."""

    gradient_query_undivided: Annotated[
        float, about("norm of the gradient by the query, times the divisor")
    ]
    share_of_rows: Annotated[Share, about("part of the rows with at most this")]
    std_error: Annotated[Error, about("of the share")]


class ScoreDistributionLine(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of score_distribution.csv: the exact distribution less the normal one."""

    distribution_q: Distribution
    distribution_k: Distribution
    d_k: Size
    divisor: Divisor
    score: Annotated[Finite, about("the score, divided")]
    distribution_gap: Annotated[
        Finite, about("probability of at most this, less that of a normal score")
    ]


class ExampleWeightLine(PointLine, frozen=True, kw_only=True):
    """A line of example_weight.csv: a weight of a few rows as they were drawn."""

    weight_number: Annotated[Whole, about("counts from 0 through the keys, row by row")]
    weight: Annotated[Share, about("the weight")]


class ThresholdLine(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of threshold.csv: how cases come out by what a vague word stands for."""

    claim: Annotated[Words, about("id of the claim")]
    interpretation: Annotated[Words, about("of which interpretation")]
    outcome: Annotated[Words, about("`supported` or `refuted`")]
    threshold: Annotated[Finite, about("what the word stands for", "the quantity's")]
    share_of_cases: Annotated[Share, about("part of the cases with this outcome")]


class ThresholdUsedLine(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of threshold_used.csv: what a vague word stands for in the catalogue."""

    claim: Annotated[Words, about("id of the claim")]
    interpretation: Annotated[Words, about("of which interpretation")]
    threshold: Annotated[Finite, about("what the word stands for", "the quantity's")]


class TrainingLine(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a curve of training is of."""

    d_k: Size
    optimiser: Annotated[Words, about("`sgd` or `adam`")]
    arm: Annotated[Words, about("a divisor, and how W_Q starts")]


class TrainingLossLine(TrainingLine, frozen=True, kw_only=True):
    """A line of training_loss.csv: the loss over steps at the chosen rate."""

    quantile: Annotated[Words, about("over seeds: `q10`, `median` or `q90`")]
    step: Annotated[Whole, about("steps taken")]
    loss: Annotated[Finite, about("the loss")]


class TrainingShareLine(TrainingLine, frozen=True, kw_only=True):
    """A line of training_share.csv: which part of the seeds learns, by rate."""

    n_seeds: Annotated[Count, about("seeds behind it")]
    learning_rate: Annotated[Finite, about("the rate")]
    share_of_seeds: Annotated[Share, about("part of them that learns")]


class TrainingStepsLine(TrainingLine, frozen=True, kw_only=True):
    """A line of training_steps.csv: steps until a seed has learned, by rate."""

    summary: Annotated[Words, about("`median`, or an end of its interval")]
    n_seeds: Annotated[Count, about("seeds behind it")]
    learning_rate: Annotated[Finite, about("the rate")]
    steps: Annotated[Finite | None, about("steps; empty: more than runs have")]


class TrainingStartLine(TrainingLine, frozen=True, kw_only=True):
    """A line of training_start.csv: steps at the chosen rate, by the first gradient."""

    summary: Annotated[Words, about("`median`, or an end of its interval")]
    n_seeds: Annotated[Count, about("seeds behind it")]
    first_gradient: Annotated[Finite, about("norm of the first gradient")]
    steps: Annotated[Finite | None, about("steps; empty: more than runs have")]


class TrainingBudgetLine(Struct, frozen=True, forbid_unknown_fields=True):
    """The line of training_budget.csv: when runs end, and when one has learned."""

    most_steps: Annotated[Whole, about("steps of a run")]
    learned_loss: Annotated[Finite, about("a run has learned below this loss")]


class CurveFile(NamedTuple):
    """The type of a line of a file, and which fields of `CurveLine` it calls how."""

    line: type[Struct]
    called: dict[str, str]


def _file(
    line: type[Struct], x: str, estimate: str = "estimate", **called: str
) -> CurveFile:
    return CurveFile(line, {"x": x, "estimate": estimate, **called})


_SEEDS = {"n_replicates": "n_seeds", "outcome": "summary"}
#: By the name of the curve, which is that of its file.
CURVES = {
    "weight_by_rank": _file(WeightByRankLine, "rank", "mean_weight"),
    "rows_jacobian_frobenius": _file(
        RowsFrobeniusLine, "jacobian_frobenius", "share_of_rows"
    ),
    "rows_gradient_query_undivided": _file(
        RowsGradientLine, "gradient_query_undivided", "share_of_rows"
    ),
    "score_distribution": _file(ScoreDistributionLine, "score", "distribution_gap"),
    "example_weight": _file(ExampleWeightLine, "weight_number", "weight"),
    "threshold": _file(ThresholdLine, "threshold", "share_of_cases"),
    "threshold_used": _file(ThresholdUsedLine, "threshold"),
    "training_budget": _file(TrainingBudgetLine, "most_steps", "learned_loss"),
    "training_loss": _file(TrainingLossLine, "step", "loss", outcome="quantile"),
    "training_share": _file(
        TrainingShareLine, "learning_rate", "share_of_seeds", n_replicates="n_seeds"
    ),
    "training_steps": _file(TrainingStepsLine, "learning_rate", "steps", **_SEEDS),
    "training_start": _file(TrainingStartLine, "first_gradient", "steps", **_SEEDS),
}
#: The files, by their names in a folder of results.
CURVE_FILES = {f"{FOLDER}/{name}.csv": file.line for name, file in CURVES.items()}
CURVE_COLUMNS = CurveLine.__struct_fields__
#: Numbers that are whole in a file, though any curve's may be a fraction.
_WHOLE = {"rank", "weight_number", "step", "most_steps", "n_keys"}


def tabulate_curves(lines: Iterable[CurveLine]) -> pd.DataFrame:
    """Build the table of all curves, with the columns `CURVE_COLUMNS`."""
    table = pd.DataFrame.from_records(
        [astuple(line) for line in lines], columns=list(CURVE_COLUMNS)
    )
    numbers = dict.fromkeys(("x", "estimate", "std_error"), "float64")
    whole = dict.fromkeys(("d_k", "n_keys", "n_replicates"), "Int64")
    names = [c for c in CURVE_COLUMNS if c not in {**numbers, **whole}]
    return table.astype({**numbers, **whole}).fillna(dict.fromkeys(names, ""))


def write_curves(table: pd.DataFrame, folder: Path) -> None:
    """Write the file of each kind of curve; one without points has a header alone.

    Parameters
    ----------
    table : DataFrame
        From `tabulate_curves`.
    folder : Path
        An existing folder, in which `FOLDER` is made.
    """
    (folder / FOLDER).mkdir(exist_ok=True)
    for name, (line, called) in CURVES.items():
        mine = table[table["curve"].eq(name)]
        if called["x"] in mine:  # of a curve over n
            mine = mine.drop(columns=called["x"])
        mine = mine.rename(columns=called)[list(line.__struct_fields__)]
        whole = dict.fromkeys(_WHOLE & set(mine), "Int64")
        write_table(mine.astype(whole), folder / FOLDER / f"{name}.csv")


def read_curves(folder: Path) -> pd.DataFrame:
    """Read the files that `write_curves` writes as one table.

    Returns
    -------
    DataFrame
        With the columns `CURVE_COLUMNS`; what is empty is missing.
    """
    parts = []
    for name, (_, called) in CURVES.items():
        part = read_table(folder / FOLDER / f"{name}.csv")
        part = part.rename(columns={new: old for old, new in called.items()})
        parts.append(part.assign(curve=name))
    there = [part for part in parts if len(part)]
    table = pd.concat(there or parts, ignore_index=True)
    return table.reindex(columns=list(CURVE_COLUMNS))

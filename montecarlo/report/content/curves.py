"""Curves for figures: data that are no single estimate, in one table for each kind.

A curve comes from the results of a run, or from a record that ships with the package.
The tables are written as CSV files to `FOLDER` of a results folder; figures are drawn
from those files.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.softmax import (
    measure_gaps,
    softmax_rows,
    weight_max,
    weights_in_order,
    widen,
)
from montecarlo.claims.running import StudyResults
from montecarlo.estimation.row_distribution import RowDistribution
from montecarlo.names import NONE
from montecarlo.report.content.training import TrainingView, training_lines
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.matrices import draw_matrices
from montecarlo.study.rows import Row
from montecarlo.study.table import read_table, write_table

FOLDER = "curves"
#: Names of the kinds of curves.
JACOBIAN_ROWS = "rows_jacobian_frobenius"
EXAMPLE = "example_weight"
TRAINING_START = "training_start"
_POINT = ("distribution_q", "distribution_k", "dependence", "initialisation", "d_k")
_ROWS = (*_POINT, "n_keys", "divisor")
#: The columns for each kind; docs/results-folder.md defines them.
CURVES = {
    JACOBIAN_ROWS: (*_ROWS, "jacobian_frobenius", "share_of_rows", "std_error"),
    EXAMPLE: (*_ROWS, "weight_number", "weight"),
    TRAINING_START: (
        *("d_k", "optimiser", "arm", "summary", "n_seeds"),
        *("first_gradient", "steps"),
    ),
}
CURVE_FILES = tuple(f"{FOLDER}/{name}.csv" for name in CURVES)
#: Kind of curve, a key of `CURVES` -> its table, with a line for each point of a curve.
CurveTables = Mapping[str, pd.DataFrame]
#: Lines of a table, each a tuple with a value for every column.
Lines = Iterator[tuple[object, ...]]

#: Approximate number of points on a curve over attention rows.
ROWS_BINS = 100
#: Design point, number of queries and divisors of the example weights.
EXAMPLE_POINT = parse_point("gaussian", "gaussian", 64, 128)
EXAMPLE_QUERIES, EXAMPLE_DIVISORS = 10, ("none", "sqrt")


def make_curves(
    results: StudyResults, training: TrainingView | None = None
) -> CurveTables:
    """Return the tables of curves of a study's results: name in `CURVES` -> DataFrame.

    Parameters
    ----------
    results : StudyResults
    training : TrainingView, optional
        Record of training; without it the table `TRAINING_START` is empty.
    """
    lines: Mapping[str, Lines] = {
        JACOBIAN_ROWS: row_distributions(results.distributions),
        EXAMPLE: example_weights(results.study.seed),
        TRAINING_START: training_lines(training) if training else iter(()),
    }
    return {
        name: pd.DataFrame.from_records([*lines[name]], columns=[*columns])
        for name, columns in CURVES.items()
    }


def row_distributions(distributions: Mapping[Row, RowDistribution]) -> Lines:
    """Yield the lines of the table `JACOBIAN_ROWS`: distributions of the Jacobian norm.

    A line has a design point and a divisor, an edge of a bin, the share of attention
    rows whose norm is at most this edge, and the standard error of the share.  Of 200
    or more edges only every k-th is used, at least `ROWS_BINS` in all.
    """
    for (point, key), rows in distributions.items():
        for at in range(0, len(rows.edges), max(1, len(rows.edges) // ROWS_BINS)):
            numbers = rows.edges[at], rows.share[at], rows.error[at]
            yield (*_point_key(point), point.n_keys, key.divisor, *map(float, numbers))


def example_weights(seed: int) -> Lines:
    """Yield the lines of the table `EXAMPLE`: attention weights of ten sampled queries.

    They are those of replicate 0 at `EXAMPLE_POINT`, undivided and then divided by
    sqrt(d_k).  For each divisor, ``weight_number`` counts the weights from 0, query
    after query.  The queries are evenly spaced in the order of their largest undivided
    weight.  If the study of this seed has that point, its estimates are from the same
    random numbers.
    """
    q, k = draw_matrices(EXAMPLE_POINT, seed, 0)
    scores = widen(q) @ widen(k).T
    by_largest = weight_max(softmax_rows(measure_gaps(scores), 1.0).sums).argsort()
    middles = (2 * np.arange(EXAMPLE_QUERIES) + 1) * len(q) // (2 * EXAMPLE_QUERIES)
    gaps = measure_gaps(scores[np.sort(by_largest[middles])])
    for divisor in EXAMPLE_DIVISORS:
        rows = softmax_rows(gaps, DIVISORS[divisor].value(EXAMPLE_POINT.d_k))
        for number, weight in enumerate(weights_in_order(rows).ravel().tolist()):
            named = *_point_key(EXAMPLE_POINT), EXAMPLE_POINT.n_keys, divisor
            yield *named, number, weight


def _point_key(point: DesignPoint) -> tuple[str | int, ...]:
    """Return the values of the columns `_POINT`, which identify a design point.

    Such as ``("gaussian", "gaussian", "none", "none", 64)``.
    """
    distribution_q, distribution_k, _, dependence, initialisation, _ = point.names
    names = distribution_q, distribution_k, dependence, initialisation or NONE
    return *names, point.d_k


def write_curves(curves: CurveTables, folder: Path) -> None:
    """Write each table of curves as a CSV file into the subfolder `FOLDER`.

    A table without lines becomes a file with a header alone.
    """
    (folder / FOLDER).mkdir(exist_ok=True)
    for name, table in curves.items():
        write_table(table, folder / FOLDER / f"{name}.csv")


def read_curves(folder: Path) -> CurveTables:
    """Return the tables that `write_curves` wrote: name in `CURVES` -> DataFrame.

    Empty cells become NaN, and so does ``none`` as an ``initialisation``.
    """
    return {name: read_table(folder / FOLDER / f"{name}.csv") for name in CURVES}

"""What figures show that is no single number: curves, a table of a kind each.

Tables are made of results, of theory and of what ships with the program, written to
files in `FOLDER`, and read back by who draws.
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
#: The kinds, by name.
JACOBIAN_ROWS = "rows_jacobian_frobenius"
EXAMPLE = "example_weight"
TRAINING_START = "training_start"
_POINT = ("distribution_q", "distribution_k", "dependence", "initialisation", "d_k")
_ROWS = (*_POINT, "n_keys", "divisor")
#: The columns of each kind; docs/results-folder.md says what they are.
CURVES = {
    JACOBIAN_ROWS: (*_ROWS, "jacobian_frobenius", "share_of_rows", "std_error"),
    EXAMPLE: (*_ROWS, "weight_number", "weight"),
    TRAINING_START: (
        *("d_k", "optimiser", "arm", "summary", "n_seeds"),
        *("first_gradient", "steps"),
    ),
}
CURVE_FILES = tuple(f"{FOLDER}/{name}.csv" for name in CURVES)
#: Tables by kind.
Curves = Mapping[str, pd.DataFrame]

#: About how many points a curve over rows has.
ROWS_BINS = 100
#: A few rows as they were drawn: weights are counted row by row, from 0.
EXAMPLE_POINT = parse_point("gaussian", "gaussian", 64, 128)
EXAMPLE_QUERIES, EXAMPLE_DIVISORS = 10, ("none", "sqrt")


def make_curves(results: StudyResults, training: TrainingView | None = None) -> Curves:
    """Make all curves of a study; without what training says, none of that."""
    lines: Mapping[str, Iterator[tuple[object, ...]]] = {
        JACOBIAN_ROWS: row_distributions(results.distributions),
        EXAMPLE: example_weights(results.study.seed),
        TRAINING_START: training_lines(training) if training else iter(()),
    }
    return {
        name: pd.DataFrame.from_records([*lines[name]], columns=[*columns])
        for name, columns in CURVES.items()
    }


def row_distributions(
    found: Mapping[Row, RowDistribution],
) -> Iterator[tuple[object, ...]]:
    """Yield the share of rows up to a value, with its error between replicates."""
    for (point, key), rows in found.items():
        for at in range(0, len(rows.edges), max(1, len(rows.edges) // ROWS_BINS)):
            numbers = rows.edges[at], rows.share[at], rows.error[at]
            yield (*_named(point), point.n_keys, key.divisor, *map(float, numbers))


def example_weights(seed: int) -> Iterator[tuple[object, ...]]:
    """Yield weights of some queries of a replicate, unscaled and scaled.

    Taken evenly by their largest weight, unscaled: as typical as the replicate is.  The
    seed is the study's; the draws are those that its estimates are made of, where its
    grid has the point.
    """
    q, k = draw_matrices(EXAMPLE_POINT, seed, 0)
    scores = widen(q) @ widen(k).T
    by_largest = weight_max(softmax_rows(measure_gaps(scores), 1.0).sums).argsort()
    middles = (2 * np.arange(EXAMPLE_QUERIES) + 1) * len(q) // (2 * EXAMPLE_QUERIES)
    gaps = measure_gaps(scores[np.sort(by_largest[middles])])
    for divisor in EXAMPLE_DIVISORS:
        rows = softmax_rows(gaps, DIVISORS[divisor].value(EXAMPLE_POINT.d_k))
        for number, weight in enumerate(weights_in_order(rows).ravel().tolist()):
            named = *_named(EXAMPLE_POINT), EXAMPLE_POINT.n_keys, divisor
            yield *named, number, weight


def _named(point: DesignPoint) -> tuple[str | int, ...]:
    """Return the names and the d_k of a point without normalisation and mask."""
    distribution_q, distribution_k, _, dependence, initialisation, _ = point.names
    names = distribution_q, distribution_k, dependence, initialisation or NONE
    return *names, point.d_k


def write_curves(curves: Curves, folder: Path) -> None:
    """Write the file of each kind; one without points has a header alone.

    ``folder`` is there, and `FOLDER` is made in it.
    """
    (folder / FOLDER).mkdir(exist_ok=True)
    for name, table in curves.items():
        write_table(table, folder / FOLDER / f"{name}.csv")


def read_curves(folder: Path) -> Curves:
    """Read the files that `write_curves` writes; what is empty is missing."""
    return {name: read_table(folder / FOLDER / f"{name}.csv") for name in CURVES}

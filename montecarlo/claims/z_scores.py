"""A self-check of the simulator: z scores of estimates against exact values.

A z score is the difference between an estimate and its reference, over the standard
error of both.  It is transformed from Student's t, with the degrees of freedom of its
replicates, to the normal distribution.  Rows of one point share their draws, so their z
scores are dependent.  The largest one is compared with Bonferroni's bound, which holds
for any dependence.  The mean square is compared with a chi-square distribution as if
all z scores of a point were equal, the strongest possible dependence: of N z scores, n
of them at each point, it has N²/Σn² degrees of freedom.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from msgspec import Struct
from scipy.special import chdtri, gammaincinv, ndtri, stdtr

from montecarlo.attention.quantities import QUANTITIES
from montecarlo.attention.softmax import Array
from montecarlo.claims.verdicts import Outcome
from montecarlo.estimation.summaries import RowKey, has_interval
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.rare_events import OVERFLOW
from montecarlo.study.measured import COLUMNS, IDENTITY
from montecarlo.study.rows import Row

#: Probability that a correct simulator is refuted: a quarter for each side of the
#: largest z score and of the mean square.
FALSE_ALARM = 1e-4
#: Least number of replicates, and of expected rows on either side of a share.
FEWEST = 32
#: Smallest tail probability; larger distances are z scores of 37.
LEAST = 1e-300
NUMBERS = COLUMNS[len(IDENTITY) : -1]
POINT = [*IDENTITY[: IDENTITY.index("n_queries")], "n_keys"]


#: Rows with a reference that are sampled for the self-check: at no cost for pairs, and
#: at little cost for attention rows.
OF_PAIRS = (
    *("entry_variance_q", "entry_variance_k", "score_mean", "score_variance"),
    *("score_abs", "score_distribution_gap"),
)
OF_ROWS = (
    RowKey("none", "score_max", "mean"),
    RowKey("sqrt", "element_gradient", "mean"),
    *(RowKey("none", "weight_max", one) for one in ("mean", "median", "q90")),
)


def reference_rows(points: Iterable[DesignPoint]) -> Iterator[Row]:
    """Yield (point, row key) of estimates with exact values, for the self-check.

    ``points`` are those that are sampled anyway.  A point that samples pairs of a query
    and a key has the quantities `OF_PAIRS`, which cost nothing more, if they have an
    interval there.  A point with attention rows has `OF_ROWS` if its entries are
    independent and Gaussian, otherwise none.
    """
    for point in points:
        if not point.has_rows:
            for name in OF_PAIRS:
                if has_interval(point, name):
                    yield point, RowKey("none", name, "value")
        elif point.label == "gaussian" and point.is_independent:
            yield from ((point, key) for key in OF_ROWS)


class ZScores(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Outcome of the self-check on z scores, and its statistics.

    If there are no z scores, the outcome is not applicable, and all numbers are 0.
    """

    outcome: Outcome
    #: probability that a correct simulator is refuted
    false_alarm: float
    #: number of z scores
    number: int
    #: number of their design points
    points: int
    #: of all z scores; 0 if there are none
    mean_square: float
    #: bounds on it for a correct simulator
    mean_square_low: float
    mean_square_high: float
    #: largest absolute value
    largest: float
    #: bound on it for a correct simulator
    largest_limit: float


def judge_z_scores(measurements: pd.DataFrame) -> ZScores:
    """Return the outcome of the self-check on z scores of a finished study.

    ``measurements`` has the columns of measurements.csv.  The outcome is not applicable
    if no line of it has a z score.
    """
    scores = z_scores(measurements)
    outcome, numbers = Outcome.NOT_APPLICABLE, (0.0,) * 5
    if not scores.empty:
        z = scores["z"].to_numpy()
        sizes = np.asarray(scores.groupby("point").size(), dtype=np.float64)
        low, high = mean_square_limits(sizes)
        mean_square, largest = float(np.square(z).mean()), float(np.abs(z).max())
        limit = largest_limit(len(z))
        inside = low <= mean_square <= high and largest <= limit
        outcome = Outcome.SUPPORTED if inside else Outcome.REFUTED
        numbers = mean_square, low, high, largest, limit
    names = ZScores.__struct_fields__[4:]
    return ZScores(
        outcome=outcome,
        false_alarm=FALSE_ALARM,
        number=len(scores),
        points=scores["point"].nunique(),
        **{n: float(f"{x:.6g}") for n, x in zip(names, numbers, strict=True)},
    )


def largest_limit(number: int) -> float:
    """Return the bound on the largest absolute value of ``number`` z scores.

    A correct simulator exceeds it with probability of at most `FALSE_ALARM` / 2.
    """
    return float(-ndtri(FALSE_ALARM / 4.0 / number))


def mean_square_limits(sizes: Array) -> tuple[float, float]:
    """Return lower and upper bounds on the mean square of z scores.

    A correct simulator violates each with probability `FALSE_ALARM` / 4.

    Parameters
    ----------
    sizes : ndarray, shape (n_points,)
        Number of z scores at each design point.
    """
    degrees = sizes.sum() ** 2 / np.square(sizes).sum()
    least = 2.0 * gammaincinv(degrees / 2.0, FALSE_ALARM / 4.0)
    return float(least / degrees), float(chdtri(degrees, FALSE_ALARM / 4.0) / degrees)


def z_scores(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the z scores of a table of measurements: estimates against exact values.

    Parameters
    ----------
    measurements : DataFrame
        With the columns of measurements.csv.

    Returns
    -------
    DataFrame
        Columns ``point``, a number for each design point, and ``z``: estimate minus
        exact value, divided by the error of both, transformed from Student's t to the
        standard normal.

    Notes
    -----
    A line of the table has a z score if it has an exact value, a positive standard
    error and a bounded interval.  It must also have at least `FEWEST` replicates, since
    few draws would determine mean and standard error; overflow probabilities need not.
    For a share, at least `FEWEST` rows must be expected on either side.

    The standard error of a quantile is half the width of its interval, which is rounded
    outwards to whole bins.  Its z scores are therefore too small for wide bins.  The
    standard error of a share is at least the binomial one at the exact value.
    """
    # a table without rows has no column types
    measurements = measurements.astype(dict.fromkeys(NUMBERS, np.float64))
    ends = measurements["ci_low"], measurements["ci_high"]
    known = measurements["reference"].notna() & measurements["std_error"].gt(0.0)
    # each replicate of an overflow probability, a block, has many independent draws
    by_draws = measurements["quantity"].eq(OVERFLOW)
    known &= by_draws | measurements["n_replicates"].ge(FEWEST)
    drawn = _drawn_rows(measurements)
    share = measurements["reference"].where(drawn.notna())
    known &= ~(drawn * share.clip(upper=1.0 - share)).lt(FEWEST)
    rows = measurements[known & np.isfinite(ends[0]) & np.isfinite(ends[1])]
    # too few hits by chance make both the share and its standard error too small
    binomial = np.sqrt(share * (1.0 - share) / drawn)[rows.index]
    error = rows["std_error"].where(~rows["std_error"].lt(binomial), binomial)
    error = np.hypot(error, rows["reference_error"].fillna(0.0))
    distance = ((rows["estimate"] - rows["reference"]) / error).to_numpy()
    degrees = np.where(by_draws[rows.index], np.inf, rows["n_replicates"] - 1.0)
    tail = np.maximum(stdtr(degrees, -np.abs(distance)), LEAST)
    point = rows.groupby(POINT, dropna=False).ngroup()
    return pd.DataFrame({"point": point, "z": np.copysign(ndtri(tail), distance)})


def _drawn_rows(measurements: pd.DataFrame) -> "pd.Series[float]":
    """Return how many attention rows were drawn for each line of a table.

    NaN for a line that is not a share of rows.  The index is that of the table.
    """
    names = measurements["quantity"].unique()
    indicators = [
        name for name in names if name in QUANTITIES and QUANTITIES[name].indicator
    ]
    drawn = measurements["n_replicates"] * measurements["n_queries"].astype(float)
    return drawn.where(measurements["quantity"].isin(indicators))

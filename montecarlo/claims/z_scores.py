"""The self-check on references: how far estimates lie from exact values.

A z score is the distance of an estimate from its reference over the standard error of
both, brought from Student's t, of as many degrees of freedom as its replicates leave,
to the normal distribution.  Rows of one point share their draws, so their z scores are
dependent.  The largest is held against Bonferroni's bound, which no dependence breaks.
The mean square is held against a chi-square distribution as if all z scores of a point
were the same number, which is the most that they can depend on each other: of N z
scores, n of them at each point, it has N²/Σn² degrees of freedom.
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

#: Probability that a right simulator is refuted: a quarter for each side of the largest
#: and of the mean square.
FALSE_ALARM = 1e-4
#: Replicates that an estimate has at least, and rows of a share on either side.
FEWEST = 32
#: The least tail probability that is told from 0: a z score of 37 is one of 37 or more.
LEAST = 1e-300
NUMBERS = COLUMNS[len(IDENTITY) : -1]
POINT = [*IDENTITY[: IDENTITY.index("n_queries")], "n_keys"]


#: Rows with a reference that are sampled for this: of pairs they cost nothing, and of
#: rows little beside what else is asked of a point.
OF_PAIRS = (
    *("entry_variance_q", "entry_variance_k", "score_mean", "score_variance"),
    *("score_abs", "score_distribution_gap"),
)
OF_ROWS = (
    RowKey("none", "score_max", "mean"),
    RowKey("sqrt", "element_gradient", "mean"),
    *(RowKey("none", "weight_max", one) for one in ("mean", "median", "q90")),
)


def name_references(points: Iterable[DesignPoint]) -> Iterator[Row]:
    """Name rows to hold against exact values, of points that are sampled anyhow."""
    for point in points:
        if not point.has_rows:
            for name in OF_PAIRS:
                if has_interval(point, name):
                    yield point, RowKey("none", name, "value")
        elif point.label == "gaussian" and point.is_independent:
            yield from ((point, key) for key in OF_ROWS)


class ZScores(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the distances to exact values came out: a self-check."""

    #: how it came out
    outcome: Outcome
    #: how often a right simulator is refuted
    false_alarm: float
    #: of z scores
    number: int
    #: design points that they are of
    points: int
    #: of all z scores; 0: there are none
    mean_square: float
    #: the least that a right simulator has
    mean_square_low: float
    #: the largest
    mean_square_high: float
    #: the largest of them
    largest: float
    #: the largest that a right simulator has
    largest_limit: float


def judge_z_scores(measurements: pd.DataFrame) -> ZScores:
    """Judge how far the estimates of a finished study lie from exact values.

    ``measurements`` has the columns of measurements.csv.
    """
    scores = z_scores(measurements)
    if scores.empty:
        outcome, numbers = Outcome.NOT_APPLICABLE, np.zeros(5)
    else:
        z = scores["z"].to_numpy()
        sizes = np.asarray(scores.groupby("point").size(), dtype=np.float64)
        low, high = mean_square_limits(sizes)
        found = [np.square(z).mean(), low, high, np.abs(z).max(), largest_limit(len(z))]
        inside = low <= found[0] <= high and found[3] <= found[4]
        outcome = Outcome.SUPPORTED if inside else Outcome.REFUTED
        numbers = np.array(found)
    names = ZScores.__struct_fields__[4:]
    return ZScores(
        outcome=outcome,
        false_alarm=FALSE_ALARM,
        number=len(scores),
        points=scores["point"].nunique(),
        **{n: float(f"{x:.6g}") for n, x in zip(names, numbers, strict=True)},
    )


def largest_limit(number: int) -> float:
    """Return what none of so many z scores of a right simulator exceeds."""
    return float(-ndtri(FALSE_ALARM / 4.0 / number))


def mean_square_limits(sizes: Array) -> tuple[float, float]:
    """Return the least and the largest mean square of a right simulator.

    ``sizes`` are the numbers of z scores by point.
    """
    degrees = sizes.sum() ** 2 / np.square(sizes).sum()
    least = 2.0 * gammaincinv(degrees / 2.0, FALSE_ALARM / 4.0)
    return float(least / degrees), float(chdtri(degrees, FALSE_ALARM / 4.0) / degrees)


def z_scores(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the z scores of a table of measurements.

    Parameters
    ----------
    measurements : DataFrame
        With the columns of measurements.csv.

    Returns
    -------
    DataFrame
        ``point`` (a number) and ``z``, for each row that has an exact value, `FEWEST`
        replicates and a bounded interval: of rare draws neither a mean nor its error is
        known.  Of a share, so many rows must be expected on either side.

    Notes
    -----
    The standard error of a quantile is half the width of its interval, which is rounded
    outwards to whole bins: its z scores are the smaller, the wider bins are.  That of a
    share is at least the binomial one at the exact value.
    """
    # a table without rows has no types
    measurements = measurements.astype(dict.fromkeys(NUMBERS, np.float64))
    ends = measurements["ci_low"], measurements["ci_high"]
    known = measurements["reference"].notna() & measurements["std_error"].gt(0.0)
    # the error of an overflow probability is that of its draws: a block has many
    by_draws = measurements["quantity"].eq(OVERFLOW)
    known &= by_draws | measurements["n_replicates"].ge(FEWEST)
    drawn = _drawn_rows(measurements)
    share = measurements["reference"].where(drawn.notna())
    known &= ~(drawn * share.clip(upper=1.0 - share)).lt(FEWEST)
    rows = measurements[known & np.isfinite(ends[0]) & np.isfinite(ends[1])]
    # few rows by chance make a standard error that is too small with their share
    binomial = np.sqrt(share * (1.0 - share) / drawn)[rows.index]
    error = rows["std_error"].where(~rows["std_error"].lt(binomial), binomial)
    error = np.hypot(error, rows["reference_error"].fillna(0.0))
    distance = ((rows["estimate"] - rows["reference"]) / error).to_numpy()
    degrees = np.where(by_draws[rows.index], np.inf, rows["n_replicates"] - 1.0)
    tail = np.maximum(stdtr(degrees, -np.abs(distance)), LEAST)
    point = rows.groupby(POINT, dropna=False).ngroup()
    return pd.DataFrame({"point": point, "z": np.copysign(ndtri(tail), distance)})


def _drawn_rows(measurements: pd.DataFrame) -> "pd.Series[float]":
    """Return how many rows of attention a share is of, NaN for what is none."""
    names = measurements["quantity"].unique()
    indicators = [
        name for name in names if name in QUANTITIES and QUANTITIES[name].indicator
    ]
    drawn = measurements["n_replicates"] * measurements["n_queries"].astype(float)
    return drawn.where(measurements["quantity"].isin(indicators))

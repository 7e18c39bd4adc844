"""The z scores of a finished study, judged: how far estimates lie from exact values.

In: the table of measurements.  Out: root mean square and largest of its z scores, over
all of them, for each family of quantities and for each distribution, with the limits
that a right simulator exceeds anywhere in nominally one study of ten thousand.

A z score is a distance in standard errors, brought from Student's t, of as many degrees
of freedom as its replicates leave, to the normal distribution.  z scores of one point
share their draws and those of different points share none, so a mean square of N
scores, n of them in each point, has the variance 2 ρ Σ n²/N².  ρ is 1 where those of a
point all say the same; what it is, is counted on clean seeds and kept beside this
module, as is how often large scores occur (`studies.z_counts`).  The mean square
then is compared with a chi-square of N²/(ρ Σ n²) degrees of freedom.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from msgspec import Struct
from scipy.special import chdtri, gammaincinv, ndtri, stdtr

from montecarlo.attention.quantities import PAIR_QUANTITIES, QUANTITIES, is_indicator
from montecarlo.claims.verdicts import Verdict
from montecarlo.estimation.engine import OVERFLOW

#: Probability that the z scores of a right simulator are called wrong: half of it is
#: spent on the largest, half on the root mean squares of all groups, both sides.
FALSE_ALARM = 1e-4
COUNTS = Path(__file__).with_name("z_counts.json")
#: Families of quantities, in the order of the record.
FAMILIES = ("entries", "scores", "weights", "gradients", "shares")
#: Replicates that a judged estimate has at least: none on the clean seeds had fewer.
FEWEST = 32
#: The least tail probability that is told from 0: a z score of 37 is one of 37 or more.
LEAST = 1e-300
NUMBERS = ("estimate", "std_error", "ci_low", "ci_high", "n_replicates", "reference")
POINT = [
    "distribution_q",
    "distribution_k",
    "normalisation",
    "dependence",
    "initialisation",
    "d_k",
    "n_keys",
]


class Scatter(Struct, frozen=True):
    """How the z scores of a family scattered on clean seeds.

    Attributes
    ----------
    scores : int
        Counted, over all seeds.
    mean_square : float
    dependence : float
        ρ: by how much those of a point repeat each other.
    """

    scores: int
    mean_square: float
    dependence: float


class Counts(Struct, frozen=True):
    """What was counted on clean seeds.

    Attributes
    ----------
    preset : str
    seeds : tuple of int
    rows : str
        Fingerprint of the rows that had z scores: see `fingerprint_rows`.
    beyond : tuple of (float, float)
        Two-sided tail probabilities, and the share of z scores beyond them.
    scatter : dict
        Of each family, and of ``all``.
    """

    preset: str
    seeds: tuple[int, ...]
    rows: str
    beyond: tuple[tuple[float, float], ...]
    scatter: dict[str, Scatter]


@cache
def read_counts() -> Counts:
    """Read what was counted on clean seeds."""
    return msgspec.json.decode(COUNTS.read_bytes(), type=Counts)


def family_of(quantity: str) -> str:
    """Name the family of a quantity: one of `FAMILIES`."""
    if quantity.startswith("entry_"):
        return "entries"
    if quantity not in QUANTITIES or is_indicator(quantity):
        return "shares"
    if quantity in PAIR_QUANTITIES or quantity.startswith("score_"):
        return "scores"
    slopes = ("jacobian_", "gradient_", "element_gradient")
    return "gradients" if quantity.startswith(slopes) else "weights"


def z_scores(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the z scores of a table of measurements.

    Parameters
    ----------
    measurements : DataFrame
        With the columns of measurements.csv.

    Returns
    -------
    DataFrame
        ``point`` (a number), ``family``, ``distribution`` and ``z``, for each row that
        has an exact value, `FEWEST` replicates and a bounded interval: of rare draws
        neither a mean nor its error is known.  Of a share, so many rows must be
        expected on either side of the threshold.

    Notes
    -----
    The standard error of a quantile is half the width of its interval, which inverts
    that of the distribution function and is rounded outwards to whole bins: its z
    scores are the smaller, the wider bins are.  That of a share is at least the
    binomial one at the exact value.
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
    distance = ((rows["estimate"] - rows["reference"]) / error).to_numpy()
    degrees = np.where(by_draws[rows.index], np.inf, rows["n_replicates"] - 1.0)
    tail = np.maximum(stdtr(degrees, -np.abs(distance)), LEAST)
    same = rows["distribution_q"].eq(rows["distribution_k"])
    return pd.DataFrame(
        {
            "point": rows.groupby(POINT, dropna=False).ngroup(),
            "family": rows["quantity"].map(family_of),
            "distribution": rows["distribution_q"].where(
                same, rows["distribution_q"] + " * " + rows["distribution_k"]
            ),
            "z": np.copysign(ndtri(tail), distance),
        }
    )


def _drawn_rows(measurements: pd.DataFrame) -> "pd.Series[float]":
    """Return how many rows of attention a share is of, NaN for what is none."""
    names = measurements["quantity"].unique()
    indicators = [name for name in names if name in QUANTITIES and is_indicator(name)]
    is_share = measurements["quantity"].isin(indicators)
    drawn = measurements["n_replicates"] * measurements["n_queries"].astype(float)
    return drawn.where(is_share)


class ZGroup(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The z scores of a family of quantities, of a distribution, or all."""

    #: `all`, `family` or `distribution`
    kind: str
    #: of the family or distribution; empty: all
    name: str
    #: of z scores
    number: int
    #: design points that they are of
    points: int
    #: root mean square
    rms: float
    #: the least that a right simulator has
    rms_low: float
    #: the largest
    rms_high: float
    #: the largest of them
    largest: float
    #: how it came out
    verdict: Verdict


class ZSeeds(Struct, frozen=True, forbid_unknown_fields=True):
    """How many clean seeds the limits of z scores were counted on, of which preset."""

    #: what was sampled
    preset: str
    #: how often
    seeds: int


class ZScores(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the distances to exact values came out, as a self-check of its own."""

    #: how it came out
    verdict: Verdict
    #: how often a right simulator is refuted
    false_alarm: float
    #: of all z scores; null: there are none
    largest_limit: float | None
    #: what the limits rest on
    counted: ZSeeds
    #: that of all z scores first
    groups: tuple[ZGroup, ...]

    def count(self, verdict: str) -> int:
        """Count the groups that came out so."""
        return sum(group.verdict == verdict for group in self.groups)


def judge_z_scores(measurements: pd.DataFrame, counts: Counts | None = None) -> ZScores:
    """Judge the z scores of a finished study.

    Parameters
    ----------
    measurements : DataFrame
        As for `z_scores`.
    counts : Counts, optional
        By default those that are kept.

    Returns
    -------
    ZScores
    """
    counts = counts or read_counts()
    scores = z_scores(measurements)
    groups = list(groups_of(scores)) if len(scores) else []
    limit = largest_limit(len(scores), counts) if groups else None
    each = FALSE_ALARM / 2.0 / max(1, len(groups))
    found = [_judge(*group, each, limit or 0.0, counts) for group in groups]
    failing = [one for one in found if one.verdict == Verdict.REFUTED]
    verdict = Verdict.REFUTED if failing else Verdict.SUPPORTED
    return ZScores(
        verdict=verdict if groups else Verdict.NOT_MEASURED,
        false_alarm=FALSE_ALARM,
        largest_limit=limit,
        counted=ZSeeds(counts.preset, len(counts.seeds)),
        groups=tuple(found),
    )


def groups_of(scores: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield kind, name and z scores of each group, all of them first."""
    yield "all", "", scores
    for family in FAMILIES:
        if len(rows := scores[scores["family"].eq(family)]):
            yield "family", family, rows
    for distribution, rows in scores.groupby("distribution", sort=False):
        yield "distribution", str(distribution), rows


def largest_limit(number: int, counts: Counts) -> float:
    """Return what no z score of so many exceeds, but in half of the false alarms.

    Notes
    -----
    Bonferroni's bound, which no dependence breaks, on the probability of one z score to
    be so large.  That is larger than a normal one's, as means of skewed replicates are
    not normal: the excess is a power of the normal probability, fitted through what was
    counted at the levels of `Counts`.
    """
    wanted = np.log(FALSE_ALARM / 2.0 / number)
    nominal, counted = np.log(np.array(counts.beyond)).T
    slope, height = np.polyfit(nominal, counted, 1)
    # never smaller than a normal one's
    level = min(float((wanted - height) / min(slope, 1.0)), float(wanted))
    return float(-ndtri(max(np.exp(level), LEAST) / 2.0))


def rms_limits(
    sizes: np.ndarray[Any, Any], scatter: Scatter, error_rate: float
) -> tuple[float, float]:
    """Return the least and largest root mean square that a right simulator has.

    Parameters
    ----------
    sizes : ndarray
        z scores of each point.
    scatter : Scatter
    error_rate : float
        Of both sides together.
    """
    degrees = sizes.sum() ** 2 / (scatter.dependence * np.square(sizes).sum())
    least = 2.0 * gammaincinv(degrees / 2.0, error_rate / 2.0)
    most = chdtri(degrees, error_rate / 2.0)
    unit = scatter.mean_square / degrees
    return float(np.sqrt(least * unit)), float(np.sqrt(most * unit))


def _judge(  # noqa: PLR0913, PLR0917 - a group, and what it is held against
    kind: str,
    name: str,
    scores: pd.DataFrame,
    error_rate: float,
    limit: float,
    counts: Counts,
) -> ZGroup:
    sizes = scores.groupby("point").size().to_numpy(dtype=np.float64)
    scatter = scatter_of(name, counts.scatter)
    low, high = rms_limits(sizes, scatter, error_rate)
    rms = float(np.sqrt(np.square(scores["z"]).mean()))
    largest = float(scores["z"].abs().max())
    inside = low <= rms <= high and largest <= limit
    numbers = {"rms": rms, "rms_low": low, "rms_high": high, "largest": largest}
    return ZGroup(
        kind=kind,
        name=name,
        number=len(scores),
        points=len(sizes),
        **{key: float(f"{value:.6g}") for key, value in numbers.items()},
        verdict=Verdict.SUPPORTED if inside else Verdict.REFUTED,
    )


def scatter_of(name: str, scatter: Mapping[str, Scatter]) -> Scatter:
    """Return the scatter of a family; of a distribution, that of all z scores."""
    return scatter.get(name, scatter["all"])

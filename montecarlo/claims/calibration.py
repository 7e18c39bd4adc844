"""Calibration of the judge's intervals: how often they miss, and which rate to state.

``python -m studies.calibration`` counts misses in trials and writes the record,
calibration.toml: for each kind of interval, how much its rate of misses exceeds the
stated one.
"""

import math
from functools import cache
from typing import Any

from montecarlo.attention.quantities import (
    PAIR_QUANTITIES,
    QUANTILE_RATIO,
    QUANTITIES,
    quantile_level,
)
from montecarlo.claims.checks import Check
from montecarlo.claims.outcomes import Calibration
from montecarlo.claims.recorded import RECORDED
from montecarlo.small_files import read_package_toml

#: Kind of intervals that provably miss no more often than stated: binomial ones and
#: order statistics of independent runs.
EXACT = "exact"
#: Kind of means of the costly quantities `FEW_ROWS`.  They are evaluated for few rows
#: of a replicate (at most four for 2048 keys), so replicates are more skewed.
OF_FEW_ROWS = "mean of few rows"
FEW_ROWS = ("jacobian_spectral", "element_gradient")
#: Kind of the kurtosis of pairs, which depends on few large scores.
KURTOSIS = "kurtosis"


@cache
def read_calibration() -> dict[str, Any]:
    """Return the calibration record: how often intervals missed the value in trials.

    Returns
    -------
    dict
        ``rate``: one-sided error rate that the intervals stated.  ``times``: the
        largest ratio of observed to stated misses at that rate, over all kinds of
        intervals.  ``growth``: kind of interval -> its correction, a number of at least
        0; see `nominal_rate`.
    """
    return read_package_toml("claims/calibration.toml")


def interval_kind(check: Check) -> str:
    """Return the kind of interval by which a check is judged, such as ``quantile``.

    It is a key of ``growth`` in the calibration record, or `EXACT`.
    """
    if check.quantity in RECORDED:
        return EXACT
    if check.along_d_k or check.quantity in PAIR_QUANTITIES:
        value = KURTOSIS if check.quantity == "score_excess_kurtosis" else "pairs"
        return "slope" if check.along_d_k else value
    if check.summary == QUANTILE_RATIO or quantile_level(check.summary) is not None:
        return "quantile ratio" if check.summary == QUANTILE_RATIO else "quantile"
    if check.quantity in FEW_ROWS:
        return OF_FEW_ROWS
    if check.summary == "mean" and "/" in check.divisor:
        return "divisor ratio"
    return "share" if QUANTITIES[check.quantity].indicator else "mean"


def nominal_rate(target: float, kind: str) -> float:
    """Return the rate at which to compute intervals, so that they miss at ``target``.

    Intervals from few replicates miss more often than they state.  So they must state a
    smaller rate than is allowed.

    Parameters
    ----------
    target : float
        Largest one-sided rate of misses, between 0 and 1.
    kind : str
        Kind of interval: a key of ``growth`` in the record, or `EXACT`.

    Returns
    -------
    float
        One-sided error rate: below ``target``, or equal to it for `EXACT` and for kinds
        whose ``growth`` is 0.

    Notes
    -----
    Means of few replicates are not normal.  Intervals correct for the skewness, the
    first term of the Cornish-Fisher expansion.  The next term shifts the quantile z by
    a multiple of z³, and so the logarithm of a rate by a multiple of z⁴, which is
    nearly the square of that logarithm: ln(actual / stated) = growth · ln(actual)².
    This exceeds any power law.
    """
    growth = 0.0 if kind == EXACT else read_calibration()["growth"][kind]
    return target * math.exp(-growth * math.log(target) ** 2)


def calibrate(share: float) -> Calibration:
    """Return the summary of calibration that claims.json stores.

    ``share`` is the error rate of one end of an interval.  ``divided_by`` maps each
    kind of interval, such as ``mean``, to ``share`` / `nominal_rate`, a number of at
    least 1, rounded to three significant digits.
    """
    record = read_calibration()
    factors = {
        kind: float(f"{share / nominal_rate(share, kind):.3g}")
        for kind in (*record["growth"], EXACT)
    }
    return Calibration(rate=record["rate"], times=record["times"], divided_by=factors)

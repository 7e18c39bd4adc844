"""How often the judge's intervals miss, and what rate to state for one that is wanted.

``python -m studies.calibration`` counts misses and makes the record, calibration.toml:
for each kind of interval by how much the rate of its misses grows beyond a stated one.
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

#: The kind of intervals that need not be counted, as they miss no more often than
#: stated: binomial ones, and order statistics, of runs that are independent.
EXACT = "exact"
#: The kind of means of what few rows of a replicate are evaluated for, as each is
#: costly, and these quantities: of 2048 keys at most four rows, so that replicates are
#: more skewed.
OF_FEW_ROWS = "mean of few rows"
FEW_ROWS = ("jacobian_spectral", "element_gradient")
#: That of a kurtosis of pairs, which hangs on few large scores.
KURTOSIS = "kurtosis"


@cache
def read_calibration() -> dict[str, Any]:
    """Read the record: a rate, how often the worst missed at it, growth by kind."""
    return read_package_toml("claims/calibration.toml")


def kind_of(check: Check) -> str:
    """Return the kind of the interval that a check is judged by, as in the table.

    A share above a mean is judged by an interval of that mean.
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


def nominal_rate(wanted: float, kind: str) -> float:
    """Return the one-sided rate to state, so that no interval misses more often.

    Parameters
    ----------
    wanted : float
        Between 0 and 1.
    kind : str
        Of the interval: one of the record, or `EXACT`.

    Notes
    -----
    Means of few replicates are not normal.  Of the expansion of their distribution
    (Cornish and Fisher) intervals undo the skewness; the next term moves the quantile z
    by a multiple of its cube, hence the logarithm of a rate by a multiple of z to the
    fourth power, which is nearly the square of that logarithm:
    ln(actual / stated) = growth · ln(actual)².  It grows faster than a power law.
    """
    growth = 0.0 if kind == EXACT else read_calibration()["growth"][kind]
    return wanted * math.exp(-growth * math.log(wanted) ** 2)


def calibrate(share: float) -> Calibration:
    """Return what the judge pays for intervals whose ends have this share of a rate."""
    record = read_calibration()
    factors = {
        kind: share / nominal_rate(share, kind) for kind in (*record["growth"], EXACT)
    }
    return Calibration(
        rate=record["rate"],
        times=record["times"],
        divided_by={kind: float(f"{factor:.3g}") for kind, factor in factors.items()},
    )

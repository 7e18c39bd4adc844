"""How often the judge's intervals miss, and what rate to state for one that is wanted.

``python -m studies.calibration`` makes the table: for each kind of interval, and for
the stopping rule, the trials in which it missed at the nominal one-sided rates `RATES`.
"""

import csv
import math
from functools import cache
from pathlib import Path
from typing import NamedTuple

from montecarlo.attention.quantities import (
    PAIR_QUANTITIES,
    QUANTILE_RATIO,
    is_indicator,
    quantile_level,
)
from montecarlo.claims.checks import Check
from montecarlo.claims.outcomes import Calibration
from montecarlo.claims.recorded import RECORDED
from montecarlo.estimation.estimates import clopper_pearson
from montecarlo.estimation.intervals import POINTWISE

TABLE = Path(__file__).with_name("calibration.csv")
#: Nominal one-sided error rates at which misses are counted.
RATES = (1e-2, 1e-3, 1e-4)
SIDES = ("low", "high")
#: The kind of intervals that need not be counted, as they miss no more often than
#: stated: binomial ones, and order statistics, of runs that are independent.
EXACT = "exact"
#: The kind of means of what few rows of a replicate are evaluated for, as each is
#: costly, and these quantities, without what is in brackets: of 2048 keys at most four
#: rows, so that replicates are more skewed.
OF_FEW_ROWS = "mean of few rows"
FEW_ROWS = ("jacobian_spectral", "element_gradient", "weight_above", "keys_holding")
#: That of a kurtosis of pairs, which hangs on few large scores.
KURTOSIS = "kurtosis"
#: Columns: what names a statistic, what its trials are made of, and misses.
NAMES = (
    *("kind", "distribution", "dependence", "d_k", "n_keys"),
    *("divisor", "quantity", "summary"),
    *("replicates", "looks", "bank", "trials"),
)
COUNTS = tuple(f"{side}_{rate:g}" for side in SIDES for rate in RATES)


class Line(NamedTuple):
    """Misses of the intervals of one statistic.

    Attributes
    ----------
    kind : str
        Of the interval.
    statistic : str
        Quantity, summary and divisor; distribution, dependence and sizes.
    looks, trials : int
        Looks of a trial: several, the stopping rule; trials.
    misses : dict
        (side, nominal rate) to the trials that missed: above the truth, or below it.
    """

    kind: str
    statistic: str
    looks: int
    trials: int
    misses: dict[tuple[str, float], int]

    def times(self, rate: float) -> float:
        """Return how many times as often as stated it missed, on the worse side."""
        return max(self.misses[side, rate] for side in SIDES) / (self.trials * rate)

    @property
    def growth(self) -> float:
        """The largest growth that the counts allow: see `nominal_rate`."""
        most = 0.0
        for (_, rate), misses in self.misses.items():
            actual = clopper_pearson(misses, self.trials, POINTWISE).high
            if rate < actual < 1.0:
                most = max(most, math.log(actual / rate) / math.log(actual) ** 2)
        return most


@cache
def read_calibration(file: Path = TABLE) -> tuple[Line, ...]:
    """Read the table; ``file`` is by default that of the package."""
    with file.open(encoding="utf-8", newline="") as lines:
        return tuple(map(_read_line, csv.DictReader(lines)))


def _read_line(cells: dict[str, str]) -> Line:
    keys = [(side, rate) for side in SIDES for rate in RATES]
    return Line(
        cells["kind"],
        _name(cells),
        int(cells["looks"]),
        int(cells["trials"]),
        {key: int(cells[name]) for key, name in zip(keys, COUNTS, strict=True)},
    )


def _name(cells: dict[str, str]) -> str:
    context = "" if cells["dependence"] == "none" else f" {cells['dependence']}"
    keys = f", n = {cells['n_keys']}" if cells["n_keys"] else ""
    return (
        f"{cells['quantity']}, {cells['summary']}, {cells['divisor']}: "
        f"{cells['distribution']}{context}, d_k = {cells['d_k']}{keys}"
    )


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
    if check.quantity.partition("(")[0] in FEW_ROWS:
        return OF_FEW_ROWS
    if check.summary == "mean" and "/" in check.divisor:
        return "divisor ratio"
    return "share" if is_indicator(check.quantity) else "mean"


@cache
def growth_of(kind: str, file: Path = TABLE) -> float:
    """Return the largest growth of the lines of a kind: see `nominal_rate`."""
    if kind == EXACT:
        return 0.0
    return max(line.growth for line in read_calibration(file) if line.kind == kind)


def nominal_rate(wanted: float, kind: str, file: Path = TABLE) -> float:
    """Return the one-sided rate to state, so that no interval misses more often.

    Parameters
    ----------
    wanted : float
        Between 0 and 1.
    kind : str
        Of the interval: one of the table, or `EXACT`.
    file : Path
        The table, by default that of the package.

    Notes
    -----
    Means of few replicates are not normal.  Of the expansion of their distribution
    (Cornish and Fisher) intervals undo the skewness; the next term moves the quantile z
    by a multiple of its cube, hence the logarithm of a rate by a multiple of z to the
    fourth power, which is nearly the square of that logarithm:
    ln(actual / stated) = growth · ln(actual)².  It grows faster than a power law.  The
    growth is the largest of all lines of the kind, sides and rates, with each count
    replaced by its upper limit of 97.5 %.
    """
    return wanted * math.exp(-growth_of(kind, file) * math.log(wanted) ** 2)


def calibrate(share: float) -> Calibration:
    """Return what the judge pays for intervals whose ends have this share of a rate."""
    rate, lines = RATES[-1], read_calibration()
    times = max(line.times(rate) for line in lines)
    kinds = (*dict.fromkeys(line.kind for line in lines), EXACT)
    factors = {kind: share / nominal_rate(share, kind) for kind in kinds}
    return Calibration(
        rate=rate,
        times=float(f"{times:.3g}"),
        divided_by={kind: float(f"{factor:.3g}") for kind, factor in factors.items()},
    )

"""Whether a card is stale: a few replicates of each bank, estimated then and now.

The first replicates of a bank, at the card's seed, give each row a value and an
interval.  They are kept with the card; where they come out otherwise today, what is
drawn or computed there has changed since, and the row's counts say nothing of it.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from montecarlo.calibration.bank import read_or_draw, row_keys
from montecarlo.calibration.bank_rows import estimate
from montecarlo.calibration.rates import RowName, row_name
from montecarlo.estimation.intervals import t_quantile
from montecarlo.sampling.design_points import DesignPoint

#: The file of a card that holds them.
PROBES_FILE = "probes.csv"
#: Replicates that are drawn; a quarter of them where they are expensive.
PROBED = 16
#: One-sided error rate of the interval.
PROBED_RATE = 0.01
NUMBERS = ("value", "low", "high")
#: Standard errors by which a number may differ.  Processors round differently, which
#: may put a row of 2048 into the next bin; what changes an interval by less changes
#: no count of misses that could be told.
SAME = 0.1
#: The same as a part of the number, where an interval has no width.
ROUNDING = 1e-3


def probe(seed: int, points: Iterable[DesignPoint]) -> pd.DataFrame:
    """Return value and interval of every row of some banks, of few replicates."""
    lines = []
    for point in points:
        bank = read_or_draw(point, seed, PROBED, None)
        for key in row_keys(point):
            made = estimate(bank, key, np.arange(len(bank.means)))
            numbers = (made.value, *made.interval(PROBED_RATE))
            shown = (float(f"{number:.9g}") for number in numbers)
            lines.append((*row_name(bank, key), *shown))
    table = pd.DataFrame.from_records(lines, columns=[*RowName._fields, *NUMBERS])
    return table.astype({"n_keys": "Int64"})


def find_changes(then: pd.DataFrame, now: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows that come out otherwise now, by the columns that name them.

    Parameters
    ----------
    then, now : DataFrame
        As `probe` gives them; rows that only one of them has are none of these.
    """
    both = then.merge(now, on=list(RowName._fields), suffixes=("_then", "_now"))
    found = []
    for one in both.to_dict("records"):
        width = one["high_then"] - one["low_then"]
        error = width / (2.0 * t_quantile(PROBED_RATE, PROBED))
        pairs = [(one[f"{name}_then"], one[f"{name}_now"]) for name in NUMBERS]
        if not all(_is_same(*pair, error) for pair in pairs):
            names = {str(name): one[name] for name in RowName._fields}
            # JSON has no missing number
            found.append({k: v for k, v in names.items() if not pd.isna(v)})
    return found


def _is_same(then: float, now: float, error: float) -> bool:
    """Tell whether two numbers differ by rounding at most; no number is itself."""
    if math.isnan(then) or math.isnan(now):
        return math.isnan(then) and math.isnan(now)
    if 0.0 < error < math.inf:
        return abs(then - now) <= SAME * error
    return math.isclose(then, now, rel_tol=ROUNDING, abs_tol=1e-12)

"""Whether a card is stale: a few replicates of each bank, estimated then and now.

The first replicates of a bank, at the card's seed, give each row a value and an
interval.  They are kept with the card; where they come out otherwise today, what is
drawn or computed there has changed since, and the row's counts say nothing of it.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from montecarlo.calibration.bank import read_or_draw, row_keys
from montecarlo.calibration.bank_rows import estimate
from montecarlo.calibration.rates import RowName, row_name
from montecarlo.sampling.design_points import DesignPoint

#: The file of a card that holds them.
PROBES_FILE = "probes.csv"
#: Replicates that are drawn; a quarter of them where they are expensive.
PROBED = 16
#: One-sided error rate of the interval.
PROBED_RATE = 0.01
NUMBERS = ("value", "low", "high")


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

"""The judge's report card: what was counted, in files, and what it comes to.

The files are small and part of the package; ``python -m montecarlo calibrate`` writes
them anew.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from montecarlo.attention.quantities import is_indicator
from montecarlo.attention.softmax import Array
from montecarlo.calibration.rates import RATES, Power, Rates
from montecarlo.calibration.studies import Tally
from montecarlo.estimation.summaries import QUANTILE_RATIO

#: Where the card lies that the report shows.
FOLDER = Path(__file__).with_name("report_card")
#: All that a card is made of.
FILES = frozenset({"rates.csv", "power.csv", "studies.csv", "about.json", "probes.csv"})
#: A judged row may miss so many times as often as stated.
ALLOWED = 1.5
SIDES = ("low", "high")
#: Families of statistics that are counted by themselves: along d_k, the ratio of outer
#: quantiles, shares of rows, and the standard deviation.
SERIES = ("slope", "ratio_of_ends")
SHARE, DEVIATION = "share", "score_std"
FAMILIES = (*SERIES, QUANTILE_RATIO, SHARE, DEVIATION)
#: Columns of numbers that may be empty; an empty context is one.
EMPTY = {"n_keys": [""], "bank_z": [""]}


@dataclass(frozen=True, slots=True)
class Card:
    """A report card, as it was counted.

    Attributes
    ----------
    rates : DataFrame
        One line per row of a bank: counts of missing intervals by side and nominal
        rate, coverage of 95 % intervals.
    power : DataFrame
        One line per row, number of replicates and distance from the truth.
    studies : DataFrame
        One line per error rate of whole studies.
    about : dict
        Command, versions, sizes, the error rate of one simultaneous interval,
        ``stale``: rows that are left out, by columns of ``rates``, and the recipe of
        studies.
    """

    rates: pd.DataFrame
    power: pd.DataFrame
    studies: pd.DataFrame
    about: dict[str, Any]


def write_card(
    folder: Path,
    found: Sequence[tuple[list[Rates], list[Power]]],
    tallies: Iterable[Tally],
    about: dict[str, Any],
) -> None:
    """Write the files of a card.

    Rates and powers are found by bank; the folder is made if it is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rates = [_flat(record) for records, _ in found for record in records]
    power = [_flat(record) for _, records in found for record in records]
    for name, records in (
        ("rates", rates),
        ("power", power),
        ("studies", [asdict(one) for one in tallies]),
    ):
        table = pd.DataFrame.from_records(records)
        if "n_keys" in table:
            table = table.astype({"n_keys": "Int64"})
        path = folder / f"{name}.csv"
        table.to_csv(path, index=False, lineterminator="\n", float_format="%.6g")
    text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    (folder / "about.json").write_text(text, encoding="utf-8")


def _flat(record: Rates | Power) -> dict[str, Any]:
    """Return a record as one line: its row's names first, a column for each count."""
    flat: dict[str, Any] = {**record.row._asdict()}
    for name, value in asdict(record).items():
        if name == "row":
            continue
        if isinstance(value, tuple):
            flat |= {
                f"{name}_{rate:g}": v for rate, v in zip(RATES, value, strict=True)
            }
        else:
            flat[name] = value
    return flat


def read_card(folder: Path = FOLDER) -> Card | None:
    """Read a card, None where there is none.

    Returns
    -------
    Card or None
        Without rows that are stale: what they were counted on has been mended since.
    """
    if not (folder / "about.json").exists():
        return None
    rates, power, studies = (
        pd.read_csv(folder / f"{name}.csv", keep_default_na=False, na_values=EMPTY)
        for name in ("rates", "power", "studies")
    )
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    rates, power = _set_types(rates), _set_types(power)
    for row in about.get("stale", ()):
        rates = rates[~(rates[list(row)] == list(row.values())).all(axis=1)]
        power = power[~(power[list(row)] == list(row.values())).all(axis=1)]
    return Card(rates, power, studies, about)


def _set_types(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype({"context": "str", "n_keys": "Int64"})


def family_of(quantity: str, summary: str) -> str:
    """Name the family of a row: each is judged by itself.

    Empty for the values of single points that are means, functions of means or
    quantiles.
    """
    if summary in SERIES:
        return summary
    if summary == QUANTILE_RATIO:
        return QUANTILE_RATIO
    if is_indicator(quantity):
        return SHARE
    return quantity if quantity == DEVIATION else ""


def find_uncounted(rates: pd.DataFrame) -> tuple[str, ...]:
    """Return the families that a card has no row of: none was counted."""
    names = zip(rates["quantity"], rates["summary"], strict=True)
    there = {family_of(quantity, summary) for quantity, summary in names}
    return tuple(family for family in FAMILIES if family not in there)


@dataclass(frozen=True, slots=True)
class Counted:
    """What a nominal error rate was found to be worth, over all rows that are judged.

    Attributes
    ----------
    nominal : tuple of float
        One-sided rates at which misses were counted.
    times : tuple of float
        How many times as often as stated the worst combination missed, at each.
    simultaneous_error : float
        Of one interval: too small to be counted.
    extrapolated : float
        The same there, by ``model``.
    not_counted : tuple of str
        Families of which the card has no count.
    model : str
        What the extrapolation rests on.
    """

    nominal: tuple[float, ...]
    times: tuple[float, ...]
    simultaneous_error: float
    extrapolated: float
    not_counted: tuple[str, ...]
    model: str = "power law"


def count_rate(card: Card, error_rate: float) -> Counted:
    """Return what was counted, and what it comes to at a smaller rate.

    The rate is one-sided, of one simultaneous interval.
    """
    groups = by_quantity(card.rates[card.rates["judged"]])
    times = actual_over_nominal(groups).max()
    return Counted(
        RATES,
        tuple(short(times[rate]) for rate in RATES),
        short(error_rate),
        short(extrapolate(groups, error_rate).max()),
        find_uncounted(card.rates),
    )


def short(value: float) -> float:
    """Keep three digits: counts are known to no more."""
    return float(f"{value:.3g}")


def by_quantity(rates: pd.DataFrame) -> pd.DataFrame:
    """Add up the rows by distribution, d_k, quantity and family: what is judged.

    Returns
    -------
    DataFrame
        One line per distribution, context, d_k, quantity and family, with the sums of
        all counts.
    """
    names = ["judged", "distribution", "context", "d_k", "quantity", "family"]
    families = [
        family_of(quantity, summary)
        for quantity, summary in zip(rates["quantity"], rates["summary"], strict=True)
    ]
    rates = rates.assign(family=families)
    misses = [f"{side}_{rate:g}" for side in SIDES for rate in RATES]
    grouped = rates.groupby(names, sort=False)[["samples", *misses]]
    return grouped.sum().reset_index()


def actual_over_nominal(rates: pd.DataFrame) -> pd.DataFrame:
    """Return how many times as often as stated each row misses, on the worse side.

    Returns
    -------
    DataFrame
        Index as in ``rates``, one column for each of `RATES`.
    """
    return pd.DataFrame(
        {
            rate: rates[[f"{side}_{rate:g}" for side in SIDES]].max(axis=1)
            / (rates["samples"] * rate)
            for rate in RATES
        }
    )


def extrapolate(rates: pd.DataFrame, error_rate: float) -> Array:
    """Return how many times as often as stated each row would miss at a smaller rate.

    Returns
    -------
    ndarray, shape (len(rates),)
        Of the worse side.

    Notes
    -----
    The model is a power law, actual = A nominal**B, fitted to the counts at `RATES` by
    least squares of the logarithms, weighted as Poisson counts are.
    """
    x = np.log(RATES)
    sides = []
    for side in SIDES:
        counts = rates[[f"{side}_{rate:g}" for rate in RATES]].to_numpy(float) + 0.5
        y = np.log(counts / rates["samples"].to_numpy(float)[:, np.newaxis])
        centre_x = (counts * x).sum(axis=1) / counts.sum(axis=1)
        centre_y = (counts * y).sum(axis=1) / counts.sum(axis=1)
        dx, dy = x - centre_x[:, np.newaxis], y - centre_y[:, np.newaxis]
        slope = (counts * dx * dy).sum(axis=1) / (counts * dx * dx).sum(axis=1)
        there = math.log(error_rate)
        sides.append(np.exp(centre_y + slope * (there - centre_x) - there))
    return np.asarray(np.maximum(*sides))

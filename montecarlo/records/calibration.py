"""The calibration record: how often the judge's intervals miss, and what that means.

``python -m studies.calibration`` makes its files.
"""

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from montecarlo.attention.quantities import is_indicator
from montecarlo.attention.softmax import Array
from montecarlo.estimation.summaries import QUANTILE_RATIO
from montecarlo.study.presets import PRESETS, Grid

#: The record that the report shows.
FOLDER = Path(__file__).parent / "data" / "calibration"
#: Nominal one-sided error rates at which misses were counted.
RATES = (1e-2, 1e-3, 1e-4)
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


@dataclass(frozen=True, slots=True)
class Tally:
    """What many studies at one error rate came to.

    Attributes
    ----------
    error_rate : float
    studies : int
    missed : int
        Studies in which some simultaneous interval misses the truth.
    wrong : int
        Studies in which some check is decided and wrong.
    cases : int
        Cases of a study.
    undecided : float
        Share of them that is left undecided.
    """

    error_rate: float
    studies: int
    missed: int
    wrong: int
    cases: int
    undecided: float


def read_card(folder: Path = FOLDER) -> Card | None:
    """Read a card, None where there is none.

    Rows that are stale are left out: what they were counted on has been mended since.
    """
    if not (folder / "about.json").exists():
        return None
    rates, power, studies = (
        pd.read_csv(folder / f"{name}.csv", keep_default_na=False, na_values=EMPTY)
        for name in ("rates", "power", "studies")
    )
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    kinds = {"context": "str", "n_keys": "Int64"}
    rates, power = rates.astype(kinds), power.astype(kinds)
    for row in about.get("stale", ()):
        rates = rates[~(rates[list(row)] == list(row.values())).all(axis=1)]
        power = power[~(power[list(row)] == list(row.values())).all(axis=1)]
    return Card(rates, power, studies, about)


def quick_grid() -> Grid:
    """Return the grid of the studies that were judged: the quick one, less its costs.

    Tails are looked at by no check, and of number formats the checks ask for shares of
    rows that are nearly all 0 or 1.
    """
    quick = PRESETS["quick"]
    blocks = tuple(block for block in quick.blocks if not block.formats)
    return msgspec.structs.replace(quick, tails=(), blocks=blocks)


def studies_recipe(checks: Iterable[object]) -> str:
    """Return a hash of what studies judge: their grid, and the catalogue's checks."""
    recipe = msgspec.json.encode([quick_grid(), list(checks)])
    return hashlib.sha256(recipe).hexdigest()[:16]


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
    """Return what was counted, and what that comes to at a simultaneous rate."""
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

"""What the pages show of the judge's report card."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import pandas as pd
from msgspec import Meta

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.records.calibration import (
    ALLOWED,
    RATES,
    Card,
    Tally,
    actual_over_nominal,
    by_quantity,
    extrapolate,
    find_uncounted,
    short,
    studies_recipe,
)
from montecarlo.report.language.symbols import row_symbol

#: Distances, in tolerances, at which the table shows how a claim comes out.
SHOWN_DISTANCES = (0.0, 0.5, 0.9, 1.0, 1.1, 2.0)
#: The rows whose power the table shows, quantity and divisor.
SHOWN_ROWS = (
    ("score_variance", "none"),
    ("inverse_participation", "sqrt"),
    ("entropy", "sqrt"),
)
SHOWN_DISTRIBUTION, SHOWN_D_K, SHOWN_N_KEYS = "gaussian", 64, 128
#: What the curves of power are of.
OUTCOMES = ("supported", "refuted")


@dataclass(frozen=True, slots=True)
class Grade:
    """How the intervals of one distribution fared."""

    distribution: str
    context: str
    #: false: the distribution lacks moments that these rows need
    judged: bool
    #: combinations of d_k and quantity
    groups: int
    #: actual over nominal rate of the worst of them, by nominal rate
    worst: tuple[float, ...]
    #: the same at the error rate of one simultaneous interval, by the model
    extrapolated: float
    #: least and largest share of 95 % intervals of a row that hold the truth
    covered: tuple[float, float]


@dataclass(frozen=True, slots=True)
class PowerLine:
    """How a claim of equality came out, by its distance from the truth."""

    symbol: str  # LaTeX
    replicates: int
    tolerance: float
    shares: tuple[tuple[float, float, float], ...]  # supported, undecided, refuted


@dataclass(frozen=True, slots=True)
class CardView:
    """The card as the pages show it."""

    rates: tuple[float, ...]
    allowed: float
    simultaneous_error: float
    samples: int
    draws: int
    grades: Annotated[tuple[Grade, ...], Meta(min_length=1)]
    studies: tuple[Tally, ...]
    distances: tuple[float, ...]
    power: tuple[PowerLine, ...]
    not_counted: tuple[str, ...] = ()  # families of statistics
    stale: int = 0  # rows left out: what they were counted on was mended since
    earlier_claims: bool = False  # the studies judged other claims than there are now


def view_card(card: Card, error_rate: float) -> CardView:
    """Turn a card into what the pages show.

    ``error_rate`` is the one-sided one of each interval of the report, which counts are
    extrapolated to.
    """
    studies = card.studies.to_dict("records")
    return CardView(
        RATES,
        ALLOWED,
        short(error_rate),
        int(short(card.rates["samples"].sum())),
        int(card.rates["draws"].min()),
        tuple(_grades(card.rates, error_rate)),
        tuple(Tally(**{str(name): one[name] for name in one}) for one in studies),
        SHOWN_DISTANCES,
        tuple(_power(card.power)),
        find_uncounted(card.rates),
        len(card.about.get("stale", ())),
        card.about.get("studies") != studies_recipe(read_catalogue().checks()),
    )


def _grades(rates: pd.DataFrame, error_rate: float) -> Iterator[Grade]:
    groups = by_quantity(rates)
    ratios = actual_over_nominal(groups).assign(beyond=extrapolate(groups, error_rate))
    names = ["judged", "distribution", "context"]
    covered = (rates["covered"] / rates["draws"]).groupby([rates[n] for n in names])
    least, most = covered.min(), covered.max()
    in_order = groups[names].drop_duplicates().sort_values("judged", ascending=False)
    for key in in_order.itertuples(index=False, name=None):
        mine = (groups[names] == list(key)).all(axis=1)
        judged, distribution, context = key
        yield Grade(
            distribution,
            context,
            bool(judged),
            int(mine.sum()),
            tuple(short(ratios.loc[mine, rate].max()) for rate in RATES),
            short(ratios.loc[mine, "beyond"].max()),
            (short(least[key]), short(most[key])),
        )


def _shown(power: pd.DataFrame, quantity: str, divisor: str) -> pd.DataFrame:
    """Return the lines of one row at the size that is shown."""
    wanted: dict[str, Any] = {"distribution": SHOWN_DISTRIBUTION, "d_k": SHOWN_D_K}
    wanted |= {"quantity": quantity, "divisor": divisor}
    return power[(power[list(wanted)] == list(wanted.values())).all(axis=1)]


def _power(power: pd.DataFrame) -> Iterator[PowerLine]:
    power = power[power["context"].eq("") & power["distance"].isin(SHOWN_DISTANCES)]
    power = power[power["n_keys"].isna() | power["n_keys"].eq(SHOWN_N_KEYS)]
    for row in SHOWN_ROWS:
        quantity, divisor = row
        for replicates, lines in _shown(power, *row).groupby("replicates"):
            shares = []
            for one in lines.sort_values("distance").to_dict("records"):
                yes, no = (one[name] / one["samples"] for name in OUTCOMES)
                shares.append((short(yes), short(1.0 - yes - no), short(no)))
            tolerance = float(lines["tolerance"].iloc[0])
            symbol = row_symbol(quantity, str(lines["summary"].iloc[0]), divisor)
            yield PowerLine(symbol, int(str(replicates)), tolerance, tuple(shares))

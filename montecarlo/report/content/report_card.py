"""What the pages show of the judge's report card."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import pandas as pd
from msgspec import Meta
from msgspec.structs import replace

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
from montecarlo.study.curves import CurveLine, tabulate_curves

#: Distances, in tolerances, at which the table shows how a claim comes out.
SHOWN_DISTANCES = (0.0, 0.5, 0.9, 1.0, 1.1, 2.0)
#: The rows whose power the table shows: quantity and divisor.
SHOWN_ROWS = (
    ("score_variance", "none"),
    ("inverse_participation", "sqrt"),
    ("entropy", "sqrt"),
)
SHOWN_DISTRIBUTION, SHOWN_D_K = "gaussian", 64
#: The curves of its figure; of miss rates, `outcome` says whether rows are judged.
RATE_CURVE, POWER_CURVE = "miss_rate", "power"
EXTRAPOLATED_CURVE = "miss_rate_extrapolated"


@dataclass(frozen=True, slots=True)
class Grade:
    """How the intervals of one distribution fared.

    Attributes
    ----------
    distribution, context : str
    judged : bool
        False: the distribution lacks moments that these rows need.
    groups : int
        Combinations of d_k and quantity.
    worst : tuple of float
        Actual over nominal rate of the worst of them, by nominal rate.
    extrapolated : float
        The same at the error rate of one simultaneous interval, by the model.
    covered : (float, float)
        Least and largest share of 95 % intervals of a row that hold the truth.
    """

    distribution: str
    context: str
    judged: bool
    groups: int
    worst: tuple[float, ...]
    extrapolated: float
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


def card_curves(view: CardView, card: Card) -> pd.DataFrame:
    """Return the curves of the card's figure, with the columns of `CURVE_COLUMNS`."""
    return tabulate_curves([*_rate_curves(view), *_power_curves(card.power)])


def _rate_curves(view: CardView) -> Iterator[CurveLine]:
    """Yield how many times as often as stated a distribution's worst intervals miss."""
    for grade in view.grades:
        line = CurveLine(
            distribution_q=grade.distribution,
            distribution_k=grade.distribution,
            dependence=grade.context or "none",
            curve=RATE_CURVE,
            outcome="judged" if grade.judged else "shown",
            x=view.simultaneous_error,
            estimate=grade.extrapolated,
        )
        for rate, ratio in zip(view.rates, grade.worst, strict=True):
            yield replace(line, x=rate, estimate=ratio)
        yield replace(line, curve=EXTRAPOLATED_CURVE)


def _power_curves(power: pd.DataFrame) -> Iterator[CurveLine]:
    """Yield the shares of claims supported and refuted, by distance from the truth."""
    here = power[
        power["distribution"].eq(SHOWN_DISTRIBUTION) & power["d_k"].eq(SHOWN_D_K)
    ]
    quantity, divisor = SHOWN_ROWS[0]
    here = here[here["quantity"].eq(quantity) & here["divisor"].eq(divisor)]
    for one in here.to_dict("records"):
        for outcome in ("supported", "refuted"):
            yield CurveLine(
                distribution_q=SHOWN_DISTRIBUTION,
                distribution_k=SHOWN_DISTRIBUTION,
                dependence="none",
                d_k=SHOWN_D_K,
                divisor=divisor,
                curve=POWER_CURVE,
                outcome=outcome,
                n_replicates=one["replicates"],
                x=float(one["distance"]),
                estimate=short(one[outcome] / one["samples"]),
            )


def view_card(card: Card, error_rate: float) -> CardView:
    """Turn a card into what the pages show.

    Parameters
    ----------
    card : Card
    error_rate : float
        One-sided, of each interval of the report: what counts are extrapolated to.
    """
    studies = tuple(
        Tally(**{str(name): value for name, value in one.items()})
        for one in card.studies.to_dict("records")
    )
    return CardView(
        RATES,
        ALLOWED,
        short(error_rate),
        int(short(card.rates["samples"].sum())),
        int(card.rates["draws"].min()),
        tuple(_grades(card.rates, error_rate)),
        studies,
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
    for judged, distribution, context in in_order.itertuples(index=False):
        mine = (groups[names] == [judged, distribution, context]).all(axis=1)
        key = (judged, distribution, context)
        yield Grade(
            distribution,
            context,
            bool(judged),
            int(mine.sum()),
            tuple(short(ratios.loc[mine, rate].max()) for rate in RATES),
            short(ratios.loc[mine, "beyond"].max()),
            (short(least[key]), short(most[key])),
        )


def _power(power: pd.DataFrame) -> Iterator[PowerLine]:
    here = power[
        (power["distribution"] == SHOWN_DISTRIBUTION) & (power["d_k"] == SHOWN_D_K)
    ]
    here = here[here["context"].eq("") & here["distance"].isin(SHOWN_DISTANCES)]
    here = here[here["n_keys"].isna() | here["n_keys"].eq(128)]
    for quantity, divisor in SHOWN_ROWS:
        mine = here[here["quantity"].eq(quantity) & here["divisor"].eq(divisor)]
        for replicates, lines in mine.groupby("replicates"):
            shares = []
            for one in lines.sort_values("distance").to_dict("records"):
                yes = one["supported"] / one["samples"]
                no = one["refuted"] / one["samples"]
                shares.append((short(yes), short(1.0 - yes - no), short(no)))
            tolerance = float(lines["tolerance"].iloc[0])
            symbol = row_symbol(quantity, str(lines["summary"].iloc[0]), divisor)
            yield PowerLine(symbol, int(str(replicates)), tolerance, tuple(shares))

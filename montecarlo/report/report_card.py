"""What the pages show of the judge's report card."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from montecarlo.calibration.card import (
    ALLOWED,
    Card,
    actual_over_nominal,
    by_quantity,
    extrapolated,
    read_card,
)
from montecarlo.calibration.rates import RATES
from montecarlo.report.symbols import row_symbol

#: Distances, in tolerances, at which the table shows how a claim comes out.
SHOWN_DISTANCES = (0.0, 0.5, 0.9, 1.0, 1.1, 2.0)
#: The rows whose power the table shows: quantity and divisor.
SHOWN_ROWS = (
    ("score_variance", "none"),
    ("inverse_participation", "sqrt"),
    ("entropy", "sqrt"),
)
SHOWN_LAW, SHOWN_D_K = "gaussian", 64


@dataclass(frozen=True, slots=True)
class Grade:
    """How the intervals of one law fared.

    Attributes
    ----------
    law, context : str
    judged : bool
        False: the law lacks moments that these rows need.
    groups : int
        Combinations of d_k and quantity.
    worst : tuple of float
        Actual over nominal rate of the worst of them, by nominal rate.
    extrapolated : float
        The same at the error rate of one decision interval, by the model.
    covered : (float, float)
        Least and largest share of 95 % intervals of a row that hold the truth.
    """

    law: str
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
    shares: tuple[tuple[float, float, float], ...]  # supported, inconclusive, refuted


@dataclass(frozen=True, slots=True)
class StudyLine:
    """Whole studies at one error rate."""

    error_rate: float
    studies: int
    missed: int
    wrong: int
    cells: int
    inconclusive: float


@dataclass(frozen=True, slots=True)
class CardView:
    """The card as the pages show it."""

    rates: tuple[float, ...]
    allowed: float
    decision_error: float
    samples: int
    draws: int
    grades: tuple[Grade, ...]
    studies: tuple[StudyLine, ...]
    distances: tuple[float, ...]
    power: tuple[PowerLine, ...]

    def worst(self) -> tuple[float, ...]:
        """Return the largest ratio of a judged law, by nominal rate."""
        judged = [grade.worst for grade in self.grades if grade.judged]
        return tuple(max(column) for column in zip(*judged, strict=True))


def view_card(card: Card | None = None) -> CardView | None:
    """Turn a card into what the pages show, None where there is none.

    Parameters
    ----------
    card : Card, optional
        By default the one that came with the package.
    """
    card = card or read_card()
    if card is None:
        return None
    error_rate = float(card.about["decision_error"])
    studies = tuple(
        StudyLine(**{str(name): value for name, value in one.items()})
        for one in card.studies.to_dict("records")
    )
    return CardView(
        RATES,
        ALLOWED,
        _short(error_rate),
        int(_short(card.rates["samples"].sum())),
        int(card.rates["draws"].min()),
        tuple(_grades(card.rates, error_rate)),
        studies,
        SHOWN_DISTANCES,
        tuple(_power(card.power)),
    )


def _grades(rates: pd.DataFrame, error_rate: float) -> Iterator[Grade]:
    groups = by_quantity(rates)
    ratios = actual_over_nominal(groups).assign(beyond=extrapolated(groups, error_rate))
    names = ["judged", "law", "context"]
    covered = (rates["covered"] / rates["draws"]).groupby([rates[n] for n in names])
    least, most = covered.min(), covered.max()
    in_order = groups[names].drop_duplicates().sort_values("judged", ascending=False)
    for judged, law, context in in_order.itertuples(index=False):
        mine = (groups[names] == [judged, law, context]).all(axis=1)
        key = (judged, law, context)
        yield Grade(
            law,
            context,
            bool(judged),
            int(mine.sum()),
            tuple(_short(ratios.loc[mine, rate].max()) for rate in RATES),
            _short(ratios.loc[mine, "beyond"].max()),
            (_short(least[key]), _short(most[key])),
        )


def _short(value: float) -> float:
    """Keep three digits: counts are known to no more."""
    return float(f"{value:.3g}")


def _power(power: pd.DataFrame) -> Iterator[PowerLine]:
    here = power[(power["law"] == SHOWN_LAW) & (power["d_k"] == SHOWN_D_K)]
    here = here[here["context"].eq("") & here["distance"].isin(SHOWN_DISTANCES)]
    here = here[here["n_keys"].isna() | here["n_keys"].eq(128)]
    for quantity, divisor in SHOWN_ROWS:
        mine = here[here["quantity"].eq(quantity) & here["divisor"].eq(divisor)]
        for replicates, lines in mine.groupby("replicates"):
            shares = []
            for one in lines.sort_values("distance").to_dict("records"):
                yes = one["supported"] / one["samples"]
                no = one["refuted"] / one["samples"]
                shares.append((_short(yes), _short(1.0 - yes - no), _short(no)))
            tolerance = float(lines["tolerance"].iloc[0])
            symbol = row_symbol(quantity, str(lines["summary"].iloc[0]), divisor)
            yield PowerLine(symbol, int(str(replicates)), tolerance, tuple(shares))

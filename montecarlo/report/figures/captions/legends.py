"""What each figure draws, by name: its caption's legend in words lists these alone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from montecarlo.report.figures.attention import DIVISORS as ATTENTION_DIVISORS
from montecarlo.report.figures.distribution import gap_rows
from montecarlo.report.figures.drawing.palette import (
    DISTRIBUTION_LOOKS,
    DIVISOR_LOOKS,
    GAUSSIAN_LOOK,
    VERDICT_LOOKS,
)
from montecarlo.report.figures.formats import FORMAT_LOOKS, error_rows, tail_rows
from montecarlo.report.figures.gradients import gradient_rows
from montecarlo.report.figures.judging.card import card_rows
from montecarlo.report.figures.judging.texts import text_rows
from montecarlo.report.figures.planted import planted_rows
from montecarlo.report.figures.scores import variance_rows
from montecarlo.report.figures.weights import (
    effective_key_rows,
    rank_rows,
    weight_max_rows,
)

DISTRIBUTIONS = {"gaussian": GAUSSIAN_LOOK, **DISTRIBUTION_LOOKS}


@dataclass(frozen=True, slots=True)
class Legend:
    """What a figure draws, each kind in the order of the picture's own legend."""

    divisors: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()


def read_legends(measurements: pd.DataFrame, curves: pd.DataFrame) -> dict[str, Legend]:
    """Return what is drawn by each figure that has series with names.

    Parameters
    ----------
    measurements, curves : DataFrame
        The tables of the results.

    Returns
    -------
    dict
        Figure id to Legend, from the rows that the figure itself is drawn from.
    """
    variances = variance_rows(measurements)
    return {
        "attention": Legend(ATTENTION_DIVISORS),
        "variance": Legend(_divisors(variances), _distributions(variances)),
        "weights-by-rank": Legend(_divisors(rank_rows(curves))),
        "effective-keys": Legend(_divisors(effective_key_rows(measurements))),
        "weight-max": Legend(_divisors(weight_max_rows(measurements))),
        "gradients": Legend(_divisors(gradient_rows(measurements))),
        "planted": Legend(_divisors(planted_rows(measurements))),
        "formats": Legend(
            _divisors(error_rows(measurements)),
            formats=_in_order(FORMAT_LOOKS, tail_rows(measurements)["number_format"]),
        ),
        "score-distribution": Legend(
            distributions=_distributions(gap_rows(measurements))
        ),
        "texts": Legend(
            verdicts=_in_order(VERDICT_LOOKS, text_rows(curves)["outcome"])
        ),
        "report-card": Legend(distributions=_distributions(card_rows(curves))),
    }


def _divisors(rows: pd.DataFrame) -> tuple[str, ...]:
    return _in_order(DIVISOR_LOOKS, rows["divisor"])


def _distributions(rows: pd.DataFrame) -> tuple[str, ...]:
    return _in_order(DISTRIBUTIONS, rows["distribution_k"])


def _in_order(looks: Mapping[str, object], names: Iterable[str]) -> tuple[str, ...]:
    present = set(names)
    return tuple(name for name in looks if name in present)

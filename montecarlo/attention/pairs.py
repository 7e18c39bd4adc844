"""The table of quantities of pairs: functions of moments of q·k over a block of pairs.

Each is estimated once, for raw scores; a divisor c turns it into itself over
c**degree.  A new one is one entry in `PAIR_QUANTITIES`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from montecarlo.attention.ranges import ANY, NOT_NEGATIVE, Range
from montecarlo.attention.softmax import Array

#: Means over a block of pairs that the quantities of pairs are made of.
PAIR_MEANS = ("q", "q2", "k", "k2", "s", "abs", "s2", "s3", "s4", "gap")
#: Where the distribution of the standardised score differs most from the normal one:
#: the positive zero of d/dx [(x³ - 3x) φ(x)] nearest to 0.
GAP_AT = 0.742
GAP_NORMAL = 0.5 * math.erfc(-GAP_AT / math.sqrt(2.0))
Means = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class PairQuantity:
    """A function of the mean powers of entries and scores.

    Attributes
    ----------
    name, symbol : str
    evaluate : callable
        (means by name, d_k) -> value, over any leading axes.
    degree : int
        A divisor c turns the value into value / c**degree.
    moments : float
        Moments of the entries that its interval needs: three times the power of a score
        that is averaged, for the skewness of the replicates to exist.
    divided : bool
        Whether it has a value under each divisor, or one for all.
    interval_scale : Scale or None
        Where its interval is made, if not as it is.
    within : (float, float)
        The range of its values.
    words : str
        What it is, in English: a message, to be translated.
    """

    name: str
    symbol: str
    evaluate: Callable[[Means, int], Array]
    degree: int
    moments: float
    divided: bool = True
    interval_scale: "Scale | None" = None
    within: Range = NOT_NEGATIVE
    words: str = ""


class Scale(NamedTuple):
    """An increasing function and its inverse."""

    forward: Callable[[Array], Array]
    back: Callable[[Array], Array]


def score_variance(means: Means, d_k: int) -> Array:
    """Return E s² - (E s)² of the raw scores."""
    return means["s2"] - means["s"] ** 2


def _score_std(means: Means, d_k: int) -> Array:
    return np.sqrt(score_variance(means, d_k))


def _entry_variance_q(means: Means, d_k: int) -> Array:
    return means["q2"] - means["q"] ** 2


def _entry_variance_k(means: Means, d_k: int) -> Array:
    return means["k2"] - means["k"] ** 2


def _variance_ratio(means: Means, d_k: int) -> Array:
    """Score variance over what the entry variances of the same draws predict."""
    entries = _entry_variance_q(means, d_k) * _entry_variance_k(means, d_k)
    return score_variance(means, d_k) / (d_k * entries)


def _excess_kurtosis(means: Means, d_k: int) -> Array:
    mean, second = means["s"], means["s2"]
    fourth = means["s4"] - 4 * mean * means["s3"] + 6 * mean**2 * second - 3 * mean**4
    return fourth / score_variance(means, d_k) ** 2 - 3.0


def _from_reciprocal(reciprocal: Array) -> Array:
    with np.errstate(divide="ignore"):
        kurtosis = -1.0 / np.asarray(reciprocal)
    return np.where(reciprocal < 0.0, kurtosis, np.inf) - 3.0


#: Where few large scores make a fourth moment, replicates that lack them give a small
#: kurtosis and a standard error that is too small with it; one over it does not.
RECIPROCAL = Scale(lambda excess: -1.0 / (excess + 3.0), _from_reciprocal)


PAIR_QUANTITIES = {
    quantity.name: quantity
    for quantity in (
        PairQuantity(
            "entry_variance_q",
            r"\operatorname{Var}(q_m)",
            _entry_variance_q,
            0,
            6.0,
            divided=False,
            words="variance of the entries of a query",
        ),
        PairQuantity(
            "entry_variance_k",
            r"\operatorname{Var}(k_m)",
            _entry_variance_k,
            0,
            6.0,
            divided=False,
            words="variance of the entries of a key",
        ),
        PairQuantity(
            "score_mean",
            r"\operatorname{E}(q\cdot k)",
            lambda m, d: m["s"],
            1,
            3.0,
            within=ANY,
            words="mean of the scores, products of a query and a key",
        ),
        PairQuantity(
            "score_variance",
            r"\operatorname{Var}(q\cdot k)",
            score_variance,
            2,
            6.0,
            words="variance of the scores over all pairs",
        ),
        PairQuantity(
            "score_std",
            r"\operatorname{sd}(q\cdot k)",
            _score_std,
            1,
            6.0,
            words="standard deviation of the scores over all pairs",
        ),
        PairQuantity(
            "score_variance_ratio",
            r"\frac{\operatorname{Var}(q\cdot k)}"
            r"{d_k\operatorname{Var}(q_m)\operatorname{Var}(k_m)}",
            _variance_ratio,
            0,
            6.0,
            divided=False,
            words="variance of the scores over what the variances of the entries give",
        ),
        PairQuantity(
            "score_abs",
            r"\operatorname{E}\lvert q\cdot k\rvert",
            lambda m, d: m["abs"],
            1,
            3.0,
            words="mean absolute score",
        ),
        PairQuantity(
            "score_excess_kurtosis",
            r"\kappa(q\cdot k) - 3",
            _excess_kurtosis,
            0,
            12.0,
            divided=False,
            interval_scale=RECIPROCAL,
            within=(-2.0, math.inf),
            words="excess kurtosis of the scores: how heavy their tails are",
        ),
        PairQuantity(
            "score_distribution_gap",
            r"F(x^{\ast}) - \Phi(x^{\ast})",
            lambda m, d: m["gap"],
            0,
            0.0,
            divided=False,
            within=(-GAP_NORMAL, 1.0 - GAP_NORMAL),
            words="distance of the scores' distribution from the normal one, "
            "at one point",
        ),
    )
}

"""What is known before anything is sampled: by algebra, and by the record of training.

A new quantity is an entry of a table, and a new kind of them a line in `RECORDED`.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from montecarlo.attention.softmax import Array
from montecarlo.claims.checks import Check
from montecarlo.claims.outcomes import CaseKey
from montecarlo.claims.training import ARMS, COMPARED, D_K, SLOPE, STEPS, Record
from montecarlo.estimation.estimates import Estimate, median_estimate, share_of_seeds
from montecarlo.theory.score_distribution import kolmogorov_distance

#: The estimate of each case that there is.
Estimates = Mapping[CaseKey, Estimate]


class RecordedQuantity(NamedTuple):
    """What is known before anything is sampled.

    Attributes
    ----------
    find : callable
        (check, the record of training) -> the cases that there are, each with its
        estimate.
    symbol : str
        As LaTeX.
    words : str
        What it is, in English: a message, to be translated.
    summary : str
        The one that it has.
    divisors, initialisations, parts : tuple of str
        What a check may name of each; parts are an optimiser, for example.
    sign : str
        What stands between two divisors that are compared, replicate by replicate.
    exact : bool
        Whether the estimates have no error, and take no share of the error rate.
    """

    find: Callable[[Check, Record], Estimates]
    symbol: str
    words: str
    summary: str = "value"
    divisors: tuple[str, ...] = ("none",)
    initialisations: tuple[str, ...] = ("",)
    parts: tuple[str, ...] = ()
    sign: str = "/"
    exact: bool = False


#: Sizes of practice, at which two distribution functions are compared.
PRACTICE = (64, 128, 256)
#: Largest weights of peaked rows, and numbers of the other keys, of equal weights.
PEAKS, OTHER_KEYS = (0.9, 0.99, 0.999), (1, 127, 16383)
#: How far the scores of a row lie apart.
RANGES = (1.0, 0.1, 0.01)

Values = dict[CaseKey, float]


def even_weights() -> Values:
    """Return n times the largest weight over e**r, for n scores within a range r.

    That is the most peaked row that there is: one score r above the others.
    """
    return {
        CaseKey(part=f"r = {r}, n = {others + 1}"): (others + 1)
        / (math.exp(r) + others)
        for r in RANGES
        for others in OTHER_KEYS
    }


def find_distance() -> Values:
    """Return the largest distance of the scaled score's distribution function to Φ.

    Of Gaussian entries, by theory.
    """
    return {
        CaseKey(distribution="gaussian", d_k=d_k): kolmogorov_distance(d_k)
        for d_k in PRACTICE
    }


def relate_traces() -> Values:
    """Return the trace of J over 1 - p, for a largest weight p and equal others.

    That is the largest trace for n keys: the sum of squares of the others is least.
    """
    return {
        CaseKey(part=f"p = {p}, n = {others + 1}"): float(
            (1.0 - p**2 - (1.0 - p) ** 2 / others) / (1.0 - p)
        )
        for p in PEAKS
        for others in OTHER_KEYS
    }


def relate_elements() -> Values:
    """Return the largest p_i (1 - p_i) over 1 - p, for a largest weight p.

    One other key has all the rest: no element of a row can have more.
    """
    return {CaseKey(part=f"p = {p}"): p * (1.0 - p) / (1.0 - p) for p in PEAKS}


def _exact(find: Callable[[], Values], symbol: str, words: str) -> RecordedQuantity:
    """Make a quantity of numbers without error."""
    return RecordedQuantity(
        lambda *_: {case: _known(value) for case, value in find().items()},
        symbol,
        words,
        exact=True,
    )


def _known(value: float) -> Estimate:
    return Estimate(value, 0.0, 2)


ALGEBRA = {
    "normal_distance": _exact(
        find_distance,
        r"\sup_x \lvert F(x) - \Phi(x)\rvert",
        "largest distance of the distribution function of the scaled score to that of "
        "the normal distribution",
    ),
    "trace_over_rest": _exact(
        relate_traces,
        r"\frac{\operatorname{tr} J}{1 - p_{\max}}",
        "trace of the softmax Jacobian over the weight that the largest leaves",
    ),
    "largest_over_range": _exact(
        even_weights,
        r"\frac{n\,p_{\max}}{e^{r}}",
        "largest weight over $1/n$, over the exponential of how far scores lie apart",
    ),
    "element_over_rest": _exact(
        relate_elements,
        r"\frac{p(1-p)}{1 - p_{\max}}",
        "largest derivative of a weight by its own score over the weight that the "
        "largest leaves",
    ),
}

OPTIMISERS = ("sgd", "adam")
#: Divisors of the arms, and those that stand over another in a comparison.
DIVISORS = tuple(dict.fromkeys(ARMS.values()))
PAIRS = tuple(f"{one}/{COMPARED}" for one in DIVISORS if one != COMPARED)
#: Initialisations of arms that are compared, beside the usual one.
INITIALISATIONS = ("", "small-queries")


def compare(
    column: str,
    sign: str,
    estimate: Callable[[Array, Array], Estimate],
    check: Check,
    record: Record,
) -> Estimates:
    """Estimate something of an arm, or of two seed by seed, in each case.

    Of two, the seeds that both have: of two divisors, or of two d_k.  ``sign`` is what
    stands between them, of a ratio or a difference.
    """
    found = {}
    over, _slash, under = check.divisor.partition("/")
    for initialisation in check.domain.initialisation:
        arm = initialisation or over
        if ARMS[arm] != over:
            continue
        for optimiser, d_k in _cases(record, check):
            values = record.values(column, optimiser, arm, d_k)
            known = _at_least(_array(values)), _array(values)
            if under or check.quantity == GROWTH:
                other = (arm, D_K[0]) if check.quantity == GROWTH else (under, d_k)
                both = values.align(
                    record.values(column, optimiser, *other), join="inner"
                )
                one, two = map(_array, both)
                known = _divide(one, two) if sign == "/" else (one - two, one - two)
            case = CaseKey(part=optimiser, initialisation=initialisation, d_k=d_k)
            found[case] = estimate(*known)
    return found


def _array(values: "pd.Series[float]") -> Array:
    return np.asarray(values, dtype=np.float64)


def relate_updates(check: Check, record: Record) -> Estimates:
    """Estimate how the first step grows with the first gradient: a slope, by seed.

    Of the logarithms, over all arms; steps by their rates.
    """
    return {
        CaseKey(part=optimiser, d_k=d_k): median_estimate(
            _array(record.by_case[optimiser, d_k][SLOPE])
        )
        for optimiser, d_k in _cases(record, check)
    }


def find_rescaled(_: Check, record: Record) -> Estimates:
    """Return by how much weights differ where a divisor is made up for: exactly.

    For factors whose root is a power of two, so that nothing is rounded.
    """
    return {
        CaseKey(part=f"sgd c={one.factor:g}", d_k=one.d_k): _known(one.weights)
        for one in record.rescaled
        if one.optimiser == "sgd" and np.log2(one.factor) % 2.0 == 0.0
    }


#: What is compared with the same at the smallest d_k.
GROWTH = "training_growth"


def _cases(record: Record, check: Check) -> list[tuple[str, int]]:
    sizes = sorted({d_k for _, d_k in record.by_case})
    if check.quantity == GROWTH:
        sizes = sizes[1:]
    return [(part, d_k) for part in check.domain.part or OPTIMISERS for d_k in sizes]


def _at_least(values: Array) -> Array:
    """Return what values are at least: a run that never learned took all its steps."""
    return np.where(np.isinf(values), float(STEPS), values)


def _divide(over: Array, under: Array) -> tuple[Array, Array]:
    """Return the least and the most that a ratio is."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return _at_least(over) / under, over / _at_least(under)


def _quantity(  # noqa: PLR0913 - what differs from quantity to quantity
    symbol: str,
    words: str,
    column: str,
    *,
    sign: str = "/",
    divisors: tuple[str, ...] = (*DIVISORS, *PAIRS),
    estimate: Callable[[Array, Array], Estimate] = median_estimate,
    summary: str = "median",
) -> RecordedQuantity:
    return RecordedQuantity(
        partial(compare, column, sign, estimate),
        symbol,
        words,
        summary,
        divisors,
        INITIALISATIONS,
        OPTIMISERS,
        sign,
    )


TRAINING_QUANTITIES = {
    "training_steps": _quantity(
        "T", "steps until a task is learned, at the best learning rate", "steps"
    ),
    "training_steps_same_rate": _quantity(
        r"T_{\eta(\sqrt{d_k})}",
        "steps until a task is learned, at the best rate of the square root",
        "steps_same_rate",
        divisors=PAIRS,
    ),
    "training_learned": _quantity(
        r"1_{T<\infty}",
        "share of the seeds by which a task is learned",
        "steps",
        divisors=DIVISORS,
        estimate=lambda _, steps: share_of_seeds(np.isfinite(steps)),
        summary="mean",
    ),
    "training_rates": _quantity(
        "N_{\\eta}", "number of learning rates by which a task is learned", "rates"
    ),
    GROWTH: _quantity(
        r"\frac{T(d_k)}{T(d_{\min})}",
        "steps until a task is learned over those at the smallest $d_k$",
        "steps",
        divisors=DIVISORS,
    ),
    "training_loss_gap": _quantity(
        "L",
        "loss at the end less that of another divisor",
        "final_loss",
        sign="-",
        divisors=PAIRS,
    ),
    "training_gradient": _quantity(
        r"\lVert g_0\rVert", "norm of the gradient at the first step", "gradient"
    ),
    "training_update_slope": RecordedQuantity(
        relate_updates,
        r"\frac{\mathrm{d}\ln\lVert\Delta W\rVert}{\mathrm{d}\ln\lVert g\rVert}",
        "log-log slope of the size of updates by that of gradients",
        "median",
        parts=OPTIMISERS,
    ),
    "training_rescaled": RecordedQuantity(
        find_rescaled,
        r"\max\lvert\Delta W\rvert",
        "largest difference between updates by a divisor and by a rescaled start",
        exact=True,
    ),
}

#: What is of the seeds of the first look alone, however many are judged.
FIRST_LOOK = ("training_rates",)
#: Name to quantity; what is not here is sampled.
RECORDED: dict[str, RecordedQuantity] = {**ALGEBRA, **TRAINING_QUANTITIES}


@cache
def find_recorded(check: Check, record: Record) -> Estimates:
    """Return the cases of a check's domain that are on record, with their estimates."""
    domain, (low, high) = check.domain, check.domain.d_k
    return {
        case: estimate
        for case, estimate in RECORDED[check.quantity].find(check, record).items()
        if (case.d_k is None or low <= case.d_k <= high)
        and (not domain.part or case.part in domain.part)
        and case.initialisation in domain.initialisation
    }

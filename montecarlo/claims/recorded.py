"""Recorded quantities: exact values by algebra, and results of the training record.

They need no sampling.  A new quantity is an entry of a table, and a new kind of them a
line in `RECORDED`.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from montecarlo.attention.softmax import Array
from montecarlo.claims.checks import Check
from montecarlo.claims.outcomes import CaseKey
from montecarlo.claims.training import ARMS, COMPARED, D_K, SLOPE, STEPS, Record
from montecarlo.estimation.estimates import Estimate, median_estimate, share_of_seeds
from montecarlo.study.presets import PRACTICE_D_K
from montecarlo.theory.score_distribution import kolmogorov_distance

#: The recorded cases of a check -> the estimate in each.  A case is, for example, an
#: optimiser and a d_k.
Estimates = Mapping[CaseKey, Estimate]


class RecordedQuantity(NamedTuple):
    """A quantity whose values come from algebra or a record, not from samples.

    Attributes
    ----------
    find : callable
        (check, record of training) -> estimate of each recorded case.
    symbol : str
        LaTeX.
    words : str
        The name of the quantity in English: a message, to be translated.
    summary : str
        The only summary of the quantity.
    divisors, initialisations, parts : tuple of str
        Allowed values of a check's fields of these names.  Parts are optimisers, for
        example.
    sign : str
        How two divisors are compared, replicate by replicate: ``/`` or ``-``.
    exact : bool
        Whether estimates have no error, and take no share of the error rate.
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


#: Largest weights of rows, and numbers of other keys, whose weights are equal.
PEAKS, OTHER_KEYS = (0.9, 0.99, 0.999), (1, 127, 16383)
#: Largest minus smallest score of a row.
RANGES = (1.0, 0.1, 0.01)

#: Cases -> the exact value in each.
Values = dict[CaseKey, float]


def largest_weight_ratios() -> Values:
    """Return n·p_max/e**r by case, for n keys whose scores differ by at most r.

    p_max is the largest weight that a row can have for given r: one score is r above
    the others, which are equal.  There is a case for each r in `RANGES` with each n - 1
    in `OTHER_KEYS`.  Its part is such as ``r = 0.1, n = 128``.
    """
    return {
        CaseKey(part=f"r = {r}, n = {others + 1}"): (others + 1)
        / (math.exp(r) + others)
        for r in RANGES
        for others in OTHER_KEYS
    }


def normal_distances() -> Values:
    """Return the Kolmogorov distance of q·k/sqrt(d_k) from N(0, 1) by case.

    That is the largest difference of the distribution functions.  Entries are Gaussian,
    and there is a case for each d_k of `PRACTICE_D_K`.
    """
    return {
        CaseKey(distribution="gaussian", d_k=d_k): kolmogorov_distance(d_k)
        for d_k in PRACTICE_D_K
    }


def trace_ratios() -> Values:
    """Return tr(J)/(1 - p) by case, for a row of n keys with the largest weight p.

    J is the Jacobian of softmax.  The other n - 1 weights are equal, which gives the
    largest trace.  There is a case for each p in `PEAKS` with each n - 1 in
    `OTHER_KEYS`.  Its part is such as ``p = 0.9, n = 128``.
    """
    return {
        CaseKey(part=f"p = {p}, n = {others + 1}"): float(
            (1.0 - p**2 - (1.0 - p) ** 2 / others) / (1.0 - p)
        )
        for p in PEAKS
        for others in OTHER_KEYS
    }


def element_ratios() -> Values:
    """Return p(1 - p)/(1 - p), which is p, by case: one for each p in `PEAKS`.

    p is the largest weight of a row, and p(1 - p) its derivative by its own score.  If
    there is a single other key, no element of the row has a larger ratio.
    """
    return {CaseKey(part=f"p = {p}"): p * (1.0 - p) / (1.0 - p) for p in PEAKS}


def _exact_quantity(
    values: Callable[[], Values], symbol: str, words: str
) -> RecordedQuantity:
    """Return a recorded quantity with exact values, which follow from algebra.

    ``values`` returns case -> value.  ``symbol`` is LaTeX, and ``words`` the name of
    the quantity in English.
    """
    return RecordedQuantity(
        lambda *_: {case: exact_estimate(value) for case, value in values().items()},
        symbol,
        words,
        exact=True,
    )


def exact_estimate(value: float) -> Estimate:
    """Return an exact number as an `Estimate`: standard error 0, two replicates."""
    return Estimate(value, 0.0, 2)


ALGEBRA = {
    "normal_distance": _exact_quantity(
        normal_distances,
        r"\sup_x \lvert F(x) - \Phi(x)\rvert",
        "largest distance of the distribution function of the scaled score to that of "
        "the normal distribution",
    ),
    "trace_over_rest": _exact_quantity(
        trace_ratios,
        r"\frac{\operatorname{tr} J}{1 - p_{\max}}",
        "trace of the softmax Jacobian over the weight that the largest leaves",
    ),
    "largest_over_range": _exact_quantity(
        largest_weight_ratios,
        r"\frac{n\,p_{\max}}{e^{r}}",
        "largest weight over $1/n$, over the exponential of how far scores lie apart",
    ),
    "element_over_rest": _exact_quantity(
        element_ratios,
        r"\frac{p(1-p)}{1 - p_{\max}}",
        "largest derivative of a weight by its own score over the weight that the "
        "largest leaves",
    ),
}

OPTIMISERS = ("sgd", "adam")
#: Divisors of the arms, and pairs of divisors that are compared.
DIVISORS = tuple(dict.fromkeys(ARMS.values()))
PAIRS = tuple(f"{one}/{COMPARED}" for one in DIVISORS if one != COMPARED)
#: The usual initialisation, and the other ones: arms with a divisor of the same name.
INITIALISATIONS = ("", "small-queries")


def compare_arms(
    column: str,
    check: Check,
    record: Record,
    *,
    sign: str = "/",
    estimate: Callable[[Array, Array], Estimate] = median_estimate,
) -> Estimates:
    """Return estimates for a check from a column of the training record, by case.

    An arm of the experiment is a divisor with an initialisation.  A case is an arm with
    an optimiser and a d_k.  Its estimate is about the column of that arm.

    If the divisor of the check is a ratio ``a/b``, the estimate compares an arm with
    divisor a to the arm ``b``.  For `GROWTH`, it compares an arm to itself at the
    smallest d_k.  Only seeds of both arms count.

    Initialisations in the domain whose arm has another divisor than the check are left
    out.

    Parameters
    ----------
    column : str
        Column of the record, as for `Record.values_by_seed`.
    check : Check
    record : Record
    sign : str
        How two arms are compared, seed by seed: ``/`` by the ratio, ``-`` by the
        difference.  Not used for the column of a single arm.
    estimate : callable
        (lower bounds, upper bounds) of the value of each seed -> estimate over seeds.
        The bounds are equal unless a run did not learn.
    """
    estimates = {}
    over, _slash, under = check.divisor.partition("/")
    for initialisation in check.domain.initialisation:
        arm = initialisation or over
        if ARMS[arm] != over:
            continue
        for optimiser, d_k in _optimisers_and_sizes(record, check):
            values = record.values_by_seed(column, optimiser, arm, d_k)
            steps = np.asarray(values, np.float64)
            bounds = _bounds_of_steps(steps), steps
            if under or check.quantity == GROWTH:
                other = (arm, D_K[0]) if check.quantity == GROWTH else (under, d_k)
                others = record.values_by_seed(column, optimiser, *other)
                aligned = values.align(others, join="inner")
                one, two = (np.asarray(one, np.float64) for one in aligned)
                bounds = _ratio_bounds(one, two) if sign == "/" else (one - two,) * 2
            case = CaseKey(part=optimiser, initialisation=initialisation, d_k=d_k)
            estimates[case] = estimate(*bounds)
    return estimates


def update_slopes(check: Check, record: Record) -> Estimates:
    """Return how the size of the first update depends on the gradient, by case.

    For each optimiser and d_k it is the median over seeds of the slope d ln(update size
    / learning rate) / d ln(gradient norm), over all arms of the training record.  It is
    1 if updates are proportional to gradients.
    """
    return {
        CaseKey(part=optimiser, d_k=d_k): median_estimate(
            record.by_case[optimiser, d_k][SLOPE].to_numpy()
        )
        for optimiser, d_k in _optimisers_and_sizes(record, check)
    }


def rescaled_differences(_: Check, record: Record) -> Estimates:
    """Return the largest absolute difference of weights of equivalent runs, by case.

    One of the runs has another divisor, and initial weights and a learning rate that
    are rescaled for it: without rounding, both would be equal.  Values are exact.  Only
    runs by SGD are used, and only factors whose square root is a power of two, which
    rescale without rounding.
    """
    return {
        CaseKey(part=f"sgd c={one.factor:g}", d_k=one.d_k): exact_estimate(one.weights)
        for one in record.rescaled
        if one.optimiser == "sgd" and np.log2(one.factor) % 2.0 == 0.0
    }


#: The quantity that is a ratio to the smallest d_k.
GROWTH = "training_growth"


def _optimisers_and_sizes(record: Record, check: Check) -> list[tuple[str, int]]:
    """Return (optimiser, d_k) for each run of a check that the training record has.

    Such as ``[("sgd", 16), ("sgd", 64), ...]``.  All recorded d_k are used, whatever
    the domain of the check.  For `GROWTH`, the ratio to the smallest d_k, that d_k is
    left out.
    """
    sizes = sorted({d_k for _, d_k in record.by_case})[check.quantity == GROWTH :]
    return [(part, d_k) for part in check.domain.part or OPTIMISERS for d_k in sizes]


def _bounds_of_steps(values: Array) -> Array:
    """Return lower bounds of the numbers of steps until runs learned, elementwise.

    A run that did not learn has infinite steps; its lower bound is `STEPS`, the length
    of a run.  For other runs the bound is the number itself.
    """
    return np.where(np.isinf(values), float(STEPS), values)


def _ratio_bounds(over: Array, under: Array) -> tuple[Array, Array]:
    """Return (lower bounds, upper bounds) of ratios of numbers of steps, elementwise.

    They differ where a run did not learn, so that its steps are infinite.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return _bounds_of_steps(over) / under, over / _bounds_of_steps(under)


#: The first quantity of the training record; others differ from it in some fields.
_STEPS = RecordedQuantity(
    partial(compare_arms, "steps"),
    "T",
    "steps until a task is learned, at the best learning rate",
    "median",
    (*DIVISORS, *PAIRS),
    INITIALISATIONS,
    OPTIMISERS,
)
TRAINING_QUANTITIES = {
    "training_steps": _STEPS,
    "training_steps_same_rate": _STEPS._replace(
        find=partial(compare_arms, "steps_same_rate"),
        symbol=r"T_{\eta(\sqrt{d_k})}",
        words="steps until a task is learned, at the best rate of the square root",
        divisors=PAIRS,
    ),
    "training_learned": _STEPS._replace(
        find=partial(
            compare_arms,
            "steps",
            estimate=lambda _, steps: share_of_seeds(np.isfinite(steps)),
        ),
        symbol=r"1_{T<\infty}",
        words="share of the seeds by which a task is learned",
        divisors=DIVISORS,
        summary="mean",
    ),
    "training_rates": _STEPS._replace(
        find=partial(compare_arms, "rates"),
        symbol="N_{\\eta}",
        words="number of learning rates by which a task is learned",
    ),
    GROWTH: _STEPS._replace(
        symbol=r"\frac{T(d_k)}{T(d_{\min})}",
        words="steps until a task is learned over those at the smallest $d_k$",
        divisors=DIVISORS,
    ),
    "training_loss_gap": _STEPS._replace(
        find=partial(compare_arms, "final_loss", sign="-"),
        symbol="L",
        words="loss at the end less that of another divisor",
        sign="-",
        divisors=PAIRS,
    ),
    "training_gradient": _STEPS._replace(
        find=partial(compare_arms, "gradient"),
        symbol=r"\lVert g_0\rVert",
        words="norm of the gradient at the first step",
    ),
    "training_update_slope": RecordedQuantity(
        update_slopes,
        r"\frac{\mathrm{d}\ln\lVert\Delta W\rVert}{\mathrm{d}\ln\lVert g\rVert}",
        "log-log slope of the size of updates by that of gradients",
        "median",
        parts=OPTIMISERS,
    ),
    "training_rescaled": RecordedQuantity(
        rescaled_differences,
        r"\max\lvert\Delta W\rvert",
        "largest difference between updates by a divisor and by a rescaled start",
        exact=True,
    ),
}

#: Name -> recorded quantity; all other quantities are sampled.
RECORDED: dict[str, RecordedQuantity] = {**ALGEBRA, **TRAINING_QUANTITIES}


@cache
def find_recorded(check: Check, record: Record) -> Estimates:
    """Return estimates for the recorded cases in the domain of a check, by case.

    An empty dict if there are none.
    """
    domain, (low, high) = check.domain, check.domain.d_k
    return {
        case: estimate
        for case, estimate in RECORDED[check.quantity].find(check, record).items()
        if (case.d_k is None or low <= case.d_k <= high)
        and (not domain.part or case.part in domain.part)
        and case.initialisation in domain.initialisation
    }

"""Recorded runs of training as evidence: each arm at its rate, on seeds for judging.

An arm is a divisor with an initialisation; two of them are compared seed by seed.
A case is an optimiser and a d_k.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd

from montecarlo.attention.softmax import Array
from montecarlo.claims.checks import Check
from montecarlo.claims.evidence import RecordedQuantity
from montecarlo.claims.outcomes import Located
from montecarlo.claims.schema import Catalogue
from montecarlo.estimation.estimates import Estimate, median_estimate, share_of_seeds
from montecarlo.records.training import ARMS, STEPS, Record, read_record

#: The divisor whose rate is used where another is to learn at the same one.
COMPARED = "sqrt"
OPTIMISERS = ("sgd", "adam")
#: Divisors of the arms, and those that stand over another in a comparison.
DIVISORS = tuple(dict.fromkeys(ARMS.values()))
PAIRS = tuple(f"{one}/{COMPARED}" for one in DIVISORS if one != COMPARED)
#: Initialisations of arms beside the usual one.
INITIALISATIONS = ("", *(name for name in ARMS if name not in DIVISORS))

Measure = Callable[[Record, str, str, int], Array]
#: Two numbers of a seed to the least and the most that their comparison is.
Join = Callable[[Array, Array], tuple[Array, Array]]


def at_rate(column: str, record: Record, optimiser: str, arm: str, d_k: int) -> Array:
    """Return a column of an arm at its chosen rate, by seed."""
    return _column(record, column, optimiser, arm, d_k, arm)


def at_rate_compared(record: Record, optimiser: str, arm: str, d_k: int) -> Array:
    """Return the steps of an arm at the rate chosen for `COMPARED`, by seed."""
    return _column(record, "steps", optimiser, arm, d_k, COMPARED)


def count_rates(record: Record, optimiser: str, arm: str, d_k: int) -> Array:
    """Return at how many rates each seed learned."""
    runs = _runs(record, optimiser, arm, d_k)
    learned = np.isfinite(runs["steps"])
    counts: Array = learned.groupby(runs["seed"]).sum().to_numpy(float)
    return counts


def at_smallest(record: Record, optimiser: str, arm: str, d_k: int) -> Array:
    """Return the steps of an arm at the smallest d_k, whatever the d_k, by seed."""
    del d_k
    smallest = min(size for *_, size in record.chosen)
    return at_rate("steps", record, optimiser, arm, smallest)


def compare(  # noqa: PLR0913, PLR0917 - what is compared, how, and where
    measure: Measure,
    against: Measure | None,
    join: Join,
    estimate: Callable[[Array, Array], Estimate],
    catalogue: Catalogue,
    check: Check,
) -> Mapping[Located, Estimate]:
    """Estimate something of an arm, or of two seed by seed, in each case."""
    del catalogue
    record, found = read_record(), {}
    over, _, under = check.divisor.partition("/")
    for initialisation in check.domain.initialisation:
        arm = initialisation or over
        if ARMS[arm] != over:
            continue
        for optimiser, d_k in _cases(record, check):
            values = measure(record, optimiser, arm, d_k)
            known = _at_least(values), values
            if under:
                known = join(values, measure(record, optimiser, under, d_k))
            elif against is not None:
                known = join(values, against(record, optimiser, arm, d_k))
            case = Located(part=optimiser, initialisation=initialisation, d_k=d_k)
            found[case] = estimate(*known)
    return found


def relate_updates(catalogue: Catalogue, check: Check) -> Mapping[Located, Estimate]:
    """Estimate how the first step grows with the first gradient: a slope, by seed.

    Of the logarithms, over all arms; steps by their rates.
    """
    del catalogue
    record, found = read_record(), {}
    runs = record.judged
    for optimiser, d_k in _cases(record, check):
        mine = runs[(runs["optimiser"] == optimiser) & (runs["d_k"] == d_k)]
        slopes = [
            np.polyfit(
                np.log(some["gradient"]), np.log(some["update"] / some["rate"]), 1
            )[0]
            for _, some in mine.groupby("seed")
        ]
        found[Located(part=optimiser, d_k=d_k)] = median_estimate(np.array(slopes))
    return found


def find_rescaled(catalogue: Catalogue, check: Check) -> Mapping[Located, Estimate]:
    """Return by how much weights differ where a divisor is made up for: exactly.

    For factors whose root is a power of two, so that nothing is rounded.
    """
    del catalogue, check
    return {
        Located(part=f"sgd c={one.factor:g}", d_k=one.d_k): Estimate(
            one.weights, 0.0, 2
        )
        for one in read_record().rescaled
        if one.optimiser == "sgd" and np.log2(one.factor) % 2.0 == 0.0
    }


def _cases(record: Record, check: Check) -> list[tuple[str, int]]:
    sizes = sorted({d_k for *_, d_k in record.chosen})
    if check.quantity == "training_growth":
        sizes = sizes[1:]  # the smallest is what others are compared with
    return [(part, d_k) for part in check.domain.part or OPTIMISERS for d_k in sizes]


def _runs(record: Record, optimiser: str, arm: str, d_k: int) -> pd.DataFrame:
    runs = record.judged
    mine = (runs["optimiser"] == optimiser) & (runs["arm"] == arm)
    return runs[mine & (runs["d_k"] == d_k)]


def _column(  # noqa: PLR0913, PLR0917 - which runs, and at whose rate
    record: Record, column: str, optimiser: str, arm: str, d_k: int, rate_of: str
) -> Array:
    runs = _runs(record, optimiser, arm, d_k)
    at = runs[runs["rate"] == record.chosen[optimiser, rate_of, d_k]]
    return at.sort_values("seed")[column].to_numpy(float)


def _at_least(values: Array) -> Array:
    """Return what values are at least: a run that never learned took all its steps."""
    return np.where(np.isinf(values), float(STEPS), values)


def _divide(over: Array, under: Array) -> tuple[Array, Array]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return _at_least(over) / under, over / _at_least(under)


def _subtract(one: Array, other: Array) -> tuple[Array, Array]:
    return one - other, one - other


def _learned(_: Array, steps: Array) -> Estimate:
    return share_of_seeds(np.isfinite(steps))


def _quantity(  # noqa: PLR0913 - what differs from quantity to quantity
    symbol: str,
    measure: Measure,
    *,
    against: Measure | None = None,
    join: Join = _divide,
    divisors: tuple[str, ...] = (*DIVISORS, *PAIRS),
    estimate: Callable[[Array, Array], Estimate] = median_estimate,
    summary: str = "median",
    words: str,
) -> RecordedQuantity:
    return RecordedQuantity(
        partial(compare, measure, against, join, estimate),
        symbol,
        summary,
        divisors,
        INITIALISATIONS,
        OPTIMISERS,
        "/" if join is _divide else "-",
        words=words,
    )


_steps = partial(at_rate, "steps")
QUANTITIES = {
    "training_steps": _quantity(
        "T", _steps, words="steps until a task is learned, at the best learning rate"
    ),
    "training_steps_same_rate": _quantity(
        r"T_{\eta(\sqrt{d_k})}",
        at_rate_compared,
        divisors=PAIRS,
        words="steps until a task is learned, at the best rate of the square root",
    ),
    "training_learned": _quantity(
        r"1_{T<\infty}",
        _steps,
        divisors=DIVISORS,
        estimate=_learned,
        summary="mean",
        words="share of the seeds by which a task is learned",
    ),
    "training_rates": _quantity(
        "N_{\\eta}",
        count_rates,
        words="number of learning rates by which a task is learned",
    ),
    "training_growth": _quantity(
        r"\frac{T(d_k)}{T(d_{\min})}",
        _steps,
        against=at_smallest,
        divisors=DIVISORS,
        words="steps until a task is learned over those at the smallest $d_k$",
    ),
    "training_loss_gap": _quantity(
        "L",
        partial(at_rate, "final_loss"),
        join=_subtract,
        divisors=PAIRS,
        words="loss at the end less that of another divisor",
    ),
    "training_gradient": _quantity(
        r"\lVert g_0\rVert",
        partial(at_rate, "gradient"),
        words="norm of the gradient at the first step",
    ),
    "training_update_slope": RecordedQuantity(
        relate_updates,
        r"\frac{\mathrm{d}\ln\lVert\Delta W\rVert}{\mathrm{d}\ln\lVert g\rVert}",
        "median",
        parts=OPTIMISERS,
        words="log-log slope of the size of updates by that of gradients",
    ),
    "training_rescaled": RecordedQuantity(
        find_rescaled,
        r"\max\lvert\Delta W\rvert",
        exact=True,
        words="largest difference between updates by a divisor and by a rescaled start",
    ),
}

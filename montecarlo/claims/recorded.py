"""Evidence, by the one way it reaches the judge; and records, which are such evidence.

Simulation and what is on record each answer the same questions: in which cases a check
can be looked at, what was found in one, and whether more can be had.

Records are arrays, published facts, and recorded runs of training: nothing is sampled.
Claims about shapes and dates have no interpretation in the catalogue, as they need no
words: what each means is a row of `FACTS` here.  A new kind of record is a table of
quantities, and a line in `RECORDED`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import starmap
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
import pandas as pd
from scipy.special import softmax

from montecarlo.attention.softmax import Array
from montecarlo.claims.checks import Check, Domain, Level, region_of
from montecarlo.claims.outcomes import Case, Located, case_on
from montecarlo.claims.schema import Catalogue, Claim, Interpretation, ModelSize
from montecarlo.claims.training import (
    ARMS,
    COMPARED,
    D_K,
    LOOKS,
    SLOPE,
    STEPS,
    Record,
    read_record,
)
from montecarlo.estimation.estimates import Estimate, median_estimate, share_of_seeds
from montecarlo.theory.score_distribution import largest_gap


class Evidence(Protocol):
    """Something that checks can be decided on."""

    def reaches(self, check: Check) -> bool:
        """Tell whether its cases reach the whole scope of a check."""

    def cases(self, check: Check) -> Sequence[Located]:
        """Return the cases in which a check can be looked at, in a fixed order."""

    def find(self, check: Check, where: Located, rate: float) -> Case:
        """Return what there is for a check in one of its cases.

        ``rate`` is what simultaneous intervals state.
        """


class RecordedQuantity(NamedTuple):
    """What is known before anything is sampled, by a record or by arithmetic.

    Attributes
    ----------
    find : callable
        (catalogue, check, what reads the record of training) -> the cases that there
        are and the estimate of each.
    symbol : str
        As LaTeX; empty where no page shows it.
    summary : str
        The one that it has.
    divisors, initialisations, parts : tuple of str
        What a check may name of each; parts are an optimiser, for example.
    sign : str
        What stands between two divisors that are compared, replicate by replicate.
    exact : bool
        Whether the estimates have no error, and take no share of the error rate.
    published : bool
        Whether others published them: a list on which "usually" can be decided.
    looks : int
        At how much evidence it may be decided; the error rate is split over them.
    words : str
        What it is, in English: a message, to be translated; empty with the symbol.
    """

    find: Callable[[Catalogue, Check, Callable[[], Record]], Mapping[Located, Estimate]]
    symbol: str = ""
    summary: str = "value"
    divisors: tuple[str, ...] = ("none",)
    initialisations: tuple[str, ...] = ("",)
    parts: tuple[str, ...] = ()
    sign: str = "/"
    exact: bool = False
    published: bool = False
    looks: int = 1
    words: str = ""


#: Kinds of claims that are decided here.
KINDS = ("shape", "record")
#: Numbers of queries and keys, and d_k, that a product is formed for.
SIZES = ((3, 5, 4), (8, 8, 2), (4, 6, 16))
#: What a text calls common sizes of d_k, and from where on any is.
COMMON, LARGE = (64, 128), 128
#: When a text says that the divisor was introduced.
INTRODUCED = 2017
#: Sizes of practice, at which two distribution functions are compared.
PRACTICE = (64, 128, 256)
#: Largest weights of peaked rows, and numbers of the other keys, of equal weights.
PEAKS, OTHER_KEYS = (0.9, 0.99, 0.999), (1, 127, 16383)
#: Scores from 0 to 1, the range that a text has for an example, and how far they move.
SCORES, MOVED = np.linspace(0.0, 1.0, 5), 8.0
#: How far the scores of a row lie apart.
RANGES = (1.0, 0.1, 0.01)
#: These numbers are exact, but for rounding.
EXACT = 1e-9

Values = dict[Located, float]


def _product(n_queries: int, n_keys: int, d_k: int) -> tuple[Located, Array]:
    """Return q·k, of vectors and not of matrices where there is one of each."""
    q, k = np.ones((n_queries, d_k)), np.ones((n_keys, d_k))
    one_each = n_queries == n_keys == 1
    scores = np.asarray(q[0] @ k[0]) if one_each else q @ k.T
    return Located(part=f"{n_queries} by {n_keys}", d_k=d_k), scores


def count_along(axis: int) -> Values:
    """Return the rows of QKᵀ for some sizes; with 1, its columns."""
    return {
        case: float(scores.shape[axis]) for case, scores in starmap(_product, SIZES)
    }


def count_score() -> Values:
    """Return how many numbers q·k is, for some sizes."""
    found = [_product(1, 1, d_k) for *_, d_k in SIZES]
    return {case: float(score.size) for case, score in found}


def of_models(value: Callable[[ModelSize], float], catalogue: Catalogue) -> Values:
    """Return a number of each published model."""
    return {
        Located(part=model.name, d_k=model.d_k): float(value(model))
        for model in catalogue.model
    }


def move_scores() -> Values:
    """Return by how much a weight changes at most if scores leave the range 0 to 1.

    All by the same number, so that they lie beyond that range and as far apart.
    """
    moved = softmax(SCORES + MOVED) - softmax(SCORES)
    return {Located(part="0 to 1"): float(np.abs(moved).max())}


def even_weights() -> Values:
    """Return n times the largest weight over e**r, for n scores within a range r.

    That is the most peaked row that there is: one score r above the others.
    """
    return {
        Located(part=f"r = {r}, n = {others + 1}"): (others + 1)
        / (math.exp(r) + others)
        for r in RANGES
        for others in OTHER_KEYS
    }


def find_distance() -> Values:
    """Return the largest distance of the scaled score's distribution function to Φ.

    Of Gaussian entries, by theory.
    """
    return {
        Located(distribution="gaussian", d_k=d_k): largest_gap(d_k) for d_k in PRACTICE
    }


def relate_traces() -> Values:
    """Return the trace of J over 1 - p, for a largest weight p and equal others.

    That is the largest trace for n keys: the sum of squares of the others is least.
    """
    return {
        Located(part=f"p = {p}, n = {others + 1}"): float(
            (1.0 - p**2 - (1.0 - p) ** 2 / others) / (1.0 - p)
        )
        for p in PEAKS
        for others in OTHER_KEYS
    }


def relate_elements() -> Values:
    """Return the largest p_i (1 - p_i) over 1 - p, for a largest weight p.

    One other key has all the rest: no element of a row can have more.
    """
    return {Located(part=f"p = {p}"): p * (1.0 - p) / (1.0 - p) for p in PEAKS}


def date_record(catalogue: Catalogue) -> Values:
    """Return the year of the earliest publication on record."""
    years = [one.year for one in catalogue.record if one.claim == "introduced-2017"]
    return {Located(part="record"): float(min(years))} if years else {}


def _fact(
    find: Callable[[Catalogue], Values],
    symbol: str = "",
    words: str = "",
    *,
    published: bool = False,
) -> RecordedQuantity:
    """Make a quantity of numbers without error."""
    return RecordedQuantity(
        lambda catalogue, *_: {
            case: Estimate(value, 0.0, 2) for case, value in find(catalogue).items()
        },
        symbol,
        exact=True,
        published=published,
        words=words,
    )


#: Those with a symbol may be named in a claims file.
FACT_QUANTITIES = {
    "product_rows": _fact(lambda _: count_along(0)),
    "product_columns": _fact(lambda _: count_along(1)),
    "score_size": _fact(lambda _: count_score()),
    "width_over_d_k": _fact(
        partial(of_models, lambda model: model.d_model / model.d_k), published=True
    ),
    "common_d_k": _fact(
        partial(of_models, lambda one: one.d_k in COMMON or one.d_k >= LARGE),
        published=True,
    ),
    "weights_moved": _fact(lambda _: move_scores()),
    "year": _fact(date_record, published=True),
    "normal_distance": _fact(
        lambda _: find_distance(),
        r"\sup_x \lvert F(x) - \Phi(x)\rvert",
        "largest distance of the distribution function of the scaled score to that of "
        "the normal distribution",
    ),
    "trace_over_rest": _fact(
        lambda _: relate_traces(),
        r"\frac{\operatorname{tr} J}{1 - p_{\max}}",
        "trace of the softmax Jacobian over the weight that the largest leaves",
    ),
    "largest_over_range": _fact(
        lambda _: even_weights(),
        r"\frac{n\,p_{\max}}{e^{r}}",
        "largest weight over $1/n$, over the exponential of how far scores lie apart",
    ),
    "element_over_rest": _fact(
        lambda _: relate_elements(),
        r"\frac{p(1-p)}{1 - p_{\max}}",
        "largest derivative of a weight by its own score over the weight that the "
        "largest leaves",
    ),
}


#: Sizes that arrays and models of the record may have: all.
ANY = Domain(d_k=(1, 2**24))


def _equals(quantity: str, expected: float | Level) -> Check:
    return Check(
        quantity, "equals", "value", expected=expected, tolerance=EXACT, domain=ANY
    )


ITS_D_K = Level(d_k_power=1.0)
#: Claim to its interpretations: all vote.
FACTS: dict[str, tuple[Interpretation, ...]] = {
    # q·k, or QKᵀ, has shape (d_k, d_k)
    "product-shape": (
        Interpretation(
            "matrix",
            (_equals("product_rows", ITS_D_K), _equals("product_columns", ITS_D_K)),
        ),
        Interpretation("number", (_equals("score_size", Level(d_k_power=2.0)),)),
    ),
    "input-dimension": (Interpretation("same", (_equals("width_over_d_k", 1.0),)),),
    # if scores need the range, 0 to 1 for example, weights beyond it differ
    "scores-need-range": (
        Interpretation(
            "range",
            (Check("weights_moved", "at_least", "value", low=EXACT, domain=ANY),),
            words=("reasonable-example",),
        ),
    ),
    "head-dimensions": (
        Interpretation(
            "common",
            (_equals("common_d_k", 1.0),),
            quantifier="usually",
            words=("commonly",),
        ),
    ),
    "introduced-2017": (Interpretation("year", (_equals("year", INTRODUCED),)),),
}


def with_facts(claim: Claim) -> Claim:
    """Return a claim with its interpretations, which the catalogue may have."""
    if claim.kind not in KINDS:
        return claim
    return msgspec.structs.replace(claim, interpretation=FACTS[claim.id])


OPTIMISERS = ("sgd", "adam")
#: Divisors of the arms, and those that stand over another in a comparison.
DIVISORS = tuple(dict.fromkeys(ARMS.values()))
PAIRS = tuple(f"{one}/{COMPARED}" for one in DIVISORS if one != COMPARED)
#: Initialisations of arms that are compared, beside the usual one.
INITIALISATIONS = ("", "small-queries")

#: A number of each seed.
Measure = Callable[[Record, str, str, int], "pd.Series[float]"]
#: Two numbers of a seed to the least and the most that their comparison is.
Join = Callable[[Array, Array], tuple[Array, Array]]
Read = Callable[[], Record]


def of_runs(
    record: Record, optimiser: str, arm: str, d_k: int, *, column: str = "steps"
) -> "pd.Series[float]":
    """Return a column of an arm by seed, at its chosen rate."""
    return record.by_arm[optimiser, arm, d_k][column].astype(float)


def first_gradient(
    record: Record, optimiser: str, arm: str, d_k: int
) -> "pd.Series[float]":
    """Return the norm of the first gradient of an arm by seed."""
    return record.by_case[optimiser, d_k][arm].astype(float)


def at_smallest(
    record: Record, optimiser: str, arm: str, d_k: int
) -> "pd.Series[float]":
    """Return the steps of an arm at the smallest d_k, whatever the d_k, by seed."""
    del d_k
    return of_runs(record, optimiser, arm, D_K[0])


def compare(  # noqa: PLR0913, PLR0917 - the first four are what a quantity is
    measure: Measure,
    against: Measure | None,
    join: Join,
    estimate: Callable[[Array, Array], Estimate],
    _: Catalogue,
    check: Check,
    read: Read,
) -> Mapping[Located, Estimate]:
    """Estimate something of an arm, or of two seed by seed, in each case.

    Of two, the seeds that both have.
    """
    record, found = read(), {}
    over, _slash, under = check.divisor.partition("/")
    for initialisation in check.domain.initialisation:
        arm = initialisation or over
        if ARMS[arm] != over:
            continue
        for optimiser, d_k in _cases(record, check):
            values = measure(record, optimiser, arm, d_k)
            known = _at_least(_array(values)), _array(values)
            if under or against is not None:
                other = (
                    measure(record, optimiser, under, d_k)
                    if against is None
                    else against(record, optimiser, arm, d_k)
                )
                one, two = values.align(other, join="inner")
                known = join(_array(one), _array(two))
            case = Located(part=optimiser, initialisation=initialisation, d_k=d_k)
            found[case] = estimate(*known)
    return found


def _array(values: "pd.Series[float]") -> Array:
    return np.asarray(values, dtype=np.float64)


def relate_updates(
    _: Catalogue, check: Check, read: Read
) -> Mapping[Located, Estimate]:
    """Estimate how the first step grows with the first gradient: a slope, by seed.

    Of the logarithms, over all arms; steps by their rates.
    """
    record = read()
    return {
        Located(part=optimiser, d_k=d_k): median_estimate(
            _array(record.by_case[optimiser, d_k][SLOPE])
        )
        for optimiser, d_k in _cases(record, check)
    }


def find_rescaled(_: Catalogue, check: Check, read: Read) -> Mapping[Located, Estimate]:
    """Return by how much weights differ where a divisor is made up for: exactly.

    For factors whose root is a power of two, so that nothing is rounded.
    """
    del check
    return {
        Located(part=f"sgd c={one.factor:g}", d_k=one.d_k): Estimate(
            one.weights, 0.0, 2
        )
        for one in read().rescaled
        if one.optimiser == "sgd" and np.log2(one.factor) % 2.0 == 0.0
    }


def _cases(record: Record, check: Check) -> list[tuple[str, int]]:
    sizes = sorted({d_k for _, d_k in record.by_case})
    if check.quantity == "training_growth":
        sizes = sizes[1:]  # the smallest is what others are compared with
    return [(part, d_k) for part in check.domain.part or OPTIMISERS for d_k in sizes]


def _at_least(values: Array) -> Array:
    """Return what values are at least: a run that never learned took all its steps."""
    return np.where(np.isinf(values), float(STEPS), values)


def _divide(over: Array, under: Array) -> tuple[Array, Array]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return _at_least(over) / under, over / _at_least(under)


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
        looks=len(LOOKS),
        words=words,
    )


TRAINING_QUANTITIES = {
    "training_steps": _quantity(
        "T", of_runs, words="steps until a task is learned, at the best learning rate"
    ),
    "training_steps_same_rate": _quantity(
        r"T_{\eta(\sqrt{d_k})}",
        partial(of_runs, column="steps_same_rate"),
        divisors=PAIRS,
        words="steps until a task is learned, at the best rate of the square root",
    ),
    "training_learned": _quantity(
        r"1_{T<\infty}",
        of_runs,
        divisors=DIVISORS,
        estimate=lambda _, steps: share_of_seeds(np.isfinite(steps)),
        summary="mean",
        words="share of the seeds by which a task is learned",
    ),
    "training_rates": _quantity(
        "N_{\\eta}",
        partial(of_runs, column="rates"),
        words="number of learning rates by which a task is learned",
    ),
    "training_growth": _quantity(
        r"\frac{T(d_k)}{T(d_{\min})}",
        of_runs,
        against=at_smallest,
        divisors=DIVISORS,
        words="steps until a task is learned over those at the smallest $d_k$",
    ),
    "training_loss_gap": _quantity(
        "L",
        partial(of_runs, column="final_loss"),
        join=lambda one, other: (one - other, one - other),
        divisors=PAIRS,
        words="loss at the end less that of another divisor",
    ),
    "training_gradient": _quantity(
        r"\lVert g_0\rVert",
        first_gradient,
        words="norm of the gradient at the first step",
    ),
    "training_update_slope": RecordedQuantity(
        relate_updates,
        r"\frac{\mathrm{d}\ln\lVert\Delta W\rVert}{\mathrm{d}\ln\lVert g\rVert}",
        "median",
        parts=OPTIMISERS,
        looks=len(LOOKS),
        words="log-log slope of the size of updates by that of gradients",
    ),
    "training_rescaled": RecordedQuantity(
        find_rescaled,
        r"\max\lvert\Delta W\rvert",
        exact=True,
        words="largest difference between updates by a divisor and by a rescaled start",
    ),
}


#: Name to quantity; what is not here is sampled.
RECORDED: dict[str, RecordedQuantity] = {
    **FACT_QUANTITIES,
    **TRAINING_QUANTITIES,
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """Records for their quantities, and other evidence for the rest.

    It is `montecarlo.claims.recorded.Evidence` itself, and looks a check up once: a
    copy with other evidence for the rest has what is ``known``.  ``record`` is that of
    training, by default the one of the package.
    """

    catalogue: Catalogue
    others: Evidence
    record: Record | None = None
    known: dict[Check, Mapping[Located, Estimate]] = field(default_factory=dict)

    def reaches(self, check: Check) -> bool:
        """Tell whether there is all of a scope; a record has what it speaks of."""
        return check.quantity in RECORDED or self.others.reaches(check)

    def cases(self, check: Check) -> Sequence[Located]:
        """Return the cases of the check's domain that there are."""
        if check.quantity not in RECORDED:
            return self.others.cases(check)
        domain, (low, high) = check.domain, check.domain.d_k
        return [
            case
            for case in self._look_up(check)
            if (case.d_k is None or low <= case.d_k <= high)
            and (not domain.part or case.part in domain.part)
            and case.initialisation in domain.initialisation
        ]

    def find(self, check: Check, where: Located, rate: float) -> Case:
        """Return what is on record of a case."""
        if check.quantity not in RECORDED:
            return self.others.find(check, where, rate)
        region = region_of(check, where.d_k, where.n_keys)
        if region is None:
            raise LookupError(f"{check.quantity} has nothing to be held against")
        estimate = self._look_up(check)[where]
        return case_on(
            where,
            region,
            estimate,
            rate,
            exact=estimate.value if RECORDED[check.quantity].exact else None,
            d_k_range=None if where.d_k is None else (where.d_k, where.d_k),
        )

    def _look_up(self, check: Check) -> Mapping[Located, Estimate]:
        if check not in self.known:
            find = RECORDED[check.quantity].find
            self.known[check] = find(
                self.catalogue, check, lambda: self.record or read_record()
            )
        return self.known[check]

"""Arrays and the published record as evidence: nothing is sampled or estimated.

Claims about shapes and dates have no interpretation in the catalogue, as they need no
words: what each means is a row of `FACTS` here.
"""

from collections.abc import Callable

import msgspec
import numpy as np
from scipy.special import softmax

from montecarlo.claims.checks import Check, Domain, Level
from montecarlo.claims.evidence import RecordedQuantity
from montecarlo.claims.outcomes import Located
from montecarlo.claims.schema import Catalogue, Claim, Interpretation
from montecarlo.estimation.estimates import Estimate
from montecarlo.theory.score_distribution import largest_gap

#: Kinds of claims that are decided here.
KINDS = ("shape", "record")
#: Numbers of queries and keys, and d_k, that a product is formed for.
SIZES = ((3, 5, 4), (8, 8, 2), (4, 6, 16))
#: What a text calls common sizes of d_k, and from where on any is.
COMMON, LARGE = (64, 128), 128
#: What is added to all scores of a row.
SHIFTS = (1.5, -40.0)
#: When a text says that the divisor was introduced.
INTRODUCED = 2017
#: Sizes of practice, at which two distribution functions are compared.
PRACTICE = (64, 128, 256)
#: Largest weights of peaked rows, and numbers of the other keys, of equal weights.
PEAKS, OTHERS = (0.9, 0.99, 0.999), (1, 127, 16383)
#: Scores from 0 to 1, the range that a text asks for.
SCORES = np.linspace(0.0, 1.0, 5)
#: These numbers are exact, but for rounding.
EXACT = 1e-9

Values = dict[Located, float]


def count_rows(catalogue: Catalogue) -> Values:
    """Return the rows of QKᵀ for some sizes."""
    del catalogue
    return {_product(*size): float(_scores(*size).shape[0]) for size in SIZES}


def count_columns(catalogue: Catalogue) -> Values:
    """Return the columns of QKᵀ for some sizes."""
    del catalogue
    return {_product(*size): float(_scores(*size).shape[1]) for size in SIZES}


def count_score(catalogue: Catalogue) -> Values:
    """Return how many numbers q·k is, for some sizes."""
    del catalogue
    return {_product(1, 1, d_k): float(_scores(1, 1, d_k).size) for *_, d_k in SIZES}


def relate_width(catalogue: Catalogue) -> Values:
    """Return the input dimension over d_k of each published model."""
    return {
        Located(part=model.name, d_k=model.d_k): model.d_model / model.d_k
        for model in catalogue.model
    }


def know_size(catalogue: Catalogue) -> Values:
    """Return 1 for each published model whose d_k is one that the texts call common."""
    return {
        Located(part=model.name, d_k=model.d_k): float(
            model.d_k in COMMON or model.d_k >= LARGE
        )
        for model in catalogue.model
    }


def shift_weights(catalogue: Catalogue) -> Values:
    """Return by how much weights change when a number is added to all scores."""
    del catalogue
    weights = softmax(SCORES)
    return {
        Located(part=f"{shift:+g}"): float(
            np.abs(softmax(SCORES + shift) - weights).max()
        )
        for shift in SHIFTS
    }


def find_distance(catalogue: Catalogue) -> Values:
    """Return the largest distance of the scaled score's distribution function to Φ.

    Of Gaussian entries, by theory.
    """
    del catalogue
    return {
        Located(distribution="gaussian", d_k=d_k): largest_gap(d_k) for d_k in PRACTICE
    }


def relate_traces(catalogue: Catalogue) -> Values:
    """Return the trace of J over 1 - p, for a largest weight p and equal others.

    That is the largest trace for n keys: the sum of squares of the others is least.
    """
    del catalogue
    return {
        Located(part=f"p = {p}, n = {others + 1}"): float(
            (1.0 - p**2 - (1.0 - p) ** 2 / others) / (1.0 - p)
        )
        for p in PEAKS
        for others in OTHERS
    }


def relate_elements(catalogue: Catalogue) -> Values:
    """Return the largest p_i (1 - p_i) over 1 - p, for a largest weight p.

    One other key has all the rest: no element of a row can have more.
    """
    del catalogue
    return {Located(part=f"p = {p}"): p * (1.0 - p) / (1.0 - p) for p in PEAKS}


def date_record(catalogue: Catalogue) -> Values:
    """Return the year of the earliest publication on record."""
    years = [one.year for one in catalogue.record if one.claim == "introduced-2017"]
    return {Located(part="record"): float(min(years))} if years else {}


_VALUES: dict[str, Callable[[Catalogue], Values]] = {
    "product_rows": count_rows,
    "product_columns": count_columns,
    "score_size": count_score,
    "width_over_d_k": relate_width,
    "common_d_k": know_size,
    "weights_moved": shift_weights,
    "year": date_record,
}


def _record(
    count: Callable[[Catalogue], Values], symbol: str = "", words: str = ""
) -> RecordedQuantity:
    """Make a quantity of numbers without error."""
    return RecordedQuantity(
        lambda catalogue, _: {
            case: Estimate(value, 0.0, 2) for case, value in count(catalogue).items()
        },
        symbol,
        exact=True,
        words=words,
    )


#: Those with a symbol may be named in a claims file.
QUANTITIES = {
    **{name: _record(count) for name, count in _VALUES.items()},
    "normal_distance": _record(
        find_distance,
        r"\sup_x \lvert F(x) - \Phi(x)\rvert",
        "largest distance of the distribution function of the scaled score to that of "
        "the normal distribution",
    ),
    "trace_over_rest": _record(
        relate_traces,
        r"\frac{\operatorname{tr} J}{1 - p_{\max}}",
        "trace of the softmax Jacobian over the weight that the largest leaves",
    ),
    "element_over_rest": _record(
        relate_elements,
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


D_K = Level(d_k_power=1.0)
#: Claim to its interpretations: all vote.
FACTS: dict[str, tuple[Interpretation, ...]] = {
    # q·k, or QKᵀ, has shape (d_k, d_k)
    "product-shape": (
        Interpretation(
            "matrix", (_equals("product_rows", D_K), _equals("product_columns", D_K))
        ),
        Interpretation("number", (_equals("score_size", Level(d_k_power=2.0)),)),
    ),
    "input-dimension": (Interpretation("same", (_equals("width_over_d_k", 1.0),)),),
    # softmax needs scores from 0 to 1: others would give other weights
    "scores-need-range": (
        Interpretation(
            "needed", (Check("weights_moved", "at_least", "value", low=EXACT),)
        ),
    ),
    "head-dimensions": (
        Interpretation("common", (_equals("common_d_k", 1.0),), quantifier="usually"),
    ),
    "introduced-2017": (Interpretation("year", (_equals("year", INTRODUCED),)),),
}


def with_facts(claim: Claim) -> Claim:
    """Return a claim with its interpretations, which the catalogue may have."""
    if claim.kind not in KINDS:
        return claim
    return msgspec.structs.replace(claim, interpretation=FACTS[claim.id])


def _product(n_queries: int, n_keys: int, d_k: int) -> Located:
    return Located(part=f"{n_queries} by {n_keys}", d_k=d_k)


def _scores(n_queries: int, n_keys: int, d_k: int) -> np.ndarray:
    """Return q·k, of vectors and not of matrices where there is one of each."""
    q, k = np.ones((n_queries, d_k)), np.ones((n_keys, d_k))
    return np.asarray(q[0] @ k[0]) if n_queries == n_keys == 1 else q @ k.T

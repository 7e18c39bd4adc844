"""Facts of the texts that need no sample: shapes of arrays, and what others published.

Claims of kind ``shape`` and ``record`` have no interpretations: what each is held
against is a row of `FACTS`.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import softmax

from montecarlo.claims.schema import Catalogue, Claim
from montecarlo.claims.verdicts import (
    UNREACHED,
    Outcome,
    Quantifier,
    Reason,
    Ruling,
    join_cases,
)

#: Kinds of claims that are decided here.
KINDS = ("shape", "record")
#: Numbers of queries and keys, and d_k, that a product is formed for.
SIZES = ((3, 5, 4), (8, 8, 2), (4, 6, 16))
#: What a text calls common sizes of d_k, and from where on any is.
COMMON, LARGE = (64, 128), 128
#: When a text says that the divisor was introduced.
INTRODUCED = 2017
#: Scores from 0 to 1, the range that a text has for an example, and how far they move.
SCORES, MOVED = np.linspace(0.0, 1.0, 5), 8.0
#: Weights are equal but for rounding.
ROUNDING = 1e-9


def is_product_square(_: Catalogue) -> list[bool]:
    """Tell whether q·k is d_k² numbers, or QKᵀ has d_k rows and columns."""
    found = []
    for n_queries, n_keys, d_k in SIZES:
        q, k = np.ones((n_queries, d_k)), np.ones((n_keys, d_k))
        found += [(q @ k.T).shape == (d_k, d_k), np.size(q[0] @ k[0]) == d_k**2]
    return found


def needs_range(_: Catalogue) -> list[bool]:
    """Tell whether weights change if scores leave the range 0 to 1.

    All by the same number, so that they lie beyond that range and as far apart.
    """
    moved = softmax(SCORES + MOVED) - softmax(SCORES)
    return [bool(np.abs(moved).max() >= ROUNDING)]


def is_input_dimension(catalogue: Catalogue) -> list[bool]:
    """Tell of each published model whether d_k is its width."""
    return [model.d_model == model.d_k for model in catalogue.model]


def is_common(catalogue: Catalogue) -> list[bool]:
    """Tell of each published model whether its d_k is of a common size."""
    return [one.d_k in COMMON or one.d_k >= LARGE for one in catalogue.model]


def is_introduced(catalogue: Catalogue) -> list[bool]:
    """Tell whether the earliest publication on record is of the year that is said."""
    years = [one.year for one in catalogue.record if one.claim == "introduced-2017"]
    return [min(years) == INTRODUCED] if years else []


#: Claim to how it is said, and whether it is so in each case that there is.
FACTS: dict[str, tuple[Quantifier, Callable[[Catalogue], list[bool]]]] = {
    "product-shape": ("always", is_product_square),
    "scores-need-range": ("always", needs_range),
    "input-dimension": ("always", is_input_dimension),
    "head-dimensions": ("usually", is_common),
    "introduced-2017": ("always", is_introduced),
}


def rule_on_fact(claim: Claim, catalogue: Catalogue) -> Ruling:
    """Rule on a claim about shapes, by algebra, or about the record, by its sources."""
    quantifier, agrees = FACTS[claim.id]
    outcomes = [Outcome.SUPPORTED if x else Outcome.REFUTED for x in agrees(catalogue)]
    if not outcomes:
        return UNREACHED
    reason = Reason.THEORY if claim.kind == "shape" else Reason.SOURCE
    return Ruling(join_cases(quantifier, outcomes), reason)

"""Claims that need no sampling: shapes of arrays, and published sizes and dates.

Claims of kind ``shape`` and ``record`` have no interpretations.  Each is judged by its
entry in `FACTS`.
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

#: Kinds of claims that this module decides.
KINDS = ("shape", "record")
#: Numbers of queries and of keys, and d_k, for which products are formed.
SIZES = ((3, 5, 4), (8, 8, 2), (4, 6, 16))
#: Scores within [0, 1], the range of a text's example, and a shift out of that range.
SCORES, SHIFT = np.linspace(0.0, 1.0, 5), 8.0
#: Weights whose difference is smaller are equal but for rounding.
ROUNDING = 1e-9
#: Values of d_k that a text calls common, and the value from which it calls any common.
COMMON, LARGE = (64, 128), 128
#: Year in which a text says that the divisor was introduced.
INTRODUCED = 2017


def is_product_square(_: Catalogue) -> list[bool]:
    """Return whether QKᵀ has shape (d_k, d_k), and whether q·k has d_k² numbers.

    The list has both answers for each of `SIZES`, six in all.  The catalogue is not
    used.
    """
    agrees = []
    for n_queries, n_keys, d_k in SIZES:
        q, k = np.ones((n_queries, d_k)), np.ones((n_keys, d_k))
        agrees += [(q @ k.T).shape == (d_k, d_k), np.size(q[0] @ k[0]) == d_k**2]
    return agrees


def needs_range(_: Catalogue) -> list[bool]:
    """Return whether scores outside of [0, 1] give other weights than those inside.

    The scores of a row are shifted out of that range.  The list has one element, False
    since softmax does not depend on a shift.  The catalogue is not used.
    """
    return [bool(np.abs(softmax(SCORES + SHIFT) - softmax(SCORES)).max() >= ROUNDING)]


def is_introduced(catalogue: Catalogue) -> list[bool]:
    """Return whether the earliest recorded publication is from the year `INTRODUCED`.

    The list has one element; it is empty if the catalogue records no publication.
    """
    years = [one.year for one in catalogue.record if one.claim == "introduced-2017"]
    return [min(years) == INTRODUCED] if years else []


#: Id of a claim -> (its quantifier, a function).  The function takes the catalogue and
#: returns a list of bool: whether the claim is true in each case.
FACTS: dict[str, tuple[Quantifier, Callable[[Catalogue], list[bool]]]] = {
    "product-shape": ("always", is_product_square),
    "scores-need-range": ("always", needs_range),
    "input-dimension": ("always", lambda c: [x.d_model == x.d_k for x in c.model]),
    "head-dimensions": (
        "usually",
        lambda c: [x.d_k in COMMON or x.d_k >= LARGE for x in c.model],
    ),
    "introduced-2017": ("always", is_introduced),
}


def rule_on_fact(claim: Claim, catalogue: Catalogue) -> Ruling:
    """Return the verdict on a claim of kind ``shape`` or ``record``, with its reason.

    A shape is decided by algebra.  A record is decided by the published sizes and dates
    of the catalogue, and open if it has none.
    """
    quantifier, agrees = FACTS[claim.id]
    outcomes = [Outcome.SUPPORTED if x else Outcome.REFUTED for x in agrees(catalogue)]
    if not outcomes:
        return UNREACHED
    reason = Reason.THEORY if claim.kind == "shape" else Reason.SOURCE
    return Ruling(join_cases(quantifier, outcomes), reason)

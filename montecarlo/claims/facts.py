"""Facts of the texts that need no sample: shapes of arrays, and what others published.

Claims of kind ``shape`` and ``record`` have no interpretations: what each is held
against is a row of `FACTS`.
"""

from collections.abc import Callable

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
#: What a text calls common sizes of d_k, and from where on any is.
COMMON, LARGE = (64, 128), 128
#: When a text says that the divisor was introduced.
INTRODUCED = 2017


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
    # QKᵀ has a row for each query and a column for each key, and q·k is one number
    "product-shape": ("always", lambda _: [False]),
    # weights stay the same where the same number is added to all scores of a row
    "scores-need-range": ("always", lambda _: [False]),
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

"""What is on record, as evidence: the only place that knows which records there are.

A new kind is a module with a table of quantities, and a line in `RECORDED` here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from montecarlo.claims import facts, training
from montecarlo.claims.checks import Check, region_of
from montecarlo.claims.evidence import Evidence, Found, RecordedQuantity
from montecarlo.claims.outcomes import Located
from montecarlo.claims.schema import Catalogue
from montecarlo.estimation.estimates import Estimate

#: Name to quantity; what is not here is sampled.
RECORDED: dict[str, RecordedQuantity] = {**facts.QUANTITIES, **training.QUANTITIES}


@dataclass(frozen=True, slots=True)
class Recorded:
    """Records for their quantities, and other evidence for the rest.

    It is `montecarlo.claims.evidence.Evidence` itself, and looks a check up once: a
    copy with other evidence for the rest has what is ``known``.
    """

    catalogue: Catalogue
    others: Evidence
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

    def find(self, check: Check, case: Located) -> Found:
        """Return what is on record of a case."""
        if check.quantity not in RECORDED:
            return self.others.find(check, case)
        quantity = RECORDED[check.quantity]
        region = region_of(check, case.d_k, case.n_keys)
        if region is None:
            raise LookupError(f"{check.quantity} has nothing to be held against")
        estimate = self._look_up(check)[case]
        return Found(
            region,
            estimate,
            exact=estimate.value if quantity.exact else None,
            d_k=None if case.d_k is None else (case.d_k, case.d_k),
        )

    def _look_up(self, check: Check) -> Mapping[Located, Estimate]:
        if check not in self.known:
            find = RECORDED[check.quantity].find
            self.known[check] = find(self.catalogue, check)
        return self.known[check]

"""A model as evidence: each head is a case.

Of the catalogue's checks those that one model can decide: at one d_k, on rows and pairs
as they are.  A quantile against a bound is judged as a share of rows against its rank,
which is a mean over sequences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from montecarlo.attention.divisors import parse_divisor
from montecarlo.attention.quantiles import quantile_level
from montecarlo.attention.softmax import Array
from montecarlo.claims.checks import Check, Domain, Level, region_of
from montecarlo.claims.evidence import Found
from montecarlo.claims.outcomes import Located
from montecarlo.claims.schema import Catalogue, Claim, Interpretation
from montecarlo.estimation.estimates import Estimate
from montecarlo.observation.head_quantities import Stacks, estimate
from montecarlo.observation.row_values import ROW_FUNCTIONS, RowSum

#: Quantities of pairs, and the power of the divisor that divides each.
PAIRS = {
    "score_mean": 1,
    "score_variance": 2,
    "score_std": 1,
    "entry_variance_q": 0,
    "entry_variance_k": 0,
    "score_excess_kurtosis": 0,
}
#: Sizes that a check speaks of on a model where it names none: rows of few keys, as at
#: the start of a sequence, say little.
ANY_DIMENSION, LONG_ROWS = (1, 2**24), (32, 2**24)
#: Nominal probability that any decided check is wrong, split over checks and heads.
ERROR_RATE = 0.01


@dataclass(frozen=True, slots=True)
class HeadCheck:
    """A check, as it is decided on heads.

    Attributes
    ----------
    check : Check
    sums : tuple of RowSum
        What it needs of rows; two for a ratio of divisors, none for pairs.
    region : (float, float)
        Of the quantity, of its power of n taken off, or of the share of rows.
    """

    check: Check
    sums: tuple[RowSum, ...]
    region: tuple[float, float]

    def estimate(self, found: Stacks, d_k: int) -> Estimate | None:
        """Return its quantity in a head; None for one without rows of so many keys."""
        if any(np.isnan(found[one.name][0]) for one in self.sums):
            return None
        made = estimate(self._value(found, d_k))
        return Estimate(made.value, made.std_error, made.n_groups, bounds=made.interval)

    def _value(self, found: Stacks, d_k: int) -> Array:
        if not self.sums:
            power = PAIRS[self.check.quantity]
            divisor = parse_divisor(self.check.divisor).value(d_k)
            return found[self.check.quantity] / divisor**power
        values = [found[one.name] for one in self.sums]
        if len(values) == 1:
            return values[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return values[0] / values[1]


@dataclass(slots=True)
class Heads:
    """The heads of a model: `montecarlo.claims.evidence.Evidence`.

    Attributes
    ----------
    checks : mapping
        Those that can be decided, as they are on heads.
    found : dict
        Case to the estimate of each check; filled head by head.
    unmet : set
        Cases in which what texts assume of entries fails.
    """

    checks: Mapping[Check, HeadCheck]
    found: dict[Located, Mapping[Check, Estimate | None]] = field(default_factory=dict)
    unmet: set[Located] = field(default_factory=set)

    def reaches(self, check: Check) -> bool:
        """Tell that all heads of the model are there."""
        del check
        return True

    def cases(self, check: Check) -> list[Located]:
        """Return the heads, in the model's order."""
        return list(self.found) if check in self.checks else []

    def find(self, check: Check, case: Located) -> Found:
        """Return what a head has for a check."""
        return Found(self.checks[check].region, self.found[case][check])

    def meets_premises(self, case: Located) -> bool:
        """Tell whether a head's entries are as texts assume."""
        return case not in self.unmet


def select_claims(catalogue: Catalogue, d_k: int) -> tuple[Claim, ...]:
    """Return the claims that a model of this d_k can decide, with what it can decide.

    Interpretations are taken whole: where one check of an interpretation cannot be
    told, none is.
    """
    found = []
    for claim in catalogue.claim:
        kept = tuple(
            one
            for one in claim.interpretation
            if all(head_check(check, d_k) for check in one.check)
        )
        if kept:
            found.append(msgspec.structs.replace(claim, interpretation=kept))
    return tuple(found)


def head_checks(claims: Sequence[Claim], d_k: int) -> dict[Check, HeadCheck]:
    """Return the checks of claims as they are decided on heads."""
    found = {}
    for claim in claims:
        for interpretation in claim.interpretation:
            for check in interpretation.check:
                made = head_check(check, d_k)
                if made is not None:
                    found[check] = made
    return found


def head_check(check: Check, d_k: int) -> HeadCheck | None:  # noqa: PLR0911 - one line for each reason to leave it out
    """Return a check as it is decided on heads, None for one that cannot be."""
    domain = _domain_here(check)
    plain = Domain(d_k=domain.d_k, n_keys=domain.n_keys)
    if domain != plain or check.along_d_k or check.number_format != "float64":
        return None
    if not domain.d_k[0] <= d_k <= domain.d_k[1] or check.expected == "reference":
        return None
    levels = [x for x in (check.low, check.high, check.expected) if x is not None]
    powers = {x.n_keys_power if isinstance(x, Level) else 0.0 for x in levels}
    region = region_of(check, d_k, 1)  # without the power of n, which is taken off
    if len(powers) != 1 or region is None:
        return None
    (power,) = powers
    if check.quantity in PAIRS:
        return HeadCheck(check, (), region)
    if check.quantity not in ROW_FUNCTIONS:
        return None
    below = None
    rank = quantile_level(check.summary)
    if rank is not None:
        if "/" in check.divisor or np.isfinite(region).all():
            return None
        # a quantile is at least c where no more than its rank lies below c
        at_least = np.isfinite(region[0])
        below = region[0] if at_least else region[1]
        region = (-np.inf, rank) if at_least else (rank, np.inf)
    elif check.summary != "mean":
        return None
    sums = tuple(
        RowSum(
            _name(check.quantity, divisor, power, below, domain.n_keys),
            check.quantity,
            parse_divisor(divisor).value(d_k),
            power,
            below,
            (float(domain.n_keys[0]), float(domain.n_keys[1])),
        )
        for divisor in check.divisor.split("/")
    )
    return HeadCheck(check, sums, region)


def _domain_here(check: Check) -> Domain:
    """Return where a check speaks of a model: of its own sizes, if it names none.

    A model's entries have a distribution of their own, whichever a text assumes.
    """
    named, default = check.domain, Domain()
    return msgspec.structs.replace(
        named,
        d_k=ANY_DIMENSION if named.d_k == default.d_k else named.d_k,
        n_keys=LONG_ROWS if named.n_keys == default.n_keys else named.n_keys,
        distributions=()
        if named.distributions == ("gaussian",)
        else named.distributions,
    )


def _name(
    quantity: str,
    divisor: str,
    power: float,
    below: float | None,
    n_keys: tuple[int, int],
) -> str:
    name = f"{quantity}({divisor})"
    if power:
        name += f"/n^{power:g}"
    if below is not None:
        name += f"<{below:g}"
    return name if n_keys == LONG_ROWS else f"{name}[{n_keys[0]},{n_keys[1]}]"


def label_here(claim: Claim, name: str) -> str | None:
    """Return what tells an interpretation from others on a model, if anything.

    Interpretations that differ in distributions alone are one on a model, whose
    distribution is its own.
    """

    def asked(interpretation: Interpretation) -> list[Check]:
        domains = [_domain_here(one) for one in interpretation.check]
        domains = [Domain(one.d_k, one.n_keys) for one in domains]
        pairs = zip(interpretation.check, domains, strict=True)
        return [msgspec.structs.replace(one, domain=domain) for one, domain in pairs]

    chosen = next(
        interpretation
        for interpretation in claim.interpretation
        if interpretation.id == name
    )
    others = [
        interpretation
        for interpretation in claim.interpretation
        if asked(interpretation) != asked(chosen)
    ]
    return str(chosen.label) if others and chosen.label is not None else None


def error_rate_of(claims: Sequence[Claim], n_heads: int) -> float:
    """Return the error rate of each interval on each of its sides."""
    n_checks = sum(len(one.check) for claim in claims for one in claim.interpretation)
    return ERROR_RATE / (2 * max(1, n_checks * n_heads))

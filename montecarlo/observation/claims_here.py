"""The texts' claims, judged on a model: each head is a place.

Of the catalogue's checks those that one model can decide: at one d_k, on rows and pairs
as they are.  A quantile against a bound is judged as a share of rows against its rank,
which is a mean over sequences.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.rows import QUANTILES
from montecarlo.attention.softmax import Array
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.checks import UNBOUNDED, Check, Domain, Level
from montecarlo.claims.schema import Claim, Interpretation
from montecarlo.claims.verdicts import (
    Verdict,
    decide,
)
from montecarlo.observation.head_quantities import HeadEstimate, Stacks, estimate
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
class CheckHere:
    """A check of the catalogue, as it is judged on heads.

    Attributes
    ----------
    claim, interpretation, quantifier : str
    share : float
        As in `Interpretation`.
    premises : bool
        Whether texts say it under a premise, which a model need not meet.
    check : Check
    sums : tuple of RowSum
        What it needs of rows; two for a ratio of divisors, none for pairs.
    region : (float, float)
        Of the quantity, of its power of n taken off, or of the share of rows.
    """

    claim: str
    interpretation: str
    quantifier: str
    share: float
    premises: bool
    check: Check
    sums: tuple[RowSum, ...]
    region: tuple[float, float]

    def value(self, found: Stacks, d_k: int) -> Array:
        """Return its quantity, with all sequences and with some left out."""
        if not self.sums:
            power = PAIRS[self.check.quantity]
            divisor = DIVISORS[self.check.divisor].value(d_k)
            return found[self.check.quantity] / divisor**power
        values = [found[one.name] for one in self.sums]
        if len(values) == 1:
            return values[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return values[0] / values[1]

    def applies(self, found: Stacks) -> bool:
        """Tell whether the head has rows with so many keys."""
        return not any(np.isnan(found[one.name][0]) for one in self.sums)


def checks_here(d_k: int) -> tuple[CheckHere, ...]:
    """Pick the checks that a model of this d_k can decide.

    Interpretations are taken whole: where one check of an interpretation cannot be
    told, none is.
    """
    picked: list[CheckHere] = []
    for claim in read_catalogue().claim:
        for interpretation in claim.interpretation:
            made = [
                _check_here(claim, interpretation, check, d_k)
                for check in interpretation.check
            ]
            if all(one is not None for one in made):
                picked += [one for one in made if one is not None]
    return tuple(picked)


def _check_here(  # noqa: PLR0911 - one line for each reason to leave it out
    claim: Claim, interpretation: Interpretation, check: Check, d_k: int
) -> CheckHere | None:
    domain = _domain_here(check)
    plain = Domain(d_k=domain.d_k, n_keys=domain.n_keys)
    if domain != plain or check.along_d_k or check.number_format != "float64":
        return None
    if not domain.d_k[0] <= d_k <= domain.d_k[1] or check.expected == "reference":
        return None
    levels = [x for x in (check.low, check.high, check.expected) if x is not None]
    powers = {x.n_keys_power if isinstance(x, Level) else 0.0 for x in levels}
    if len(powers) != 1:
        return None
    (power,) = powers
    region = _region(check, d_k)
    said = (
        claim.id,
        interpretation.id,
        interpretation.quantifier,
        interpretation.share,
        any(source.premises for source in claim.source),
        check,
    )
    if check.quantity in PAIRS:
        return CheckHere(*said, (), region)
    if check.quantity not in ROW_FUNCTIONS:
        return None
    below = None
    if check.summary in QUANTILES:
        if "/" in check.divisor or np.isfinite(region).all():
            return None
        # a quantile is at least c where no more than its rank lies below c
        rank, at_least = QUANTILES[check.summary], np.isfinite(region[0])
        below = region[0] if at_least else region[1]
        region = (-np.inf, rank) if at_least else (rank, np.inf)
    elif check.summary != "mean":
        return None
    sums = tuple(
        RowSum(
            _name(check.quantity, divisor, power, below, domain.n_keys),
            check.quantity,
            DIVISORS[divisor].value(d_k),
            power,
            below,
            (float(domain.n_keys[0]), float(domain.n_keys[1])),
        )
        for divisor in check.divisor.split("/")
    )
    return CheckHere(*said, sums, region)


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


def _region(check: Check, d_k: int) -> tuple[float, float]:
    """Return a check's region at a d_k, without the power of n."""

    def at(level: object, default: float) -> float:
        if level is None:
            return default
        return level.at(d_k, 1) if isinstance(level, Level) else float(str(level))

    if check.relation == "equals":
        expected, tolerance = at(check.expected, 0.0), check.tolerance or 0.0
        half = tolerance * abs(expected) if expected else tolerance
        return expected - half, expected + half
    return at(check.low, UNBOUNDED[0]), at(check.high, UNBOUNDED[1])


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


def outcomes_of_head(
    checks: Sequence[CheckHere], found: Stacks, d_k: int, error_rate: float
) -> list[tuple[Verdict, HeadEstimate]]:
    """Judge every check on one head.

    Parameters
    ----------
    checks : sequence of CheckHere
    found : dict
        From `quantities`.
    d_k : int
    error_rate : float
        One-sided, of each interval.
    """
    outcomes = []
    for one in checks:
        made = estimate(one.value(found, d_k))
        verdict = Verdict.NOT_APPLICABLE
        if one.applies(found):
            verdict = decide(made.interval(error_rate), one.region)
        outcomes.append((verdict, made))
    return outcomes


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


def error_rate_of(n_checks: int, n_heads: int) -> float:
    """Return the error rate of each interval on each of its sides."""
    return ERROR_RATE / (2 * max(1, n_checks * n_heads))

"""What a head's numbers say, by rule: what its divisor does, and what fails.

The borders are those of the claims; no rule looks at another head.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from montecarlo.claims.verdicts import Verdict, decide
from montecarlo.claims.yardsticks import BALANCED, BALANCED_WEIGHT, NEAR_UNIFORM
from montecarlo.estimation.estimates import POINTWISE
from montecarlo.estimation.intervals import Interval
from montecarlo.model.head_quantities import FACTORS, FEWEST, HeadEstimate
from montecarlo.model.row_values import SHARE

#: From the most concentrated on; ``peaked`` lies between balanced and one-hot.
STATES = ("saturated", "peaked", "balanced", "flat")
#: Borders of the claims: near uniform, balanced, and the largest weight of the latter.
#: A variance that is so far off is off, as in the claims.
TOLERANCE = 0.05
#: What a factor is counted as at least: its logarithm says how far off it is.
LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class Fault:
    """An assumption of the texts on one head.

    Attributes
    ----------
    name : str
        One of `FACTORS`.
    factor : HeadEstimate
        What it alone would multiply the variance of a score by.
    verdict : Verdict
        Of the assumption: supported if the factor is 1 up to the tolerance.
    """

    name: str
    factor: HeadEstimate
    verdict: Verdict

    @property
    def size(self) -> float:
        """How far off the factor is, up and down alike."""
        return abs(math.log(max(self.factor.value, LEAST)))


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a head's numbers say.

    Attributes
    ----------
    state : str
        One of `STATES`: what the model's divisor does.
    faults : tuple of Fault
        All assumptions, the one farthest off first.
    """

    state: str
    faults: tuple[Fault, ...]

    @property
    def failing(self) -> tuple[Fault, ...]:
        """Assumptions that fail; with too few sequences, on the tokens at hand."""
        return tuple(f for f in self.faults if f.verdict is Verdict.REFUTED)


def diagnose(found: Mapping[str, HeadEstimate]) -> Diagnosis:
    """Say what the divisor does on a head, and which assumptions fail."""
    faults = []
    for name in FACTORS:
        factor = found.get(f"factor_{name}")
        if factor is None or math.isnan(factor.value):
            continue
        interval = factor.interval(POINTWISE)
        if factor.n_groups < FEWEST:
            interval = Interval(factor.value, factor.value)
        region = (1.0 - TOLERANCE, 1.0 + TOLERANCE)
        faults.append(Fault(name, factor, decide(interval, region)))
    faults.sort(key=lambda fault: -fault.size)
    return Diagnosis(state_of(found), tuple(faults))


def state_of(found: Mapping[str, HeadEstimate]) -> str:
    """Say what the divisor makes of a head's rows, by the borders of the claims."""
    share, largest = found[SHARE].value, found["weight_max"].value
    # a median of at least 0.9: at least half of the rows
    if found["saturated_rows"].value >= 0.5:
        return "saturated"
    if share >= NEAR_UNIFORM:
        return "flat"
    if share >= BALANCED and largest <= BALANCED_WEIGHT:
        return "balanced"
    return "peaked"

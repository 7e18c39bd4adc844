"""What is compared: divisors, an initialisation, optimisers, and rates of learning.

All arms see the same seeds: the same weights but for their scale, the same sequences.
Everything here is fixed before seeds are judged; rates of an arm are chosen on others.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from montecarlo.attention.divisors import DIVISORS
from montecarlo.training.retrieval import WIDTH, Optimiser


@dataclass(frozen=True, slots=True)
class Arm:
    """A divisor with an initialisation.

    Attributes
    ----------
    name : str
    divisor : str
    query_std : callable
        d_k -> standard deviation of the entries of W_Q.
    """

    name: str
    divisor: str
    query_std: Callable[[int], float]

    def divide_by(self, d_k: int) -> float:
        """Return what scores are divided by."""
        return DIVISORS[self.divisor].value(d_k)


def _unit(d_k: int) -> float:
    """Entries of q have variance 1, so that scores have variance d_k."""
    del d_k
    return 1.0 / math.sqrt(WIDTH)


ARMS = {
    arm.name: arm
    for arm in (
        Arm("none", "none", _unit),
        Arm("sqrt", "sqrt", _unit),
        Arm("linear", "linear", _unit),
        # no divisor, and queries that are smaller by sqrt(d_k), as T5 draws them
        Arm("small-queries", "none", lambda d_k: 1.0 / math.sqrt(WIDTH * d_k)),
    )
}
D_K = (16, 64, 256)
#: Rates of learning, half a decade apart.
RATES: dict[Optimiser, tuple[float, ...]] = {
    "sgd": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
    "adam": (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0),
}
#: A run has learned from the step on from which its loss stays below this.
LEARNED = 0.1
#: Seeds on which rates are chosen, and those that are judged; none is both.
TUNING, JUDGED = range(12), range(200, 248)

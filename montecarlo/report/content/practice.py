"""The record behind the report's table of what to divide scores by.

It holds properties of attention rows (softmax, normalised queries and keys, a sink,
sigmoid) at two values of d_k and two numbers of keys, and the factors on the scores
that keep one of these properties the same.  ``python -m studies.practice`` writes
practice.json.  Each value was computed exactly, and sampled for comparison.
"""

import math
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

FILE = Path(__file__).with_name("practice.json")


class Value(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A property of attention rows: its exact value, and an estimate from samples.

    Attributes
    ----------
    exact, drawn, std_error : float
        The exact value, the estimate, and the standard error of the estimate.
    factor : float
        What the scores are multiplied by.
    added : float
        What is added to the logit of a sink, or to the bias of sigmoids.
    """

    exact: float
    drawn: float
    std_error: float
    factor: float = 1.0
    added: float = 0.0

    @property
    def z(self) -> float:
        """The estimate minus the exact value, in standard errors: a z score.

        The standard error must not be 0.
        """
        return (self.drawn - self.exact) / self.std_error


class Practice(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of practice.json, the record behind the table of divisors.

    Attributes
    ----------
    seed : int
    n_keys, d_k : (int, int)
        The two numbers of keys and the two d_k that are compared, ascending.
    sizes : dict
        Kind of attention -> quantity -> its value at each d_k, for fewer keys.
    growth : dict
        Kind of attention -> property that is to stay the same -> its value.  The exact
        value is for fewer keys, and the estimate for more keys, with the factor on the
        scores that keeps it.  None if no factor does.  The ``1`` or ``2`` after a
        softmax is the standard deviation of its scores for fewer keys.
    beside : dict
        ``sink`` -> weight of the sink, ``sigmoid`` -> sum of the weights; each for
        ``fewer`` and ``more`` keys, and ``held``: for more keys, with what is added to
        the logit or bias so that it stays the same.
    planted : dict
        Weight of a key that is correlated with its query: ``root`` at each d_k, scores
        divided by √d_k; ``linear`` at the larger d_k, scores divided by d_k / √(smaller
        d_k).
    correlation : float
        Correlation of the entries of that key with those of its query.
    """

    seed: int
    n_keys: tuple[int, int]
    d_k: tuple[int, int]
    sizes: dict[str, dict[str, tuple[Value, Value]]]
    growth: dict[str, dict[str, Value | None]]
    beside: dict[str, dict[str, Value]]
    planted: dict[str, tuple[Value, ...]]
    correlation: float

    @property
    def most_change(self) -> float:
        """Largest relative change of a softmax property between the two values of d_k.

        A share, rounded to 0.01.
        """
        pairs = self.sizes["softmax"].values()
        changes = (abs(large.exact / small.exact - 1.0) for small, large in pairs)
        return round(max(changes), 2)

    @property
    def log_growth(self) -> float:
        """Ratio of ln n for the larger number of keys to ln n for the smaller one."""
        return math.log(self.n_keys[1]) / math.log(self.n_keys[0])

    @property
    def z_scores(self) -> list[float]:
        """Estimate minus exact value of every value, in standard errors: z scores."""
        pairs = [pair for one in self.sizes.values() for pair in one.values()]
        values = [one for pair in pairs for one in pair]
        values += [one for line in self.growth.values() for one in line.values() if one]
        values += [one for line in self.beside.values() for one in line.values()]
        values += [one for line in self.planted.values() for one in line]
        return [one.z for one in values]

    @property
    def rms_z(self) -> float:
        """Root mean square of `z_scores`."""
        return math.hypot(*self.z_scores) / math.sqrt(len(self.z_scores))

    @property
    def largest_z(self) -> float:
        """Largest absolute value of `z_scores`."""
        return max(map(abs, self.z_scores))


@cache
def read_practice() -> Practice:
    """Return the record practice.json that ships with the package."""
    return msgspec.json.decode(FILE.read_bytes(), type=Practice)

"""What to divide scores by: which scale keeps rows as they are, by kinds of rows.

``python -m studies.practice`` makes practice.json.  Each value is computed without
sampling, and was also drawn.
"""

import math
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import msgspec
from msgspec import Struct

FILE = Path(__file__).with_name("practice.json")


class Value(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A value of rows of attention, exact and as it was drawn.

    Attributes
    ----------
    exact, drawn, std_error : float
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
        """Standard errors from the exact value to the drawn one."""
        return (self.drawn - self.exact) / self.std_error


class Practice(Struct, frozen=True, forbid_unknown_fields=True):
    """The record.

    Attributes
    ----------
    seed : int
    n_keys, d_k : (int, int)
        Fewer and more keys; the two d_k that are compared.
    sizes : dict
        Kind of row -> quantity -> its value at each d_k, for fewer keys.
    growth : dict
        Kind of row -> what is to stay -> its value for fewer keys, drawn for more with
        the factor on the scores that holds it; None where no factor does.  The ``1`` or
        ``2`` of a softmax is the standard deviation of its scores for fewer keys.
    beside : dict
        ``sink`` or ``sigmoid`` -> its weight, or the sum of the weights: ``fewer``
        keys, ``more``, and ``held`` for more by what is added.
    planted : dict
        Weight of a key correlated with the query: ``root`` at each d_k, divided by
        √d_k; ``linear`` at the second, by d_k over the first √d_k.
    correlation : float
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
        """Largest relative change of softmax with d_k, to a hundredth."""
        pairs = self.sizes["softmax"].values()
        changes = (abs(large.exact / small.exact - 1.0) for small, large in pairs)
        return round(max(changes), 2)

    @property
    def log_growth(self) -> float:
        """By which factor ln n grows."""
        return math.log(self.n_keys[1]) / math.log(self.n_keys[0])

    @property
    def z_scores(self) -> list[float]:
        """Those of all that was drawn."""
        return [one.z for one in self._values()]

    @property
    def rms_z(self) -> float:
        """Root mean square of the z-scores."""
        return math.hypot(*self.z_scores) / math.sqrt(len(self.z_scores))

    @property
    def largest_z(self) -> float:
        """Largest size of one."""
        return max(map(abs, self.z_scores))

    def _values(self) -> Iterator[Value]:
        for sizes in self.sizes.values():
            yield from chain(*sizes.values())
        for growth in self.growth.values():
            yield from filter(None, growth.values())
        yield from chain(*(line.values() for line in self.beside.values()))
        yield from chain(*self.planted.values())


@cache
def read_practice() -> Practice:
    """Read the record that ships with the package."""
    return msgspec.json.decode(FILE.read_bytes(), type=Practice)

"""What to divide scores by: which scale keeps rows as they are, by kinds of rows.

``python -m studies.practice`` makes the record.  Each number is computed without
sampling, and what it says was also drawn.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

FILE = Path(__file__).parent / "data" / "practice.json"


@dataclass(frozen=True, slots=True)
class Checked:
    """An exact value, and what was drawn of it with its standard error."""

    exact: float
    drawn: float
    std_error: float

    @property
    def z(self) -> float:
        """Standard errors from the exact value to the drawn one."""
        return (self.drawn - self.exact) / self.std_error


@dataclass(frozen=True, slots=True)
class SizeLine:
    """A kind of row at the same number of keys and each of some d_k.

    Attributes
    ----------
    kind : str
        A key of `studies.practice_rows.ROWS`.
    entropy, largest, gradient : tuple of Checked
        One for each d_k: as `studies.practice_rows.RowValues`.
    """

    kind: str
    entropy: tuple[Checked, ...]
    largest: tuple[Checked, ...]
    gradient: tuple[Checked, ...]


@dataclass(frozen=True, slots=True)
class Factor:
    """What scores must be multiplied by for more keys, so that a value stays.

    Attributes
    ----------
    factor : float
    held : Checked
        The value for fewer keys; with more keys and the factor it was drawn.
    """

    factor: float
    held: Checked


@dataclass(frozen=True, slots=True)
class GrowthLine:
    """The factors of a kind of row, by what is to stay.

    Attributes
    ----------
    kind : str
        As for `SizeLine`; ``logarithm``: a softmax whose scores are also multiplied by
        ln n, over that of fewer keys.
    std : float
        Of the scores for fewer keys.
    share, fraction, gradient, largest, entropy : Factor or None
        ln of the part of the keys that a row has, H - ln n; H/ln n; and the values
        themselves.  None: no factor holds it.
    """

    kind: str
    std: float
    share: Factor | None
    fraction: Factor | None
    gradient: Factor | None
    largest: Factor | None
    entropy: Factor | None

    @property
    def factors(self) -> tuple[Factor | None, ...]:
        """In the order in which they rise for a softmax."""
        return self.share, self.fraction, self.gradient, self.largest, self.entropy


@dataclass(frozen=True, slots=True)
class Beside:
    """What more keys do to a sink, or to a sum of sigmoids, and what undoes it.

    Attributes
    ----------
    kind : str
    fewer, left : Checked
        The weight of the sink, or the sum of the weights, for fewer and for more keys,
        where logit or bias stay.
    added : float
        To the logit or the bias, so that it is for more keys as for fewer.
    held : Checked
        That it is.
    """

    kind: str
    fewer: Checked
    left: Checked
    added: float
    held: Checked


@dataclass(frozen=True, slots=True)
class Planted:
    """The weight of a key whose entries are correlated with the query's, by d_k.

    Attributes
    ----------
    correlation : float
    root : tuple of Checked
        Divided by √d_k.
    linear : Checked
        For the second d_k, divided by the multiple of d_k that is √d_k for the first.
    """

    correlation: float
    root: tuple[Checked, ...]
    linear: Checked


@dataclass(frozen=True, slots=True)
class Practice:
    """The record.

    Attributes
    ----------
    seed : int
    n_keys, d_k : tuple of int
        Fewer and more; those that are compared.
    sizes, growth, beside
        By kinds of rows.
    planted : Planted
    """

    seed: int
    n_keys: tuple[int, int]
    d_k: tuple[int, int]
    sizes: tuple[SizeLine, ...]
    growth: tuple[GrowthLine, ...]
    beside: tuple[Beside, ...]
    planted: Planted

    @property
    def most_change(self) -> float:
        """Largest relative change from one d_k to the other, to 0.1 % rounded up."""
        changes = (
            abs(pair[1].exact / pair[0].exact - 1.0)
            for line in self.sizes
            for pair in (line.entropy, line.largest, line.gradient)
        )
        return math.ceil(1e3 * max(changes)) / 1e3

    @property
    def log_growth(self) -> float:
        """By which factor ln n grows."""
        return math.log(self.n_keys[1]) / math.log(self.n_keys[0])

    @property
    def checks(self) -> list[Checked]:
        """All that was drawn."""
        return list(_checks(self))

    @property
    def rms_z(self) -> float:
        """Root mean square of the z-scores."""
        found = [one.z for one in self.checks]
        return math.hypot(*found) / math.sqrt(len(found))

    @property
    def largest_z(self) -> float:
        """Largest size of one."""
        return max(abs(one.z) for one in self.checks)


def _checks(record: Practice) -> Iterator[Checked]:
    for line in record.sizes:
        yield from (*line.entropy, *line.largest, *line.gradient)
    for growth in record.growth:
        yield from (one.held for one in growth.factors if one is not None)
    for beside in record.beside:
        yield from (beside.fewer, beside.left, beside.held)
    yield from (*record.planted.root, record.planted.linear)


@lru_cache(maxsize=1)
def read_practice(file: Path = FILE) -> Practice:
    """Read the record; ``file`` is by default that of the package."""
    return msgspec.json.decode(file.read_bytes(), type=Practice)

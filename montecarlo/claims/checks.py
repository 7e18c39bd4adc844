"""What a check may hold: a quantity, where it is looked at, and what it must be."""

import math
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from montecarlo.attention.divisors import BASELINE
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.study.presets import Dimension, Keys
from montecarlo.theory.limits import Tendency

Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,59}\Z")]
#: Control characters, those that break a line or turn the direction of writing among
#: them, and halves of characters: texts reach terminals and pages.
CONTROL = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
Text = Annotated[str, Meta(min_length=1, max_length=2000, pattern=rf"^[^{CONTROL}]*\Z")]
#: Control characters are left to `word_faults`: msgspec 0.22 frees the pattern of a
#: string twice where something else may stand in its place.
Unchecked = Annotated[str, Meta(min_length=1, max_length=2000)]
#: What pages show: a text, or of a user's own one for each of several languages, by
#: code.
Words = Unchecked | dict[str, Unchecked]
Finite = Annotated[float, Meta(ge=-1e30, le=1e30)]
Power = Annotated[float, Meta(ge=-4, le=4)]
Size = Annotated[int, Meta(ge=1, le=2**24)]


class Level(Struct, frozen=True, forbid_unknown_fields=True):
    """A number that may depend on the case: times · d_k**d_k_power · n**n_power."""

    times: Finite = 1.0
    d_k_power: Power = 0.0
    n_keys_power: Power = 0.0

    def at(self, d_k: int | None, n_keys: int | None) -> float:
        """Return the number for a case; sizes that a case lacks must not be needed."""
        value = self.times
        for size, power in ((d_k, self.d_k_power), (n_keys, self.n_keys_power)):
            if power != 0.0:
                if size is None:
                    raise ValueError("level depends on a size that the case lacks")
                value *= size**power
        return value


class Domain(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a text speaks: ranges of d_k and n, ends included; distributions.

    A text that names no sizes speaks of those of practice.
    """

    d_k: tuple[Dimension, Dimension] = (64, 256)
    n_keys: tuple[Keys, Keys] = (128, 16384)
    distributions: tuple[
        str, ...
    ] = ()  # a distribution, or "q * k"; none named: all of mean 0, std 1
    dependence: Annotated[tuple[str, ...], Meta(min_length=1)] = ("none",)
    initialisation: Annotated[tuple[str, ...], Meta(min_length=1)] = ("",)
    normalisation: Annotated[tuple[str, ...], Meta(min_length=1)] = ("none",)
    mask: Annotated[tuple[str, ...], Meta(min_length=1)] = ("none",)
    part: tuple[str, ...] = ()  # of what is on record; none named: all of it


Relation = Literal[
    "equals",
    "at_least",
    "at_most",
    "between",
    "slope_between",
    "tends_to",
]


class Check(Struct, frozen=True, forbid_unknown_fields=True):
    """One comparison of measured rows with what the claim says."""

    quantity: str
    relation: Relation
    summary: str = "mean"
    divisor: str = BASELINE
    number_format: str = "float64"
    softmax: str = "shifted"
    expected: Finite | Level | Literal["reference"] | None = None
    tolerance: Annotated[float, Meta(gt=0, lt=1)] | None = None
    low: Finite | Level | None = None
    high: Finite | Level | None = None
    to: Tendency | None = None
    domain: Domain = Domain()

    def __post_init__(self) -> None:
        """Name the row of a quantity that has one for all divisors."""
        if self.quantity in QUANTITIES:
            divisor = QUANTITIES[self.quantity].divisor(self.divisor)
            force_setattr(self, "divisor", divisor)

    @property
    def along_d_k(self) -> bool:
        """Whether the check speaks of a whole series over d_k, not of one case."""
        return self.relation in ("slope_between", "tends_to")


def region_of(
    check: Check, d_k: int | None, n_keys: int | None, exact: float | None = None
) -> tuple[float, float]:
    """Return the equivalence region of a check, both ends included.

    Parameters
    ----------
    check : Check
    d_k, n_keys : int or None
        Sizes of the case; None: it has none.
    exact : float, optional
        What ``expected = "reference"`` stands for.

    Returns
    -------
    (low, high)
        Where it speaks of a limit, of the slope at the far end, which theory decides.

    Raises
    ------
    LookupError
        If it compares with a reference that does not exist.
    """
    if check.relation != "equals":
        low, high = (_level_at(x, d_k, n_keys) for x in (check.low, check.high))
        return (-math.inf if low is None else low, math.inf if high is None else high)
    expected = exact
    if check.expected != "reference":
        expected = _level_at(check.expected, d_k, n_keys)
    if expected is None:
        raise LookupError(f"{check.quantity} has nothing to be held against")
    margin = (check.tolerance or 0.0) * (abs(expected) or 1.0)
    return expected - margin, expected + margin


def _level_at(
    level: float | str | Level | None, d_k: int | None, n_keys: int | None
) -> float | None:
    """Return a bound for a case; None where there is none."""
    if isinstance(level, Level):
        return level.at(d_k, n_keys)
    return None if level is None else float(level)

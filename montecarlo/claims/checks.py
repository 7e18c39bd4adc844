"""Fields of a check: a quantity, the domain of its cases, and the expected values."""

import math
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from montecarlo.attention.divisors import BASELINE
from montecarlo.attention.quantities import PAIR_QUANTITIES, QUANTITIES
from montecarlo.study.presets import Dimension, Keys
from montecarlo.theory.limits import Tendency

Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,59}\Z")]
#: Characters that texts must not contain, as they reach terminals and pages: control
#: characters, with line separators and those of writing direction, and surrogates.
CONTROL = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
Text = Annotated[str, Meta(min_length=1, max_length=2000, pattern=rf"^[^{CONTROL}]*\Z")]
#: `catalogue.require_words` checks for control characters: in a union with another type
#: msgspec 0.22 frees the pattern of a string twice.
Unchecked = Annotated[str, Meta(min_length=1, max_length=2000)]
#: A text for pages.  A user's file may have one per language: language code -> text.
Words = Unchecked | dict[str, Unchecked]
Finite = Annotated[float, Meta(ge=-1e30, le=1e30)]
Power = Annotated[float, Meta(ge=-4, le=4)]
Size = Annotated[int, Meta(ge=1, le=2**24)]


class Level(Struct, frozen=True, forbid_unknown_fields=True):
    """A number that may depend on the sizes of a case: times · d_k**a · n_keys**b.

    The powers a and b are ``d_k_power`` and ``n_keys_power``.
    """

    times: Finite = 1.0
    d_k_power: Power = 0.0
    n_keys_power: Power = 0.0

    def at(self, d_k: int | None, n_keys: int | None) -> float:
        """Return the number for the sizes of a case: times · d_k**a · n_keys**b.

        A case is a design point, or a series of points over d_k.  A size that the
        number does not depend on may be None.

        Parameters
        ----------
        d_k, n_keys : int or None
            Sizes of the case; None if it has no such size.

        Raises
        ------
        ValueError
            If the number depends on a size that the case lacks.
        """
        value = self.times
        for size, power in ((d_k, self.d_k_power), (n_keys, self.n_keys_power)):
            if size is None and power != 0.0:
                raise ValueError("level depends on a size that the case lacks")
            value *= (size or 1) ** power
        return value


#: Fields of a domain and of a case that are conditions: no sizes, no distributions.
CONDITIONS = ("dependence", "initialisation", "normalisation", "mask")


class Domain(Struct, frozen=True, forbid_unknown_fields=True):
    """The design points at which a check is judged: ranges of sizes, and conditions.

    Both ends of a range are included.  By default the ranges are the sizes of practice,
    for texts that name no sizes.  Each other field except ``part`` lists allowed values
    of the design point's field of the same name.
    """

    d_k: tuple[Dimension, Dimension] = (64, 256)
    n_keys: tuple[Keys, Keys] = (128, 16384)
    #: each for entries of q and k, or a pair "q * k"; empty: all of `DISTRIBUTIONS`
    distributions: tuple[str, ...] = ()
    dependence: Annotated[tuple[str, ...], Meta(min_length=1)] = ("none",)
    initialisation: Annotated[tuple[str, ...], Meta(min_length=1)] = ("",)
    normalisation: Annotated[tuple[str, ...], Meta(min_length=1)] = ("none",)
    mask: Annotated[tuple[str, ...], Meta(min_length=1)] = ("none",)
    #: parts of a recorded quantity, such as optimisers; empty: all
    part: tuple[str, ...] = ()


Relation = Literal[
    "equals", "at_least", "at_most", "between", "slope_between", "tends_to"
]


class Check(Struct, frozen=True, forbid_unknown_fields=True):
    """A comparison of an estimated quantity with what a claim states about it.

    Attributes
    ----------
    quantity, summary, divisor, number_format, softmax : str
        Name the estimate of each design point that is compared.  An empty summary
        becomes ``value`` for a quantity of pairs, else ``mean``.
    relation : str
        ``equals`` (within a tolerance), ``at_least``, ``at_most`` and ``between`` are
        about the estimate of each design point, ``slope_between`` about the log-log
        slope over d_k, and ``tends_to`` about the limit for large d_k, which theory
        decides.
    expected : float, Level, "reference" or None
        What ``equals`` compares with; ``reference`` means the exact value.
    tolerance : float or None
        For ``equals``: a part of the expected value, or absolute if that is 0.
    low, high : float, Level or None
        Bounds for the other relations, included.
    to : str or None
        Limit for ``tends_to``.
    domain : Domain
    """

    quantity: str
    relation: Relation
    summary: str = ""
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
        """Fill in the summary; the divisor is ``none`` if it changes nothing."""
        if not self.summary:
            of_pairs = self.quantity in PAIR_QUANTITIES
            force_setattr(self, "summary", "value" if of_pairs else "mean")
        if self.quantity in QUANTITIES:
            divisor = QUANTITIES[self.quantity].divisor(self.divisor)
            force_setattr(self, "divisor", divisor)

    @property
    def along_d_k(self) -> bool:
        """Whether a case is a series of design points over d_k, not a single point.

        True for the relations ``slope_between`` and ``tends_to``.
        """
        return self.relation in ("slope_between", "tends_to")


def region_of(
    check: Check, d_k: int | None, n_keys: int | None, exact: float | None = None
) -> tuple[float, float]:
    """Return the equivalence region of a check in one case, as (low, high).

    It is the range of values that agree with what the check states, ends included.  A
    case is a design point, or a series of points over d_k.

    Parameters
    ----------
    check : Check
    d_k, n_keys : int or None
        Sizes of the case; None if it has no such size.
    exact : float, optional
        Exact value, for ``expected = "reference"``; otherwise not used.

    Returns
    -------
    (low, high) : tuple of float
        For ``equals``: expected value ± tolerance times its absolute value, or ±
        tolerance if it is 0.  For other relations the bounds of the check; infinite
        where there is none, as for ``tends_to``.

    Raises
    ------
    LookupError
        If the check compares with a reference, and ``exact`` is None.
    """
    if check.relation != "equals":
        low, high = (_level_at(x, d_k, n_keys) for x in (check.low, check.high))
        return infinite_if_none(low, high)
    expected = exact
    if check.expected != "reference":
        expected = _level_at(check.expected, d_k, n_keys)
    if expected is None:
        raise LookupError(f"{check.quantity} has nothing to be held against")
    margin = (check.tolerance or 0.0) * (abs(expected) or 1.0)
    return expected - margin, expected + margin


def infinite_if_none(low: float | None, high: float | None) -> tuple[float, float]:
    """Return (low, high) with -infinity and infinity in place of None."""
    return -math.inf if low is None else low, math.inf if high is None else high


def _level_at(
    level: float | str | Level | None, d_k: int | None, n_keys: int | None
) -> float | None:
    """Return an expected value or bound as a number, for the sizes of a case.

    None if it is not given, or is ``reference``.
    """
    if isinstance(level, str) or level is None:
        return None
    return (level if isinstance(level, Level) else Level(level)).at(d_k, n_keys)

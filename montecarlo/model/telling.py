"""What the applied scale of each head means: the answer to what was expected.

Heads that are alike are one finding; the words are those of whoever shows it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from montecarlo.attention.divisors import DIVISORS, parse_divisor
from montecarlo.errors import InputError
from montecarlo.model.heads import Applied, AppliedHead
from montecarlo.model.usual import EXPECTED, Expected, Usual, hints_at

#: To "does it divide by what I think?", and how it is said.
YES, NO, UNTOLD = "yes", "no", "cannot_be_told"
#: How far a divisor may be from the one expected, as a part of it.
RTOL = 0.01
#: Heads whose divisors are so near to each other are told together.
ALIKE = 0.005


@dataclass(frozen=True, slots=True)
class Finding:
    """What is said of heads that are alike.

    Attributes
    ----------
    heads : tuple of AppliedHead
    answer : str
        `YES`, `NO` or `UNTOLD`.
    size : (int, int)
        d_k and the number of heads of the model.
    hints : tuple of str
        What a wrong divisor looks like, see `montecarlo.model.usual.hints_at`.
    """

    heads: tuple[AppliedHead, ...]
    answer: str
    size: tuple[int, int]
    hints: tuple[str, ...]

    @property
    def is_plain(self) -> bool:
        """Whether nothing is in their scores beside a scale, and no weight is lost."""
        return self.first.form == "plain" and self.first.sums in {"", "one"}

    @property
    def first(self) -> AppliedHead:
        """One of them, for what they have in common."""
        return self.heads[0]

    @property
    def divisor(self) -> float:
        """Mean of what they divide by; NaN where it is not told."""
        if self.first.outcome != "scale":
            return math.nan
        return math.fsum(1.0 / one.scale for one in self.heads) / len(self.heads)

    @property
    def half_width(self) -> float:
        """How far the ends of their intervals lie from the mean at most."""
        ends = [end for one in self.heads for end in one.divisors]
        return max(abs(end - self.divisor) for end in ends)

    @property
    def within(self) -> tuple[Usual, ...]:
        """Usual divisors that theirs may be."""
        low, high = self.first.named
        return tuple(
            one for one in self.first.usual if low <= one.value(*self.size) <= high
        )

    @property
    def ratio(self) -> float:
        """Divisor over the nearest usual one; NaN where none is told."""
        if not self.first.usual:
            return math.nan
        return self.divisor / self.first.usual[0].value(*self.size)

    @property
    def places(self) -> list[tuple[list[int], list[int]]]:
        """Layers with the heads they have in common, in their order."""
        by_layer: dict[int, list[int]] = {}
        for one in self.heads:
            by_layer.setdefault(one.head.layer, []).append(one.head.head)
        grouped: dict[tuple[int, ...], list[int]] = {}
        for layer, heads in by_layer.items():
            grouped.setdefault(tuple(heads), []).append(layer)
        return [(layers, list(heads)) for heads, layers in grouped.items()]


def ranges_of(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and the last of each run of neighbours."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def require_rtol(rtol: float) -> float:
    """Return how far a divisor may be off, as a part of it."""
    if not 0.0 < rtol < 1.0:
        raise InputError(f"rtol must be a number between 0 and 1, got {rtol!r}")
    return rtol


def answer_head(one: AppliedHead, expected: Expected, rtol: float = RTOL) -> str:
    """Say whether a head divides by what is expected."""
    if one.outcome in {"uniform", "by_row", "over_queries"}:
        return NO
    if one.outcome != "scale":
        return UNTOLD
    low, high = one.divisors
    least, most = expected.value * (1.0 - rtol), expected.value * (1.0 + rtol)
    if least <= low and high <= most:
        return YES
    return NO if high < least or low > most else UNTOLD


def answer_all(applied: Applied, expected: Expected, rtol: float = RTOL) -> str:
    """Say whether all heads divide by what is expected: one that does not is enough.

    Dead heads divide by nothing, and are not asked.
    """
    answers = {
        answer_head(one, expected, rtol)
        for one in applied.heads
        if one.outcome != "dead"
    }
    if NO in answers:
        return NO
    return YES if answers == {YES} else UNTOLD


def find(applied: Applied, expected: Expected, rtol: float = RTOL) -> list[Finding]:
    """Return what is said of the heads: what was not expected first, nothing last."""
    groups: dict[tuple[object, ...], list[AppliedHead]] = {}
    for one in applied.heads:
        groups.setdefault(_kind(one, answer_head(one, expected, rtol)), []).append(one)
    found = []
    for kind, heads in groups.items():
        for alike in _split(heads):
            answer = str(kind[0])
            hints: tuple[str, ...] = ()
            size = applied.d_k, applied.n_heads
            if answer == NO and alike[0].outcome == "scale":
                hints = hints_at(1.0 / alike[0].scale, expected.value, *size)
            found.append(Finding(tuple(alike), answer, size, hints))
    order = (NO, UNTOLD, YES)
    return sorted(found, key=lambda one: (order.index(one.answer), one.is_plain))


def _kind(one: AppliedHead, answer: str) -> tuple[object, ...]:
    form = one.form
    names = tuple(usual.name for usual in one.usual)
    return answer, one.outcome, one.reason, names, form, one.mask, one.window, one.sums


def _split(heads: Sequence[AppliedHead]) -> Iterable[list[AppliedHead]]:
    """Return heads of one kind by their divisor, as far as it is told."""
    if heads[0].outcome != "scale":
        return [list(heads)]
    groups: list[list[AppliedHead]] = []
    for one in sorted(heads, key=lambda head: 1.0 / head.scale):
        near = groups and abs(groups[-1][0].scale / one.scale - 1.0) <= ALIKE
        if near:
            groups[-1].append(one)
        else:
            groups.append([one])
    return [sorted(group, key=lambda one: one.head) for group in groups]


@dataclass(frozen=True, slots=True)
class JudgedScales:
    """The scales that heads apply, beside what is expected.

    Attributes
    ----------
    applied : Applied
    expected : Expected
    rtol : float
    answer : str
        `UNTOLD` where neither weights nor outputs were given.
    findings : tuple of Finding
    """

    applied: Applied
    expected: Expected
    rtol: float
    answer: str
    findings: tuple[Finding, ...]


def judge_applied(
    applied: Applied, expected: Expected, rtol: float = RTOL
) -> JudgedScales:
    """Set the scales that heads apply beside what is expected."""
    return JudgedScales(
        applied,
        expected,
        rtol,
        answer_all(applied, expected, rtol),
        tuple(find(applied, expected, rtol)),
    )


def implied_divisor(applied: Applied) -> str:
    """Return what to call the model's own divisor: a name of `DIVISORS`, or a number.

    The median head's; that which is usual where none is told, or none that can be one.
    """
    told = sorted(
        (one for one in applied.heads if one.outcome == "scale" and one.scale > 0.0),
        key=lambda one: one.scale,
    )
    if not told:
        return EXPECTED
    middle = told[len(told) // 2]
    named = [one.name for one in middle.usual if one.name in DIVISORS]
    low, high = middle.named
    for name in named:
        if low <= DIVISORS[name].value(applied.d_k) <= high:
            return name
    implied = f"{1.0 / middle.scale:.6g}"
    try:
        parse_divisor(implied).value(applied.d_k)
    except InputError:  # queries or keys of another size than the model's
        return EXPECTED
    return implied

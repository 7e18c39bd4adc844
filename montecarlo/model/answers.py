"""Whether the heads of a model divide by the expected divisor, and how that is said.

Heads with the same result are one `Finding`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from montecarlo.attention.divisors import DIVISORS
from montecarlo.errors import InputError
from montecarlo.model.expected import (
    CLOSE,
    EXPECTED,
    NEAR,
    Expected,
    divisor_value,
    hints_at,
    name_divisor,
)
from montecarlo.model.scales import HeadScale, ModelScales

#: Answers whether a head divides by the expected divisor, and their words.
YES, NO, UNDETERMINED = "yes", "no", "cannot_be_told"
ANSWERS = {YES: "yes", NO: "no", UNDETERMINED: "cannot be told"}
#: Relative tolerance of the divisor.
RTOL = 0.01
#: Probability that a model all of whose heads divide as expected gets a no.
WRONG_NO = 0.001
#: Ratio from which on a cap is not the expected one: in bfloat16 the estimate of a cap
#: of 50 is off by up to a tenth.
OTHER_CAP = 1.25
#: Size that the bend of a cap must have to be visible, over the residual of the fit.
SEEN = 10.0
#: Relative error below which three digits of a ratio are right.
SHOWN = 0.002
#: Findings that are printed at most.
MOST_FINDINGS = 12
#: Questions about the likely mistake behind a wrong divisor or part.
HINTS = {
    "sign": "is a sign wrong?",
    "missing": "is the scale missing, or applied before q and k were captured?",
    "twice": "is the scale applied twice?",
    "multiplied": "multiplied where it should be divided?",
    "width": "the width of the model where that of a head belongs?",
    "heads": "the number of heads where their width belongs?",
    "ignored": "is the field ignored, and the width of a head taken?",
    "derived": "is it hidden_size / num_attention_heads, where head_dim is another?",
    "scaled": "is a scale applied that this architecture does not have?",
    "again": "is the scale applied twice: to queries, and again in attention?",
    "by_layer": "is the number of the layer left out?",
    "mscale": "is mscale of the rope scaling left out?",
    "mscale_once": "is mscale of the rope scaling not squared?",
    "cap": "are scores capped at something else than attn_logit_softcapping?",
    "no_cap": "is the cap missing that attn_logit_softcapping asks for?",
    "window": "is it another window than sliding_window, or none?",
    "chunk": "are chunks others than of attention_chunk_size, or none?",
    "sums": "is something dropped after softmax, or a sink that is not configured?",
    "alibi": "has the bias by distance the wrong sign? it should fall",
    "no_sinks": "are the sinks missing? weights add up to 1 without them",
    "padded": "is it the width of a head padded to {width}?",
}
#: Outcomes of heads without a scale, in words.
OUTCOMES = {
    "uniform": "every key that is not hidden counts the same: the scale is 0",
    "by_row": "no single scale: rows have scales of their own (one that grows with the "
    "number of keys, several temperatures, or queries that are normalised after the "
    "capture?)",
    "over_queries": "softmax runs over the queries: weights of a key add up to 1, "
    "those of a query do not",
    "dead": "dead: queries, keys, or what is made of them are all 0",
    "no_fit": "no scale fits: the weights are not of these queries and keys (another "
    "sequence or head, or before rotary embeddings), or something unknown is added",
}
#: Reasons of `HeadScale` for the outcome ``no_information``.
REASONS = {
    "few": "nothing can be told: too few weights that differ",
    "coarse": "nothing can be told: weights have too few digits (rounded to 8 bits, or "
    "nearly all of a row on one key)",
    "peaked": "nothing can be told: scores are so large that their rounding may hide "
    "the scale",
}
#: Advice where the answer is not determined, by outcome or reason.
ADVICE = {
    "scale": "give more rows or sequences, or capture in float32: intervals reach "
    "beyond the tolerance",
    "no_fit": "capture weights (eager attention), of the same sequences and heads as q "
    "and k, after rotary embeddings",
    "few": "give more rows or longer sequences",
    "coarse": "capture weights in float32, before they are rounded",
    "peaked": "capture in float32",
}
FORMS = {
    "plain": "",
    "distance": "a bias of {parameter:.4g} per position of distance (linear, as ALiBi)",
    "cap": "scaled scores capped at {parameter:.4g} by tanh",
    "sink": "a sink outside these keys takes part of the weight",
    "offset": "a bias by the distance of key and query",
    "key": "a bias of each key",
    "pair": "a bias of each pair of positions",
    "row": "",
}
MASKS = {
    "none": "no mask",
    "causal": "a causal mask",
    "causal_start": "a causal mask whose first query sees the first key alone, though "
    "there are more keys than queries",
    "window": "a causal mask with a window of {window} keys",
    "chunks": "a causal mask within chunks of {window} keys",
    "keys": "hidden keys",
    "causal_keys": "a causal mask and hidden keys",
    "other": "zeros that are no common mask",
}
SUMS = {
    "less": "weights of a row add up to {row_sum:.3g} on average: a sink outside these "
    "keys, keys cut off, or a factor?",
    "other": "weights of a row add up to {row_sum:.3g} on average: dropout, or "
    "softmax over the queries?",
}


class Finding(NamedTuple):
    """Heads that have the same result."""

    heads: tuple[HeadScale, ...]
    answer: str  # `YES`, `NO` or `UNDETERMINED`
    hints: tuple[str, ...]  # likely mistakes, keys of `HINTS`

    @property
    def is_plain(self) -> bool:
        """Whether scores are scaled and masked alone, and weights add up to 1."""
        return self.first.form == "plain" and self.first.mask.sums in {"", "one"}

    @property
    def first(self) -> HeadScale:
        """The first head."""
        return self.heads[0]

    @property
    def divisor(self) -> float:
        """Mean divisor of the heads; NaN where it is not determined."""
        return math.fsum(one.divisor for one in self.heads) / len(self.heads)

    @property
    def half_width(self) -> float:
        """Largest distance of the ends of the heads' intervals from the mean."""
        ends = [end for one in self.heads for end in one.divisors()]
        return max(abs(end - self.divisor) for end in ends)

    @property
    def ratio(self) -> float:
        """Mean of divisor / sqrt(d_k); NaN where it is not determined."""
        return math.fsum(one.ratio for one in self.heads) / len(self.heads)

    @property
    def places(self) -> list[tuple[list[int], list[int]]]:
        """Groups of layers that have the same heads here, and these heads."""
        by_layer: dict[int, list[int]] = {}
        for one in self.heads:
            by_layer.setdefault(one.head.layer, []).append(one.head.head)
        grouped: dict[tuple[int, ...], list[int]] = {}
        for layer, heads in by_layer.items():
            grouped.setdefault(tuple(heads), []).append(layer)
        return [(layers, list(heads)) for heads, layers in grouped.items()]


class ScaleAnswer(NamedTuple):
    """Whether the heads of a model divide by the expected divisor."""

    scales: ModelScales
    expected: Expected
    rtol: float  # relative tolerance of the divisor
    #: `NO` if any head divides by something else; dead heads do not count.
    answer: str
    findings: tuple[Finding, ...]  # those with a no first, plain ones last
    #: Possible attention that was not followed, because of which there is no yes.
    missed: tuple[str, ...] = ()
    #: Configured parts beside the divisor that are right, and that do not show here.
    checked: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()


def answer_scales(
    scales: ModelScales,
    expected: Expected,
    rtol: float = RTOL,
    missed: tuple[str, ...] = (),
    caps: Mapping[int, float | None] | None = None,
) -> ScaleAnswer:
    """Return whether all heads divide by the expected divisor.

    Parameters
    ----------
    scales : ModelScales
    expected : Expected
    rtol : float
        Relative tolerance of the divisor.
    missed : tuple of str
        Possible attention that was not followed.
    caps : mapping, optional
        Caps of scores that were passed to attention, by layer; None for no cap.
    """
    answers = set()
    parts: dict[str, dict[str, None]] = {YES: {}, NO: {}, UNDETERMINED: {}}
    groups: dict[tuple[Any, ...], list[HeadScale]] = {}
    for one in scales.heads:
        checked = list(check_parts(one, expected, scales, caps or {}))
        wrong = tuple(part.hint for part in checked if part.answer == NO)
        answer = answer_head(one, expected, rtol, len(scales.heads))
        if one.outcome != "dead":
            answer = NO if wrong else answer
            answers.add(answer)
        for part in checked:
            parts[part.answer][part.text] = None
        names = tuple(known.name for known in one.known)
        text = expected.at(one.head.layer).text
        mask = one.mask.mask, one.mask.window, one.mask.sums
        alike = answer, wrong, text, one.outcome, one.reason, names, one.form, *mask
        groups.setdefault(alike, []).append(one)
    findings = [
        Finding(tuple(heads), answer, _hints(heads[0], answer, wrong, expected, scales))
        for (answer, wrong, *_), group in groups.items()
        for heads in _split(group)
    ]
    order = (NO, UNDETERMINED, YES)
    findings.sort(key=lambda one: (order.index(one.answer), one.is_plain))
    is_whole = answers == {YES} and not missed
    overall = NO if NO in answers else YES if is_whole else UNDETERMINED
    return ScaleAnswer(
        scales,
        expected,
        rtol,
        overall,
        tuple(findings),
        missed,
        tuple(parts[YES]),
        tuple(parts[UNDETERMINED]),
    )


def _hints(
    one: HeadScale,
    answer: str,
    wrong: tuple[str, ...],
    expected: Expected,
    scales: ModelScales,
) -> tuple[str, ...]:
    """Return the parts that are wrong; else the likely mistake behind a divisor."""
    if answer != NO or one.outcome != "scale":
        return ()
    if wrong or not is_resolved(one):
        return wrong
    return hints_at(
        one.divisor,
        expected.at(one.head.layer),
        scales.d_k,
        scales.n_heads,
        is_known_twice=len(one.known) > 1,
    )


def answer_head(
    one: HeadScale, expected: Expected, rtol: float = RTOL, n_heads: int = 1
) -> str:
    """Return whether a head divides by the expected divisor.

    Intervals of a no are widened (Bonferroni) so that a model of ``n_heads`` right
    heads gets one with probability `WRONG_NO`.  Scales that differ by row are no reason
    for a no where outputs alone show them: a bias has the same effect there.
    """
    meant = expected.at(one.head.layer)
    if not meant.is_known:
        return UNDETERMINED
    if one.outcome == "by_row" and one.source == "outputs":
        return UNDETERMINED
    if one.outcome in {"uniform", "by_row", "over_queries"}:
        return NO
    if one.outcome != "scale":
        return UNDETERMINED
    low, high = one.divisors()
    least, most = meant.value * (1.0 - rtol), meant.value * (1.0 + rtol)
    if least <= low and high <= most:
        return YES
    low, high = one.divisors(0.5 * WRONG_NO / n_heads)
    return NO if high < least or low > most else UNDETERMINED


def is_resolved(one: HeadScale) -> bool:
    """Return whether the interval of the divisor is narrow enough for a name."""
    low, high = one.divisors()
    return high - low <= 2.0 * NEAR * abs(one.divisor)


class PartAnswer(NamedTuple):
    """Whether a head has a part that is configured beside the divisor."""

    hint: str  # the likely mistake of a no, a key of `HINTS`
    text: str  # the part
    answer: str  # `YES`, `NO` or `UNDETERMINED`


def check_parts(
    one: HeadScale,
    expected: Expected,
    scales: ModelScales,
    caps: Mapping[int, float | None],
) -> Iterator[PartAnswer]:
    """Yield an answer for each configured part, and for sinks that are not."""
    parts = expected.at(one.head.layer).parts
    if not math.isnan(parts.cap) and one.outcome == "scale":
        yield _check_cap(one, parts.cap, caps.get(one.head.layer, math.nan))
    for hint, name, size in (
        ("window", "window", parts.window),
        ("chunk", "chunks", parts.chunk),
    ):
        text = f"a {hint} of {size} keys"
        if size >= scales.most_keys > 0:
            text = f"{text}, of {scales.most_keys} here"
            yield PartAnswer(hint, text, UNDETERMINED)
        elif size and one.mask.mask in {"none", "causal", "window", "chunks"}:
            is_so = (one.mask.mask, one.mask.window) == (name, size)
            yield PartAnswer(hint, text, YES if is_so else NO)
    if parts.has_sinks and one.source == "weights":
        has_none = {head.mask.sums for head in scales.heads} == {"one"}
        yield PartAnswer("no_sinks", "sinks", NO if has_none else YES)
    if parts.has_sinks is False and one.mask.sums == "less":
        yield PartAnswer("sums", "", NO)
    if parts.has_alibi and one.form == "distance":
        is_so = one.parameter < 0.0
        yield PartAnswer("alibi", "a bias that falls", YES if is_so else NO)


def _check_cap(one: HeadScale, wanted: float, passed: float | None) -> PartAnswer:
    """Return the answer for a cap: fitted, or passed where it would not show."""
    cap = one.parameter if one.form == "cap" else None
    if cap is None and not _would_show(one, wanted):
        cap = passed
    text = f"a cap of {wanted:g}"
    if cap is None:
        return PartAnswer("no_cap", text, NO)
    if math.isnan(cap):
        text += ", too far above these scores"
        return PartAnswer("cap", text, UNDETERMINED)
    is_so = 1.0 / OTHER_CAP < cap / wanted < OTHER_CAP
    return PartAnswer("cap", text, YES if is_so else NO)


def _would_show(one: HeadScale, cap: float) -> bool:
    """Return whether the cubic term of tanh would exceed the residual of the fit."""
    if one.fit is None or one.form not in {"plain", "distance"}:
        return False
    bent = (abs(one.scale) * one.fit.spread) ** 3 / cap**2
    return bent > SEEN * max(one.fit.residual, one.fit.rounding)


def _split(heads: Sequence[HeadScale]) -> Iterable[list[HeadScale]]:
    """Return groups of heads with the same divisor, of heads with one outcome."""
    if heads[0].outcome != "scale":
        return [list(heads)]
    groups: list[list[HeadScale]] = []
    for one in sorted(heads, key=lambda head: head.divisor):
        if not groups or abs(groups[-1][0].scale / one.scale - 1.0) > CLOSE:
            groups.append([])
        groups[-1].append(one)
    return [sorted(group, key=lambda one: one.head) for group in groups]


def implied_divisor(scales: ModelScales) -> str:
    """Return the median head's divisor, as a name of `DIVISORS` or a number.

    `EXPECTED` where none is determined, or usable as a divisor.
    """
    heads = [one for one in scales.heads if one.outcome == "scale" and one.scale > 0.0]
    if not heads:
        return EXPECTED
    middle = sorted(heads, key=lambda one: one.scale)[len(heads) // 2]
    names = [one.name for one in middle.known if one.name in DIVISORS]
    if names:
        return names[0]
    implied = f"{middle.divisor:.6g}"
    try:
        divisor_value(implied, scales.d_k)
    except InputError:  # queries or keys of another size than the model's
        return EXPECTED
    return implied


def say_answer(answer: ScaleAnswer) -> str:
    """Return the line that answers whether scores are divided as expected."""
    if not answer.expected.is_known:
        return (
            f"scores divided as configured? cannot be told: {answer.expected.said}; "
            "expect='sqrt', or a number, would be judged"
        )
    question = f"scores divided by {answer.expected.text}?"
    if not answer.scales.heads:
        return (
            f"{question} cannot be told from queries and keys alone: give weights, or "
            "v and outputs"
        )
    said = f"{question} {ANSWERS[answer.answer]}"
    if answer.answer == UNDETERMINED and answer.missed:
        return f"{said}: attention was not followed: {'; '.join(answer.missed)}"
    if answer.answer == YES:
        for told, parts in (
            ("right, too", answer.checked),
            ("not checked", answer.not_checked),
        ):
            said += f"; {told}: {', '.join(parts)}" * bool(parts)
    return said


def say_findings(answer: ScaleAnswer) -> Iterator[str]:
    """Yield a line for each finding."""
    for one in answer.findings[:MOST_FINDINGS]:
        places = say_places(one, answer.scales.n_heads)
        yield f"{places}: {say_finding(one, answer.expected)}"
    if len(answer.findings) > MOST_FINDINGS:
        yield f"and {len(answer.findings) - MOST_FINDINGS} more, in the table"


def say_places(found: Finding, n_heads: int) -> str:
    """Return the layers and heads of a finding, for a sentence."""
    parts = []
    for layers, heads in found.places:
        is_whole = len(heads) == n_heads
        place = say_place(layers, () if is_whole else heads)
        parts.append(place + ", all heads" * (is_whole and n_heads > 1))
    return "; ".join(parts)


def say_place(layers: Sequence[int], heads: Sequence[int] = ()) -> str:
    """Return layers, and heads if some are given, for a sentence."""
    return ", ".join(
        f"{name}{'s' * (len(numbers) > 1)} {say_numbers(numbers)}"
        for name, numbers in (("layer", layers), ("head", heads))
        if len(numbers)
    )


def say_numbers(numbers: Sequence[int]) -> str:
    """Write ascending numbers, three neighbours or more as ranges."""
    runs: list[list[int]] = []
    for number in numbers:
        if not runs or number != runs[-1][-1] + 1:
            runs.append([])
        runs[-1].append(number)
    return ", ".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run))
        for run in runs
    )


def say_finding(found: Finding, expected: Expected) -> str:
    """Return the sentence of a finding, without its layers and heads."""
    one = found.first
    meant, advice = expected.at(one.head.layer), ""
    if found.answer == UNDETERMINED and meant.is_known:
        advice = ADVICE.get(one.reason or one.outcome, "")
    if one.outcome != "scale":
        said = REASONS.get(one.reason) or OUTCOMES[one.outcome]
        return "; ".join(filter(None, [said, advice]))
    said = _say_divisor(found, expected.typed)
    more = [
        FORMS[one.form].format(parameter=one.parameter),
        say_mask(one.mask.mask, one.mask.window) * (one.mask.mask not in {"", "none"}),
        SUMS.get(one.mask.sums, "").format(row_sum=one.mask.row_sum),
    ]
    if found.answer == NO:
        parted = [one.partition("padded_") for one in found.hints]
        hints = [HINTS[name or "padded"].format(width=n) for name, _, n in parted]
        more.append(f"{meant.text} was expected{': ' * bool(hints)}{' '.join(hints)}")
    return "; ".join([said, *filter(None, [*more, advice])])


def _say_divisor(found: Finding, wanted: str) -> str:
    """Return what scores are divided or multiplied by.

    With the formula where the divisor is narrow enough for one, else with the multiple
    of sqrt(d_k).
    """
    divisor, half, ratio = found.divisor, found.half_width, found.ratio
    is_sure = half <= NEAR * abs(divisor)
    name = name_divisor(found.first.known, wanted) if is_sure else ""
    if abs(divisor) >= 1.0:
        said = f"scores are divided by {say_number(divisor, half)}"
    else:
        scale = 1.0 / divisor
        said = f"scores are multiplied by {say_number(scale, half * scale**2)}"
        inverse = [one.inverse for one in found.first.known if one.text == name]
        name, ratio = "".join(inverse), scale * ratio / divisor
    if name:
        return said if said.endswith(f" {name}") else f"{said} = {name}"
    part = half / abs(divisor)
    times = f"{ratio:.3g}" if part < SHOWN else say_number(ratio, part * abs(ratio))
    return f"{said}, {times} times sqrt(d_k)"


def say_mask(mask: str, window: int, keys: str = "") -> str:
    """Return a mask in words, with the keys that no row sees."""
    said = MASKS[mask].format(window=window)
    return f"{said} {keys}" if mask.endswith("keys") and keys else said


def say_number(value: float, half: float) -> str:
    """Return a number with the digits that its half-width supports."""
    if half < 1e-6 * abs(value):
        return f"{value:.6g}"
    digits = max(0, -int(f"{half:e}".partition("e")[2]))
    return f"{value:.{digits}f} ± {half:.{digits}f}"

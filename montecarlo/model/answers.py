"""Whether the heads of a model divide by the expected divisor, and how that is said.

Heads with the same result are one `Finding`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from montecarlo.model.expected import (
    CLOSE,
    EXPECTED,
    LARGEST,
    NEAR,
    SMALLEST,
    Expected,
    hints_at,
    name_divisor,
)
from montecarlo.model.scales import HeadScale, ModelScales
from montecarlo.small_files import read_package_toml

#: Answers whether a head divides by the expected divisor.
YES, NO, UNDETERMINED = "yes", "no", "cannot_be_told"
#: Relative tolerance of the divisor.
RTOL = 0.01
#: Probability that a model all of whose heads divide as expected gets a no.
WRONG_NO = 0.001
#: Ratio from which on a cap is not the expected one: in bfloat16 the estimate of a cap
#: of 50 is off by up to a tenth.
OTHER_CAP = 1.25
#: Size that the bend of a cap must have to be visible, over the residual of the fit.
SEEN = 10.0
#: Findings that are printed at most.
MOST_FINDINGS = 12
#: What is said: questions about likely mistakes, outcomes without a scale, what stands
#: beside a divisor, and masks.
SENTENCES = read_package_toml("model/sentences.toml")
HINTS: dict[str, str] = SENTENCES["hints"]
OUTCOMES: dict[str, str] = SENTENCES["outcomes"]
FORMS: dict[str, str] = SENTENCES["forms"]
MASKS: dict[str, str] = SENTENCES["masks"]
NOTES: dict[str, str] = SENTENCES["notes"]


class Finding(NamedTuple):
    """Heads with the same answer for the same reasons, that are reported together."""

    heads: tuple[HeadScale, ...]
    answer: str  # `YES`, `NO` or `UNDETERMINED`
    hints: tuple[str, ...]  # likely mistakes, keys of `HINTS`


class ScaleAnswer(NamedTuple):
    """The answer whether the heads of a model divide by the expected divisor.

    ``answer`` is `NO` if at least one head does not, or if a configured part, such as a
    cap, is wrong.  It is `YES` if all heads do and nothing was missed.  Otherwise it is
    `UNDETERMINED`.  Dead heads do not count.
    """

    scales: ModelScales  # as they were measured
    expected: Expected  # the divisor, and parts such as a mask, that were expected
    rtol: float  # relative tolerance of the divisor
    #: `YES`, `NO` or `UNDETERMINED`.  Dead heads, whose arrays are 0, do not count.
    answer: str
    findings: tuple[Finding, ...]  # those with a no first
    #: Possible attention that was not followed, because of which there is no yes.
    missed: tuple[str, ...] = ()
    #: Configured parts beside the divisor, such as a cap: those that are right, and
    #: those that these arrays cannot show.
    checked: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()


def answer_scales(
    scales: ModelScales,
    expected: Expected,
    rtol: float = RTOL,
    missed: tuple[str, ...] = (),
    caps: Mapping[int, float | None] | None = None,
) -> ScaleAnswer:
    """Return the answer whether all heads divide by the expected divisor.

    A head with a wrong part, such as another cap, counts as a `NO`, too.

    Parameters
    ----------
    scales : ModelScales
        The scales that the heads apply, from `find_scales`.
    expected : Expected
        The divisor that they ought to apply, from `find_expected`.
    rtol : float
        Relative tolerance of the divisor.
    missed : tuple of str
        Operations that may be attention and were not followed, with the reasons.  If
        there are any, the answer is not `YES`.
    caps : mapping, optional
        Number of a layer -> the cap of scores that was passed to attention; None for no
        cap.  A layer whose cap is not known is missing.
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
        alike = answer, wrong, text, one.outcome, names, one.form, *mask
        groups.setdefault(alike, []).append(one)
    findings = []
    for (answer, wrong, *_), group in groups.items():
        for heads in _split_by_divisor(group):
            hints = _hints(heads[0], expected, scales) if answer == NO else ()
            findings.append(Finding(tuple(heads), answer, wrong or hints))
    findings.sort(key=lambda one: (NO, UNDETERMINED, YES).index(one.answer))
    is_whole = answers == {YES} and not missed
    overall = NO if NO in answers else YES if is_whole else UNDETERMINED
    details = tuple(findings), missed, tuple(parts[YES]), tuple(parts[UNDETERMINED])
    return ScaleAnswer(scales, expected, rtol, overall, *details)


def _hints(head: HeadScale, expected: Expected, scales: ModelScales) -> tuple[str, ...]:
    """Return the likely mistakes behind a wrong divisor, as keys of `HINTS`.

    Such as ``("missing",)``.  The tuple is empty if the interval of the divisor is too
    wide, or if no mistake leads to this divisor.
    """
    low, high = head.divisors()
    if not high - low <= 2.0 * NEAR * abs(head.divisor):  # or not determined
        return ()
    sizes, is_twice = (scales.d_k, scales.n_heads), len(head.known) > 1
    meant = expected.at(head.head.layer)
    return hints_at(head.divisor, meant, *sizes, is_known_twice=is_twice)


def answer_head(
    head: HeadScale, expected: Expected, rtol: float = RTOL, n_heads: int = 1
) -> str:
    """Return whether a head divides by the expected divisor: one of three answers.

    `YES`: the 95 % interval of its divisor lies within the relative tolerance ``rtol``
    of the expected divisor.  `NO`: a wider interval lies outside of the tolerance, or
    the outcome is ``uniform``, ``over_queries`` or ``by_row``.  `UNDETERMINED`:
    neither, or the expected divisor is not known.

    The wider interval has a Bonferroni correction for ``n_heads`` heads: a model whose
    heads are all right gets any `NO` with probability `WRONG_NO`.  The outcome
    ``by_row`` is `UNDETERMINED` if only outputs show it: a bias has the same effect.
    """
    meant = expected.at(head.head.layer)
    if not meant.is_known or (head.outcome, head.source) == ("by_row", "outputs"):
        return UNDETERMINED
    if head.outcome in {"uniform", "by_row", "over_queries"}:
        return NO
    if head.outcome != "scale":
        return UNDETERMINED
    low, high = head.divisors()
    least, most = meant.value * (1.0 - rtol), meant.value * (1.0 + rtol)
    if least <= low and high <= most:
        return YES
    low, high = head.divisors(0.5 * WRONG_NO / n_heads)
    return NO if high < least or low > most else UNDETERMINED


class PartAnswer(NamedTuple):
    """The answer whether a head has a configured part of attention, such as a cap."""

    hint: str  # the likely mistake of a no, a key of `HINTS`
    text: str  # the part in words, such as ``a cap of 50``
    answer: str  # `YES`, `NO` or `UNDETERMINED`


def check_parts(
    head: HeadScale,
    expected: Expected,
    scales: ModelScales,
    caps: Mapping[int, float | None],
) -> Iterator[PartAnswer]:
    """Yield an answer for each configured part of attention that a head can show.

    Parts are a cap, a window or chunks, sinks, and a bias by distance.  A part is left
    out if the head says nothing about it, such as sinks without weights.  A window that
    is no shorter than the longest sequence is `UNDETERMINED`.  If no sinks are
    configured and weights of rows add up to less than 1, there is a `NO`.  ``caps``
    maps layers to the caps that were passed to attention, as in `answer_scales`.
    """
    parts = expected.at(head.head.layer).parts
    if not math.isnan(parts.cap) and head.outcome == "scale":
        yield _check_cap(head, parts.cap, caps.get(head.head.layer, math.nan))
    text = f"{parts.mask} of {parts.n_keys} keys".replace("window", "a window")
    if parts.n_keys >= scales.most_keys > 0:
        text = f"{text}, of {scales.most_keys} here"
        yield PartAnswer(parts.mask, text, UNDETERMINED)
    elif parts.n_keys and head.mask.mask in {"none", "causal", "window", "chunks"}:
        is_so = head.mask[:2] == (parts.mask, parts.n_keys)
        yield PartAnswer(parts.mask, text, YES if is_so else NO)
    for text in parts.not_checked:
        yield PartAnswer("", text, UNDETERMINED)
    if parts.has_sinks and head.source == "weights":
        has_none = {head.mask.sums for head in scales.heads} == {"one"}
        yield PartAnswer("no_sinks", "sinks", NO if has_none else YES)
    if parts.has_sinks is False and head.mask.sums == "less":
        yield PartAnswer("sums", "", NO)
    if parts.has_alibi and head.form == "distance":
        is_so = head.parameter < 0.0
        yield PartAnswer("alibi", "a bias that falls", YES if is_so else NO)


def _check_cap(head: HeadScale, wanted: float, passed: float | None) -> PartAnswer:
    """Return the answer whether a head caps its scores at ``wanted`` by tanh.

    `YES` if its cap is ``wanted`` up to a factor of `OTHER_CAP`, else `NO`.  The cap is
    taken from the fit.  If a cap of this size would not show in the weights, the cap
    that was ``passed`` to attention counts, None for no cap.  If that is NaN, for not
    known, the answer is `UNDETERMINED`.
    """
    cap = head.parameter if head.form == "cap" else None
    if cap is None and head.fit is not None:
        # the size of the cubic term of tanh
        bent = (abs(head.scale) * head.fit.spread) ** 3 / wanted**2
        shows = bent > SEEN * max(head.fit.residual, head.fit.rounding)
        cap = None if shows and head.form in {"plain", "distance"} else passed
    if cap is not None and math.isnan(cap):
        text = f"a cap of {wanted:g}, too far above these scores"
        return PartAnswer("cap", text, UNDETERMINED)
    is_so = cap is not None and 1.0 / OTHER_CAP < cap / wanted < OTHER_CAP
    return PartAnswer("cap", f"a cap of {wanted:g}", YES if is_so else NO)


def _split_by_divisor(heads: Sequence[HeadScale]) -> Iterable[list[HeadScale]]:
    """Return heads in groups of nearly the same divisor.

    Within a group divisors differ by at most the relative difference `CLOSE`.  All
    ``heads`` have the same outcome.  If that is not a scale, they are a single group.
    """
    if heads[0].outcome != "scale":
        return [list(heads)]
    groups: list[list[HeadScale]] = []
    for one in sorted(heads, key=lambda head: head.divisor):
        if not groups or abs(groups[-1][0].scale / one.scale - 1.0) > CLOSE:
            groups.append([])
        groups[-1].append(one)
    return [sorted(group, key=lambda one: one.head) for group in groups]


def implied_divisor(scales: ModelScales) -> str:
    """Return the median of the heads' divisors as text, such as ``8``.

    `EXPECTED` if no head has a divisor that is determined and of a usable size.
    """
    divisors = sorted(one.divisor for one in scales.heads if one.outcome == "scale")
    usable = [one for one in divisors if SMALLEST <= one <= LARGEST]
    return f"{usable[len(usable) // 2]:.8g}" if usable else EXPECTED


def say_answer(answer: ScaleAnswer) -> str:
    """Return one line that asks whether scores are divided as expected, and answers it.

    Such as ``scores divided by sqrt(d_k)? yes; right, too: a cap of 50``.
    """
    if not answer.expected.is_known:
        return (
            "scores divided as configured? cannot be told: "
            f"{answer.expected.derivation}; expect='sqrt', or a number, would be judged"
        )
    question = f"scores divided by {answer.expected.text}?"
    if not answer.scales.heads:
        return (
            f"{question} cannot be told from queries and keys alone: give arrays that "
            "are called weights, or v and outputs"
        )
    said = f"{question} {answer.answer.replace('_', ' ')}"
    if answer.answer == UNDETERMINED and answer.missed:
        return f"{said}: attention was not followed: {'; '.join(answer.missed)}"
    if answer.answer == YES:
        for result, parts in (
            ("right, too", answer.checked),
            ("not checked", answer.not_checked),
        ):
            said += f"; {result}: {', '.join(parts)}" * bool(parts)
    return said


def say_findings(answer: ScaleAnswer) -> Iterator[str]:
    """Yield a line of text for each finding: its heads, and what they do.

    Such as ``layers 0-3, all heads: scores are divided by 8.000 ± 0.002 = sqrt(d_k)``.
    If there are more than `MOST_FINDINGS`, the last line counts the others.
    """
    for one in answer.findings[:MOST_FINDINGS]:
        yield f"{say_places(one, answer.scales.n_heads)}: {say_finding(one, answer)}"
    if len(answer.findings) > MOST_FINDINGS:
        yield f"and {len(answer.findings) - MOST_FINDINGS} more, in the table"


def say_places(finding: Finding, n_heads: int) -> str:
    """Return the layers and heads of a finding as text.

    Such as ``layers 0-3, all heads; layer 5, head 2``.  ``n_heads`` is the number of
    heads of a layer.
    """
    heads: dict[int, list[int]] = {}
    for one in finding.heads:
        heads.setdefault(one.head.layer, []).append(one.head.head)
    layers: dict[tuple[int, ...], list[int]] = {}  # that have the same heads here
    for layer, numbers in heads.items():
        layers.setdefault(tuple(numbers), []).append(layer)
    return "; ".join(
        say_place(same, ()) + ", all heads" * (n_heads > 1)
        if len(numbers) == n_heads
        else say_place(same, numbers)
        for numbers, same in layers.items()
    )


def say_place(layers: Sequence[int], heads: Sequence[int] = ()) -> str:
    """Return numbers of layers and heads as text: ``layers 0-3, heads 1, 2``.

    Without ``heads``, the layers alone.
    """
    return ", ".join(
        f"{name}{'s' * (len(numbers) > 1)} {say_numbers(numbers)}"
        for name, numbers in (("layer", layers), ("head", heads))
        if len(numbers)
    )


def say_numbers(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text, with ranges from three on: ``0, 2-5, 7, 8``."""
    runs: list[list[int]] = []
    for number in numbers:
        if not runs or number != runs[-1][-1] + 1:
            runs.append([])
        runs[-1].append(number)
    return ", ".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run))
        for run in runs
    )


def say_finding(finding: Finding, answer: ScaleAnswer) -> str:
    """Return a finding in words, without its layers and heads.

    The words say the divisor, form, mask and sum of weights, what was expected, and
    likely mistakes: ``scores are divided by 8.000 ± 0.002 = sqrt(d_k); a causal mask``.
    For heads without a divisor they are the text of `OUTCOMES` alone.
    """
    one = finding.heads[0]
    meant, mask = answer.expected.at(one.head.layer), one.mask
    if one.outcome != "scale":
        return OUTCOMES[one.outcome]
    said = [
        _say_divisor(finding, answer.scales.d_k, meant.typed),
        FORMS.get(one.form, "").format(parameter=one.parameter),
        say_mask(mask.mask, mask.window) * (mask.mask not in {"", "none"}),
        NOTES["sums"].format(row_sum=mask.row_sum) * (mask.sums not in {"", "one"}),
    ]
    if finding.answer == NO:
        hints = " ".join(HINTS[one] for one in finding.hints)
        said.append(f"{meant.text} was expected{': ' * bool(hints)}{hints}")
    elif finding.answer == UNDETERMINED and meant.is_known:
        said.append(NOTES["wide"])
    return "; ".join(filter(None, said))


def _say_divisor(finding: Finding, d_k: int, wanted: str) -> str:
    """Return the mean divisor of the heads of a finding in words.

    Such as ``scores are divided by 8.000 ± 0.002 = sqrt(d_k)``.  If no single formula
    fits, or the interval is too wide to say, it is a multiple: ``scores are divided by
    8.2 ± 0.4, 1.02 times sqrt(d_k)``.  ``wanted`` is the name of the expected divisor,
    which is preferred if several formulas fit.
    """
    heads = finding.heads
    divisor = math.fsum(one.divisor for one in heads) / len(heads)
    half = max(abs(end - divisor) for one in heads for end in one.divisors())
    said = f"scores are divided by {say_number(divisor, half)}"
    is_sure = half <= NEAR * abs(divisor)
    if is_sure and (name := name_divisor(heads[0].known, wanted)):
        return said if said.endswith(f" {name}") else f"{said} = {name}"
    return f"{said}, {divisor / math.sqrt(d_k):.3g} times sqrt(d_k)"


def say_mask(mask: str, window: int, keys: str = "") -> str:
    """Return a mask in words: ``a causal mask with a window of 128 keys``.

    ``mask`` is a key of `MASKS`, and ``window`` the number of keys of a window or
    chunk.  ``keys`` are words that name the hidden keys, for masks whose name ends in
    ``keys``.
    """
    said = MASKS[mask].format(window=window)
    return f"{said} {keys}" if mask.endswith("keys") and keys else said


def say_number(value: float, half: float) -> str:
    """Return a number with the half-width of its interval as text: ``8.00 ± 0.02``.

    The number of digits follows from ``half``, the half-width.  If that is less than a
    millionth of the number, it is not shown.
    """
    if half < 1e-6 * abs(value):
        return f"{value:.6g}"
    digits = max(0, -int(f"{half:e}".partition("e")[2]))
    return f"{value:.{digits}f} ± {half:.{digits}f}"

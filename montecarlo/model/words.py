"""What the terminal says of the scale that a model applies, in English."""

from collections.abc import Iterator, Sequence

from montecarlo.model.heads import Applied
from montecarlo.model.telling import NO, UNTOLD, YES, Finding, ranges_of
from montecarlo.model.usual import Expected

#: Findings that the terminal lists.
MOST_FINDINGS = 12
ANSWERS = {YES: "yes", NO: "no", UNTOLD: "cannot be told"}
HINTS = {
    "sign": "is a sign wrong?",
    "missing": "is the scale missing, or applied before q and k were captured?",
    "twice": "is the scale applied twice?",
    "multiplied": "multiplied where it should be divided?",
    "width": "the width of the model where that of a head belongs?",
    "heads": "the number of heads where their width belongs?",
}
#: What is said where no scale is told.
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
#: And where there is too little to tell one.
REASONS = {
    "few": "nothing can be told: too few weights that differ",
    "coarse": "nothing can be told: rounded to 8 bits, too coarse",
    "peaked": "nothing can be told: scores are so large that their rounding may hide "
    "the scale",
}
#: Scores within a row mostly differ by more than the one and less than the other.
LEAST_SPREAD, MOST_SPREAD = 1e-6, 1e6
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
    "": "",
    "none": "",
    "causal": "causal mask",
    "causal_start": "causal mask whose first query sees the first key alone, although "
    "there are more keys than queries",
    "window": "causal mask with a window of {window} keys",
    "keys": "hidden keys",
    "causal_keys": "causal mask and hidden keys",
    "other": "zeros that are no common mask",
}
SUMS = {
    "less": "weights of a row add up to {row_sum:.3g} on average: a sink outside these "
    "keys, keys cut off, or a factor?",
    "other": "weights of a row add up to {row_sum:.3g} on average: dropout, or "
    "softmax over the queries?",
}


def say_answer(applied: Applied, answer: str, expected: Expected) -> str:
    """Answer in a line whether scores are divided by what is expected."""
    question = f"scores divided by {expected.text}?"
    if not applied.heads:
        return f"{question} cannot be told from queries and keys alone"
    return f"{question} {ANSWERS[answer]}"


def say_without_evidence(size: float) -> str:
    """Say what queries and keys alone tell, by the size of scores over sqrt(d_k)."""
    if 1.0 / 1.5 < size < 1.5:
        told = "scores are about as large as entries of variance 1 would make them"
    else:
        ratio, word = (size, "larger") if size > 1.0 else (1.0 / size, "smaller")
        told = (
            f"scores are {ratio:.3g} times {word} than entries of variance 1 would "
            f"make them: a scale applied before the capture, or {word} entries"
        )
    return f"{told}; give weights, or v and outputs"


def say_findings(
    found: Sequence[Finding], expected: Expected, n_heads: int
) -> Iterator[str]:
    """Say what was found, a line for heads that are alike."""
    for one in found[:MOST_FINDINGS]:
        yield f"{say_places(one, n_heads)}: {say_finding(one, expected)}"
    if len(found) > MOST_FINDINGS:
        yield f"and {len(found) - MOST_FINDINGS} more, in the table"


def say_places(found: Finding, n_heads: int) -> str:
    """Say of which heads a finding is."""
    parts = []
    for layers, heads in found.places:
        layer = f"layer{'s' * (len(layers) > 1)} {say_numbers(layers)}"
        if len(heads) == n_heads:
            parts.append(f"{layer}, all heads" if n_heads > 1 else layer)
        else:
            parts.append(f"{layer}, head{'s' * (len(heads) > 1)} {say_numbers(heads)}")
    return "; ".join(parts)


def say_numbers(numbers: Sequence[int]) -> str:
    """Write ascending numbers, neighbours as ranges."""
    return ", ".join(
        f"{first}-{last}"
        if last > first + 1
        else ", ".join(map(str, range(first, last + 1)))
        for first, last in ranges_of(numbers)
    )


def say_finding(found: Finding, expected: Expected) -> str:
    """Say what is found of heads that are alike."""
    one = found.first
    if one.outcome != "scale":
        return REASONS.get(one.reason) or OUTCOMES[one.outcome]
    divisor, half = found.divisor, found.half_width
    if abs(divisor) >= 1.0:
        told = f"scores are divided by {say_number(divisor, half)}"
    else:
        scale = 1.0 / divisor
        told = f"scores are multiplied by {say_number(scale, half * scale**2)}"
    within = found.within
    if within:
        told += "".join(
            f" = {usual.text if abs(divisor) >= 1.0 else usual.inverse}"
            for usual in within
        )
    elif one.usual:
        told += f", {found.ratio:.3g} times {one.usual[0].text}"
    parameter = one.fit.parameter if one.fit is not None else 0.0
    more = [
        FORMS[one.form].format(parameter=parameter),
        MASKS[one.mask].format(window=one.window),
        SUMS.get(one.sums, "").format(row_sum=one.row_sum),
    ]
    spread = one.fit.spread if one.fit is not None else 1.0
    if not LEAST_SPREAD < spread < MOST_SPREAD:
        more.append(
            f"scores of q and k differ by {spread:.3g} within a row: another size than "
            "the model's?"
        )
    if found.answer == NO:
        hints = " ".join(HINTS[hint] for hint in found.hints)
        more.append(f"{expected.text} was expected{': ' * bool(hints)}{hints}")
    return "; ".join([told, *filter(None, more)])


def say_number(value: float, half: float) -> str:
    """Write a number with as many digits as what it may be off by allows."""
    if half < 1e-6 * abs(value):
        return f"{value:.6g}"
    digits = max(0, -int(f"{half:e}".partition("e")[2]))
    return f"{value:.{digits}f} ± {half:.{digits}f}"

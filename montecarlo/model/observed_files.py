"""What ``python -m montecarlo observe`` writes and prints, except for its figure.

In: files of queries and keys.  Out: tables, a record for JSON, and lines of text.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from montecarlo.model import answers, observing
from montecarlo.model.arrays import Track, untracked
from montecarlo.model.expected import divisor_value, find_expected
from montecarlo.model.files import open_files
from montecarlo.model.observing import FEWEST, LEAST, Observation, ObservedHead
from montecarlo.model.scales import describe, find_scales, scales_table
from montecarlo.names import require_number

if TYPE_CHECKING:
    import pandas as pd

#: Number of parts of the variance in the line of a head, the largest ones.
MOST_PARTS = 3
#: Quantities in the line of a head, each with its heading.
SHOWN = {
    "score_variance": "Var(q.k)",
    "score_row_variance": "within rows",
    "scaled_row_variance": "divided",
    "unit_divisor": "right divisor",
}


def observe_files(  # noqa: PLR0913 - what is typed
    files: Sequence[Path],
    *,
    axes: Sequence[str] | None = None,
    causal: bool = False,
    expect: str | None = None,
    config: Path | None = None,
    rtol: float = answers.RTOL,
    divisor: str | None = None,
    track: Track = untracked,
) -> tuple[Observation, answers.ScaleAnswer]:
    """Return (quantities of each head, answer whether scales are as expected).

    Parameters
    ----------
    files, axes, causal
        As for `montecarlo.model.files.open_files`.
    expect, config
        As for `montecarlo.model.expected.find_expected`.
    rtol : float
        Largest relative difference of a divisor from the expected one, above 0 and
        below 1.
    divisor : str, optional
        Divisor of the quantities; by default the median of those that heads apply, or
        sqrt(d_k) if none is determined.
    track : callable
        Shows how many heads are done.

    Raises
    ------
    InputError
        If an argument or a file is not usable.
    """
    require_number("rtol", rtol, 0.0, 1.0, ends=False)
    model = open_files(files, axes=axes, causal=causal)
    expected = find_expected(model, expect, config)
    if divisor is not None:
        divisor_value(divisor, model.d_k)
    scales = find_scales(model, track)
    value = divisor_value(divisor or answers.implied_divisor(scales), model.d_k)
    observation = observing.observe_model(model, value, track)
    return observation, answers.answer_scales(scales, expected, rtol)


def make_tables(
    observation: Observation, answer: answers.ScaleAnswer
) -> dict[str, "pd.DataFrame"]:
    """Return the tables of a folder of results, by the names of their files.

    ``applied-scale.csv`` is missing if neither weights nor outputs were given.
    """
    tables = {"observation.csv": observing.observation_table(observation)}
    if answer.scales.heads:
        tables["applied-scale.csv"] = scales_table(answer.scales.heads)
    return tables


def record_observation(
    observation: Observation, answer: answers.ScaleAnswer
) -> dict[str, Any]:
    """Return an observation and the answer as data for JSON; None for NaN and infinity.

    The key ``applied`` has the scales and the answer.
    """
    model, scales = observation.model, answer.scales.heads
    record = {
        "d_k": model.d_k,
        "layers": model.layers,
        "heads_per_layer": len(model.head_labels),
        "key_heads_per_layer": len(set(model.key_heads.values())),
        "n_sequences": len(model.sequences),
        "most_keys": model.most_tokens,
        "causal": model.causal,
        "divisor": observation.divisor,
        "heads": [
            one.head._asdict() | {"state": one.state, "shares": one.shares}
            for one in observation.heads
        ],
        "dead": observation.dead,
        "applied": {
            "expected": answer.expected.typed,
            "expected_divisor": answer.expected.value,
            "expected_by": answer.expected.derivation or None,
            "source": scales[0].source if scales else None,
            "rtol": answer.rtol,
            "answer": answer.answer,
            "findings": list(answers.say_findings(answer)),
            "heads": [describe(one) for one in scales],
        },
    }
    data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(record))
    return data


def say_scales(observation: Observation, answer: answers.ScaleAnswer) -> Iterator[str]:
    """Yield lines of text: the answer, each finding, and a list of dead heads.

    Dead heads have queries, keys or scores that do not vary.  Without any there is no
    list.
    """
    yield answers.say_answer(answer)
    for line in answers.say_findings(answer):
        yield f"  {line}"
    if dead := observation.dead:
        places = [f"({one.layer}, {one.head})" for one in dead[: answers.MOST_FINDINGS]]
        yield (
            "left out, since queries, keys or scores are the same for every token "
            f"(layer, head): {' '.join(places)}{' ...' * (len(dead) > len(places))}"
        )


def list_heads(
    observation: Observation, answer: answers.ScaleAnswer
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return (headings, rows) of a table of heads, with all cells as text.

    At most `MOST_FINDINGS` heads: those whose score variance within rows, after
    division, is farthest from 1.  The last two columns are words.
    """
    divisors = {
        one.head: "-" if math.isnan(one.divisor) else f"{one.divisor:.4g}"
        for one in answer.scales.heads
    }
    applied = ("applied divisor",) * bool(divisors)
    words = ("state", "largest parts of Var(q.k)")
    rows = []
    for one in sorted(observation.heads, key=_sort_key)[: answers.MOST_FINDINGS]:
        shares = sorted(one.shares.items(), key=lambda part: -abs(part[1]))
        parts = ", ".join(f"{name} {x:.0%}" for name, x in shares[:MOST_PARTS])
        numbers = (f"{one.estimates[name].value:.4g}" for name in SHOWN)
        divisor = (divisors[one.head],) if divisors else ()
        cells = (*map(str, one.head), *numbers, *divisor)
        rows.append((*cells, one.state, parts))
    return ("layer", "head", *SHOWN.values(), *applied, *words), rows


def _sort_key(one: ObservedHead) -> float:
    """Return a sort key of a head, lower if its variance is farther from 1.

    It is -|ln v| for the variance v of divided scores within rows.
    """
    return -abs(math.log(max(one.estimates["scaled_row_variance"].value, LEAST)))


def say_states(observation: Observation) -> Iterator[str]:
    """Yield a line that counts heads by state, and a second if there are few sequences.

    The first is such as ``12 heads, d_k = 64, divisor 8: 3 saturated, 9 balanced``.
    The second warns of fewer than 5 sequences.
    """
    counts = Counter(one.state for one in observation.heads)
    states = (f"{counts[one]} {one}" for one in observing.STATES if counts[one])
    yield (
        f"{len(observation.heads)} heads, d_k = {observation.model.d_k}, "
        f"divisor {observation.divisor:.4g}: {', '.join(states)}"
    )
    if len(observation.model.sequences) < FEWEST:
        yield "fewer than 5 sequences: these tokens are described, no more"

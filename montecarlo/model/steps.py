"""Over training: what becomes of a model's scores from one capture to the next.

Captures in the order of training in; per head and step the largest score after the
scale, the variance within rows, the entropy and the scale itself out.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from scipy.special import softmax
from scipy.stats import kendalltau

from montecarlo.attention.softmax import Array
from montecarlo.errors import InputError
from montecarlo.model.arrays import UNSEEN, Head, Model, Rows
from montecarlo.model.head_summary import FACTOR, HOT, entropy_of
from montecarlo.model.scales import ModelScales, read_some_rows

if TYPE_CHECKING:  # as long to import as all the rest
    import pandas as pd

#: A part of the largest possible entropy below which a head has nearly stopped to mix.
FROZEN = 0.05
#: A head grows whose largest score follows the steps by this rank correlation, and ends
#: `FACTOR` times as large; over fewer steps nothing is said.
TREND, FEWEST_STEPS = 0.8, 3
#: What a head may be, over steps or at the last one.
WARNINGS = ("growing", "hot", "frozen")
#: Masks of which what is hidden is read from the zeros of weights.
PARTIAL = ("window", "chunks", "keys", "causal_keys", "other")
COLUMNS = (
    "step",
    "file",
    "layer",
    "head",
    "implied_scale",
    "score_max",
    "score_variance",
    "entropy",
    "entropy_share",
)
_NUMBER = re.compile(r"(\d{1,18})(?=\D*$)")
#: Of the columns, of a head and step.
Line = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """Captures in order."""

    frame: "pd.DataFrame"  # a line per step and head, columns `COLUMNS`
    warnings: Mapping[
        str, tuple[Head, ...]
    ]  # heads of which each of `WARNINGS` is said


def order_files(files: Sequence[Path]) -> list[tuple[int, Path]]:
    """Return files with their steps: the last number in their names, or their place.

    A shell puts step-1000 before step-200.
    """
    if len(files) < FEWEST_STEPS:
        raise InputError(
            f"--steps must have a file for each of at least {FEWEST_STEPS} steps, got "
            f"{len(files)}"
        )
    found = [_NUMBER.search(path.stem) for path in files]
    numbers = [int(match[1]) for match in found if match is not None]
    if len(set(numbers)) < len(files):
        return list(enumerate(files))
    return sorted(zip(numbers, files, strict=True))


def describe_step(
    step: int, name: str, model: Model, scales: ModelScales, divisor: float
) -> list[Line]:
    """Return the lines of a step, one per head.

    Scores are multiplied by the scale that a head was found to apply; where none was
    told they are divided by ``divisor``.
    """
    told = {one.head: (one.scale, one.mask.mask) for one in scales.heads}
    lines: list[Line] = []
    for head in model.heads():
        scale, mask = told.get(head, (math.nan, ""))
        used = scale if math.isfinite(scale) else 1.0 / divisor
        largest, variances, entropies, shares = 0.0, [], [], []
        for scores, given in _visible_rows(model, head, mask):
            seen = np.isfinite(scores)
            scaled = np.where(seen, used * np.where(seen, scores, 0.0), 0.0)
            largest = max(largest, float(np.abs(scaled).max()))
            shown = np.where(seen, scaled, -np.inf)
            weights = softmax(shown, axis=1) if given is None else given
            count = seen.sum(axis=1)
            several = count > 1
            means = scaled.sum(axis=1) / np.maximum(count, 1)
            away = np.where(seen, scaled - means[:, None], 0.0)
            variances.append((away**2).sum(axis=1)[several] / (count[several] - 1))
            entropies.append(entropy_of(weights)[several])
            shares.append(entropies[-1] / np.log(count[several]))
        means_of = (_mean(parts) for parts in (variances, entropies, shares))
        lines.append((step, name, *head, scale, largest, *means_of))
    return lines


def _visible_rows(
    model: Model, head: Head, mask: str
) -> Iterator[tuple[Array, Array | None]]:
    """Yield scores of rows, those of keys that a mask hides -inf, and their weights.

    Rows without a weight are left out.
    """
    for rows in read_some_rows(model, head):
        scores, weights = _hide(rows, mask, causal=model.causal), None
        if "weights" in rows.made:
            kept = rows.weights.any(axis=1)
            scores, weights = scores[kept], rows.weights[kept]
        if len(scores):
            yield scores, weights


def _hide(rows: Rows, mask: str, *, causal: bool) -> Array:
    """Return scores, those of keys that a mask hides -inf."""
    if rows.added is not None:
        return np.where(rows.added > UNSEEN, rows.scores, -np.inf)
    later, has_weights = rows.offsets > 0, "weights" in rows.made
    is_causal = causal or mask == "causal"
    if has_weights and not mask:  # nothing was told, and zeros may be small
        is_causal = is_causal or not rows.weights[later].any()
    if is_causal:
        return np.where(later, -np.inf, rows.scores)
    if mask == "causal_start":
        return np.where(rows.offsets > -rows.shift, -np.inf, rows.scores)
    if has_weights and mask in PARTIAL:
        return np.where(rows.weights > 0.0, rows.scores, -np.inf)
    return rows.scores


def _mean(parts: Sequence[Array]) -> float:
    """Return the mean of all values, NaN where there is none."""
    values = np.concatenate(parts) if parts else np.empty(0)
    return float(values.mean()) if values.size else math.nan


def judge_steps(lines: Sequence[Line]) -> Steps:
    """Say of which heads practice would be warned."""
    import pandas as pd

    frame = pd.DataFrame.from_records(list(lines), columns=list(COLUMNS))
    found: dict[str, list[Head]] = {name: [] for name in WARNINGS}
    for numbers, one in frame.groupby(["layer", "head"]):
        head = Head(*cast("tuple[int, int]", numbers))
        if is_growing(one["step"].to_numpy(), one["score_max"].to_numpy()):
            found["growing"].append(head)
        last = one.iloc[-1]
        if last["score_max"] > HOT:
            found["hot"].append(head)
        if last["entropy_share"] < FROZEN:
            found["frozen"].append(head)
    return Steps(frame, {name: tuple(heads) for name, heads in found.items()})


def is_growing(steps: Array, largest: Array) -> bool:
    """Say whether largest scores grow with the steps."""
    if len(steps) < FEWEST_STEPS or not largest[0] > 0.0:
        return False
    trend = kendalltau(steps, largest).statistic
    return bool(trend >= TREND and largest[-1] >= FACTOR * largest[0])

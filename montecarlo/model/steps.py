"""Over training: what becomes of a model's scores from one capture to the next.

Captures in the order of training in; per head and step the largest score after the
scale, the variance within rows, the entropy and the scale itself out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import kendalltau

from montecarlo.attention.softmax import Array
from montecarlo.model.heads import Applied
from montecarlo.model.model import Head, Model
from montecarlo.model.rows import read_rows

#: A scaled score beyond this is what practice takes measures against, such as capping
#: scores or normalising queries and keys.
HOT = 100.0
#: A part of the largest possible entropy below which a head has nearly stopped to mix.
FROZEN = 0.05
#: A head grows whose largest score follows the steps by this rank correlation, and ends
#: so many times as large; over fewer steps nothing is said.
TREND, FACTOR, FEWEST_STEPS = 0.8, 2.0, 3
#: What a head may be, over steps or at the last one.
WARNINGS = ("growing", "hot", "frozen")
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


@dataclass(frozen=True, slots=True)
class Steps:
    """Captures in order.

    Attributes
    ----------
    frame : DataFrame
        A line per step and head, columns `COLUMNS`.
    warnings : mapping
        Each of `WARNINGS` to the heads of which it is said.
    """

    frame: pd.DataFrame
    warnings: Mapping[str, tuple[Head, ...]]


def describe_step(
    step: int, name: str, model: Model, applied: Applied, divisor: float
) -> list[tuple[object, ...]]:
    """Return the lines of a step, one per head.

    Scores are multiplied by the scale that a head was found to apply; where none was
    told they are divided by ``divisor``.
    """
    scales = {one.head: one.scale for one in applied.heads}
    masks = {one.head: one.mask for one in applied.heads}
    lines: list[tuple[object, ...]] = []
    for head in model.heads():
        scale = scales.get(head, np.nan)
        used = scale if np.isfinite(scale) else 1.0 / divisor
        largest, variances, entropies, shares = 0.0, [], [], []
        for scores, weights in read_rows(model, head, masks.get(head, "")):
            seen = np.isfinite(scores)
            scaled = np.where(seen, used * np.where(seen, scores, 0.0), 0.0)
            largest = max(largest, float(np.abs(scaled).max()))
            p = _softmax(scaled, seen) if weights is None else weights
            count = seen.sum(axis=1)
            several = count > 1
            means = scaled.sum(axis=1) / np.maximum(count, 1)
            away = np.where(seen, scaled - means[:, None], 0.0)
            variances.append((away**2).sum(axis=1)[several] / (count[several] - 1))
            entropies.append(_entropy(p)[several])
            shares.append(entropies[-1] / np.log(count[several]))
        lines.append(
            (
                step,
                name,
                head.layer,
                head.head,
                scale,
                largest,
                _mean(variances),
                _mean(entropies),
                _mean(shares),
            )
        )
    return lines


def _mean(parts: Sequence[Array]) -> float:
    """Return the mean of all values, NaN where there is none."""
    values = np.concatenate(parts) if parts else np.empty(0)
    return float(values.mean()) if values.size else math.nan


def _softmax(scaled: Array, seen: NDArray[np.bool_]) -> Array:
    shown = np.where(seen, scaled, -np.inf)
    e = np.exp(shown - shown.max(axis=1, keepdims=True))
    found: Array = e / e.sum(axis=1, keepdims=True)
    return found


def _entropy(p: Array) -> Array:
    """Return each row's entropy in nats."""
    logs = np.log(np.where(p > 0.0, p, 1.0))
    found: Array = -(p * logs).sum(axis=1)
    return found


def judge_steps(lines: Sequence[tuple[object, ...]]) -> Steps:
    """Say of which heads practice would be warned."""
    frame = pd.DataFrame.from_records(list(lines), columns=list(COLUMNS))
    found: dict[str, list[Head]] = {name: [] for name in WARNINGS}
    numbers = frame[["layer", "head"]].drop_duplicates().to_numpy()
    for head in sorted(Head(int(layer), int(number)) for layer, number in numbers):
        one = frame[frame["layer"].eq(head.layer) & frame["head"].eq(head.head)]
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

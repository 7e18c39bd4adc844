"""Every head of a model: the scale that it applies, and what else is in its scores.

>>> import numpy as np
>>> from montecarlo.model.heads import applied_scale
>>> rng = np.random.default_rng(1)
>>> q, k = rng.normal(size=(2, 16, 8))
>>> weights = np.exp(q @ k.T / 4)
>>> weights /= weights.sum(axis=1, keepdims=True)
>>> frame = applied_scale(q, k, weights=weights, axes=("token", "d"))
>>> round(float(frame.implied_divisor[0]), 6), frame.nearest[0]
(4.0, '2 sqrt(d_k)')
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from montecarlo.errors import InputError
from montecarlo.estimation.intervals import Interval
from montecarlo.model.fits import Fit
from montecarlo.model.from_outputs import fit_outputs
from montecarlo.model.from_weights import fit_weights
from montecarlo.model.hidden import are_one, find_hidden
from montecarlo.model.model import Head, Model
from montecarlo.model.opening import open_arrays
from montecarlo.model.rows import (
    column_sums,
    format_of,
    is_dead,
    read_outputs,
    read_weights,
    unit_of,
)
from montecarlo.model.usual import USUAL, Usual, divisors_within

#: How a head may come out.
OUTCOMES = (
    "scale",  # its scale is told
    "uniform",  # every key that is not hidden counts the same
    "by_row",  # rows have scales of their own, and no single one fits
    "over_queries",  # softmax runs over the queries: columns of weights add up to 1
    "dead",  # its queries, its keys, or what is made of them are all 0
    "no_fit",  # no scale fits: what was given does not belong together
    "no_information",  # rounding, or too few weights that differ, hide the scale
)
#: Of these, that tell what scores are multiplied by.
TOLD = ("scale", "uniform", "over_queries")
COLUMNS = (
    "layer",
    "head",
    "outcome",
    "implied_scale",
    "ci_low",
    "ci_high",
    "implied_divisor",
    "nearest",
    "ratio",
    "source",
    "form",
    "parameter",
    "mask",
    "row_sum",
    "rows_left_out",
    "left",
)
#: Scaled scores that differ by less are all the same, whatever the format.
UNIFORM = 1e-9
#: A scale that may not be more than this part of the smallest usual one, 1 / d_k, is 0.
SMALLEST = 0.1
#: Rounding to so few bits leaves too little of the weights to tell a scale.
COARSE = 2.0**-4
#: Where rounding may move scores by more than this, only what shows that they were not
#: rounded is believed.
MOST_MOVED = 0.5
#: What rounding to float32 moves a number by, as a part of it.
FLOAT32 = 2.0**-24
Progress = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class AppliedHead:
    """What a head applies to its scores.

    Attributes
    ----------
    head : Head
    source : str
        ``weights`` or ``outputs``: what it was told from.
    outcome : str
        One of `OUTCOMES`.
    fit : Fit or None
        None where the rows hold no information.
    mask : str
        See `montecarlo.model.hidden.Hidden`; empty where it is not known.
    window : int
    row_sum : float
        NaN where it is not known.
    sums : str
    unit : float
        What rounding moves a number by, as a part of it.
    usual : tuple of Usual
        Usual divisors in the interval, which is widened by one rounding of the scale;
        if none is, the nearest.
    ratio : float
        The divisor over the first of these; NaN without.
    left_out : int
        Rows of padding among those that were read.
    """

    head: Head
    source: str
    outcome: str
    fit: Fit | None
    mask: str
    window: int
    row_sum: float
    sums: str
    unit: float
    usual: tuple[Usual, ...] = ()
    ratio: float = math.nan
    left_out: int = 0

    @property
    def form(self) -> str:
        """What becomes of a score before softmax; empty where it is not told."""
        told = self.outcome in {"scale", "by_row"}
        return self.fit.form if told and self.fit is not None else ""

    @property
    def scale(self) -> float:
        """What scores are multiplied by; NaN where it is not told."""
        told = self.outcome in TOLD
        return self.fit.scale if told and self.fit is not None else math.nan

    @property
    def reason(self) -> str:
        """Why nothing is told: ``coarse``, ``peaked`` or ``few``; else empty."""
        if self.outcome != "no_information":
            return ""
        if self.unit >= COARSE:
            return "coarse"
        fit = self.fit
        if fit is not None and (fit.moved > MOST_MOVED or not fit.holds):
            return "peaked"
        return "few"

    @property
    def interval(self) -> Interval:
        """95 % interval of the scale."""
        if self.fit is None or math.isnan(self.scale):
            return Interval(math.nan, math.nan)
        return self.fit.interval

    @property
    def divisors(self) -> Interval:
        """95 % interval of the divisor."""
        if self.outcome != "scale":
            return Interval(math.nan, math.nan)
        return Interval(*sorted(1.0 / end for end in self.interval))

    @property
    def named(self) -> Interval:
        """The same, widened by roundings: a usual divisor within may be the model's.

        A model's own constant is rounded, too.
        """
        low, high = self.divisors
        room = 2.0 * max(self.unit, FLOAT32) * abs(low)
        return Interval(low - room, high + room)


@dataclass(frozen=True, slots=True)
class Applied:
    """What the heads of a model apply.

    Attributes
    ----------
    d_k, n_heads : int
    heads : tuple of AppliedHead
        Empty where neither weights nor outputs were given.
    """

    d_k: int
    n_heads: int
    heads: tuple[AppliedHead, ...]


def applied_scale(  # noqa: PLR0913 - five arrays, and how they lie
    q: ArrayLike,
    k: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    v: ArrayLike | None = None,
    outputs: ArrayLike | None = None,
    axes: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Tell the scale that a model applies, from what softmax made of its scores.

    Parameters
    ----------
    q, k : array_like of floating-point numbers
        As for `montecarlo.observe`; as they are multiplied with each other, after
        rotary embeddings.
    weights : array_like, optional
        Attention weights: axes of ``q`` without ``d``, and keys last.
    v, outputs : array_like, optional
        Values, and what the head makes of them before heads are joined; in place of
        weights.
    axes : sequence of str, optional
        Names of the axes of q and k, v and outputs.

    Returns
    -------
    DataFrame
        One row per head, columns `COLUMNS`.

    Raises
    ------
    InputError
        If neither weights nor values and outputs are given, or arrays do not fit.
    """
    model = open_arrays(q, k, axes, weights=weights, v=v, outputs=outputs)
    if model.source is None:
        raise InputError("weights, or v and outputs, must be given, got neither")
    return tidy_applied(apply_model(model))


def apply_model(model: Model, progress: Progress = lambda done: None) -> Applied:
    """Tell the applied scale of every head; ``progress`` is told how many are done."""
    found = []
    if model.source is not None:
        with threadpool_limits(limits=1, user_api="blas"):
            for done, head in enumerate(model.heads(), start=1):
                found.append(apply_head(model, head, model.source))
                progress(done)
    return Applied(model.d_k, len(model.head_labels), tuple(found))


def apply_head(model: Model, head: Head, source: str) -> AppliedHead:
    """Tell the applied scale of one head."""
    mask, window, row_sum, sums, left_out = "", 0, math.nan, "", 0
    fit: Fit | None = None
    unit = 0.0
    if source == "weights":
        weighted, left_out = read_weights(model, head)
        if weighted:
            unit = unit_of(format_of([block.weights for block in weighted]))
            fit = fit_weights(weighted)
        if fit is not None:
            hidden = find_hidden(weighted, fit)
            mask, window = hidden.mask, hidden.window
            row_sum, sums = hidden.row_sum, hidden.sums
    else:
        blocks = read_outputs(model, head)
        unit = unit_of(format_of([block.outputs for block in blocks]))
        made = fit_outputs(blocks)
        fit, mask = (None, "") if made is None else made
    outcome = _outcome(fit, unit, model.d_k)
    if outcome == "no_information" and is_dead(model, head):
        outcome = "dead"
    has_key_bias = outcome == "scale" and fit is not None and fit.form == "key"
    if (
        has_key_bias
        and sums in {"less", "other"}
        and are_one(column_sums(model, head), unit)
    ):
        outcome = "over_queries"
    applied = AppliedHead(
        head, source, outcome, fit, mask, window, row_sum, sums, unit, left_out=left_out
    )
    if outcome != "scale":
        return applied
    size = model.d_k, len(model.head_labels)
    usual = _usual(applied, *size)
    ratio = 1.0 / (applied.scale * usual[0].value(*size)) if usual else math.nan
    return replace(applied, usual=usual, ratio=ratio)


def _outcome(fit: Fit | None, unit: float, d_k: int) -> str:
    """Say what a fit tells.

    No scale is told by a fit that does not hold, not even that it is 0.
    """
    if fit is None or not math.isfinite(fit.std_error):
        return "no_information"
    low, high = fit.interval
    is_small = abs(fit.scale) * fit.spread <= unit + UNIFORM
    is_zero = (is_small or low <= 0.0 <= high) and max(-low, high) <= SMALLEST / d_k
    if is_zero and fit.left <= fit.direct:
        return "uniform"
    by_rounding = math.hypot(fit.direct, fit.by_scores)
    if unit < COARSE and not fit.holds and fit.left > by_rounding:
        return "no_fit"
    is_hidden = (
        unit >= COARSE
        or not fit.holds
        or is_small  # rounding alone makes such differences, and biases what is told
        or (fit.moved > MOST_MOVED and not fit.is_fine)
    )
    if is_hidden or (fit.form != "row" and low <= 0.0 <= high):
        return "no_information"
    return "by_row" if fit.form == "row" else "scale"


def _usual(applied: AppliedHead, d_k: int, n_heads: int) -> tuple[Usual, ...]:
    within = divisors_within(*applied.named, d_k, n_heads)
    if within or applied.scale <= 0.0:
        return within
    divisor = math.log(1.0 / applied.scale)
    return (
        min(USUAL, key=lambda one: abs(math.log(one.value(d_k, n_heads)) - divisor)),
    )


def tidy_applied(applied: Applied) -> pd.DataFrame:
    """Return one row per head, with the columns `COLUMNS`."""
    rows = [describe(one) for one in applied.heads]
    return pd.DataFrame.from_records(rows, columns=list(COLUMNS))


def describe(one: AppliedHead) -> dict[str, object]:
    """Return what is said of a head, by the columns `COLUMNS`."""
    low, high = one.interval
    told = one.outcome == "scale"
    return {
        "layer": one.head.layer,
        "head": one.head.head,
        "outcome": one.outcome,
        "implied_scale": one.scale,
        "ci_low": low,
        "ci_high": high,
        "implied_divisor": 1.0 / one.scale if told else math.nan,
        "nearest": ", ".join(usual.text for usual in one.usual),
        "ratio": one.ratio,
        "source": one.source,
        "form": one.form,
        "parameter": one.fit.parameter if one.fit and one.form else math.nan,
        "mask": one.mask,
        "row_sum": one.row_sum,
        "rows_left_out": one.left_out,
        "left": one.fit.left if one.fit is not None else math.nan,
    }

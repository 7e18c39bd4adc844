"""The scale that each head applies to its scores, with its interval and outcome.

>>> import numpy as np
>>> from montecarlo.model.scales import applied_scale
>>> rng = np.random.default_rng(1)
>>> q, k = rng.normal(size=(2, 16, 64))
>>> weights = np.exp(q @ k.T / 16)
>>> weights /= weights.sum(axis=1, keepdims=True)
>>> frame = applied_scale(q, k, weights=weights, axes=("token", "d"))
>>> round(float(frame.implied_divisor[0]), 6), frame.known[0]
(16.0, '2 sqrt(d_k)')
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from montecarlo.errors import InputError
from montecarlo.estimation.intervals import POINTWISE, Interval
from montecarlo.model import fits
from montecarlo.model.arrays import (
    ADDED,
    Head,
    Model,
    Rows,
    Track,
    open_arrays,
    require_weights,
    untracked,
)
from montecarlo.model.expected import KnownDivisor, divisors_within
from montecarlo.model.masks import Mask, find_mask, passed_mask, sums_are_one

if TYPE_CHECKING:  # as long to import as all the rest
    import pandas as pd

#: Limits of a fit to a head: pairs of query and key, sequences, rows of a sequence;
#: and rows in all at least, where there are so many.
MOST_PAIRS, MOST_SEQUENCES, MOST_ROWS, FEWEST_ROWS = 2**17, 32, 64, 8
#: Pairs of a fit to outputs, which is a search over many numbers of each row: 8 rows of
#: 1,024 keys are enough, intervals of bfloat16 reach 0.3 % there, and 32 rows cost four
#: times as much.
MOST_PAIRS_OF_OUTPUTS = 2**13
#: Share of rows with equal weights up to which these are taken for padding.
MOST_EVEN = 0.5
#: ``scale``: determined.  ``uniform``: the scale is 0.  ``by_row``: rows have scales of
#: their own.  ``over_queries``: softmax over the queries.  ``dead``: queries, keys or
#: their results are all 0.  ``no_fit``: arrays do not belong together.
#: ``no_information``: rounding, or too few different weights, hide the scale.
Outcome = Literal[
    "scale", "uniform", "by_row", "over_queries", "dead", "no_fit", "no_information"
]
#: Outcomes with a factor of the scores.
DETERMINED = ("scale", "uniform", "over_queries")
#: Spread of scaled scores below which they are the same in any format.
UNIFORM = 1e-9
#: Part of 1 / d_k, the smallest usual scale, below which a scale is 0.
ZERO = 0.1
#: Rounding error from which on weights say too little of a scale.
COARSE = 2.0**-4
#: Rounding error of scores beyond which only fits are believed that show none.
MOST_MOVED = 0.5
#: Rounding error of float32, relative.
FLOAT32 = 2.0**-24
#: The interval of a scale that is not determined.
NOT_DETERMINED = Interval(math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class HeadScale:
    """The factor that a head applies to its scores, and the fit that shows it."""

    head: Head
    source: str  # ``weights`` or ``outputs``, a key of `EVIDENCE`
    outcome: Outcome
    fit: fits.Fit | None  # None where the rows hold no information
    mask: Mask
    #: Known divisors in the interval, which is widened by a rounding of the scale.
    known: tuple[KnownDivisor, ...] = ()
    left_out: int = 0  # number of rows of padding among those that were read

    @property
    def form(self) -> str:
        """The form of the fit, such as ``plain``; an empty string without one."""
        is_known = self.outcome in {"scale", "by_row"}
        return self.fit.form if is_known and self.fit is not None else ""

    @property
    def scale(self) -> float:
        """The factor that scores are multiplied by; NaN if it is not determined."""
        is_known = self.outcome in DETERMINED
        return self.fit.scale if is_known and self.fit is not None else math.nan

    @property
    def divisor(self) -> float:
        """1 / scale; NaN unless the outcome is ``scale``."""
        return 1.0 / self.scale if self.outcome == "scale" else math.nan

    @property
    def parameter(self) -> float:
        """The parameter of the form, such as the cap; NaN where it has none."""
        return self.fit.parameter if self.fit and self.form else math.nan

    @property
    def interval(self) -> Interval:
        """95 % interval of the scale; its ends are NaN if none is determined."""
        if self.fit is None or math.isnan(self.scale):
            return NOT_DETERMINED
        return self.fit.interval()

    def divisors(self, error: float = POINTWISE) -> Interval:
        """Return a confidence interval of the divisor, by default the 95 % interval.

        It misses the divisor on each side with probability ``error``.  The ends are
        infinite if the scale may be 0, and NaN if the divisor is not determined.
        """
        if self.outcome != "scale" or self.fit is None:
            return NOT_DETERMINED
        low, high = self.fit.interval(error)
        if low <= 0.0 <= high:
            return Interval(-math.inf, math.inf)
        return Interval(1.0 / high, 1.0 / low)


#: Columns of the table of heads: name -> function that returns the value for a head.
COLUMNS: dict[str, Callable[[HeadScale], object]] = {
    "layer": lambda one: one.head.layer,
    "head": lambda one: one.head.head,
    "outcome": lambda one: one.outcome,
    "implied_scale": lambda one: one.scale,
    "ci_low": lambda one: one.interval.low,
    "ci_high": lambda one: one.interval.high,
    "implied_divisor": lambda one: one.divisor,
    "known": lambda one: ", ".join(known.text for known in one.known),
    "source": lambda one: one.source,
    "form": lambda one: one.form,
    "parameter": lambda one: one.parameter,
    "mask": lambda one: one.mask.mask,
    "row_sum": lambda one: one.mask.row_sum,
    "rows_left_out": lambda one: one.left_out,
    "residual": lambda one: one.fit.residual if one.fit is not None else math.nan,
}


class ModelScales(NamedTuple):
    """The scales that the heads of a model apply."""

    d_k: int
    n_heads: int
    heads: tuple[HeadScale, ...]  # none where neither weights nor outputs were given
    most_keys: int = 0  # of the longest sequence


def applied_scale(  # noqa: PLR0913 - six arrays, and how they lie
    q: ArrayLike,
    k: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    v: ArrayLike | None = None,
    outputs: ArrayLike | None = None,
    added: ArrayLike | None = None,
    axes: Sequence[str] | None = None,
) -> "pd.DataFrame":
    """Return the scale that each head applies to its scores, with its 95 % interval.

    It is fitted to attention weights, or to outputs if there are no weights.

    Parameters
    ----------
    q : array_like of floating-point numbers
        Queries as they are multiplied with keys, after rotary embeddings; by default of
        shape (n_sequences, n_layers, n_heads, n_tokens, d_k).
    k : array_like of floating-point numbers
        Keys, after rotary embeddings, too; they may have fewer heads.
    weights : array_like, optional
        Attention weights: axes of ``q`` without ``d``, and keys last.  Those of a query
        add up to 1, to less with a sink, or to 1 on average after dropout.
    v : array_like, optional
        Values.  Values and outputs may be given instead of weights.
    outputs : array_like, optional
        Outputs of each head, before heads are joined.
    added : array_like, optional
        For values and outputs: mask and bias that were added to scaled scores before
        softmax, with the axes of weights.  -5000 or less, such as minus infinity, hides
        a key.
    axes : sequence of str, optional
        Names of the axes of q and k, v and outputs.

    Returns
    -------
    DataFrame
        One row per head: ``layer``, ``head``, ``outcome``, the ``implied_scale`` with
        ``ci_low`` and ``ci_high``, the ``implied_divisor`` and what it is ``known`` as,
        its ``source``, the ``form`` of the logits and its ``parameter``, ``mask``,
        ``row_sum``, ``rows_left_out``, and the ``residual`` of the fit.  ``outcome`` is
        ``scale`` if a divisor is determined, else the reason why it is NaN: such as
        ``uniform``, a scale of 0, or ``no_information``.

    Raises
    ------
    InputError
        If neither weights nor values and outputs are given, or arrays do not fit.
    """
    arrays = {"q": q, "k": k, "weights": weights, "v": v, "outputs": outputs}
    model = open_arrays(arrays | {"added": added}, axes)
    if model.source is None:
        raise InputError("weights, or v and outputs, must be given, got neither")
    return scales_table(find_scales(model).heads)


def find_scales(model: Model, track: Track = untracked) -> ModelScales:
    """Return the scales that all heads of a model apply; ``track`` shows progress.

    Without weights and outputs there are no scales: ``heads`` of the result is empty.
    """
    heads = track(model.heads() if model.source else [], "applied scale")
    with threadpool_limits(limits=1, user_api="blas"):
        scales = tuple(find_scale(model, head, str(model.source)) for head in heads)
    return ModelScales(model.d_k, len(model.head_labels), scales, model.most_tokens)


def find_scale(model: Model, head: Head, source: str) -> HeadScale:
    """Return the factor that a head applies to q·k, fitted to its weights or outputs.

    ``source`` is ``weights`` or ``outputs``.  If no factor is determined, ``outcome``
    of the result is the reason.
    """
    fit, mask = None, Mask()
    rows, left_out = read_unpadded_rows(model, head, source)
    rounding_error = fits.rounding_error_of([one.made[source] for one in rows])
    if rows and source == "weights":
        fit = fits.fit_weights(rows)
        mask = find_mask(rows, fit) if fit is not None else mask
    elif rows:
        fit, name = fits.fit_outputs(rows) or (None, "")
        mask = passed_mask(rows) if name == fits.GIVEN else Mask(name)
    outcome = _outcome(fit, rounding_error, model.d_k)
    if outcome == "no_information" and _is_dead(rows):
        outcome = "dead"
    if outcome == "scale" and fit and fit.form == "key" and mask.sums != "one":
        of_keys = model.take(head, 0)["weights"].sum(axis=0, dtype=float)
        outcome = "over_queries" if sums_are_one(of_keys, rounding_error) else outcome
    found = HeadScale(head, source, outcome, fit, mask, left_out=left_out)
    if outcome != "scale":
        return found
    # a model's constant may be rounded, too
    low, high = found.divisors()
    room = 2.0 * max(rounding_error, FLOAT32) * abs(low)
    known = divisors_within(low - room, high + room, *model.sizes)
    return replace(found, known=known)


def _read_some_rows(model: Model, head: Head, most: int) -> list[Rows]:
    """Return evenly spaced rows of a head, in evenly spaced sequences.

    The result has a block of rows for each of these sequences, at most
    `MOST_SEQUENCES`.  ``most`` is the largest number of pairs of query and key in all,
    but there are at least `FEWEST_ROWS` rows.
    """
    n = len(model.sequences)
    chosen = range(0, n, -(-n // MOST_SEQUENCES))
    room = most // (len(chosen) * model.most_tokens)
    n_rows = min(max(room, -(-FEWEST_ROWS // len(chosen))), MOST_ROWS)
    return [model.read_rows(head, sequence, n_rows) for sequence in chosen]


def read_unpadded_rows(model: Model, head: Head, source: str) -> tuple[list[Rows], int]:
    """Return (blocks of rows of a head without padding, number of rows of padding).

    There is a block for each sequence that has such rows.  ``source`` is ``weights`` or
    ``outputs``: padding is recognised by weights of 0, or by a mask that hides all
    keys.
    """
    if source == "weights":
        found = _read_some_rows(model, head, MOST_PAIRS)
        filled = _rows_without_padding(found, head)
    else:
        found = _read_some_rows(model, head, MOST_PAIRS_OF_OUTPUTS)
        filled = list(map(fits.see_keys, found))
    rows = [one.some(some) for one, some in zip(found, filled, strict=True)]
    left_out = int((~fits.joined(filled)).sum())
    return [one for one in rows if len(one.places)], left_out


def _rows_without_padding(found: Sequence[Rows], head: Head) -> list[NDArray[np.bool_]]:
    """Return for each block which rows are not padding, booleans of shape (n_rows,).

    In a row of padding all weights are 0; or they are all the same although scores
    differ, as if a large number hid all keys.  The latter counts if at most `MOST_EVEN`
    of the rows are such.  An `InputError` is raised for what `require_weights` refuses.
    """
    weights = [one.weights for one in found]
    require_weights(weights, head.layer, head.head)
    rounding_error = fits.rounding_error_of(weights)
    even = [are_even(one, rounding_error) for one in found]
    some = [np.any(one > 0.0, axis=1, keepdims=False) for one in weights]
    if np.concatenate(even).mean() > MOST_EVEN:
        return some
    return [rows & ~same for rows, same in zip(some, even, strict=True)]


def are_even(block: Rows, rounding_error: float) -> NDArray[np.bool_]:
    """Return which rows have the same weight for all keys although scores differ.

    Booleans of shape (n_rows,).  Keys of weight 0 do not count.  ``rounding_error`` is
    the relative difference up to which weights are the same.
    """
    seen = block.weights > 0.0
    count = seen.sum(axis=1)
    least = np.where(seen, block.weights, np.inf).min(axis=1)
    most = block.weights.max(axis=1)
    differ = np.ptp(block.scores, axis=1) > 0.0
    near = 2.0 * max(rounding_error, fits.LEAST_ROUNDING_ERROR)
    return np.asarray((count > 1) & differ & (most - least <= near * most))


def _is_dead(rows: Sequence[Rows]) -> bool:
    """Return whether one of the head's arrays, such as the keys, is 0 in all rows.

    True if there are no rows.
    """
    arrays = [{"q": one.queries, "k": one.keys} | dict(one.made) for one in rows]
    names = set().union(*arrays) - {ADDED}
    return not names or any(not any(one[n].any() for one in arrays) for n in names)


def _outcome(fit: fits.Fit | None, rounding_error: float, d_k: int) -> Outcome:
    """Return what a fit determines: a scale, or the reason why there is none.

    ``fit`` is None if rows hold no information.  ``rounding_error`` is the relative
    rounding error of weights or outputs.  A scale far below 1/``d_k`` is taken for 0.
    """
    if fit is None or not math.isfinite(fit.std_error):
        return "no_information"
    low, high = fit.interval()
    is_small = abs(fit.scale) * fit.spread <= rounding_error + UNIFORM
    is_zero = (is_small or low <= 0.0 <= high) and max(-low, high) <= ZERO / d_k
    if is_zero and fit.residual <= fit.direct:
        return "uniform"
    by_rounding = math.hypot(fit.direct, fit.by_scores)
    if rounding_error < COARSE and not fit.holds and fit.residual > by_rounding:
        return "no_fit"
    is_hidden = (
        rounding_error >= COARSE
        or not fit.holds
        or is_small  # rounding alone makes such differences, and biases the scale
        or (fit.moved > MOST_MOVED and not fit.is_fine)
    )
    if is_hidden or (fit.form != "row" and low <= 0.0 <= high):
        return "no_information"
    return "by_row" if fit.form == "row" else "scale"


def scales_table(heads: Iterable[HeadScale]) -> "pd.DataFrame":
    """Return a table with one row per head and the columns `COLUMNS`."""
    rows = [describe(one) for one in heads]
    import pandas as pd

    return pd.DataFrame.from_records(rows, columns=list(COLUMNS))


def describe(one: HeadScale) -> dict[str, object]:
    """Return the row of a head in the table of heads, by the columns `COLUMNS`.

    Such as ``{"layer": 0, "head": 3, "outcome": "scale", ...}``.
    """
    return {name: column(one) for name, column in COLUMNS.items()}

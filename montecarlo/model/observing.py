"""Quantities of each head: moments of its scores, and what its divisor makes of rows.

In: queries and keys of a `Model`.  Out: an `Observation`, and its table.  Of a head,
one sequence at a time is in memory, and sums over groups of sequences.  Standard errors
are those of the jackknife: each group is left out once.

The variance of the scores over all pairs of a query and a key is, with means μ and
covariance matrices Σ of queries and of keys,

    Var(q·k) = tr(Σq Σk) + μq' Σk μq + μk' Σq μk

The first term is d_k σq² σk², from the variances of the entries (``entries``), plus
what anisotropy adds (``anisotropy``).  Attention forms pairs of one sequence alone, and
those that the mask leaves: two further parts, ``sequence`` and ``mask``, are the
differences that this makes.

>>> import numpy as np
>>> from montecarlo.model import observe
>>> q = np.random.default_rng(1).normal(size=(2, 16, 8))
>>> observe(q, q[::-1], axes=("sequence", "token", "d")).columns[:4].tolist()
['layer', 'head', 'quantity', 'value']
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from montecarlo.attention import gradients, softmax
from montecarlo.attention.quantities import SATURATED
from montecarlo.attention.softmax import Array, RowSums
from montecarlo.errors import InputError
from montecarlo.estimation import intervals
from montecarlo.model.arrays import Head, Model, Track, open_arrays, untracked
from montecarlo.model.expected import divisor_value
from montecarlo.sampling.streams import row_positions

if TYPE_CHECKING:
    import pandas as pd

#: Most scores that are computed at once, unless one row has more.
BLOCK = 2**19
#: Most groups of sequences.
MOST_GROUPS = 64
#: Most rows of a sequence whose softmax is computed; they are chosen at random, at even
#: distances.
MOST_ROWS = 256
#: With fewer sequences there are no intervals.
FEWEST = 5
#: Parts of the variance of the scores, in the order in which they are shown.
PARTS = ("entries", "anisotropy", "mean_q", "mean_k", "sequence", "mask")
#: Arrays by name whose first axis is that of groups of sequences: a sum over each
#: group, or a value of all sequences and then of those without each group.
Grouped = dict[str, Array]
#: How far the score of a hidden key lies below the largest: exp(-HIDDEN) is 0, and so
#: is its product with HIDDEN.
HIDDEN = 1e300
#: Effective keys as a part of the keys that a row sees.
SHARE = "effective_share"
#: Name of the number of rows whose softmax was computed.
SOFTMAX_ROWS = "softmax_rows"
#: From sums over the keys of rows to a value for each row.
ROW_FUNCTIONS: Mapping[str, Callable[[RowSums], NDArray[Any]]] = {
    "score_max": lambda sums: sums.largest,
    "weight_max": softmax.weight_max,
    "saturated_rows": lambda sums: softmax.weight_max(sums) >= SATURATED["saturated"],
    "entropy": softmax.entropy,
    "effective_keys": softmax.effective_keys,
    "inverse_participation": softmax.inverse_participation,
    "jacobian_trace": gradients.jacobian_trace,
    "jacobian_frobenius": gradients.jacobian_frobenius,
}


class HeadSums(NamedTuple):
    """Sums over the tokens and scores of one head, for each group of sequences.

    Attributes
    ----------
    centres : tuple of ndarray, shape (d_k,)
        The first query and the first key, which are subtracted before summing.
    groups : dict of ndarray, shape (n_groups, ...)
        ``count_q``, ``first_q`` and ``second_q`` are the number of queries, their sum,
        and the sum of their outer products; ``count_k`` and so on those of keys.  Other
        sums are those of `_pair_sums` and `_row_sums`.
    """

    centres: tuple[Array, Array]
    groups: Grouped


def sum_head(model: Model, head: Head, divisor: float) -> HeadSums:
    """Return sums over queries, keys, scores and attention rows, by group of sequences.

    There are at most `MOST_GROUPS` groups.  ``divisor`` is the number that scores are
    divided by before softmax.  An `InputError` is raised if squares of scores are too
    large for float64.
    """
    n = len(model.sequences)
    n_groups = min(n, MOST_GROUPS)
    first_q, first_k = (entries[0] for entries in model.read(head, 0))
    totals: list[defaultdict[str, Any]] = [defaultdict(float) for _ in range(n_groups)]
    for sequence in range(n):
        q, k = model.read(head, sequence)
        total = totals[sequence * n_groups // n]  # neighbours are one group
        with np.errstate(over="ignore", invalid="ignore"):  # checked below
            for side, entries in (("q", q - first_q), ("k", k - first_k)):
                total[f"count_{side}"] += len(entries)
                total[f"first_{side}"] += entries.sum(axis=0)
                total[f"second_{side}"] += entries.T @ entries
            for start, scores in _blocks_of_scores(q, k):
                shifted = scores - float(first_q @ first_k)
                for name, value in _block_sums(shifted, start, causal=model.causal):
                    total[name] += value
        rows = row_positions(head, sequence, len(q), MOST_ROWS)
        seen = rows + 1 if model.causal else np.full(len(rows), len(k))
        if not np.isfinite(total["s2"] + total.get("all_s2", 0.0)):
            raise InputError(
                "q and k must have scores whose squares float64 can hold, got larger "
                f"ones in layer {head.layer}, head {head.head}"
            )
        for start, scores in _blocks_of_scores(q[rows], k):
            some = seen[start : start + len(scores)]
            for name, value in _row_sums(scores, some, divisor):
                total[name] += value
    names = dict.fromkeys(name for total in totals for name in total)
    groups = {name: np.array([total[name] for total in totals]) for name in names}
    return HeadSums((first_q, first_k), groups)


def _blocks_of_scores(q: Array, k: Array) -> Iterator[tuple[int, Array]]:
    """Yield (number of the first row, scores) for blocks of rows of a sequence.

    ``q`` and ``k`` have the shape (n_tokens, d_k), and scores (n_rows of the block,
    n_keys).
    """
    step = max(1, BLOCK // len(k))
    for start in range(0, len(q), step):
        yield start, q[start : start + step] @ k.T


def _block_sums(
    scores: Array, start: int, *, causal: bool
) -> Iterator[tuple[str, Any]]:
    """Yield (name, sum) over the pairs of query and key in a block of rows.

    The sums are those of `_pair_sums`, over the pairs that attention forms.  If
    attention is causal, there are further sums over all pairs, whose names begin with
    ``all_``.  ``scores`` are those of the block, and ``start`` is the number of its
    first row.
    """
    seen = np.full(len(scores), scores.shape[1])
    if causal:
        yield from _pair_sums("all_", scores, seen)
        seen = start + 1 + np.arange(len(scores))
    yield from _pair_sums("", scores, seen)


def _pair_sums(
    prefix: str, scores: Array, seen: NDArray[np.intp]
) -> Iterator[tuple[str, Any]]:
    """Yield (name, sum) over pairs of a query with the keys that it sees.

    ``seen`` is how many of the first keys each row sees.  Names begin with ``prefix``:

    ========================= ==========================================================
    ``count``                 number of pairs
    ``s``, ``s2``             sum of the scores, and of their squares
    ``within``                sum of squared differences from the mean of the row
    ``rows``                  number of rows that see several keys
    ``row_variance``          sum of the variances of these rows, denominator n - 1
    ========================= ==========================================================
    """
    visible = np.arange(scores.shape[1]) < seen[:, np.newaxis]
    kept = np.where(visible, scores, 0.0)
    away = np.where(visible, scores - (kept.sum(axis=1) / seen)[:, np.newaxis], 0.0)
    within = np.square(away).sum(axis=1)
    several = seen > 1
    yield f"{prefix}count", seen.sum()
    yield f"{prefix}s", kept.sum()
    yield f"{prefix}s2", np.square(kept).sum()
    yield f"{prefix}within", within.sum()
    yield f"{prefix}rows", several.sum()
    yield f"{prefix}row_variance", (within[several] / (seen[several] - 1)).sum()


def _row_sums(
    scores: Array, seen: NDArray[np.intp], divisor: float
) -> Iterator[tuple[str, Any]]:
    """Yield (name, sum over rows) for each of `ROW_FUNCTIONS`, and two further sums.

    These are `SOFTMAX_ROWS`, the number of rows, and `SHARE`, the sum of effective keys
    / keys seen.  Rows that see a single key, whose weight is 1, are left out.
    ``scores`` are undivided, shape (n_rows, n_keys), and ``seen`` is how many of the
    first keys each row sees.
    """
    scores, seen = scores[seen > 1], seen[seen > 1]
    hidden = np.arange(scores.shape[-1]) >= seen[:, np.newaxis]
    yield SOFTMAX_ROWS, len(seen)
    if len(seen):
        gaps = softmax.measure_gaps(np.where(hidden, -HIDDEN, scores))
        sums = softmax.softmax_rows(gaps, divisor).sums
        for name, function in ROW_FUNCTIONS.items():
            yield name, function(sums).sum()
        yield SHARE, (softmax.effective_keys(sums) / seen).sum()


class HeadEstimate(NamedTuple):
    """An estimate of a quantity of a head, or of a mean over heads."""

    value: float  # of the tokens that were read
    #: The value without its first-order bias, and its standard error, both by the
    #: jackknife over groups of sequences; NaN with fewer than five.
    centre: float
    std_error: float
    n_groups: int

    def interval(self, error_rate: float) -> intervals.Interval:
        """Return Student's confidence interval, with one-sided ``error_rate``.

        Its ends are NaN with fewer than five groups.
        """
        half = intervals.t_quantile(error_rate, self.n_groups) * self.std_error
        return intervals.Interval(self.centre - half, self.centre + half)


def head_quantities(sums: HeadSums, divisor: float) -> Grouped:
    """Return the quantities of a head by name, as `jackknife` needs them.

    ``divisor`` is the number that scores are divided by.

    Returns
    -------
    dict of ndarray, shape (1 + n_groups,)
        First the value over all sequences, then for each group of sequences the value
        without this group.  With fewer than five groups, only the first.
    """
    groups = {name: _leave_groups_out(values) for name, values in sums.groups.items()}
    found = _entry_moments(sums.centres, groups)
    found |= _score_moments(groups, found, float(sums.centres[0] @ sums.centres[1]))
    found["unit_divisor"] = np.sqrt(found["score_row_variance"])
    found["scaled_row_variance"] = found["score_row_variance"] / divisor**2
    with np.errstate(invalid="ignore"):
        for name in (*ROW_FUNCTIONS, SHARE):
            found[name] = groups.get(name, np.nan) / groups[SOFTMAX_ROWS]
    return found


def _leave_groups_out(values: Array) -> Array:
    """Return the sum over all groups, then for each group the sum without this group.

    ``values`` has the shape (n_groups, ...), and the result (1 + n_groups, ...).  With
    fewer than five groups, only the sum over all: shape (1, ...).
    """
    total: Array = values.sum(axis=0, keepdims=True)
    if len(values) < FEWEST:
        return total
    # not the total minus a group: beside a large group the rest would be lost
    before = np.concatenate([np.zeros_like(total), values[:-1].cumsum(axis=0)])
    after = np.concatenate([values[:0:-1].cumsum(axis=0)[::-1], np.zeros_like(total)])
    return np.concatenate([total, before + after])


def _entry_moments(centres: Sequence[Array], groups: Grouped) -> Grouped:
    """Return variances of entries, effective dimensions, and four parts of Var(q·k).

    These are the first four of `PARTS`, which follow from moments of queries and keys.
    ``centres`` are as in `HeadSums`.  ``groups`` has the sums of `_leave_groups_out`,
    by name.
    """
    d_k = len(centres[0])
    means, covariances = [], []
    for side, centre in zip("qk", centres, strict=True):
        count = groups[f"count_{side}"][:, np.newaxis]
        mean = groups[f"first_{side}"] / count
        outer = mean[:, :, np.newaxis] * mean[:, np.newaxis, :]
        covariances.append(groups[f"second_{side}"] / count[:, :, np.newaxis] - outer)
        means.append(mean + centre)
    (mean_q, mean_k), (cov_q, cov_k) = means, covariances
    var_q, var_k = (np.einsum("gii->g", c) / d_k for c in covariances)
    found = {"entry_variance_q": var_q, "entry_variance_k": var_k}
    for name, variance, covariance in (("q", var_q, cov_q), ("k", var_k, cov_k)):
        squared = np.einsum("gij,gij->g", covariance, covariance)
        found[f"effective_dimension_{name}"] = (d_k * variance) ** 2 / squared
    entries = d_k * var_q * var_k
    return found | {
        "part_entries": entries,
        "part_anisotropy": np.einsum("gij,gij->g", cov_q, cov_k) - entries,
        "part_mean_q": np.einsum("gi,gij,gj->g", mean_q, cov_k, mean_q),
        "part_mean_k": np.einsum("gi,gij,gj->g", mean_k, cov_q, mean_k),
    }


def _score_moments(groups: Grouped, found: Grouped, shift: float) -> Grouped:
    """Return mean and variances of the scores, and the last two parts of Var(q·k).

    ``found`` are the quantities of `_entry_moments`.  ``shift`` is the product of the
    two centres, which was subtracted from all scores.
    """

    def moments(prefix: str) -> tuple[Array, Array]:
        """Return (mean, variance) of the scores, less ``shift``, over some pairs.

        With the prefix "", over the pairs that attention forms; with ``all_``, over all
        pairs.  Both have the shape (1 + n_groups,).
        """
        mean = groups[f"{prefix}s"] / groups[f"{prefix}count"]
        return mean, groups[f"{prefix}s2"] / groups[f"{prefix}count"] - mean**2

    mean, variance = moments("")
    _, unmasked = moments("all_" if "all_s" in groups else "")
    any_pair = sum(found[f"part_{name}"] for name in PARTS[:4])
    return {
        "score_mean": mean + shift,
        "score_variance": variance,
        "score_variance_ratio": variance / found["part_entries"],
        "score_row_variance": groups["row_variance"] / groups["rows"],
        "score_invisible_variance": variance - groups["within"] / groups["count"],
        "part_sequence": unmasked - any_pair,
        "part_mask": variance - unmasked,
    }


def jackknife(stack: Array) -> HeadEstimate:
    """Return the estimate of a quantity, with a standard error by the jackknife.

    ``stack`` is from `head_quantities`: the value over all sequences, then for each
    group of sequences the value without this group.  With the first alone, ``centre``
    and ``std_error`` are NaN, and ``n_groups`` is 1.
    """
    value, groups = float(stack[0]), len(stack) - 1
    if groups < FEWEST:
        return HeadEstimate(value, math.nan, math.nan, max(groups, 1))
    moments = intervals.leave_one_out_moments(stack[0], stack[1:])
    return HeadEstimate(value, float(moments.value), float(moments.std_error), groups)


COLUMNS = (
    *("layer", "head", "quantity", "value"),
    *("std_error", "ci_low", "ci_high", "n_sequences"),
)
#: Layer and head of rows that are means over all heads.
ALL = "all"
#: What the divisor makes of rows, by how concentrated their weights are; ``peaked``
#: lies between balanced and saturated.
STATES = ("saturated", "peaked", "balanced", "flat")
#: `SHARE` from which on a head is balanced, unless its largest weight is above the next
#: number; and from which on it is flat.
BALANCED, BALANCED_WEIGHT, FLAT = 0.25, 0.5, 0.9
#: Smallest variance whose logarithm is taken.
LEAST = 1e-9


class ObservedHead(NamedTuple):
    """Estimates of the quantities of a head, and its state."""

    head: Head
    estimates: dict[str, HeadEstimate]  # quantities by name
    state: str  # one of `STATES`

    @property
    def shares(self) -> dict[str, float]:
        """Share of each of `PARTS` in the variance of the scores, by name.

        The sum is 1.  A share may be below 0 or above 1.
        """
        variance = self.estimates["score_variance"].value
        return {name: self.estimates[f"part_{name}"].value / variance for name in PARTS}


class Observation(NamedTuple):
    """Estimates of the quantities of all heads of a model."""

    model: Model
    divisor: float  # that scores are divided by
    heads: tuple[ObservedHead, ...]
    overall: dict[str, HeadEstimate]  # means over heads

    @property
    def dead(self) -> list[Head]:
        """Heads without estimates, as their queries, keys or scores do not vary."""
        seen = {one.head for one in self.heads}
        return [head for head in self.model.heads() if head not in seen]


def observe(
    q: ArrayLike,
    k: ArrayLike,
    *,
    axes: Sequence[str] | None = None,
    causal: bool = False,
    divisor: str | float = "sqrt",
) -> "pd.DataFrame":
    """Return quantities of the scores and weights of each head, from queries and keys.

    Parameters
    ----------
    q : array_like of floating-point numbers
        Queries, by default of shape (n_sequences, n_layers, n_heads, n_tokens, d_k).
    k : array_like of floating-point numbers
        Keys, with the same axes.  They may have fewer heads, each for several heads of
        queries (grouped-query attention).
    axes : sequence of str, optional
        Names of the axes of both, among ``sequence``, ``layer``, ``head``, ``token``
        and ``d``; the last two are required.
    causal : bool
        Whether a query sees only keys up to its own position.
    divisor : str or float
        What the model divides scores by: a name, such as ``sqrt``, or a number.

    Returns
    -------
    DataFrame
        A row per head and quantity.  Rows whose layer and head are ``all`` are means
        over heads.  Columns are ``layer``, ``head``, ``quantity``, ``value``,
        ``std_error``, ``ci_low``, ``ci_high`` and ``n_sequences``.  Standard errors and
        95 % intervals are by the jackknife over sequences; they are NaN with fewer than
        five.

    Notes
    -----
    Quantities of the weights, such as ``entropy``, are means over rows after division
    by ``divisor``.  At most 256 rows of a sequence are used for them.  Rows that see a
    single key are left out, and so are heads whose queries, keys or scores are equal
    for all tokens.

    Raises
    ------
    InputError
        If the arrays do not fit each other, hold something that is not finite or vary
        in no head, or an option is not usable.
    """
    model = open_arrays({"q": q, "k": k}, axes, causal=causal)
    return observation_table(observe_model(model, divisor_value(divisor, model.d_k)))


def observe_model(
    model: Model, divisor: float, track: Track = untracked
) -> Observation:
    """Return estimates for all heads whose queries and keys vary between tokens.

    ``divisor`` is the number that scores are divided by, and ``track`` shows how many
    heads are done.  An `InputError` is raised if no head varies.
    """
    heads = []
    total: Grouped = {}
    with threadpool_limits(limits=1, user_api="blas"):
        for head in track(model.heads(), "observing"):
            sums = sum_head(model, head, divisor)
            names = ("second_q", "second_k", "within")
            if not all(sums.groups[name].any() for name in names):
                continue
            found = head_quantities(sums, divisor)
            for name, stack in found.items():
                total[name] = total.get(name, 0.0) + stack
            estimates = {name: jackknife(stack) for name, stack in found.items()}
            heads.append(ObservedHead(head, estimates, head_state(estimates)))
    if not heads:
        raise InputError(
            "q, k and their scores must vary from token to token, got zero variance in "
            "every head"
        )
    overall = {name: jackknife(stack / len(heads)) for name, stack in total.items()}
    return Observation(model, divisor, tuple(heads), overall)


def head_state(estimates: Mapping[str, HeadEstimate]) -> str:
    """Return the state of a head, one of `STATES`: how concentrated its weights are.

    ``estimates`` are those of its quantities by name.  A head is ``saturated`` if half
    of its rows are.  If not, it is ``flat`` if the share of keys that are effective is
    at least `FLAT`.  If not, it is ``balanced`` if this share is at least `BALANCED`,
    and the mean largest weight at most `BALANCED_WEIGHT`.  Else it is ``peaked``.
    """
    share, largest = estimates[SHARE].value, estimates["weight_max"].value
    if estimates["saturated_rows"].value >= 0.5:
        return "saturated"
    if share >= FLAT:
        return "flat"
    if share >= BALANCED and largest <= BALANCED_WEIGHT:
        return "balanced"
    return "peaked"


def observation_table(observation: Observation) -> "pd.DataFrame":
    """Return a table with a row per head and quantity, and the columns `COLUMNS`.

    The first rows, with layer and head `ALL`, are means over heads.
    """
    heads = {one.head: one.estimates for one in observation.heads}
    count = len(observation.model.sequences)
    rate = intervals.POINTWISE
    rows = [
        (*place, name, one.value, one.std_error, *one.interval(rate), count)
        for place, found in [((ALL, ALL), observation.overall), *heads.items()]
        for name, one in found.items()
    ]
    import pandas as pd

    return pd.DataFrame.from_records(rows, columns=list(COLUMNS))

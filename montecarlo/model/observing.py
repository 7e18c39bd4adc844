"""A model observed: every head's quantities, what its divisor does, and what fails.

What stays in memory of a head is one sequence, a block of scores, and the sums, by
group of sequences; standard errors come from leaving each group out.

The variance of the scores over all pairs of any query with any key is an identity:

    Var(q·k) = tr(Σq Σk) + μq' Σk μq + μk' Σq μk

The first term is what the entries' variances alone make, d_k σq² σk², plus what
anisotropy adds.  Pairs that attention forms are of one sequence, and seen: what that
changes are two further parts, ``sequence`` and ``mask``.

What is said of a head rests on that head alone.

>>> import numpy as np
>>> from montecarlo.model import observe
>>> q = np.random.default_rng(1).normal(size=(2, 16, 8))
>>> observe(q, q[::-1], axes=("sequence", "token", "d")).columns[:4].tolist()
['layer', 'head', 'quantity', 'value']
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from montecarlo.attention import gradients, softmax
from montecarlo.attention.quantities import SATURATED
from montecarlo.attention.softmax import Array, RowSums
from montecarlo.errors import InputError
from montecarlo.estimation.intervals import (
    POINTWISE,
    Interval,
    leave_one_out_moments,
    t_quantile,
)
from montecarlo.model.arrays import Head, Model, Track, open_arrays, untracked
from montecarlo.model.expected import divisor_value
from montecarlo.sampling.streams import row_positions

if TYPE_CHECKING:
    import pandas as pd

#: Scores that are held at once, unless one row has more.
BLOCK = 2**19
#: Groups of sequences at most: differences between them make the standard errors.
MOST_GROUPS = 64
#: Rows of a sequence that go through softmax at most, drawn at even distances.
MOST_ROWS = 256
#: Sums over pairs: numbers of them, the centred score, its square, what rows vary by.
PAIR_SUMS = ("count", "s", "s2", "within")
#: With fewer sequences there is no interval.
FEWEST = 5
#: Parts of the variance of the scores, in the order in which they are shown.
PARTS = ("entries", "anisotropy", "mean_q", "mean_k", "sequence", "mask")
#: What each failing assumption alone multiplies the variance of a score by.
FACTORS = ("entries", "anisotropy", "mean_q", "mean_k", "correlation", "sequence")
Stacks = dict[str, Array]
#: What a hidden key's score lies below the largest: its exponential is 0, and so is
#: its product with it.
HIDDEN = 1e300


#: A part of the keys that a row sees.
SHARE = "effective_share"
#: From sums over rows to a value of each row.
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


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over queries, or over keys; the first axis is the group of sequences."""

    centre: Array  # shape (d_k,), which is subtracted from entries before
    count: Array  # shape (n_groups,)
    first: Array  # shape (n_groups, d_k)
    second: Array  # shape (n_groups, d_k, d_k)


@dataclass(frozen=True, slots=True)
class HeadSums:
    """Sums of one head; the first axis of each is the group of sequences."""

    d_k: int
    q: Moments
    k: Moments
    #: Shape (n_groups,): `PAIR_SUMS` over pairs that attention forms; ``all_…``: over
    #: all pairs of a sequence; ``row_variance`` and ``rows``; of sequences with as many
    #: queries as keys, ``diagonal`` and ``diagonals``, ``rest`` and ``rests``.
    pairs: defaultdict[str, Array]
    #: Shape (n_groups, 2): sum, and number of rows, of each of `ROW_FUNCTIONS`.
    rows: dict[str, Array]


def sum_head(model: Model, head: Head, divisor: float) -> HeadSums:
    """Read a head's queries and keys and sum what its quantities are made of."""
    n = len(model.sequences)
    groups, d_k = min(n, MOST_GROUPS), model.d_k
    shapes = (groups,), (groups, d_k), (groups, d_k, d_k)
    of_q, of_k = (
        Moments(first.mean(axis=0), *(np.zeros(shape) for shape in shapes))
        for first in model.read(head, 0)
    )
    sums = HeadSums(
        d_k,
        of_q,
        of_k,
        pairs=defaultdict(lambda: np.zeros(groups)),
        rows={name: np.zeros((groups, 2)) for name in (*ROW_FUNCTIONS, SHARE)},
    )
    for sequence in range(n):
        q, k = model.read(head, sequence)
        group = sequence * groups // n  # neighbours
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below
            _add_moments(q, sums.q, group)
            _add_moments(k, sums.k, group)
            _sum_pairs(q, k, sums, group, causal=model.causal)
        if not np.isfinite(sums.pairs["all_s2"][group]):
            raise InputError(
                "q and k must have scores whose squares float64 can hold, got larger "
                f"ones in layer {head.layer}, head {head.head}"
            )
        rows = row_positions(head, sequence, len(q), MOST_ROWS)
        seen = rows + 1 if model.causal else np.full(len(rows), len(k))
        step = max(1, BLOCK // len(k))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            found = _sum_rows(q[rows[part]] @ k.T, seen[part], divisor)
            for name, added in found.items():
                sums.rows[name][group] += added
    _require_scores(head, sums)
    return sums


def _require_scores(head: Head, sums: HeadSums) -> None:
    """Refuse a head whose queries meet no key: its shares of nothing mean nothing."""
    for prefix in ("", "all_"):
        count, first, second = (
            sums.pairs[prefix + name].sum() for name in ("count", "s", "s2")
        )
        if not second > first**2 / count:
            raise InputError(
                f"q and k must have scores that vary, got the same for every pair in "
                f"layer {head.layer}, head {head.head}"
            )


def _add_moments(entries: Array, moments: Moments, group: int) -> None:
    """Add the moments of entries of a sequence."""
    moved = entries - moments.centre
    moments.count[group] += len(moved)
    moments.first[group] += moved.sum(axis=0)
    moments.second[group] += moved.T @ moved


def _sum_pairs(q: Array, k: Array, sums: HeadSums, group: int, *, causal: bool) -> None:
    """Add the scores of a sequence, a block of rows at a time."""
    shift = float(sums.q.centre @ sums.k.centre)
    step = max(1, BLOCK // len(k))
    for start in range(0, len(q), step):
        scores = q[start : start + step] @ k.T - shift
        seen = np.full(len(scores), len(k))
        variance = _add_pairs(scores, seen, sums.pairs, "all_", group)
        if causal:
            seen = start + 1 + np.arange(len(scores))
            variance = _add_pairs(scores, seen, sums.pairs, "", group)
        sums.pairs["row_variance"][group] += variance[seen > 1].sum()
        sums.pairs["rows"][group] += (seen > 1).sum()
        if len(q) == len(k):
            own = scores.diagonal(start).sum()
            visible = np.arange(len(k)) < seen[:, np.newaxis]
            sums.pairs["diagonal"][group] += own
            sums.pairs["diagonals"][group] += len(scores)
            sums.pairs["rest"][group] += (scores * visible).sum() - own
            sums.pairs["rests"][group] += seen.sum() - len(scores)
    if not causal:
        for name in PAIR_SUMS:
            sums.pairs[name][group] = sums.pairs[f"all_{name}"][group]


def _add_pairs(
    scores: Array,
    seen: NDArray[np.intp],
    pairs: dict[str, Array],
    prefix: str,
    group: int,
) -> Array:
    """Add the pairs that rows see; returns each row's variance, n - 1 below."""
    visible = np.arange(scores.shape[1]) < seen[:, np.newaxis]
    kept = scores if visible.all() else scores * visible
    away = scores - (kept.sum(axis=1) / seen)[:, np.newaxis]
    within = (np.square(away) * visible).sum(axis=1)
    terms = seen, kept, kept * kept, within
    for name, term in zip(PAIR_SUMS, terms, strict=True):
        pairs[prefix + name][group] += term.sum()
    variance: Array = within / np.maximum(seen - 1, 1)
    return variance


def _sum_rows(
    scores: Array, seen: NDArray[np.intp], divisor: float
) -> dict[str, tuple[float, int]]:
    """Return sum and number of rows for each of `ROW_FUNCTIONS`.

    A row that sees a single key, as the first causal one does, does not count: it has
    nothing to choose.  ``seen`` are how many of the first keys each row sees; hidden
    keys get scores far below those seen.
    """
    scores, seen = scores[seen > 1], seen[seen > 1]
    if not len(seen):
        return {}
    hidden = np.arange(scores.shape[-1]) >= seen[:, np.newaxis]
    gaps = softmax.measure_gaps(np.where(hidden, -HIDDEN, scores))
    sums = softmax.softmax_rows(gaps, divisor).sums
    found = {name: function(sums) for name, function in ROW_FUNCTIONS.items()}
    found[SHARE] = found["effective_keys"] / seen
    return {name: (float(one.sum()), len(seen)) for name, one in found.items()}


class HeadEstimate(NamedTuple):
    """A quantity of a head."""

    value: float  # of the tokens at hand; of softmax, of the rows that were drawn
    #: The value without its first-order bias, and its standard error, by leaving one
    #: group of sequences out; NaN with fewer than five.
    centre: float
    std_error: float
    n_groups: int  # of sequences

    def interval(self, error_rate: float) -> Interval:
        """Return Student's interval over sequences, missing so often on each side."""
        half = t_quantile(error_rate, self.n_groups) * self.std_error
        return Interval(self.centre - half, self.centre + half)


def quantities(sums: HeadSums, divisor: float) -> Stacks:
    """Evaluate every quantity of a head, with all sequences and with some left out.

    Returns
    -------
    dict of ndarray, shape (1 + n_groups,)
        First with all sequences, then without each group; only the first where there
        are fewer than five.
    """
    found = _moments(sums)
    found |= _scores(sums, found)
    found |= _factors(sums.d_k, found)
    if len(sums.q.count) == 1:  # of one sequence nothing can be seen of others
        del found["factor_sequence"]
    found["unit_divisor"] = np.sqrt(found["score_row_variance"])
    found["scaled_row_variance"] = found["score_row_variance"] / divisor**2
    for name, pair in sums.rows.items():
        stack = _stack(pair)
        with np.errstate(invalid="ignore"):
            found[name] = stack[:, 0] / stack[:, 1]
    return found


def _stack(values: Array) -> Array:
    """Return the sum over groups, then the sums without each of them."""
    total: Array = values.sum(axis=0, keepdims=True)
    if len(values) < FEWEST:
        return total
    # not the total less a group: what is left would be lost beside a large one
    before = np.concatenate([np.zeros_like(total), values[:-1].cumsum(axis=0)])
    after = np.concatenate([values[:0:-1].cumsum(axis=0)[::-1], np.zeros_like(total)])
    return np.concatenate([total, before + after])


def _moments(sums: HeadSums) -> Stacks:
    """Return what the identity is made of: moments of any query and any key."""
    d_k = sums.d_k
    means, covariances = [], []
    for one in (sums.q, sums.k):
        count = _stack(one.count)[:, np.newaxis]
        moved = _stack(one.first) / count
        outer = moved[:, :, np.newaxis] * moved[:, np.newaxis, :]
        covariances.append(_stack(one.second) / count[:, :, np.newaxis] - outer)
        means.append(moved + one.centre)
    (mean_q, mean_k), (cov_q, cov_k) = means, covariances
    var_q, var_k = (np.einsum("gii->g", c) / d_k for c in covariances)
    found = {
        "entry_variance_q": var_q,
        "entry_variance_k": var_k,
        "mean_norm_q": np.linalg.norm(mean_q, axis=1),
        "mean_norm_k": np.linalg.norm(mean_k, axis=1),
    }
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


def _scores(sums: HeadSums, moments: Mapping[str, Array]) -> Stacks:
    """Return what is seen of the scores: their moments, and where they come from."""
    shift = float(sums.q.centre @ sums.k.centre)
    pairs = {name: _stack(values) for name, values in sums.pairs.items()}
    count = pairs["count"]
    mean = pairs["s"] / count
    variance = pairs["s2"] / count - mean**2
    everywhere = pairs["all_s"] / pairs["all_count"]
    unmasked = pairs["all_s2"] / pairs["all_count"] - everywhere**2
    any_pair = sum(moments[f"part_{name}"] for name in PARTS[:4])
    found = {
        "score_mean": mean + shift,
        "score_variance": variance,
        "score_std": np.sqrt(variance),
        "score_variance_ratio": variance / moments["part_entries"],
        "score_row_variance": pairs["row_variance"] / pairs["rows"],
        "score_invisible_variance": variance - pairs["within"] / count,
        "part_sequence": unmasked - any_pair,
        "part_mask": variance - unmasked,
    }
    if sums.pairs["diagonals"].any():
        with np.errstate(invalid="ignore"):  # without the only one that has some
            own = pairs["diagonal"] / pairs["diagonals"]
            rest = pairs["rest"] / pairs["rests"]
        found["diagonal_mean"] = own + shift
        found["diagonal_excess"] = own - rest
        found["correlation"] = (own - rest) / np.sqrt(
            sums.d_k * moments["part_entries"]
        )
    return found


def _factors(d_k: int, found: Mapping[str, Array]) -> Stacks:
    """Return what each assumption, if it alone failed, would multiply the variance by.

    All but that of the entries are relative to what the entries' variances make.
    """
    entries = found["part_entries"]
    factors = {"factor_entries": entries / d_k}
    for name in ("anisotropy", "mean_q", "mean_k", "sequence"):
        factors[f"factor_{name}"] = 1.0 + found[f"part_{name}"] / entries
    if "correlation" in found:
        factors["factor_correlation"] = 1.0 + found["correlation"] ** 2
    return factors


def estimate(stack: Array) -> HeadEstimate:
    """Turn a stack of `quantities` into an estimate, by the jackknife over groups."""
    value, groups = float(stack[0]), len(stack) - 1
    if groups < FEWEST:
        return HeadEstimate(value, math.nan, math.nan, max(groups, 1))
    moments = leave_one_out_moments(stack[0], stack[1:])
    return HeadEstimate(value, float(moments.value), float(moments.std_error), groups)


COLUMNS = (
    *("layer", "head", "quantity", "value"),
    *("std_error", "ci_low", "ci_high", "n_sequences"),
)
#: What stands for layer and head where a row is the mean over all heads.
ALL = "all"
#: What the divisor does, from the most concentrated rows on; ``peaked`` lies between
#: balanced and one-hot.
STATES = ("saturated", "peaked", "balanced", "flat")
#: Effective keys, as a part of those seen: from the one on a head is balanced, if the
#: largest weight is not beyond the next, and from the last on flat.
BALANCED, BALANCED_WEIGHT, FLAT = 0.25, 0.5, 0.9
#: A factor of the variance that is so far from 1 is off.
TOLERANCE = 0.05
#: What a factor is counted as at least: its logarithm says how far off it is.
LEAST = 1e-9


class Assumption(NamedTuple):
    """An assumption of the texts on one head."""

    name: str  # one of `FACTORS`
    factor: HeadEstimate  # what it alone would multiply the variance of a score by
    verdict: str  # of `judge_factor`

    @property
    def size(self) -> float:
        """How far off the factor is, up and down alike."""
        return abs(math.log(max(self.factor.value, LEAST)))


class ObservedHead(NamedTuple):
    """One head."""

    head: Head
    found: dict[str, HeadEstimate]  # quantities by name
    state: str  # one of `STATES`: what the model's divisor does
    assumptions: tuple[Assumption, ...]  # of the texts, the one farthest off first

    @property
    def failing(self) -> tuple[Assumption, ...]:
        """Assumptions that fail; with too few sequences, on the tokens at hand."""
        return tuple(f for f in self.assumptions if f.verdict == "refuted")


class Observation(NamedTuple):
    """A model observed."""

    model: Model
    divisor: float  # the model's
    heads: tuple[ObservedHead, ...]
    overall: dict[str, HeadEstimate]  # quantities averaged over heads

    @property
    def dead(self) -> list[Head]:
        """Heads that are left out."""
        seen = {view.head for view in self.heads}
        return [head for head in self.model.heads() if head not in seen]

    @property
    def n_sequences(self) -> int:
        """Sequences, which intervals are made over."""
        return len(self.model.sequences)


def observe(
    q: ArrayLike,
    k: ArrayLike,
    *,
    axes: Sequence[str] | None = None,
    causal: bool = False,
    divisor: str | float = "sqrt",
) -> "pd.DataFrame":
    """Observe queries and keys in hand.

    Parameters
    ----------
    q : array_like of floating-point numbers
        Queries, by default of shape (n_sequences, n_layers, n_heads, n_tokens, d_k).
    k : array_like of floating-point numbers
        Keys, likewise; they may have fewer heads, which then serve several heads of
        queries each.
    axes : sequence of str, optional
        Names of their axes, among ``sequence``, ``layer``, ``head``, ``token``, ``d``;
        the last two have to be there.
    causal : bool
        Whether a query sees only keys up to its own position.
    divisor : str or float
        What the model divides scores by: a name, such as ``sqrt``, or a number.

    Returns
    -------
    DataFrame
        One row per head and quantity, and for ``all`` heads their mean.  Standard
        errors and 95 % intervals are over sequences, NaN with fewer than five.

    Notes
    -----
    What softmax makes of a row, such as ``entropy``, is a mean over rows under
    ``divisor``.  Rows that see a single key, as the first causal one does, are left
    out: they have nothing to choose; so are dead heads, whose queries or keys are the
    same for every token.  Of long sequences some rows are drawn.

    Raises
    ------
    InputError
        If the arrays do not fit each other, hold something that is not finite or vary
        in no head, or an option is not usable.
    """
    model = open_arrays({"q": q, "k": k}, axes, causal=causal)
    return tidy(observe_model(model, divisor_value(divisor, model.d_k)))


def observe_model(
    model: Model, divisor: float, track: Track = untracked
) -> Observation:
    """Observe every head of a model but dead ones.

    These are heads whose queries or keys are the same for every token.  ``track`` shows
    how many heads are done.
    """
    views = []
    varied = np.zeros(2, dtype=bool)
    total: Stacks = {}
    with threadpool_limits(limits=1, user_api="blas"):
        for head in track(model.heads(), "observing"):
            varies = _vary(model, head)
            varied |= varies
            if varies.all():
                sums = sum_head(model, head, divisor)
                found = quantities(sums, divisor)
                for name, stack in found.items():
                    total[name] = total.get(name, 0.0) + stack
                estimates = {name: estimate(stack) for name, stack in found.items()}
                state, checked = state_of(estimates), check_assumptions(estimates)
                views.append(ObservedHead(head, estimates, state, checked))
    if not views:
        sides = [name for name, some in zip("qk", varied, strict=True) if not some]
        raise InputError(
            f"{sides[0] if sides else 'q and k'} must vary from token to token, got "
            "zero variance in every head"
        )
    return Observation(
        model,
        divisor,
        tuple(views),
        {name: estimate(stack / len(views)) for name, stack in total.items()},
    )


def check_assumptions(found: Mapping[str, HeadEstimate]) -> tuple[Assumption, ...]:
    """Judge the assumptions of the texts on a head, the one farthest off first."""
    checked = []
    for name in FACTORS:
        factor = found.get(f"factor_{name}")
        if factor is None or math.isnan(factor.value):
            continue
        interval = factor.interval(POINTWISE)
        if factor.n_groups < FEWEST:
            interval = Interval(factor.value, factor.value)
        checked.append(Assumption(name, factor, judge_factor(interval)))
    checked.sort(key=lambda one: -one.size)
    return tuple(checked)


def judge_factor(interval: Interval) -> str:
    """Say whether a factor is 1 up to the tolerance.

    Returns
    -------
    {"supported", "refuted", "undecided"}
    """
    low, high = interval
    if low >= 1.0 - TOLERANCE and high <= 1.0 + TOLERANCE:
        return "supported"
    is_off = high < 1.0 - TOLERANCE or low > 1.0 + TOLERANCE
    return "refuted" if is_off else "undecided"


def state_of(found: Mapping[str, HeadEstimate]) -> str:
    """Say what the divisor makes of a head's rows."""
    share, largest = found[SHARE].value, found["weight_max"].value
    # a median of at least 0.9: at least half of the rows
    if found["saturated_rows"].value >= 0.5:
        return "saturated"
    if share >= FLAT:
        return "flat"
    if share >= BALANCED and largest <= BALANCED_WEIGHT:
        return "balanced"
    return "peaked"


def _vary(model: Model, head: Head) -> NDArray[np.bool_]:
    """Tell whether queries, and keys, are not the same for every token."""
    firsts = [entries[0] for entries in model.read(head, 0)]
    found = np.zeros(2, dtype=bool)
    for sequence in range(len(model.sequences)):
        both = zip(model.read(head, sequence), firsts, strict=True)
        found |= [bool((entries != first).any()) for entries, first in both]
        if found.all():
            break
    return found


def tidy(observation: Observation) -> "pd.DataFrame":
    """Return the quantities as a tidy table, with the columns `COLUMNS`."""
    heads = {one.head: one.found for one in observation.heads}
    count = observation.n_sequences
    rows = [
        (*place, name, one.value, one.std_error, *one.interval(POINTWISE), count)
        for place, found in [((ALL, ALL), observation.overall), *heads.items()]
        for name, one in found.items()
    ]
    import pandas as pd

    return pd.DataFrame.from_records(rows, columns=list(COLUMNS))

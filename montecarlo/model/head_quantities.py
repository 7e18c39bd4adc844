"""One head: from sums to quantities, with errors from leaving sequences out.

The variance of the scores over all pairs of any query with any key, as an identity:

    Var(q·k) = tr(Σq Σk) + μq' Σk μq + μk' Σq μk

The first term is what the entries' variances alone make, d_k σq² σk², plus what
anisotropy adds.  Pairs that attention forms are of one sequence, and seen: what that
changes are two further parts, ``sequence`` and ``mask``.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from montecarlo.attention.quantities import PAIR_QUANTITIES
from montecarlo.attention.softmax import Array
from montecarlo.estimation.intervals import Interval, t_quantile
from montecarlo.model.head_sums import HeadSums
from montecarlo.model.row_values import ROW_FUNCTIONS, SHARE, RowSum

#: With fewer sequences there is no interval.
FEWEST = 5
#: Parts of the variance of the scores, in the order in which they are shown.
PARTS = ("entries", "anisotropy", "mean_q", "mean_k", "sequence", "mask")
#: What each failing assumption alone multiplies the variance of a score by.
FACTORS = ("entries", "anisotropy", "mean_q", "mean_k", "correlation", "sequence")
#: Quantities of rows that are compared with those of keys of other sequences.
COMPARED = (
    "weight_max",
    "entropy",
    "effective_keys",
    "jacobian_trace",
    "jacobian_frobenius",
    "jacobian_spectral",
)
Stacks = dict[str, Array]


class HeadEstimate(NamedTuple):
    """A quantity of a head.

    Attributes
    ----------
    value : float
        Of the tokens at hand; of softmax, of the rows that were drawn.
    centre, std_error : float
        The value without its first-order bias, and its standard error, by leaving one
        group of sequences out; NaN with fewer than five.
    n_groups : int
        Groups of sequences.
    """

    value: float
    centre: float
    std_error: float
    n_groups: int

    def interval(self, error_rate: float) -> Interval:
        """Return Student's interval over sequences, missing so often on each side."""
        half = t_quantile(error_rate, self.n_groups) * self.std_error
        return Interval(self.centre - half, self.centre + half)


def row_sums() -> tuple[RowSum, ...]:
    """Return the means over rows that are found under the model's divisor."""
    return (
        *(RowSum(name, name) for name in ROW_FUNCTIONS),
        RowSum(SHARE, "effective_keys", n_power=1.0),
        *(RowSum(f"{name}_permuted", name, permuted=True) for name in COMPARED),
    )


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
    if len(sums.tokens_q) == 1:  # of one sequence nothing can be seen of others
        del found["factor_sequence"]
    found["unit_divisor"] = np.sqrt(found["score_row_variance"])
    found["scaled_row_variance"] = found["score_row_variance"] / divisor**2
    for name, pair in sums.rows.items():
        stack = _stack(pair)
        with np.errstate(invalid="ignore"):
            found[name] = stack[:, 0] / stack[:, 1]
    for name in COMPARED:
        if f"{name}_permuted" in found:
            difference = found[name] - found[f"{name}_permuted"]
            found[f"{name}_dependence"] = difference
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
    for tokens, first, second, centre in (
        (sums.tokens_q, sums.q, sums.qq, sums.centre_q),
        (sums.tokens_k, sums.k, sums.kk, sums.centre_k),
    ):
        count = _stack(tokens)[:, np.newaxis]
        moved = _stack(first) / count
        outer = moved[:, :, np.newaxis] * moved[:, np.newaxis, :]
        covariances.append(_stack(second) / count[:, :, np.newaxis] - outer)
        means.append(moved + centre)
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
    found["part_entries"] = d_k * var_q * var_k
    trace = np.einsum("gij,gij->g", cov_q, cov_k)
    found["part_anisotropy"] = trace - found["part_entries"]
    found["part_mean_q"] = np.einsum("gi,gij,gj->g", mean_q, cov_k, mean_q)
    found["part_mean_k"] = np.einsum("gi,gij,gj->g", mean_k, cov_q, mean_k)
    return found


def _scores(sums: HeadSums, moments: Mapping[str, Array]) -> Stacks:
    """Return what is seen of the scores: their moments, and where they come from."""
    shift = float(sums.centre_q @ sums.centre_k)
    pairs = {name: _stack(values) for name, values in sums.pairs.items()}
    count = pairs["count"]
    means = {name: pairs[name] / count for name in ("s", "s2", "s3", "s4")}

    def of_pairs(name: str, means: Mapping[str, Array]) -> Array:
        evaluate: Callable[..., Array] = PAIR_QUANTITIES[name].evaluate
        return evaluate(means, sums.d_k)

    everywhere = {name: pairs[f"all_{name}"] / pairs["all_count"] for name in means}
    variance = of_pairs("score_variance", means)
    unmasked = of_pairs("score_variance", everywhere)
    any_pair = sum(moments[f"part_{name}"] for name in PARTS[:4])
    found = {
        "score_mean": means["s"] + shift,
        "score_variance": variance,
        "score_std": np.sqrt(variance),
        "score_variance_ratio": variance / moments["part_entries"],
        "score_excess_kurtosis": of_pairs("score_excess_kurtosis", means),
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
    """Turn a stack of `quantities` into value, standard error and number of groups.

    Notes
    -----
    The jackknife over groups.  What its correction of bias amounts to is not known
    better than itself, so it counts into the error.
    """
    value, groups = float(stack[0]), len(stack) - 1
    if groups < FEWEST:
        return HeadEstimate(value, math.nan, math.nan, max(groups, 1))
    left_out = stack[1:]
    bias = (groups - 1) * (float(left_out.mean()) - value)
    error = math.sqrt((groups - 1) * float(left_out.var()))
    return HeadEstimate(value, value - bias, math.hypot(error, bias), groups)

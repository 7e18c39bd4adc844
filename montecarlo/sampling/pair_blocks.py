"""Pairs: blocks of queries and keys, drawn and reduced to means over their scores.

One block after the other: the scores of one stay in the cache; those of several do not,
and every pass over them would take four times as long.
"""

import math

import numpy as np

from montecarlo.attention.pairs import GAP_AT, GAP_NORMAL
from montecarlo.attention.softmax import Array, Scores
from montecarlo.sampling.conditions import Condition
from montecarlo.sampling.laws import parse_law
from montecarlo.sampling.matrices import draw_matrices

#: Terms that are added up in the precision they come in; their sums are in float64.
ADDED_AT_ONCE = 2**12


def pair_means(condition: Condition, seed: int, indices: range) -> Array:
    """Draw some replicates of pairs and reduce them.

    Parameters
    ----------
    condition : Condition
        Without rows.
    seed : int
    indices : range
        Of the replicates.

    Returns
    -------
    ndarray, shape (n_replicates, n_means)
        `PAIR_MEANS` of each block.

    Notes
    -----
    Scores are float32.  Where entries have a mean, squares are much larger than the
    variance that is made of them, so all is float64 from there on.
    """
    standard = _is_standard(condition)
    at = GAP_AT * math.sqrt(condition.d_k * _entry_scale(condition))
    means = []
    for index in indices:
        q, k = draw_matrices(condition, seed, index)
        matching = condition.dependence != "none"  # only matching pairs count
        scores = np.vecdot(q, k) if matching else q @ k.T
        drawn: list[Scores] = [q, k, scores]
        if not standard:
            drawn = [x.astype(np.float64) for x in drawn]
        means.append(_reduce(drawn, at))
    return np.array(means)


def _reduce(drawn: list[Scores], at: float) -> list[float]:
    """Return `PAIR_MEANS` of a block: entries of q, those of k, and scores."""
    q, k, scores = (_in_rows(x) for x in drawn)
    squares = np.square(scores)
    return [
        *(_mean(q), _mean_product(q, q), _mean(k), _mean_product(k, k)),
        *(_mean(scores), _mean(np.abs(scores)), _mean_product(scores, scores)),
        *(_mean_product(squares, scores), _mean_product(squares, squares)),
        np.count_nonzero(scores <= at) / scores.size - GAP_NORMAL,
    ]


def _in_rows(values: Scores) -> Scores:
    """Cut a block into the rows along which it is added up."""
    return values.reshape(-1, math.gcd(values.size, ADDED_AT_ONCE))


def _mean(values: Scores) -> float:
    """Return the mean of all values."""
    return _mean_product(values, np.ones(values.shape[-1], values.dtype))


def _mean_product(one: Scores, other: Scores) -> float:
    """Return the mean of the elementwise product."""
    sums: list[float] = np.vecdot(one, other).tolist()  # added up in float64
    return sum(sums) / one.size


def _is_standard(condition: Condition) -> bool:
    laws = parse_law(condition.law_q), parse_law(condition.law_k)
    return all(law.mean == 0.0 and law.std == 1.0 for law in laws)


def _entry_scale(condition: Condition) -> float:
    """Return the product of the variances of an entry of q and of k."""
    return (parse_law(condition.law_q).std * parse_law(condition.law_k).std) ** 2

"""Pairs: blocks of queries and keys, drawn and reduced to means over their scores.

Small blocks go through NumPy in stacks: a call costs as much as a thousand scores.
"""

import math

import numpy as np

from montecarlo.attention.pairs import GAP_AT, GAP_NORMAL
from montecarlo.attention.softmax import Array, Scores
from montecarlo.sampling.conditions import PAIR_BLOCK, Condition
from montecarlo.sampling.laws import parse_law
from montecarlo.sampling.matrices import draw_matrices

#: Entries of Q, or scores if these are more, that go through NumPy at once.
ENTRIES_AT_ONCE = 2**18


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
    """
    larger = PAIR_BLOCK * max(PAIR_BLOCK, condition.d_k)
    at_once = max(1, ENTRIES_AT_ONCE // larger)
    stacks = [indices[i : i + at_once] for i in range(0, len(indices), at_once)]
    return np.concatenate([_reduce(condition, seed, some) for some in stacks])


def _reduce(condition: Condition, seed: int, indices: range) -> Array:
    """Return `PAIR_MEANS` of the replicates of one stack.

    Notes
    -----
    Scores are float32; sums along rows of a block are, too, and float64 from there on.
    Where entries have a mean, squares are much larger than the variance that is made of
    them, so all is float64.
    """
    drawn = [draw_matrices(condition, seed, index) for index in indices]
    q: Scores = np.stack([q for q, _ in drawn])
    k: Scores = np.stack([k for _, k in drawn])
    matching = condition.dependence != "none"  # only matching pairs count
    scores: Scores
    scores = np.vecdot(q, k)[..., np.newaxis] if matching else q @ k.transpose(0, 2, 1)
    if not _is_standard(condition):
        q, k, scores = (x.astype(np.float64) for x in (q, k, scores))
    at = GAP_AT * math.sqrt(condition.d_k * _entry_scale(condition))
    below = np.array([np.count_nonzero(block <= at) for block in scores])
    squares = scores * scores
    means = [
        *(_mean(q), _mean_product(q, q), _mean(k), _mean_product(k, k)),
        *(_mean(scores), _mean(np.abs(scores)), _mean(squares)),
        *(_mean_product(squares, scores), _mean_product(squares, squares)),
        below / scores[0].size - GAP_NORMAL,
    ]
    return np.stack(means, axis=-1)


def _mean(values: Scores) -> Array:
    """Return the mean of each matrix."""
    return _mean_product(values, np.ones(values.shape[-1], values.dtype))


def _mean_product(one: Scores, other: Scores) -> Array:
    """Return the mean of the elementwise product, for each matrix."""
    total: Array = np.vecdot(one, other).sum(axis=-1, dtype=np.float64)
    mean: Array = total / one[0].size
    return mean


def _is_standard(condition: Condition) -> bool:
    laws = parse_law(condition.law_q), parse_law(condition.law_k)
    return all(law.mean == 0.0 and law.std == 1.0 for law in laws)


def _entry_scale(condition: Condition) -> float:
    """Return the product of the variances of an entry of q and of k."""
    return (parse_law(condition.law_q).std * parse_law(condition.law_k).std) ** 2

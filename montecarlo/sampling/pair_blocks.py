"""Pairs: a block of queries and keys, drawn and reduced to means over its scores."""

import math

import numpy as np

from montecarlo.attention.pairs import GAP_AT, GAP_NORMAL
from montecarlo.attention.softmax import Scores, add_up, widen
from montecarlo.sampling.conditions import Condition
from montecarlo.sampling.laws import parse_law
from montecarlo.sampling.matrices import draw_matrices


def pair_means(condition: Condition, seed: int, index: int) -> list[float]:
    """Return `PAIR_MEANS` of one block of pairs.

    Parameters
    ----------
    condition : Condition
        Without rows.
    seed, index : int

    Notes
    -----
    Scores are float32; sums along rows of a block are, too, and float64 from there on.
    Where entries have a mean, squares are much larger than the variance that is made of
    them, so all is float64.
    """
    q: Scores
    k: Scores
    q, k = draw_matrices(condition, seed, index)
    scores = _scores(condition, q, k)
    if not _is_standard(condition):
        q, k, scores = (x.astype(np.float64) for x in (q, k, scores))
    unit = math.sqrt(condition.d_k * _entry_scale(condition))
    below = np.count_nonzero(scores <= GAP_AT * unit) / scores.size
    squares = scores * scores
    sums = (
        *(add_up(q) / q.shape[1], widen(np.vecdot(q, q)) / q.shape[1]),
        *(add_up(k) / k.shape[1], widen(np.vecdot(k, k)) / k.shape[1]),
        *(
            total / scores.shape[1]
            for total in (
                add_up(scores),
                add_up(np.abs(scores)),
                add_up(squares),
                widen(np.vecdot(squares, scores)),
                widen(np.vecdot(squares, squares)),
            )
        ),
    )
    return [*(float(rows.mean()) for rows in sums), below - GAP_NORMAL]


def _scores(condition: Condition, q: Scores, k: Scores) -> Scores:
    """Return the scores that count: those of all pairs, or of matching ones only."""
    scores: Scores
    scores = q @ k.T if condition.dependence == "none" else np.vecdot(q, k)[:, None]
    return scores


def _is_standard(condition: Condition) -> bool:
    laws = parse_law(condition.law_q), parse_law(condition.law_k)
    return all(law.mean == 0.0 and law.std == 1.0 for law in laws)


def _entry_scale(condition: Condition) -> float:
    """Return the product of the variances of an entry of q and of k."""
    return (parse_law(condition.law_q).std * parse_law(condition.law_k).std) ** 2

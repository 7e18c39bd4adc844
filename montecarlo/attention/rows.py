"""Blocks of attention rows: their scores, softmax and gradients.

Results are computed when they are first requested, and then kept.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention import gradients
from montecarlo.attention.masks import QueryBlock
from montecarlo.attention.softmax import (
    Array,
    Gaps,
    RowSums,
    Scores,
    SoftmaxRows,
    entropy,
    measure_gaps,
    softmax_rows,
    weights_in_order,
    widen,
)

Floats = NDArray[np.float32]
#: Largest number of rows of a replicate for costly quantities: the spectral norm, and
#: the elements p(1 - p).
SPECTRAL_ROWS = 16
ELEMENT_ROWS = 8
#: Rows of more keys than this are evaluated in smaller numbers.
COSTLY_KEYS = 512
#: Largest number of rows, and of their scores, for the query gradient, which takes d_k
#: products for each score.
QUERY_ROWS = 64
QUERY_SCORES = 2**19


def n_costly_rows(most: int, n_keys: int) -> int:
    """Return for how many rows of a replicate a costly quantity is computed.

    It is ``most`` for rows of up to `COSTLY_KEYS` keys.  For longer rows it falls in
    proportion to 1 / n_keys, but is at least 1.
    """
    return max(1, most * COSTLY_KEYS // max(COSTLY_KEYS, n_keys))


def n_query_rows(n_keys: int) -> int:
    """Return the largest number of rows of a replicate for the query gradient.

    It is `QUERY_SCORES` // n_keys, clipped to the range from 1 to `QUERY_ROWS`.  This
    limit applies without a mask.  Under a mask the gradient is computed for all rows.
    """
    return max(1, min(QUERY_ROWS, QUERY_SCORES // n_keys))


@dataclass(frozen=True)
class ScoreBlock:
    """Raw scores of a block of queries in several replicates, for all divisors.

    Attributes
    ----------
    block : QueryBlock
        Positions of queries and keys, and the hidden scores.
    all_rows : bool
        Whether costly quantities are evaluated for all rows, as under a mask, or only
        for the first ones.
    queries : ndarray of float32, shape (n_replicates, n_queries, d_k)
    keys : ndarray of float32, shape (n_replicates, n_keys, d_k)
        Multiplied by the gain.
    gain : float
        Factor on every product of a query and a key.
    scores : ndarray, shape (n_replicates, n_queries, n_keys)
        Raw scores.  The hidden ones are overwritten.
    weight_gradient : ndarray, shape (n_replicates, 1, n_keys)
        Gradient v of a loss with respect to the weights, the same for all queries of a
        replicate; for the query gradient.
    values : ndarray of float32, shape (n_replicates, n_keys, d_k)
        Empty unless key and value gradients are requested.
    grad_output : ndarray of float32, shape (n_replicates, n_queries, d_k)
        Gradient of a loss with respect to the outputs.  Empty unless key and value
        gradients are requested.
    """

    block: QueryBlock
    all_rows: bool
    queries: Floats
    keys: Floats
    gain: float
    scores: Scores
    weight_gradient: Scores
    values: Floats
    grad_output: Floats

    @cached_property
    def widened(self) -> "ScoreBlock":
        """Copy of this block with ``scores`` and ``weight_gradient`` in float64."""
        gradient = widen(self.weight_gradient)
        return replace(self, scores=widen(self.scores), weight_gradient=gradient)

    @cached_property
    def gaps(self) -> Gaps:
        """Differences of raw scores from the second largest and the largest of the row.

        To compute them, hidden entries of ``scores`` are overwritten in place.
        """
        return measure_gaps(self.scores, self.block)

    @cached_property
    def squared_norm(self) -> Array:
        """|q|² of each query, shape (n_replicates, n_queries)."""
        return widen(np.vecdot(self.queries, self.queries))

    @cached_property
    def element_gaps(self) -> Gaps:
        """Differences of raw scores as `gaps`, for the first few rows, in float64.

        There are at most `ELEMENT_ROWS` rows.  Hidden scores count like all others, so
        that it is right only without a mask.
        """
        n_rows = n_costly_rows(ELEMENT_ROWS, self.scores.shape[-1])
        return measure_gaps(widen(self.scores[:, :n_rows]))

    @property
    def first_match(self) -> int:
        """Index, among the block's keys, of the key that belongs to the first query."""
        start: int = self.block.queries.start - self.block.keys.start
        return start

    @cached_property
    def matching_gap(self) -> Array:
        """Raw score of query i and key i minus the largest of row i; at most 0.

        Shape (n_replicates, n_queries).  Key i is the one that was planted for query i.
        """
        own = np.diagonal(self.scores, self.first_match, axis1=-2, axis2=-1)
        return own - self.gaps.largest

    @cached_property
    def differences(self) -> Scores:
        """v_j minus v at the key with the largest score, for each key j of each row.

        v is ``weight_gradient``, the gradient of a loss with respect to the weights.
        Shape (n_replicates, n_rows, n_keys).  The rows are those that the query
        gradient is computed for: all under a mask, otherwise the first `n_query_rows`.
        """
        n_rows = None if self.all_rows else n_query_rows(self.scores.shape[-1])
        return gradients.differences_to_largest(self.weight_gradient, self.gaps, n_rows)

    @cached_property
    def grad_weights(self) -> Floats:
        """Gradient of the loss with respect to the weights, from ``grad_output``.

        Shape (n_replicates, n_queries, n_keys).  Only if key and value gradients are
        requested: otherwise ``grad_output`` and ``values`` are empty.
        """
        return self.grad_output @ self.values.transpose(0, 2, 1)


@dataclass(frozen=True)
class RowBlock:
    """Softmax weights of a block of queries under one divisor, and their gradients.

    Unless another shape is given, arrays have the shape (n_replicates, n_rows), with
    one value for each row.  n_rows is the number of queries.  For costly quantities it
    is smaller, unless ``scores.all_rows``.

    Attributes
    ----------
    scores : ScoreBlock
    divisor : float
        Number by which the raw scores are divided.
    """

    scores: ScoreBlock
    divisor: float

    @cached_property
    def rows(self) -> SoftmaxRows:
        """Softmax of the divided scores of each row."""
        return softmax_rows(self.scores.gaps, self.divisor)

    @property
    def sums(self) -> RowSums:
        """Sums over each row of exponentials of the divided scores."""
        return self.rows.sums

    @cached_property
    def entropy(self) -> Array:
        """Entropy of the weights of each row in nats, shape (n_replicates, n_rows)."""
        return entropy(self.sums)

    @property
    def matching_weight(self) -> Array:
        """Weight of key i in the row of query i, for which this key was planted.

        Shape (n_replicates, n_rows).
        """
        return np.exp(self.scores.matching_gap / self.divisor) / self.sums.z

    @property
    def matching_is_largest(self) -> Array:
        """1.0 for each row i in which key i has the largest score, else 0.0.

        Shape (n_replicates, n_rows).
        """
        where = self.scores.gaps.where - self.scores.first_match
        return np.asarray(where == np.arange(where.shape[-1]), dtype=np.float64)

    @property
    def jacobian_spectral(self) -> Array:
        """Spectral norm of the softmax Jacobian of each row, from 0 to 1/2.

        Shape (n_replicates, n_rows); without a mask only for the first `n_costly_rows`.
        """
        n_rows = n_costly_rows(SPECTRAL_ROWS, self.rows.e.shape[-1])
        return gradients.jacobian_spectral(
            self.rows, None if self.scores.all_rows else n_rows
        )

    @property
    def element_gradient(self) -> Array:
        """p(1 - p) of each weight p of the first `n_costly_rows` rows, from 0 to 1/4.

        Shape (n_replicates, n_rows * n_keys).
        """
        rows = softmax_rows(self.scores.element_gaps, self.divisor)
        return gradients.element_gradient(rows)

    @cached_property
    def gradient_query(self) -> Array:
        """Norm of the gradient of v·p with respect to the query q of each row.

        v is ``weight_gradient`` and p the weights.  Shape (n_replicates, n_rows);
        without a mask only for the first `n_query_rows`.
        """
        product = gradients.jacobian_times(self.rows, self.scores.differences)
        return gradients.gradient_query(self.sums, product, self.scores.keys)

    @property
    def gradient_key(self) -> Array:
        """Gradient of the loss with respect to the keys, times the divisor.

        Shape (n_replicates, n_keys, d_k).  It is the sum over the queries of this block
        only.
        """
        scores, rows = self.scores, self.rows
        differences = gradients.differences_to_largest(scores.grad_weights, rows.gaps)
        by_scores = gradients.jacobian_times(rows, differences)
        by_scores *= self.sums.unit[..., np.newaxis]
        gradient: Array = np.matmul(by_scores.transpose(0, 2, 1), scores.queries)
        return scores.gain * gradient

    @property
    def gradient_value(self) -> Array:
        """Gradient of the loss with respect to the values.

        Shape (n_replicates, n_keys, d_k).  It is the sum over the queries of this block
        only.
        """
        return weights_in_order(self.rows).transpose(0, 2, 1) @ self.scores.grad_output

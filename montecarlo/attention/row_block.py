"""What quantities of rows are functions of: rows of some replicates, reduced."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention import softmax
from montecarlo.attention.softmax import Array, RowSums, SoftmaxRows

#: Rows of a replicate on which the costly quantities are evaluated: the spectral norm,
#: and what is looked at key by key (the sorted weights, the elements p(1 - p)).
SPECTRAL_ROWS = 16
ELEMENT_ROWS = 8
#: Keys up to which these are so many rows; of longer ones they are fewer.
COSTLY_KEYS = 512
#: Rows, and scores of these, for the gradient by the query, which costs d_k products a
#: score.
QUERY_ROWS = 64
QUERY_SCORES = 2**19


def costly_rows(most: int, n_keys: int) -> int:
    """Return how many of ``most`` rows a costly quantity is evaluated on."""
    return max(1, most * COSTLY_KEYS // max(COSTLY_KEYS, n_keys))


def query_rows(n_keys: int) -> int:
    """Return how many rows the gradient by the query is evaluated on, at most."""
    return max(1, min(QUERY_ROWS, QUERY_SCORES // n_keys))


@dataclass(frozen=True)
class RowBlock:
    """Rows of some replicates under one divisor.

    Attributes
    ----------
    sums : RowSums
        Shape (n_replicates, n_queries), as all that follows.
    gradient_scores, gradient_query : ndarray
        Of one v ~ N(0, I) per replicate; the second of the first `query_rows` only.
    squared_norm : ndarray
        |q|².
    variance : ndarray
        Variance of the raw scores within each row, n - 1 in the denominator.
    where : ndarray of int
        The key of the largest score.
    matching : ndarray
        From `softmax.matching_gaps`; 0 where no key is planted.
    compared : ndarray of float64, shape (n_replicates, some rows, n_keys)
        Raw scores of the rows that number formats are compared on; none where a point
        has no formats.
    spectral : SoftmaxRows
        The first rows, for the spectral norm.
    elements : SoftmaxRows
        The first rows in float64, for what is looked at key by key: single exponentials
        of float32 end at 1e-38.
    """

    sums: RowSums
    gradient_scores: Array
    gradient_query: Array
    squared_norm: Array
    variance: Array
    where: NDArray[np.intp]
    matching: Array
    compared: Array
    spectral: SoftmaxRows
    elements: SoftmaxRows

    @cached_property
    def entropy(self) -> Array:
        """Entropy of each row in nats."""
        return softmax.entropy(self.sums)

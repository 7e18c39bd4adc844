"""The table of quantities of rows: functions of one row of weights, under each divisor.

A new one is one entry in `ROW_QUANTITIES`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention import gradients, softmax
from montecarlo.attention.grids import DEEP, FINE, LogGrid
from montecarlo.attention.softmax import Array, RowSums, Scores, SoftmaxRows

#: Rows of a replicate on which the costly quantities are evaluated: the spectral norm,
#: and what is looked at key by key (the sorted weights, the elements p(1 - p)).
SPECTRAL_ROWS = 16
ELEMENT_ROWS = 8
#: Keys up to which these are so many rows; of longer ones they are fewer.
COSTLY_KEYS = 512
#: Rows, and scores of these, for the gradient by the query, which costs d_k products a
#: score.
QUERY_ROWS = 64
QUERY_SCORES = 2**18
#: Moments of the entries that the intervals of rows need.  Weights are bounded, but
#: near uniform they vary like squared scores, whose third powers make the skewness.
SQUARES = 6.0
#: Ranks at which sorted weights are kept.
RANKS = (1, 2, 3, 4, 5, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128)


MEAN = ("mean",)
SKEWED = ("mean", "median", "q10", "q90")
#: What part of the rows lies below each quantile.
QUANTILES = {"q10": 0.1, "median": 0.5, "q90": 0.9}


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
    scores : ndarray of float32, shape (n_replicates, some rows, n_keys)
        Raw scores of the first rows.
    spectral : SoftmaxRows
        The first of these rows, for the spectral norm.
    elements : SoftmaxRows
        The first of these rows in float64, for what is looked at key by key: single
        exponentials of float32 end at 1e-38.
    """

    sums: RowSums
    gradient_scores: Array
    gradient_query: Array
    squared_norm: Array
    variance: Array
    where: NDArray[np.intp]
    matching: Array
    scores: Scores
    spectral: SoftmaxRows
    elements: SoftmaxRows

    @cached_property
    def entropy(self) -> Array:
        """Entropy of each row in nats."""
        return softmax.entropy(self.sums)


@dataclass(frozen=True, slots=True)
class RowQuantity:
    """A function of one row of weights.

    Attributes
    ----------
    name, symbol : str
        The name in the tables; LaTeX.
    evaluate : callable
        RowBlock -> ndarray, shape (n_replicates, n_rows).
    summaries : tuple of str
        Which summaries over rows the table holds.
    moments : float
        Moments of the entries that its interval needs, see `SQUARES`.
    grid : LogGrid or None
        What quantiles are read from.
    compared : bool
        Whether ratios between divisors are rows of the table.
    gaussian_keys : bool
        Whether it means something for Gaussian keys only.
    planted : bool
        Whether it means something only where key i is planted for query i.
    indicator : bool
        Whether it is 0 or 1.
    """

    name: str
    symbol: str
    evaluate: Callable[[RowBlock], Array]
    summaries: tuple[str, ...] = MEAN
    moments: float = SQUARES
    grid: LogGrid | None = None
    compared: bool = False
    gaussian_keys: bool = False
    planted: bool = False
    indicator: bool = False


def _row_variance(block: RowBlock) -> Array:
    return block.variance / block.sums.divisor**2


def _entropy_identity(block: RowBlock) -> Array:
    """H - ln Z + s² tr J with s = |q|/divisor: 0 in expectation for Gaussian keys.

    Gaussian integration by parts, given q: E Σ p x = s² E Σ p (1 - p), and
    H = ln Z - Σ p x.  Holds at every n and d_k, so it needs no table.
    """
    sums = block.sums
    scale = block.squared_norm / sums.divisor**2
    residual = block.entropy - softmax.log_partition(sums)
    return residual + scale * gradients.jacobian_trace(sums)


ROW_QUANTITIES = {
    quantity.name: quantity
    for quantity in (
        RowQuantity("score_row_variance", r"S^2", _row_variance),
        RowQuantity("score_max", r"s_{\max}", lambda b: b.sums.largest),
        RowQuantity(
            "weight_max",
            r"p_{\max}",
            lambda b: softmax.weight_max(b.sums),
            SKEWED,
            grid=FINE,
        ),
        RowQuantity(
            "log_partition",
            r"\ln Z",
            lambda b: softmax.log_partition(b.sums),
        ),
        RowQuantity("entropy", "H", lambda b: b.entropy),
        RowQuantity(
            "effective_keys",
            "e^H",
            lambda b: np.exp(b.entropy),
            SKEWED,
            grid=FINE,
            compared=True,
        ),
        RowQuantity(
            "inverse_participation",
            r"\sum p^2",
            lambda b: softmax.inverse_participation(b.sums),
        ),
        RowQuantity(
            "jacobian_trace",
            r"\operatorname{tr} J",
            lambda b: gradients.jacobian_trace(b.sums),
            SKEWED,
            grid=DEEP,
            compared=True,
        ),
        RowQuantity(
            "jacobian_frobenius",
            r"\lVert J\rVert_F",
            lambda b: gradients.jacobian_frobenius(b.sums),
            SKEWED,
            grid=DEEP,
            compared=True,
        ),
        RowQuantity(
            "jacobian_frobenius_squared",
            r"\lVert J\rVert_F^2",
            lambda b: gradients.jacobian_frobenius_squared(b.sums),
        ),
        RowQuantity(
            "jacobian_spectral",
            r"\lVert J\rVert_2",
            lambda b: gradients.jacobian_spectral(b.spectral),
            SKEWED,
            grid=DEEP,
            compared=True,
        ),
        RowQuantity(
            "gradient_scores",
            r"\lVert \lambda J v\rVert",
            lambda b: b.gradient_scores,
            SKEWED,
            grid=DEEP,
            compared=True,
        ),
        RowQuantity(
            "gradient_query",
            r"\lVert \lambda K^{\top} J v\rVert",
            lambda b: b.gradient_query,
            SKEWED,
            grid=DEEP,
            compared=True,
        ),
        RowQuantity(
            "element_gradient",
            "p(1-p)",
            lambda b: gradients.element_gradient(b.elements),
            SKEWED,
            grid=DEEP,
        ),
        RowQuantity(
            "planted_weight",
            r"p_{\ast}",
            lambda b: softmax.matching_weight(b.sums, b.matching),
            SKEWED,
            grid=FINE,
            compared=True,
            planted=True,
        ),
        RowQuantity(
            "planted_rank_first",
            r"\mathbb{1}[p_{\ast} = p_{\max}]",
            lambda b: softmax.matching_is_largest(b.where),
            indicator=True,
            compared=True,
            planted=True,
        ),
        RowQuantity(
            "entropy_identity",
            r"H - \ln Z + \sigma^2 \operatorname{tr} J",
            _entropy_identity,
            gaussian_keys=True,
        ),
    )
}

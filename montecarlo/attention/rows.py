"""The table of quantities of rows: functions of one row of weights, under each divisor.

A new one is one entry in `ROW_QUANTITIES`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from montecarlo.attention import gradients, softmax
from montecarlo.attention.grids import DEEP, DEEPER, FINE, SIGNED, Grid
from montecarlo.attention.quantiles import QUANTILES
from montecarlo.attention.ranges import ANY, NOT_NEGATIVE, SHARE, Range
from montecarlo.attention.row_block import RowBlock
from montecarlo.attention.softmax import Array

#: Moments of the entries that the intervals of rows need.  Weights are bounded, but
#: near uniform they vary like squared scores, whose third powers make the skewness.
SQUARES = 6.0
#: Of shares: with a key far larger than the others, all rows of a replicate saturate
#: together; with three moments such keys come too rarely, and intervals were counted to
#: miss up to six times as often as stated.
SHARES = 4.0
#: Ranks at which sorted weights are kept.
RANKS = (1, 2, 3, 4, 5, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128)
#: Largest weights from which on a row counts as saturated, by the indicator's name.
SATURATED = {"saturated": 0.9, "saturated_99": 0.99, "saturated_999": 0.999}

#: The largest norms that a softmax Jacobian can have.  Spectral: uᵀJu is the variance
#: of u under the weights, at most a quarter of its squared range, and that is at most
#: 2.  Frobenius, squared: with a = Σ p², Σ p³ is at least a², so it is at most a - a².
MOST_SPECTRAL = MOST_FROBENIUS = 0.5

MEAN = ("mean",)
SKEWED = ("mean", "median", "q10", "q90")
TYPICAL = ("mean", "median")


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
    grid : LogGrid, SignedGrid or None
        What quantiles are read from, if there are any.
    compared : bool
        Whether ratios between divisors are rows of the table.
    gaussian_keys : bool
        Whether it means something for Gaussian keys only.
    planted : bool
        Whether it means something only where key i is planted for query i.
    indicator : bool
        Whether it is 0 or 1.
    given : str
        The indicator of the rows that it is a quantity of; empty: all rows.
    under : tuple of str
        The divisors that it is measured under; empty: all.
    multiple_of : str
        The quantity that it is the divisor times, so that it is not sampled; empty: it
        is sampled.
    typical_compared : bool
        Whether the table also compares typical rows of two divisors: their medians, and
        the share of the rows under one that lie above the mean under the other.
    within : callable
        Number of keys -> the range of its values.
    words : str
        What it is, in English: a message, to be translated.
    """

    name: str
    symbol: str
    evaluate: Callable[[RowBlock], Array]
    summaries: tuple[str, ...] = MEAN
    moments: float = SQUARES
    grid: Grid | None = None
    compared: bool = False
    gaussian_keys: bool = False
    planted: bool = False
    indicator: bool = False
    given: str = ""
    under: tuple[str, ...] = ()
    multiple_of: str = ""
    typical_compared: bool = False
    within: Callable[[int], Range] = lambda n: ANY
    words: str = ""

    @property
    def has_quantiles(self) -> bool:
        """Whether the table has a quantile of it."""
        return any(name in QUANTILES for name in self.summaries)

    @property
    def has_quantile_ratio(self) -> bool:
        """Whether both outer quantiles are there, and so their ratio."""
        return {"q10", "q90"} <= set(self.summaries)

    def divisors(self, every: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of some divisors that it is measured under."""
        return tuple(name for name in every if not self.under or name in self.under)


def _row_variance(block: RowBlock) -> Array:
    return block.variance / block.sums.divisor**2


def _entropy_identity(block: RowBlock) -> Array:
    """H - ln Z + s² tr J with s = |q|/divisor: 0 in expectation for Gaussian keys.

    Gaussian integration by parts, given q: E Σ p x = s² E Σ p (1 - p), and
    H = ln Z - Σ p x.  Holds at every n and d_k, so it needs no table.
    """
    scale = block.squared_norm / block.sums.divisor**2
    residual = block.entropy - softmax.log_partition(block.sums)
    return residual + scale * gradients.jacobian_trace(block.sums)


def _saturation(name: str, threshold: float) -> RowQuantity:
    """Make the indicator of rows whose largest weight is at least a threshold."""

    def evaluate(block: RowBlock) -> Array:
        return np.asarray(softmax.weight_max(block.sums) >= threshold, np.float64)

    holds = _at_least(threshold)
    symbol, words = rf"\mathbb{{1}}[{holds}]", f"share of rows with ${holds}$"
    return RowQuantity(
        name,
        symbol,
        evaluate,
        moments=SHARES,
        indicator=True,
        within=lambda n: SHARE,
        words=words,
    )


def _among_saturated(quantity: RowQuantity, given: str) -> RowQuantity:
    """Make a quantity of the saturated rows alone; elsewhere they are hardly any."""
    return RowQuantity(
        f"{quantity.name}_{given}",
        rf"\left({quantity.symbol} | {_at_least(SATURATED[given])}\right)",
        quantity.evaluate,
        TYPICAL,
        grid=quantity.grid,
        given=given,
        under=("none",),
        within=quantity.within,
        words=f"{quantity.words}, of rows with ${_at_least(SATURATED[given])}$ alone",
    )


def _at_least(threshold: float) -> str:
    return rf"p_{{\max}} \ge {threshold}"


_TRACE = RowQuantity(
    "jacobian_trace",
    r"\operatorname{tr} J",
    lambda b: gradients.jacobian_trace(b.sums),
    SKEWED,
    grid=DEEP,
    compared=True,
    within=lambda n: (0.0, 1.0 - 1.0 / n),
    words="trace of the softmax Jacobian",
)
_FROBENIUS = RowQuantity(
    "jacobian_frobenius",
    r"\lVert J\rVert_F",
    lambda b: gradients.jacobian_frobenius(b.sums),
    SKEWED,
    grid=DEEP,
    compared=True,
    typical_compared=True,
    within=lambda n: (0.0, MOST_FROBENIUS),
    words="Frobenius norm of the softmax Jacobian",
)
_QUERY = RowQuantity(
    "gradient_query",
    r"\lVert \lambda K^{\top} J v\rVert",
    lambda b: b.gradient_query,
    SKEWED,
    grid=DEEP,
    compared=True,
    within=lambda n: NOT_NEGATIVE,
    words="norm of the gradient by the query",
)

ROW_QUANTITIES = {
    quantity.name: quantity
    for quantity in (
        RowQuantity(
            "score_row_variance",
            r"S^2",
            _row_variance,
            grid=FINE,
            within=lambda n: NOT_NEGATIVE,
            words="variance of the scores within a row",
        ),
        RowQuantity(
            "score_max",
            r"s_{\max}",
            lambda b: b.sums.largest,
            grid=SIGNED,
            words="largest score of a row",
        ),
        RowQuantity(
            "weight_max",
            r"p_{\max}",
            lambda b: softmax.weight_max(b.sums),
            SKEWED,
            grid=FINE,
            within=lambda n: (1.0 / n, 1.0),
            words="largest weight of a row",
        ),
        RowQuantity(
            "log_partition",
            r"\ln Z",
            lambda b: softmax.log_partition(b.sums),
            grid=SIGNED,
            words="logarithm of the sum of exponentials of a row",
        ),
        RowQuantity(
            "entropy",
            "H",
            lambda b: b.entropy,
            grid=FINE,
            within=lambda n: (0.0, math.log(n)),
            words="entropy of a row of weights, in nats",
        ),
        RowQuantity(
            "effective_keys",
            "e^H",
            lambda b: np.exp(b.entropy),
            SKEWED,
            grid=FINE,
            compared=True,
            within=lambda n: (1.0, n),
            words="effective keys of a row: over how many it spreads",
        ),
        RowQuantity(
            "inverse_participation",
            r"\sum p^2",
            lambda b: softmax.inverse_participation(b.sums),
            grid=FINE,
            within=lambda n: (1.0 / n, 1.0),
            words="sum of the squared weights of a row",
        ),
        _TRACE,
        _FROBENIUS,
        RowQuantity(
            "jacobian_frobenius_squared",
            r"\lVert J\rVert_F^2",
            lambda b: gradients.jacobian_frobenius_squared(b.sums),
            grid=DEEPER,
            within=lambda n: (0.0, MOST_FROBENIUS**2),
            words="squared Frobenius norm of the softmax Jacobian",
        ),
        RowQuantity(
            "jacobian_spectral",
            r"\lVert J\rVert_2",
            lambda b: gradients.jacobian_spectral(b.spectral),
            SKEWED,
            grid=DEEP,
            compared=True,
            within=lambda n: (0.0, MOST_SPECTRAL),
            words="spectral norm of the softmax Jacobian",
        ),
        RowQuantity(
            "gradient_scores",
            r"\lVert \lambda J v\rVert",
            lambda b: b.gradient_scores,
            SKEWED,
            grid=DEEP,
            compared=True,
            within=lambda n: NOT_NEGATIVE,
            words="norm of the gradient by the scores before they are divided",
        ),
        _QUERY,
        RowQuantity(
            "gradient_query_undivided",
            r"\lVert K^{\top} J v\rVert",
            lambda b: b.gradient_query * b.sums.divisor,
            TYPICAL,
            grid=DEEP,
            compared=True,
            multiple_of="gradient_query",
            within=lambda n: NOT_NEGATIVE,
            words="norm of the gradient by the query, times the divisor",
        ),
        RowQuantity(
            "gradient_query_squared",
            r"\lVert \lambda K^{\top} J v\rVert^2",
            lambda b: b.gradient_query**2,
            grid=DEEPER,
            within=lambda n: NOT_NEGATIVE,
            words="squared norm of the gradient by the query",
        ),
        RowQuantity(
            "element_gradient",
            "p(1-p)",
            lambda b: gradients.element_gradient(b.elements),
            SKEWED,
            grid=DEEP,
            within=lambda n: (0.0, 0.25),
            words="derivative of a weight by its own score",
        ),
        RowQuantity(
            "planted_weight",
            r"p_{\ast}",
            lambda b: softmax.matching_weight(b.sums, b.matching),
            SKEWED,
            grid=FINE,
            compared=True,
            planted=True,
            within=lambda n: SHARE,
            words="weight of the key that matches the query",
        ),
        RowQuantity(
            "planted_rank_first",
            r"\mathbb{1}[p_{\ast} = p_{\max}]",
            lambda b: softmax.matching_is_largest(b.where),
            indicator=True,
            compared=True,
            planted=True,
            within=lambda n: SHARE,
            words="share of rows whose matching key has the largest weight",
        ),
        RowQuantity(
            "entropy_identity",
            r"H - \ln Z + \sigma^2 \operatorname{tr} J",
            _entropy_identity,
            gaussian_keys=True,
            words="what is left of an identity, for Gaussian keys zero in the mean",
        ),
        *(_saturation(name, threshold) for name, threshold in SATURATED.items()),
        *(
            _among_saturated(quantity, given)
            for quantity in (_TRACE, _FROBENIUS, _QUERY)
            for given in SATURATED
        ),
    )
}

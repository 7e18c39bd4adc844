"""The table of quantities: what is measured of a replicate, and how.

A quantity of *pairs* is a function of moments of q·k over a block of pairs; it is
estimated once, for raw scores, and a divisor c turns it into itself over c**degree.
A quantity of *rows* is a function of one row of weights, evaluated under each divisor.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from montecarlo.attention import gradients, softmax
from montecarlo.attention.softmax import Array, SoftmaxRows

#: Rows of a replicate on which the costly quantities are evaluated: the spectral norm
#: and the sorted weights.
SPECTRAL_ROWS = 32
SORTED_ROWS = 4
#: Ranks at which sorted weights are kept.
RANKS = (1, 2, 3, 4, 5, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128)


@dataclass(frozen=True, slots=True)
class LogGrid:
    """A fixed grid, even in the logarithm, on which row values are counted.

    Attributes
    ----------
    low, high : float
        Powers of ten; smaller and larger values go to the first and last bin.
    per_decade : int
        Bins in a factor of ten.
    """

    low: float
    high: float
    per_decade: int

    @property
    def n_bins(self) -> int:
        """One bin for exact zero, then the grid."""
        return 1 + round((self.high - self.low) * self.per_decade)

    def bins(self, values: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
        """Return the bin of each value: 0 for exact zero, else 1 to n_bins - 1."""
        with np.errstate(divide="ignore"):
            place = (np.log10(values) - self.low) * self.per_decade
        inside = np.clip(place, 0.0, self.n_bins - 2.0).astype(np.intp) + 1
        return np.where(values > 0.0, inside, 0)

    def edges(self) -> Array:
        """Return the upper edge of each bin, shape (n_bins,); 0 for the bin of zero."""
        exponents = self.low + np.arange(self.n_bins) / self.per_decade
        edges: Array = 10.0**exponents
        edges[0] = 0.0
        return edges


#: Weights and counts of keys: 0.45 % a bin.
FINE = LogGrid(-6.0, 6.0, 512)
#: Gradients, which reach far down: 3.7 % a bin.
DEEP = LogGrid(-60.0, 4.0, 64)

MEAN = ("mean",)
SKEWED = ("mean", "median", "q10", "q90")
#: What part of the rows lies below each quantile.
QUANTILES = {"q10": 0.1, "median": 0.5, "q90": 0.9}


@dataclass(frozen=True)
class RowBlock:
    """Rows of some replicates under one divisor, with what gradients need.

    Attributes
    ----------
    rows : SoftmaxRows
        Shape (n_replicates, n_queries, n_keys).
    keys : ndarray of float32, shape (n_replicates, n_keys, d_k)
    vector : ndarray, shape (n_replicates, 1, n_keys)
        v ~ N(0, I), one per replicate.
    squared_norm : ndarray, shape (n_replicates, n_queries)
        |q|².
    spread : ndarray, shape (n_replicates, n_queries)
        Variance of the raw scores within each row, n - 1 in the denominator.
    """

    rows: SoftmaxRows
    keys: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
    vector: Array
    squared_norm: Array
    spread: Array

    @cached_property
    def product(self) -> Array:
        """J v for each row."""
        return gradients.jacobian_times(self.rows, self.vector)

    def first(self, number: int) -> SoftmaxRows:
        """Return the first rows only."""
        rows, cut = self.rows, slice(None, number)
        gaps = softmax.Gaps(
            rows.gaps.largest[:, cut], rows.gaps.where[:, cut], rows.gaps.below[:, cut]
        )
        return SoftmaxRows(
            gaps,
            rows.divisor,
            rows.e[:, cut],
            rows.s1[:, cut],
            rows.s2[:, cut],
            rows.s3[:, cut],
        )


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
        Moments of the entries that its interval needs; 0 for bounded quantities.
    grid : LogGrid or None
        What quantiles are read from.
    compared : bool
        Whether ratios between divisors are rows of the table.
    gaussian_keys : bool
        Whether it means something for Gaussian keys only.
    """

    name: str
    symbol: str
    evaluate: Callable[[RowBlock], Array]
    summaries: tuple[str, ...] = MEAN
    moments: float = 0.0
    grid: LogGrid | None = None
    compared: bool = False
    gaussian_keys: bool = False


def _row_variance(block: RowBlock) -> Array:
    return block.spread / block.rows.divisor**2


def _entropy_identity(block: RowBlock) -> Array:
    """H - ln Z + s² tr J with s = |q|/divisor: 0 in expectation for Gaussian keys.

    Gaussian integration by parts, given q: E Σ p x = s² E Σ p (1 - p), and
    H = ln Z - Σ p x.  Holds at every n and d_k, so it needs no table.
    """
    rows = block.rows
    scale = block.squared_norm / rows.divisor**2
    residual = softmax.entropy(rows) - softmax.log_partition(rows)
    return residual + scale * gradients.jacobian_trace(rows)


ROW_QUANTITIES = {
    quantity.name: quantity
    for quantity in (
        RowQuantity("score_row_variance", r"S^2", _row_variance, moments=4.0),
        RowQuantity(
            "weight_max",
            r"p_{\max}",
            lambda b: softmax.weight_max(b.rows),
            SKEWED,
            grid=FINE,
        ),
        RowQuantity(
            "log_partition",
            r"\ln Z",
            lambda b: softmax.log_partition(b.rows),
            moments=2.0,
        ),
        RowQuantity("entropy", "H", lambda b: softmax.entropy(b.rows)),
        RowQuantity(
            "effective_keys",
            "e^H",
            lambda b: softmax.effective_keys(b.rows),
            SKEWED,
            grid=FINE,
            compared=True,
        ),
        RowQuantity(
            "inverse_participation",
            r"\sum p^2",
            lambda b: softmax.inverse_participation(b.rows),
        ),
        RowQuantity(
            "jacobian_trace",
            r"\operatorname{tr} J",
            lambda b: gradients.jacobian_trace(b.rows),
            SKEWED,
            grid=DEEP,
            compared=True,
        ),
        RowQuantity(
            "jacobian_frobenius",
            r"\lVert J\rVert_F",
            lambda b: gradients.jacobian_frobenius(b.rows),
            SKEWED,
            grid=DEEP,
            compared=True,
        ),
        RowQuantity(
            "jacobian_frobenius_squared",
            r"\lVert J\rVert_F^2",
            lambda b: gradients.jacobian_frobenius_squared(b.rows),
        ),
        RowQuantity(
            "jacobian_spectral",
            r"\lVert J\rVert_2",
            lambda b: gradients.jacobian_spectral(b.first(SPECTRAL_ROWS)),
            SKEWED,
            grid=DEEP,
            compared=True,
        ),
        RowQuantity(
            "gradient_scores",
            r"\lVert \lambda J v\rVert",
            lambda b: gradients.gradient_scores(b.rows, b.product),
            SKEWED,
            grid=DEEP,
            compared=True,
        ),
        RowQuantity(
            "gradient_query",
            r"\lVert \lambda K^{\top} J v\rVert",
            lambda b: gradients.gradient_query(b.rows, b.product, b.keys),
            SKEWED,
            grid=DEEP,
            compared=True,
            moments=2.0,
        ),
        RowQuantity(
            "entropy_identity",
            r"H - \ln Z + \sigma^2 \operatorname{tr} J",
            _entropy_identity,
            moments=4.0,
            gaussian_keys=True,
        ),
    )
}

#: Means over a block of pairs that the quantities of pairs are made of.
PAIR_MEANS = ("q", "q2", "k", "k2", "s", "abs", "s2", "s3", "s4")
Means = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class PairQuantity:
    """A function of the mean powers of entries and scores.

    Attributes
    ----------
    name, symbol : str
    evaluate : callable
        (means by name, d_k) -> value, over any leading axes.
    degree : int
        A divisor c turns the value into value / c**degree.
    moments : float
        Moments of the entries that its interval needs.
    divided : bool
        Whether it has a value under each divisor, or one for all.
    same_as : str
        The quantity it is a known function of: one check, not two.
    """

    name: str
    symbol: str
    evaluate: Callable[[Means, int], Array]
    degree: int
    moments: float
    divided: bool = True
    same_as: str = field(default="")


def score_variance(means: Means, d_k: int) -> Array:
    """Return E s² - (E s)² of the raw scores."""
    return means["s2"] - means["s"] ** 2


def _score_std(means: Means, d_k: int) -> Array:
    return np.sqrt(score_variance(means, d_k))


def _entry_variance_q(means: Means, d_k: int) -> Array:
    return means["q2"] - means["q"] ** 2


def _entry_variance_k(means: Means, d_k: int) -> Array:
    return means["k2"] - means["k"] ** 2


def _variance_ratio(means: Means, d_k: int) -> Array:
    """Score variance over what the entry variances of the same draws predict."""
    entries = _entry_variance_q(means, d_k) * _entry_variance_k(means, d_k)
    return score_variance(means, d_k) / (d_k * entries)


def _excess_kurtosis(means: Means, d_k: int) -> Array:
    mean, second = means["s"], means["s2"]
    fourth = means["s4"] - 4 * mean * means["s3"] + 6 * mean**2 * second - 3 * mean**4
    return fourth / score_variance(means, d_k) ** 2 - 3.0


PAIR_QUANTITIES = {
    quantity.name: quantity
    for quantity in (
        PairQuantity(
            "entry_variance_q",
            r"\operatorname{Var}(q_m)",
            _entry_variance_q,
            0,
            4.0,
            divided=False,
        ),
        PairQuantity(
            "entry_variance_k",
            r"\operatorname{Var}(k_m)",
            _entry_variance_k,
            0,
            4.0,
            divided=False,
        ),
        PairQuantity(
            "score_mean", r"\operatorname{E}(q\cdot k)", lambda m, d: m["s"], 1, 2.0
        ),
        PairQuantity(
            "score_variance", r"\operatorname{Var}(q\cdot k)", score_variance, 2, 4.0
        ),
        PairQuantity(
            "score_std",
            r"\operatorname{sd}(q\cdot k)",
            _score_std,
            1,
            4.0,
            same_as="score_variance",
        ),
        PairQuantity(
            "score_variance_ratio",
            r"\frac{\operatorname{Var}(q\cdot k)}"
            r"{d_k\operatorname{Var}(q_m)\operatorname{Var}(k_m)}",
            _variance_ratio,
            0,
            4.0,
            divided=False,
        ),
        PairQuantity(
            "score_abs",
            r"\operatorname{E}\lvert q\cdot k\rvert",
            lambda m, d: m["abs"],
            1,
            2.0,
        ),
        PairQuantity(
            "score_excess_kurtosis",
            r"\kappa(q\cdot k) - 3",
            _excess_kurtosis,
            0,
            8.0,
            divided=False,
        ),
    )
}

QUANTITIES: dict[str, PairQuantity | RowQuantity] = {
    **PAIR_QUANTITIES,
    **ROW_QUANTITIES,
}

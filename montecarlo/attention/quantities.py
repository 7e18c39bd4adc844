"""The table of quantities: what is measured of pairs, of rows, and in number formats.

A new quantity is one entry in `QUANTITIES` and, where there is none yet, its function.

Of pairs
    A function of moments of q·k over a block of pairs, estimated once, for raw scores;
    a divisor c turns it into itself over c**degree.
Of rows
    A function of one row of weights, under each divisor.
Of formats
    A function of one row of weights computed in a number format.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention import gradients, number_formats, softmax
from montecarlo.attention.grids import DEEP, DEEPER, FINE, SIGNED, LogGrid
from montecarlo.attention.masks import QueryBlock
from montecarlo.attention.number_formats import ALL_FORMATS
from montecarlo.attention.softmax import Array, Gaps, RowSums, Scores, SoftmaxRows

Range = tuple[float, float]
ANY: Range = (-math.inf, math.inf)
NOT_NEGATIVE: Range = (0.0, math.inf)
#: Of weights, and of shares of rows or keys.
SHARE: Range = (0.0, 1.0)

#: What part of the rows lies below each quantile that the table has.
QUANTILES = {"q10": 0.1, "median": 0.5, "q90": 0.9}
#: Any other: its percentage.
_PERCENTILE = re.compile(r"q([0-9]{1,2}(?:\.[0-9]{1,3})?)\Z")
#: The ratio q90 over q10: how far apart rows of a point lie.
QUANTILE_RATIO = "spread"
#: The share of the rows under the first of two divisors that lie above the mean under
#: the second.
SHARE_ABOVE = "share_above"
MEAN = ("mean",)
SKEWED = ("mean", "median", "q10", "q90", QUANTILE_RATIO)
TYPICAL = ("mean", "median")
#: Of two divisors.
COMPARED = ("mean", QUANTILE_RATIO)

#: Moments of the entries that an interval needs: three times the power of a score that
#: is averaged, for the skewness of the replicates to exist.  Weights are bounded, but
#: near uniform they vary like squared scores.
SQUARES = 6.0
#: Of shares: with a key far larger than the others, all rows of a replicate saturate
#: together; with three moments such keys come too rarely, and intervals were counted to
#: miss up to six times as often as stated.
SHARES = 4.0
#: Largest weights from which on a row counts as saturated, by the indicator's name.
SATURATED = {"saturated": 0.9, "saturated_99": 0.99, "saturated_999": 0.999}
#: The largest norms that a softmax Jacobian can have.  Spectral: uᵀJu is the variance
#: of u under the weights, at most a quarter of its squared range, and that is at most
#: 2.  Frobenius, squared: with a = Σ p², Σ p³ is at least a², so it is at most a - a².
MOST_SPECTRAL = MOST_FROBENIUS = 0.5

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

#: Means over a block of pairs that the quantities of pairs are made of.
PAIR_MEANS = ("q", "q2", "k", "k2", "s", "abs", "s2", "s3", "s4", "gap")
#: Where the distribution of the standardised score differs most from the normal one:
#: the positive zero of d/dx [(x³ - 3x) φ(x)] nearest to 0.
GAP_AT = 0.742
GAP_NORMAL = 0.5 * math.erfc(-GAP_AT / math.sqrt(2.0))
Means = Mapping[str, Array]


class Scale(NamedTuple):
    """An increasing function and its inverse."""

    forward: Callable[[Array], Array]
    back: Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is measured, how, and what the tables hold of it.

    Attributes
    ----------
    of : {"pairs", "rows", "formats"}
    name, symbol : str
        The name in the tables; LaTeX.
    words : str
        What it is, in English: a message, to be translated.
    evaluate : callable
        Of pairs: (means by name, d_k) -> value, over any leading axes.  Of rows:
        `RowBlock` -> ndarray, shape (n_replicates, n_rows).  Of formats: (weights in
        the format, weights without it) of shape (..., n_keys) -> ndarray, shape (...).
    within : (float, float) or callable
        The range of its values, or the number of keys -> the range.
    summaries : tuple of str
        Which summaries the table holds.
    moments : float
        Moments of the entries that its interval needs, see `SQUARES`.
    indicator : bool
        Whether it is 0 or 1.
    degree : int
        Of pairs: a divisor c turns the value into value / c**degree; 0: it has one
        value for all divisors.
    interval_scale : Scale or None
        Where its interval is made, if not as it is.
    grid : LogGrid or None
        Of rows: what quantiles are read from, if there are any; see `grid_for`.
    compared : tuple of str
        Of which summaries the table holds comparisons of two divisors, `SHARE_ABOVE`
        among them; none: it is not compared.
    needs : {"", "gaussian keys", "planted keys", "a mask", "no mask"}
        What it means something for only: rows of Gaussian keys; rows where key i is
        planted for query i; as many queries as keys; rows of one length.
    given : str
        The indicator of the rows that it is a quantity of, under the divisor ``none``
        alone: elsewhere there are hardly any.  Empty: all rows, every divisor.
    multiple_of : str
        The quantity that it is the divisor times, so that it is not sampled; empty: it
        is sampled.
    root_of : str
        The quantity of whose mean it is the square root, so that it is not sampled;
        empty: it is sampled.
    by_query : bool
        Whether it is made of the gradient by the query: that costs a pass of its own.
    by_key : bool
        Whether it is of keys, not of rows: their gradients cost a pass of their own.
    """

    of: Literal["pairs", "rows", "formats"]
    name: str
    symbol: str
    words: str
    evaluate: Callable[..., Array]
    within: Range | Callable[[int], Range] = ANY
    summaries: tuple[str, ...] = MEAN
    moments: float = SQUARES
    indicator: bool = False
    degree: int = 0
    interval_scale: Scale | None = None
    grid: LogGrid | None = None
    compared: tuple[str, ...] = ()
    needs: Literal["", "gaussian keys", "planted keys", "a mask", "no mask"] = ""
    given: str = ""
    multiple_of: str = ""
    root_of: str = ""
    by_query: bool = False
    by_key: bool = False

    def grid_for(self, n_keys: int) -> LogGrid | None:
        """Return the grid of rows of a number of keys: it has the top that they have.

        Near it values are counted by their distance from it: nearly even rows are told
        apart as well as nearly one-hot ones.
        """
        return self.grid and replace(self.grid, top=self.range_at(n_keys)[1])

    def range_at(self, n_keys: int) -> Range:
        """Return the range of its values in rows of a number of keys."""
        return self.within(n_keys) if callable(self.within) else self.within

    @property
    def divided(self) -> bool:
        """Whether it has a value under each divisor, or one for all."""
        return self.of != "pairs" or self.degree != 0

    def divisor(self, name: str) -> str:
        """Return what names its row under a divisor: ``none`` where all have one."""
        return name if "/" in name or (self.divided and not self.given) else "none"


@dataclass(frozen=True)
class FirstRows:
    """Raw scores of the first rows of some replicates: costly quantities are of these.

    Attributes
    ----------
    scores : ndarray of float32, shape (n_replicates, `SPECTRAL_ROWS` at most, n_keys)
        Under a mask those of all rows of a block.
    block : QueryBlock or None
        What a mask hides.
    """

    scores: Scores
    block: QueryBlock | None = None

    @cached_property
    def gaps(self) -> Gaps:
        """Their gaps."""
        return softmax.measure_gaps(self.scores, self.block)

    @cached_property
    def wide_gaps(self) -> Gaps:
        """Those of fewer rows, in float64: exponentials of float32 end at 1e-38."""
        rows = costly_rows(ELEMENT_ROWS, self.scores.shape[-1])
        return softmax.measure_gaps(softmax.widen(self.scores[:, :rows]))


@dataclass(frozen=True)
class RowBlock:
    """Rows of some replicates under one divisor.

    Attributes
    ----------
    sums : RowSums
        Shape (n_replicates, n_queries), as all that follows.
    gradient_query : ndarray
        Of one v ~ N(0, I) per replicate, and of the first `query_rows` only, but under
        a mask of all; empty where no quantity needs it.
    gradient_key, gradient_value : ndarray, shape (n_replicates, n_keys)
        Of a standard normal gradient of the output; empty where no quantity needs
        them, and but in the last block of a mask's queries.
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
    first_rows : FirstRows
    """

    sums: RowSums
    gradient_query: Array
    gradient_key: Array
    gradient_value: Array
    squared_norm: Array
    variance: Array
    where: NDArray[np.intp]
    matching: Array
    compared: Array
    first_rows: FirstRows

    @cached_property
    def spectral(self) -> SoftmaxRows:
        """The first rows, for the spectral norm."""
        return softmax.softmax_rows(self.first_rows.gaps, self.sums.divisor)

    @cached_property
    def elements(self) -> SoftmaxRows:
        """Fewer rows, in float64, for what is looked at key by key."""
        return softmax.softmax_rows(self.first_rows.wide_gaps, self.sums.divisor)

    @cached_property
    def entropy(self) -> Array:
        """Entropy of each row in nats."""
        return softmax.entropy(self.sums)


def costly_rows(most: int, n_keys: int) -> int:
    """Return how many of ``most`` rows a costly quantity is evaluated on."""
    return max(1, most * COSTLY_KEYS // max(COSTLY_KEYS, n_keys))


def query_rows(n_keys: int) -> int:
    """Return how many rows the gradient by the query is evaluated on, at most."""
    return max(1, min(QUERY_ROWS, QUERY_SCORES // n_keys))


def score_variance(means: Means, d_k: int) -> Array:
    """Return E s² - (E s)² of the raw scores."""
    return means["s2"] - means["s"] ** 2


def _variance_ratio(means: Means, d_k: int) -> Array:
    """Score variance over what the entry variances of the same draws predict."""
    entries = (means["q2"] - means["q"] ** 2) * (means["k2"] - means["k"] ** 2)
    return score_variance(means, d_k) / (d_k * entries)


def _excess_kurtosis(means: Means, d_k: int) -> Array:
    mean, second = means["s"], means["s2"]
    fourth = means["s4"] - 4 * mean * means["s3"] + 6 * mean**2 * second - 3 * mean**4
    return fourth / score_variance(means, d_k) ** 2 - 3.0


def _from_reciprocal(reciprocal: Array) -> Array:
    with np.errstate(divide="ignore"):
        kurtosis = -1.0 / np.asarray(reciprocal)
    return np.where(reciprocal < 0.0, kurtosis, np.inf) - 3.0


#: Where few large scores make a fourth moment, replicates that lack them give a small
#: kurtosis and a standard error that is too small with it; one over it does not.
RECIPROCAL = Scale(lambda excess: -1.0 / (excess + 3.0), _from_reciprocal)


def _entropy_identity(block: RowBlock) -> Array:
    """H - ln Z + s² tr J with s = |q|/divisor: 0 in expectation for Gaussian keys.

    Gaussian integration by parts, given q: E Σ p x = s² E Σ p (1 - p), and
    H = ln Z - Σ p x.  Holds at every n and d_k, so it needs no table.
    """
    scale = block.squared_norm / block.sums.divisor**2
    residual = block.entropy - softmax.log_partition(block.sums)
    return residual + scale * gradients.jacobian_trace(block.sums)


def _is_saturated(threshold: float, block: RowBlock) -> Array:
    return np.asarray(softmax.weight_max(block.sums) >= threshold, dtype=np.float64)


_of_pairs = partial(Quantity, "pairs", summaries=("value",), within=NOT_NEGATIVE)
_of_rows = partial(Quantity, "rows")
#: Of the size of a gradient.
_norm = partial(
    _of_rows, within=NOT_NEGATIVE, summaries=SKEWED, grid=DEEP, compared=COMPARED
)
_of_formats = partial(Quantity, "formats", within=SHARE, moments=0.0)


def _at_least(threshold: float) -> str:
    return rf"p_{{\max}} \ge {threshold}"


def _among_saturated(quantity: Quantity, given: str) -> Quantity:
    """Make a quantity of the saturated rows alone."""
    return replace(
        quantity,
        name=f"{quantity.name}_{given}",
        symbol=rf"\left({quantity.symbol} | {_at_least(SATURATED[given])}\right)",
        words=f"{quantity.words}, of rows with ${_at_least(SATURATED[given])}$ alone",
        summaries=TYPICAL,
        compared=(),
        given=given,
    )


_TRACE = _norm(
    "jacobian_trace",
    r"\operatorname{tr} J",
    "trace of the softmax Jacobian",
    lambda b: gradients.jacobian_trace(b.sums),
    within=lambda n: (0.0, 1.0 - 1.0 / n),
)
_FROBENIUS = _norm(
    "jacobian_frobenius",
    r"\lVert J\rVert_F",
    "Frobenius norm of the softmax Jacobian",
    lambda b: gradients.jacobian_frobenius(b.sums),
    within=(0.0, MOST_FROBENIUS),
    compared=(*COMPARED, "median", SHARE_ABOVE),
)
_QUERY = _norm(
    "gradient_query",
    r"\lVert \lambda K^{\top} J v\rVert",
    "norm of the query gradient",
    lambda b: b.gradient_query,
    compared=(*COMPARED, "median"),
    by_query=True,
)

_TABLE = (
    _of_pairs(
        "entry_variance_q",
        r"\operatorname{Var}(q_m)",
        "variance of the entries of a query",
        lambda m, d: m["q2"] - m["q"] ** 2,
    ),
    _of_pairs(
        "entry_variance_k",
        r"\operatorname{Var}(k_m)",
        "variance of the entries of a key",
        lambda m, d: m["k2"] - m["k"] ** 2,
    ),
    _of_pairs(
        "score_mean",
        r"\operatorname{E}(q\cdot k)",
        "mean of the scores, products of a query and a key",
        lambda m, d: m["s"],
        within=ANY,
        moments=3.0,
        degree=1,
    ),
    _of_pairs(
        "score_variance",
        r"\operatorname{Var}(q\cdot k)",
        "variance of the scores over all pairs",
        score_variance,
        degree=2,
    ),
    _of_pairs(
        "score_std",
        r"\operatorname{sd}(q\cdot k)",
        "standard deviation of the scores over all pairs",
        lambda m, d: np.sqrt(score_variance(m, d)),
        degree=1,
    ),
    _of_pairs(
        "score_variance_ratio",
        r"\frac{\operatorname{Var}(q\cdot k)}"
        r"{d_k\operatorname{Var}(q_m)\operatorname{Var}(k_m)}",
        "variance of the scores over what the variances of the entries give",
        _variance_ratio,
    ),
    _of_pairs(
        "score_abs",
        r"\operatorname{E}\lvert q\cdot k\rvert",
        "mean absolute score",
        lambda m, d: m["abs"],
        moments=3.0,
        degree=1,
    ),
    _of_pairs(
        "score_excess_kurtosis",
        r"\kappa(q\cdot k) - 3",
        "excess kurtosis of the scores: how heavy their tails are",
        _excess_kurtosis,
        within=(-2.0, math.inf),
        moments=12.0,
        interval_scale=RECIPROCAL,
    ),
    _of_pairs(
        "score_distribution_gap",
        r"F(x^{\ast}) - \Phi(x^{\ast})",
        "distance of the scores' distribution from the normal one, at one point",
        lambda m, d: m["gap"],
        within=(-GAP_NORMAL, 1.0 - GAP_NORMAL),
        moments=0.0,
    ),
    _of_rows(
        "score_row_variance",
        r"S^2",
        "variance of the scores within a row",
        lambda b: b.variance / b.sums.divisor**2,
        NOT_NEGATIVE,
        grid=FINE,
    ),
    _of_rows(
        "score_max",
        r"s_{\max}",
        "largest score of a row",
        lambda b: b.sums.largest,
        grid=SIGNED,
    ),
    _of_rows(
        "weight_max",
        r"p_{\max}",
        "largest weight of a row",
        lambda b: softmax.weight_max(b.sums),
        lambda n: (1.0 / n, 1.0),
        SKEWED,
        grid=FINE,
    ),
    _of_rows(
        "weight_second",
        r"p_{(2)}",
        "second largest weight of a row",
        lambda b: b.sums.unit,
        (0.0, 0.5),
        grid=DEEP,
    ),
    _of_rows(
        "log_partition",
        r"\ln Z",
        "logarithm of the sum of exponentials of a row",
        lambda b: softmax.log_partition(b.sums),
        grid=SIGNED,
    ),
    _of_rows(
        "entropy",
        "H",
        "entropy of a row of weights, in nats",
        lambda b: b.entropy,
        lambda n: (0.0, math.log(n)),
        grid=FINE,
    ),
    _of_rows(
        "effective_keys",
        "e^H",
        "effective keys of a row: over how many it spreads",
        lambda b: np.exp(b.entropy),
        lambda n: (1.0, n),
        SKEWED,
        grid=FINE,
        compared=COMPARED,
    ),
    _of_rows(
        "inverse_participation",
        r"\sum p^2",
        "sum of the squared weights of a row",
        lambda b: softmax.inverse_participation(b.sums),
        lambda n: (1.0 / n, 1.0),
        grid=FINE,
    ),
    _of_rows(
        "output_variance",
        r"\operatorname{Var}(o_m)",
        "variance of an entry of the output, for independent values of variance $1$",
        lambda b: softmax.inverse_participation(b.sums),
        lambda n: (1.0 / n, 1.0),
        grid=FINE,
    ),
    _of_rows(
        "output_std",
        r"\operatorname{sd}(o_m)",
        "standard deviation of an entry of the output: root of its mean variance",
        lambda b: np.sqrt(softmax.inverse_participation(b.sums)),
        lambda n: (n**-0.5, 1.0),
        root_of="output_variance",
    ),
    _TRACE,
    _FROBENIUS,
    _of_rows(
        "jacobian_frobenius_squared",
        r"\lVert J\rVert_F^2",
        "squared Frobenius norm of the softmax Jacobian",
        lambda b: gradients.jacobian_frobenius_squared(b.sums),
        (0.0, MOST_FROBENIUS**2),
        grid=DEEPER,
    ),
    _norm(
        "jacobian_spectral",
        r"\lVert J\rVert_2",
        "spectral norm of the softmax Jacobian",
        lambda b: gradients.jacobian_spectral(b.spectral),
        within=(0.0, MOST_SPECTRAL),
    ),
    _QUERY,
    _norm(
        "gradient_query_undivided",
        r"\lVert K^{\top} J v\rVert",
        "norm of the query gradient, times the divisor",
        lambda b: b.gradient_query * b.sums.divisor,
        summaries=TYPICAL,
        compared=TYPICAL,
        multiple_of="gradient_query",
        by_query=True,
    ),
    _of_rows(
        "gradient_query_squared",
        r"\lVert \lambda K^{\top} J v\rVert^2",
        "squared norm of the query gradient",
        lambda b: b.gradient_query**2,
        NOT_NEGATIVE,
        grid=DEEPER,
        by_query=True,
    ),
    _of_rows(
        "gradient_key",
        r"\lVert c\,\nabla_k L\rVert",
        "norm of the key gradient, times the divisor",
        lambda b: b.gradient_key,
        NOT_NEGATIVE,
        needs="a mask",
        by_key=True,
    ),
    _of_rows(
        "gradient_value",
        r"\lVert\nabla_v L\rVert",
        "norm of the value gradient",
        lambda b: b.gradient_value,
        NOT_NEGATIVE,
        needs="a mask",
        by_key=True,
    ),
    _of_rows(
        "element_gradient",
        "p(1-p)",
        "derivative of a weight by its own score",
        lambda b: gradients.element_gradient(b.elements),
        (0.0, 0.25),
        SKEWED,
        grid=DEEP,
        needs="no mask",
    ),
    _of_rows(
        "planted_weight",
        r"p_{\ast}",
        "weight of the key that matches the query",
        lambda b: softmax.matching_weight(b.sums, b.matching),
        SHARE,
        SKEWED,
        grid=FINE,
        compared=COMPARED,
        needs="planted keys",
    ),
    _of_rows(
        "planted_rank_first",
        r"\mathbb{1}[p_{\ast} = p_{\max}]",
        "share of rows whose matching key has the largest weight",
        lambda b: softmax.matching_is_largest(b.where),
        SHARE,
        indicator=True,
        compared=MEAN,
        needs="planted keys",
    ),
    _of_rows(
        "entropy_identity",
        r"H - \ln Z + \sigma^2 \operatorname{tr} J",
        "what is left of an identity, for Gaussian keys zero in the mean",
        _entropy_identity,
        needs="gaussian keys",
    ),
    *(
        _of_rows(
            name,
            rf"\mathbb{{1}}[{_at_least(threshold)}]",
            f"share of rows with ${_at_least(threshold)}$",
            partial(_is_saturated, threshold),
            SHARE,
            moments=SHARES,
            indicator=True,
        )
        for name, threshold in SATURATED.items()
    ),
    *(
        _among_saturated(quantity, given)
        for quantity in (_TRACE, _FROBENIUS, _QUERY)
        for given in SATURATED
    ),
    _of_formats(
        "format_overflow",
        r"P_{\infty}",
        "share of rows whose weights overflow in a number format",
        lambda weights, _: number_formats.overflows(weights),
        indicator=True,
    ),
    _of_formats(
        "format_distinct_share",
        r"n_{\ne}/n",
        "number of different weights of a row as a part of its keys",
        lambda weights, _: number_formats.distinct_share(weights),
    ),
    _of_formats(
        "format_error",
        r"\delta",
        "half the sum of the absolute errors of the weights of a row; "
        "$1$ where it overflows",
        number_formats.weight_error,
        within=NOT_NEGATIVE,
    ),
)
QUANTITIES = {q.name: q for q in _TABLE}
PAIR_QUANTITIES = {q.name: q for q in _TABLE if q.of == "pairs"}
ROW_QUANTITIES = {q.name: q for q in _TABLE if q.of == "rows"}
FORMAT_QUANTITIES = {q.name: q for q in _TABLE if q.of == "formats"}


def quantile_level(summary: str) -> float | None:
    """Return the part of the rows below a quantile, None for what is none.

    Examples
    --------
    >>> quantile_level("median"), quantile_level("q99"), quantile_level("mean")
    (0.5, 0.99, None)
    """
    if summary in QUANTILES:
        return QUANTILES[summary]
    found = _PERCENTILE.match(summary)
    percent = float(found[1]) if found else 0.0
    has_one_name = summary == f"q{percent:g}" and percent not in (0.0, 50.0)
    return percent / 100.0 if has_one_name else None


def range_of(
    name: str,
    n_keys: int | None,
    number_format: str = "float64",
    way: str = "shifted",
) -> Range:
    """Return the range of a quantity's values, and so of their means and quantiles.

    Only errors of weights have one that depends on the format and the way of softmax.
    """
    if name == "format_error":
        one = ALL_FORMATS[number_format]
        return 0.0, number_formats.most_weight_error(one, n_keys or 0, way)
    return QUANTITIES[name].range_at(n_keys or 0)


def clip(value: float, within: Range) -> float:
    """Return the value of a range that is nearest to a number; NaN as it is."""
    low, high = within
    return min(max(value, low), high)  # in this order: NaN stays where it comes first


def is_share(name: str) -> bool:
    """Tell whether a quantity is a share, of rows or of a row's keys."""
    return name in QUANTITIES and QUANTITIES[name].within == SHARE

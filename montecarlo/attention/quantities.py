"""The table of quantities that are estimated from sampled attention scores.

A new quantity is one entry in `_TABLE` and, if necessary, a function that evaluates it.
There are three kinds:

pairs
    Functions of moments of the raw scores q·k over all pairs of a block.  For a
    divisor c they are divided by c**degree.
rows
    Functions of one row of scores or weights, evaluated for each divisor.
formats
    Functions of one row of weights that is computed in a number format.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from montecarlo.attention import gradients, number_formats, softmax
from montecarlo.attention.grids import DEEP, DEEPER, FINE, SIGNED, LogGrid
from montecarlo.attention.number_formats import ALL_FORMATS
from montecarlo.attention.rows import RowBlock
from montecarlo.attention.softmax import Array

Range = tuple[float, float]
ANY: Range = (-math.inf, math.inf)
NOT_NEGATIVE: Range = (0.0, math.inf)
#: Of weights, and of shares of rows or keys.
SHARE: Range = (0.0, 1.0)

#: Levels of the quantiles over rows that have a name.
QUANTILES = {"q10": 0.1, "median": 0.5, "q90": 0.9}
#: Names of other quantiles, by their percentage: q99, q0.5.
_PERCENTILE = re.compile(r"q([0-9]{1,2}(?:\.[0-9]{1,3})?)")
#: The summary q90/q10.
QUANTILE_RATIO = "spread"
#: The summary of two divisors: share of the rows under the first with a larger value
#: than the mean under the second.
SHARE_ABOVE = "share_above"
MEAN = ("mean",)
SKEWED = ("mean", "median", "q10", "q90", QUANTILE_RATIO)
TYPICAL = ("mean", "median")
#: Summaries of which ratios between two divisors are estimated.
COMPARED = ("mean", QUANTILE_RATIO)

#: Order of the moment of the entries that has to be finite for an interval: three times
#: the power of a score that is averaged, so that replicates have a skewness.  Weights
#: are bounded, but near uniform they vary like squared scores.
SQUARES = 6.0
#: The same for shares.  If one key is far larger than the others, all rows of a
#: replicate saturate together.  With three finite moments such keys are so rare that
#: intervals missed up to six times as often as stated in simulations.
SHARES = 4.0
#: Thresholds of the largest weight for saturated rows, by name of the indicator.
SATURATED = {"saturated": 0.9, "saturated_99": 0.99, "saturated_999": 0.999}
#: Upper bounds of the norms of a softmax Jacobian J.  Spectral: for a unit vector u,
#: uᵀJu is the variance of u under the weights, at most a quarter of its squared range,
#: which is at most 2.  Frobenius, squared: at most a - a² with a = Σ p², as Σ p³ ≥ a².
MOST_SPECTRAL = MOST_FROBENIUS = 0.5

#: Means over a block of pairs, from which the quantities of pairs are computed: of the
#: entries of q and k, of the scores s and of powers of these; ``gap`` is the share of
#: scores up to `GAP_AT` standard deviations minus `GAP_NORMAL`.
PAIR_MEANS = ("q", "q2", "k", "k2", "s", "abs", "s2", "s3", "s4", "gap")
#: Standardised score x at which the distribution function of a score differs most from
#: the normal one: the positive zero of d/dx [(x³ - 3x) φ(x)] nearest to 0.
GAP_AT = 0.742
GAP_NORMAL = 0.5 * math.erfc(-GAP_AT / math.sqrt(2.0))
Means = Mapping[str, Array]


class Scale(NamedTuple):
    """An increasing function and its inverse."""

    forward: Callable[[Array], Array]
    back: Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Quantity:
    """Definition of a quantity, and its summaries in the tables.

    Attributes
    ----------
    of : {"pairs", "rows", "formats"}
        Kind, as in the docstring of the module.
    name, symbol : str
        Name in the tables; LaTeX.
    words : str
        Description in English, a message that is translated.
    evaluate : callable
        Pairs: (mapping of `PAIR_MEANS` to arrays, d_k) -> array of the same shape.
        Rows: `RowBlock` -> array, shape (n_replicates, n_rows); if ``by_key``, the
        block's contribution to a gradient, shape (n_replicates, n_keys, d_k).
        Formats: (weights in the format, exact weights), both of shape (..., n_keys) ->
        array, shape (...).
    within : (float, float) or callable
        Range of the values; or number of keys -> range.
    summaries : tuple of str
        Summaries in the tables.
    moments : float
        Order up to which moments of the entries have to be finite for an interval.
    indicator : bool
        Whether values are 0 or 1.
    degree : int
        Pairs: power of the divisor by which the value is divided; 0 if the divisor has
        no effect.
    interval_scale : Scale or None
        Scale on which the interval is symmetric, if not that of the quantity.
    grid : LogGrid or None
        Rows: grid for counting values, without which there are no quantiles; see
        `grid_for`.
    compared : tuple of str
        Summaries for which ratios between two divisors are estimated, and
        `SHARE_ABOVE`.
    needs : {"", "gaussian keys", "planted keys", "a mask", "no mask"}
        Points for which the quantity is defined: independent Gaussian keys; key i
        planted for query i; one query for each key; all rows of one length.
    given : str
        Indicator on which a quantity is conditional, under the divisor ``none`` only,
        as under others such rows are rare.  Empty if unconditional.
    multiple_of : str
        Quantity of which this is the divisor times the value; empty for others.
    root_of : str
        Quantity of whose mean this is the square root; empty for others.
    by_key : bool
        Whether there is a value for each key, the norm of a gradient, not for each row.
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
    by_key: bool = False

    def grid_for(self, n_keys: int) -> LogGrid | None:
        """Return the grid for rows of ``n_keys`` keys, with the top of their range.

        Near the top, values are counted by their distance to it, so that nearly uniform
        rows are distinguished as finely as nearly one-hot ones.
        """
        return self.grid and replace(self.grid, top=self.range_at(n_keys)[1])

    def range_at(self, n_keys: int) -> Range:
        """Return the range of the values in rows of ``n_keys`` keys."""
        return self.within(n_keys) if callable(self.within) else self.within

    @property
    def divided(self) -> bool:
        """Whether the value depends on the divisor."""
        return self.of != "pairs" or self.degree != 0

    def divisor(self, name: str) -> str:
        """Return the divisor in the key of a table row: ``none`` if it has no effect.

        Ratios of two divisors stay as they are.
        """
        return name if "/" in name or (self.divided and not self.given) else "none"


def score_variance(means: Means, d_k: int) -> Array:
    """Return E s² - (E s)² for the raw scores s."""
    return means["s2"] - means["s"] ** 2


def _variance_ratio(means: Means, d_k: int) -> Array:
    """Return Var(s)/(d_k Var(q_m) Var(k_m)), all from the same draws."""
    entries = (means["q2"] - means["q"] ** 2) * (means["k2"] - means["k"] ** 2)
    return score_variance(means, d_k) / (d_k * entries)


def _excess_kurtosis(means: Means, d_k: int) -> Array:
    """Return the excess kurtosis of the scores, -2 or more."""
    mean, second = means["s"], means["s2"]
    fourth = means["s4"] - 4 * mean * means["s3"] + 6 * mean**2 * second - 3 * mean**4
    return fourth / score_variance(means, d_k) ** 2 - 3.0


def _from_reciprocal(reciprocal: Array) -> Array:
    """Return the excess kurtosis for -1/kurtosis; infinite from 0 on."""
    with np.errstate(divide="ignore"):
        kurtosis = -1.0 / np.asarray(reciprocal)
    return np.where(reciprocal < 0.0, kurtosis, np.inf) - 3.0


#: If a few large scores dominate the fourth moment, replicates without one have a small
#: kurtosis and also a small standard error.  The reciprocal has no such dependence.
RECIPROCAL = Scale(lambda excess: -1.0 / (excess + 3.0), _from_reciprocal)


def _entropy_identity(block: RowBlock) -> Array:
    """Return H - ln Z + s² tr J with s = |q|/divisor, which has expectation 0.

    This holds for standard normal keys at every n and d_k.  Integration by parts
    conditional on q gives E Σ p x = s² E Σ p (1 - p) for the divided scores x, and
    H = ln Z - Σ p x.
    """
    scale = block.scores.squared_norm / block.divisor**2
    residual = block.entropy - softmax.log_partition(block.sums)
    return residual + scale * gradients.jacobian_trace(block.sums)


def _is_saturated(threshold: float, block: RowBlock) -> Array:
    """Return 1 for rows with a weight of at least ``threshold``, else 0."""
    return np.asarray(softmax.weight_max(block.sums) >= threshold, dtype=np.float64)


_of_pairs = partial(Quantity, "pairs", summaries=("value",), within=NOT_NEGATIVE)
_of_rows = partial(Quantity, "rows")
#: Values that are counted on the fine grid.
_counted = partial(_of_rows, grid=FINE)
#: Norms of gradients and Jacobians.
_norm = partial(
    _of_rows, within=NOT_NEGATIVE, summaries=SKEWED, grid=DEEP, compared=COMPARED
)
_of_formats = partial(Quantity, "formats", within=SHARE, moments=0.0)


def _at_least(threshold: float) -> str:
    """Return LaTeX for a largest weight of at least ``threshold``."""
    return rf"p_{{\max}} \ge {threshold}"


def _among_saturated(quantity: Quantity, given: str) -> Quantity:
    """Return a quantity conditional on an indicator of `SATURATED`."""
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
    _counted(
        "score_row_variance",
        r"S^2",
        "variance of the scores within a row",
        lambda b: b.scores.gaps.variance / b.divisor**2,
        NOT_NEGATIVE,
    ),
    _of_rows(
        "score_max",
        r"s_{\max}",
        "largest score of a row",
        lambda b: b.sums.largest,
        grid=SIGNED,
    ),
    _counted(
        "weight_max",
        r"p_{\max}",
        "largest weight of a row",
        lambda b: softmax.weight_max(b.sums),
        lambda n: (1.0 / n, 1.0),
        SKEWED,
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
    _counted(
        "entropy",
        "H",
        "entropy of a row of weights, in nats",
        lambda b: b.entropy,
        lambda n: (0.0, math.log(n)),
    ),
    _counted(
        "effective_keys",
        "e^H",
        "effective keys of a row: over how many it spreads",
        lambda b: np.exp(b.entropy),
        lambda n: (1.0, n),
        SKEWED,
        compared=COMPARED,
    ),
    _counted(
        "inverse_participation",
        r"\sum p^2",
        "sum of the squared weights of a row",
        lambda b: softmax.inverse_participation(b.sums),
        lambda n: (1.0 / n, 1.0),
    ),
    _counted(
        "output_variance",
        r"\operatorname{Var}(o_m)",
        "variance of an entry of the output, for independent values of variance $1$",
        lambda b: softmax.inverse_participation(b.sums),
        lambda n: (1.0 / n, 1.0),
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
        lambda b: b.jacobian_spectral,
        within=(0.0, MOST_SPECTRAL),
    ),
    _QUERY,
    _norm(
        "gradient_query_undivided",
        r"\lVert K^{\top} J v\rVert",
        "norm of the query gradient, times the divisor",
        lambda b: b.gradient_query * b.divisor,
        summaries=TYPICAL,
        compared=TYPICAL,
        multiple_of="gradient_query",
    ),
    _of_rows(
        "gradient_query_squared",
        r"\lVert \lambda K^{\top} J v\rVert^2",
        "squared norm of the query gradient",
        lambda b: b.gradient_query**2,
        NOT_NEGATIVE,
        grid=DEEPER,
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
        lambda b: b.element_gradient,
        (0.0, 0.25),
        SKEWED,
        grid=DEEP,
        needs="no mask",
    ),
    _counted(
        "planted_weight",
        r"p_{\ast}",
        "weight of the key that matches the query",
        lambda b: b.matching_weight,
        SHARE,
        SKEWED,
        compared=COMPARED,
        needs="planted keys",
    ),
    _of_rows(
        "planted_rank_first",
        r"\mathbb{1}[p_{\ast} = p_{\max}]",
        "share of rows whose matching key has the largest weight",
        lambda b: b.matching_is_largest,
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
    """Return the level of a quantile from its name, or None for other summaries.

    Examples
    --------
    >>> quantile_level("median"), quantile_level("q99"), quantile_level("mean")
    (0.5, 0.99, None)
    """
    if summary in QUANTILES:
        return QUANTILES[summary]
    match = _PERCENTILE.fullmatch(summary)
    percent = float(match[1]) if match else 0.0
    has_one_name = summary == f"q{percent:g}" and percent not in (0.0, 50.0)
    return percent / 100.0 if has_one_name else None


def range_of(
    name: str,
    n_keys: int | None,
    number_format: str = "float64",
    way: str = "shifted",
) -> Range:
    """Return the range of a quantity, which its means and quantiles share.

    Parameters
    ----------
    name : str
        A key of `QUANTITIES`.
    n_keys : int or None
        Number of keys of a row; None for pairs.
    number_format, way : str
        Keys of `ALL_FORMATS` and `SOFTMAXES`; only the range of ``format_error``
        depends on them.
    """
    if name == "format_error":
        one = ALL_FORMATS[number_format]
        return 0.0, number_formats.most_weight_error(one, n_keys or 0, way)
    return QUANTITIES[name].range_at(n_keys or 0)


def clip(value: float, within: Range) -> float:
    """Return the number in a range that is nearest to ``value``; NaN stays NaN."""
    low, high = within
    return min(max(value, low), high)  # in this order, NaN is returned


def is_share(name: str) -> bool:
    """Return whether a quantity is a share, of rows or of keys, from 0 to 1."""
    return name in QUANTITIES and QUANTITIES[name].within == SHARE

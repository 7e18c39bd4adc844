"""The table of quantities that are estimated from sampled attention scores.

A new quantity is one function with a decorator that states its kind, its symbol and its
summaries.  The name of the function is that of the quantity, and the first line of its
docstring is the description that tables and pages show, a message that is translated;
what stands below it is for readers of the code.  The decorated name is then a
`Quantity`, no function: its values are ``entropy.evaluate(block)``.  There are three
kinds:

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
from typing import Any, Literal, NamedTuple

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
#: Other spellings of summaries, which users may type -> name.
SPELLINGS = {"q50": "median"}
#: Names of other quantiles, by their percentage: q99, q2.5.  Below 1 there are none,
#: since q0.99 would be typed for q99.
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

#: Means over the pairs of a replicate, from which the quantities of pairs are computed:
#: of the entries of q and k and of their squares, of the scores s = q·k, of |s| and of
#: powers of s; ``gap`` is the share of scores up to `GAP_AT` standard deviations minus
#: `GAP_NORMAL`.
PAIR_MEANS = ("q", "q2", "k", "k2", "s", "abs", "s2", "s3", "s4", "gap")
#: Standardised score x at which the distribution function of a score differs most from
#: the normal one: the positive zero of d/dx [(x³ - 3x) φ(x)] nearest to 0.
GAP_AT = 0.742
GAP_NORMAL = 0.5 * math.erfc(-GAP_AT / math.sqrt(2.0))
#: Arrays of one shape by their names in `PAIR_MEANS`: one value for each replicate, or
#: for each set of replicates that they are means over.
PairMeans = Mapping[str, Array]


class Scale(NamedTuple):
    """A transformation for intervals: an increasing function and its inverse.

    On the transformed scale an interval is symmetric; ``back`` maps its ends back.
    """

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
        """Return the grid on which values of rows of ``n_keys`` keys are counted.

        Its top is the upper end of the range of the quantity.  Near the top, values are
        counted by their distance to it: nearly uniform rows are then distinguished as
        finely as nearly one-hot rows.  None for a quantity without quantiles.
        """
        return self.grid and replace(self.grid, top=self.range_at(n_keys)[1])

    def range_at(self, n_keys: int) -> Range:
        """Return the smallest and the largest possible value for ``n_keys`` keys."""
        return self.within(n_keys) if callable(self.within) else self.within

    @property
    def divided(self) -> bool:
        """Whether the value depends on the divisor of the scores."""
        return self.of != "pairs" or self.degree != 0

    def divisor(self, name: str) -> str:
        """Return the name of the divisor under which tables list this quantity.

        It is ``name``, the divisor that is asked for, with two exceptions: it is
        ``none`` if no divisor changes the value, or if the quantity is conditional.
        They do not apply to a ratio of two divisors, such as ``none/sqrt``.
        """
        return name if "/" in name or (self.divided and not self.given) else "none"


_TABLE: list[Quantity] = []


def _quantity(
    of: Literal["pairs", "rows", "formats"], symbol: str, /, **fields: Any
) -> Callable[[Callable[..., Array]], Quantity]:
    """Return a decorator that makes a function a quantity and adds it to the table.

    ``of`` is the kind of quantity, ``symbol`` is LaTeX, and other ``fields`` are those
    of `Quantity`.  The quantity has the name of the function.

    Its words are ``words``, or else the first line of the function's docstring, without
    the full stop.  The first letter of this line becomes small if the second character
    is a small letter: KL stays, but a name such as Frobenius needs ``words``.
    """

    def add(function: Callable[..., Array]) -> Quantity:
        """Make a function a `Quantity`, add it to `_TABLE`, and return it.

        The quantity takes the place of the function.
        """
        name, summary = function.__name__, (function.__doc__ or "").partition("\n")[0]
        summary = summary.removesuffix(".")
        if summary[1:2].islower():  # a word, and no name such as KL or Q
            summary = summary[0].lower() + summary[1:]
        words = fields.pop("words", summary)
        _TABLE.append(Quantity(of, name, symbol, words, function, **fields))
        return _TABLE[-1]

    return add


_pairs = partial(_quantity, "pairs", summaries=("value",), within=NOT_NEGATIVE)
_rows = partial(_quantity, "rows")
#: Norms of gradients and Jacobians.
_norm = partial(
    _rows, within=NOT_NEGATIVE, summaries=SKEWED, grid=DEEP, compared=COMPARED
)
_formats = partial(_quantity, "formats", within=SHARE, moments=0.0)


def _variance(means: PairMeans, variable: str) -> Array:
    """Return the variance of the entries of q or k, or of the scores s.

    ``variable`` is ``"q"``, ``"k"`` or ``"s"``.  The result is the mean square minus
    the squared mean: for ``"q"``, ``means["q2"] - means["q"]**2``.  It has the shape of
    the arrays in ``means``.
    """
    return means[f"{variable}2"] - means[variable] ** 2


@_pairs(r"\operatorname{Var}(q_m)")
def entry_variance_q(means: PairMeans, d_k: int) -> Array:
    """Variance of the entries of a query.

    An array of the shape of those in ``means``.
    """
    return _variance(means, "q")


@_pairs(r"\operatorname{Var}(k_m)")
def entry_variance_k(means: PairMeans, d_k: int) -> Array:
    """Variance of the entries of a key.

    An array of the shape of those in ``means``.
    """
    return _variance(means, "k")


@_pairs(r"\operatorname{E}(q\cdot k)", within=ANY, moments=3.0, degree=1)
def score_mean(means: PairMeans, d_k: int) -> Array:
    """Mean of the scores, products of a query and a key.

    An array of the shape of those in ``means``, before division by a divisor.
    """
    return means["s"]


@_pairs(r"\operatorname{Var}(q\cdot k)", degree=2)
def score_variance(means: PairMeans, d_k: int) -> Array:
    """Variance of the scores over all pairs.

    ``means["s2"] - means["s"]**2``, before division by the square of a divisor: an
    array of the shape of those in ``means``.  ``d_k`` is not used.
    """
    return _variance(means, "s")


@_pairs(r"\operatorname{sd}(q\cdot k)", degree=1)
def score_std(means: PairMeans, d_k: int) -> Array:
    """Standard deviation of the scores over all pairs.

    An array of the shape of those in ``means``, before division by a divisor.
    """
    return np.sqrt(_variance(means, "s"))


@_pairs(
    r"\frac{\operatorname{Var}(q\cdot k)}"
    r"{d_k\operatorname{Var}(q_m)\operatorname{Var}(k_m)}"
)
def score_variance_ratio(means: PairMeans, d_k: int) -> Array:
    """Variance of the scores over what the variances of the entries give.

    Var(q·k) / (d_k Var(q_m) Var(k_m)): 1 where entries are independent and centred.  An
    array of the shape of those in ``means``.
    """
    entries = _variance(means, "q") * _variance(means, "k")
    return _variance(means, "s") / (d_k * entries)


@_pairs(r"\operatorname{E}\lvert q\cdot k\rvert", moments=3.0, degree=1)
def score_abs(means: PairMeans, d_k: int) -> Array:
    """Mean absolute score.

    E|q·k|, before division by a divisor: an array of the shape of those in ``means``.
    """
    return means["abs"]


def _from_reciprocal(reciprocal: Array) -> Array:
    """Return the excess kurtosis k with -1/(k + 3) = ``reciprocal``.

    It is infinite where ``reciprocal`` is 0 or more.
    """
    with np.errstate(divide="ignore"):
        kurtosis = -1.0 / np.asarray(reciprocal)
    return np.where(reciprocal < 0.0, kurtosis, np.inf) - 3.0


#: If a few large scores dominate the fourth moment, replicates without one have a small
#: kurtosis and also a small standard error.  The reciprocal has no such dependence.
RECIPROCAL = Scale(lambda excess: -1.0 / (excess + 3.0), _from_reciprocal)


@_pairs(
    r"\kappa(q\cdot k) - 3",
    within=(-2.0, math.inf),
    moments=12.0,
    interval_scale=RECIPROCAL,
)
def score_excess_kurtosis(means: PairMeans, d_k: int) -> Array:
    """Excess kurtosis of the scores: how heavy their tails are.

    0 for normal scores, at least -2; an array of the shape of those in ``means``.
    """
    mean, second = means["s"], means["s2"]
    fourth = means["s4"] - 4 * mean * means["s3"] + 6 * mean**2 * second - 3 * mean**4
    return fourth / _variance(means, "s") ** 2 - 3.0


@_pairs(
    r"F(x^{\ast}) - \Phi(x^{\ast})",
    within=(-GAP_NORMAL, 1.0 - GAP_NORMAL),
    moments=0.0,
)
def score_distribution_gap(means: PairMeans, d_k: int) -> Array:
    """Distance of the scores' distribution from the normal one, at one point.

    F(x) - Φ(x) at x = `GAP_AT`, for the distribution function F of the standardised
    scores.  An array of the shape of those in ``means``.
    """
    return means["gap"]


@_rows(r"S^2", within=NOT_NEGATIVE, grid=FINE)
def score_row_variance(block: RowBlock) -> Array:
    """Variance of the scores within a row.

    Scores are divided, and the denominator is n - 1.  Shape (n_replicates, n_rows).
    """
    return block.scores.gaps.variance / block.divisor**2


@_rows(r"s_{\max}", grid=SIGNED)
def score_max(block: RowBlock) -> Array:
    """Largest score of a row.

    Scores are divided.  Shape (n_replicates, n_rows).
    """
    return block.sums.largest


@_rows(r"p_{\max}", within=lambda n: (1.0 / n, 1.0), summaries=SKEWED, grid=FINE)
def weight_max(block: RowBlock) -> Array:
    """Largest weight of a row.

    Shape (n_replicates, n_rows).
    """
    return softmax.weight_max(block.sums)


@_rows(r"p_{(2)}", within=(0.0, 0.5), grid=DEEP)
def weight_second(block: RowBlock) -> Array:
    """Second largest weight of a row.

    Shape (n_replicates, n_rows).
    """
    return block.sums.unit


@_rows(r"\ln Z", grid=SIGNED)
def log_partition(block: RowBlock) -> Array:
    """Logarithm of the sum of exponentials of a row.

    The natural logarithm, of divided scores; shape (n_replicates, n_rows).
    """
    return softmax.log_partition(block.sums)


@_rows("H", within=lambda n: (0.0, math.log(n)), grid=FINE)
def entropy(block: RowBlock) -> Array:
    """Entropy of a row of weights, in nats.

    Shape (n_replicates, n_rows).
    """
    return block.entropy


@_rows(
    "e^H",
    within=lambda n: (1.0, n),
    summaries=SKEWED,
    grid=FINE,
    compared=COMPARED,
)
def effective_keys(block: RowBlock) -> Array:
    """Effective keys of a row: over how many it spreads.

    The exponential of the entropy, from 1 to n; shape (n_replicates, n_rows).
    """
    return np.exp(block.entropy)


@_rows(r"\sum p^2", within=lambda n: (1.0 / n, 1.0), grid=FINE)
def inverse_participation(block: RowBlock) -> Array:
    """Sum of the squared weights of a row.

    From 1/n for a uniform row to 1; shape (n_replicates, n_rows).
    """
    return softmax.inverse_participation(block.sums)


@_rows(r"\operatorname{Var}(o_m)", within=lambda n: (1.0 / n, 1.0), grid=FINE)
def output_variance(block: RowBlock) -> Array:
    """Variance of an entry of the output, for independent values of variance $1$.

    It is the sum of the squared weights of a row; shape (n_replicates, n_rows).
    """
    return softmax.inverse_participation(block.sums)


@_rows(
    r"\operatorname{sd}(o_m)",
    within=lambda n: (n**-0.5, 1.0),
    root_of="output_variance",
)
def output_std(block: RowBlock) -> Array:
    """Standard deviation of an entry of the output: root of its mean variance.

    This returns sqrt(Σ p²) of each row, shape (n_replicates, n_rows), where Σ p² is
    `output_variance`.  Tables do not average it: their mean is the root of the mean of
    `output_variance` (``root_of``).
    """
    return np.sqrt(softmax.inverse_participation(block.sums))


@_norm(r"\operatorname{tr} J", within=lambda n: (0.0, 1.0 - 1.0 / n))
def jacobian_trace(block: RowBlock) -> Array:
    """Trace of the softmax Jacobian.

    1 - Σ p² for each row, shape (n_replicates, n_rows).
    """
    return gradients.jacobian_trace(block.sums)


@_norm(
    r"\lVert J\rVert_F",
    words="Frobenius norm of the softmax Jacobian",
    within=(0.0, MOST_FROBENIUS),
    compared=(*COMPARED, "median", SHARE_ABOVE),
)
def jacobian_frobenius(block: RowBlock) -> Array:
    """Return the Frobenius norm of J for each row, shape (n_replicates, n_rows)."""
    return gradients.jacobian_frobenius(block.sums)


@_rows(r"\lVert J\rVert_F^2", within=(0.0, MOST_FROBENIUS**2), grid=DEEPER)
def jacobian_frobenius_squared(block: RowBlock) -> Array:
    """Squared Frobenius norm of the softmax Jacobian.

    Shape (n_replicates, n_rows).
    """
    return gradients.jacobian_frobenius_squared(block.sums)


@_norm(r"\lVert J\rVert_2", within=(0.0, MOST_SPECTRAL))
def jacobian_spectral(block: RowBlock) -> Array:
    """Spectral norm of the softmax Jacobian.

    Its largest eigenvalue, shape (n_replicates, n_rows).  Without a mask it is computed
    for the first `n_costly_rows` rows only.
    """
    return block.jacobian_spectral


@_norm(
    r"\lVert \lambda K^{\top} J v\rVert",
    compared=(*COMPARED, "median"),
)
def gradient_query(block: RowBlock) -> Array:
    """Norm of the query gradient.

    The gradient is that of v·p with respect to the query of each row.  p are the
    weights of the row, and v is `ScoreBlock.weight_gradient`, a random number for each
    key.  Shape (n_replicates, n_rows); without a mask only for the first `n_query_rows`
    rows.
    """
    return block.gradient_query


@_norm(
    r"\lVert K^{\top} J v\rVert",
    summaries=TYPICAL,
    compared=TYPICAL,
    multiple_of="gradient_query",
)
def gradient_query_undivided(block: RowBlock) -> Array:
    """Norm of the query gradient, times the divisor.

    Shape (n_replicates, n_rows), for the rows of `gradient_query`.
    """
    return block.gradient_query * block.divisor


@_rows(
    r"\lVert \lambda K^{\top} J v\rVert^2",
    within=NOT_NEGATIVE,
    grid=DEEPER,
)
def gradient_query_squared(block: RowBlock) -> Array:
    """Squared norm of the query gradient.

    Shape (n_replicates, n_rows), for the rows of `gradient_query`.
    """
    return block.gradient_query**2


_by_key = partial(_rows, within=NOT_NEGATIVE, needs="a mask", by_key=True)


@_by_key(r"\lVert c\,\nabla_k L\rVert")
def gradient_key(block: RowBlock) -> Array:
    """Norm of the key gradient, times the divisor.

    Returned is not the norm but the gradient, from the queries of this block only, with
    the shape (n_replicates, n_keys, d_k).  Blocks are added up before the norms are
    taken.
    """
    return block.gradient_key


@_by_key(r"\lVert\nabla_v L\rVert")
def gradient_value(block: RowBlock) -> Array:
    """Norm of the value gradient.

    Returned is not the norm but the gradient, from the queries of this block only, with
    the shape (n_replicates, n_keys, d_k).  Blocks are added up before the norms are
    taken.
    """
    return block.gradient_value


@_rows(
    "p(1-p)",
    within=(0.0, 0.25),
    summaries=SKEWED,
    grid=DEEP,
    needs="no mask",
)
def element_gradient(block: RowBlock) -> Array:
    """Derivative of a weight by its own score.

    p(1 - p) for each weight p of the first `n_costly_rows` rows: shape (n_replicates,
    n_rows * n_keys).
    """
    return block.element_gradient


_planted = partial(_rows, within=SHARE, needs="planted keys")


@_planted(r"p_{\ast}", summaries=SKEWED, grid=FINE, compared=COMPARED)
def planted_weight(block: RowBlock) -> Array:
    """Weight of the key that matches the query.

    From 0 to 1; shape (n_replicates, n_rows).
    """
    return block.matching_weight


@_planted(r"\mathbb{1}[p_{\ast} = p_{\max}]", indicator=True, compared=MEAN)
def planted_rank_first(block: RowBlock) -> Array:
    """Share of rows whose matching key has the largest weight.

    Returned is 1.0 for each such row, else 0.0; shape (n_replicates, n_rows).
    """
    return block.matching_is_largest


# For standard normal keys, H - ln Z + s² tr J with s = |q|/divisor has expectation 0 at
# every n and d_k: with the divided scores x, H = ln Z - Σ p x, and integration by parts
# conditional on q gives E Σ p x = s² E Σ p (1 - p).
@_rows(r"H - \ln Z + \sigma^2 \operatorname{tr} J", needs="gaussian keys")
def entropy_identity(block: RowBlock) -> Array:
    """What is left of an identity, for Gaussian keys zero in the mean.

    H - ln Z + σ² tr J, with σ = |q| / divisor, for each row; shape (n_replicates,
    n_rows).
    """
    scale = block.scores.squared_norm / block.divisor**2
    residual = block.entropy - softmax.log_partition(block.sums)
    return residual + scale * gradients.jacobian_trace(block.sums)


def _is_saturated(threshold: float, block: RowBlock) -> Array:
    """Return 1.0 for each row whose largest weight is at least ``threshold``, else 0.0.

    Shape (n_replicates, n_rows).
    """
    return np.asarray(softmax.weight_max(block.sums) >= threshold, dtype=np.float64)


def _at_least(threshold: float) -> str:
    r"""Return the LaTeX of a condition on the largest weight: ``p_{\max} \ge 0.9``."""
    return rf"p_{{\max}} \ge {threshold}"


_TABLE += [
    Quantity(
        "rows",
        name,
        rf"\mathbb{{1}}[{_at_least(threshold)}]",
        f"share of rows with ${_at_least(threshold)}$",
        partial(_is_saturated, threshold),
        SHARE,
        moments=SHARES,
        indicator=True,
    )
    for name, threshold in SATURATED.items()
]
# conditional on an indicator of saturated rows
_TABLE += [
    replace(
        quantity,
        name=f"{quantity.name}_{given}",
        symbol=rf"\left({quantity.symbol} | {_at_least(threshold)}\right)",
        words=f"{quantity.words}, of rows with ${_at_least(threshold)}$ alone",
        summaries=TYPICAL,
        compared=(),
        given=given,
    )
    for quantity in (jacobian_trace, jacobian_frobenius, gradient_query)
    for given, threshold in SATURATED.items()
]


@_formats(r"P_{\infty}", indicator=True)
def format_overflow(weights: Array, exact: Array) -> Array:
    """Share of rows whose weights overflow in a number format.

    Returned is 1.0 for each such row, else 0.0; shape (...), for weights of shape
    (..., n_keys).
    """
    return number_formats.overflows(weights)


@_formats(r"n_{\ne}/n")
def format_distinct_share(weights: Array, exact: Array) -> Array:
    """Number of different weights of a row as a part of its keys.

    From 1/n to 1; shape (...), for weights of shape (..., n_keys).  Weights that are
    not finite count as 0.  ``exact`` is not used.
    """
    return number_formats.distinct_share(weights)


@_formats(
    r"\delta",
    words="half the sum of the absolute errors of the weights of a row; "
    "$1$ where it overflows",
    within=NOT_NEGATIVE,
)
def format_error(weights: Array, exact: Array) -> Array:
    """Return half the sum of the absolute errors of the weights, 1 on overflow.

    Shape (...), for weights and exact weights of shape (..., n_keys).  It may exceed 1:
    see `number_formats.weight_error`.
    """
    return number_formats.weight_error(weights, exact)


#: All quantities by name, and those of each kind.
QUANTITIES = {one.name: one for one in _TABLE}
PAIR_QUANTITIES = {one.name: one for one in _TABLE if one.of == "pairs"}
ROW_QUANTITIES = {one.name: one for one in _TABLE if one.of == "rows"}
FORMAT_QUANTITIES = {one.name: one for one in _TABLE if one.of == "formats"}


def quantile_level(summary: str) -> float | None:
    """Return the level in (0, 1) of a named quantile; None for other summaries.

    Each quantile has a single name.  Other spellings give None, too: ``q50`` for
    ``median``, ``q05`` or ``q5.0`` for ``q5``; and so do percentages below 1.

    Examples
    --------
    >>> quantile_level("median"), quantile_level("q99"), quantile_level("mean")
    (0.5, 0.99, None)
    """
    if summary in QUANTILES:
        return QUANTILES[summary]
    match = _PERCENTILE.fullmatch(summary)
    percent = float(match[1]) if match else 0.0
    has_one_name = summary == f"q{percent:g}" and percent >= 1.0 and percent != 50.0
    return percent / 100.0 if has_one_name else None


def range_of(
    name: str,
    n_keys: int | None,
    number_format: str = "float64",
    way: str = "shifted",
) -> Range:
    """Return (smallest, largest) possible value of a quantity.

    Ends may be infinite.  Means and quantiles over rows are within the same range.

    Parameters
    ----------
    name : str
        A key of `QUANTITIES`.
    n_keys : int or None
        Number of keys of a row.  None for quantities of pairs of a query and a key,
        whose range does not depend on it.
    number_format, way : str
        Keys of `ALL_FORMATS` and `SOFTMAXES`.  Only the range of ``format_error``
        depends on them.
    """
    if name == "format_error":
        one = ALL_FORMATS[number_format]
        return 0.0, number_formats.most_weight_error(one, n_keys or 0, way)
    return QUANTITIES[name].range_at(n_keys or 0)


def clip(value: float, within: Range) -> float:
    """Return ``value``, or the nearer end of the range if it is outside; NaN stays."""
    low, high = within
    return min(max(value, low), high)  # in this order, NaN is returned


def is_share(name: str) -> bool:
    """Return whether the range of a quantity is 0 to 1, whatever the number of keys.

    False for unknown names.
    """
    return name in QUANTITIES and QUANTITIES[name].within == SHARE

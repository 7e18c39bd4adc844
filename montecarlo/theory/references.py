"""The table of references: what theory gives exactly for a quantity in a point.

In: a point and the name of a divisor.  Out: value and numerical error, or None
where no exact value is known.  A new reference is one entry in `REFERENCES`.
"""

import csv
import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

from montecarlo.attention.divisors import parse_divisor
from montecarlo.attention.masks import NO_MASK, Mask
from montecarlo.attention.quantities import ENDS
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.distributions import DISTRIBUTIONS, Distribution
from montecarlo.theory import moments
from montecarlo.theory.masked_rows import ALONE, mean_over_mask
from montecarlo.theory.row_expectations import (
    expect_binomial,
    expect_fixed_length,
    expect_gaussian_length,
)
from montecarlo.theory.row_integrals import (
    MOST_LOG_KEYS,
    ROW_NAMES,
    Expectations,
    Reference,
)
from montecarlo.theory.score_distribution import distribution_gap, expected_maximum
from montecarlo.theory.weight_distribution import (
    LONE,
    quantile_of_queries,
    share_at,
    share_of_queries,
)

Find = Callable[[DesignPoint, str], Reference | None]
#: (distribution of q, distribution of k, d_k) -> value for undivided scores, or None.
ClosedForm = Callable[[Distribution, Distribution, int], float | None]

#: Relative rounding of the closed forms; that of Γ(x + 1/2)/Γ(x) is the largest.
ROUNDING, GAMMA_ROUNDING = 1e-15, 2e-12
#: Relative error of the quadratures of `score_distribution`, and absolute one of a gap.
QUADRATURE = 1e-9
#: Where `score_distribution_gap` looks; written down a second time, for a reference
#: must not share a mistake of `attention`.
GAP_AT = 0.742
#: Largest weights from which on rows count as saturated: again a second time.
SATURATED = {"saturated": 0.9, "saturated_99": 0.99, "saturated_999": 0.999}
#: Summaries that are expectations.
SUMMARIES = ("mean", "value")
#: Quantiles: once more a second time.
_PERCENTILE = re.compile(r"q([0-9]+(?:\.[0-9]+)?)\Z")
#: Quantiles of the largest weight: made by `studies.quantiles`.
QUANTILES = Path(__file__).with_name("quantiles.csv")
#: The grids grow with the standard deviation of the scores; nobody asks for more.
MOST_STD = 4096.0


def reference(
    quantity: str, point: DesignPoint, divisor: str, summary: str
) -> Reference | None:
    """Return the exact value of a quantity.

    Parameters
    ----------
    quantity : str
        A name in `montecarlo.attention.quantities.QUANTITIES`.
    point : DesignPoint
    divisor : str
        As `montecarlo.attention.divisors.name_divisor` names it.
    summary : str
        ``mean``, ``value``, ``median``, ``q10`` or ``q90``.

    Returns
    -------
    Reference or None
        None where no exact value is known: for quantiles but those of the largest
        weight, below 1/2 in the points of a table alone (elsewhere one takes seconds:
        `largest_weight_quantile`), quantities that are not in `REFERENCES`,
        distributions that it has no answer for, and normalised queries and keys.

    Notes
    -----
    A ratio of divisors is one of expectations, as its estimate is.
    """
    if point.is_normalised:
        return None
    if point.is_masked:
        return _masked_reference(quantity, point, divisor, summary)
    percent = _PERCENTILE.match("q50" if summary == "median" else summary)
    if quantity == "weight_max" and percent:
        return _largest_quantile(point, divisor, float(percent[1]) / 100.0)
    find = REFERENCES.get(quantity)
    if summary not in SUMMARIES or find is None:
        return None
    over, *unders = [find(point, one) for one in divisor.split("/")]
    return _ratio(over, unders[0]) if unders else over


def _ratio(over: Reference | None, under: Reference | None) -> Reference | None:
    """Divide expectations; None where one is not known, or is 0."""
    if over is None or under is None or not over.value or not under.value:
        return None
    ratio = over.value / under.value
    error = over.error / abs(over.value) + under.error / abs(under.value)
    return Reference(ratio, error * abs(ratio))


#: Values of a row of one key, whatever its score is.
OF_ONE_KEY = {
    **dict.fromkeys(("entropy", "score_row_variance", "jacobian_trace"), 0.0),
    "jacobian_frobenius_squared": 0.0,
    **dict.fromkeys(("weight_max", "inverse_participation"), 1.0),
    **dict.fromkeys(("output_variance", "output_std"), 1.0),
}
#: Of what the mean over the rows of a mask is known.
OF_MASKS = {*ROW_NAMES, *OF_ONE_KEY, "entropy_identity"}


def _masked_reference(
    quantity: str, point: DesignPoint, divisor: str, summary: str
) -> Reference | None:
    """Return what `reference` does, of a point with a mask.

    A row of one length is that of a point without a mask.
    """
    n_keys, longest = point.shape[1], point.mask.width or point.shape[1]
    if point.mask.is_causal and summary not in ENDS:
        find = REFERENCES.get(quantity)
        known = summary in SUMMARIES and quantity in OF_MASKS and "/" not in divisor
        return find(point, divisor) if find and known else None
    if point.mask.is_causal and (summary == "first" or longest == 1):
        value = OF_ONE_KEY.get(quantity)
        return None if value is None else Reference(value, 0.0)
    # the divisor is that of all keys, also where the last query sees fewer
    numbers = (repr(_divisor_value(one, point)) for one in divisor.split("/"))
    row = replace(point, mask=NO_MASK, n_keys=min(longest, n_keys))
    of_row = "mean" if summary in ENDS else summary
    return reference(quantity, row, "/".join(numbers), of_row)


def _divisor_value(divisor: str, point: DesignPoint) -> float:
    return parse_divisor(divisor).value(point.d_k, point.n_keys)


def expect_row(point: DesignPoint, divisor: str) -> Expectations | None:
    """Return the expectations of `ROW_NAMES` over a row, None where not known.

    Notes
    -----
    Queries must have mean 0.  A mean of the keys shifts a row by q·m_k, of mean 0.
    """
    scale = _scale_of(point, divisor)
    if scale is None:
        return None
    _, n_keys = point.shape
    expect: Callable[[int, float, float], Expectations]
    match _families(point):
        case "gaussian", "gaussian":
            expect = expect_gaussian_length
        case "rademacher", "gaussian":
            expect = expect_fixed_length
        case "rademacher", "rademacher" if not point.is_masked:
            return expect_binomial(point.d_k, n_keys, scale)
        case _:
            return None
    if point.is_masked:
        return _expect_masked(expect, point.d_k, n_keys, scale, point.mask)
    return expect(point.d_k, n_keys, scale)


@lru_cache(maxsize=1024)
def _expect_masked(
    expect: Callable[[int, float, float], Expectations],
    d_k: int,
    n_keys: int,
    scale: float,
    mask: Mask,
) -> Expectations:
    """Average the expectations over the rows of a mask."""

    def of_length(length: float) -> Expectations:
        return expect(d_k, length, scale)

    return mean_over_mask(of_length, ALONE, n_keys, mask)


def _families(point: DesignPoint) -> tuple[str, str]:
    return point.distribution_q.family, point.distribution_k.family


def _scale_of(point: DesignPoint, divisor: str) -> float | None:
    """Return what q·k of unit entries is multiplied by; None: no row of that is known.

    Queries must have mean 0, and scores must not be too wide for the grids.
    """
    if not point.has_rows or not point.is_independent:
        return None
    _, n_keys = point.shape
    number = _divisor_value(divisor, point)
    scale = point.distribution_q.std * point.distribution_k.std / number
    too_wide = scale * math.sqrt(point.d_k) > MOST_STD
    if point.distribution_q.mean or too_wide or math.log(n_keys) > MOST_LOG_KEYS:
        return None
    return scale


def _share(threshold: float) -> Find:
    """Refer to the share of rows whose largest weight is at least a threshold."""

    def find(point: DesignPoint, divisor: str) -> Reference | None:
        scale = _scale_of(point, divisor)
        match _families(point):
            case "gaussian", "gaussian" if scale is not None:
                _, n_keys = point.shape
                return share_of_queries(point.d_k, n_keys, scale, threshold)
            case "rademacher", "gaussian" if scale is not None:
                std = scale * math.sqrt(point.d_k)
                return share_at(std, point.shape[1], threshold)
            case _:
                return None

    return find


def largest_weight_place(
    point: DesignPoint, divisor: str
) -> tuple[int, int, str] | None:
    """Return d_k, the number of keys and the scale by which a table is entered.

    None where the largest weight has no exact quantiles.
    """
    scale = _scale_of(point, divisor)
    if scale is None or _families(point) != ("gaussian", "gaussian"):
        return None
    return point.d_k, point.shape[1], f"{scale:.12g}"


def _largest_quantile(
    point: DesignPoint, divisor: str, level: float
) -> Reference | None:
    """Refer to a quantile of the largest weight: from the table, or from 1/2 on."""
    place = largest_weight_place(point, divisor)
    if place is None:
        return None
    if known := _quantiles().get((*place, level)):
        return known
    d_k, n_keys, scale = place[0], place[1], float(place[2])
    if share_of_queries(d_k, n_keys, scale, LONE).value <= 1.0 - level:
        return None
    return quantile_of_queries(d_k, n_keys, scale, level)


@cache
def _quantiles() -> dict[tuple[int, int, str, float], Reference]:
    with QUANTILES.open(encoding="utf-8", newline="") as file:
        return {
            (int(d_k), int(n_keys), scale, float(level)): Reference(
                float(value), float(error)
            )
            for d_k, n_keys, scale, level, value, error in list(csv.reader(file))[1:]
        }


def _entry(side: str) -> Find:
    """Refer to the variance of an entry of q or k."""

    def find(point: DesignPoint, divisor: str) -> Reference | None:
        del divisor
        initialisation = point.initialisation
        distribution = point.distribution_q if side == "q" else point.distribution_k
        variance: float | None = moments.entry_variance(distribution)
        if initialisation is not None:
            variance = moments.projected_variance(initialisation, point.d_k)
        return None if variance is None else Reference(variance, ROUNDING * variance)

    return find


def _score_variance(point: DesignPoint, divisor: str) -> Reference | None:
    """Refer to the variance of q·k, also behind projections and for matching pairs.

    Projections of normalised tokens: d times the squared variance of an entry, over
    tokens and weights.  Matching Gaussian pairs: d (1 + rho²); of other distributions,
    with copied entries, d (1 + rho (kurtosis - 1) - rho²).
    """
    initialisation = point.initialisation
    dependence = point.dependence
    distribution = point.distribution_k
    if initialisation is not None:
        entry = moments.projected_variance(initialisation, point.d_k)
        if entry is None:
            return None
        raw = point.d_k * entry**2
    elif dependence.kind == "pairs":
        same = point.distribution_q == point.distribution_k and not distribution.mean
        if not same or math.isinf(distribution.kurtosis):
            return None
        rho = dependence.rho
        gaussian = point.distribution_k.family == "gaussian"
        part = rho**2 if gaussian else rho * (distribution.kurtosis - 1.0) - rho**2
        raw = point.d_k * distribution.std**4 * (1.0 + part)
    else:
        return _closed(moments.score_variance, 2)(point, divisor)
    value = raw / _divisor_value(divisor, point) ** 2
    return Reference(value, ROUNDING * value)


def _closed(form: ClosedForm, degree: int, rounding: float = ROUNDING) -> Find:
    """Refer to a closed form; a divisor c turns it into itself over c**degree."""

    def find(point: DesignPoint, divisor: str) -> Reference | None:
        if not point.is_independent:
            return None
        raw = form(point.distribution_q, point.distribution_k, point.d_k)
        if raw is None:
            return None
        value = raw / _divisor_value(divisor, point) ** degree
        return Reference(value, rounding * abs(value))

    return find


def _row(name: str) -> Find:
    """Refer to an expectation over a row."""
    column = ROW_NAMES.index(name)

    def find(point: DesignPoint, divisor: str) -> Reference | None:
        row = expect_row(point, divisor)
        if row is None:
            return None
        return Reference(float(row.values[column]), float(row.errors[column]))

    return find


def _output_std(point: DesignPoint, divisor: str) -> Reference | None:
    """Refer to the root of E Σp², the mean variance of the output."""
    variance = _row("inverse_participation")(point, divisor)
    if variance is None:
        return None
    value = math.sqrt(variance.value)
    return Reference(value, variance.error / (2.0 * value))


def _row_variance(point: DesignPoint, divisor: str) -> Reference | None:
    """Refer to the variance within a row, where there are rows."""
    if not point.has_rows:
        return None
    found = _closed(moments.score_row_variance, 2)(point, divisor)
    if found is None or not point.mask.is_causal:
        return found
    # that of a row of one key is 0
    varies = 0.0 if point.mask.width == 1 else 1.0 - 1.0 / point.shape[1]
    return Reference(varies * found.value, found.error)


def _entropy_identity(point: DesignPoint, divisor: str) -> Reference | None:
    """Refer to 0 = E [H - ln Z + s² tr J], s = |q|/divisor, for Gaussian keys.

    Gaussian integration by parts given q; any distribution of q, any n.
    """
    known = "/" not in divisor and point.has_rows
    gaussian = point.distribution_k == DISTRIBUTIONS["gaussian"]
    if not known or not gaussian or not point.is_independent:
        return None
    return Reference(0.0, 0.0)


def _distribution_gap(point: DesignPoint, divisor: str) -> Reference | None:
    """Refer to the distance of the standardised score from normal at `GAP_AT`."""
    del divisor
    both = (point.distribution_q, point.distribution_k)
    gaussian = all(one.family == "gaussian" and not one.mean for one in both)
    if not gaussian or not point.is_independent:
        return None
    return Reference(distribution_gap(GAP_AT, point.d_k), QUADRATURE)


def _score_max(point: DesignPoint, divisor: str) -> Reference | None:
    """Refer to the largest score of a row: E|q| times that of n normal ones."""
    q, k = point.distribution_q, point.distribution_k
    if not point.has_rows or not point.is_independent or q.mean or k.mean:
        return None
    if k.family != "gaussian":
        return None
    match q.family:
        case "gaussian":
            # E|q·k| = E|q| E|z|, z normal
            length = moments.score_abs(q, k, point.d_k)
            scale = (length or 0.0) * math.sqrt(0.5 * math.pi)
        case "rademacher":
            scale = math.sqrt(point.d_k) * q.std * k.std
        case _:
            return None
    scale /= _divisor_value(divisor, point)
    value = scale * expected_maximum(point.shape[1])
    return Reference(value, QUADRATURE * value)


def _element(point: DesignPoint, divisor: str) -> Reference | None:
    """Refer to the mean of p(1 - p) over the elements of a row: E tr J over n."""
    trace = _row("jacobian_trace")(point, divisor)
    if trace is None or not point.has_rows:
        return None
    _, n_keys = point.shape
    return Reference(trace.value / n_keys, trace.error / n_keys)


REFERENCES: dict[str, Find] = {
    "entry_variance_q": _entry("q"),
    "entry_variance_k": _entry("k"),
    "score_mean": _closed(moments.score_mean, 1),
    "score_variance": _score_variance,
    "score_std": _closed(lambda q, k, d: math.sqrt(moments.score_variance(q, k, d)), 1),
    "score_variance_ratio": _closed(
        lambda q, k, d: moments.score_variance_ratio(q, k), 0
    ),
    "score_excess_kurtosis": _closed(moments.score_excess_kurtosis, 0),
    "score_abs": _closed(moments.score_abs, 1, GAMMA_ROUNDING),
    "score_row_variance": _row_variance,
    **{name: _row(name) for name in ROW_NAMES},
    "output_variance": _row("inverse_participation"),
    "output_std": _output_std,
    **{name: _share(threshold) for name, threshold in SATURATED.items()},
    "entropy_identity": _entropy_identity,
    "score_distribution_gap": _distribution_gap,
    "score_max": _score_max,
    "element_gradient": _element,
}

"""The table of references: exact values of quantities at a design point.

In: a quantity, a point and the name of a divisor.  Out: the exact value and its
numerical error, or None if none is known.  A new reference is one entry in
`REFERENCES`.
"""

import csv
import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path

from montecarlo.attention.divisors import parse_divisor
from montecarlo.attention.masks import ENDS, NO_MASK, Mask
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.distributions import DISTRIBUTIONS, Distribution
from montecarlo.theory import moments
from montecarlo.theory.masked_rows import SINGLE_KEY_ROW, mean_over_mask
from montecarlo.theory.row_expectations import (
    expect_gaussian_query,
    expect_rademacher_pairs,
)
from montecarlo.theory.row_integrals import (
    MOST_LOG_KEYS,
    ROW_NAMES,
    Expectations,
    Reference,
    expect_gaussian_row,
)
from montecarlo.theory.score_distribution import distribution_gap, expected_maximum
from montecarlo.theory.weight_distribution import (
    AT_MOST_ONE,
    quantile_of_queries,
    share_for_gaussian_query,
    share_for_std,
)

#: (point, name of a divisor) -> exact value of one quantity, or None if not known.
ReferenceFunction = Callable[[DesignPoint, str], Reference | None]
#: (distribution of q, distribution of k, d_k) -> value for unscaled scores, or None.
ClosedForm = Callable[[Distribution, Distribution, int], float | None]

#: Relative rounding error of the closed forms, and of those with Γ(x + 1/2)/Γ(x).
ROUNDING, GAMMA_ROUNDING = 1e-15, 2e-12
#: Error of the quadratures of `score_distribution`: relative for an expected maximum,
#: absolute for a difference of distribution functions.
QUADRATURE_ERROR = 1e-9
#: Where `score_distribution_gap` compares the distribution functions, in standard
#: deviations.  This and the next two are not imported, as a reference must not share a
#: mistake of `attention`.
GAP_AT = 0.742
#: A row is saturated if its largest weight is at least this.
SATURATED = {"saturated": 0.9, "saturated_99": 0.99, "saturated_999": 0.999}
#: Summaries that are expectations.
SUMMARIES = ("mean", "value")
#: Names of quantiles, such as ``q90``.
_PERCENTILE = re.compile(r"q([0-9]+(?:\.[0-9]+)?)\Z")
#: Table of quantiles of the largest weight, computed by `studies.quantiles`.
QUANTILES = Path(__file__).with_name("quantiles.csv")
#: Largest standard deviation of scores in a row: the integration grids grow with it.
MOST_STD = 4096.0


def reference(
    quantity: str, point: DesignPoint, divisor: str, summary: str
) -> Reference | None:
    """Return the exact value of a summary of a quantity at a design point.

    Parameters
    ----------
    quantity : str
        A name in `montecarlo.attention.quantities.QUANTITIES`.
    point : DesignPoint
    divisor : str
        Name of a divisor, as from `montecarlo.attention.divisors.name_divisor`, or two
        names with a slash, for the ratio of the two expectations.  Quantiles require a
        single divisor.
    summary : str
        ``mean`` or ``value``, which both denote the expectation; a quantile such as
        ``median`` or ``q90``; under a mask also ``first`` or ``last``, the expectation
        for the first or last row.

    Returns
    -------
    Reference or None
        None if no exact value is known: for quantities that are not in `REFERENCES`,
        distributions that they do not cover, normalised queries and keys, ratios of
        means under a causal mask, and all quantiles but those of the largest weight.  A
        quantile of the largest weight that is below 1/2 is known only if the table
        `QUANTILES` has it; otherwise `largest_weight_quantile` computes it in seconds.
    """
    if point.is_normalised:
        return None
    if point.is_masked:
        return _masked_reference(quantity, point, divisor, summary)
    percent = _PERCENTILE.match("q50" if summary == "median" else summary)
    if quantity == "weight_max" and percent:
        return _weight_max_quantile(point, divisor, float(percent[1]) / 100.0)
    exact_value = REFERENCES.get(quantity)
    if summary not in SUMMARIES or exact_value is None:
        return None
    over, *unders = [exact_value(point, one) for one in divisor.split("/")]
    return _ratio(over, unders[0]) if unders else over


def _ratio(over: Reference | None, under: Reference | None) -> Reference | None:
    """Return the ratio of two exact values, with its error; None if one is None or 0.

    Relative errors are added.
    """
    if over is None or under is None or not over.value or not under.value:
        return None
    ratio = over.value / under.value
    error = over.error / abs(over.value) + under.error / abs(under.value)
    return Reference(ratio, error * abs(ratio))


#: For each quantity that does not depend on the score: its value for a row of one key.
SINGLE_KEY = dict(zip(ROW_NAMES[1:], SINGLE_KEY_ROW.tolist()[1:], strict=True))
SINGLE_KEY |= {"score_row_variance": 0.0, "output_variance": 1.0, "output_std": 1.0}
#: Quantities whose mean over the rows of a causal mask is known.
MASKED = {*ROW_NAMES, *SINGLE_KEY, "entropy_identity"}


def _masked_reference(
    quantity: str, point: DesignPoint, divisor: str, summary: str
) -> Reference | None:
    """Return the exact value of a summary of a quantity at a point with a mask.

    Parameters are those of `reference`.  None if no exact value is known.  If all rows
    have the same length, the value is that of an unmasked row of this length.  So it is
    for the summary ``first`` or ``last``, with the length of that row.
    """
    longest = point.mask.longest(point.shape[1])
    if point.mask.is_causal and summary not in ENDS:
        exact_value = REFERENCES.get(quantity)
        known = summary in SUMMARIES and quantity in MASKED and "/" not in divisor
        return exact_value(point, divisor) if exact_value and known else None
    if point.mask.is_causal and (summary == "first" or longest == 1):
        value = SINGLE_KEY.get(quantity)
        return None if value is None else Reference(value, 0.0)
    # a divisor that depends on n is evaluated for all keys, also for shorter rows
    numbers = (repr(_divisor_value(one, point)) for one in divisor.split("/"))
    row = replace(point, mask=NO_MASK, n_keys=longest)
    of_row = "mean" if summary in ENDS else summary
    return reference(quantity, row, "/".join(numbers), of_row)


def _divisor_value(divisor: str, point: DesignPoint) -> float:
    """Return the number by which a divisor divides the scores of a point."""
    return parse_divisor(divisor).value(point.d_k, point.n_keys)


def expect_row(point: DesignPoint, divisor: str) -> Expectations | None:
    """Return the expectations of the six quantities in `ROW_NAMES` at a design point.

    ``divisor`` is the name of one divisor.  None if theory does not know the
    expectations: see `_score_scale`.

    Notes
    -----
    Queries must have mean 0, keys need not.  Their mean m_k shifts all scores of a row
    by q·m_k.  This changes only ln Z, whose expectation is the same as E q·m_k = 0.
    """
    scale = _score_scale(point, divisor)
    if scale is None:
        return None
    _, n_keys = point.shape
    return _expect_row(_families(point), point.d_k, n_keys, scale, point.mask)


@lru_cache(maxsize=1024)
def _expect_row(
    families: tuple[str, str], d_k: int, n_keys: int, scale: float, mask: Mask
) -> Expectations | None:
    """Return the expectations of the six quantities in `ROW_NAMES`, from plain numbers.

    They are averaged over the rows of the mask.  None if they are not known for these
    distributions.

    Parameters
    ----------
    families : (str, str)
        Names of the distribution families of q and k, such as ``"gaussian"``.
    d_k, n_keys : int
    scale : float
        Factor on q·k for entries of variance 1.
    mask : Mask
    """
    match families:
        case "gaussian", "gaussian":
            expect = partial(expect_gaussian_query, d_k, scale=scale)
        case "rademacher", "gaussian":  # |q| = sqrt(d_k)
            expect = partial(expect_gaussian_row, math.sqrt(d_k) * scale)
        case "rademacher", "rademacher" if not mask.is_causal:
            return expect_rademacher_pairs(d_k, n_keys, scale)
        case _:
            return None
    return mean_over_mask(expect, SINGLE_KEY_ROW, n_keys, mask)


def _families(point: DesignPoint) -> tuple[str, str]:
    """Return the names of the distribution families of q and k, as a pair.

    For example ``("gaussian", "rademacher")``.
    """
    return point.distribution_q.family, point.distribution_k.family


def _score_scale(point: DesignPoint, divisor: str) -> float | None:
    """Return the factor on q·k for entries of variance 1: σ_q σ_k/divisor.

    None if row expectations are not known: at points without rows or with dependent
    entries, for queries whose mean is not 0, and for scores or numbers of keys that are
    too large for the integration grids.
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


def _saturated_share(threshold: float) -> ReferenceFunction:
    """Return the function that computes the exact share of saturated rows.

    A row is saturated if its largest weight p_max is at least ``threshold``.
    """

    def exact_value(point: DesignPoint, divisor: str) -> Reference | None:
        """Return P(p_max >= ``threshold``) with its error; None if it is not known."""
        scale = _score_scale(point, divisor)
        match _families(point):
            case "gaussian", "gaussian" if scale is not None:
                _, n_keys = point.shape
                return share_for_gaussian_query(point.d_k, n_keys, scale, threshold)
            case "rademacher", "gaussian" if scale is not None:
                std = scale * math.sqrt(point.d_k)
                return share_for_std(std, point.shape[1], threshold)
            case _:
                return None

    return exact_value


def quantile_table_key(point: DesignPoint, divisor: str) -> tuple[int, int, str] | None:
    """Return the key of a point in the table `QUANTILES`: (d_k, number of keys, scale).

    Such as ``(64, 128, "0.125")``; the scale is the number of `_score_scale`, as text.
    None if the quantiles of the largest weight are not known exactly at this point.
    """
    scale = _score_scale(point, divisor)
    if scale is None or _families(point) != ("gaussian", "gaussian"):
        return None
    return point.d_k, point.shape[1], f"{scale:.12g}"


def _weight_max_quantile(
    point: DesignPoint, divisor: str, level: float
) -> Reference | None:
    """Return the quantile of the largest weight at a level between 0 and 1.

    It is read from the table `QUANTILES`, if it is there.  If not, it is computed if it
    is at least 1/2, which is fast; otherwise the result is None.
    """
    key = quantile_table_key(point, divisor)
    if key is None:
        return None
    if known := _read_quantiles().get((*key, level)):
        return known
    d_k, n_keys, scale = key[0], key[1], float(key[2])
    if share_for_gaussian_query(d_k, n_keys, scale, AT_MOST_ONE).value <= 1.0 - level:
        return None
    return quantile_of_queries(d_k, n_keys, scale, level)


@cache
def _read_quantiles() -> dict[tuple[int, int, str, float], Reference]:
    """Return the table `QUANTILES` as a dict: quantiles of the largest weight.

    It maps (d_k, number of keys, scale, level) to the quantile with its error.  The
    first three are as from `quantile_table_key`.
    """
    with QUANTILES.open(encoding="utf-8", newline="") as file:
        return {
            (int(d_k), int(n_keys), scale, float(level)): Reference(
                float(value), float(error)
            )
            for d_k, n_keys, scale, level, value, error in list(csv.reader(file))[1:]
        }


def _with_error(
    formula: Callable[[DesignPoint, str], float | None], relative_error: float
) -> ReferenceFunction:
    """Return a function that returns the value of a formula with a numerical error.

    Parameters
    ----------
    formula : callable
        (point, divisor) -> exact value, or None.
    relative_error : float
        Error of the value, as a part of its absolute value.
    """

    def exact_value(point: DesignPoint, divisor: str) -> Reference | None:
        """Return the value of ``formula`` with its error; None if there is no value.

        The error is ``relative_error`` times the absolute value.
        """
        value = formula(point, divisor)
        return None if value is None else Reference(value, relative_error * abs(value))

    return exact_value


def _entry_variance(point: DesignPoint, distribution: Distribution) -> float | None:
    """Return the variance of one entry of a query or key; None if it is not known.

    At a point with an initialisation, entries are those of projected tokens, and
    ``distribution`` has no effect.
    """
    if point.initialisation is None:
        return distribution.std**2
    return moments.projected_variance(point.initialisation, point.d_k)


def _score_variance(point: DesignPoint, divisor: str) -> float | None:
    """Return the variance of the divided scores q·k/c; None if it is not known.

    It is that of q·k over c², where c is the divisor.  With d = d_k, that of q·k is
    known for independent entries, and for

    - projected normalised tokens: d times the squared variance of an entry;
    - q and k with the dependence ``pairs(rho)``, the same distribution, mean 0,
      standard deviation s and a finite kurtosis: d s⁴ (1 + rho²) for Gaussian entries;
      for others, where an entry of k is copied from q with probability rho, d s⁴ (1 +
      rho (kurtosis - 1) - rho²).
    """
    q, k, rho = point.distribution_q, point.distribution_k, point.dependence.rho
    if point.is_independent:
        raw = moments.score_variance(q, k, point.d_k)
    elif point.initialisation is not None:
        entry = _entry_variance(point, k)
        if entry is None:
            return None
        raw = point.d_k * entry**2
    elif point.dependence.kind == "pairs":
        if q != k or k.mean or math.isinf(k.kurtosis):
            return None
        gaussian = k.family == "gaussian"
        part = rho**2 if gaussian else rho * (k.kurtosis - 1.0) - rho**2
        raw = point.d_k * k.std**4 * (1.0 + part)
    else:
        return None
    return raw / _divisor_value(divisor, point) ** 2


def _closed_form(
    form: ClosedForm, degree: int, rounding: float = ROUNDING
) -> ReferenceFunction:
    """Return a reference function for a moment of q·k, divided by c**degree.

    c is the divisor.  The function returns None at points with dependent entries.

    Parameters
    ----------
    form : callable
        (distribution of q, distribution of k, d_k) -> moment of q·k, or None.
    degree : int
        Power of the scores in the moment.
    rounding : float
        Relative rounding error of the value.
    """

    def scaled(point: DesignPoint, divisor: str) -> float | None:
        """Return the moment of q·k by ``form`` at a point, divided by c**degree.

        c is the divisor.  None if entries of q and k depend on each other, are
        projected or are normalised, or if ``form`` returns None.
        """
        if not point.is_independent:
            return None
        raw = form(point.distribution_q, point.distribution_k, point.d_k)
        return None if raw is None else raw / _divisor_value(divisor, point) ** degree

    return _with_error(scaled, rounding)


def _row_expectation(name: str) -> ReferenceFunction:
    """Return the reference function of one of the quantities in `ROW_NAMES`."""
    column = ROW_NAMES.index(name)

    def exact_value(point: DesignPoint, divisor: str) -> Reference | None:
        """Return the expectation of the quantity ``name``; None if it is not known."""
        row = expect_row(point, divisor)
        return row and Reference(*(float(part[column]) for part in row))

    return exact_value


def _output_std(point: DesignPoint, divisor: str) -> Reference | None:
    """Return the standard deviation of an attention output; None if not known.

    It is the square root of E Σp², the mean variance of an output for values of
    variance 1; the error is that of E Σp² to first order.
    """
    variance = _row_expectation("inverse_participation")(point, divisor)
    if variance is None:
        return None
    value = math.sqrt(variance.value)
    return Reference(value, variance.error / (2.0 * value))


def _row_variance(point: DesignPoint, divisor: str) -> Reference | None:
    """Return the expected variance of the divided scores within one row.

    Under a causal mask it is averaged over the rows.  None at points without rows, or
    if the closed form does not apply.
    """
    if not point.has_rows:
        return None
    found = _closed_form(moments.score_row_variance, 2)(point, divisor)
    if found is None or not point.mask.is_causal:
        return found
    # the same for each row of several keys, and 0 for a row of one
    share = 0.0 if point.mask.width == 1 else 1.0 - 1.0 / point.shape[1]
    return Reference(share * found.value, found.error)


def _entropy_identity(point: DesignPoint, divisor: str) -> float | None:
    """Return 0, the exact value of E [H - ln Z + s² tr J] with s = |q|/divisor.

    H is the entropy of a row, Z its sum of exponentials and J the Jacobian of softmax.
    The identity follows from Gaussian integration by parts given q.  It holds for rows
    of standard normal keys that are independent of the queries, for any distribution of
    q and number of keys, and for a single divisor.  None if these conditions are not
    met.
    """
    known = "/" not in divisor and point.has_rows and point.is_independent
    return 0.0 if known and point.distribution_k == DISTRIBUTIONS["gaussian"] else None


def _distribution_gap(point: DesignPoint, _: str) -> Reference | None:
    """Return P(z <= x) - Φ(x) at x = `GAP_AT`, for standardised scores z.

    z is q·k divided by its standard deviation, and Φ the standard normal distribution.
    The result does not depend on the divisor.  None unless the entries are independent
    Gaussian ones with mean 0.
    """
    means = point.distribution_q.mean, point.distribution_k.mean
    centred = _families(point) == ("gaussian", "gaussian") and means == (0.0, 0.0)
    if not centred or not point.is_independent:
        return None
    return Reference(distribution_gap(GAP_AT, point.d_k), QUADRATURE_ERROR)


def _score_max(point: DesignPoint, divisor: str) -> float | None:
    """Return the expected largest divided score of a row; None if not known.

    It is known for Gaussian keys with Gaussian or Rademacher queries, all with mean 0
    and independent.  For keys of variance 1 it is E|q|/divisor times the expected
    maximum of n normals.
    """
    q, k = point.distribution_q, point.distribution_k
    if not point.has_rows or not point.is_independent or q.mean or k.mean:
        return None
    match _families(point):
        case "gaussian", "gaussian":
            # E|q| from E|q·k| = E|q| E|z| with z normal, E|z| = sqrt(2/pi)
            length = moments.score_abs(q, k, point.d_k)
            scale = (length or 0.0) * math.sqrt(0.5 * math.pi)
        case "rademacher", "gaussian":
            scale = math.sqrt(point.d_k) * q.std * k.std
        case _:
            return None
    _, n_keys = point.shape
    return scale / _divisor_value(divisor, point) * expected_maximum(n_keys)


def _element_gradient(point: DesignPoint, divisor: str) -> Reference | None:
    """Return the mean of p(1 - p) over the weights p of a row; None if not known.

    It is E tr J/n, with J the Jacobian of softmax and n the number of keys.
    """
    trace = _row_expectation("jacobian_trace")(point, divisor)
    return trace and Reference(*(one / point.shape[1] for one in trace))


#: Name of a quantity -> function for its exact value.
REFERENCES: dict[str, ReferenceFunction] = {
    "entry_variance_q": _with_error(
        lambda point, _: _entry_variance(point, point.distribution_q), ROUNDING
    ),
    "entry_variance_k": _with_error(
        lambda point, _: _entry_variance(point, point.distribution_k), ROUNDING
    ),
    "score_mean": _closed_form(moments.score_mean, 1),
    "score_variance": _with_error(_score_variance, ROUNDING),
    "score_std": _closed_form(
        lambda q, k, d: math.sqrt(moments.score_variance(q, k, d)), 1
    ),
    "score_variance_ratio": _closed_form(
        lambda q, k, d: moments.score_variance_ratio(q, k), 0
    ),
    "score_excess_kurtosis": _closed_form(moments.score_excess_kurtosis, 0),
    "score_abs": _closed_form(moments.score_abs, 1, GAMMA_ROUNDING),
    "score_row_variance": _row_variance,
    **{name: _row_expectation(name) for name in ROW_NAMES},
    "output_variance": _row_expectation("inverse_participation"),
    "output_std": _output_std,
    **{name: _saturated_share(threshold) for name, threshold in SATURATED.items()},
    "entropy_identity": _with_error(_entropy_identity, ROUNDING),
    "score_distribution_gap": _distribution_gap,
    "score_max": _with_error(_score_max, QUADRATURE_ERROR),
    "element_gradient": _element_gradient,
}

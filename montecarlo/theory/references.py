"""The table of references: what theory gives exactly for a quantity in a condition.

In: a condition and the name of a divisor.  Out: value and numerical error, or None
where no exact value is known.  A new reference is one entry in `REFERENCES`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from montecarlo.sampling.conditions import Condition
from montecarlo.sampling.dependence import parse_dependence
from montecarlo.sampling.laws import Law, parse_law
from montecarlo.sampling.setups import parse_setup
from montecarlo.theory import moments
from montecarlo.theory.binomial_rows import expect_binomial
from montecarlo.theory.gaussian_rows import MOST_LOG_KEYS
from montecarlo.theory.row_expectations import (
    expect_fixed_length,
    expect_gaussian_length,
)
from montecarlo.theory.row_integrals import ROW_NAMES, Expectations
from montecarlo.theory.score_law import expected_maximum, law_gap


@dataclass(frozen=True, slots=True)
class Reference:
    """An exact value.

    Attributes
    ----------
    value : float
    error : float
        How far numerics may have moved it.
    """

    value: float
    error: float


Find = Callable[[Condition, str], Reference | None]
#: (law of q, law of k, d_k) -> value for undivided scores, or None.
ClosedForm = Callable[[Law, Law, int], float | None]

#: Divisors as (factor, exponent): factor · d_k**exponent.  Written down a second time,
#: for a reference must not share a mistake of `attention`; one that is not here has
#: no references.
POWERS = {
    "none": (1.0, 0.0),
    "sqrt": (1.0, 0.5),
    "2sqrt": (2.0, 0.5),
    "linear": (1.0, 1.0),
}
#: Relative rounding of the closed forms; that of Γ(x + 1/2)/Γ(x) is the largest.
ROUNDING, GAMMA_ROUNDING = 1e-15, 2e-12
#: Relative error of the quadratures of `score_law`, and absolute one of a gap.
QUADRATURE = 1e-9
#: Where `score_law_gap` looks; written down a second time, as the divisors are.
GAP_AT = 0.742
#: Summaries that are expectations.
SUMMARIES = ("mean", "value")
#: The grids grow with the spread of the scores; nobody asks for more.
MOST_STD = 4096.0


def reference(
    quantity: str, condition: Condition, divisor: str, summary: str
) -> Reference | None:
    """Return the exact value of a quantity.

    Parameters
    ----------
    quantity : str
        A name in `montecarlo.attention.quantities.QUANTITIES`.
    condition : Condition
    divisor : str
        A name in `montecarlo.attention.divisors.DIVISORS`, or of a pair of them.
    summary : str
        ``mean``, ``value``, ``median``, ``q10`` or ``q90``.

    Returns
    -------
    Reference or None
        None where no exact value is known: for quantiles, ratios of divisors,
        quantities that are not in `REFERENCES`, and laws that it has no answer for.
    """
    if summary not in SUMMARIES or quantity not in REFERENCES:
        return None
    return REFERENCES[quantity](condition, divisor)


def divisor_value(divisor: str, d_k: int) -> float | None:
    """Return the number that scores are divided by, None for an unknown divisor."""
    if divisor not in POWERS:
        return None
    factor, exponent = POWERS[divisor]
    return float(factor * d_k**exponent)


def expect_row(condition: Condition, divisor: str) -> Expectations | None:
    """Return the expectations of `ROW_NAMES` over a row, None where not known.

    Notes
    -----
    Queries must have mean 0.  A mean of the keys shifts a row by q·m_k, of mean 0.
    """
    number = divisor_value(divisor, condition.d_k)
    law_q, law_k = parse_law(condition.law_q), parse_law(condition.law_k)
    if number is None or condition.n_keys is None or not _is_independent(condition):
        return None
    scale = law_q.std * law_k.std / number
    too_wide = scale * math.sqrt(condition.d_k) > MOST_STD
    if law_q.mean != 0.0 or too_wide or math.log(condition.n_keys) > MOST_LOG_KEYS:
        return None
    expect: Callable[[int, int, float], Expectations]
    match moments.family(law_q), moments.family(law_k):
        case "gaussian", "gaussian":
            expect = expect_gaussian_length
        case "rademacher", "gaussian":
            expect = expect_fixed_length
        case "rademacher", "rademacher":
            expect = expect_binomial
        case _:
            return None
    return expect(condition.d_k, condition.n_keys, scale)


def _is_independent(condition: Condition) -> bool:
    return condition.dependence == "none" and not condition.setup


def _entry(side: str) -> Find:
    """Refer to the variance of an entry of q or k."""

    def find(condition: Condition, divisor: str) -> Reference | None:
        del divisor
        setup = parse_setup(condition.setup)
        law = parse_law(condition.law_q if side == "q" else condition.law_k)
        variance: float | None = moments.entry_variance(law)
        if setup is not None:
            variance = moments.projected_variance(setup, condition.d_k)
        return None if variance is None else Reference(variance, ROUNDING * variance)

    return find


def _score_variance(condition: Condition, divisor: str) -> Reference | None:
    """Refer to the variance of q·k, also behind projections and for matching pairs.

    Projections of normalised tokens: d times the squared variance of an entry, over
    tokens and weights.  Matching Gaussian pairs: d (1 + rho²); of other laws, with
    copied entries, d (1 + rho (kurtosis - 1) - rho²).
    """
    number = divisor_value(divisor, condition.d_k)
    if number is None:
        return None
    setup = parse_setup(condition.setup)
    dependence = parse_dependence(condition.dependence)
    law = parse_law(condition.law_k)
    if setup is not None:
        entry = moments.projected_variance(setup, condition.d_k)
        if entry is None:
            return None
        raw = condition.d_k * entry**2
    elif dependence.kind == "pairs":
        same = condition.law_q == condition.law_k and not law.mean
        if not same or math.isinf(law.kurtosis):
            return None
        rho = dependence.rho
        gaussian = condition.family_k == "gaussian"
        part = rho**2 if gaussian else rho * (law.kurtosis - 1.0) - rho**2
        raw = condition.d_k * law.std**4 * (1.0 + part)
    else:
        return _closed(moments.score_variance, 2)(condition, divisor)
    value = raw / number**2
    return Reference(value, ROUNDING * value)


def _closed(form: ClosedForm, degree: int, rounding: float = ROUNDING) -> Find:
    """Refer to a closed form; a divisor c turns it into itself over c**degree."""

    def find(condition: Condition, divisor: str) -> Reference | None:
        number = divisor_value(divisor, condition.d_k) if degree else 1.0
        if number is None or not _is_independent(condition):
            return None
        law_q, law_k = parse_law(condition.law_q), parse_law(condition.law_k)
        raw = form(law_q, law_k, condition.d_k)
        if raw is None:
            return None
        value = raw / number**degree
        return Reference(value, rounding * abs(value))

    return find


def _row(name: str) -> Find:
    """Refer to an expectation over a row."""
    column = ROW_NAMES.index(name)

    def find(condition: Condition, divisor: str) -> Reference | None:
        row = expect_row(condition, divisor)
        if row is None:
            return None
        return Reference(float(row.values[column]), float(row.errors[column]))

    return find


def _row_variance(condition: Condition, divisor: str) -> Reference | None:
    """Refer to the variance within a row, where there are rows."""
    if condition.n_keys is None:
        return None
    return _closed(moments.score_row_variance, 2)(condition, divisor)


def _entropy_identity(condition: Condition, divisor: str) -> Reference | None:
    """Refer to 0 = E [H - ln Z + s² tr J], s = |q|/divisor: keys of law N(0, 1).

    Gaussian integration by parts given q; any law of q, any n.
    """
    known = divisor in POWERS and condition.n_keys is not None
    if not known or condition.law_k != "gaussian" or not _is_independent(condition):
        return None
    return Reference(0.0, 0.0)


def _law_gap(condition: Condition, divisor: str) -> Reference | None:
    """Refer to the distance of the standardised score from normal at `GAP_AT`."""
    del divisor
    laws = parse_law(condition.law_q), parse_law(condition.law_k)
    gaussian = all(moments.family(law) == "gaussian" for law in laws)
    if not gaussian or any(law.mean for law in laws) or not _is_independent(condition):
        return None
    return Reference(law_gap(GAP_AT, condition.d_k), QUADRATURE)


def _score_max(condition: Condition, divisor: str) -> Reference | None:
    """Refer to the largest score of a row: E|q| times that of n normal ones."""
    number = divisor_value(divisor, condition.d_k)
    law_q, law_k = parse_law(condition.law_q), parse_law(condition.law_k)
    known = condition.n_keys is not None and _is_independent(condition)
    if number is None or not known or law_q.mean or law_k.mean:
        return None
    if moments.family(law_k) != "gaussian":
        return None
    match moments.family(law_q):
        case "gaussian":
            # E|q·k| = E|q| E|z|, z normal
            length = moments.score_abs(law_q, law_k, condition.d_k)
            scale = (length or 0.0) * math.sqrt(0.5 * math.pi)
        case "rademacher":
            scale = math.sqrt(condition.d_k) * law_q.std * law_k.std
        case _:
            return None
    value = scale / number * expected_maximum(condition.n_keys or 1)
    return Reference(value, QUADRATURE * value)


def _element(condition: Condition, divisor: str) -> Reference | None:
    """Refer to the mean of p(1 - p) over the elements of a row: E tr J over n."""
    trace = _row("jacobian_trace")(condition, divisor)
    if trace is None or condition.n_keys is None:
        return None
    return Reference(trace.value / condition.n_keys, trace.error / condition.n_keys)


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
    "entropy_identity": _entropy_identity,
    "score_law_gap": _law_gap,
    "score_max": _score_max,
    "element_gradient": _element,
}

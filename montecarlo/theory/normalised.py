"""What theory gives exactly where queries and keys are normalised before the product.

A score is a gain times the product of two lengths times the cosine of an angle.  Of
entries that are as likely with either sign the cosine has mean 0 and variance 1/d_k; of
Gaussian ones its distribution is known (`cosine_scores`), and of signs it is a sum of
signs over d_k.
"""

import math
from collections.abc import Callable

from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.distributions import DISTRIBUTIONS
from montecarlo.theory import cosine_scores, moments
from montecarlo.theory.row_expectations import expect_binomial
from montecarlo.theory.row_integrals import (
    MOST_LOG_KEYS,
    ROW_NAMES,
    Expectations,
    Reference,
)

#: (point, divisor as a number) -> value or None.
Find = Callable[[DesignPoint, float], Reference | None]
#: Relative rounding of the closed forms, those with a Γ or beta function among them.
ROUNDING = 2e-12
#: Where `score_distribution_gap` looks; written down a second time.
GAP_AT = 0.742
#: Kinds of entries: drawn independently from a Gaussian or as signs; as likely with
#: either sign, given all others; or not known to be.
GAUSSIAN, SIGNS, SYMMETRIC, OTHER = "gaussian", "rademacher", "symmetric", ""


def kinds_of(point: DesignPoint) -> tuple[str, str]:
    """Return the kinds of the entries of q and of k.

    Projections of normalised Gaussian tokens are symmetric, and no more is known of
    them; of dependent q and k nothing is.
    """
    if point.dependence.kind != "none":
        return OTHER, OTHER
    if point.initialisation is not None:
        return SYMMETRIC, SYMMETRIC
    q, k = (
        OTHER
        if one.mean or one.family not in DISTRIBUTIONS
        else one.family
        if one.family in (GAUSSIAN, SIGNS)
        else SYMMETRIC
        for one in (point.distribution_q, point.distribution_k)
    )
    return q, k


def scale_of(point: DesignPoint, number: float) -> float:
    """Return what a cosine is multiplied by, over a divisor."""
    squared_length = {"l2": 1.0, "rms": float(point.d_k)}[point.normalisation.kind]
    return point.normalisation.gain * squared_length / number


def _exact(value: float) -> Reference:
    return Reference(value, ROUNDING * abs(value))


def _mean(point: DesignPoint, _: float) -> Reference | None:
    """Refer to 0: one side is symmetric."""
    return Reference(0.0, 0.0) if any(kinds_of(point)) else None


def _variance(point: DesignPoint, number: float) -> Reference | None:
    """Refer to scale²/d_k: of one side, products of two entries have mean 0."""
    if not any(kinds_of(point)):
        return None
    return _exact(scale_of(point, number) ** 2 / point.d_k)


def _std(point: DesignPoint, number: float) -> Reference | None:
    variance = _variance(point, number)
    return None if variance is None else _exact(math.sqrt(variance.value))


def _variance_ratio(point: DesignPoint, _: float) -> Reference | None:
    """Refer to gain²: entries of both sides have the squared length over d_k."""
    return _exact(point.normalisation.gain**2) if all(kinds_of(point)) else None


def _row_variance(point: DesignPoint, number: float) -> Reference | None:
    """Refer to the same within a row: given q, keys are independent and symmetric."""
    _, k = kinds_of(point)
    return _variance(point, number) if k and point.has_rows else None


def _kurtosis(point: DesignPoint, _: float) -> Reference | None:
    kinds = kinds_of(point)
    if GAUSSIAN in kinds:
        return _exact(cosine_scores.cosine_excess_kurtosis(point.d_k))
    return _exact(-2.0 / point.d_k) if kinds == (SIGNS, SIGNS) else None


def _abs(point: DesignPoint, number: float) -> Reference | None:
    kinds, scale = kinds_of(point), scale_of(point, number)
    if GAUSSIAN in kinds:
        return _exact(scale * cosine_scores.cosine_abs(point.d_k))
    if kinds != (SIGNS, SIGNS):
        return None
    signs = DISTRIBUTIONS[SIGNS]
    return _exact(
        scale * (moments.score_abs(signs, signs, point.d_k) or 0.0) / point.d_k
    )


def _gap(point: DesignPoint, _: float) -> Reference | None:
    if GAUSSIAN not in kinds_of(point):
        return None
    return Reference(cosine_scores.cosine_gap(GAP_AT, point.d_k), ROUNDING)


def _largest_score(point: DesignPoint, number: float) -> Reference | None:
    _, k = kinds_of(point)
    if k != GAUSSIAN or point.n_keys is None:
        return None
    largest = cosine_scores.expected_largest_cosine(point.d_k, point.n_keys)
    scale = scale_of(point, number)
    return Reference(scale * largest.value, scale * (largest.error + ROUNDING))


def expect_row(point: DesignPoint, number: float) -> Expectations | None:
    """Return the expectations of `ROW_NAMES` over a row, None where not known."""
    scale, n_keys = scale_of(point, number), point.n_keys
    too_wide = scale > cosine_scores.MOST_STD * math.sqrt(point.d_k)
    if n_keys is None or too_wide or math.log(n_keys) > MOST_LOG_KEYS:
        return None
    match kinds_of(point):
        case _, "gaussian":
            return cosine_scores.expect_cosines(point.d_k, n_keys, scale)
        case "rademacher", "rademacher":
            return expect_binomial(point.d_k, n_keys, scale / point.d_k)
        case _:
            return None


def _row(name: str) -> Find:
    """Refer to an expectation over a row."""
    column = ROW_NAMES.index(name)

    def find(point: DesignPoint, number: float) -> Reference | None:
        row = expect_row(point, number)
        if row is None:
            return None
        return Reference(float(row.values[column]), float(row.errors[column]))

    return find


def _element(point: DesignPoint, number: float) -> Reference | None:
    """Refer to the mean of p(1 - p) over the elements of a row: E tr J over n."""
    trace = _row("jacobian_trace")(point, number)
    if trace is None or point.n_keys is None:
        return None
    return Reference(trace.value / point.n_keys, trace.error / point.n_keys)


#: As `montecarlo.theory.references.REFERENCES`.  Entries are left out: the mean square
#: of normalised ones is the same in every sample.
NORMALISED: dict[str, Find] = {
    "score_mean": _mean,
    "score_variance": _variance,
    "score_std": _std,
    "score_variance_ratio": _variance_ratio,
    "score_excess_kurtosis": _kurtosis,
    "score_abs": _abs,
    "score_distribution_gap": _gap,
    "score_row_variance": _row_variance,
    "score_max": _largest_score,
    "element_gradient": _element,
    **{name: _row(name) for name in ROW_NAMES},
}

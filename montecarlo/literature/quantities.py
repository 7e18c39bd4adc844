"""What statements of papers are about: each drawn and, where it can be, exact.

A new quantity is an entry here.  Where nothing is random, it has an exact value only.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from montecarlo.estimation.estimates import Estimate
from montecarlo.literature import growth, jacobian_bounds, low_precision
from montecarlo.literature import score_rows as rows
from montecarlo.literature.correlation import drawn_exponent, exact_exponent
from montecarlo.literature.settings import Setting
from montecarlo.sampling.model_rows import ModelRows
from montecarlo.theory import expected_row


@dataclass(frozen=True, slots=True)
class LiteratureQuantity:
    """A quantity of the page of papers.

    Attributes
    ----------
    exact : callable or None
        Setting -> value; None where theory has none.
    draw : callable or None
        (source of rows, setting) -> estimate; None where nothing is random.
    """

    exact: Callable[[Setting], float] | None = None
    draw: Callable[[ModelRows, Setting], Estimate] | None = None


def raised_weight(at: Setting) -> float:
    """Return the weight of a score that is higher than n - 1 equal ones by a gap."""
    n_keys, gap = at.keys, at.gap or 0.0
    times = 1.0 if at.growth is None else at.growth * math.log(n_keys)
    return 1.0 / (1.0 + (n_keys - 1) * math.exp(-gap * times))


def _row(name: str) -> Callable[[Setting], float]:
    """Return the exact expectation over a row of normal scores."""

    def exact(at: Setting) -> float:
        found = expected_row(at.keys, std=at.std, bias=at.gap or 0.0)
        return found[name].value

    return exact


def _over_uniform(name: str, changed: str) -> Callable[[Setting], float]:
    """Return an expectation under a mask or a sink over that without."""

    def exact(at: Setting) -> float:
        n_keys = at.keys
        usual = expected_row(n_keys, std=at.std)[name].value
        if changed == "mask":
            return expected_row(n_keys, std=at.std, causal=True)[name].value / usual
        return expected_row(n_keys, std=at.std, bias=at.gap or 0.0)[name].value / usual

    return exact


def _changed(name: str, value: rows.RowValue, changed: str) -> LiteratureQuantity:
    """Return the quantity that says what a mask or a sink makes of an expectation."""

    def draw(source: ModelRows, at: Setting) -> Estimate:
        usual = expected_row(at.keys, std=at.std)[name].value
        mean = rows.mean_over_mask if changed == "mask" else rows.mean_over_rows
        return mean(source, at, value).times(1.0 / usual)

    return LiteratureQuantity(_over_uniform(name, changed), draw)


def frozen_share(at: Setting) -> float:
    """Return E Σp² over 1 - sqrt(2 ln n)/s, its limit where s is beyond the root."""
    limit = 1.0 - math.sqrt(2.0 * math.log(at.keys)) / (at.std or 1.0)
    return _row("inverse_participation")(at) / limit


def _draw_frozen_share(source: ModelRows, at: Setting) -> Estimate:
    limit = 1.0 - math.sqrt(2.0 * math.log(at.keys)) / (at.std or 1.0)
    return rows.mean_over_rows(source, at, rows.concentration_of).times(1.0 / limit)


def beyond_critical(at: Setting) -> float:
    """Return sqrt(d_k) over sqrt(2 ln n): above 1 unscaled rows concentrate."""
    return math.sqrt((at.dimension) / (2.0 * math.log(at.keys)))


def _unscaled_over_scaled(name: str) -> Callable[[Setting], float]:
    def exact(at: Setting) -> float:
        none, sqrt = (
            expected_row(at.keys, d_k=at.d_k, divisor=divisor)[name].value
            for divisor in ("none", "sqrt")
        )
        return none / sqrt

    return exact


def extension_factor(at: Setting) -> float:
    """Return what YaRN multiplies scores by: (0.1 ln(n/n_0) + 1)²."""
    return float((0.1 * math.log(at.keys / (at.from_keys or 1)) + 1.0) ** 2)


def growth_factor(at: Setting) -> float:
    """Return by what scores must grow so that rows stay as they are.

    With nothing held it is that of one score above equal ones, which keeps a weight of
    one half where its gap is ln(n - 1).
    """
    low, high = at.from_keys or 2, at.keys
    if not at.holds:
        return math.log(high - 1) / math.log(low - 1)
    first, last = (
        growth.std_that_holds(at.holds, at.level or 0.0, n) for n in (low, high)
    )
    return last / first


def _exponent(at: Setting) -> float:
    return growth.mean_exponent(at.holds, at.level or 0.0, at.from_keys or 0, at.keys)


def _draw_exponent(source: ModelRows, at: Setting) -> Estimate:
    return growth.drawn_exponent(
        source, at.holds, at.level or 0.0, at.from_keys or 0, at.keys
    )


QUANTITIES = {
    "raised-weight": LiteratureQuantity(raised_weight),
    "noisy-weight": LiteratureQuantity(
        _row("biased_weight"),
        partial(rows.mean_over_rows, value=rows.first_weight_of),
    ),
    "growth-exponent": LiteratureQuantity(_exponent, _draw_exponent),
    # of so many keys that drawing would take a minute
    "late-exponent": LiteratureQuantity(_exponent),
    "extension-factor": LiteratureQuantity(extension_factor),
    "growth-factor": LiteratureQuantity(growth_factor),
    "row-concentration": LiteratureQuantity(
        _row("inverse_participation"),
        partial(rows.mean_over_rows, value=rows.concentration_of),
    ),
    "frozen-share": LiteratureQuantity(frozen_share, _draw_frozen_share),
    "beyond-critical": LiteratureQuantity(beyond_critical),
    "concentration-ratio": LiteratureQuantity(
        _unscaled_over_scaled("inverse_participation"),
        partial(rows.unscaled_over_scaled, value=rows.concentration_of),
    ),
    "jacobian-ratio": LiteratureQuantity(
        _unscaled_over_scaled("jacobian_frobenius_squared"),
        partial(rows.unscaled_over_scaled, value=rows.frobenius_of),
    ),
    "query-gradient-ratio": LiteratureQuantity(draw=rows.query_gradients),
    "small-jacobians": LiteratureQuantity(draw=rows.small_jacobians),
    "spectral-norm": LiteratureQuantity(jacobian_bounds.spectral_norm),
    "searched-norm": LiteratureQuantity(jacobian_bounds.searched_norm),
    "largest-entry": LiteratureQuantity(jacobian_bounds.searched_entry),
    "mask-entropy": _changed("entropy", rows.entropy_of, "mask"),
    "mask-concentration": _changed(
        "inverse_participation", rows.concentration_of, "mask"
    ),
    "sink-entropy": _changed("entropy", rows.entropy_of, "sink"),
    "sink-concentration": _changed(
        "inverse_participation", rows.concentration_of, "sink"
    ),
    "sink-underflow": LiteratureQuantity(
        low_precision.behind_sink, low_precision.drawn_behind_sink
    ),
    "row-underflow": LiteratureQuantity(
        low_precision.in_row, low_precision.drawn_in_row
    ),
    "score-exponent": LiteratureQuantity(exact_exponent, drawn_exponent),
}

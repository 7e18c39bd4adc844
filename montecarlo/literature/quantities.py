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
    symbol : str
        As LaTeX.
    exact : callable or None
        Setting -> value; None where theory has none.
    draw : callable or None
        (source of rows, setting) -> estimate; None where nothing is random.
    """

    symbol: str
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

    symbols = {"entropy": "H", "inverse_participation": r"\sum p^2"}
    below = rf"\operatorname{{E}} {symbols[name]}"
    symbol = rf"\operatorname{{E}}_{{\text{{{changed}}}}} {symbols[name]} / {below}"
    return LiteratureQuantity(symbol, _over_uniform(name, changed), draw)


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

    With nothing held it is that of one score above equal ones, a ratio of logarithms.
    """
    low, high = at.from_keys or 2, at.keys
    if not at.holds:
        return math.log(high) / math.log(low)
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
    "raised-weight": LiteratureQuantity("p_1", raised_weight),
    "noisy-weight": LiteratureQuantity(
        r"\operatorname{E} p_1",
        _row("biased_weight"),
        partial(rows.mean_over_rows, value=rows.first_weight_of),
    ),
    "growth-exponent": LiteratureQuantity(
        r"\alpha: s \propto (\ln n)^\alpha", _exponent, _draw_exponent
    ),
    # of so many keys that drawing would take a minute
    "late-exponent": LiteratureQuantity(r"\alpha: s \propto (\ln n)^\alpha", _exponent),
    "extension-factor": LiteratureQuantity(r"(0.1 \ln(n/n_0) + 1)^2", extension_factor),
    "growth-factor": LiteratureQuantity(r"s(n)/s(n_0)", growth_factor),
    "frozen-share": LiteratureQuantity(
        r"\operatorname{E} \sum p^2 / (1 - \sqrt{2 \ln n}/s)",
        frozen_share,
        _draw_frozen_share,
    ),
    "beyond-critical": LiteratureQuantity(
        r"\sqrt{d_k} / \sqrt{2 \ln n}", beyond_critical
    ),
    "concentration-ratio": LiteratureQuantity(
        r"\operatorname{E} \|p\|^2 : \operatorname{E} \|p_{\sqrt{d_k}}\|^2",
        _unscaled_over_scaled("inverse_participation"),
        partial(rows.unscaled_over_scaled, value=rows.concentration_of),
    ),
    "jacobian-ratio": LiteratureQuantity(
        r"\operatorname{E} \|J\|_F^2 : \operatorname{E} \|J_{\sqrt{d_k}}\|_F^2",
        _unscaled_over_scaled("jacobian_frobenius_squared"),
        partial(rows.unscaled_over_scaled, value=rows.frobenius_of),
    ),
    "query-gradient-ratio": LiteratureQuantity(
        r"\operatorname{E} |\partial o/\partial q|^2 : "
        r"\operatorname{E} |\partial o_{\sqrt{d_k}}/\partial q|^2",
        draw=rows.query_gradients,
    ),
    "small-jacobians": LiteratureQuantity(
        r"\operatorname{P}(\|J\|_F^2 < \operatorname{E} \|J_{\sqrt{d_k}}\|_F^2)",
        draw=rows.small_jacobians,
    ),
    "spectral-norm": LiteratureQuantity(r"\max \|J\|_2", jacobian_bounds.spectral_norm),
    "searched-norm": LiteratureQuantity(r"\max \|J\|_2", jacobian_bounds.searched_norm),
    "largest-entry": LiteratureQuantity(
        r"\max |J_{ij}|", jacobian_bounds.searched_entry
    ),
    "mask-entropy": _changed("entropy", rows.entropy_of, "mask"),
    "mask-concentration": _changed(
        "inverse_participation", rows.concentration_of, "mask"
    ),
    "sink-entropy": _changed("entropy", rows.entropy_of, "sink"),
    "sink-concentration": _changed(
        "inverse_participation", rows.concentration_of, "sink"
    ),
    "sink-underflow": LiteratureQuantity(
        r"\operatorname{P}(\hat p = 0)",
        low_precision.behind_sink,
        low_precision.drawn_behind_sink,
    ),
    "row-underflow": LiteratureQuantity(
        r"\operatorname{P}(\hat p = 0)",
        low_precision.in_row,
        low_precision.drawn_in_row,
    ),
    "score-exponent": LiteratureQuantity(
        r"\beta: \sqrt{\operatorname{E} (q\cdot k)^2} \propto d_k^\beta",
        exact_exponent,
        drawn_exponent,
    ),
}

"""What statements of papers are about: each drawn and, where it can be, exact.

A new quantity is an entry here.  Where nothing is random, it has an exact value only.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from montecarlo.estimation.estimates import Estimate
from montecarlo.literature import growth, jacobian_bounds, limits, low_precision
from montecarlo.literature import score_rows as rows
from montecarlo.literature.correlation import drawn_exponent, exact_exponent
from montecarlo.literature.settings import Setting
from montecarlo.sampling.streams import ModelRows
from montecarlo.theory import expected_row


@dataclass(frozen=True, slots=True)
class LiteratureQuantity:
    """A quantity of the page of papers.

    Attributes
    ----------
    symbol : str
        What it is called, as LaTeX.
    exact : callable or None
        Setting -> value; None where theory has none.
    draw : callable or None
        (source of rows, setting) -> estimate; None where nothing is random.
    possible : (float, float)
        The least and the largest value that it can have.
    """

    symbol: str
    exact: Callable[[Setting], float] | None = None
    draw: Callable[[ModelRows, Setting], Estimate] | None = None
    possible: tuple[float, float] = (-math.inf, math.inf)


#: What a weight, a probability or Σp² can be.
PART = (0.0, 1.0)


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


def _over_usual(name: str, at: Setting, *, causal: bool) -> float:
    """Return an expectation under a mask, or with a sink, over that without."""
    bias = 0.0 if causal else at.gap or 0.0
    changed = expected_row(at.keys, std=at.std, bias=bias, causal=causal)
    return changed[name].value / expected_row(at.keys, std=at.std)[name].value


def _changed(
    symbol: str, name: str, value: rows.RowValue, *, causal: bool
) -> LiteratureQuantity:
    """Return the quantity that says what a mask or a sink makes of an expectation."""

    def draw(source: ModelRows, at: Setting) -> Estimate:
        usual = expected_row(at.keys, std=at.std)[name].value
        mean = rows.mean_over_mask if causal else rows.mean_over_rows
        return mean(source, at, value).times(1.0 / usual)

    return LiteratureQuantity(symbol, partial(_over_usual, name, causal=causal), draw)


def critical_std(n_keys: int) -> float:
    """Return sqrt(2 ln n), the s beyond which rows concentrate where n is large."""
    return math.sqrt(2.0 * math.log(n_keys))


def _frozen(at: Setting) -> float:
    """Return the limit of E Σp² beyond the critical s: 1 - sqrt(2 ln n)/s."""
    return 1.0 - critical_std(at.keys) / (at.std or 1.0)


def frozen_share(at: Setting) -> float:
    """Return E Σp² over its limit for large n."""
    return _row("inverse_participation")(at) / _frozen(at)


def _draw_frozen_share(source: ModelRows, at: Setting) -> Estimate:
    found = rows.mean_over_rows(source, at, rows.concentration_of)
    return found.times(1.0 / _frozen(at))


def scaled_ceiling(at: Setting) -> float:
    """Return 1 over E Σp² with √d_k: the ratio of a row that has all on one key."""
    return 1.0 / expected_row(at.keys, d_k=at.d_k)["inverse_participation"].value


def beyond_critical(at: Setting) -> float:
    """Return sqrt(d_k), the s of unscaled scores, over the critical s."""
    return math.sqrt(at.dimension) / critical_std(at.keys)


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


#: By the names that literature.toml has.
QUANTITIES = {
    "raised-weight": LiteratureQuantity("p_1", raised_weight, possible=PART),
    "raised-weight-limit": LiteratureQuantity(
        r"\lim_{n \to \infty} p_1", limits.raised_weight_limit, possible=PART
    ),
    "noisy-weight": LiteratureQuantity(
        r"\operatorname{E} p_1",
        _row("biased_weight"),
        partial(rows.mean_over_rows, value=rows.first_weight_of),
        PART,
    ),
    "growth-exponent": LiteratureQuantity(
        r"\alpha: s \propto (\ln n)^\alpha", _exponent, _draw_exponent
    ),
    # of so many keys that drawing would take a minute
    "late-exponent": LiteratureQuantity(r"\alpha: s \propto (\ln n)^\alpha", _exponent),
    "growth-exponent-limit": LiteratureQuantity(
        r"\lim_{n \to \infty} \alpha: s \propto (\ln n)^\alpha",
        limits.normal_exponent_limit,
    ),
    "gap-exponent": LiteratureQuantity(
        r"\alpha: \Delta \propto (\ln n)^\alpha", limits.gap_exponent
    ),
    "gap-exponent-limit": LiteratureQuantity(
        r"\lim_{n \to \infty} \alpha: \Delta \propto (\ln n)^\alpha",
        limits.gap_exponent_limit,
    ),
    "extension-factor": LiteratureQuantity(r"(0.1 \ln(n/n_0) + 1)^2", extension_factor),
    "growth-factor": LiteratureQuantity(r"s(n)/s(n_0)", growth_factor),
    "row-concentration": LiteratureQuantity(
        r"\operatorname{E} \sum p^2",
        _row("inverse_participation"),
        partial(rows.mean_over_rows, value=rows.concentration_of),
        PART,
    ),
    "concentration-limit": LiteratureQuantity(
        r"\lim_{n \to \infty} \operatorname{E} \sum p^2",
        limits.concentration_limit,
        possible=PART,
    ),
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
    "scaled-ceiling": LiteratureQuantity(
        r"1 : \operatorname{E} \|p_{\sqrt{d_k}}\|^2", scaled_ceiling
    ),
    "jacobian-ratio": LiteratureQuantity(
        r"\operatorname{E} \|J\|_F^2 : \operatorname{E} \|J_{\sqrt{d_k}}\|_F^2",
        _unscaled_over_scaled("jacobian_frobenius_squared"),
        partial(rows.unscaled_over_scaled, value=rows.frobenius_of),
    ),
    "query-gradient-rest": LiteratureQuantity(
        r"\operatorname{E} |\partial o/\partial q|^2 : "
        r"d_k \operatorname{E} |\partial o_{\sqrt{d_k}}/\partial q|^2",
        draw=rows.query_gradients,
    ),
    "mean-jacobian-limit": LiteratureQuantity(
        r"\lim_{d_k \to \infty} \operatorname{E} \|J\|_F",
        partial(limits.jacobian_limit, summary="mean"),
    ),
    "median-jacobian-limit": LiteratureQuantity(
        r"\lim_{d_k \to \infty} \operatorname{median} \|J\|_F",
        partial(limits.jacobian_limit, summary="median"),
    ),
    "small-jacobians": LiteratureQuantity(
        r"\operatorname{P}(\|J\|_F^2 \lt \operatorname{E} \|J_{\sqrt{d_k}}\|_F^2)",
        draw=rows.small_jacobians,
        possible=PART,
    ),
    "spectral-bound": LiteratureQuantity(
        r"\max_{\|u\| = 1} (\max u - \min u)^2 / 4", limits.spectral_bound
    ),
    "spectral-norm": LiteratureQuantity(r"\max \|J\|_2", jacobian_bounds.spectral_norm),
    "searched-norm": LiteratureQuantity(r"\max \|J\|_2", jacobian_bounds.searched_norm),
    "largest-entry": LiteratureQuantity(
        r"\max |J_{ij}|", jacobian_bounds.searched_entry
    ),
    "mask-entropy": _changed(
        r"\frac{1}{n} \sum_{i \le n} \operatorname{E} H_i / \operatorname{E} H_n",
        "entropy",
        rows.entropy_of,
        causal=True,
    ),
    "mask-concentration": _changed(
        r"\frac{1}{n} \sum_{i \le n} \operatorname{E} Y_i / \operatorname{E} Y_n, "
        r"\; Y = \sum p^2",
        "inverse_participation",
        rows.concentration_of,
        causal=True,
    ),
    "sink-entropy": _changed(
        r"\operatorname{E} H_\Delta / \operatorname{E} H_0",
        "entropy",
        rows.entropy_of,
        causal=False,
    ),
    "sink-concentration": _changed(
        r"\operatorname{E} Y_\Delta / \operatorname{E} Y_0, \; Y = \sum p^2",
        "inverse_participation",
        rows.concentration_of,
        causal=False,
    ),
    "sink-underflow": LiteratureQuantity(
        r"\operatorname{P}(\hat e = 0), \; e = S e^{x - \max x}",
        low_precision.behind_sink,
        low_precision.drawn_behind_sink,
        PART,
    ),
    "over-leading-order": LiteratureQuantity(
        r"\operatorname{P}(\hat e = 0) : \Phi(\Delta + \delta - 10 \ln 2 - \ln S)",
        low_precision.over_leading_order,
    ),
    "row-underflow": LiteratureQuantity(
        r"\operatorname{P}(\hat e = 0), \; e = e^{x - \max x}",
        low_precision.in_row,
        low_precision.drawn_in_row,
        PART,
    ),
    "normalised-underflow": LiteratureQuantity(
        r"\operatorname{P}(\hat p = 0), \; p = e / \sum e",
        draw=low_precision.drawn_normalised,
        possible=PART,
    ),
    "score-exponent": LiteratureQuantity(
        r"\beta: \sqrt{\operatorname{E} (q\cdot k)^2} \propto d_k^\beta",
        exact_exponent,
        drawn_exponent,
    ),
    "score-exponent-limit": LiteratureQuantity(
        r"\lim_{d_k \to \infty} \beta", limits.score_exponent_limit
    ),
}

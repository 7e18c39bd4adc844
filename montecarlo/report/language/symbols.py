"""Quantities, summaries, divisors and checks as LaTeX."""

from montecarlo.attention.divisors import parse_divisor
from montecarlo.attention.quantities import (
    FORMAT_QUANTITIES,
    PAIR_QUANTITIES,
    QUANTITIES,
    quantile_level,
)
from montecarlo.claims.checks import Check, Level
from montecarlo.claims.recorded import RECORDED

_SCORE = r"q\cdot k"
#: Means over the first row or key alone, and over the last.
_ENDS = {"first": r"\operatorname{E}_{i=1}", "last": r"\operatorname{E}_{i=n}"}


def summary_symbol(summary: str) -> str:
    r"""Return the LaTeX operator of a summary: E for a mean, Q_p for a quantile.

    Such as ``\operatorname{E}`` or ``Q_{0.9}``; p is the level, from 0 to 1.  E has an
    index for ``first`` and ``last``.  Any other summary gives E.
    """
    if summary in _ENDS:
        return _ENDS[summary]
    level = quantile_level(summary)
    return r"\operatorname{E}" if level is None else rf"Q_{{{decimal(level)}}}"


def divisor_symbol(divisor: str) -> str:
    r"""Return the LaTeX of a divisor, given by its name or formula.

    Such as ``2\,\sqrt{d_k}`` for ``2sqrt``.
    """
    return parse_divisor(divisor).symbol


def row_symbol(quantity: str, summary: str, divisor: str) -> str:
    r"""Return the LaTeX of an estimate: summary, quantity and divisor.

    Such as ``\operatorname{E}\, H\;\;({c=\sqrt{d_k}})`` for the mean entropy.  The
    divisor may be a ratio such as ``none/sqrt``.  A quantity of pairs of a query and a
    key has no summary: ``\operatorname{Var}(q\cdot k/\sqrt{d_k})``.
    """
    if quantity in RECORDED:
        return _recorded_symbol(quantity, summary, divisor)
    symbol = QUANTITIES[quantity].symbol
    if quantity in PAIR_QUANTITIES:
        if divisor != "none":
            c = divisor_symbol(divisor)
            c = f"({c})" if c[0].isdigit() else c
            symbol = symbol.replace(_SCORE, f"{_SCORE}/{c}")
        return symbol
    if "/" in divisor:
        over, under = (
            row_symbol(quantity, summary, part) for part in divisor.split("/")
        )
        return rf"\frac{{{over}}}{{{under}}}"
    if summary == "spread":
        symbol = rf"\frac{{Q_{{0.9}}}}{{Q_{{0.1}}}}({symbol})"
    else:
        symbol = rf"{summary_symbol(summary)}\, {symbol}"
    return rf"{symbol}\;\;({{c={divisor_symbol(divisor)}}})"


def _recorded_symbol(quantity: str, summary: str, divisor: str) -> str:
    r"""Return the LaTeX of the estimate of a recorded quantity; see `RECORDED`.

    A ratio of divisors stands within the summary, as it is formed for each seed:
    ``Q_{0.5}\, [T({c=1})/T({c=\sqrt{d_k}})]``.
    """
    known = RECORDED[quantity]
    compared = [
        rf"{known.symbol}({{c={divisor_symbol(part)}}})"
        for part in divisor.split("/")
        if len(known.divisors) > 1
    ]
    symbol = known.sign.join(compared) or known.symbol
    if summary == "value":
        return symbol
    return rf"{summary_symbol(summary)}\, {f'[{symbol}]' if compared[1:] else symbol}"


def check_symbol(check: Check) -> str:
    """Return the LaTeX of what a check tests: a quantity, or its slope.

    The slope is d ln(quantity) / d ln d_k.
    """
    symbol = row_symbol(check.quantity, check.summary, check.divisor)
    if check.relation == "slope_between":
        return rf"\frac{{\mathrm{{d}} \ln {symbol}}}{{\mathrm{{d}} \ln d_k}}"
    return symbol


def check_formula(check: Check) -> str:
    r"""Return a check as LaTeX: quantity, relation, and expected value or bounds.

    Such as ``\operatorname{Var}(q_m) = 1\;(\pm 5\,\%)``.
    """
    symbol = check_symbol(check)
    if check.quantity in FORMAT_QUANTITIES:
        name = check.number_format.replace("_", r"\_")
        symbol = rf"{symbol}\,_{{\mathrm{{{name}}}}}"
    low, high = level_formula(check.low), level_formula(check.high)
    match check.relation:
        case "equals":
            if check.expected == "reference":
                expected = rf"{symbol}^{{\,\ast}}"
            else:
                expected = level_formula(check.expected)
            percent = decimal(100.0 * (check.tolerance or 0.0))
            if check.expected == 0.0:
                return rf"{symbol} = 0 \pm {decimal(check.tolerance or 0.0)}"
            return rf"{symbol} = {expected}\;(\pm {percent}\,\%)"
        case "tends_to":
            ends = {"zero": "0", "constant": r"c > 0", "infinity": r"\infty"}
            return rf"{symbol} \to {ends[check.to or 'zero']}\;\;({{d_k \to \infty}})"
    if low and high:
        return rf"{low} \le {symbol} \le {high}"
    return rf"{symbol} \ge {low}" if low else rf"{symbol} \le {high}"


def level_formula(level: Level | float | str | None) -> str:
    r"""Return the LaTeX of a bound or expected value of a check; empty for None.

    Such as ``0.25`` or, if it depends on the sizes of a case, ``2\,\sqrt{d_k}/n``.
    """
    if level is None:
        return ""
    if not isinstance(level, Level):
        return decimal(float(level))
    over: list[str] = []
    under: list[str] = []
    for base, power in (("d_k", level.d_k_power), ("n", level.n_keys_power)):
        factor = {1.0: base, 0.5: rf"\sqrt{{{base}}}"}.get(abs(power))
        if factor is None and power != 0.0:
            over.append(rf"{base}^{{{decimal(power)}}}")
        elif factor is not None:
            (over if power > 0.0 else under).append(factor)
    if level.times != 1.0 or not over:
        over.insert(0, decimal(level.times))
    return "/".join([r"\,".join(over), *under])


def decimal(value: float) -> str:
    r"""Return the LaTeX of a number with six significant digits.

    With a power of ten if needed: ``1.5\times 10^{-7}``.
    """
    mantissa, _, exponent = f"{value:.6g}".partition("e")
    if not exponent:
        return mantissa
    power = rf"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa}\times {power}"

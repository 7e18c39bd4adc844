"""Moments of the score q·k for independent entries, in closed form.

In: the distributions of the entries of q and of k, and d_k.  Out: a moment of the
unscaled score q·k; callers apply the divisor.  In formulas d is d_k, and m, σ² and κ
are mean, variance and kurtosis of an entry.
"""

import math
from collections.abc import Callable

import scipy

from montecarlo.sampling.design_points import Initialisation
from montecarlo.sampling.distributions import Distribution

#: (width, fan out) -> variance of an entry of x W, for a normalised token with |x|² =
#: width: width times the variance of a weight.  Not imported from `sampling`, as a
#: reference must not share its mistakes.  Other initialisations have no references.
PROJECTED_VARIANCES: dict[str, Callable[[int, int], float]] = {
    "xavier_uniform": lambda width, fan_out: 2.0 * width / (width + fan_out),
    "xavier_normal": lambda width, fan_out: 2.0 * width / (width + fan_out),
    "kaiming_linear": lambda width, fan_out: 1.0 / 3.0,
    "he_normal": lambda width, fan_out: 2.0,
    "lecun_normal": lambda width, fan_out: 1.0,
    "normal_002": lambda width, fan_out: 4e-4 * width,
}


def projected_variance(initialisation: Initialisation, d_k: int) -> float | None:
    """Return the variance of one entry of a projected token at initialisation.

    The token x is normalised, |x|² = width; its projection to queries or keys is x W.

    Returns
    -------
    float or None
        None if the initialisation or the shape of W is not covered here.
    """
    width = initialisation.width
    variance = PROJECTED_VARIANCES.get(initialisation.kind)
    fan_outs = {"head": d_k, "full": width, "fused": 3 * width}
    fan_out = fan_outs.get(initialisation.shape)
    return None if variance is None or fan_out is None else variance(width, fan_out)


def score_mean(q: Distribution, k: Distribution, d_k: int) -> float:
    """Return the mean of q·k: d_k times the product of the means of the entries."""
    return d_k * q.mean * k.mean


def score_variance(q: Distribution, k: Distribution, d_k: int) -> float:
    """Return the variance of q·k over independent queries and keys.

    Notes
    -----
    d (σ_q² σ_k² + m_q² σ_k² + m_k² σ_q²), with d = d_k and means m and variances σ² of
    the entries: the products q_i k_i are independent, and each has variance E q_i² E
    k_i² - (m_q m_k)² with E q_i² = σ_q² + m_q².
    """
    between_rows = (k.mean * q.std) ** 2
    return score_row_variance(q, k, d_k) + d_k * between_rows


def score_row_variance(q: Distribution, k: Distribution, d_k: int) -> float:
    """Return the expected variance of q·k over the keys of one row, E Var(q·k | q).

    Notes
    -----
    d (σ_q² + m_q²) σ_k², with d = d_k and means m and variances σ² of the entries:
    given q the variance is |q|² σ_k².  The rest of `score_variance` is the variance of
    E(q·k | q).  It shifts all scores of a row equally, which softmax ignores.
    """
    return d_k * (q.std**2 + q.mean**2) * k.std**2


def score_variance_ratio(q: Distribution, k: Distribution) -> float:
    """Return Var(q·k) / (d_k Var(q_i) Var(k_i)), for independent entries.

    It is 1 if both distributions have mean 0.
    """
    return 1.0 + (q.mean / q.std) ** 2 + (k.mean / k.std) ** 2


def score_excess_kurtosis(q: Distribution, k: Distribution, d_k: int) -> float | None:
    """Return the excess kurtosis of q·k.

    Returns
    -------
    float or None
        None if a fourth moment is infinite or a mean is not 0.

    Notes
    -----
    (κ_q κ_k - 3)/d, with d = d_k and kurtoses κ of the entries: one product q_i k_i has
    excess kurtosis κ_q κ_k - 3, and a sum of d independent ones has 1/d of it.
    """
    kurtosis = q.kurtosis * k.kurtosis
    if q.mean != 0.0 or k.mean != 0.0 or math.isinf(kurtosis):
        return None
    return (kurtosis - 3.0) / d_k


def score_abs(q: Distribution, k: Distribution, d_k: int) -> float | None:
    """Return the mean absolute score, E |q·k|.

    Returns
    -------
    float or None
        None unless both distributions are Gaussian or Rademacher, with mean 0.

    Notes
    -----
    For entries of variance 1, and d = d_k.  Given q and Gaussian keys, q·k is N(0,
    |q|²), so E|q·k| = sqrt(2/pi) E|q|.  E|q| is sqrt 2 Γ((d+1)/2)/Γ(d/2) for a Gaussian
    query, the mean of the chi distribution, and sqrt d for a Rademacher one.  For a
    Gaussian query and Rademacher keys, exchange q and k.  If both are Rademacher, q·k
    is a simple random walk after d steps: 2 h C(2h, h)/4^h with h = ceil(d/2).
    """
    if q.mean != 0.0 or k.mean != 0.0:
        return None
    scale = q.std * k.std
    match sorted((q.family, k.family)):
        case ["gaussian", "gaussian"]:
            half = d_k / 2
        case ["rademacher", "rademacher"]:
            half = (d_k + 1) // 2  # C(2h, h)/4^h = Γ(h + 1/2)/(Γ(h + 1) sqrt pi)
        case ["gaussian", "rademacher"]:
            return scale * math.sqrt(2.0 * d_k / math.pi)
        case _:
            return None
    ratio = float(scipy.special.poch(half, 0.5))  # Γ(h + 1/2)/Γ(h)
    return scale * 2.0 * ratio / math.sqrt(math.pi)

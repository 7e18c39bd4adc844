"""Closed forms of q·k for independent entries, from their moments.

In: two distributions and d_k.  Out: numbers for the undivided score; what divides it is
the caller's business.
"""

import math
from collections.abc import Callable

import scipy

from montecarlo.sampling.design_points import Initialisation
from montecarlo.sampling.distributions import Distribution

#: (width, fan out) -> variance of an entry behind the projection of a normalised token,
#: which has |x|² = width: that many times the variance of a weight.  Written down a
#: second time, for a reference must not share a mistake of the table in `sampling`; an
#: initialisation that is not here has no references.
PROJECTED: dict[str, Callable[[int, int], float]] = {
    "xavier_uniform": lambda width, fan_out: 2.0 * width / (width + fan_out),
    "xavier_normal": lambda width, fan_out: 2.0 * width / (width + fan_out),
    "kaiming_linear": lambda width, fan_out: 1.0 / 3.0,
    "he_normal": lambda width, fan_out: 2.0,
    "lecun_normal": lambda width, fan_out: 1.0,
    "normal_002": lambda width, fan_out: 4e-4 * width,
}


def entry_variance(distribution: Distribution) -> float:
    """Return the variance of one entry."""
    return distribution.std**2


def projected_variance(initialisation: Initialisation, d_k: int) -> float | None:
    """Return the variance of one entry behind a projection at initialisation.

    Returns
    -------
    float or None
        None for an initialisation or a shape that theory does not know.
    """
    width = initialisation.width
    fan_outs = {"head": d_k, "full": width, "fused": 3 * width}
    if initialisation.kind not in PROJECTED or initialisation.shape not in fan_outs:
        return None
    return PROJECTED[initialisation.kind](width, fan_outs[initialisation.shape])


def score_mean(q: Distribution, k: Distribution, d_k: int) -> float:
    """Return E q·k = d m_q m_k."""
    return d_k * q.mean * k.mean


def score_variance(q: Distribution, k: Distribution, d_k: int) -> float:
    """Return Var(q·k) over independent queries and keys.

    Notes
    -----
    d (σ_q² σ_k² + m_q² σ_k² + m_k² σ_q²): the products q_i k_i are independent, and
    E q² k² - (m_q m_k)² with E q² = σ_q² + m_q².
    """
    invisible = (k.mean * q.std) ** 2
    return score_row_variance(q, k, d_k) + d_k * invisible


def score_row_variance(q: Distribution, k: Distribution, d_k: int) -> float:
    """Return the expected variance of q·k within a row, which is what softmax sees.

    Notes
    -----
    d (σ_q² + m_q²) σ_k²: given q the variance is |q|² σ_k².  The rest of
    `score_variance` is that of q·m_k, which is the same for all keys of a row.
    """
    return d_k * (q.std**2 + q.mean**2) * k.std**2


def score_variance_ratio(q: Distribution, k: Distribution) -> float:
    """Return Var(q·k) over d times the entry variances: 1 where the means are 0."""
    return 1.0 + (q.mean / q.std) ** 2 + (k.mean / k.std) ** 2


def score_excess_kurtosis(q: Distribution, k: Distribution, d_k: int) -> float | None:
    """Return the excess kurtosis of q·k.

    Returns
    -------
    float or None
        None where a distribution has no fourth moment or a mean is not 0.

    Notes
    -----
    (κ_q κ_k - 3)/d: that of one product q_i k_i is κ_q κ_k - 3, and of a sum of d
    independent ones it is a d-th.
    """
    kurtosis = q.kurtosis * k.kurtosis
    if q.mean != 0.0 or k.mean != 0.0 or math.isinf(kurtosis):
        return None
    return (kurtosis - 3.0) / d_k


def score_abs(q: Distribution, k: Distribution, d_k: int) -> float | None:
    """Return E |q·k|.

    Returns
    -------
    float or None
        None unless both distributions are Gaussian or Rademacher, of mean 0.

    Notes
    -----
    Given q, Gaussian keys make q·k normal: E|q·k| = sqrt(2/pi) E|q|, with E|q| =
    sqrt 2 Γ((d+1)/2)/Γ(d/2) for a Gaussian query (that of the variance-gamma
    distribution) and sqrt d for a Rademacher one, where the two may change places.
    Both Rademacher: a simple random walk after d steps, 2 h C(2h, h)/4^h with h =
    ceil(d/2).
    """
    if q.mean != 0.0 or k.mean != 0.0:
        return None
    scale = q.std * k.std
    match sorted((q.family, k.family)):
        case ["gaussian", "gaussian"]:
            # poch(x, 1/2) = Γ(x + 1/2)/Γ(x)
            ratio = float(scipy.special.poch(d_k / 2, 0.5))
            return scale * 2.0 * ratio / math.sqrt(math.pi)
        case ["gaussian", "rademacher"]:
            return scale * math.sqrt(2.0 * d_k / math.pi)
        case ["rademacher", "rademacher"]:
            # C(2h, h)/4^h = Γ(h + 1/2)/(Γ(h + 1) sqrt pi)
            half = (d_k + 1) // 2
            ratio = float(scipy.special.poch(half, 0.5))
            return scale * 2.0 * ratio / math.sqrt(math.pi)
        case _:
            return None

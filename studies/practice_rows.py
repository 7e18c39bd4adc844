"""Exact values of rows of attention of several kinds, at initialisation.

In: a kind of row, the number of keys, d_k, a factor on the scores and what stands
beside them.  Out: means of the entropy and of the largest weight, and the root mean
square of the gradient by the query.  Queries, keys and the values that the gradient
meets are standard normal; no number is sampled.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit, log_ndtr

from montecarlo.theory import expected_row, query_gradient_squared
from montecarlo.theory.row_expectations import (
    CHI_REACH,
    discrete_profile,
    weigh_lengths,
)
from montecarlo.theory.row_integrals import (
    HIGHEST,
    LOG_T,
    LOWEST,
    REACH,
    ROW_NAMES,
    STEP,
    STEP_G,
    STEP_T,
    Array,
    integrate_row,
    largest_profile,
    log_complement,
)
from studies.cosine_scores import cosine_nodes, expect_cosines

ENTROPY = ROW_NAMES.index("entropy")
#: Gauss-Legendre points of |q|, and the step of a standard normal score.
LENGTHS, NORMAL_STEP = 32, 0.1


class RowValues(NamedTuple):
    """What the table has of a row.

    The entropy is that of the weights of the keys over their sum, in nats.
    """

    entropy: float  # mean
    largest: float  # mean of the largest weight of a key
    gradient: float  # root of the mean square of ∂o/∂q
    beside: float  # mean weight of a sink, or mean sum of the weights


@dataclass(frozen=True, slots=True)
class Kernels:
    """Means of w^k exp(-w) z^m over one score s z, w = exp(u + s z), on a grid of u.

    Attributes
    ----------
    u : ndarray
        Even, `STEP` apart.
    log_phi : ndarray
        ln of the mean with k = 0 and m = 0.
    a1, a1_z, a2, a2_z, a2_zz : ndarray
        The digit is k, each z stands for one of m.
    sink : ndarray
        exp(u + b), b what stands in the sum beside the keys; 0 without it.
    """

    u: Array
    log_phi: Array
    a1: Array
    a1_z: Array
    a2: Array
    a2_z: Array
    a2_zz: Array
    sink: Array


def kernels(z: Array, probability: Array, s: float, n: int, sink: float) -> Kernels:
    """Sum the kernels over the values z of a score over s, dense in both."""
    widest = s * float(np.abs(z).max())
    low = LOWEST - math.log(n) - widest - max(sink, 0.0)
    u: Array = np.arange(low, HIGHEST + widest, STEP)
    log_w = u[:, np.newaxis] + s * z
    w = np.exp(np.minimum(log_w, 700.0))
    first = w * np.exp(-w)
    second = w * first
    return Kernels(
        u,
        log_complement(-np.expm1(-w) @ probability),
        first @ probability,
        first @ (probability * z),
        second @ probability,
        second @ (probability * z),
        second @ (probability * z * z),
        np.exp(np.minimum(u + sink, 700.0)),
    )


def _times(k: Kernels, n: float, taken: int) -> Array:
    """Return n(n-1)... of some keys times the kernels of all others and the sink."""
    ways = math.prod(n - i for i in range(taken))
    product: Array = ways * np.exp((n - taken) * k.log_phi - k.sink)
    return product


def sink_share(k: Kernels, n: float) -> float:
    """Return the mean weight of the sink."""
    return float(STEP * (k.sink * _times(k, n, 0)).sum())


def across(k: Kernels, n: float, square: Array) -> float:
    """Return E Σ ω_i (J Jᵀ)_ii, J the Jacobian of the weights of the keys.

    Parameters
    ----------
    k : Kernels
    n : float
    square : ndarray
        As a2, with ω, a function of the score, as a factor.

    Notes
    -----
    (J Jᵀ)_ii = p_i² [(1 - p_i)² + Σ p_j²] over the other keys, and 1 - p_i is the sum
    of the other weights, the sink's p_0 among them::

        p_i² [p_0² + 2 p_0 Σ p_j + 2 Σ p_j² + Σ p_j p_k]

    all over different keys, each by the device of `row_integrals.integrate_row`.
    """
    terms = k.sink**2 * _times(k, n, 1)
    terms += 2.0 * (k.sink * k.a1 + k.a2) * _times(k, n, 2)
    terms += k.a1 * k.a1 * _times(k, n, 3)
    return float(STEP * (square * terms).sum() / 6.0)


def along(k: Kernels, n: float) -> float:
    """Return E ‖J z‖², z the scores over s, that of the sink 0.

    Notes
    -----
    (J z)_i = p_i Σ p_j (z_i - z_j) over the other keys and the sink; squared::

        p_i² [p_0² z_i² + 2 p_0 Σ p_j z_i (z_i - z_j)
              + Σ p_j² (z_i - z_j)² + Σ p_j p_k (z_i - z_j)(z_i - z_k)]
    """
    terms = k.sink**2 * k.a2_zz * _times(k, n, 1)
    two = 2.0 * k.sink * (k.a2_zz * k.a1 - k.a2_z * k.a1_z)
    two += 2.0 * (k.a2_zz * k.a2 - k.a2_z**2)
    terms += two * _times(k, n, 2)
    three = k.a2_zz * k.a1**2 - 2.0 * k.a2_z * k.a1_z * k.a1 + k.a2 * k.a1_z**2
    terms += three * _times(k, n, 3)
    return float(STEP * terms.sum() / 6.0)


def normal_nodes() -> tuple[Array, Array]:
    """Return an even grid of a standard normal, and its weights."""
    ends = round(REACH / NORMAL_STEP)
    z: Array = NORMAL_STEP * np.arange(-ends, ends + 1, dtype=np.float64)
    weight = np.exp(-0.5 * z * z)
    return z, weight / weight.sum()


def lengths(d_k: int, scale: float) -> tuple[Array, Array]:
    """Return standard deviations |q| times a scale of a row's scores, and weights."""
    reach = math.sqrt(d_k) - CHI_REACH, math.sqrt(d_k) + CHI_REACH
    piece = max(0.0, reach[0]) * scale, reach[1] * scale
    stds, weight = weigh_lengths(d_k, scale, piece, LENGTHS)
    return stds, weight / weight.sum()


def softmax_row(n: int, d_k: int, factor: float, _: float) -> RowValues:
    """Return the values of softmax of q·k/√d_k times a factor."""
    divisor = math.sqrt(d_k) / factor
    row = expected_row(n, d_k=d_k, divisor=divisor)
    square = query_gradient_squared(n, d_k=d_k, divisor=divisor).value
    gradient = math.sqrt(square) / divisor
    return RowValues(row["entropy"].value, row["weight_max"].value, gradient, 1.0)


def unit_row(n: int, d_k: int, factor: float, _: float) -> RowValues:
    """Return them for queries and keys of length 1, of gain √d_k times a factor.

    Entries of mean square 1, with √d_k divided by, are the same.  The gradient is by
    the query before it is normalised: across it, and over |q|, so that of a key the
    part across the query counts, whose square is 1 - cos², and E 1/|q|² = 1/(d_k - 2).
    """
    gain = math.sqrt(d_k) * factor
    row = expect_cosines(d_k, n, gain)
    scores, probability = cosine_nodes(d_k, gain)
    k = kernels(scores / gain, probability, gain, n, -math.inf)
    square = gain**2 / (d_k - 2.0) * across(k, n, k.a2 - k.a2_zz)
    return RowValues(row["entropy"], row["weight_max"], math.sqrt(square), 1.0)


def sink_row(n: int, d_k: int, factor: float, logit: float) -> RowValues:
    """Return them for a softmax that has one more term, exp(logit), in its sum.

    The term has no value, so that weights of the keys add up to less than 1; over their
    sum they are those of the softmax without it.
    """
    scale = factor / math.sqrt(d_k)
    stds, weight = lengths(d_k, scale)
    z, probability = normal_nodes()
    found = np.zeros(2)
    for s, part in zip(stds, weight, strict=True):
        k = kernels(z, probability, float(s), n, logit)
        square = (d_k - 1.0) * across(k, n, k.a2) + along(k, n)
        found += part * np.array([square, sink_share(k, n)])
    entropy = expected_row(n, d_k=d_k, divisor=1.0 / scale)["entropy"].value
    largest = float(weight @ largest_beside(stds, n, logit))
    gradient = scale * math.sqrt(found[0])
    return RowValues(entropy, largest, gradient, float(found[1]))


def largest_beside(stds: Array, n: int, logit: float) -> Array:
    """Return the mean largest weight of a key beside a sink, for scores N(0, s²).

    Notes
    -----
    As `row_integrals.integrate_largest`: p_max = 1/(1 + S + exp(b - s g)), so that the
    sink is one more factor exp(-t exp(b - s g)).
    """
    profile = largest_profile(stds)
    g = profile.g
    log_density = math.log(n / math.sqrt(2.0 * math.pi)) - 0.5 * g * g
    kernel = np.exp(LOG_T - np.exp(LOG_T))
    beside = logit - stds[:, np.newaxis] * g
    terms = (n - 1.0) * profile.log_psi + log_density[:, np.newaxis]
    terms -= np.exp(LOG_T + beside[..., np.newaxis])
    means: Array = STEP_G * STEP_T * (np.exp(terms) * kernel).sum(axis=(-2, -1))
    return means


def sigmoid_row(n: int, d_k: int, factor: float, bias: float) -> RowValues:
    """Return them for weights σ(x + bias) of scores x = q·k/√d_k times a factor.

    Notes
    -----
    Weights do not depend on one another: their Jacobian is diagonal, σ(1 - σ).  Over
    their sum they are the softmax of ln σ.
    """
    scale = factor / math.sqrt(d_k)
    stds, weight = lengths(d_k, scale)
    z, probability = normal_nodes()
    largest = n * probability * np.exp((n - 1.0) * log_ndtr(z))
    found = np.zeros(4)
    for s, part in zip(stds, weight, strict=True):
        p = expit(s * z + bias)
        logs = log_expit(s * z + bias) - bias
        entropy = integrate_row(discrete_profile(logs, probability), n).values[ENTROPY]
        square = n * probability @ ((p * (1.0 - p)) ** 2 * (d_k - 1.0 + z * z))
        found += part * np.array([entropy, largest @ p, square, n * probability @ p])
    return RowValues(found[0], found[1], scale * math.sqrt(found[2]), found[3])


def planted_weight(n: int, d_k: int, divisor: float, correlation: float) -> float:
    """Return the mean weight of a key that is correlated with the query.

    Each of its entries has that correlation with the query's; the n - 1 others are
    independent of it.  Given |q| its score is normal, with the mean ρ|q|² and the
    standard deviation √(1 - ρ²) |q|, over the divisor.
    """
    stds, weight = lengths(d_k, 1.0 / divisor)
    z, probability = normal_nodes()
    mean = 0.0
    for s, part in zip(stds.tolist(), weight, strict=True):
        k = kernels(z, probability, s, n, -math.inf)
        raised = correlation * s * s * divisor
        scores = raised + math.sqrt(1.0 - correlation**2) * s * z
        w = np.exp(np.minimum(k.u[:, np.newaxis] + scores, 700.0))
        own = (w * np.exp(-w)) @ probability
        mean += part * STEP * float((own * np.exp((n - 1.0) * k.log_phi)).sum())
    return float(mean)


#: Kinds of rows by the names that pages have: (n, d_k, factor, beside) -> values.
ROWS: dict[str, Callable[[int, int, float, float], RowValues]] = {
    "softmax": softmax_row,
    "unit": unit_row,
    "rms": unit_row,
    "sink": sink_row,
    "sigmoid": sigmoid_row,
}


@lru_cache(maxsize=4096)
def expect(kind: str, n: int, d_k: int, factor: float, beside: float) -> RowValues:
    """Return the values of a row of a kind, computed once."""
    return RowValues(*map(float, ROWS[kind](n, d_k, factor, beside)))

"""How large the Jacobian of softmax can be: by a search, and at two equal weights."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from montecarlo.literature.settings import Setting
from montecarlo.theory.row_integrals import Array

#: Rows that a search starts from.
STARTS = 8

#: Scores -> what is to be made small, and its gradient.
Lost = Callable[[Array], tuple[float, Array]]


def jacobian(weights: Array) -> Array:
    """Return diag(p) - p pᵀ."""
    return np.diag(weights) - np.outer(weights, weights)


def spectral_norm(at: Setting) -> float:
    """Return ‖J‖_2 where two keys have all of the weight, one half each."""
    weights = np.zeros(at.n_keys or 2)
    weights[:2] = 0.5
    return float(np.linalg.norm(jacobian(weights), 2))


@lru_cache(maxsize=8)
def searched_norm(at: Setting) -> float:
    """Return the largest ‖J‖_2 that a search over rows of scores finds."""
    return _search(lost_norm, at.n_keys or 2)


@lru_cache(maxsize=8)
def searched_entry(at: Setting) -> float:
    """Return the largest |J_ij| that a search over rows of scores finds."""
    return _search(lost_entry, at.n_keys or 2)


def lost_norm(scores: Array) -> tuple[float, Array]:
    """Return -‖J‖_2 and its gradient by the scores.

    Of uᵀ J u = Σ p u² - (Σ p u)², u the first eigenvector.
    """
    weights = softmax(scores)
    values, vectors = np.linalg.eigh(jacobian(weights))
    top = vectors[:, -1]
    by_weight = top**2 - 2.0 * (weights @ top) * top
    return -float(values[-1]), -weights * (by_weight - weights @ by_weight)


def lost_entry(scores: Array) -> tuple[float, Array]:
    """Return minus the largest |J_ij| and its gradient by the scores.

    It stands on the diagonal: p_i p_j is at most p_i (1 - p_i).
    """
    weights = softmax(scores)
    place = int(np.argmax(weights * (1.0 - weights)))
    p = weights[place]
    slope = (1.0 - 2.0 * p) * p * (np.eye(len(scores))[place] - weights)
    return -float(p * (1.0 - p)), -slope


def _search(lost: Lost, n_keys: int) -> float:
    # rows that differ, without drawing any
    starts = 2.0 * np.sin(np.outer(np.arange(1, STARTS + 1), np.arange(n_keys) ** 2))
    found = [minimize(lost, one, jac=True, method="L-BFGS-B").fun for one in starts]
    return -float(min(found))

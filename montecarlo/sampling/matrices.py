"""Random matrices Q and K of a replicate.

Entries are drawn from the distributions of the design point, and K may depend on Q; or
Q and K are projections of normalised tokens.  Then queries and keys may be normalised.
"""

import math

import numpy as np
from numpy.random import Generator

from montecarlo.attention.rows import Floats
from montecarlo.sampling.design_points import (
    AS_DRAWN,
    INDEPENDENT,
    MOST_QUERIES,
    WEIGHT_KINDS,
    DesignPoint,
    Initialisation,
    Normalisation,
    stream,
)
from montecarlo.sampling.distributions import DISTRIBUTIONS

#: Largest number of entries of K in one call of the sampler; larger matrices are filled
#: in parts.  The parts depend on the point only, as draws depend on them.
ENTRIES_AT_ONCE = 2**22


def draw_matrices(point: DesignPoint, seed: int, index: int) -> tuple[Floats, Floats]:
    """Return the random matrices Q and K of one replicate.

    Their product is not yet divided by a divisor.

    Parameters
    ----------
    point : DesignPoint
    seed : int
    index : int
        Index of the replicate, at least 0.

    Returns
    -------
    q : ndarray of float32, shape (n_queries, d_k)
    k : ndarray of float32, shape (n_keys, d_k)
        Without the gain of a normalisation.
    """
    (n_queries, n_keys), d_k = point.shape, point.d_k
    initialisation, normalisation = point.initialisation, point.normalisation
    rngs = (stream(seed, point, index, which) for which in ("q", "k"))
    if initialisation is not None:
        q, k = (
            normalise(project(initialisation, n, d_k, rng), normalisation)
            for n, rng in zip(point.shape, rngs, strict=True)
        )
        return q, k
    rng_q, rng_k = rngs
    standard = point.distribution_q.draw(rng_q, (n_queries, d_k))
    q = normalise(point.distribution_q.rescale(standard), normalisation)
    dependence, distribution = point.dependence, point.distribution_k
    copy = None
    if dependence != INDEPENDENT and distribution.family != "gaussian":
        copy = stream(seed, point, index, "copy")

    def draw_keys(start: int, stop: int) -> Floats:
        """Return the keys start to stop - 1, drawn from ``rng_k``: (stop - start, d_k).

        Calls must be in the order of ``start``, without gaps.  If the point says so,
        keys depend on the queries, which are in ``standard``.  They are scaled and
        normalised.
        """
        k = distribution.draw(rng_k, (stop - start, d_k))
        matching = standard[start:stop]
        if dependence != INDEPENDENT and len(matching):
            k = correlate(matching, k, dependence.rho, copy)
        return normalise(distribution.rescale(k), normalisation)

    size = max(MOST_QUERIES, ENTRIES_AT_ONCE // d_k)
    if n_keys <= size:
        return q, draw_keys(0, n_keys)
    k = np.empty((n_keys, d_k), np.float32)
    for start in range(0, n_keys, size):
        stop = min(start + size, n_keys)
        k[start:stop] = draw_keys(start, stop)
    return q, k


def normalise(vectors: Floats, normalisation: Normalisation) -> Floats:
    """Return vectors scaled to the norm of a normalisation, without its gain.

    Parameters
    ----------
    vectors : ndarray of float32, shape (n_vectors, d_k)
        A vector of zeros stays 0: a Gaussian one with d_k = 1, once in 2**24 draws.
    normalisation : Normalisation
        If its kind is ``none``, ``vectors`` itself is returned.

    Returns
    -------
    ndarray of float32, shape (n_vectors, d_k)
    """
    if normalisation == AS_DRAWN:
        return vectors
    length = np.sqrt(np.vecdot(vectors, vectors))[:, np.newaxis]
    length[length == 0.0] = 1.0
    wanted = np.float32(normalisation.length(vectors.shape[1]))
    normalised: Floats = vectors * (wanted / length)
    return normalised


def correlate(
    queries: Floats, keys: Floats, rho: float, rng: Generator | None
) -> Floats:
    """Return a copy of keys in which key i is correlated with query i.

    If there are more keys than queries, the other keys are unchanged.

    Parameters
    ----------
    queries, keys : ndarray of float32, shapes (n_queries, d_k) and (n_keys, d_k)
        Independent entries of the same standardised distribution.
    rho : float
        Correlation of the entries of key i with those of query i, from 0 to 1.
    rng : Generator or None
        Decides which entries are copied; None for Gaussian entries.

    Returns
    -------
    ndarray of float32, shape (n_keys, d_k)

    Notes
    -----
    Gaussian keys are rho q + sqrt(1 - rho²) z with independent z.  For other
    distributions, each entry is copied from the query with probability rho, so that its
    distribution stays the same.  Then Var(q·k) = d_k (1 + rho (kurtosis - 1) - rho²).
    """
    matched = min(len(queries), len(keys))
    source, fresh = queries[:matched], keys[:matched]
    if rng is None:
        mixed = np.float32(rho) * source
        mixed += np.float32(math.sqrt(1.0 - rho * rho)) * fresh
    else:
        copied = rng.random(fresh.shape, dtype=np.float32) < np.float32(rho)
        mixed = np.where(copied, source, fresh)
    return np.concatenate([mixed, keys[matched:]])


def project(
    initialisation: Initialisation, n_tokens: int, d_k: int, rng: Generator
) -> Floats:
    """Return queries or keys of one head: random tokens times a random projection.

    Parameters
    ----------
    initialisation : Initialisation
    n_tokens, d_k : int
    rng : Generator
        The random stream of Q or of K.

    Returns
    -------
    ndarray of float32, shape (n_tokens, d_k)
    """
    tokens = DISTRIBUTIONS["gaussian"].draw(rng, (n_tokens, initialisation.width))
    if initialisation.norm == "layer":
        tokens -= tokens.mean(axis=1, keepdims=True)
    length = np.sqrt(np.vecdot(tokens, tokens))[:, np.newaxis]
    _, distribution = WEIGHT_KINDS[initialisation.kind]
    weights = DISTRIBUTIONS[distribution].draw(rng, (initialisation.width, d_k))
    weights *= np.float32(
        math.sqrt(initialisation.width * initialisation.weight_variance(d_k))
    )
    projected = tokens @ weights
    projected /= length  # a normalised token has the norm sqrt(width)
    return projected

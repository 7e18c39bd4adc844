"""Drawing Q and K of a replicate, long ones in chunks of keys.

Q and K have entries of the point's distributions, K perhaps dependent on Q, or are
projections of normalised tokens; then each may be normalised itself.  The shape of a
chunk is a function of the point alone, and so are the draws.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from montecarlo.sampling.design_points import (
    AS_DRAWN,
    MOST_QUERIES,
    WEIGHT_KINDS,
    DesignPoint,
    Initialisation,
    Normalisation,
    stream,
)
from montecarlo.sampling.distributions import DISTRIBUTIONS

Floats = NDArray[np.float32]
#: Entries of K that are drawn at once; more keys come in chunks.
ENTRIES_AT_ONCE = 2**22


def keys_at_once(point: DesignPoint) -> int:
    """Return how many keys of a point are drawn at once.

    All of them where they fit.  Projections are not cut: they come behind the tokens
    in the stream.
    """
    _, n_keys = point.shape
    if point.initialisation:
        return n_keys
    return min(n_keys, max(MOST_QUERIES, ENTRIES_AT_ONCE // point.d_k))


def draw_matrices(point: DesignPoint, seed: int, index: int) -> tuple[Floats, Floats]:
    """Draw Q and K of one replicate.

    Returns
    -------
    q : ndarray of float32, shape (n_queries, d_k)
    k : ndarray of float32, shape (n_keys, d_k)
    """
    q, standard = draw_queries(point, seed, index)
    chunks = list(_draw_chunks(point, seed, index, standard))
    return q, chunks[0] if len(chunks) == 1 else np.concatenate(chunks)


def draw_keys(point: DesignPoint, seed: int, index: int) -> Iterator[Floats]:
    """Draw K of one replicate, in chunks of at most `keys_at_once` keys.

    Yields
    ------
    ndarray of float32, shape (at most keys_at_once, d_k)
    """
    _, standard = draw_queries(point, seed, index)
    return _draw_chunks(point, seed, index, standard)


def draw_queries(point: DesignPoint, seed: int, index: int) -> tuple[Floats, Floats]:
    """Draw Q of one replicate, shape (n_queries, d_k).

    Beside it stand the standardised draws that keys may depend on.
    """
    rng = stream(seed, point, index, "q")
    n_queries, _ = point.shape
    initialisation = point.initialisation
    if initialisation is not None:
        q = project(initialisation, n_queries, point.d_k, rng)
        return normalise(q, point.normalisation), q
    distribution = point.distribution_q
    standard = distribution.draw(rng, (n_queries, point.d_k))
    q = distribution.rescale(standard)
    return normalise(q, point.normalisation), standard


def _draw_chunks(
    point: DesignPoint, seed: int, index: int, queries: Floats
) -> Iterator[Floats]:
    rng = stream(seed, point, index, "k")
    _, n_keys = point.shape
    initialisation = point.initialisation
    if initialisation is not None:
        k = project(initialisation, n_keys, point.d_k, rng)
        yield normalise(k, point.normalisation)
        return
    distribution = point.distribution_k
    dependence = point.dependence
    at_once = keys_at_once(point)
    copy = None
    if dependence.kind != "none" and distribution.family != "gaussian":
        copy = stream(seed, point, index, "copy")
    for first in range(0, n_keys, at_once):
        k = distribution.draw(rng, (min(at_once, n_keys - first), point.d_k))
        matching = queries[first : first + at_once]
        if dependence.kind != "none" and len(matching):
            k = correlate(matching, k, dependence.rho, copy)
        yield normalise(distribution.rescale(k), point.normalisation)


def normalise(vectors: Floats, normalisation: Normalisation) -> Floats:
    """Return each row with the length that a normalisation gives it, without its gain.

    Where there is none, the same array.  A row of zeros stays one: in one dimension a
    Gaussian entry is 0 once in 2**24 draws.
    """
    if normalisation == AS_DRAWN:
        return vectors
    length = np.sqrt(np.vecdot(vectors, vectors))[:, np.newaxis]
    length[length == 0.0] = 1.0
    wanted = np.float32(normalisation.length(vectors.shape[1]))
    normalised: Floats = vectors * (wanted / length)
    return normalised


def correlate(
    queries: NDArray[np.float32],
    keys: NDArray[np.float32],
    rho: float,
    rng: Generator | None,
) -> NDArray[np.float32]:
    """Return keys whose first rows are correlated with the queries.

    Parameters
    ----------
    queries, keys : ndarray of float32, shapes (n_queries, d_k) and (n_keys, d_k)
        Independent, of the same standardised distribution.
    rho : float
        Correlation of the entries of key i with those of query i.
    rng : Generator or None
        None for Gaussian entries; else what decides which entries are copied.

    Returns
    -------
    ndarray of float32, shape (n_keys, d_k)

    Notes
    -----
    Gaussian: k = rho q + sqrt(1 - rho²) z.  Other distributions: each entry copies the
    query's with probability rho, which keeps the distribution of an entry; then
    Var(q·k) = d_k (1 + rho (kurtosis - 1) - rho²).
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
    """Draw tokens and a projection, and return queries or keys of one head.

    Parameters
    ----------
    initialisation : Initialisation
    n_tokens, d_k : int
    rng : Generator
        The stream of Q or of K.

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
    projected /= length  # a normalised token has the length sqrt(width)
    return projected

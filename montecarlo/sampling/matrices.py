"""Drawing Q and K of a replicate, long ones in chunks of keys.

The shape of a chunk is a function of the point alone, and so are the draws.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from montecarlo.sampling.dependence import correlate
from montecarlo.sampling.design_points import MOST_QUERIES, DesignPoint, stream
from montecarlo.sampling.initialisations import project

Floats = NDArray[np.float32]
#: Entries of K that are drawn at once; more keys come in chunks.
ENTRIES_AT_ONCE = 2**22


def keys_at_once(point: DesignPoint) -> int:
    """Return how many keys of a point are drawn at once.

    All of them where they fit.  A chunk holds the keys that depend on the queries.
    Projections are not cut: they come behind the tokens in the stream.
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
    q, standard = _draw_queries(point, seed, index)
    chunks = list(_draw_chunks(point, seed, index, standard))
    return q, chunks[0] if len(chunks) == 1 else np.concatenate(chunks)


def draw_queries(point: DesignPoint, seed: int, index: int) -> Floats:
    """Draw Q of one replicate, shape (n_queries, d_k)."""
    return _draw_queries(point, seed, index)[0]


def draw_keys(point: DesignPoint, seed: int, index: int) -> Iterator[Floats]:
    """Draw K of one replicate, in chunks of at most `keys_at_once` keys.

    Yields
    ------
    ndarray of float32, shape (at most keys_at_once, d_k)
    """
    _, standard = _draw_queries(point, seed, index)
    return _draw_chunks(point, seed, index, standard)


def _draw_queries(point: DesignPoint, seed: int, index: int) -> tuple[Floats, Floats]:
    """Return the queries, and the standardised draws that keys may depend on."""
    rng = stream(seed, point, index, "q")
    n_queries, _ = point.shape
    initialisation = point.initialisation
    if initialisation is not None:
        q = project(initialisation, n_queries, point.d_k, rng)
        return q, q
    distribution = point.distribution_q
    standard = distribution.draw(rng, (n_queries, point.d_k))
    return distribution.rescale(standard), standard


def _draw_chunks(
    point: DesignPoint, seed: int, index: int, queries: Floats
) -> Iterator[Floats]:
    rng = stream(seed, point, index, "k")
    _, n_keys = point.shape
    initialisation = point.initialisation
    if initialisation is not None:
        yield project(initialisation, n_keys, point.d_k, rng)
        return
    distribution = point.distribution_k
    dependence = point.dependence
    at_once = keys_at_once(point)
    for first in range(0, n_keys, at_once):
        k = distribution.draw(rng, (min(at_once, n_keys - first), point.d_k))
        if first == 0 and dependence.kind != "none":
            gaussian = point.distribution_k.family == "gaussian"
            copy = None if gaussian else stream(seed, point, index, "copy")
            k = correlate(queries, k, dependence.rho, copy)
        yield distribution.rescale(k)

"""Drawing Q and K of a replicate, long ones in chunks of keys.

The shape of a chunk is a function of the condition alone, and so are the draws.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from montecarlo.sampling.conditions import MOST_QUERIES, Condition, stream
from montecarlo.sampling.dependence import correlate, parse_dependence
from montecarlo.sampling.laws import parse_law
from montecarlo.sampling.setups import parse_setup, project

Floats = NDArray[np.float32]
#: Entries of K that are drawn at once; more keys come in chunks.
ENTRIES_AT_ONCE = 2**22


def keys_at_once(condition: Condition) -> int:
    """Return how many keys of a condition are drawn at once.

    All of them where they fit, as in every preset.  A chunk holds the keys that depend
    on the queries.  Projections are not cut: they come behind the tokens in the stream.
    """
    _, n_keys = condition.shape
    if condition.setup:
        return n_keys
    return min(n_keys, max(MOST_QUERIES, ENTRIES_AT_ONCE // condition.d_k))


def draw_matrices(condition: Condition, seed: int, index: int) -> tuple[Floats, Floats]:
    """Draw Q and K of one replicate.

    Returns
    -------
    q : ndarray of float32, shape (n_queries, d_k)
    k : ndarray of float32, shape (n_keys, d_k)
    """
    q, standard = _draw_queries(condition, seed, index)
    chunks = list(_draw_chunks(condition, seed, index, standard))
    return q, chunks[0] if len(chunks) == 1 else np.concatenate(chunks)


def draw_queries(condition: Condition, seed: int, index: int) -> Floats:
    """Draw Q of one replicate, shape (n_queries, d_k)."""
    return _draw_queries(condition, seed, index)[0]


def draw_keys(condition: Condition, seed: int, index: int) -> Iterator[Floats]:
    """Draw K of one replicate, in chunks of at most `keys_at_once` keys.

    Yields
    ------
    ndarray of float32, shape (at most keys_at_once, d_k)
    """
    _, standard = _draw_queries(condition, seed, index)
    return _draw_chunks(condition, seed, index, standard)


def _draw_queries(condition: Condition, seed: int, index: int) -> tuple[Floats, Floats]:
    """Return the queries, and the standardised draws that keys may depend on."""
    rng = stream(seed, condition, index, "q")
    n_queries, _ = condition.shape
    setup = parse_setup(condition.setup)
    if setup is not None:
        q = project(setup, n_queries, condition.d_k, rng)
        return q, q
    law = parse_law(condition.law_q)
    standard = law.draw(rng, (n_queries, condition.d_k))
    return law.rescale(standard), standard


def _draw_chunks(
    condition: Condition, seed: int, index: int, queries: Floats
) -> Iterator[Floats]:
    rng = stream(seed, condition, index, "k")
    _, n_keys = condition.shape
    setup = parse_setup(condition.setup)
    if setup is not None:
        yield project(setup, n_keys, condition.d_k, rng)
        return
    law = parse_law(condition.law_k)
    dependence = parse_dependence(condition.dependence)
    at_once = keys_at_once(condition)
    for first in range(0, n_keys, at_once):
        k = law.draw(rng, (min(at_once, n_keys - first), condition.d_k))
        if first == 0 and dependence.kind != "none":
            gaussian = condition.family_k == "gaussian"
            copy = None if gaussian else stream(seed, condition, index, "copy")
            k = correlate(queries, k, dependence.rho, copy)
        yield law.rescale(k)

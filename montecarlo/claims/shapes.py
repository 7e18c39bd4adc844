"""Claims about shapes and definitions: checked on arrays and on published sizes."""

from collections.abc import Callable

import numpy as np

from montecarlo.claims.schema import Catalogue
from montecarlo.claims.verdicts import Verdict

#: Numbers of queries and keys, and d_k, that a product is formed for.
SIZES = ((3, 5, 4), (8, 8, 2), (4, 6, 16))


def _verdict(outcomes: list[bool]) -> Verdict:
    """Return supported if all hold, refuted if none does, else conditional."""
    if all(outcomes):
        return Verdict.SUPPORTED
    return Verdict.CONDITIONAL if any(outcomes) else Verdict.REFUTED


def product_shape(catalogue: Catalogue) -> Verdict:
    """Judge whether q·k, or QKᵀ, has shape (d_k, d_k)."""
    del catalogue
    shapes = []
    for n_queries, n_keys, d_k in SIZES:
        q, k = np.ones((n_queries, d_k)), np.ones((n_keys, d_k))
        shapes += [((q @ k.T).shape, d_k), ((q[0] @ k[0]).shape, d_k)]
    return _verdict([shape == (d_k, d_k) for shape, d_k in shapes])


def input_dimension(catalogue: Catalogue) -> Verdict:
    """Judge whether d_k is the model's input dimension, on published models' sizes."""
    return _verdict([model.d_k == model.d_model for model in catalogue.model])


SHAPE_CHECKS: dict[str, Callable[[Catalogue], Verdict]] = {
    "product-shape": product_shape,
    "input-dimension": input_dimension,
}

"""Claims about shapes and the record: judged on arrays and on what was published."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import softmax

from montecarlo.claims.schema import Catalogue
from montecarlo.claims.verdicts import Verdict

#: Numbers of queries and keys, and d_k, that a product is formed for.
SIZES = ((3, 5, 4), (8, 8, 2), (4, 6, 16))
#: What a text calls common sizes of d_k, and from where on any is.
COMMON, LARGE = (64, 128), 128
#: What is added to all scores of a row, nothing first.
SHIFTS = (0.0, 1.5, -40.0)
#: When a text says that the divisor was introduced.
INTRODUCED = 2017


def _verdict(outcomes: Sequence[bool]) -> Verdict:
    """Return supported if all hold, refuted if none does, else conditional."""
    if all(outcomes):
        return Verdict.SUPPORTED
    return Verdict.CONDITIONAL if any(outcomes) else Verdict.REFUTED


def _recorded(agrees: bool) -> Verdict:  # noqa: FBT001 - what the record says
    return Verdict.DOCUMENTED if agrees else Verdict.CONTRADICTED_BY_RECORD


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


def scores_need_range(catalogue: Catalogue) -> Verdict:
    """Judge whether softmax needs scores from 0 to 1, and what a limit to them does.

    Others give the same weights; and with scores that differ by at most w, no weight
    is more than exp(w) times another.
    """
    del catalogue
    scores = np.linspace(0.0, 1.0, 5)
    weights = [softmax(scores + shift) for shift in SHIFTS]
    needed = not any(np.allclose(weights[0], other) for other in weights[1:])
    limited = bool(np.isclose(weights[0].max() / weights[0].min(), math.e))
    return _verdict([needed, limited])


def head_dimensions(catalogue: Catalogue) -> Verdict:
    """Judge whether published models have a d_k that the texts call common."""
    sizes = [model.d_k for model in catalogue.model]
    agrees = bool(sizes) and all(d in COMMON or d >= LARGE for d in sizes)
    return _recorded(agrees)


def introduced_2017(catalogue: Catalogue) -> Verdict:
    """Judge whether the paper of record is of the year that the texts name."""
    years = [r.year for r in catalogue.record if r.claim == "introduced-2017"]
    return _recorded(bool(years) and min(years) == INTRODUCED)


FACT_CHECKS: dict[str, Callable[[Catalogue], Verdict]] = {
    "product-shape": product_shape,
    "input-dimension": input_dimension,
    "scores-need-range": scores_need_range,
    "head-dimensions": head_dimensions,
    "introduced-2017": introduced_2017,
}

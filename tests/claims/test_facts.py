"""Claims about shapes: judged on arrays and on published sizes, without any draws."""

import numpy as np
import pytest

from montecarlo.claims import shapes
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.schema import Catalogue, ModelSize
from montecarlo.claims.shapes import SHAPE_CHECKS, SIZES, input_dimension, product_shape
from montecarlo.claims.verdicts import Verdict


def models(*sizes):
    """A catalogue of models of these (d_model, heads, d_k)."""
    named = (ModelSize(f"m{i}", *size) for i, size in enumerate(sizes))
    return Catalogue(model=tuple(named))


def test_every_claim_on_shapes_has_its_check():
    """The claims of kind shape are those that code judges, and no other."""
    claims = read_catalogue().claim

    assert {c.id for c in claims if c.kind == "shape"} == set(SHAPE_CHECKS)


def test_the_product_is_not_d_k_by_d_k():
    """q·k is a number and QKᵀ has a row per query and a column per key."""
    assert product_shape(Catalogue()) == Verdict.REFUTED
    for n_queries, n_keys, d_k in SIZES:
        q, k = np.ones((n_queries, d_k)), np.ones((n_keys, d_k))
        assert (q @ k.T).shape == (n_queries, n_keys) != (d_k, d_k)


def test_the_product_would_be_seen_to_be_square(monkeypatch):
    """The test above can fail: where n = d_k the matrix has that shape, and not q·k."""
    monkeypatch.setattr(shapes, "SIZES", ((4, 4, 4),))

    assert product_shape(Catalogue()) == Verdict.CONDITIONAL


@pytest.mark.parametrize(
    ("sizes", "verdict"),
    [
        ([(512, 8, 64), (768, 12, 64)], Verdict.REFUTED),
        ([(64, 1, 64)], Verdict.SUPPORTED),
        ([(512, 8, 64), (64, 1, 64)], Verdict.CONDITIONAL),
    ],
)
def test_the_input_dimension_is_that_of_one_head(sizes, verdict):
    """d_k is the model's dimension only where there is one head."""
    assert input_dimension(models(*sizes)) == verdict


def test_published_sizes_are_consistent():
    """A head is no larger than the model, and the heads of most models fill it."""
    published = read_catalogue().model

    assert len(published) >= 3
    assert all(model.d_k <= model.d_model for model in published)
    filled = [model.heads * model.d_k == model.d_model for model in published]
    assert sum(filled) > len(filled) / 2

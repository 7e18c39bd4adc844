"""Claims about shapes and the record: judged without any draws."""

import numpy as np
import pytest

from montecarlo.claims import facts
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.facts import (
    FACT_CHECKS,
    INTRODUCED,
    SIZES,
    head_dimensions,
    input_dimension,
    introduced_2017,
    product_shape,
)
from montecarlo.claims.schema import Catalogue, ModelSize, RecordEntry
from montecarlo.claims.verdicts import Verdict


def models(*sizes):
    """A catalogue of models of these (d_model, heads, d_k)."""
    named = (ModelSize(f"m{i}", *size) for i, size in enumerate(sizes))
    return Catalogue(model=tuple(named))


def test_every_fact_has_its_check():
    """The claims on shapes and the record are those that code judges, and no other."""
    claims = read_catalogue().claim

    kinds = ("shape", "record")
    assert {c.id for c in claims if c.kind in kinds} == set(FACT_CHECKS)


def test_the_product_is_not_d_k_by_d_k():
    """q·k is a number and QKᵀ has a row per query and a column per key."""
    assert product_shape(Catalogue()) == Verdict.REFUTED
    for n_queries, n_keys, d_k in SIZES:
        q, k = np.ones((n_queries, d_k)), np.ones((n_keys, d_k))
        assert (q @ k.T).shape == (n_queries, n_keys) != (d_k, d_k)


def test_the_product_would_be_seen_to_be_square(monkeypatch):
    """The test above can fail: where n = d_k the matrix has that shape, and not q·k."""
    monkeypatch.setattr(facts, "SIZES", ((4, 4, 4),))

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
    """The heads of each model divide its input dimension among them."""
    published = read_catalogue().model

    assert len(published) >= 3
    for model in published:
        assert model.heads * model.d_k == model.d_model, model.name


@pytest.mark.parametrize(
    ("sizes", "verdict"),
    [
        ([(512, 8, 64), (4096, 32, 128), (2048, 8, 256)], Verdict.DOCUMENTED),
        ([(512, 8, 64), (768, 24, 32)], Verdict.CONTRADICTED_BY_RECORD),
        ([(768, 8, 96)], Verdict.CONTRADICTED_BY_RECORD),
        ([], Verdict.CONTRADICTED_BY_RECORD),
    ],
)
def test_common_sizes_are_those_of_the_record(sizes, verdict):
    """64, 128 or more are on record; one model of another size contradicts it."""
    assert head_dimensions(models(*sizes)) == verdict


@pytest.mark.parametrize(
    ("years", "verdict"),
    [
        ([INTRODUCED], Verdict.DOCUMENTED),
        ([INTRODUCED + 1, INTRODUCED], Verdict.DOCUMENTED),
        ([INTRODUCED + 1], Verdict.CONTRADICTED_BY_RECORD),
        ([INTRODUCED - 3, INTRODUCED], Verdict.CONTRADICTED_BY_RECORD),
        ([], Verdict.CONTRADICTED_BY_RECORD),
    ],
)
def test_the_first_record_counts(years, verdict):
    """An earlier paper would contradict the year, and so would none at all."""
    entries = [RecordEntry("introduced-2017", year, "s") for year in years]
    other = RecordEntry("head-dimensions", 1990, "s")
    assert introduced_2017(Catalogue(record=(other, *entries))) == verdict


def test_records_name_their_source():
    """Each record is of a claim of that kind, and says where it stands."""
    catalogue = read_catalogue()
    kinds = {claim.id: claim.kind for claim in catalogue.claim}
    assert catalogue.record
    for record in catalogue.record:
        assert kinds[record.claim] == "record"
        assert str(record.year) in record.source

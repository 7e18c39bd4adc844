"""Claims about shapes and the record: judged without any draws."""

import math

import numpy as np
import pytest

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.judging import Judge
from montecarlo.claims.recorded import (
    FACT_QUANTITIES,
    FACTS,
    INTRODUCED,
    SIZES,
    Recorded,
    with_facts,
)
from montecarlo.claims.running import exact_value
from montecarlo.claims.schema import Catalogue, ModelSize, RecordEntry
from montecarlo.claims.simulation import Simulation
from montecarlo.claims.verdicts import Verdict

NOTHING = Catalogue()
CLAIMS = {claim.id: claim for claim in read_catalogue().claim}


def models(*sizes):
    """A catalogue of models of these (d_model, heads, d_k)."""
    named = (ModelSize(f"m{i}", *size) for i, size in enumerate(sizes))
    return Catalogue(model=tuple(named))


def judge_of(catalogue):
    """The judge of a catalogue's facts; nothing was sampled."""
    evidence = Recorded(catalogue, Simulation({}, (), exact_value))
    return Judge(evidence, lambda _: 1e-6)


def judged(name, catalogue=NOTHING):
    """A claim of the package, as the facts of a catalogue have it."""
    return judge_of(catalogue).judge_claim(CLAIMS[name])


def outcomes_of(name, catalogue=NOTHING):
    """How each case of each interpretation of a claim came out."""
    return {
        (one.id, case.part, case.d_k): case.outcome
        for one in judge_of(catalogue).judge_meanings(with_facts(CLAIMS[name]))
        for case in one.cases
    }


def counted(name):
    """What a quantity of shapes has in each of its cases."""
    (check,) = {
        check
        for some in FACTS.values()
        for one in some
        for check in one.check
        if check.quantity == name
    }
    return FACT_QUANTITIES[name].find(Catalogue(), check)


def test_the_product_is_not_d_k_by_d_k():
    """q·k is a number and QKᵀ has a row per query and a column per key."""
    assert judged("product-shape").verdict == Verdict.REFUTED
    assert set(outcomes_of("product-shape").values()) == {Verdict.REFUTED}
    rows, columns, numbers = (
        {case.d_k: estimate.value for case, estimate in counted(name).items()}
        for name in ("product_rows", "product_columns", "score_size")
    )
    for n_queries, n_keys, d_k in SIZES:
        q, k = np.ones((n_queries, d_k)), np.ones((n_keys, d_k))
        assert (q @ k.T).shape == (n_queries, n_keys) != (d_k, d_k)
        assert (rows[d_k], columns[d_k]) == (n_queries, n_keys)
        assert numbers[d_k] == np.ndim(q[0] @ k[0]) + 1 == 1


@pytest.mark.parametrize(
    ("sizes", "verdict"),
    [
        ([(512, 8, 64), (768, 12, 64)], Verdict.CONTRADICTED_BY_RECORD),
        ([(64, 1, 64)], Verdict.DOCUMENTED),
        ([(512, 8, 64), (64, 1, 64)], Verdict.CONTRADICTED_BY_RECORD),
    ],
)
def test_the_input_dimension_is_that_of_one_head(sizes, verdict):
    """d_k is the model's dimension only where there is one head."""
    assert judged("input-dimension", models(*sizes)).verdict == verdict


def test_no_range_of_scores_is_called_reasonable():
    """A word of degree, with how far weights are apart for scores from 0 to 1."""
    assert judged("scores-need-range").verdict == Verdict.DEGREE
    (found,) = counted("weights_compared").values()
    assert found.value == pytest.approx(math.e)


@pytest.mark.parametrize(
    ("sizes", "verdict"),
    [
        ([(512, 8, 64), (4096, 32, 128), (2048, 8, 256)], Verdict.DOCUMENTED),
        ([(512, 8, 64), (768, 24, 32)], Verdict.DOCUMENTED),
        ([(512, 8, 64), (768, 24, 32), (96, 3, 32)], Verdict.CONTRADICTED_BY_RECORD),
        ([(768, 8, 96)], Verdict.CONTRADICTED_BY_RECORD),
        ([], Verdict.CONTRADICTED_BY_RECORD),
    ],
)
def test_common_sizes_are_those_of_the_record(sizes, verdict):
    """64, 128 or more are on record, in at least half of the models that are listed."""
    assert judged("head-dimensions", models(*sizes)).verdict == verdict


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
    catalogue = Catalogue(record=(other, *entries))
    assert judged("introduced-2017", catalogue).verdict == verdict

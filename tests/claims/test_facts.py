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
from montecarlo.claims.verdicts import Outcome, Reason, Verdict

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
    one = judged("product-shape")
    assert (one.verdict, one.reason) == (Verdict.FAILS, Reason.THEORY)
    assert set(outcomes_of("product-shape").values()) == {Outcome.REFUTED}
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
        ([(512, 8, 64), (768, 12, 64)], Verdict.FAILS),
        ([(64, 1, 64)], Verdict.HOLDS),
        ([(512, 8, 64), (64, 1, 64)], Verdict.FAILS),
    ],
)
def test_the_input_dimension_is_that_of_one_head(sizes, verdict):
    """d_k is the model's dimension only where there is one head."""
    assert judged("input-dimension", models(*sizes)).verdict == verdict


def test_no_range_of_scores_is_needed():
    """Scores that leave the range 0 to 1 together have the weights that they had."""
    one = judged("scores-need-range")
    assert (one.verdict, one.reason) == (Verdict.FAILS, Reason.THEORY)
    (found,) = counted("weights_moved").values()
    assert found.value == pytest.approx(0.0, abs=1e-12)


def test_weights_of_scores_within_a_range_are_nearly_even():
    """No row has a larger weight than one whose scores are all equal but for one."""
    rng = np.random.default_rng(5)
    found = FACT_QUANTITIES["largest_over_range"].find(NOTHING, None)
    assert {round(value.value, 12) <= 1.0 for value in found.values()} == {True}
    for case, most in found.items():
        reach, n = (float(part.split("=")[1]) for part in case.part.split(","))
        scores = rng.uniform(0.0, reach, size=(50, int(n)))
        weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        assert (n * weights.max() / math.exp(reach)) <= most.value + 1e-12


@pytest.mark.parametrize(
    ("sizes", "verdict"),
    [
        ([(512, 8, 64), (4096, 32, 128), (2048, 8, 256)], Verdict.HOLDS),
        ([(512, 8, 64), (512, 8, 64), (768, 24, 32)], Verdict.HOLDS),
        ([(512, 8, 64), (768, 24, 32)], Verdict.FAILS),
        ([(768, 8, 96)], Verdict.FAILS),
        ([], Verdict.OPEN),
    ],
)
def test_common_sizes_are_those_of_the_record(sizes, verdict):
    """64, 128 or more are on record, in more than half of the listed models."""
    assert judged("head-dimensions", models(*sizes)).verdict == verdict


@pytest.mark.parametrize(
    ("years", "verdict"),
    [
        ([INTRODUCED], Verdict.HOLDS),
        ([INTRODUCED + 1, INTRODUCED], Verdict.HOLDS),
        ([INTRODUCED + 1], Verdict.FAILS),
        ([INTRODUCED - 3, INTRODUCED], Verdict.FAILS),
        ([], Verdict.OPEN),
    ],
)
def test_the_first_record_counts(years, verdict):
    """An earlier paper would contradict the year; without any it is open."""
    entries = [RecordEntry("introduced-2017", year, "s") for year in years]
    other = RecordEntry("head-dimensions", 1990, "s")
    catalogue = Catalogue(record=(other, *entries))
    assert judged("introduced-2017", catalogue).verdict == verdict

"""Claims about shapes and the record: judged without any draws."""

import math

import numpy as np
import pytest
from scipy.special import softmax

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.facts import INTRODUCED, rule_on_fact
from montecarlo.claims.judging import Judge
from montecarlo.claims.recorded import ALGEBRA
from montecarlo.claims.running import exact_value
from montecarlo.claims.schema import Catalogue, ModelSize, RecordEntry
from montecarlo.claims.simulation import Evidence
from montecarlo.claims.verdicts import Reason, Ruling, Verdict

CLAIMS = {claim.id: claim for claim in read_catalogue().claim}


def models(*sizes):
    """A catalogue of models of these (d_model, heads, d_k)."""
    named = (ModelSize(f"m{i}", *size) for i, size in enumerate(sizes))
    return Catalogue(model=tuple(named))


def verdict_of(name, catalogue):
    """The verdict on a claim of the package, as the facts of a catalogue have it."""
    return rule_on_fact(CLAIMS[name], catalogue).verdict


@pytest.mark.parametrize("name", ["product-shape", "scores-need-range"])
def test_algebra_is_theory(name):
    """q·k is a number, and QKᵀ has a row per query and a column per key; scores that
    leave the range 0 to 1 together have the weights that they had.
    """
    q, k = np.ones((3, 4)), np.ones((5, 4))
    assert (q @ k.T).shape == (3, 5)
    assert np.ndim(q[0] @ k[0]) == 0
    scores = np.linspace(0.0, 1.0, 5)
    assert softmax(scores + 8.0) == pytest.approx(softmax(scores), rel=1e-12)
    judge = Judge(Evidence({}, (), exact_value), lambda _: 1e-6)
    one = judge.judge_claim(CLAIMS[name], Catalogue())
    ruling = Ruling(Verdict.FAILS, Reason.THEORY)
    assert (one.verdict, one.reason) == (ruling.verdict, ruling.reason)
    assert set(one.texts.values()) == {ruling}
    assert one.interpretations == ()


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
    assert verdict_of("input-dimension", models(*sizes)) == verdict


def test_weights_of_scores_within_a_range_are_nearly_even():
    """No row has a larger weight than one whose scores are all equal but for one."""
    rng = np.random.default_rng(5)
    found = ALGEBRA["largest_over_range"].find(None, None)
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
    assert verdict_of("head-dimensions", models(*sizes)) == verdict


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
    assert verdict_of("introduced-2017", catalogue) == verdict

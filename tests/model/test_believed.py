"""What is believed of a fit: no scale of heads that do not belong, or have several."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from montecarlo import assert_attention_scale
from montecarlo.model.answers import NO, UNDETERMINED, YES, answer_scales, say_findings
from montecarlo.model.arrays import open_arrays
from montecarlo.model.expected import expected_divisor
from montecarlo.model.fits import fit_weights
from montecarlo.model.masks import find_mask
from montecarlo.model.scales import applied_scale, find_scales
from tests.model.heads import TOKENS, attend, rows_of, weighted

AXES = ("sequence", "token", "d")
CAUSAL = np.tri(TOKENS, dtype=bool)


def apply(arrays, source="weights"):
    """Tell the scales of heads from weights, or from values and outputs."""
    names = ("weights",) if source == "weights" else ("v", "outputs")
    made = {name: arrays[name] for name in names}
    return find_scales(open_arrays({"q": arrays["q"], "k": arrays["k"], **made}, AXES))


def answer(found):
    """Answer whether the root divides."""
    return answer_scales(found, expected_divisor("sqrt", found.d_k, 1)).answer


@pytest.mark.parametrize("d_k", [16, 128])
@pytest.mark.parametrize("source", ["weights", "outputs"])
def test_another_head_fits_nothing(source, d_k):
    """The more pairs, the nearer to 0 a scale is that explains nothing."""
    for seed in range(4):
        arrays = attend(seed, shape=(4, TOKENS, d_k))
        other = attend(1000 + seed, shape=(4, TOKENS, d_k))
        arrays |= {name: other[name] for name in ("weights", "v", "outputs")}
        assert apply(arrays, source).heads[0].outcome == "no_fit"


@pytest.mark.parametrize("seen", [True, CAUSAL], ids=["all", "causal"])
@pytest.mark.parametrize("number_format", ["float32", "bfloat16"])
@pytest.mark.parametrize("source", ["weights", "outputs"])
def test_a_scale_of_zero_is_told(source, number_format, seen):
    """A head whose keys all count the same is still told as that."""
    arrays = attend(1, number_format, rows=np.zeros(TOKENS), seen=seen)
    found = apply(arrays, source)
    assert [one.outcome for one in found.heads] == ["uniform"]
    assert answer(found) == NO


DISTANCE = -np.abs(np.arange(TOKENS)[:, None] - np.arange(TOKENS)).astype(float)


KEYS = np.random.default_rng(17).normal(size=TOKENS)
SLOPE = 0.25 * DISTANCE


@pytest.mark.slow
def test_intervals_cover_a_cap_that_rounding_hides():
    """A plain form is believed there.  Fewer than 14 of 20 held: once in 30,000."""
    held = 0
    for seed in range(20):
        (head,) = apply(attend(seed, "bfloat16", cap=30.0)).heads
        low, high = head.interval
        assert (head.outcome, head.form) == ("scale", "plain")
        held += low <= 0.125 <= high
    assert held >= 14


@pytest.mark.parametrize(("cap", "bias"), [(30.0, SLOPE), (12.0, SLOPE), (30.0, KEYS)])
@pytest.mark.parametrize("source", ["weights", "outputs"])
def test_a_cap_beside_a_bias_is_not_accused(source, cap, bias):
    """No form has both: the scale is off by less than the tolerance, or not told."""
    assert answer(apply(attend(1, cap=cap, bias=bias), source)) != NO


def test_a_no_needs_more_than_an_interval_of_95_percent():
    """One sound model in 1,000 may get it: the interval is widened before."""
    found = apply(attend(1, "bfloat16"))
    near, far = (found.heads[0].divisors(error).high for error in (0.025, 0.0005))
    for least, told in ((0.5 * (near + far), UNDETERMINED), (1.0001 * far, NO)):
        expected = expected_divisor(str(least / 0.99), 64, 1)
        assert answer_scales(found, expected).answer == told


@pytest.mark.parametrize("ratio", [1.3, 1.05, 1.01])
@pytest.mark.parametrize("source", ["weights", "outputs"])
@pytest.mark.parametrize("number_format", ["float32", "bfloat16"])
def test_two_temperatures_are_no_single_scale(number_format, source, ratio):
    """Half of the rows have another scale: it is told, or the interval holds both."""
    rows = np.where(np.arange(TOKENS) % 2, ratio, 1.0)
    found = apply(attend(1, number_format, rows=rows), source)
    (head,) = found.heads
    if number_format == "bfloat16" and head.outcome == "scale":
        assert ratio < 1.1  # what rounding may be the reason of
        low, high = head.interval
        assert low < 0.125 * (1.0 + 0.1 * (ratio - 1.0))
        assert high > 0.125 * (1.0 + 0.9 * (ratio - 1.0))
        assert answer(found) == UNDETERMINED
    else:
        assert head.outcome == "by_row"


@pytest.mark.parametrize("seen", [True, CAUSAL], ids=["all", "causal"])
@pytest.mark.parametrize("number_format", ["float32", "bfloat16"])
def test_softmax_over_queries_is_named(number_format, seen):
    """It was called a bias of each key; a bias of each key still is one."""
    arrays = attend(1, number_format, axis=-2, seen=seen)
    found = apply(arrays)
    expected = expected_divisor("sqrt", 64, 1)
    assert found.heads[0].outcome == "over_queries"
    assert answer(found) == NO
    (line,) = say_findings(answer_scales(found, expected))
    assert "softmax runs over the queries" in line
    biased = apply(attend(1, number_format, bias=KEYS, seen=seen)).heads[0]
    assert (biased.outcome, biased.form) == ("scale", "key")


@pytest.mark.parametrize("kept", ["e4m3", "e5m2"])
@pytest.mark.parametrize("d_k", [32, 64, 128])
def test_eight_bits_are_too_coarse(d_k, kept):
    """Such weights are not those of another head; nor are these told a scale."""
    found = apply(attend(1, "bfloat16", shape=(2, TOKENS, d_k), kept=kept))
    assert found.heads[0].outcome == "no_information"
    assert answer(found) == UNDETERMINED


def test_peaked_heads_get_no_wrong_answer():
    """Where a row has one weight, and scores were rounded by more than their gaps."""
    answers = Counter(
        answer(apply(attend(seed, "bfloat16", size=size, fused=fused), source))
        for seed, size, fused, source in product(
            range(3), (20.0, 30.0), (False, True), ("weights", "outputs")
        )
    )
    assert NO not in answers
    assert answers[YES] > 0  # weights whose scores were not rounded tell their scale


@pytest.mark.parametrize("dead", ["q", "qk", "weights"])
def test_a_dead_head_is_listed_and_does_not_vote(dead):
    """The others are answered."""
    arrays = weighted(1.0 / 4.0, (2, 4, 24, 16))
    for name in ["weights"] if dead == "weights" else dead:
        arrays[name][:, 2] = 0.0
    axes = ("sequence", "head", "token", "d")
    outcomes = applied_scale(axes=axes, **arrays)["outcome"]
    assert list(outcomes) == ["scale", "scale", "dead", "scale"]
    assert_attention_scale(arrays, axes=axes)
    with pytest.raises(AssertionError, match="head 2: dead"):
        assert_attention_scale(arrays, "linear", axes=axes)
    alone = {name: array[:, 2:3] for name, array in arrays.items()}
    with pytest.raises(AssertionError, match="cannot be told"):
        assert_attention_scale(alone, axes=axes)


def test_the_sign_of_a_slope_counts_where_zeros_are_judged():
    """Far keys underflow under a slope; were it turned, they would be a mask."""
    made = rows_of(attend(16, "float16", bias=DISTANCE))
    assert any((block.weights == 0.0).any() for block in made)
    fit = fit_weights(made)
    assert fit.form == "distance"
    assert fit.parameter == pytest.approx(-1.0, abs=0.01)
    assert find_mask(made, fit).mask == "none"

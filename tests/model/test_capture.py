"""Capture on real torch and transformers: models of small configurations, no download.

Slow, and only where both are installed; a whole stage of the continuous integration.
"""

import numpy as np
import pytest

from montecarlo import assert_attention_scale, capture, compare
from montecarlo.errors import InputError
from montecarlo.model.checking import open_source
from tests.model.architectures import TOKENS, build, record, torch

pytestmark = pytest.mark.slow

torch.set_num_threads(1)  # tests run beside each other
scaled_dot_product_attention = torch.nn.functional.scaled_dot_product_attention


def test_a_bias_by_distance_is_known_because_it_was_passed():
    """T5's bias cannot be seen in outputs: without it nothing is told."""
    captured, _ = record(*build("t5", "sdpa"))
    assert_attention_scale(captured, 1.0)
    for calls in captured._passes:
        for call in calls:
            del call.arrays["added"]
    assert "no_fit" in set(captured.applied_scale()["outcome"])
    with pytest.raises(AssertionError, match="cannot be told"):
        assert_attention_scale(captured, 1.0)


def test_calls_of_torch_are_recorded_without_a_model():
    """Whoever calls it: each call is a layer; a scale that is passed counts."""
    torch.manual_seed(1)
    q, k, v = torch.randn(3, 2, 4, 30, 16)
    with capture() as captured:
        scaled_dot_product_attention(q, k, v, is_causal=True)
        scaled_dot_product_attention(q, k, v, scale=0.5)
        scaled_dot_product_attention(q, k[:, :, :20], v[:, :, :20])
        scaled_dot_product_attention(q[0], k[0], v[0])
    scaled_dot_product_attention(q, k, v)
    frame = captured.applied_scale()
    divisors = frame.groupby("layer")["implied_divisor"].mean()
    assert divisors.to_numpy() == pytest.approx([4.0, 2.0, 4.0, 4.0], rel=1e-5)
    masks = frame.groupby("layer")["mask"].first()
    assert list(masks) == ["causal", "none", "none", "none"]
    assert list(captured.passed["scale"])[1] == 0.5
    (model,) = captured.models([3])  # without an axis of heads
    assert (len(model.sequences), model.head_labels) == (4, (0,))


def test_rows_and_sequences_are_bounded():
    """The last queries of the first sequences, over several passes."""
    model, inputs = build("gpt2")
    with torch.no_grad(), capture(model, rows=8, sequences=5) as captured:
        for _ in range(3):
            model(**inputs)
    recorded = captured.models()[0]
    assert len(recorded.sequences) == 5
    q, k = recorded.read(recorded.heads()[0], 4)
    assert (len(q), len(k)) == (8, TOKENS)
    with torch.no_grad(), capture(model, rows=None) as whole:
        model(**inputs)
    all_q, _ = whole.models()[0].read(recorded.heads()[0], 0)
    assert len(all_q) == TOKENS
    first, _ = recorded.read(recorded.heads()[0], 0)
    assert np.array_equal(all_q[-8:], first)


def test_layers_of_other_sizes_are_named(tmp_path):
    """What cannot be one model is one for some of its layers."""
    torch.manual_seed(2)
    with capture() as captured:
        for d_k in (16, 8):
            scaled_dot_product_attention(*torch.randn(3, 2, 4, 30, d_k))
    with pytest.raises(InputError, match="q has several: name layers"):
        captured.save(tmp_path / "some.npz")
    assert captured.models([1])[0].d_k == 8
    captured.save(tmp_path / "second.npz", [1])
    (read,) = open_source(tmp_path / "second.npz")
    assert (read.d_k, read.layers) == (8, (0,))
    with pytest.raises(InputError, match=r"layers must be among 0, 1, .* got 2"):
        captured.save(tmp_path / "some.npz", [2])
    with pytest.raises(InputError, match=r"path must end in .npz, got .*some.txt"):
        captured.save(tmp_path / "some.txt", [1])
    assert len(captured.applied_scale()) == 2 * 4
    assert compare(captured, captured).first is None
    with pytest.raises(AssertionError) as error:
        assert_attention_scale(captured, "d_k")
    for d_k in (8, 16):
        assert f"divided by d_k = {d_k}? no" in str(error.value)


@pytest.mark.parametrize("options", [{"rows": 1}, {"sequences": 0}, {"model": "one"}])
def test_bad_options_are_refused(options):
    """Before anything runs."""
    (name,) = options
    with pytest.raises(InputError, match=f"^{name} must be"), capture(**options):
        pass


def test_nothing_recorded_is_said():
    """A model that computes attention by itself has nothing to show."""
    with capture(torch.nn.Linear(4, 4)) as captured:
        pass
    with pytest.raises(InputError, match="got none that ran in the block"):
        captured.applied_scale()

"""Capture on real torch and transformers: models of small configurations, no download.

Slow, and only where both are installed; a whole stage of the continuous integration.
"""

import numpy as np
import pytest

from montecarlo import assert_attention_scale, capture, compare
from montecarlo.errors import InputError
from tests.model.needed import need_torch

pytestmark = pytest.mark.slow

torch, transformers = need_torch()
torch.set_num_threads(1)  # tests run beside each other
scaled_dot_product_attention = torch.nn.functional.scaled_dot_product_attention

LAYERS, WIDTH, HEADS, TOKENS, SEQUENCES, WORDS = 2, 64, 4, 40, 3, 100
SIZES = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
SIZES |= {"hidden_size": WIDTH, "intermediate_size": WIDTH, "vocab_size": WORDS}
TOKEN_IDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
#: Architecture: class, configuration, divisor; and what is found beside the scale, of
#: weights: form, and mask of the first and of the second layer.
ARCHITECTURES = {
    "BERT": ("Bert", SIZES, 4.0, "plain", ("none", "none")),
    "GPT-2": (
        "GPT2",
        {
            "n_embd": WIDTH,
            "n_layer": LAYERS,
            "n_head": HEADS,
            "vocab_size": WORDS,
            **TOKEN_IDS,
        },
        4.0,
        "plain",
        ("causal", "causal"),
    ),
    "Llama": (
        "Llama",
        SIZES | {"num_attention_heads": 8, "num_key_value_heads": 2},
        8**0.5,
        "plain",
        ("causal", "causal"),
    ),
    "Gemma 2": (
        "Gemma2",
        SIZES
        | {"num_key_value_heads": 2, "head_dim": 16, "query_pre_attn_scalar": 20}
        | {"attn_logit_softcapping": 0.5, "sliding_window": 12},
        20**0.5,
        "cap",
        ("window", "causal"),
    ),
    "T5": (
        "T5Encoder",
        {
            "d_model": WIDTH,
            "d_kv": 16,
            "num_heads": HEADS,
            "num_layers": LAYERS,
            "d_ff": WIDTH,
            "vocab_size": WORDS,
        },
        1.0,
        "offset",
        ("none", "none"),
    ),
    "ViT": (
        "ViT",
        {name: size for name, size in SIZES.items() if name != "vocab_size"}
        | {"image_size": 48, "patch_size": 8},
        4.0,
        "plain",
        ("none", "none"),
    ),
}


def build(architecture, seed=0):
    """Build a model, and inputs for it."""
    name, sizes, *_ = ARCHITECTURES[architecture]
    torch.manual_seed(seed)
    configuration = getattr(transformers, f"{name.removesuffix('Encoder')}Config")
    model = getattr(transformers, f"{name}Model")(configuration(**sizes)).eval()
    if architecture == "ViT":
        return model, {"pixel_values": torch.randn(SEQUENCES, 3, 48, 48)}
    return model, {"input_ids": torch.randint(3, WORDS, (SEQUENCES, TOKENS))}


def captured_of(architecture, implementation="eager", kind=None):
    """Record a model's attention."""
    model, inputs = build(architecture)
    model.set_attn_implementation(implementation)
    if kind is not None:
        model = model.to(kind)
    with torch.no_grad(), capture(model) as captured:
        model(**inputs)
    return captured


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_scale_is_the_configuration_s(architecture):
    """From weights, in every head, with what else is in the scores by its name."""
    *_, divisor, form, masks = ARCHITECTURES[architecture]
    captured = captured_of(architecture)
    assert_attention_scale(captured, divisor, rtol=1e-5)
    frame = captured.applied_scale()
    inside = frame["ci_low"].le(1 / divisor) & frame["ci_high"].ge(1 / divisor)
    # each misses once in 20 times: 7 of 16 do once in 100,000
    assert inside.mean() > 0.6
    assert set(frame["form"]) == {form}
    assert tuple(frame.groupby("layer")["mask"].first()) == masks
    assert frame.groupby("layer")["mask"].nunique().eq(1).all()
    scales = captured.passed["scale"].to_numpy(float)
    assert scales == pytest.approx(1 / divisor)


@pytest.mark.parametrize("architecture", ["BERT", "GPT-2", "Llama", "ViT"])
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_outputs_tell_it_where_weights_are_not_given_back(architecture, kind):
    """Of torch's own attention there are only outputs."""
    divisor = ARCHITECTURES[architecture][2]
    captured = captured_of(architecture, "sdpa", getattr(torch, kind))
    frame = captured.applied_scale()
    assert set(frame["source"]) == {"outputs"}
    assert set(frame["outcome"]) == {"scale"}
    rtol = 1e-4 if kind == "float32" else 0.05
    assert frame["implied_divisor"].to_numpy() == pytest.approx(divisor, rel=rtol)


def test_cap_and_width_of_the_window_are_told():
    """Gemma 2's own numbers, not only that there are such."""
    captured = captured_of("Gemma 2")
    frame = captured.applied_scale()
    assert frame["parameter"].to_numpy() == pytest.approx(0.5, rel=1e-3)
    assert set(captured.passed["cap"]) == {0.5}


def test_a_bias_by_distance_is_known_because_it_was_passed():
    """T5's bias cannot be seen in outputs: without it nothing is told."""
    captured = captured_of("T5", "sdpa")
    assert set(captured.applied_scale()["outcome"]) == {"scale"}
    assert_attention_scale(captured, 1.0)
    for calls in captured._passes:
        for call in calls:
            del call.arrays["added"]
    assert set(captured.applied_scale()["outcome"]) == {"no_fit"}
    with pytest.raises(AssertionError, match="cannot be told"):
        assert_attention_scale(captured, 1.0)


def test_calls_of_torch_are_recorded_without_a_model():
    """Whoever calls it: each call is a layer; a scale that is passed counts."""
    torch.manual_seed(1)
    q, k, v = torch.randn(3, 2, 4, 30, 16)
    with capture() as captured:
        scaled_dot_product_attention(q, k, v, is_causal=True)
        scaled_dot_product_attention(q, k, v, scale=0.5)
        torch.nn.functional.scaled_dot_product_attention(q, k[:, :, :20], v[:, :, :20])
    outside = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    assert outside.shape == q.shape
    frame = captured.applied_scale()
    divisors = frame.groupby("layer")["implied_divisor"].mean()
    assert divisors.to_numpy() == pytest.approx([4.0, 2.0, 4.0], rel=1e-5)
    masks = frame.groupby("layer")["mask"].first()
    assert list(masks) == ["causal", "none", "none"]
    assert list(captured.passed["scale"])[1] == 0.5


def test_what_a_model_computes_is_not_changed():
    """To the bit, and nothing is left behind."""
    model, inputs = build("Llama")
    with torch.no_grad():
        before = model(**inputs).last_hidden_state
        with capture(model):
            during = model(**inputs).last_hidden_state
        after = model(**inputs).last_hidden_state
    assert torch.equal(before, during)
    assert torch.equal(before, after)
    assert not model._forward_pre_hooks


def test_rows_and_sequences_are_bounded():
    """The last queries of the first sequences, over several passes."""
    model, inputs = build("GPT-2")
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


def test_what_was_recorded_is_written_and_read(tmp_path):
    """The same scales from the file as from memory."""
    captured = captured_of("Llama")
    captured.save(tmp_path / "qk.npz")
    assert_attention_scale(tmp_path / "qk.npz", "sqrt", rtol=1e-5)
    with pytest.raises(AssertionError, match="divided by d_k = 8"):
        assert_attention_scale(tmp_path / "qk.npz", "linear")


def test_layers_of_other_sizes_are_named(tmp_path):
    """What cannot be one model is one for some of its layers."""
    torch.manual_seed(2)
    with capture() as captured:
        for d_k in (16, 8):
            scaled_dot_product_attention(*torch.randn(3, 2, 4, 30, d_k))
    with pytest.raises(InputError, match=r"name layers \(heads .* of layer 1 differ"):
        captured.save(tmp_path / "some.npz")
    assert captured.models([1])[0].d_k == 8
    with pytest.raises(InputError, match="layers must be among 0 to 1, got 2"):
        captured.save(tmp_path / "some.npz", [2])


def test_a_port_with_an_error_of_seven_percent_is_found():
    """224 for 256: the port's heads part from the reference at their scale."""
    torch.manual_seed(3)
    q, k, v = torch.randn(3, 2, 4, 30, 256)
    found = []
    for divisor in (224**0.5, 256**0.5):
        with capture() as captured:
            scaled_dot_product_attention(q, k, v)
            scaled_dot_product_attention(q, k, v, scale=1 / divisor)
        found.append(captured)
    port, reference = found
    assert_attention_scale(reference, "sqrt")
    with pytest.raises(AssertionError, match=r"layer 1, .* 0\.935 times sqrt"):
        assert_attention_scale(port, "sqrt")
    told = compare(port, reference)
    assert "the port has scale" in str(told)
    assert told.first[:3] == ((1,), (0, 1, 2, 3), "scale")
    times = told.first.port / told.first.reference
    assert times == pytest.approx((256 / 224) ** 0.5, rel=1e-4)
    assert compare(reference, reference).first is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 1}, "rows must be an integer of at least 2, got 1"),
        ({"rows": 2.5}, "rows must be an integer of at least 2, got 2.5"),
        ({"sequences": 0}, "sequences must be an integer of at least 1, got 0"),
        ({"model": "a model"}, "model must be a torch.nn.Module, got str"),
    ],
)
def test_bad_options_are_refused(options, message):
    """Before anything runs."""
    with pytest.raises(InputError, match=message), capture(**options):
        pass


def test_nothing_recorded_is_said():
    """A model that computes attention by itself has nothing to show."""
    with capture(torch.nn.Linear(4, 4)) as captured:
        pass
    with pytest.raises(InputError, match="got none: name the layers that it"):
        captured.applied_scale()

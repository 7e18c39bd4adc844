"""Errors as users reported them, rebuilt small: found, and called by their name.

Models of transformers are random and tiny; what a port got wrong is planted in them.
"""

import math

import pytest

from montecarlo import assert_attention_scale
from montecarlo.model.expected import CONVENTIONS
from tests.model.architectures import (
    ARCHITECTURES,
    MSCALE,
    build,
    planted_in_attention,
    planted_in_modules,
    record,
    transformers,
)

pytestmark = pytest.mark.slow


def captured_of(name, *, in_attention=1.0, in_modules=1.0):
    """Capture a model whose scale is multiplied in its attention or its modules."""
    model, inputs = build(name)
    planted_in_modules(model, in_modules)
    with planted_in_attention(in_attention):
        return record(model, inputs)[0]


def verdict(captured, **options):
    """Return the message of what fails; empty where nothing does."""
    try:
        assert_attention_scale(captured, **options)
    except AssertionError as error:
        return str(error)
    return ""


#: What was reported: model, where and by what factor it is wrong, what it is called.
REPORTED = {
    "OPT's queries scaled, and scores again (transformers PR 38290)": (
        *("opt", "attention", 1 / 4),
        "scale applied twice: to queries, and again in attention",
    ),
    "OPT's queries not scaled": (
        *("opt", "module", 4.0),
        "is the scale missing",
    ),
    "DeepSeek-V3 without mscale (transformers PR 47435)": (
        *("deepseek_v3", "module", "1 / MSCALE**2"),
        "is mscale of the rope scaling left out",
    ),
    "DeepSeek-V3 with mscale that is not squared": (
        *("deepseek_v3", "module", "1 / MSCALE"),
        "is mscale of the rope scaling not squared",
    ),
    "Gemma 2 by the width of a head, not query_pre_attn_scalar": (
        *("gemma2", "module", math.sqrt(20 / 16)),
        "is the field ignored, and the width of a head taken",
    ),
    "Granite by the width of a head, not attention_multiplier": (
        *("granite", "module", 1 / 4 / 0.15),
        "is the field ignored, and the width of a head taken",
    ),
    "T5 with a scale": (
        *("t5", "module", 1 / 4),
        "is a scale applied that this architecture does not have",
    ),
    "Llama by hidden_size / heads where head_dim differs": (
        *("llama-head_dim", "module", math.sqrt(20 / 16)),
        "hidden_size / num_attention_heads, where head_dim is another",
    ),
    "Llama without one": (
        *("llama", "module", 4.0),
        "is the scale missing",
    ),
    "Qwen 3 by one for each of q and k": (
        *("qwen3", "module", 1 / 4),
        "is the scale applied twice",
    ),
    "Llama by a head of 16 padded to 32": (
        *("llama", "attention", math.sqrt(16 / 32)),
        "is it the width of a head padded to 32",
    ),
}


@pytest.mark.parametrize("what", REPORTED)
def test_what_was_reported_is_found_and_named(what):
    """The right model passes; the wrong one fails, and the message says what it is."""
    name, place, factor, words = REPORTED[what]
    if isinstance(factor, str):
        factor = {"1 / MSCALE": 1 / MSCALE, "1 / MSCALE**2": 1 / MSCALE**2}[factor]
    assert not verdict(captured_of(name))
    where = "in_attention" if place == "attention" else "in_modules"
    message = verdict(captured_of(name, **{where: factor}))
    assert "? no" in message.splitlines()[0]
    assert words in message


def test_gpt_2_without_the_number_of_the_layer():
    """Its second layer divides by 4, where 8 belongs; the first one is right."""
    model, inputs = build("gpt2-by-layer")
    assert not verdict(record(model, inputs)[0])
    model.h[1].attn.scaling *= 2
    message = verdict(record(model, inputs)[0])
    assert "layer 1, all heads: scores are divided by 4" in message
    assert "is the number of the layer left out" in message
    assert "layer 0, all heads: scores are divided by 4 = sqrt(d_k)" in message


def test_a_llama_that_scales_queries_as_well(monkeypatch):
    """Seen from what its projections give out, not from the scale of attention."""
    model, inputs = build("llama")
    assert not verdict(record(model, inputs)[0])
    modeling_llama = transformers.models.llama.modeling_llama
    rotate = modeling_llama.apply_rotary_pos_emb

    def wrong(query, key, *more, **options):
        query, key = rotate(query, key, *more, **options)
        return query / 4, key

    monkeypatch.setattr(modeling_llama, "apply_rotary_pos_emb", wrong)
    captured = record(model, inputs)[0]
    message = verdict(captured)
    assert "queries and keys are multiplied by 0.25 before" in message
    assert "is the scale applied twice: to queries" in message
    assert not verdict(captured, expect="sqrt")  # attention itself is right


def test_gemma_2_with_another_cap():
    """30, that of the output, in the place of attention's 50."""
    model, inputs = build("gemma2")
    assert not verdict(record(model, inputs)[0])
    for layer in model.layers:
        layer.self_attn.attn_logit_softcapping = 30.0
    message = verdict(record(model, inputs)[0])
    assert "scaled scores capped at 30 by tanh" in message
    assert "are scores capped at something else than attn_logit_softcapping?" in message


def test_every_convention_is_of_an_architecture():
    """A name that transformers does not have would be a misprint."""
    assert set(CONVENTIONS) <= {*transformers.CONFIG_MAPPING, "t5_gemma_module"}
    assert {ARCHITECTURES[one].kind or one for one in ARCHITECTURES} <= set(CONVENTIONS)

"""Errors as users reported them, rebuilt small: found, and called by their name.

Models of transformers are random and tiny; what a port got wrong is planted in them.
"""

import math

import pytest

from montecarlo import assert_attention_scale
from montecarlo.model.answers import HINTS
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


def verdict(captured, **options):
    """Return the message of what fails; empty where nothing does."""
    try:
        assert_attention_scale(captured, **options)
    except AssertionError as error:
        return str(error)
    return ""


#: What was reported: model, where and by what factor it is wrong, what it is called.
REPORTED = {
    "queries scaled, and scores again (PR 38290)": ("opt", "attention", 1 / 4, "again"),
    "queries not scaled": ("opt", "module", 4.0, "missing"),
    "without mscale (PR 47435)": ("deepseek_v3", "module", 1 / MSCALE**2, "mscale"),
    "mscale not squared": ("deepseek_v3", "module", 1 / MSCALE, "mscale_once"),
    "by the width of a head": ("gemma2", "module", math.sqrt(20 / 16), "ignored"),
    "no multiplier": ("granite", "module", 1 / 4 / 0.15, "ignored"),
    "with a scale": ("t5", "module", 1 / 4, "scaled"),
    "hidden / heads": ("llama-head_dim", "module", math.sqrt(20 / 16), "derived"),
    "without a scale": ("llama", "module", 4.0, "missing"),
    "one for each of q and k": ("qwen3", "module", 1 / 4, "twice"),
}


@pytest.mark.parametrize("what", REPORTED)
def test_what_was_reported_is_found_and_named(what):
    """The right model passes; the wrong one fails, and the message says what it is."""
    name, place, factor, hint = REPORTED[what]
    model, inputs = build(name)
    assert not verdict(record(model, inputs)[0])
    if place == "module":
        planted_in_modules(model, factor)
        factor = 1.0
    with planted_in_attention(factor):
        message = verdict(record(model, inputs)[0])
    assert "? no" in message.splitlines()[0]
    assert HINTS[hint] in message


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
    assert "is the cap of attn_logit_softcapping another, or missing?" in message


def test_every_convention_is_of_an_architecture():
    """A name that transformers does not have would be a misprint."""
    assert set(CONVENTIONS) <= {*transformers.CONFIG_MAPPING, "t5_gemma_module"}
    assert {ARCHITECTURES[one].kind or one for one in ARCHITECTURES} <= set(CONVENTIONS)

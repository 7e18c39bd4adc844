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
    "without mscale (PR 47435)": ("deepseek_v3", "module", 1 / MSCALE**2, "mscale"),
    "mscale not squared": ("deepseek_v3", "module", 1 / MSCALE, "mscale_once"),
    "by the width of a head": ("gemma2", "module", math.sqrt(20 / 16), "ignored"),
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

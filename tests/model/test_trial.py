"""The trial of forty: what architectures divide by, right and with an error planted.

Slow, and only where torch and transformers are installed.  The continuous integration
runs `GATE`, `make trial` all of them.
"""

import os

import pytest

from montecarlo import assert_attention_scale
from montecarlo.model.answers import NO, UNDETERMINED, YES, answer_scales
from montecarlo.model.expected import find_expected
from montecarlo.model.scales import find_scales
from tests.model.architectures import (
    ARCHITECTURES,
    BEFORE,
    WRITTEN_OUT,
    build,
    planted_in_attention,
    planted_in_modules,
    plants_of,
    record,
    torch,
)

pytestmark = pytest.mark.slow

GATE = ("llama", "opt", "deepseek_v3", "gemma2", "gpt2-by-layer", "t5")
TRIED = tuple(ARCHITECTURES) if os.environ.get("MONTECARLO_TRIAL") else GATE


def answer(captured):
    """Answer by the configuration; returns what is expected of each layer, too."""
    told, expected = set(), {}
    for model in captured.models():
        meant = find_expected(model, None, callers=captured.callers)
        expected |= {layer: meant.at(layer).value for layer in model.layers}
        found = find_scales(model)
        told.add(answer_scales(found, meant, caps=captured.caps).answer)
    return next(one for one in (NO, UNDETERMINED, YES) if one in told), expected


def build_or_skip(name, implementation, kind):
    """Build a model, if its architecture has the implementation."""
    try:
        return build(name, implementation, getattr(torch, kind))
    except ValueError as error:
        if "does not support an attention implementation" not in str(error):
            raise
        pytest.skip(f"{name} has no {implementation}")


#: Attention that is written out, with a bias by distance that is rounded: no scale is
#: told, which is neither a yes nor a no.
UNTOLD_HERE = {("bloom", "bfloat16")}


@pytest.mark.parametrize("name", TRIED)
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_a_right_model_is_right(name, implementation, kind):
    """What is expected is what stands beside it here, and it is found."""
    told, expected = answer(record(*build_or_skip(name, implementation, kind))[0])
    assert told == (UNDETERMINED if (name, kind) in UNTOLD_HERE else YES)
    one = ARCHITECTURES[name]
    left = 1.0 if name in BEFORE else one.divisor
    for layer, value in expected.items():
        divisor = one.by_layer[layer] if one.by_layer else left
        assert value == pytest.approx(divisor, rel=1e-6)


@pytest.mark.parametrize("name", TRIED)
@pytest.mark.parametrize(
    ("place", "implementation", "kind"),
    [
        ("attention", "eager", "float32"),
        ("attention", "sdpa", "bfloat16"),
        ("module", "eager", "bfloat16"),
    ],
)
def test_an_error_is_none_that_is_right(name, place, implementation, kind):
    """Planted in the attention function, or in what modules hold as their scale."""
    if name in WRITTEN_OUT:
        pytest.skip(f"{name} has no function to plant an error in")
    wrong = {}
    _, right = record(*build_or_skip(name, implementation, kind))
    for what, factor in plants_of(name).items():
        model, inputs = build(name, implementation, getattr(torch, kind))
        if place == "module":
            planted_in_modules(model, factor)
        with planted_in_attention(factor if place == "attention" else 1.0):
            captured, made = record(model, inputs)
        if not torch.equal(made, right):  # the planted number is one that counts
            wrong[what] = answer(captured)[0]
    assert set(wrong.values()) <= {NO}, wrong
    assert place == "module" or wrong


@pytest.mark.parametrize("name", ["mistral-window", "gemma3-window", "llama4-chunk"])
def test_windows_and_chunks_that_are_missing_are_no(name):
    """With them the same model is right."""
    part = "attention_chunk_size" if "chunk" in name else "sliding_window"
    model, inputs = build(name)
    assert answer(record(model, inputs)[0])[0] == YES
    config = dict(model.config.to_dict())
    setattr(model.config, part, 10**6)
    captured = record(model, inputs)[0]
    with pytest.raises(AssertionError, match=r"\? no\n"):
        assert_attention_scale(captured, config=config)

"""The trial of forty: what architectures divide by, right and with an error planted.

Slow, and only where torch and transformers are installed.  The continuous integration
runs `GATE`, `make trial` all of them.
"""

import importlib.util
import os

import pytest

from montecarlo.errors import InputError
from montecarlo.model.answers import NO, UNTOLD, YES, answer_scales
from montecarlo.model.expected import find_expected
from montecarlo.model.scales import find_scales

pytestmark = pytest.mark.slow

HAS_BOTH = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))
GATE = ("llama", "opt", "deepseek_v3", "gemma2", "gpt2-by-layer", "t5")
TRIED: tuple[str, ...] = GATE
if HAS_BOTH:
    import torch

    from tests.model.architectures import (
        ARCHITECTURES,
        BEFORE,
        build,
        planted_in_attention,
        planted_in_modules,
        plants_of,
        record,
    )

    if os.environ.get("MONTECARLO_TRIAL"):
        TRIED = tuple(ARCHITECTURES)
elif os.environ.get("MONTECARLO_REQUIRE_TORCH"):
    raise ImportError("torch and transformers must be installed for these tests")
else:
    pytestmark = [pytestmark, pytest.mark.skip(reason="needs torch and transformers")]

#: Heads that not all layers have alike are refused, as yet.
OTHER_HEADS = "same heads"


def answer(captured):
    """Answer by the configuration; returns what is expected, too."""
    try:
        model = captured.model()
    except InputError as error:
        if OTHER_HEADS not in str(error):
            raise
        return UNTOLD, None
    scales = find_scales(model)
    expected = find_expected(
        None,
        None,
        captured.callers,
        layers=model.layers,
        d_k=model.d_k,
        n_heads=scales.n_heads,
    )
    return answer_scales(scales, expected).answer, expected


def build_or_skip(name, implementation, kind):
    """Build a model, if its architecture has the implementation."""
    try:
        return build(name, implementation, getattr(torch, kind))
    except ValueError as error:
        if "does not support an attention implementation" not in str(error):
            raise
        pytest.skip(f"{name} has no {implementation}")


@pytest.mark.parametrize("name", TRIED)
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_a_right_model_is_right(name, implementation, kind):
    """What is expected is what stands beside it here, and it is found."""
    told, expected = answer(record(*build_or_skip(name, implementation, kind))[0])
    one = ARCHITECTURES[name]
    if {implementation, kind} & set(one.untold):
        assert told in {YES, UNTOLD}
    else:
        assert told == YES
    for layer, divisor in enumerate(one.by_layer if expected else ()):
        assert expected.at(layer).value == pytest.approx(divisor, rel=1e-6)
    if expected and not one.by_layer:
        left = 1.0 if name in BEFORE else one.divisor
        assert expected.value == pytest.approx(left, rel=1e-6)


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
    wrong = {}
    _, right = record(*build_or_skip(name, implementation, kind))
    for what, factor in plants_of(name).items():
        model, inputs = build(name, implementation, getattr(torch, kind))
        if place == "attention":
            with planted_in_attention(factor):
                captured, made = record(model, inputs)
        else:
            planted_in_modules(model, factor)
            captured, made = record(model, inputs)
        if not torch.equal(made, right):  # the planted number is one that counts
            wrong[what] = answer(captured)[0]
    assert YES not in wrong.values(), wrong
    assert place == "module" or wrong
    if not {implementation, kind} & set(ARCHITECTURES[name].untold):
        assert set(wrong.values()) <= {NO}, wrong

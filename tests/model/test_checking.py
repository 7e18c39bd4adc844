"""For tests of others: what passes, what fails, and what is said of it."""

import math

import numpy as np
import pytest

from montecarlo import assert_attention_scale
from montecarlo.errors import InputError
from montecarlo.model.answers import say_answer
from montecarlo.model.checking import answer_models
from tests.model.heads import weighted
from tests.model.threads import SIZES, THREADS, Size, causal, run

#: Faults that no configuration tells, or that would need what was before the norm.
UNSEEN_ALONE = [
    "tt-metal PR 42891: bias scaled, too",
    "rocm-libraries PR 12229: sink twice",
    "rocm-libraries PR 12229: sink scaled",
    "tabfm PR 40: mask of the first row",
    "prime-rl PR 2681: keys repeated along tokens",
    "Swin 373: normalised over tokens",
    "vllm-metal 660: rotation before the norm",
    "vllm-metal 659: norm skipped",
]


def test_the_message_can_be_acted_on():
    """Which heads, what they divide by, what was expected, and what it looks like."""
    scales = np.reshape([1.0 / 4.0, 1.0 / 16.0], (2, 1, 1, 1))
    with pytest.raises(AssertionError) as raised:
        assert_attention_scale(weighted(scales, (2, 2, 4, 30, 16)))
    lines = str(raised.value).splitlines()
    told = "scores are divided by 16 = d_k; sqrt(d_k) = 4 was expected"
    assert lines == [
        "scores divided by sqrt(d_k) = 4? no",
        f"  layer 1, all heads: {told}: is the scale applied twice?",
        "  layer 0, all heads: scores are divided by 4 = sqrt(d_k)",
    ]


def test_axes_of_arrays_can_be_named():
    """Arrays of a head have no sequences or layers, and say so."""
    arrays = weighted(1.0 / math.sqrt(8), (3, 24, 8))
    axes = ("head", "token", "d")
    for expect in ("sqrt", "sqrt(d_k)", "d_k^0.5", math.sqrt(8), "8^0.5"):
        assert_attention_scale(arrays, expect, axes=axes)
    with pytest.raises(AssertionError, match="no"):
        assert_attention_scale(arrays, "1.07*sqrt(d_k)", axes=axes)
    with pytest.raises(InputError, match=r"one of config, .*; got 'sqr'. Did you"):
        assert_attention_scale(arrays, "sqr", axes=axes)


@pytest.mark.parametrize(
    "name", [name for name, thread in THREADS.items() if thread.expect is not None]
)
def test_faults_that_a_configuration_tells(name):
    """A sound model passes; 20 of 31 faults do not, and what is wrong is asked for."""
    thread, size = THREADS[name], Size(*SIZES["small"], 16)
    port, reference = thread.arrays(size)
    expect = thread.expect(size) if callable(thread.expect) else thread.expect
    kind = "config" if isinstance(expect, dict) else "expect"
    if not name.startswith("tinygrad"):
        assert_attention_scale(reference, **{kind: expect})
    if name in UNSEEN_ALONE:
        assert_attention_scale(port, **{kind: expect})
    else:
        with pytest.raises((AssertionError, InputError)):
            assert_attention_scale(port, **{kind: expect})


def test_what_does_not_show_is_not_said_to_be_right():
    """A window that no row reaches, and a cap far above all scores."""
    size = Size(*SIZES["small"], 12)
    long = {"model_type": "mistral", "head_dim": size.d_k, "sliding_window": 4096}
    capped = {"model_type": "gemma2", "query_pre_attn_scalar": size.d_k}
    capped |= {"head_dim": size.d_k, "attn_logit_softcapping": 50.0}
    for config, number_format, said in (
        (long, "float32", "yes; not checked: a window of 4096 keys, of 12 here"),
        (capped, "bfloat16", "yes; not checked: a cap of 50, too far above these"),
    ):
        arrays = run(size, number_format, hidden=causal(size))
        (answer,) = answer_models(arrays, config=config)
        assert said in say_answer(answer)

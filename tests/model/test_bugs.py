"""Seven mistakes that stood in public code, planted in a small model, and found."""

import numpy as np
import pytest

from montecarlo.model.answers import NO, answer_scales
from montecarlo.model.arrays import open_arrays
from montecarlo.model.expected import expected_divisor
from montecarlo.model.scales import find_scales
from tests.model.heads import attend

LAYERS, HEADS, TOKENS, D_K = 2, 8, 40, 32
ROOT = D_K**0.5
#: Of each: what scores are divided by, what was meant, what the former is called, and
#: what it hints at.  In the trackers of perceiver-io (9), mlc-llm (3426),
#: tt-metal (56789), mobius (548), transformers (31891), vit-pytorch (65) and
#: maxtext (3138).
BUGS = {
    "multiplied": (1.0 / ROOT, ROOT, "inverse_sqrt", "multiplied"),
    "not scaled": (1.0, ROOT, "none", "missing"),
    "heads for width": (HEADS**0.5, ROOT, "sqrt_heads", "heads"),
    "a square missing": (ROOT, ROOT / 1.59, "sqrt", None),
    "224 for 256": (ROOT * (224 / 256) ** 0.5, ROOT, None, None),
    "all heads' width": ((HEADS * D_K) ** 0.5, ROOT, "sqrt_width", "width"),
    "twice": (float(D_K), ROOT, "linear", "twice"),
}
#: A number format, and what a scale is told from.
TOLD_FROM = [("float32", "weights"), ("bfloat16", "weights"), ("float16", "outputs")]


def applied(divisor, number_format, source):
    """Tell what a model applies, from weights or from outputs."""
    shape = (2, LAYERS, HEADS, TOKENS, D_K)
    seen = np.tri(TOKENS, dtype=bool)
    # where scores are multiplied, too, a row has more than one weight
    arrays = attend(1, number_format, 1.0 / divisor, shape=shape, size=0.6, seen=seen)
    names = "weights" if source == "weights" else "v outputs"
    return find_scales(open_arrays({n: arrays[n] for n in ("q", "k", *names.split())}))


@pytest.mark.parametrize(("number_format", "source"), TOLD_FROM)
@pytest.mark.parametrize("bug", BUGS)
def test_each_is_found_and_named(bug, number_format, source):
    """In every head the divisor is told, and what it looks like; the answer is no."""
    divisor, meant, name, hint = BUGS[bug]
    found = applied(divisor, number_format, source)
    expected = expected_divisor(meant, D_K, HEADS)
    answer = answer_scales(found, expected)
    assert answer.answer == NO
    assert len(found.heads) == LAYERS * HEADS
    for head in found.heads:
        assert head.outcome == "scale"
        # 16 heads, each by Student's t: together missed once in 10^6 times
        away = abs(head.scale - 1.0 / divisor)
        assert away < 6.5 * head.fit.std_error + 2.0**-23 / divisor
        if name is not None:
            assert name in [usual.name for usual in head.known]
    hints = {hint for one in answer.findings for hint in one.hints}
    assert hints == ({hint} if hint else set())

"""The scale comes back, from weights and from outputs; what is no scale is named."""

from itertools import product

import numpy as np
import pytest

from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.model.fits import fit_outputs, fit_weights
from montecarlo.model.masks import find_mask

SCALE = 1.0 / 8.0
FORMATS = ("float64", "float32", "bfloat16", "float16")
#: Relative errors that a trial had at most, and for what is more exact.
MOST_OFF = {"float64": 1e-12, "float32": 2e-7, "bfloat16": 2e-3, "float16": 5e-4}
#: Standard errors that a scale is off by at most: by Student's t with 95 degrees of
#: freedom once in 10^7 heads, of which there are 120 here.
MOST_Z = 5.8
BIAS = np.random.default_rng(7).normal(size=200)


def alibi(i, j):
    """Return a bias that falls with distance."""
    return -0.25 * np.abs(i - j)


ADDED = {
    "plain": {},
    "causal": {"seen": lambda i, j: j <= i},
    "distance": {"bias": alibi},
    "causal distance": {"bias": alibi, "seen": lambda i, j: j <= i},
    "cap": {"cap": 2.0},
    "offset": {"bias": lambda i, j: BIAS[j - i + 100]},
    "key": {"bias": lambda i, j: BIAS[j] + 0.0 * i},
    "pair": {"bias": lambda i, j: BIAS[(7 * i + 13 * j) % 200], "sequences": 4},
    "sink": {"sink": 2.0},
    "row": {"by_row": np.log(np.arange(48) + 2.0)},
}
#: The form that is found, where it is not named as the case.
FORMS = {"causal": "plain", "causal distance": "distance", "sink": "plain"}
#: What outputs alone can tell.
BY_OUTPUTS = {
    "plain": "plain",
    "causal": "plain",
    "distance": "distance",
    "causal distance": "distance",
    "cap": "cap",
    "sink": "sink",
}


def require_scale(fit, number_format, scale=SCALE):
    """Make sure that a scale is right, by its own error and by how far it may be."""
    assert fit.holds
    assert abs(fit.scale - scale) < MOST_Z * fit.std_error
    assert abs(fit.scale / scale - 1.0) < MOST_OFF[number_format]


@pytest.mark.parametrize("number_format", FORMATS)
@pytest.mark.parametrize("case", ADDED)
def test_weights_tell_scale_and_form(make_head, number_format, case):
    """Every additive part is named, and the scale beside it is right or refused."""
    made = make_head(np.random.default_rng(3), number_format, SCALE, **ADDED[case])
    fit = fit_weights(made)
    assert fit.form == FORMS.get(case, case)
    if case == "row":
        assert fit.holds
    else:
        require_scale(fit, number_format)


@pytest.mark.parametrize("number_format", FORMATS)
@pytest.mark.parametrize("case", BY_OUTPUTS)
def test_outputs_tell_scale_and_form(make_head, number_format, case):
    """The mask is found, too; a sink takes weight that only outputs can miss."""
    made = make_head(np.random.default_rng(4), number_format, SCALE, **ADDED[case])
    fit, mask = fit_outputs(made)
    assert fit.form == BY_OUTPUTS[case]
    assert mask == ("causal" if "seen" in ADDED[case] else "none")
    require_scale(fit, number_format)


@pytest.mark.parametrize("case", ["offset", "key", "row"])
def test_outputs_refuse_what_they_cannot_tell(make_head, case):
    """No scale is told where a bias or a scale of each row is in the scores."""
    made = make_head(np.random.default_rng(5), "float32", SCALE, **ADDED[case])
    fit, _ = fit_outputs(made)
    assert not fit.holds


@pytest.mark.parametrize("number_format", FORMATS)
def test_rotation_after_the_capture_is_refused(make_head, turn, number_format):
    """Rotary embeddings that the captured entries lack leave no scale that fits."""
    made = make_head(np.random.default_rng(6), number_format, SCALE, change=turn)
    assert not fit_weights(made).holds
    assert not fit_outputs(made)[0].holds


def forms_of_short_rows(make_head):
    """Return the forms that are told of plain heads of few tokens."""
    forms = set()
    for tokens, d_k, seed in product((3, 4, 6, 8), (4, 16, 64), range(4)):
        rng = np.random.default_rng((seed, tokens))
        made = make_head(rng, "float64", d_k**-0.5, tokens, d_k)
        forms |= {fit_weights(made).form, fit_outputs(made)[0].form}
    return forms


def test_no_form_is_told_that_is_smaller_than_rounding(make_head, monkeypatch):
    """Roundings of few numbers depend on each other, and looked like sinks and biases.

    Whatever the seeds: what a plain form leaves is a third of what is allowed for.
    """
    assert forms_of_short_rows(make_head) == {"plain"}
    monkeypatch.setattr("montecarlo.model.fits.MOST_ROUNDING", 0.0)
    assert forms_of_short_rows(make_head) > {"plain"}


@pytest.mark.parametrize("number_format", FORMATS)
@pytest.mark.parametrize("slope", [0.03, 0.3])
def test_a_bias_smaller_than_rounding_is_within_the_interval(
    make_head, number_format, slope
):
    """Of a slope that moves the farthest key by a part of a rounding of its weight.

    Intervals of 95 %: fewer than 13 of 20 hold the scale once in 300,000 times.
    """
    unit = slope * 2.0 ** -NUMBER_FORMATS[number_format].bits
    held = 0
    for seed in range(20):
        made = make_head(
            np.random.default_rng((51, seed)),
            number_format,
            SCALE,
            8,
            bias=lambda i, j: -unit * abs(i - j),
        )
        fit = fit_weights(made)
        assert fit.form == "plain"
        found = fit.interval()
        held += found.low <= SCALE <= found.high
    assert held >= 13


@pytest.mark.parametrize(("part", "form"), [(1e-6, "plain"), (0.01, "row")])
def test_rows_that_a_kernel_moves_have_one_scale(make_head, part, form):
    """Sums in float32 leave rows scales that differ by a millionth, beyond chance."""
    by_row = 1.0 + part * np.random.default_rng(53).standard_normal(48)
    made = make_head(np.random.default_rng(54), "float64", SCALE, by_row=by_row)
    fit = fit_weights(made)
    assert fit.form == form
    found = fit.interval()
    assert fit.form == "row" or found.low < SCALE < found.high


def test_rows_without_information(make_head):
    """One-hot rows, and scores that are all the same, tell nothing."""
    made = make_head(np.random.default_rng(11), "float16", 500.0)
    assert fit_weights(made) is None
    flat = make_head(np.random.default_rng(11), "float32", 1.0, size=0.0)
    assert fit_weights(flat) is None
    assert fit_outputs(flat) is None


MASKS = {
    "none": (lambda i, j: j >= 0 * i, 0),
    "causal": (lambda i, j: j <= i, 0),
    "window": (lambda i, j: (j <= i) & (i - j < 8), 8),
    "keys": (lambda i, j: (j < 40) | (i < 0), 0),
    "causal_keys": (lambda i, j: (j <= i) & ((j < 20) | (j > 24)), 0),
    "other": (lambda i, j: ((i + 2 * j) % 5 > 0) | (i == j), 0),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("number_format", ["float32", "float16"])
def test_masks_are_named(make_head, number_format, name):
    """Zeros that scores do not make are a mask, and the scale is right beside it."""
    seen, window = MASKS[name]
    made = make_head(np.random.default_rng(12), number_format, SCALE, seen=seen)
    fit = fit_weights(made)
    hidden = find_mask(made, fit)
    assert (hidden.mask, hidden.window) == (name, window)
    assert hidden.sums == "one"
    require_scale(fit, number_format)


def test_underflow_is_no_mask(make_head):
    """Weights that float16 cannot hold are 0, and nothing hides their keys."""
    made = make_head(np.random.default_rng(13), "float16", 1.0)
    assert any((block.weights == 0.0).any() for block in made)
    fit = fit_weights(made)
    assert find_mask(made, fit).mask == "none"
    require_scale(fit, "float16", 1.0)


@pytest.mark.parametrize("number_format", FORMATS)
def test_rows_that_lack_weight_are_seen(make_head, number_format):
    """A sink takes weight from every row; dropout from some, and adds to others."""
    made = make_head(np.random.default_rng(14), number_format, SCALE, sink=2.0)
    hidden = find_mask(made, fit_weights(made))
    assert hidden.sums == "less"
    expected = np.mean([block.weights.sum(axis=1).mean() for block in made])
    assert hidden.row_sum == pytest.approx(expected)
    kept = np.random.default_rng(15).random((2, 48, 48)) > 0.1
    for block, keep in zip(made, kept, strict=True):
        block.weights[:] = block.weights * keep / block.weights.sum(1)[:, None] / 0.9
    dropped = find_mask(made, fit_weights(made))
    assert (dropped.sums, dropped.mask) == ("other", "other")


#: Heads of each number format, and bounds of a share of 0.95 among so many, four of its
#: standard deviations of 0.0069 away: beyond them once in 10,000 times.
HEADS, LEAST, MOST = 1000, 0.922, 0.978


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number_format", "fit"),
    [("bfloat16", fit_weights), ("float32", lambda rows: fit_outputs(rows)[0])],
)
def test_intervals_hold_the_scale(make_head, number_format, fit):
    """The interval of 95 % holds the scale in about 95 % of the heads."""
    held = 0
    for seed in range(HEADS):
        rng = np.random.default_rng((21, seed))
        low, high = fit(make_head(rng, number_format, 0.23, 32, 16, 1)).interval()
        held += low <= 0.23 <= high
    assert LEAST <= held / HEADS <= MOST

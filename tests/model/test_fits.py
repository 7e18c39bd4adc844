"""The scale comes back, from weights and from outputs; what is no scale is named."""

from itertools import product

import numpy as np
import pytest

from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.model.fits import fit_outputs, fit_weights
from montecarlo.model.masks import find_mask
from tests.model.heads import TOKENS, attend, rows_of

SCALE = 1.0 / 8.0
FORMATS = ("float64", "float32", "bfloat16", "float16")
#: Relative errors that a trial had at most, and for what is more exact.
MOST_OFF = {"float64": 1e-12, "float32": 2e-7, "bfloat16": 2e-3, "float16": 5e-4}
#: Standard errors that a scale is off by at most: by Student's t with 95 degrees of
#: freedom once in 10^7 heads, of which there are 120 here.
MOST_Z = 5.8
BIAS = np.random.default_rng(7).normal(size=200)


ROW, KEY = np.indices((TOKENS, TOKENS))
ALIBI, CAUSAL = -0.25 * np.abs(ROW - KEY), KEY <= ROW
ADDED = {
    "plain": {},
    "causal": {"seen": CAUSAL},
    "distance": {"bias": ALIBI},
    "causal distance": {"bias": ALIBI, "seen": CAUSAL},
    "cap": {"cap": 2.0},
    "offset": {"bias": BIAS[KEY - ROW + 100]},
    "key": {"bias": BIAS[KEY]},
    "pair": {"bias": BIAS[(7 * ROW + 13 * KEY) % 200], "shape": (4, TOKENS, 64)},
    "sink": {"sink": 2.0},
    "row": {"rows": np.log(np.arange(TOKENS) + 2.0)},
}
#: The form that is found, where it is not named as the case.
FORMS = {"causal": "plain", "causal distance": "distance", "sink": "plain"}
#: What outputs alone can tell.
BY_OUTPUTS = ("plain", "causal", "distance", "causal distance", "cap", "sink")


def head(seed, number_format, scale=SCALE, **more):
    """Return rows of a head."""
    return rows_of(attend(seed, number_format, scale, **more))


def require_scale(fit, number_format, scale=SCALE):
    """Make sure that a scale is right, by its own error and by how far it may be."""
    assert fit.holds
    assert abs(fit.scale - scale) < MOST_Z * fit.std_error
    assert abs(fit.scale / scale - 1.0) < MOST_OFF[number_format]


@pytest.mark.parametrize("number_format", FORMATS)
@pytest.mark.parametrize("case", ADDED)
def test_weights_tell_scale_and_form(number_format, case):
    """Every additive part is named, and the scale beside it is right or refused."""
    made = head(3, number_format, SCALE, **ADDED[case])
    fit = fit_weights(made)
    assert fit.form == FORMS.get(case, case)
    if case == "row":
        assert fit.holds
    else:
        require_scale(fit, number_format)


@pytest.mark.parametrize("number_format", FORMATS)
@pytest.mark.parametrize("case", BY_OUTPUTS)
def test_outputs_tell_scale_and_form(number_format, case):
    """The mask is found, too; a sink takes weight that only outputs can miss."""
    made = head(4, number_format, SCALE, **ADDED[case])
    fit, mask = fit_outputs(made)
    assert fit.form == ("sink" if case == "sink" else FORMS.get(case, case))
    assert mask == ("causal" if "seen" in ADDED[case] else "none")
    require_scale(fit, number_format)


@pytest.mark.parametrize("case", ["offset", "key", "row"])
def test_outputs_refuse_what_they_cannot_tell(case):
    """No scale is told where a bias or a scale of each row is in the scores."""
    made = head(5, "float32", SCALE, **ADDED[case])
    fit, _ = fit_outputs(made)
    assert not fit.holds


def forms_of_short_rows():
    """Return the forms that are told of plain heads of few tokens."""
    forms = set()
    for tokens, d_k, seed in product((3, 4, 6, 8), (4, 64), range(2)):
        made = rows_of(attend((seed, tokens), "float64", shape=(2, tokens, d_k)))
        forms |= {fit_weights(made).form, fit_outputs(made)[0].form}
    return forms


def test_no_form_is_told_that_is_smaller_than_rounding(monkeypatch):
    """Roundings of few numbers depend on each other, and looked like sinks and biases.

    Whatever the seeds: what a plain form leaves is a third of what is allowed for.
    """
    assert forms_of_short_rows() == {"plain"}
    monkeypatch.setattr("montecarlo.model.fits.MOST_ROUNDING", 0.0)
    assert forms_of_short_rows() > {"plain"}


@pytest.mark.parametrize("number_format", FORMATS)
@pytest.mark.parametrize("slope", [0.03, 0.3])
def test_a_bias_smaller_than_rounding_is_within_the_interval(number_format, slope):
    """Of a slope that moves the farthest key by a part of a rounding of its weight.

    Intervals of 95 %: fewer than 13 of 20 hold the scale once in 300,000 times.
    """
    unit = slope * 2.0 ** -NUMBER_FORMATS[number_format].bits
    held = 0
    for seed in range(20):
        away = np.abs(np.subtract.outer(np.arange(8), np.arange(8)))
        made = head((51, seed), number_format, shape=(2, 8, 64), bias=-unit * away)
        fit = fit_weights(made)
        assert fit.form == "plain"
        found = fit.interval()
        held += found.low <= SCALE <= found.high
    assert held >= 13


@pytest.mark.parametrize(("part", "form"), [(1e-6, "plain"), (0.01, "row")])
def test_rows_that_a_kernel_moves_have_one_scale(part, form):
    """Sums in float32 leave rows scales that differ by a millionth, beyond chance."""
    by_row = 1.0 + part * np.random.default_rng(53).standard_normal(48)
    made = head(54, "float64", SCALE, rows=by_row)
    fit = fit_weights(made)
    assert fit.form == form
    found = fit.interval()
    assert fit.form == "row" or found.low < SCALE < found.high


def test_rows_without_information():
    """One-hot rows, and scores that are all the same, tell nothing."""
    made = head(11, "float16", 500.0)
    assert fit_weights(made) is None
    flat = head(11, "float32", 1.0, size=0.0)
    assert fit_weights(flat) is None
    assert fit_outputs(flat) is None


MASKS = {
    "none": (KEY >= 0, 0),
    "causal": (CAUSAL, 0),
    "window": (CAUSAL & (ROW - KEY < 8), 8),
    "chunks": (CAUSAL & (ROW // 12 == KEY // 12), 12),
    "keys": (KEY < 40, 0),
    "causal_keys": (CAUSAL & ((KEY < 20) | (KEY > 24)), 0),
    "other": (((ROW + 2 * KEY) % 5 > 0) | (ROW == KEY), 0),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("number_format", ["float32", "float16"])
def test_masks_are_named(number_format, name):
    """Zeros that scores do not make are a mask, and the scale is right beside it."""
    seen, window = MASKS[name]
    made = head(12, number_format, SCALE, seen=seen)
    fit = fit_weights(made)
    hidden = find_mask(made, fit)
    assert (hidden.mask, hidden.window) == (name, window)
    assert hidden.sums == "one"
    require_scale(fit, number_format)


@pytest.mark.parametrize("number_format", FORMATS)
def test_rows_that_lack_weight_are_seen(number_format):
    """A sink takes weight from every row; dropout from some, and adds to others."""
    made = head(14, number_format, SCALE, sink=2.0)
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
#: standard deviations of 0.0109 away: beyond them once in 10,000 times.
HEADS, LEAST, MOST = 400, 0.906, 0.994


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number_format", "fit"),
    [("bfloat16", fit_weights), ("float32", lambda rows: fit_outputs(rows)[0])],
)
def test_intervals_hold_the_scale(number_format, fit):
    """The interval of 95 % holds the scale in about 95 % of the heads."""
    held = 0
    for seed in range(HEADS):
        made = head((21, seed), number_format, 0.23, shape=(1, 32, 16))
        low, high = fit(made).interval()
        held += low <= 0.23 <= high
    assert LEAST <= held / HEADS <= MOST

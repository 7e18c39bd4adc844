"""A figure of a question of one's own shows each estimate, interval and exact value."""

import numpy as np
import pandas as pd
import pytest

from montecarlo import figure, grid
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.errors import InputError
from montecarlo.report.figures.sweep import MOST_SERIES


@pytest.fixture(scope="module")
def frame():
    """Sample a small sweep: rows and pairs, three divisors and a ratio."""
    return grid(
        d_k=[4, 16, 64],
        n_keys=[8, 32],
        quantity=["jacobian_trace", "score_variance"],
        divisor=["none", "sqrt", "d_k^0.6", "none/sqrt"],
        most=64,
    )


def drawn(axes):
    """Return the points of a panel's series."""
    return [one.get_children()[0].get_xydata() for one in axes.containers]


def test_every_row_is_drawn_once(frame):
    """Each panel has the rows of its quantity, at their d_k, and none twice."""
    panels = dict(
        zip(("jacobian_trace", "score_variance"), figure(frame).axes, strict=True)
    )
    for quantity, axes in panels.items():
        rows = frame[frame.quantity.eq(quantity)]
        found = np.vstack(drawn(axes))
        wanted = rows[["d_k", "estimate"]].to_numpy(float)
        order = [np.lexsort(one.T) for one in (found, wanted)]
        np.testing.assert_array_equal(found[order[0]], wanted[order[1]])


def test_series_are_named(frame):
    """A legend says what differs: divisors as they were typed, and the keys of rows."""
    (legend,) = figure(frame).legends
    texts = [one.get_text() for one in legend.get_texts()]
    assert len(texts) == len(set(texts)) == 2 * 4 + 3 + 1
    assert "c = d_k^0.6, $n$ = 32" in texts
    assert "$c = 1$ over $c = \\sqrt{d_k}$, $n$ = 8" in texts
    assert "c = d_k^0.6" in texts
    assert not any("NA" in text for text in texts)


def test_it_is_drawn_over_what_varies(frame):
    """The size with more values is on the x axis, unless another is asked for."""
    assert {one.get_xlabel() for one in figure(frame).axes} == {"$d_k$"}
    rows = frame[frame.n_keys.notna()]
    assert {one.get_xlabel() for one in figure(rows, x="n_keys").axes} == {"$n$"}


def test_exact_values_are_lines(frame):
    """Theory's values are drawn where there are any, and nowhere else."""
    known = frame[frame.quantity.eq("score_variance") & frame.divisor.eq("sqrt")]
    (axes,) = figure(known).axes
    lines = [one for one in axes.lines if len(one.get_xydata()) == len(known)]
    assert any(np.allclose(one.get_ydata(), known.reference) for one in lines)


def test_every_quantity_can_be_drawn(frame, tmp_path):
    """Symbol and words of each quantity can be set, each in a panel of its own."""
    row = frame[frame.n_keys.notna()].head(1)
    drawing = figure(pd.concat(row.assign(quantity=name) for name in QUANTITIES))
    drawing.savefig(tmp_path / "all.svg")
    assert len(drawing.axes) == len(QUANTITIES)


@pytest.fixture(scope="module")
def entropies():
    """Two quantities in nats, with exact values."""
    names = ["entropy", "log_partition"]
    divisors = ["d_k^.6", 13.5]
    return grid(d_k=[4, 16], n_keys=[8, 32], quantity=names, divisor=divisors, most=64)


@pytest.mark.parametrize("minus", ["reference", "ln n"])
def test_something_is_taken_off(entropies, minus):
    """From estimates, both ends of intervals, and exact values."""
    keys = entropies.n_keys.astype(float)
    off = entropies.reference if minus == "reference" else np.log(keys)
    drawing = figure(entropies, minus=minus)
    for quantity, axes in zip(("entropy", "log_partition"), drawing.axes, strict=True):
        rows = entropies[entropies.quantity.eq(quantity)]
        for name in ("estimate", "ci_low", "ci_high"):
            wanted = (rows[name] - off[rows.index]).to_numpy(float)
            found = np.concatenate([*heights(axes, name)]).astype(float)
            np.testing.assert_allclose(np.sort(found), np.sort(wanted), atol=1e-12)
        assert ("exact" in axes.get_ylabel()) == (minus == "reference")


def heights(axes, name):
    """Return the heights of a panel's estimates, or of one end of its intervals."""
    for one in axes.containers:
        points, _, bars = one.lines
        if name == "estimate":
            yield points.get_ydata()
        else:
            place = 0 if name == "ci_low" else 1
            yield [segment[place][1] for segment in bars[0].get_segments()]


def test_an_axis_is_logarithmic_if_asked(entropies):
    """And linear, whatever the values."""
    for y, scale in (("log", "log"), ("linear", "linear")):
        assert {one.get_yscale() for one in figure(entropies, y=y).axes} == {scale}


@pytest.mark.parametrize(
    ("change", "asked", "told"),
    [
        ({"divisor": [str(1 + n) for n in range(MOST_SERIES + 1)]}, {}, "at most 12"),
        ({}, {"x": "divisor"}, "x must be"),
        ({}, {"y": "cubic"}, "y must be 'linear' or 'log', got 'cubic'"),
        ({}, {"minus": "n"}, "minus must be 'reference' or 'ln n', got 'n'"),
        ({"reference": None}, {"minus": "reference"}, "must have an exact value"),
        ({"quantity": "weight_max"}, {"minus": "ln n"}, "got weight_max"),
        ({"divisor": "none/sqrt"}, {"minus": "ln n"}, "no ratio"),
        ({"estimate": -1.0}, {"y": "log"}, "above 0, got -1 for entropy"),
        ({}, {"minus": "ln n", "y": "log"}, "must have estimates above 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(entropies, change, asked, told):
    """One line, with what came."""
    rows = entropies[entropies.quantity.eq("entropy")]
    if isinstance(many := change.get("divisor"), list):
        rows = pd.concat([rows.head(1)] * len(many))
    with pytest.raises(InputError, match=told):
        figure(rows.assign(**change), **asked)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda frame: frame.head(0), "no row"),
        (lambda frame: frame.drop(columns="divisor"), "none of 'divisor'"),
    ],
)
def test_what_is_no_sweep_is_refused(frame, wrong, told):
    """No rows, or other columns."""
    with pytest.raises(InputError, match=told):
        figure(wrong(frame))

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


def test_what_all_rows_share_stands_above(frame):
    """With what is on neither axis nor in the legend; undivided is a divisor, too."""
    assert figure(frame).get_suptitle() == "gaussian entries; bars: 95 % intervals"
    rows = frame[frame.n_keys.eq(8) & frame.divisor.eq("none")]
    told = "gaussian entries, $c = 1$, $n$ = 8; bars: 95 % intervals"
    assert figure(rows).get_suptitle() == told


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


def test_one_size_has_a_tick_and_its_exact_value(frame):
    """What the legend calls exact is seen, although a line of one point is not."""
    known = frame[frame.quantity.eq("score_variance") & frame.divisor.eq("sqrt")]
    (axes,) = figure(known.head(1)).axes
    assert list(axes.get_xticks()) == [known.d_k.iloc[0]]
    assert axes.lines[0].get_marker() == "_"


def test_every_quantity_can_be_drawn(frame, tmp_path):
    """Symbol and words of each quantity can be set, each in a panel of its own."""
    row = frame[frame.n_keys.notna()].head(1)
    drawing = figure(pd.concat(row.assign(quantity=name) for name in QUANTITIES))
    drawing.savefig(tmp_path / "all.svg")
    assert len(drawing.axes) == len(QUANTITIES)


@pytest.mark.parametrize(
    ("change", "x", "told"),
    [
        ({"divisor": [str(1 + n) for n in range(MOST_SERIES + 1)]}, None, "at most 12"),
        ({}, "divisor", "x must be"),
    ],
)
def test_what_cannot_be_drawn_is_refused(frame, change, x, told):
    """One line, with what came."""
    rows = frame[frame.quantity.eq("jacobian_trace")]
    if "divisor" in change:
        rows = pd.concat([rows.head(1)] * len(change["divisor"]))
    with pytest.raises(InputError, match=told):
        figure(rows.assign(**change), x)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda frame: frame.head(0), "no row"),
        (lambda frame: frame.drop(columns="divisor"), "none of divisor"),
        (lambda frame: frame.assign(quantity="overflow_probability"), "no row"),
    ],
)
def test_what_is_no_sweep_is_refused(frame, wrong, told):
    """No rows, or other columns."""
    with pytest.raises(InputError, match=told):
        figure(wrong(frame))

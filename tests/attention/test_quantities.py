"""The table of quantities: what an entry says of itself is true of its values."""

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from montecarlo.attention import quantities
from montecarlo.attention.gradients import element_gradient
from montecarlo.attention.grids import DEEP, FINE, SIGNED, LogGrid
from montecarlo.attention.quantities import (
    PAIR_MEANS,
    PAIR_QUANTITIES,
    QUANTILES,
    ROW_QUANTITIES,
    quantile_level,
)
from montecarlo.attention.softmax import measure_gaps, softmax_rows

D_K = 8


def test_a_name_keeps_its_capital(monkeypatch):
    """Of a docstring that becomes words; the first letter of others is small."""
    monkeypatch.setattr(quantities, "_TABLE", [])
    for begun, words in (("Q of a row.", "Q of a row"), ("Sum.", "sum")):
        function = type("made", (), {"__doc__": begun})
        assert quantities._rows("x")(function).words == words


def means_of(queries, keys):
    """Return the means that quantities of pairs are made of, by their definitions."""
    q, k = queries.astype(np.float64), keys.astype(np.float64)
    s = (q @ k.T).ravel()
    gap = (s <= 0.742 * math.sqrt(D_K)).mean() - scipy.stats.norm.cdf(0.742)
    values = (
        *(q.mean(), (q**2).mean(), k.mean(), (k**2).mean()),
        *(s.mean(), np.abs(s).mean(), (s**2).mean(), (s**3).mean(), (s**4).mean()),
        gap,
    )
    return dict(zip(PAIR_MEANS, map(np.asarray, values), strict=True))


@pytest.mark.parametrize(
    ("summary", "level"),
    [
        *QUANTILES.items(),
        ("q99", 0.99),
        ("q99.9", 0.999),
        ("q2.5", 0.025),
        *dict.fromkeys(("q50", "q010", "q9.90", "q0.99", "q100", "q", "mean")).items(),
    ],
)
def test_names_of_quantiles(summary, level):
    """A quantile is named by its percentage, each by one name."""
    assert quantile_level(summary) == pytest.approx(level)


def test_elements_keep_their_precision_where_a_weight_is_nearly_one():
    """1 - p of the largest is a sum of the others: exact where 1 - p rounds to 0."""
    scores = np.array([[0.0, -80.0, -90.0]])
    (values,) = element_gradient(softmax_rows(measure_gaps(scores[np.newaxis]), 1.0))

    rest = math.exp(-80.0) + math.exp(-90.0)
    assert values == pytest.approx([rest, *np.exp([-80.0, -90.0])], rel=1e-12)


def test_pair_quantities_are_what_they_are_called():
    """Quantities of pairs equal NumPy's and SciPy's moments of the same draws."""
    drawn = np.random.default_rng(21).normal(size=(2, 18, D_K)).astype(np.float32)
    queries, keys = drawn + np.float32([[[0.75]], [[-1.5]]])
    q, k = queries.astype(np.float64), keys.astype(np.float64)
    s = q @ k.T
    expected = {
        "entry_variance_q": q.var(),
        "entry_variance_k": k.var(),
        "score_mean": s.mean(),
        "score_variance": s.var(),
        "score_std": s.std(),
        "score_variance_ratio": s.var() / (D_K * q.var() * k.var()),
        "score_abs": np.abs(s).mean(),
        "score_excess_kurtosis": scipy.stats.kurtosis(s.ravel()),
        "score_distribution_gap": np.mean(s / math.sqrt(D_K) <= 0.742)
        - scipy.special.ndtr(0.742),
    }

    for name, quantity in PAIR_QUANTITIES.items():
        value = quantity.evaluate(means_of(queries, keys), D_K)
        assert value == pytest.approx(expected[name], rel=1e-9), name


def ends_of(grid):
    """The logarithms of the least and the largest value that a grid tells apart."""
    return grid.ends[0], grid.ends[-1]


@pytest.mark.parametrize("grid", [FINE, DEEP, LogGrid((-1.0, 1.0), (3,))])
@settings(max_examples=100, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_value_lies_between_the_edges_of_its_bin(grid, data):
    """A value inside the grid lies below its bin's edge and above the one before."""
    least, most = ends_of(grid)
    exponent = data.draw(st.floats(least + 0.01, most - 0.01))
    value = 10.0**exponent
    place, edges = int(grid.bins(np.array(value))), grid.edges()
    slack = 1.0 + 1e-12  # rounding of a logarithm

    assert edges[place] * slack >= value
    assert value * slack >= (edges[place - 1] if place > 1 else 10.0**least)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(value=st.floats(-1e6, 1e6).filter(lambda x: x == 0.0 or abs(x) > 1e-6))
def test_a_signed_value_lies_between_the_edges_of_its_bin(value):
    """Of a negative value too, and edges never fall."""
    place, edges = int(SIGNED.bins(np.array(value))), SIGNED.edges()
    slack = 1e-12 * abs(value)

    assert edges.shape == (SIGNED.n_bins,)
    assert (np.diff(edges) >= 0.0).all()
    assert edges[place - 1] - slack <= value <= edges[place] + slack


@pytest.mark.parametrize("grid", [FINE, DEEP])
def test_grid_ends(grid):
    """Zero has a bin of its own; what is beyond the grid goes to its ends."""
    least, most = ends_of(grid)
    values = np.array([0.0, 5e-324, 10.0 ** (least - 1), 10.0 ** (most + 1)])

    assert grid.bins(values).tolist() == [0, 1, 1, grid.n_bins - 1]
    assert grid.edges().shape == (grid.n_bins,)
    assert grid.edges()[[0, -1]] == pytest.approx([0.0, 10.0**most])
    assert (np.diff(grid.edges()) > 0.0).all()


TOPPED = {
    name: ROW_QUANTITIES[name].grid_for(512)
    for name in ("jacobian_trace", "effective_keys", "entropy", "weight_max")
}


@pytest.mark.parametrize("name", TOPPED)
@settings(max_examples=100, deadline=None, derandomize=True)
@given(exponent=st.floats(-6.9, -0.01), near=st.booleans())
def test_values_near_a_top_are_told_apart(name, exponent, near):
    """By 0.45 % of the distance from what no value exceeds, as small ones are of
    themselves; and each lies between the edges of its bin.
    """
    grid = TOPPED[name]
    small = grid.top * 10.0**exponent
    value = grid.top - small if near else small
    place, edges = int(grid.bins(np.array(value))), grid.edges()
    low, high = edges[place - 1], edges[place]
    assert len(edges) == grid.n_bins
    assert low * (1.0 - 1e-14) <= value <= high * (1.0 + 1e-14)
    if small < 0.1 * grid.top:  # next to the middle a bin may have a piece of each
        assert high - low <= 0.0046 * small + 1e-14 * grid.top


@pytest.mark.parametrize("name", TOPPED)
def test_a_top_is_an_edge(name):
    """The largest value that there is lies in the last bin, and edges rise."""
    grid = TOPPED[name]
    beyond = grid.top * np.array([1.0 - 1e-12, 1.0, 1.0 + 1e-9])
    assert (grid.bins(beyond) == grid.n_bins - 1).all()
    assert grid.edges()[-1] == grid.top
    assert (np.diff(grid.edges()) > 0.0).all()
    assert grid.open_bins == (1,)

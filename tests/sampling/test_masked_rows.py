"""Masked rows, against loops over the same draws that look at each query alone."""

import math

import numpy as np
import pytest

from montecarlo.errors import InputError
from montecarlo.sampling.design_points import parse_point, stream
from montecarlo.sampling.matrices import draw_matrices
from montecarlo.sampling.replicates import Columns, end_column, row_values, sample

SEED, D_K, REPLICATES = 3, 6, 2
#: Of values from float32 scores of size 10, as a part of the largest of a quantity.
SINGLE = 3e-5
DIVISORS = {"none": 1.0, "sqrt": math.sqrt(D_K), "1000": 1000.0}


def masked(mask, n_keys, dependence="none", **more):
    """A point of Gaussian entries."""
    names = "gaussian", "gaussian", D_K, n_keys, dependence
    return parse_point(*names, mask=mask, **more)


def keys_seen(mask, i, n):
    """The keys that query i sees: all, its own and those before, or the last w."""
    if mask == "full":
        return range(n)
    width = n if mask == "causal" else int(mask[7:-1])
    return [j for j in range(n) if j in range(i - width + 1, i + 1)]


def row_formulas(q, keys, v, own, c):
    """What comes out of one row, by the definitions."""
    x = keys @ q / c
    e = np.exp(x - x.max())
    p = e / e.sum()
    jacobian = np.diag(p) - np.outer(p, p)
    return {
        "entropy": -sum(w * math.log(w) for w in p if w > 0.0),
        "effective_keys": math.exp(-sum(w * math.log(w) for w in p if w > 0.0)),
        "log_partition": math.log(e.sum()) + x.max(),
        "weight_max": p.max(),
        "weight_second": sorted([0.0, *p])[-2],
        "score_max": x.max(),
        "score_row_variance": x.var(ddof=1) if len(x) > 1 else 0.0,
        "inverse_participation": (p**2).sum(),
        "jacobian_trace": np.trace(jacobian),
        "jacobian_frobenius": np.linalg.norm(jacobian),
        "jacobian_spectral": np.linalg.norm(jacobian, 2),
        "gradient_query": np.linalg.norm(keys.T @ jacobian @ v) / c,
        "planted_weight": p[own],
        "planted_rank_first": float(p.argmax() == own),
        "saturated": float(p.max() >= 0.9),
    }


def loop(point, mask, c):
    """Rows of each replicate by quantity: lists of REPLICATES lists of n."""
    n = point.n_keys
    found = {}
    for index in range(REPLICATES):
        q, k = (x.astype(np.float64) for x in draw_matrices(point, SEED, index))
        k *= point.normalisation.gain
        v = stream(SEED, point, index, "v").standard_normal(n)
        for i in range(n):
            seen = list(keys_seen(mask, i, n))
            row = row_formulas(q[i], k[seen], v[seen], seen.index(i), c)
            for name, value in row.items():
                found.setdefault(name, [[] for _ in range(REPLICATES)])
                found[name][index].append(value)
    return {name: np.array(rows) for name, rows in found.items()}


CASES = [
    ("causal", 2, "planted(0.5)", {}),
    ("causal", 37, "planted(0.5)", {}),
    ("causal", 33, "none", {"normalisation": "l2(gain=10)"}),
    ("window(5)", 35, "planted(0.5)", {}),
    ("window(33)", 35, "none", {}),
    ("window(1)", 33, "planted(0.5)", {}),
    ("full", 34, "planted(0.5)", {}),
]


@pytest.mark.parametrize(("mask", "n", "dependence", "more"), CASES)
@pytest.mark.parametrize("divisor", DIVISORS)
def test_rows_are_those_of_a_loop(mask, n, dependence, more, divisor):
    """Each row, in the order of the queries; means are over all of them, and those of
    the first and of the last stand by themselves.
    """
    point = masked(mask, n, dependence, **more)
    expected = loop(point, mask, DIVISORS[divisor])
    names = [name for name in expected if not name.startswith("planted")]
    if dependence != "none":
        names = list(expected)
    columns = [name for one in names for name in (one, *ends(one))]
    counted = tuple((divisor, name) for name in names)
    asked = Columns(tuple((divisor, name) for name in columns), counted)
    means, rows = row_values(point, SEED, range(REPLICATES), asked)

    assert means.shape == (REPLICATES, len(columns))
    for name, values in zip(names, rows, strict=True):
        close = {"abs": SINGLE * max(1.0, np.abs(expected[name]).max()), "rel": SINGLE}
        if name.startswith("jacobian") or name == "gradient_query":
            close["abs"] = SINGLE * np.abs(expected[name]).max()
        assert values == pytest.approx(expected[name], **close), name
        mean, first, last = (
            means[:, columns.index(one)] for one in (name, *ends(name))
        )
        assert mean == pytest.approx(expected[name].mean(axis=1), **close), name
        assert first == pytest.approx(expected[name][:, 0], **close), name
        assert last == pytest.approx(expected[name][:, -1], **close), name


def ends(name):
    """The columns of the first row and of the last."""
    return end_column(name, "first"), end_column(name, "last")


def test_replicates_do_not_depend_on_each_other():
    """The same bytes in any batch, and whatever else is asked for."""
    point = masked("causal", 40)
    names = tuple(("sqrt", name) for name in ("entropy", "gradient_query"))
    together = sample(point, 1, 0, 5, Columns(names, names[:1]))
    one_name = Columns(names[:1], names[:1])
    alone = [sample(point, 1, i, i + 1, one_name) for i in range(5)]
    assert together.means[:, 0].tolist() == [one.means[0, 0] for one in alone]
    assert (together.counts[0] == sum(one.counts[0] for one in alone)).all()


def test_streams_of_a_mask_are_its_own():
    """A mask is part of the name; without one the name is what it was."""
    plain = masked("none", 40)
    points = [plain, *(masked(m, 40) for m in ("causal", "window(3)", "full"))]
    draws = {stream(1, one, 0, "q").random(4).tobytes() for one in points}
    assert len(draws) == len(points)
    assert "mask" not in plain.name
    assert points[2].name == f"{plain.name};mask=window(3)"
    assert [one.shape for one in points] == [(128, 40), *3 * [(40, 40)]]


def test_planted_keys_of_later_chunks(monkeypatch):
    """Each query has its own key, also where keys are drawn in chunks."""
    monkeypatch.setattr("montecarlo.sampling.matrices.ENTRIES_AT_ONCE", 1)
    for distribution in ("gaussian", "laplace"):
        names = distribution, distribution, 64, 300, "planted(0.9)"
        q, k = draw_matrices(parse_point(*names, mask="causal"), 1, 0)
        # per key about N(0.9, 1/64): of 300 none is as low
        assert (np.vecdot(q, k) / np.vecdot(q, q)).min() > 0.2


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"n_keys": None, "mask": "causal"}, "mask must be none without n_keys"),
        ({"n_keys": 8, "mask": "window(9)"}, "a w of at most n_keys, 8, got 9"),
    ],
)
def test_points_that_are_none(named, message):
    """What is wrong in one line."""
    with pytest.raises(InputError, match=message):
        parse_point("gaussian", "gaussian", 4, **named)

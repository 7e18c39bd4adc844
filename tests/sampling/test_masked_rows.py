"""Masked rows, against loops over the same draws that look at each query alone."""

import math

import numpy as np
import pytest

from montecarlo.errors import InputError
from montecarlo.sampling.design_points import parse_point, stream
from montecarlo.sampling.distributions import DISTRIBUTIONS
from montecarlo.sampling.matrices import draw_matrices
from montecarlo.sampling.replicates import Columns, part_column, row_values

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
    return part_column(name, "first"), part_column(name, "last")


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


# --- Outputs, and gradients that reach keys and values --------------------------------


def weights(q, keys, c):
    """Softmax of one query's scores."""
    e = [math.exp(float(q @ k) / c) for k in keys]
    return [one / sum(e) for one in e]


#: Values are drawn so often for each row, and a sample variance of as many normal
#: outputs is off by more than this part with probability 1e-7 (normal approximation).
DRAWS, OFF = 6000, 5.3 * math.sqrt(2.0 / 6000)


@pytest.mark.parametrize("mask", ["causal", "window(4)", "full"])
@pytest.mark.parametrize("divisor", ["none", "sqrt"])
def test_variance_of_outputs_drawn_with_values(mask, divisor):
    """Of each row; values with a mean of 7 shift all outputs by 7."""
    point, n = masked(mask, 12), 12
    columns = ((divisor, "output_variance"),)
    _, (found,) = row_values(point, SEED, range(1), Columns(columns, columns))
    q, k = (x.astype(np.float64) for x in draw_matrices(point, SEED, 0))
    rng = np.random.default_rng(4)
    for i in range(n):
        seen = keys_seen(mask, i, n)
        p = weights(q[i], [k[j] for j in seen], DIVISORS[divisor])
        outputs = np.zeros(DRAWS)
        for weight in p:
            outputs += weight * (7.0 + rng.standard_normal(DRAWS))
        assert outputs.var(ddof=1) == pytest.approx(found[0, i], rel=OFF)
        assert outputs.mean() == pytest.approx(7.0, abs=5.3 / math.sqrt(DRAWS))


def draws_of(point):
    """Q, K, values and the gradient by the output of the first replicate."""
    q, k = (x.astype(np.float64) for x in draw_matrices(point, SEED, 0))
    rngs = (stream(SEED, point, 0, which) for which in ("values", "by_output"))
    normal = DISTRIBUTIONS["gaussian"].draw
    values, by_output = (normal(rng, q.shape).astype(np.float64) for rng in rngs)
    return q, k * point.normalisation.gain, values, by_output


@pytest.mark.parametrize("mask", ["causal", "window(4)", "full"])
@pytest.mark.parametrize("divisor", ["none", "sqrt", "1000"])
@pytest.mark.parametrize("normalisation", ["none", "l2(gain=3)"])
def test_gradients_of_keys_and_values_are_differences_of_a_loss(
    mask, divisor, normalisation
):
    """The loss is the sum of outputs times their gradients; each entry of each key and
    value is moved by itself.  Keys that are divided leave the divisor aside.
    """
    n, c, step = 9, DIVISORS[divisor], 1e-5
    point = masked(mask, n, normalisation=normalisation)
    q, k, values, by_output = draws_of(point)

    def loss(keys, values):
        total = 0.0
        for i in range(n):
            seen = keys_seen(mask, i, n)
            p = weights(q[i], [keys[j] for j in seen], c)
            total += sum(
                w * (by_output[i] @ values[j]) for w, j in zip(p, seen, strict=True)
            )
        return total

    columns = [(divisor, name) for name in ("gradient_key", "gradient_value")]
    counted = Columns(tuple(columns), tuple(columns))
    _, found = row_values(point, SEED, range(1), counted)
    moved = step * max(1.0, c)  # so that scores move as much
    for j in range(n):
        by_key, by_value = np.zeros((2, D_K))
        for m in range(D_K):
            up, down = (k.copy() for _ in range(2))
            up[j, m] += moved
            down[j, m] -= moved
            rise = loss(up, values) - loss(down, values)
            by_key[m] = c * point.normalisation.gain * rise / (2 * moved)
            up, down = (values.copy() for _ in range(2))
            up[j, m] += 1.0
            down[j, m] -= 1.0
            by_value[m] = (loss(k, up) - loss(k, down)) / 2
        largest = found[0].max()
        assert found[0][0, j] == pytest.approx(
            np.linalg.norm(by_key), rel=1e-4, abs=1e-4 * largest
        )
        assert found[1][0, j] == pytest.approx(np.linalg.norm(by_value), rel=1e-5)


def test_gradients_of_long_rows():
    """Where queries come in several blocks; each divisor has its own, whichever others
    there are.
    """
    n = 70
    point = masked("causal", n)
    q, k, values, by_output = draws_of(point)
    for divisors in (["sqrt"], ["none", "2", "sqrt"]):
        columns = tuple(
            (name, quantity)
            for name in divisors
            for quantity in ("gradient_key", "gradient_value")
        )
        asked = tuple(
            (name, one)
            for name, quantity in columns
            for one in (quantity, *ends(quantity))
        )
        means, rows = row_values(point, SEED, range(2), Columns(asked, columns))
        scores = np.where(np.tri(n) > 0, q @ k.T, -np.inf) / math.sqrt(D_K)
        p = np.exp(scores)
        p /= p.sum(axis=1, keepdims=True)
        by_weights = by_output @ values.T
        by_scores = p * (by_weights - (p * by_weights).sum(axis=1, keepdims=True))
        expected = [
            np.linalg.norm(by_scores.T @ q, axis=1),
            np.linalg.norm(p.T @ by_output, axis=1),
        ]
        for number, one in enumerate(expected):
            last = columns.index(("sqrt", "gradient_key")) + number
            assert rows[last][0] == pytest.approx(one, rel=1e-4, abs=1e-5)
            at = 3 * last
            parts = [one.mean(), one[0], one[-1]]
            assert means[0, at : at + 3] == pytest.approx(parts, rel=1e-4)

"""Quantities of a head against the same ones written out, pair by pair."""

import numpy as np
import pytest

from montecarlo.model import observe
from montecarlo.model.observing import ALL, PARTS

AXES = ("sequence", "layer", "head", "token", "d")
SHAPE = (6, 2, 3, 20, 5)


def arrays(seed, shape=SHAPE, key_heads=None):
    """Return queries and keys with means, anisotropy, and something in common."""
    rng = np.random.default_rng(seed)
    d_k = shape[-1]
    shared = rng.normal(size=(shape[0], 1, 1, 1, d_k))
    q = rng.normal(size=shape) * np.linspace(0.5, 2.0, d_k) + shared + 3.0
    key_shape = (*shape[:2], key_heads or shape[2], *shape[3:])
    k = rng.normal(size=key_shape) * np.linspace(2.0, 0.1, d_k) + 0.7 * shared - 1.0
    return q, k


def values(frame, layer, head):
    """Return a head's values by quantity."""
    rows = frame[(frame["layer"] == layer) & (frame["head"] == head)]
    return dict(zip(rows["quantity"], rows["value"], strict=True))


@pytest.fixture(scope="module")
def data():
    """Queries and keys of the identity's tests."""
    return arrays(1)


def test_parts_are_the_variance_of_any_pair(data):
    """Four parts add up to the variance over all pairs of any query with any key."""
    q, k = data
    found = values(observe(q, k), 1, 2)
    scores = q[:, 1, 2].reshape(-1, 5) @ k[:, 1, 2].reshape(-1, 5).T
    total = sum(found[f"part_{name}"] for name in PARTS[:4])
    assert total == pytest.approx(scores.var(), rel=1e-12)
    assert total != pytest.approx(scores.var(ddof=1), rel=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_all_parts_are_the_variance_that_is_seen(data, causal):
    """With those of sequence and mask the parts add up to what attention forms."""
    q, k = data
    found = values(observe(q, k, causal=causal), 0, 1)
    scores = q[:, 0, 1] @ k[:, 0, 1].transpose(0, 2, 1)
    seen = np.tril(np.ones(scores.shape[1:], dtype=bool)) if causal else True
    pairs = scores[np.broadcast_to(seen, scores.shape)]
    assert found["score_variance"] == pytest.approx(pairs.var(), rel=1e-12)
    total = sum(found[f"part_{name}"] for name in PARTS)
    assert total == pytest.approx(pairs.var(), rel=1e-12)
    assert (found["part_mask"] != 0.0) == causal
    unmasked = found["part_sequence"] + sum(found[f"part_{n}"] for n in PARTS[:4])
    assert unmasked == pytest.approx(scores.var(), rel=1e-12)


def test_numbers_far_from_zero_keep_the_identity():
    """Means a million times the spread leave the parts exact."""
    q, k = arrays(3)
    found = values(observe(q + 1e6, k), 0, 0)
    near = values(observe(q, k), 0, 0)
    for name in ("part_entries", "part_anisotropy", "part_mean_k"):
        assert found[f"{name}"] == pytest.approx(near[name], rel=1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_rows_are_as_written_out(data, causal):
    """Variance, invisible part, entropy and Jacobian agree with plain softmax."""
    q, k = data
    found = values(observe(q, k, causal=causal, divisor=2.0), 1, 0)
    spreads, entropies, norms, centres, sizes = [], [], [], [], []
    for one_q, one_k in zip(q[:, 1, 0], k[:, 1, 0], strict=True):
        for i, row in enumerate(one_q @ one_k.T):
            seen = row[: i + 1] if causal else row
            centres += [seen.mean()] * len(seen)
            if len(seen) == 1:
                continue
            spreads.append(seen.var(ddof=1))
            p = np.exp(seen / 2.0 - (seen / 2.0).max())
            p /= p.sum()
            entropies.append(-(p * np.log(np.where(p > 0.0, p, 1.0))).sum())
            norms.append(np.linalg.norm(np.diag(p) - np.outer(p, p)))
            sizes.append(len(seen))
    assert found["score_row_variance"] == pytest.approx(np.mean(spreads))
    assert found["score_invisible_variance"] == pytest.approx(np.var(centres))
    assert found["unit_divisor"] == pytest.approx(np.sqrt(np.mean(spreads)))
    assert found["scaled_row_variance"] == pytest.approx(np.mean(spreads) / 4.0)
    assert found["entropy"] == pytest.approx(np.mean(entropies))
    assert found["jacobian_frobenius"] == pytest.approx(np.mean(norms))
    share = np.mean(np.exp(entropies) / np.array(sizes))
    assert found["effective_share"] == pytest.approx(share)


def test_all_heads_are_averaged(data):
    """The rows of all heads are means over heads, and each quantity stands once."""
    frame = observe(*data)
    assert not frame.duplicated(["layer", "head", "quantity"]).any()
    each = frame[frame["layer"] != ALL].groupby("quantity")["value"].mean()
    overall = frame[frame["layer"] == ALL].set_index("quantity")["value"]
    assert np.allclose(overall, each[overall.index], equal_nan=True)


def test_axes_are_taken_by_name(data):
    """The order of axes makes no difference where their names are given."""
    q, k = data
    order = (4, 2, 3, 1, 0)
    turned = [np.transpose(array, order) for array in (q, k)]
    named = tuple(AXES[place] for place in order)
    assert observe(*turned, axes=named).equals(observe(q, k))
    swapped = tuple({"head": "layer", "layer": "head"}.get(n, n) for n in AXES)
    assert not observe(q, k, axes=swapped).equals(observe(q, k))


def test_errors_are_exact_beside_a_large_sequence():
    """Leaving one out is not taking it off: what is left would be lost beside it.

    Of fewer than five sequences there are none.
    """
    assert observe(*arrays(7, (4, 1, 1, 20, 5)))["std_error"].isna().all()
    q, k = arrays(7, (6, 1, 1, 20, 5))
    q[0] *= 1e6
    frame = observe(q, k)
    of_entries = (frame["layer"] != ALL) & frame["quantity"].eq("entry_variance_q")
    (found,) = frame["std_error"][of_entries]
    left_out = [np.delete(q, one, 0)[:, 0, 0].reshape(-1, 5) for one in range(6)]
    variances = np.array([x.var(axis=0).mean() for x in left_out])
    bias = 5 * (variances.mean() - q.reshape(-1, 5).var(axis=0).mean())
    assert found == pytest.approx(np.hypot(np.sqrt(5) * variances.std(), bias), 1e-6)

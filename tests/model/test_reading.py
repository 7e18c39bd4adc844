"""Attention weights and outputs beside queries and keys: what is read, and refused."""

import numpy as np
import pytest
from scipy.special import softmax

from montecarlo.model.scales import COLUMNS, applied_scale
from tests.commands import observe as main

SHAPE = (6, 2, 4, 24, 8)
DIVISOR = 8.0**0.5


def arrays(key_heads=4):
    """Return queries, keys, values, weights and outputs of a small model."""
    rng = np.random.default_rng(2)
    q = rng.normal(size=SHAPE).astype(np.float32)
    shape = (*SHAPE[:2], key_heads, *SHAPE[3:])
    k, v = (rng.normal(size=shape).astype(np.float32) for _ in "kv")
    shared = SHAPE[2] // key_heads
    keys, values = (np.repeat(x, shared, axis=2) for x in (k, v))
    p = attend(q, keys)
    return {"q": q, "k": k, "v": v, "weights": p, "outputs": p @ values}


def attend(q, k, *, seen=True):
    """Return attention weights."""
    logits = np.where(seen, q @ np.swapaxes(k, -1, -2) / DIVISOR, -np.inf)
    return softmax(logits, axis=-1).astype(np.float32)


def some(given, *names):
    """Return some of the arrays."""
    return {name: given[name] for name in names}


def require_divisor(frame, divisor=DIVISOR):
    """Make sure that every head has the divisor, up to what float32 leaves."""
    assert list(frame.columns) == list(COLUMNS)
    assert frame["implied_divisor"].to_numpy() == pytest.approx(divisor, rel=1e-6)
    assert set(frame["known"]) == {"sqrt(d_k)"}


@pytest.mark.parametrize("key_heads", [4, 2, 1])
@pytest.mark.parametrize("names", [("weights",), ("v", "outputs")])
def test_arrays_in_hand(key_heads, names):
    """Several heads of queries may share one of keys, and its values."""
    given = arrays(key_heads)
    frame = applied_scale(given["q"], given["k"], **some(given, *names))
    assert len(frame) == 8
    assert set(frame["source"]) == {"weights" if "weights" in names else "outputs"}
    require_divisor(frame)


def test_the_last_queries_alone():
    """Fewer queries than keys are the last ones, as where a model generates."""
    given = arrays()
    weights = attend(given["q"], given["k"], seen=np.tri(24, dtype=bool))[..., -9:, :]
    frame = applied_scale(given["q"][..., -9:, :], given["k"], weights=weights)
    require_divisor(frame)
    assert set(frame["mask"]) == {"causal"}


@pytest.mark.parametrize("source", ["weights", "outputs"])
def test_a_mask_that_is_aligned_at_the_start_is_told(source):
    """Where there are more keys than queries, two masks are called causal."""
    given = arrays()
    p = attend(given["q"][..., :9, :], given["k"], seen=np.tri(9, 24, dtype=bool))
    made = {"weights": p} if source == "weights" else {"v": given["v"]}
    if source == "outputs":
        made["outputs"] = p @ given["v"]
    frame = applied_scale(given["q"][..., :9, :], given["k"], **made)
    require_divisor(frame)
    assert set(frame["mask"]) == {"causal_start"}


@pytest.mark.parametrize(
    ("names", "options", "status", "line"),
    [
        (["weights"], [], 0, "scores divided by sqrt(d_k) = 2.828? yes"),
        (["v", "outputs"], ["--expect", "2.828427"], 0, "divided by 2.82843? yes"),
        (["weights"], ["--expect", "2.9", "--rtol", "0.05"], 0, "2.9? yes"),
        ([], ["--expect", "sqrt"], 4, "cannot be told from queries and keys"),
    ],
)
def test_the_answer_is_the_first_line(  # noqa: PLR0917
    tmp_path, capsys, names, options, status, line
):
    """With the exit status that says the same, if it was asked."""
    path = tmp_path / "all.npz"
    np.savez(path, **some(arrays(), "q", "k", *names))
    output = ["--output", str(tmp_path / "out")]
    assert main([str(path), *options, *output]) == status
    assert line in "".join(capsys.readouterr()).partition("\n")[0]
    is_table = (tmp_path / "out" / "applied-scale.csv").exists()
    assert is_table == bool(names and status < 2)


def test_a_head_that_says_nothing_does_not_end_the_run(tmp_path, capsys):
    """A zeroed head is left out and listed."""
    given = some(arrays(), "q", "k", "weights")
    given["q"][:, 1, 0] = 0.0
    np.savez(tmp_path / "qk.npz", **given)
    options = ["--output", str(tmp_path / "out"), "--expect", "sqrt"]
    assert main([str(tmp_path / "qk.npz"), *options]) == 0
    told = capsys.readouterr().out
    assert "for every token (layer, head): (1, 0)" in told
    assert "layer 1, head 0: dead" in told

"""Numbers of rows are those of a loop over them, whatever was handed over."""

import inspect
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from montecarlo.model.captured import Captured
from montecarlo.model.head_summary import HeadSummary, measure_rows, summarise_rows
from montecarlo.model.watch import FROZEN, GROWN, HOT, LOOKS, ScoreWatch

SHAPE = SEQUENCES, HEADS, TOKENS, D_K = 2, 4, 12, 8
CAUSAL = np.tril(np.ones((TOKENS, TOKENS), dtype=bool))


def softmax_of(logits):
    """Weights of one row, without those of hidden keys."""
    parts = [math.exp(one - max(logits)) for one in logits]
    return [part / sum(parts) for part in parts]


def by_hand(q, k, scale, *, seen=None, bias=None, cap=None):
    """Return a line per head by loops: the numbers of `HeadSummary`, after rows."""
    sequences, heads, _, _ = q.shape
    shared = heads // k.shape[1]
    lines = []
    for head in range(heads):
        rows = []
        for sequence in range(sequences):
            for i, query in enumerate(q[sequence, head]):
                keys = [j for j in range(k.shape[2]) if seen is None or seen[i, j]]
                if len(keys) < 2:
                    continue
                scores = [
                    scale * float(query @ k[sequence, head // shared, j]) for j in keys
                ]
                if cap is not None:
                    scores = [cap * math.tanh(s / cap) for s in scores]
                added = [0.0 if bias is None else bias[i, j] for j in keys]
                p = softmax_of([s + b for s, b in zip(scores, added, strict=True)])
                entropy = -sum(w * math.log(w) for w in p if w > 0.0)
                share = entropy / math.log(len(keys))
                rows.append((max(map(abs, scores)), entropy, share, max(p)))
        largest, entropy, share, weight = zip(*rows, strict=True)
        ordered = sorted(largest)
        quantiles = [ordered[math.ceil(x * len(rows)) - 1] for x in (0.5, 0.9, 0.99)]
        means = [sum(x) / len(rows) for x in (entropy, share, weight)]
        saturated = sum(w >= 0.9 for w in weight) / len(rows)
        lines.append((len(rows), ordered[-1], *quantiles, *means, saturated, scale))
    return lines


def entries(seed, size=4.0, key_heads=HEADS):
    """Draw queries and keys; some rows are saturated."""
    rng = np.random.default_rng(seed)
    q = size * rng.normal(size=SHAPE).astype(np.float32)
    return q, rng.normal(size=(SEQUENCES, key_heads, TOKENS, D_K)).astype(np.float32)


def told(arrays, **passed):
    """Return the lines that are told of a call."""
    return [one[2:] for one in summarise_rows(0, [measure_rows(arrays, passed)])]


@pytest.mark.parametrize("key_heads", [HEADS, 2, 1])
def test_plain_rows(key_heads):
    """Every key is seen; of grouped heads, each by its own queries."""
    q, k = entries(1, key_heads=key_heads)
    found = told({"q": q, "k": k}, source="torch")
    expected = by_hand(q, k, D_K**-0.5)
    assert np.array(found) == pytest.approx(np.array(expected), rel=1e-5)
    assert 0.0 < np.array(found)[:, 8].mean() < 1.0  # some are saturated


@pytest.mark.parametrize("added", [CAUSAL[None, None], np.where(CAUSAL, 0.0, -np.inf)])
@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_masks_hide_keys(added, scale):
    """A mask of booleans or of what is added; the first row has no choice."""
    q, k = entries(2)
    passed = {"scale": scale, "hidden": added.reshape(1, 1, TOKENS, TOKENS)}
    found = told({"q": q, "k": k}, **passed, queries=TOKENS)
    expected = by_hand(q, k, scale, seen=CAUSAL)
    assert np.array(found) == pytest.approx(np.array(expected), rel=1e-5)
    assert found[0][0] == SEQUENCES * (TOKENS - 1)


def test_bias_and_cap():
    """A bias counts in weights and is no score; a cap bounds scores."""
    q, k = entries(4)
    bias = -0.3 * np.abs(np.subtract.outer(np.arange(TOKENS), np.arange(TOKENS)))
    passed = {"scale": 0.5, "cap": 1.5, "hidden": bias[None, None]}
    found = told({"q": q, "k": k}, **passed)
    expected = by_hand(q, k, 0.5, bias=bias, cap=1.5)
    assert np.array(found) == pytest.approx(np.array(expected), rel=1e-5)
    assert max(line[1] for line in found) <= 1.5


def test_weights_are_those_that_came():
    """They imply the mask; without a scale that is known there are no scores."""
    q, k = entries(7, size=1.0)
    weights = softmax(np.where(CAUSAL, 0.2 * (q @ k.mT), -np.inf), axis=-1)
    arrays = {"q": q, "k": k, "weights": weights}
    found = told(arrays, source="written out", scale=0.2)
    expected = np.array(by_hand(q, k, 0.2, seen=CAUSAL))
    assert np.array(found) == pytest.approx(expected, rel=1e-4)
    found = np.array(told(arrays, source="written out"))
    assert np.isnan(found).all(axis=0).nonzero()[0].tolist() == [1, 2, 3, 4, 9]
    assert found[:, 5:9] == pytest.approx(expected[:, 5:9], rel=1e-4)


def test_padding_is_left_out():
    """A query whose own key is hidden is none; nor is a row that sees nothing."""
    q, k = entries(8)
    seen = np.repeat(CAUSAL[None, None], SEQUENCES, axis=0)
    seen[1, :, :, 7:] = False
    lines = told({"q": q, "k": k}, source="torch", hidden=seen, queries=TOKENS)
    assert {line[0] for line in lines} == {(TOKENS - 1) + 6}
    seen[:] = False
    lines = told({"q": q, "k": k}, source="torch", hidden=seen, queries=TOKENS)
    assert {line[0] for line in lines} == {0}
    assert all(math.isnan(line[1]) for line in lines)


@pytest.mark.parametrize("what", [np.inf, np.nan])
def test_scores_that_are_not_finite_are_infinite(what):
    """They are beyond any border, and no warning of NumPy is in the way."""
    q, k = entries(9)
    q[0, 1, 3, 0] = what
    lines = told({"q": q, "k": k}, source="torch")
    assert lines[1][1] == math.inf
    assert math.isfinite(lines[0][1])


def test_summary_of_what_was_captured():
    """Rows of all passes count; a line for each layer and head."""
    captured = Captured()
    for seed in (11, 12):
        captured.begin()
        for _ in range(3):
            q, k = entries(seed)
            captured.add({"q": q, "k": k}, {"source": "torch"})
    frame = captured.summary()
    assert list(frame.columns) == list(HeadSummary._fields)
    assert list(frame["layer"]) == [0] * HEADS + [1] * HEADS + [2] * HEADS
    assert set(frame["rows"]) == {2 * SEQUENCES * TOKENS}


def test_thresholds_of_the_watch_are_those_of_its_page():
    """And of its docstring, where they are no defaults that it shows."""
    page = (Path(__file__).parents[2] / "docs" / "watch.md").read_text(encoding="utf-8")
    options = inspect.signature(ScoreWatch).parameters
    for name in ("hot", "growth", "frozen"):
        assert f" | `{name}={options[name].default}` |\n" in page
    for said in (
        f"is beyond {HOT:g}, or",
        f"is below {100.0 * FROZEN:g} % of",
        f"the last {LOOKS} looks",
        f"is beyond {GROWN:g}, and",
    ):
        assert said in page
    described = " ".join(inspect.getdoc(ScoreWatch).split())
    assert f"over the last {LOOKS} looks, is now above {GROWN:g}," in described

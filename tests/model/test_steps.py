"""Steps of training: in which heads scores grow, and what is said of them."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from montecarlo.cli.observe import main
from montecarlo.errors import InputError
from montecarlo.model.arrays import open_arrays
from montecarlo.model.scales import find_scales
from montecarlo.model.steps import (
    COLUMNS,
    FACTOR,
    FROZEN,
    HOT,
    TREND,
    WARNINGS,
    describe_step,
    is_growing,
    judge_steps,
    order_files,
)

SHAPE = (6, 2, 3, 24, 16)
SIZES = (1.0, 1.5, 3.0, 9.0, 40.0)


def model_of(size, *, with_weights=True, causal=False, seed=1):
    """Return a model in which the queries of one head are larger by some factor."""
    rng = np.random.default_rng(seed)
    q, k = rng.normal(size=(2, *SHAPE))
    q[:, 1, 2] *= size
    logits = q @ np.swapaxes(k, -1, -2) / 4.0
    if causal:
        logits = np.where(np.tri(SHAPE[3], dtype=bool), logits, -np.inf)
    p = softmax(logits, axis=-1)
    arrays = {"q": q, "k": k, "weights": p if with_weights else None}
    return open_arrays(arrays, causal=causal), q, k, p


def lines_of(sizes, **how):
    """Return the lines of steps."""
    lines = []
    for step, size in enumerate(sizes):
        model, *_ = model_of(size, **how)
        lines += describe_step(step, f"{step}.npz", model, find_scales(model), 4.0)
    return lines


@pytest.mark.parametrize("with_weights", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_a_head_that_grows_is_named(with_weights, causal):
    """It alone, with weights or without; at the end its scores are large, too."""
    steps = judge_steps(lines_of(SIZES, with_weights=with_weights, causal=causal))
    assert list(steps.frame.columns) == list(COLUMNS)
    assert len(steps.frame) == len(SIZES) * 6
    assert steps.warnings == {
        "growing": ((1, 2),),
        "hot": ((1, 2),),
        "frozen": ((1, 2),),
    }


def test_heads_that_stay_are_not():
    """The same size at each step, from other draws."""
    lines = []
    for step in range(5):
        model, *_ = model_of(1.0, seed=step)
        lines += describe_step(step, "a.npz", model, find_scales(model), 4.0)
    assert judge_steps(lines).warnings == {"growing": (), "hot": (), "frozen": ()}


@pytest.mark.parametrize("causal", [True, False])
def test_numbers_are_the_textbook_s(causal):
    """The second way: each row by itself, from the weights that were given."""
    model, q, k, p = model_of(3.0, causal=causal)
    lines = describe_step(7, "a.npz", model, find_scales(model), 1.0)
    line = dict(zip(COLUMNS, lines[5], strict=True))
    assert (line["step"], line["layer"], line["head"]) == (7, 1, 2)
    largest, variances, entropies, shares = [], [], [], []
    for sequence in range(SHAPE[0]):
        scores = q[sequence, 1, 2] @ k[sequence, 1, 2].T / 4.0
        for row, weights in zip(scores, p[sequence, 1, 2], strict=True):
            seen = row[weights > 0]
            largest.append(np.abs(seen).max())
            if len(seen) > 1:
                variances.append(np.var(seen, ddof=1))
                used = weights[weights > 0]
                entropies.append(-(used * np.log(used)).sum())
                shares.append(entropies[-1] / np.log(len(seen)))
    assert line["score_max"] == pytest.approx(max(largest), rel=1e-9)
    assert line["score_variance"] == pytest.approx(np.mean(variances), rel=1e-9)
    assert line["entropy"] == pytest.approx(np.mean(entropies), rel=1e-9)
    assert line["entropy_share"] == pytest.approx(np.mean(shares), rel=1e-9)


@pytest.mark.parametrize(
    ("largest", "grows"),
    [
        ([1.0, 1.5, 2.0], True),
        ([1.0, 1.5, 1.9], False),  # not twice as large
        ([1.0, 3.0], False),  # two steps are none
        ([1.0, 9.0, 2.0, 8.0, 2.5], False),  # up and down
        ([4.0, 3.0, 2.0, 1.0], False),
    ],
)
def test_growth_needs_a_trend_and_a_factor(largest, grows):
    """Both, and at least three steps."""
    assert is_growing(np.arange(len(largest)), np.array(largest)) is grows


def test_files_are_put_in_the_order_of_their_steps(tmp_path):
    """By the last number of their names; without numbers as they were given."""
    names = ["step-1000.npz", "step-200.npz", "step-50.npz"]
    paths = [tmp_path / name for name in names]
    assert [step for step, _ in order_files(paths)] == [50, 200, 1000]
    paths = [tmp_path / name for name in ("late.npz", "early.npz", "a1.npz")]
    assert order_files(paths) == list(enumerate(paths))
    with pytest.raises(InputError, match="at least 3 steps, got 2"):
        order_files(paths[:2])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """An archive for each step."""
    folder = tmp_path_factory.mktemp("steps")
    for step, size in zip((100, 200, 400, 1000, 2000), SIZES, strict=True):
        _, q, k, p = model_of(size)
        np.savez(folder / f"step-{step}.npz", q=q, k=k, weights=p)
    return sorted(folder.glob("*.npz"))


@pytest.mark.parametrize(
    ("state", "status"), [("growing", 1), ("hot", 1), ("flat", 0), ("none", 0)]
)
def test_the_command_fails_for_what_is_named(files, tmp_path, capsys, state, status):
    """With a table of all steps, and a record of what is said of heads."""
    options = ["--steps", "--fail-on", state, "--output"]
    assert main([*map(str, files), *options, str(tmp_path / "o")]) == status
    assert "over training, growing (layer, head): (1, 2)" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "o" / "steps.csv")
    assert list(table["step"].unique()) == [100, 200, 400, 1000, 2000]
    record = json.loads((tmp_path / "o" / "observation.json").read_text())
    assert record["steps"]["warnings"]["growing"] == [[1, 2]]


def test_nothing_is_said_where_nothing_grows(tmp_path):
    """No head is named, with the borders that none has passed."""
    paths = []
    for step in range(3):
        _, q, k, p = model_of(1.0, seed=step)
        np.savez(tmp_path / f"{step}.npz", q=q, k=k, weights=p)
        paths.append(str(tmp_path / f"{step}.npz"))
    output = ["--output", str(tmp_path / "o"), "--quiet"]
    assert main([*paths, "--steps", "--fail-on", "growing,hot,frozen", *output]) == 0
    steps = json.loads((tmp_path / "o" / "observation.json").read_text())["steps"]
    assert steps.pop("warnings") == {name: [] for name in WARNINGS}
    assert set(steps.values()) == {TREND, FACTOR, HOT, FROZEN}


def test_states_of_steps_need_steps(files, tmp_path, capsys):
    """Of one capture nothing grows."""
    output = ["--output", str(tmp_path / "o")]
    assert main([str(files[0]), "--fail-on", "growing", *output]) == 2
    assert "fail-on must be one of" in capsys.readouterr().err
    assert main([*map(str, files[:2]), "--steps", *output]) == 2
    assert "at least 3 steps, got 2" in capsys.readouterr().err

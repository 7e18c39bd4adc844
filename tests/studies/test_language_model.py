"""The language model: its gradients, mask and divisor, and its runs, where JAX is."""

import itertools
import json
import math

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import pandas as pd  # noqa: E402

from montecarlo.report.content.training import read_language  # noqa: E402
from studies import language_model as model  # noqa: E402
from studies.language_model import (  # noqa: E402
    ARMS,
    CONTEXT,
    D_K,
    JUDGED,
    TUNING,
    WIDTH,
    configuration,
)
from studies.retrieval import RUN  # noqa: E402
from studies.training import columns  # noqa: E402

SEED, N_CHARACTERS = 5, 11


@pytest.fixture
def parameters():
    """Those of a seed, small in what they read."""
    return model.draw_parameters(SEED, 16, N_CHARACTERS)


def layer_of(parameters):
    """The first layer's."""
    return {name: np.asarray(value[0]) for name, value in parameters.items()}


def attend_by_loops(layer, x, divisor):
    """What attention adds, position by position, in words of the textbook."""
    found = np.zeros_like(x)
    for b, sequence in enumerate(x):
        for i in range(len(sequence)):
            heads = []
            for head in range(model.HEADS):
                q, k, v = (
                    np.split(sequence @ layer[name], model.HEADS, axis=-1)[head]
                    for name in ("queries", "keys", "values")
                )
                e = np.array([math.exp(q[i] @ k[j] / divisor) for j in range(i + 1)])
                heads.append((e / e.sum()) @ v[: i + 1])
            found[b, i] = np.concatenate(heads) @ layer["outputs"]
    return found


def test_attention_is_the_textbook_s(parameters):
    """The divisor is in it once, at its place: a second one is seen, and none."""
    layer = layer_of(parameters)
    x = np.random.default_rng(3).standard_normal((2, 7, WIDTH))
    by_loops = attend_by_loops(layer, x, 4.0)
    assert np.abs(model.attend(layer, x, 4.0) - by_loops).max() < 1e-4
    for planted in (1.0, 16.0):  # left out, and applied twice
        assert np.abs(model.attend(layer, x, planted) - by_loops).max() > 0.1


@pytest.mark.parametrize("divisor", [1.0, 4.0])
def test_gradients_of_a_layer_are_those_of_its_sum(parameters, divisor):
    """In double precision, along a direction of W_Q and W_K: no product is left out."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((2, 7, WIDTH))
    weights = rng.standard_normal(x.shape)
    size = 1e-5
    with jax.enable_x64(True):  # noqa: FBT003 - as JAX has it
        layer = layer_of(parameters)
        layer = {name: value.astype(float) for name, value in layer.items()}

        def total(some):
            return (model.attend(some, x, divisor) * weights).sum()

        by = jax.grad(total)(layer)
        for name in ("queries", "keys"):
            along = rng.standard_normal(layer[name].shape)
            ends = [
                float(total({**layer, name: layer[name] + sign * size * along}))
                for sign in (1.0, -1.0)
            ]
            wanted = (ends[0] - ends[1]) / (2.0 * size)
            assert math.isclose(float((by[name] * along).sum()), wanted, rel_tol=1e-6)


def test_no_later_character_moves_an_earlier_prediction(parameters):
    """And the same one moves its own."""
    read = np.random.default_rng(5).integers(N_CHARACTERS, size=(1, CONTEXT))
    changed = read.copy()
    changed[0, 40] = (changed[0, 40] + 1) % N_CHARACTERS
    one, other = (model.predict(parameters, some, 4.0) for some in (read, changed))
    assert np.array_equal(one[0, :40], other[0, :40])
    assert np.abs(one[0, 40:] - other[0, 40:]).max(axis=-1).min() > 0.0


@pytest.mark.parametrize("arm", ["small-queries", "normalised"])
def test_an_arm_begins_as_the_others_but_for_one_thing(arm, parameters):
    """Queries smaller by sqrt(d_k), or a gain; all else is the same to the bit."""
    found = model.draw_parameters(SEED, 16, N_CHARACTERS, arm)
    gain = found.pop("gain_scores", None)
    assert (gain is not None) == (arm == "normalised")
    for name, value in parameters.items():
        times = 0.25 if (arm, name) == ("small-queries", "queries") else 1.0
        assert np.array_equal(found[name], np.float32(times) * value), name


def test_normalised_scores_are_cosines(parameters):
    """Of length sqrt(d_k) each, times the gain: whatever the size of W_Q and W_K."""
    layer = layer_of(parameters)
    x = np.random.default_rng(3).standard_normal((2, 7, WIDTH))
    heads = [np.split(x @ layer[n], model.HEADS, axis=-1) for n in ("queries", "keys")]
    for name, vectors in zip(("queries", "keys"), heads, strict=True):
        sizes = [np.sqrt((one**2).mean(axis=-1)) for one in vectors]
        assert np.std(sizes) > 0.01, name
    gained = {**layer, "gain_scores": np.float32(1.5)}
    found = model.attend(gained, x, 4.0)
    larger = {**gained, "queries": 3.0 * layer["queries"], "keys": 2.0 * layer["keys"]}
    assert np.abs(model.attend(larger, x, 4.0) - found).max() < 1e-4
    by_loops = np.zeros_like(found)
    for b, i in itertools.product(range(2), range(7)):
        parts = []
        for head in range(model.HEADS):
            q, k = (vectors[head][b] for vectors in heads)
            v = np.split(x[b] @ layer["values"], model.HEADS, axis=-1)[head]
            lengths = np.linalg.norm(q[i]) * np.linalg.norm(k[: i + 1], axis=-1)
            e = np.exp(1.5 * 16.0 * (k[: i + 1] @ q[i]) / lengths / 4.0)
            parts.append((e / e.sum()) @ v[: i + 1])
        by_loops[b, i] = np.concatenate(parts) @ layer["outputs"]
    assert np.abs(found - by_loops).max() < 1e-3


def test_the_same_seed_gives_the_same_bytes():
    """A short run, twice; another seed gives another."""
    one, again, other = (model.train(seed, "sqrt", 16, 3e-3, 3) for seed in (1, 1, 2))
    assert np.array_equal(one[0], again[0])
    assert one[1:] == again[1:]
    assert one[0][0] != other[0][0]


def test_a_run_that_diverges_is_a_result():
    """Its loss is infinite, and every setting has a line."""
    settings = [(*arm, math.inf) for arm in model.ALL_ARMS]
    found = columns([model.run_setting(1, one, steps=20) for one in settings])
    assert {*read_language().runs} - {*found} == {"coarse_rate"}
    assert len(found["seed"]) == len(ARMS) * len(D_K)
    for name in ("held_out", "final_loss", "steps"):
        assert np.isinf(found[name]).all()


def test_the_record_is_of_what_is_trained_now():
    """The same model and seeds; before the first step nothing has been rounded much."""
    kept = read_language()
    assert kept.about["configuration"] == json.loads(json.dumps(configuration()))
    assert kept.about["seeds"] == {"tuning": [*TUNING], "judged": [*JUDGED]}
    for arm, d_k in itertools.product(ARMS, D_K):
        line = model.run_setting(JUDGED[0], ("adam", arm, d_k, 1e-3), steps=20)
        wanted = kept.runs.query(f"arm == @arm and d_k == @d_k and seed == {JUDGED[0]}")
        for name in ("gradient_queries", "gradient_keys"):
            assert math.isclose(line[name], wanted[name].item(), rel_tol=1e-3), name


def test_judged_seeds_run_at_rates_that_others_chose(monkeypatch):
    """Each arm at its own; nothing of a judged seed moves a choice."""
    arms = [("adam", arm, 16) for arm in ("none", "sqrt")]
    monkeypatch.setattr(model, "ALL_ARMS", arms)
    best = {"none": 0.0021, "sqrt": 0.011}

    def run(stage, seeds, settings):
        asked.append((stage, [*seeds], [(arm, rate) for _, arm, _, rate in settings]))
        lines = [
            (*setting, seed, 9.0 + abs(math.log(setting[3] / best[setting[1]])), 1.0)
            for seed in seeds
            for setting in settings
        ]
        table = pd.DataFrame(lines, columns=[*RUN, "steps", "final_loss"])
        return table.assign(held_out=2.0, gradient_queries=1.0, gradient_keys=1.0)

    asked = []
    runs, chosen = model.run_all(run)
    assert asked[-1] == ("judged", [*JUDGED], [("none", 0.00225), ("sqrt", 0.01)])
    assert all(seeds == [*TUNING] for _, seeds, _ in asked[:-1])
    found = model.reduce_runs(runs, chosen)
    assert [*found] == [*read_language().runs]
    assert found.groupby("arm")["coarse_rate"].first().to_dict() == {
        "none": 0.003,
        "sqrt": 0.01,
    }
    assert sorted(found["seed"]) == sorted([*JUDGED, *JUDGED])

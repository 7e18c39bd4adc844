"""The layer that learns to retrieve, its record, and how it is made again."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from montecarlo.records.training import (
    ARMS,
    D_K,
    MEASURED,
    RATES,
    RUN,
    SETTING,
    STEPS,
    Rescaled,
    read_record,
)
from studies import training
from studies.training import (
    BATCH,
    CLOSE,
    EXPONENTS,
    FACTORS,
    JUDGED,
    KEY,
    LAST,
    LEARNED,
    N_QUERIES,
    SEEDS,
    TUNING,
    WARM_UP,
    Weights,
    columns,
    compare,
    configuration,
    count_steps,
    draw_sequences,
    draw_weights,
    loss_and_gradients,
    main,
    measure_rescaled,
    round_runs,
    run_seed,
    run_setting,
    summarise_losses,
    train,
)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Products of this size are slower on two, and on a busy machine very much so."""
    with threadpool_limits(1, user_api="blas"):
        yield


SEED = 5


def loop_loss(weights, data, divisor):
    """The loss query by query, in words of the textbook."""
    total = 0.0
    for b in range(BATCH):
        for i in range(N_QUERIES):
            q = weights.queries.T @ data.queries[b, i]
            scores = [
                (q @ (weights.keys.T @ token)) / divisor for token in data.tokens[b]
            ]
            e = [math.exp(s - max(scores)) for s in scores]
            p = [x / sum(e) for x in e]
            out = sum(
                w * token[KEY:] for w, token in zip(p, data.tokens[b], strict=True)
            )
            wanted = data.tokens[b, data.asked[b, i], KEY:]
            total += float(np.mean((out - wanted) ** 2))
    return total / (BATCH * N_QUERIES)


@pytest.mark.parametrize("divisor", [1.0, 4.0])
def test_loss_is_the_textbook_s(divisor):
    """Matrices at once give what a loop over queries and keys gives."""
    weights, data = draw_weights(SEED, 8), draw_sequences(SEED, 0)
    loss, _ = loss_and_gradients(weights, data, divisor)
    assert math.isclose(loss, loop_loss(weights, data, divisor), rel_tol=1e-12)


def slope_along(weights, data, divisor, side, direction):
    """Change of the loss along a direction of W_Q or W_K, by a central difference."""
    size = 1e-5

    def at(amount):
        moved = {"queries": weights.queries, "keys": weights.keys}
        moved[side] = moved[side] + amount * direction
        return loss_and_gradients(Weights(**moved), data, divisor)[0]

    return (at(size) - at(-size)) / (2.0 * size)


@pytest.mark.parametrize("side", ["queries", "keys"])
@pytest.mark.parametrize("divisor", [1.0, 2.5, 16.0])
def test_gradients_are_those_of_the_loss(side, divisor):
    """Along random directions, to the precision of a central difference.

    A missing 1/c or a divisor that is applied twice would be off by a factor 2.5.
    """
    weights, data = draw_weights(SEED, 8), draw_sequences(SEED, 1)
    _, by = loss_and_gradients(weights, data, divisor)
    rng = np.random.default_rng(11)
    for _ in range(3):
        direction = rng.standard_normal(weights.queries.shape)
        found = slope_along(weights, data, divisor, side, direction)
        wanted = float(np.sum(getattr(by, side) * direction))
        assert math.isclose(found, wanted, rel_tol=1e-5, abs_tol=1e-9)


def test_a_run_that_diverges_is_a_result():
    """Its losses are infinite from there on, and nothing is raised."""
    run = train(SEED, draw_weights(SEED, 16), 1.0, "sgd", 1e200, steps=5)
    assert np.isinf(run.losses[-1])
    assert math.isfinite(run.losses[0])


def adam_by_hand(epsilon, rate, steps):
    """Weights after some steps of Adam, entry by entry, as its paper has them."""
    data = [draw_sequences(SEED, step) for step in range(steps)]
    start = draw_weights(SEED, 8)
    entries = np.concatenate([start.queries.ravel(), start.keys.ravel()]).tolist()
    means, squares = [0.0] * len(entries), [0.0] * len(entries)
    for t in range(1, steps + 1):
        now = Weights(*np.array(entries).reshape(2, *start.queries.shape))
        _, by = loss_and_gradients(now, data[t - 1], 2.0)
        slopes = [*by.queries.ravel().tolist(), *by.keys.ravel().tolist()]
        for i, g in enumerate(slopes):
            means[i] = 0.9 * means[i] + 0.1 * g
            squares[i] = 0.999 * squares[i] + 0.001 * g * g
            m, v = means[i] / (1.0 - 0.9**t), squares[i] / (1.0 - 0.999**t)
            warm = min(1.0, t / WARM_UP)
            entries[i] -= rate * warm * m / (math.sqrt(v) + epsilon)
    return np.array(entries)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3])
def test_steps_of_adam_are_those_of_its_paper(epsilon):
    """Epsilon beside the root of the squares, not in it: at 1e-3, which is as large as
    these gradients, that moves weights by another amount.
    """
    weights = train(
        SEED, draw_weights(SEED, 8), 2.0, "adam", 0.1, steps=3, epsilon=epsilon
    ).weights
    found = np.concatenate([weights.queries.ravel(), weights.keys.ravel()])
    assert np.abs(found - adam_by_hand(epsilon, 0.1, 3)).max() < 1e-12


# --- Runs of a seed -------------------------------------------------------------------


def test_every_combination_is_run_from_the_same_start():
    """Before the first step the loss and gradient of an arm know no rate."""
    found = run_seed(5, steps=2)
    runs = pd.DataFrame({name: found[name] for name in (*RUN, *MEASURED)})
    wanted = len(ARMS) * len(D_K) * sum(map(len, RATES.values()))
    assert len(runs) == wanted == len(runs[SETTING].drop_duplicates())
    assert found["losses"].shape == (wanted, 2)
    assert np.isinf(runs["steps"]).all()  # two steps of a warm-up teach nothing
    starts = runs.assign(loss=found["losses"][:, 0]).groupby(["arm", "d_k"])
    for name in ("loss", "gradient"):
        assert set(starts[name].nunique()) == {1}
    assert starts["loss"].first().nunique() > len(D_K)
    sgd = runs[runs["optimiser"] == "sgd"]  # a step: the rate, warmed up, by gradient
    assert np.allclose(sgd["update"], sgd["rate"] / 20 * sgd["gradient"], rtol=1e-9)


BELOW, ABOVE = 0.5 * LEARNED, 2.0 * LEARNED


@pytest.mark.parametrize(
    ("losses", "steps"),
    [
        ([ABOVE] * 7 + [BELOW] * 40, 7),
        ([BELOW] * 40, 0),
        ([ABOVE] * 3 + [BELOW] * 5 + [ABOVE] + [BELOW] * 40, 9),  # left once more
        ([ABOVE] * 7 + [LEARNED] + [BELOW] * 40, 8),  # not yet below
        ([ABOVE] * 7 + [BELOW] * LAST, 7),
        ([ABOVE] * 7 + [BELOW] * (LAST - 1), math.inf),  # not yet for good
        ([ABOVE] * 7 + [BELOW] * 40 + [math.nan], math.inf),
        ([ABOVE] * 7 + [math.inf] * 40, math.inf),
    ],
)
def test_steps_are_those_before_a_loss_is_below_for_good(losses, steps):
    """Of curves that are known: the last loss above is that of the last step."""
    assert count_steps(np.array(losses)) == steps


# --- What a divisor is worth ----------------------------------------------------------


def test_the_theorem_comes_out_again():
    """To the bit for powers of 4 and gradient descent, for the least d_k and the
    largest, after 100 steps; by rounding for the others, which grows with the steps and
    is far below anything that is learned.
    """
    found = list(measure_rescaled())
    assert len({(one.optimiser, one.d_k, one.factor) for one in found}) == len(found)
    assert len(found) == 2 * 2 * len(FACTORS)
    exact = [one for one in found if one.optimiser == "sgd" and one.factor in {4, 16}]
    assert len(exact) == 4
    assert {(one.weights, one.loss, one.steps) for one in exact} == {(0.0, 0.0, 100)}
    assert max(one.loss for one in found) < 5e-7
    assert any(one.weights for one in found if one.factor == 10.0)


@pytest.mark.parametrize(("optimiser", "wrong"), [("sgd", 0.5), ("adam", 1.0)])
def test_a_wrong_exponent_is_seen(optimiser, wrong):
    """The theorem's exponents are not each other's."""
    assert EXPONENTS[optimiser] != wrong
    found = list(measure_rescaled({optimiser: wrong}, steps=40))
    assert min(one.loss for one in found) > 1e-3


# --- The record -----------------------------------------------------------------------

INF, SHORT_JUDGED = np.inf, range(200, 205)  # of invented runs


def invented_runs(seed):
    """A line for each setting: the third rate is best, the last one diverges."""
    rng, lines, losses = np.random.default_rng(seed), [], []
    for optimiser, rates in RATES.items():
        for arm in ARMS:
            for place, rate in enumerate(rates):
                luck = float(rng.random())
                curve = np.linspace(1.0, luck, 7)
                curve[2:] = np.inf if place == len(rates) - 1 else curve[2:]
                steps = INF if place > 4 else 10 * abs(place - 2) + int(9 * luck)
                measured = (steps, curve[-1], 1.0 + luck, rate * (1.0 + luck))
                names = (optimiser, arm, 16, rate, seed, *measured)
                lines.append(dict(zip((*RUN, *MEASURED), names, strict=True)))
                losses.append(curve)
    return {**columns(lines), "losses": np.stack(losses).astype(np.float32)}


def invented_table(seed):
    """The same without losses."""
    found = invented_runs(seed)
    return pd.DataFrame({name: found[name] for name in (*RUN, *MEASURED)})


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Make a record of invented runs; returns status, its folder and what was run."""
    ran = []

    def run_invented(seed):
        ran.append(seed)
        return invented_runs(seed)

    same = Rescaled("sgd", 16, 4.0, 100, 0.0, 0.0)
    monkeypatch.setattr(training, "JUDGED", SHORT_JUDGED)
    monkeypatch.setattr(training, "run_seed", run_invented)
    monkeypatch.setattr(training, "make_executor", ThreadPoolExecutor)
    monkeypatch.setattr(training, "measure_rescaled", lambda: [same])

    def make(name="record", work="work"):
        before = len(ran)
        folders = ["--work", tmp_path / work, "--output", tmp_path / name]
        status = main(["--jobs", "1", *map(str, folders)])
        return status, tmp_path / name, ran[before:]

    return make


def contents(folder):
    """Bytes of every file of a record."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_record_is_made_and_read(make, capsys):
    """All seeds once; what is read is what was run, to five digits."""
    status, folder, ran = make()
    assert (status, ran) == (0, [*TUNING, *SHORT_JUDGED])
    assert "seed    204, 17 of 17" in capsys.readouterr().out
    assert set(contents(folder)) == {"runs.csv", "losses.csv", "record.json"}
    kept = read_record(folder)
    assert set(kept.chosen) == {(o, a, 16) for o in RATES for a in ARMS}
    assert all(kept.chosen[one] == RATES[one[0]][2] for one in kept.chosen)
    # from the sixth rate on none learned, and at the largest all diverged
    lines, seeds = kept.runs, len(ran) * len(ARMS)
    never = sum(len(rates) - 5 for rates in RATES.values())
    assert np.isinf(lines["steps"]).sum() == seeds * never
    gone = lines[np.isinf(lines["final_loss"])].groupby("optimiser")["rate"]
    assert dict(gone.unique().map(list)) == {o: [r[-1]] for o, r in RATES.items()}
    assert kept.about["configuration"]["steps"] == STEPS
    assert kept.rescaled[0].weights == 0.0
    wanted = round_runs(invented_table(201))
    found = lines[lines["seed"] == 201].reset_index(drop=True)
    pd.testing.assert_frame_equal(found, wanted, check_dtype=False)


def test_interrupted_and_resumed_gives_the_same_bytes(make, monkeypatch):
    """Nothing is written meanwhile, and no finished seed is run again."""
    _, whole, _ = make("whole", "elsewhere")
    run = training.run_seed

    def interrupted(seed):
        if seed == SHORT_JUDGED[3]:
            raise KeyboardInterrupt
        return run(seed)

    monkeypatch.setattr(training, "run_seed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make()
    monkeypatch.setattr(training, "run_seed", run)
    status, folder, after = make()
    assert status == 0
    assert {SHORT_JUDGED[3]} <= set(after) <= {*SHORT_JUDGED[3:]}
    assert contents(folder) == contents(whole)
    assert make()[2] == []


def test_quantiles_are_those_of_judged_seeds():
    """Every fifth step, at the chosen rate; infinite where too many have diverged."""
    lines = [
        ("sgd", "sqrt", 16, rate, seed) for rate in (1.0, 3.0) for seed in (0, *JUDGED)
    ]
    table = pd.DataFrame(lines, columns=RUN)
    losses = np.zeros((len(table), 11), dtype=np.float32)
    wanted = (table["seed"].isin(JUDGED) & (table["rate"] == 3.0)).to_numpy()
    losses[wanted] = np.arange(len(JUDGED))[:, np.newaxis]
    losses[np.flatnonzero(wanted)[24:], 10] = np.inf
    found = summarise_losses(table, losses, {("sgd", "sqrt", 16): 3.0})
    assert found["step"].tolist() == [0, 5, 10]
    assert set(found["rate"]) == {3.0}
    ranks = np.quantile(np.arange(len(JUDGED)), [0.1, 0.5, 0.9])
    np.testing.assert_allclose(found.loc[1, ["q10", "median", "q90"]].tolist(), ranks)
    assert found.loc[2, ["q10", "median", "q90"]].tolist() == [ranks[0], INF, INF]


def test_the_record_is_of_what_is_trained_now():
    """Where this fails, what is trained has changed: ``python -m studies.training``
    makes the record anew.  Runs at low rates come out to all digits but the last on any
    machine; --short runs two whole seeds again.
    """
    kept = read_record()
    now = json.loads(json.dumps(configuration()))
    assert kept.about["configuration"] == now
    assert kept.seeds == {"tuning": (*TUNING,), "judged": (*JUDGED,)}
    for optimiser, arm, d_k, rate in (
        ("sgd", "sqrt", 16, 3.0),
        ("adam", "small-queries", 64, 1e-2),
        ("adam", "linear", 16, 1e-1),
    ):
        (wanted,) = kept.runs.query(
            "optimiser == @optimiser and arm == @arm and d_k == @d_k and rate == @rate "
            f"and seed == {JUDGED[0]}"
        ).to_dict("records")
        line, _ = run_setting(JUDGED[0], (optimiser, arm, d_k, rate))
        assert line["steps"] == wanted["steps"]
        for name in MEASURED:
            assert math.isclose(line[name], wanted[name], rel_tol=CLOSE), (arm, name)


# --- --short --------------------------------------------------------------------------


@pytest.fixture
def kept(make, monkeypatch):
    """The record that ``--short`` is compared with: an invented one."""
    _, folder, _ = make()
    found = read_record(folder)
    monkeypatch.setattr(training, "read_record", lambda: found)
    return found


@pytest.mark.usefixtures("kept")
def test_short_agrees_with_the_record(capsys):
    """The first judged seeds, run and not read; status 0."""
    assert main(["--short", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert f"seed    {SHORT_JUDGED[1]}, 2 of {SEEDS}" in out
    assert "\nagrees; asked: every digit" in out


@pytest.mark.parametrize("name", MEASURED)
def test_one_other_digit_is_seen(name, kept, capsys):
    """In one run of hundreds, in the last digit that is kept; status 1."""
    place = kept.judged.index[np.isfinite(kept.judged[name])][0]
    kept.runs.loc[place, name] *= 1.0001
    assert main(["--short", "--jobs", "1"]) == 1
    assert "does not agree" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("column", "share", "agrees"),
    [
        ("final_loss", 0.6, True),
        ("steps", 0.6, True),
        ("final_loss", 0.7, False),
        ("gradient", 0.01, False),
        ("update", 0.01, False),
    ],
)
def test_on_other_kernels_some_may_differ(column, share, agrees, kept):
    """Runs at high rates end elsewhere; what precedes learning, and others, do not."""
    runs = kept.judged.reset_index(drop=True)
    found = runs.copy()
    found.loc[: int(share * len(runs)), column] = 0.123
    assert compare(found, runs, exact=False)[1] == agrees
    assert not compare(found, runs, exact=True)[1]
    assert compare(runs, runs, exact=True)[1]

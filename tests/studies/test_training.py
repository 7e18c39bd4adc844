"""The layer that learns to retrieve, its record, and how it is made again."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from montecarlo.records.training import (
    ARMS,
    D_K,
    LOOKS,
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
    CASES,
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
    find_undecided,
    lines_of,
    loss_and_gradients,
    main,
    measure_rescaled,
    round_runs,
    run_case,
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


def loop_loss(weights, data, divisor, normalised):
    """The loss query by query, in words of the textbook."""

    def project(matrix, x):
        found = matrix.T @ x
        return found / math.sqrt(np.mean(found**2)) if normalised else found

    gain = weights.gain if normalised else 1.0
    total = 0.0
    for b in range(BATCH):
        for i in range(N_QUERIES):
            q = project(weights.queries, data.queries[b, i])
            scores = [
                gain * (q @ project(weights.keys, token)) / divisor
                for token in data.tokens[b]
            ]
            e = [math.exp(s - max(scores)) for s in scores]
            p = [x / sum(e) for x in e]
            out = sum(
                w * token[KEY:] for w, token in zip(p, data.tokens[b], strict=True)
            )
            wanted = data.tokens[b, data.asked[b, i], KEY:]
            total += float(np.mean((out - wanted) ** 2))
    return total / (BATCH * N_QUERIES)


def weights_with_gain():
    """Weights, and a gain that is not the one they begin with."""
    return replace(draw_weights(SEED, 8), gain=1.7)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("divisor", [1.0, 4.0])
def test_loss_is_the_textbook_s(divisor, normalised):
    """Matrices at once give what a loop over queries and keys gives."""
    weights, data = weights_with_gain(), draw_sequences(SEED, 0)
    loss, _ = loss_and_gradients(weights, data, divisor, normalised=normalised)
    wanted = loop_loss(weights, data, divisor, normalised)
    assert math.isclose(loss, wanted, rel_tol=1e-12)


def slope_along(weights, data, divisor, normalised, **direction):
    """Change of the loss along a direction of what is learned: a central difference."""
    size = 1e-5

    def at(amount):
        moved = {
            name: getattr(weights, name) + amount * step
            for name, step in direction.items()
        }
        moved = replace(weights, **moved)
        return loss_and_gradients(moved, data, divisor, normalised=normalised)[0]

    return (at(size) - at(-size)) / (2.0 * size)


@pytest.mark.parametrize("side", ["queries", "keys", "gain"])
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("divisor", [1.0, 2.5, 16.0])
def test_gradients_are_those_of_the_loss(side, divisor, normalised):
    """Along random directions, to the precision of a central difference.

    A missing 1/c or a divisor that is applied twice would be off by a factor 2.5.
    """
    weights, data = weights_with_gain(), draw_sequences(SEED, 1)
    _, by = loss_and_gradients(weights, data, divisor, normalised=normalised)
    rng = np.random.default_rng(11)
    for _ in range(3):
        direction = rng.standard_normal(np.shape(getattr(weights, side)))
        found = slope_along(weights, data, divisor, normalised, **{side: direction})
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
    parts = [run_case(5, *case, steps=2) for case in CASES]
    runs = pd.concat([pd.DataFrame(lines_of(one)) for one in parts], ignore_index=True)
    losses = np.concatenate([one["losses"] for one in parts])
    wanted = len(ARMS) * len(D_K) * sum(map(len, RATES.values()))
    assert len(runs) == wanted == len(runs[SETTING].drop_duplicates())
    assert losses.shape == (wanted, 2)
    assert np.isinf(runs["steps"]).all()  # two steps of a warm-up teach nothing
    starts = runs.assign(loss=losses[:, 0]).groupby(["arm", "d_k"])
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

#: Of invented runs: what is judged at two looks, and what is run.
INF, SHORT_JUDGED, SHORT_CASES = np.inf, range(200, 210), (("sgd", 16), ("adam", 16))
FIRST_LOOK = SHORT_JUDGED[:5]


def invented_runs(seed, optimiser, d_k):
    """A line for each setting: the third rate is best, the last one diverges."""
    rates, lines, losses = RATES[optimiser], [], []
    rng = np.random.default_rng([seed, len(rates)])
    for arm in ARMS:
        for place, rate in enumerate(rates):
            luck = float(rng.random())
            curve = np.linspace(1.0, luck, 7)
            curve[2:] = np.inf if place == len(rates) - 1 else curve[2:]
            steps = INF if place > 4 else 10 * abs(place - 2) + int(9 * luck)
            measured = (steps, curve[-1], 1.0 + luck, rate * (1.0 + luck))
            names = (optimiser, arm, d_k, rate, seed, *measured)
            lines.append(dict(zip((*RUN, *MEASURED), names, strict=True)))
            losses.append(curve)
    return {**columns(lines), "losses": np.stack(losses).astype(np.float32)}


def invented_table(seed):
    """The same of all cases, without losses."""
    parts = [lines_of(invented_runs(seed, *case)) for case in SHORT_CASES]
    return pd.concat(map(pd.DataFrame, parts), ignore_index=True)


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Make a record of invented runs; returns status, its folder and what was run."""
    ran = []

    def run_invented(*part):
        ran.append(part)
        return invented_runs(*part)

    same = Rescaled("sgd", 16, 4.0, 100, 0.0, 0.0)
    monkeypatch.setattr(training, "JUDGED", SHORT_JUDGED)
    monkeypatch.setattr(training, "LOOKS", (5, 10))
    monkeypatch.setattr(training, "CASES", SHORT_CASES)
    monkeypatch.setattr(training, "find_undecided", lambda *_: [])
    monkeypatch.setattr(training, "run_case", run_invented)
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
    seeds = [*TUNING, *FIRST_LOOK]
    assert status == 0
    assert ran == [(seed, *case) for case in SHORT_CASES for seed in seeds]
    assert "204-adam-16, 34 of 34" in capsys.readouterr().out
    assert set(contents(folder)) == {"runs.csv", "losses.csv", "record.json"}
    kept = read_record(folder)
    assert set(kept.chosen) == {(o, a, 16) for o in RATES for a in ARMS}
    assert all(kept.chosen[one] == RATES[one[0]][2] for one in kept.chosen)
    # from the sixth rate on none learned, and at the largest all diverged
    lines, of_arms = kept.runs, len(seeds) * len(ARMS)
    never = sum(len(rates) - 5 for rates in RATES.values())
    assert np.isinf(lines["steps"]).sum() == of_arms * never
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
    run, last = training.run_case, (SHORT_JUDGED[3], "adam", 16)

    def interrupted(*part):
        if part == last:
            raise KeyboardInterrupt
        return run(*part)

    monkeypatch.setattr(training, "run_case", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make()
    monkeypatch.setattr(training, "run_case", run)
    status, folder, after = make()
    assert status == 0
    assert {last} <= set(after) <= {last, (SHORT_JUDGED[4], "adam", 16)}
    assert contents(folder) == contents(whole)
    assert make()[2] == []


def test_seeds_double_where_a_check_is_open(make, monkeypatch):
    """One optimiser's; what was decided is not run again, and no look is added."""
    asked = []

    def find(table, among):
        asked.append((len(set(table["seed"])), tuple(among)))
        return [("sgd", 16)]

    monkeypatch.setattr(training, "find_undecided", find)
    _, folder, ran = make()
    assert ran[-5:] == [(seed, "sgd", 16) for seed in SHORT_JUDGED[5:]]
    assert len(ran) == 2 * (len(TUNING) + 5) + 5
    assert asked == [(len(TUNING) + 5, SHORT_CASES)]
    kept = read_record(folder)
    assert kept.seeds["judged"] == (*SHORT_JUDGED,)
    assert kept.judged.groupby("optimiser")["seed"].nunique().to_dict() == {
        "adam": 5,
        "sgd": 10,
    }


def test_what_is_undecided_is_found():
    """Of the record as it is: nothing that 192 seeds were not spent on.

    Where half of the seeds of a case learn, whether most do is open.
    """
    runs = read_record().runs
    most = LOOKS[-1] + len(TUNING)
    counts = runs.groupby(["optimiser", "d_k"])["seed"].nunique()
    open_now = find_undecided(runs)
    assert {counts[case] for case in open_now} <= {most}
    case = ("adam", 16)
    at_case = runs["optimiser"].eq("adam") & runs["d_k"].eq(16) & runs["arm"].eq("sqrt")
    hurt = runs.copy()
    hurt.loc[at_case & runs["seed"].mod(4).eq(0), "steps"] = np.inf
    assert case in find_undecided(hurt)
    assert case not in find_undecided(hurt, [("sgd", 16)])


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
    assert kept.seeds["tuning"] == (*TUNING,)
    assert kept.seeds["judged"] in {(*JUDGED[:look],) for look in LOOKS}
    for optimiser, arm, d_k, rate in (
        ("sgd", "sqrt", 16, 3.0),
        ("adam", "small-queries", 64, 1e-2),
        ("adam", "linear", 16, 1e-1),
        ("adam", "normalised", 64, 1e-2),
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
    assert f"{SHORT_JUDGED[1]}-adam-16, 4 of {2 * SEEDS}" in out
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

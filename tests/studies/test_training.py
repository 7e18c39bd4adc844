"""The layer that learns to retrieve, its record, and how it is made again."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from montecarlo.claims.training import (
    ARM,
    ARMS,
    CASE,
    D_K,
    LOOKS,
    RATES,
    SLOPE,
    STEPS,
    Rescaled,
    read_record,
)
from montecarlo.errors import InputError
from studies import training
from studies.retrieval import (
    LAST,
    LEARNED,
    OF_RUN,
    RUN,
    SETTING,
    count_steps,
    run_setting,
)
from studies.training import (
    CASES,
    CLOSE,
    EXPONENTS,
    FACTORS,
    JUDGED,
    TUNING,
    choose_rates,
    columns,
    compare,
    configuration,
    find_undecided,
    main,
    make_starts,
    measure_rescaled,
    read_reference,
    reduce_runs,
    round_runs,
    run_case,
)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Products of this size are slower on two, and on a busy machine very much so."""
    with threadpool_limits(1, user_api="blas"):
        yield


# --- Runs of a seed -------------------------------------------------------------------


def test_every_combination_is_run_from_the_same_start():
    """Before the first step the loss and gradient of an arm know no rate."""
    parts = [pd.DataFrame(run_case(5, *case, steps=1)) for case in CASES]
    runs = pd.concat(parts, ignore_index=True)
    wanted = len(ARMS) * len(D_K) * sum(map(len, RATES.values()))
    assert len(runs) == wanted == len(runs[SETTING].drop_duplicates())
    assert np.isinf(runs["steps"]).all()  # a step of a warm-up teaches nothing
    starts = runs.groupby(["arm", "d_k"])
    for name in ("final_loss", "gradient"):
        assert set(starts[name].nunique()) == {1}
    assert starts["final_loss"].first().nunique() > len(D_K)
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


# --- From raw runs to the record ------------------------------------------------------

INF, NAMES = np.inf, ("sgd", "sqrt", 16)


def table_of(steps, left=None, seeds=TUNING):
    """Runs of one arm; steps, and what is left of the loss, by rate."""
    left = left or {}
    lines = [
        (*NAMES, rate, seed, some[seed % len(some)], left.get(rate, 0.0), 1.0, 1.0)
        for rate, some in steps.items()
        for seed in seeds
    ]
    return pd.DataFrame(lines, columns=[*RUN, *OF_RUN])


@pytest.mark.parametrize(
    ("steps", "left", "wanted"),
    [
        ({1.0: [20], 3.0: [10], 10.0: [30]}, {}, 3.0),
        # a third that never learns moves no median, two thirds make it infinite
        ({1.0: [20], 3.0: [10, 10, INF], 10.0: [1, INF, INF]}, {}, 3.0),
        # the mean of the two in the middle is infinite if one is
        ({1.0: [250], 3.0: [10, INF]}, {}, 1.0),
        # of equal medians the one at which more learn, whatever is left
        ({1.0: [10, 10, INF], 3.0: [10]}, {3.0: 0.5}, 3.0),
        ({1.0: [10], 3.0: [10, 10, INF]}, {1.0: 0.5}, 1.0),
        ({1.0: [INF], 3.0: [INF], 10.0: [INF]}, {1.0: 0.3, 3.0: 0.2, 10.0: INF}, 3.0),
        ({3.0: [10], 1.0: [10]}, {}, 1.0),
    ],
)
def test_rates_are_chosen(steps, left, wanted):
    """By the median, then by how many learn, by the loss, and the smaller one."""
    assert choose_rates(table_of(steps, left), TUNING) == {NAMES: wanted}


def test_no_judged_seed_moves_a_choice():
    """Whatever became of them; and they are not those that choose."""
    tuning = table_of({1.0: [20], 3.0: [10]})
    judged = table_of({1.0: [1], 3.0: [INF]}, {3.0: INF}, JUDGED)
    found = choose_rates(pd.concat([judged, tuning, judged]), TUNING)
    assert found == choose_rates(tuning, TUNING)


@pytest.mark.parametrize("seeds", [TUNING[1:], [*TUNING, TUNING[0]]])
def test_every_tuning_seed_is_needed_once(seeds):
    """A choice on fewer would be another, and so would one that counts a seed twice."""
    with pytest.raises(InputError, match="runs must have all seeds 0 to 11"):
        choose_rates(table_of({1.0: [20]}, seeds=seeds), TUNING)


#: Of invented runs: what is judged at two looks, and what is run.
SHORT_JUDGED, SHORT_CASES = range(200, 210), (("sgd", 16), ("adam", 16))
FIRST_LOOK = SHORT_JUDGED[:5]
#: Place of the rate at which an invented arm learns fastest, and slope of its updates.
BEST, INVENTED_SLOPE = {arm: 2 - (arm == "none") for arm in ARMS}, 0.5


def invented_lines(seed, optimiser, d_k):
    """A line for each setting: three rates around the best learn, the last diverges."""
    rates = RATES[optimiser]
    rng = np.random.default_rng([seed, len(rates)])
    for arm in ARMS:
        start = math.exp(4.0 * float(rng.random()))
        for place, rate in enumerate(rates):
            luck, away = float(rng.random()), abs(place - BEST[arm])
            steps = INF if away > 1 else 10 * away + int(9 * luck)
            left = INF if place == len(rates) - 1 else luck
            found = (steps, left, start, rate * start**INVENTED_SLOPE)
            yield dict(
                zip(
                    (*RUN, *OF_RUN),
                    (optimiser, arm, d_k, rate, seed, *found),
                    strict=True,
                )
            )


def invented_runs(seed, optimiser, d_k):
    """The same as columns."""
    return columns(list(invented_lines(seed, optimiser, d_k)))


def invented_setting(seed, setting, _steps=0):
    """One of these lines."""
    lines = invented_lines(seed, setting[0], setting[2])
    return next(one for one in lines if (one["arm"], one["rate"]) == setting[1::2])


def test_runs_are_reduced_to_what_is_judged():
    """Each number by a loop over raw lines, of which those of tuned seeds have none."""
    seeds = (*TUNING, *FIRST_LOOK)
    raw = [
        line for s in seeds for case in SHORT_CASES for line in invented_lines(s, *case)
    ]
    table = pd.DataFrame(raw).sample(frac=1.0, random_state=1)
    steps, gradients = reduce_runs(table)
    assert len(steps) == len(SHORT_CASES) * len(ARMS) * len(FIRST_LOOK)
    for line in steps.to_dict("records"):
        rates = RATES[line["optimiser"]]
        mine = {
            one["rate"]: one
            for one in raw
            if all(one[name] == line[name] for name in (*ARM, "seed"))
        }
        assert line["seed"] in FIRST_LOOK
        assert line["rate"] == rates[BEST[line["arm"]]]
        assert line["steps"] == mine[line["rate"]]["steps"]
        assert line["final_loss"] == mine[line["rate"]]["final_loss"]
        assert line["steps_same_rate"] == mine[rates[BEST["sqrt"]]]["steps"]
        assert line["rates"] == sum(one["steps"] < INF for one in mine.values())
    assert len(gradients) == len(SHORT_CASES) * len(FIRST_LOOK)
    for line in gradients.to_dict("records"):
        for one in raw:
            if all(one[name] == line[name] for name in (*CASE, "seed")):
                assert line[one["arm"]] == one["gradient"]
        assert line[SLOPE] == pytest.approx(INVENTED_SLOPE, rel=1e-9)


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
    monkeypatch.setattr(training, "run_setting", invented_setting)
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
    tables = {"steps.csv", "gradients.csv", "reference.csv"}
    assert set(contents(folder)) == {*tables, "record.json"}
    kept = read_record(folder)
    assert set(kept.by_arm) == {(o, a, 16) for o in RATES for a in ARMS}
    assert kept.about["configuration"]["steps"] == STEPS
    assert kept.about["seeds"] == {"tuning": [*TUNING], "judged": [*FIRST_LOOK]}
    assert kept.rescaled[0].weights == 0.0
    parts = [
        pd.DataFrame(invented_runs(s, *case)) for case in SHORT_CASES for s in seeds
    ]
    steps, gradients = reduce_runs(round_runs(pd.concat(parts)))
    pd.testing.assert_frame_equal(kept.runs, steps, check_dtype=False)
    pd.testing.assert_frame_equal(kept.gradients, gradients, check_dtype=False)


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
    assert kept.about["seeds"]["judged"] == [*SHORT_JUDGED]
    assert kept.runs.groupby("optimiser")["seed"].nunique().to_dict() == {
        "adam": 5,
        "sgd": 10,
    }


@pytest.mark.slow
def test_what_is_undecided_is_found():
    """Where all seeds are alike nothing is; that most learn, where half of them do."""
    steps = {"none": 200.0, "sqrt": 20.0, "linear": 26.0}
    runs = pd.DataFrame(
        [
            (optimiser, arm, d_k, RATES[optimiser][0], seed, *measured)
            for seed in (*TUNING, *JUDGED[: LOOKS[1]])
            for optimiser, d_k in CASES
            for arm in ARMS
            for start in [math.sqrt(d_k) if ARMS[arm] == "none" else 1.0]
            for measured in [(steps.get(arm, 22.0), 0.01, start, start)]
        ],
        columns=[*RUN, *OF_RUN],
    )
    assert find_undecided(runs) == []
    mine = runs["optimiser"].eq("adam") & runs["d_k"].eq(16) & runs["arm"].eq("sqrt")
    runs.loc[mine & runs["seed"].mod(2).eq(0), "steps"] = np.inf
    assert find_undecided(runs, [("sgd", 16), ("adam", 16)]) == [("adam", 16)]


def test_the_record_is_of_what_is_trained_now():
    """Where this fails, what is trained has changed: ``python -m studies.training``
    makes the record anew.  First steps, and runs at low rates, come out to all digits
    but the last on any machine; --short makes all of the latter.
    """
    kept, reference = read_record(), read_reference()
    now = json.loads(json.dumps(configuration()))
    assert kept.about["configuration"] == now
    assert kept.about["seeds"]["tuning"] == [*TUNING]
    assert kept.about["seeds"]["judged"] in [[*JUDGED[:look]] for look in LOOKS]
    first = kept.gradients[kept.gradients["seed"].eq(JUDGED[0])]
    assert compare(make_starts(JUDGED[:1]), first) <= CLOSE
    names = [("sgd", "sqrt"), ("adam", "small-queries"), ("adam", "normalised")]
    arms = reference[["optimiser", "arm"]].apply(tuple, axis=1)
    chosen = reference[reference["d_k"].eq(16) & arms.isin(names)]
    assert len(chosen) == len(names)
    settings = chosen[RUN].itertuples(index=False)
    found = pd.DataFrame([run_setting(run[-1], run[:-1]) for run in settings])
    assert compare(found, chosen) <= CLOSE


# --- --short --------------------------------------------------------------------------


@pytest.fixture
def kept(make, monkeypatch):
    """The record and the runs that ``--short`` compares with: invented ones."""
    _, folder, _ = make()
    record, reference = read_record(folder), read_reference(folder)
    monkeypatch.setattr(training, "read_record", lambda: record)
    monkeypatch.setattr(training, "read_reference", lambda: reference)
    return record.gradients, reference


@pytest.mark.usefixtures("kept")
def test_short_agrees_with_the_record(capsys):
    """First steps, and the runs that are kept to compare with; status 0."""
    assert main(["--short", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert f"{len(RATES) * len(ARMS)} runs at low rates" in out
    assert "\nagrees; asked: 0.0001" in out


@pytest.mark.parametrize("name", [*OF_RUN, "sqrt", SLOPE])
def test_another_digit_is_seen(name, kept, capsys):
    """In one run, or in one first step; status 1."""
    table = kept[name not in {"sqrt", SLOPE}]
    table[name] = table[name].astype(float)
    table.loc[0, name] = 1.0003 * table.loc[0, name] + 1e-6
    assert main(["--short", "--jobs", "1"]) == 1
    assert "does not agree" in capsys.readouterr().out

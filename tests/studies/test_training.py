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
    D_K,
    LOOKS,
    RATES,
    SLOPE,
    STEPS,
    Rescaled,
    beside,
    fine_rate,
    is_fine,
    place_of,
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
    Search,
    choose_rates,
    columns,
    compare,
    configuration,
    find_undecided,
    main,
    make_starts,
    measure_rescaled,
    read_reference,
    run_case,
    searched,
)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Products of this size are slower on two, and on a busy machine very much so."""
    with threadpool_limits(1, user_api="blas"):
        yield


# --- Runs of a seed -------------------------------------------------------------------


def test_every_combination_is_run_from_the_same_start():
    """Before the first step the loss and gradient of an arm know no rate."""
    coarse = searched().coarse
    parts = [pd.DataFrame(run_case(5, *case, coarse[case], steps=1)) for case in CASES]
    runs = pd.concat(parts, ignore_index=True)
    wanted = len(ARMS) * len(D_K) * sum(map(len, RATES.values()))
    assert len(runs) == wanted == len(runs[SETTING].drop_duplicates())
    assert np.isinf(runs["steps"]).all()  # a step of a warm-up teaches nothing
    starts = runs.groupby(["arm", "d_k"])
    for name in ("final_loss", "gradient"):
        assert set(starts[name].nunique()) == {1}
    assert starts["final_loss"].first().nunique() > len(D_K)
    # the same scores, to rounding
    left = runs.pivot_table("final_loss", "d_k", "arm")
    assert np.allclose(left["small-queries"], left["sqrt"], rtol=1e-9)
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


# --- The search -----------------------------------------------------------------------


def test_fine_rates_are_eighths_of_a_decade():
    """To three digits, from which their places come back; 3 is none, and 10 is one."""
    rates = [fine_rate(place) for place in range(-40, 41)]
    assert rates[40:49] == [1.0, 1.33, 1.78, 2.37, 3.16, 4.22, 5.62, 7.5, 10.0]
    assert [place_of(rate) for rate in rates] == [*range(-40, 41)]
    assert all(map(is_fine, rates))
    assert not is_fine(3.0)
    assert beside(1.0) == (0.75, 1.0, 1.33)
    steps = np.array(rates[1:]) / rates[:-1]
    assert np.abs(steps / 10 ** (1 / 8) - 1.0).max() < 0.004


def search_of(coarse):
    """A search of one arm."""
    tried = tuple((NAMES[1], rate) for rate in coarse)
    return Search(run_case, {("sgd", 16): tried}, TUNING)


@pytest.mark.parametrize(
    ("steps", "places"),
    [
        # coarse rates alone: four on each side of the best one, but for one that both
        # searches have
        ({1.0: 30, 3.0: 10, 10.0: 20}, [*range(1, 8)]),
        ({1.0: 10, 3.0: 30}, [-4, -3, -2, -1, 1, 2, 3, 4]),
        # then around the best fine one, where the coarse one is better, too
        (
            {3.0: 1, 10.0: 90, **{fine_rate(n): 20 - n for n in range(8)}},
            [9, 10, 11],
        ),
        # at an end, and one from it
        ({3.0: 1, **{fine_rate(n): 20 + n for n in range(9)}}, [-4, -3, -2, -1]),
        ({3.0: 1, **{fine_rate(n): 20 + abs(n - 1) for n in range(9)}}, [-3, -2, -1]),
        ({3.0: 1, **{fine_rate(n): 20 + abs(n - 4) for n in range(9)}}, []),
    ],
)
def test_a_search_goes_on_until_the_best_is_inside(steps, places):
    """Rates that lack, by hand."""
    table = table_of({rate: [some] for rate, some in steps.items()})
    found = search_of((1.0, 3.0, 10.0)).find_lacking(table)
    wanted = tuple((NAMES[1], fine_rate(place)) for place in places)
    assert found == ({("sgd", 16): wanted} if places else {})


#: Of invented runs: what is judged at two looks, and what is run.
SHORT_JUDGED, SHORT_CASES = range(200, 210), (("sgd", 16), ("adam", 16))
FIRST_LOOK = SHORT_JUDGED[:5]
#: Place of the rate at which an invented arm learns fastest, and slope of its updates.
BEST, INVENTED_SLOPE = dict(zip(ARMS, (-8, -5, -1, 1, 5), strict=True)), 0.5
#: From the best rate on, so many places away, nothing is learned.
REACH = 7


def invented_setting(seed, setting, *_):
    """A run that takes the longer the farther its rate is from the best."""
    _, arm, _, rate = setting
    place = 8.0 * math.log10(rate)
    start, _ = np.random.default_rng([seed, [*ARMS].index(arm)]).random(2)
    luck = np.random.default_rng([seed, len(arm), int(100 * place + 5000)]).random()
    away, size = abs(place - BEST[arm]), math.exp(4.0 * start)
    steps = INF if away > REACH else 5.0 + 20.0 * round(away) + int(9 * luck)
    left = INF if steps == INF else luck
    found = (steps, left, size, rate * size**INVENTED_SLOPE)
    return dict(zip((*RUN, *OF_RUN), (*setting, seed, *found), strict=True))


def invented_runs(seed, optimiser, d_k, tried):
    """Some of them, as columns."""
    return columns(
        [invented_setting(seed, (optimiser, arm, d_k, rate)) for arm, rate in tried]
    )


def invented_line(arm, optimiser, d_k, rate, seed):
    """What was measured of a run, rounded as it is kept."""
    found = invented_setting(seed, (optimiser, arm, d_k, rate))
    return {name: float(f"{found[name]:.5g}") for name in OF_RUN}


def assert_reduced(steps, gradients):
    """Each number of a record by the runs that it is of, one at a time."""
    assert len(steps) == len(SHORT_CASES) * len(ARMS) * len(FIRST_LOOK)
    for line in steps.to_dict("records"):
        optimiser, arm = line["optimiser"], line["arm"]

        def at(rate, line=line, optimiser=optimiser, arm=arm):
            return invented_line(arm, optimiser, line["d_k"], rate, line["seed"])

        best = BEST[arm]
        coarse = RATES[optimiser]
        near = min(coarse, key=lambda rate: round(abs(8 * math.log10(rate) - best)))
        assert line["seed"] in FIRST_LOOK
        assert line["rate"] == fine_rate(best)
        assert line["steps"] == at(fine_rate(best))["steps"]
        assert line["final_loss"] == at(fine_rate(best))["final_loss"]
        assert line["steps_lower"] == at(fine_rate(best - 1))["steps"]
        assert line["steps_higher"] == at(fine_rate(best + 1))["steps"]
        assert line["steps_same_rate"] == at(fine_rate(BEST["sqrt"]))["steps"]
        assert line["steps_coarse"] == at(near)["steps"]
        assert line["rates"] == sum(at(rate)["steps"] < INF for rate in coarse)
    assert len(gradients) == len(SHORT_CASES) * len(FIRST_LOOK)
    for line in gradients.to_dict("records"):
        for arm in ARMS:
            run = invented_line(arm, line["optimiser"], line["d_k"], 1.0, line["seed"])
            assert line[arm] == run["gradient"]
        assert line[SLOPE] == pytest.approx(INVENTED_SLOPE, abs=1e-4)


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
    """All seeds; what is read is what was run, to five digits."""
    status, folder, ran = make()
    assert status == 0
    judged = [part[:3] for part in ran if part[0] >= SHORT_JUDGED[0]]
    first = [(seed, *case) for case in SHORT_CASES for seed in FIRST_LOOK]
    assert judged == first + first  # at fine rates, and at coarse ones
    tuning = [(seed, *case) for case in SHORT_CASES for seed in TUNING]
    assert [part[:3] for part in ran[: len(tuning)]] == tuning
    runs = [(*part[:3], *one) for part in ran for one in part[3]]
    assert len(runs) == len(set(runs))
    assert "204-adam-16, 10 of 10" in capsys.readouterr().out
    tables = {"steps.csv", "gradients.csv", "search.csv", "reference.csv"}
    assert set(contents(folder)) == {*tables, "record.json"}
    kept = read_record(folder)
    assert set(kept.by_arm) == {(o, a, 16) for o in RATES for a in ARMS}
    assert kept.about["configuration"]["steps"] == STEPS
    assert kept.about["seeds"] == {"tuning": [*TUNING], "judged": [*FIRST_LOOK]}
    assert kept.rescaled[0].weights == 0.0
    assert_reduced(kept.runs, kept.gradients)


def test_the_search_is_kept(make):
    """Of each rate that was tried, how many seeds learned, and their median steps."""
    _, folder, _ = make()
    table = pd.read_csv(folder / "search.csv")
    for line in table.to_dict("records"):
        names = line["arm"], line["optimiser"], line["d_k"], line["rate"]
        steps = [invented_line(*names, seed)["steps"] for seed in TUNING]
        assert line["learned"] == sum(one < INF for one in steps)
        assert line["median"] == np.median(steps)
    for (optimiser, arm, _), mine in table.groupby(ARM):
        places = [place_of(rate) for rate in mine["rate"] if is_fine(rate)]
        assert {*range(BEST[arm] - 4, BEST[arm] + 5)} <= {*places}
        assert {*RATES[optimiser]} <= {*mine["rate"]}


def test_interrupted_and_resumed_gives_the_same_bytes(make, monkeypatch):
    """Nothing is written meanwhile, and no finished seed is run again."""
    _, whole, ran = make("whole", "elsewhere")
    run, last = training.run_case, ran[-2]

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
    assert {last} <= {*after} <= {last, ran[-1]}
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
    more = [(seed, "sgd", 16) for seed in SHORT_JUDGED[5:]]
    assert [part[:3] for part in ran[-10:]] == more + more
    assert [part[1] for part in ran if part[0] in FIRST_LOOK].count("adam") == 10
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
            (optimiser, arm, d_k, rate, seed, *measured)
            for seed in (*TUNING, *JUDGED[: LOOKS[1]])
            for optimiser, d_k in CASES
            for arm in ARMS
            for start in [math.sqrt(d_k) if ARMS[arm] == "none" else 1.0]
            for away, rate in enumerate(beside(RATES[optimiser][0]), -1)
            for taken in [steps.get(arm, 22.0) + abs(away)]
            for measured in [(taken, 1e-4 * taken, start, rate * start)]
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

"""The layer that learns to retrieve, its record, and how it is made again."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from montecarlo.claims.training import (
    ARM,
    ARMS,
    CASE,
    D_K,
    LOOKS,
    RATES,
    SLOPE,
    SPACING,
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
    ALL_ARMS,
    CLOSE,
    EXPONENTS,
    FACTORS,
    JUDGED,
    SIDE,
    TUNING,
    Rates,
    choose_rates,
    columns,
    compare,
    configuration,
    find_undecided,
    fine_rate,
    main,
    make_starts,
    measure_rescaled,
    read_reference,
    reduce_runs,
    round_runs,
    run_settings,
    search_rates,
)
from tests.conftest import contents

pytestmark = pytest.mark.usefixtures("one_thread")


# --- Runs of a seed -------------------------------------------------------------------


def test_every_setting_is_run_from_the_same_start():
    """Before the first step the loss and gradient of an arm know no rate."""
    settings = [(*arm, rate) for arm in ALL_ARMS for rate in RATES[arm[0]]]
    runs = pd.DataFrame(run_settings(5, settings, steps=1))
    assert [*runs[SETTING].itertuples(index=False, name=None)] == settings
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
    assert choose_rates(table_of(steps, left)) == {NAMES: wanted}


@pytest.mark.parametrize("seeds", [TUNING[1:], [*TUNING, TUNING[0]]])
def test_every_tuning_seed_is_needed_once(seeds):
    """A choice on fewer would be another, and so would one that counts a seed twice."""
    runs = [table_of({1.0: [20]}), table_of({3.0: [10]}, seeds=seeds)]
    with pytest.raises(InputError, match="runs must have all seeds"):
        choose_rates(pd.concat(runs))


def test_fine_rates_are_an_eighth_of_a_decade_apart():
    """Four make half a decade, to three digits."""
    rates = [fine_rate(3.0, place) for place in range(-SIDE, SIDE + 1)]
    assert rates == [0.949, 1.27, 1.69, 2.25, 3.0, 4.0, 5.33, 7.11, 9.49]
    assert pytest.approx(1.3335, abs=1e-4) == SPACING


def fastest_at(best):
    """Tuning runs whose steps grow with the distance of a rate from the best one."""
    asked = []

    def run(stage, settings):
        asked.append((stage, [rate for *_, rate in settings]))
        away = {rate: abs(math.log(rate / best)) for *_, rate in settings}
        return table_of({rate: [10.0 + 100.0 * away[rate]] for rate in away})

    return run, asked


@pytest.mark.parametrize(
    ("best", "coarse", "fine", "stages"),
    [
        (3.1, 3.0, 3.0, 2),
        (1.9, 3.0, 1.69, 2),
        (5.2, 3.0, 5.33, 2),
        (20.0, 3.0, 22.5, 3),  # beyond the last coarse one
        (0.05, 1.0, 0.0562, 4),
    ],
)
def test_rates_are_searched_until_the_best_lies_between(best, coarse, fine, stages):
    """None is tried twice but the best coarse one; those beside the best were tried."""
    run, asked = fastest_at(best)
    found = search_rates(run, {"sgd": (1.0, 3.0)}, [NAMES])[NAMES]
    assert [stage for stage, _ in asked] == [
        "coarse",
        *(f"fine-{number}" for number in range(1, len(asked))),
    ]
    assert (found.coarse, found.fine, len(asked)) == (coarse, fine, stages)
    tried = [rate for _, rates in asked[1:] for rate in rates]
    assert len(tried) == len(set(tried)) == 2 * SIDE + 1 + SIDE * (stages - 2)
    place = sorted(tried).index(fine)
    assert (found.below, found.above) == (
        sorted(tried)[place - 1],
        sorted(tried)[place + 1],
    )


#: Of invented runs: what is judged at two looks, and what is run.
SHORT_JUDGED, SHORT_CASES = range(200, 210), (("sgd", 16), ("adam", 16))
SHORT_ARMS = tuple((o, arm, d) for o, d in SHORT_CASES for arm in ARMS)
FIRST_LOOK = SHORT_JUDGED[:5]
#: Place of the coarse rate near which an invented arm learns fastest, how far the best
#: one is above it, and slope of its updates.
BEST, ABOVE_BEST, INVENTED_SLOPE = {arm: 2 - (arm == "none") for arm in ARMS}, 1.4, 0.5


def invented_setting(seed, setting, _steps=0):
    """A line of a run: of rates near the best one, which learn, of others, of none."""
    optimiser, arm, d_k, rate = setting
    rng = np.random.default_rng([seed, d_k, [*ARMS].index(arm)])
    start, luck = math.exp(4.0 * float(rng.random())), float(rng.random())
    away = abs(math.log(rate / (ABOVE_BEST * RATES[optimiser][BEST[arm]])))
    steps = INF if away > 1.5 else 10 + int(40 * away + 3 * luck)
    found = (steps, INF if away > 3.0 else luck, start, rate * start**INVENTED_SLOPE)
    return dict(zip((*RUN, *OF_RUN), (*setting, seed, *found), strict=True))


def invented_runs(seed, settings):
    """The same of several, as columns."""
    return columns([invented_setting(seed, one) for one in settings])


#: What a search must find of these.
FOUND = {
    arm: Rates(coarse, *(fine_rate(coarse, place) for place in (1, 0, 2)))
    for arm in SHORT_ARMS
    for coarse in [RATES[arm[0]][BEST[arm[1]]]]
}


def test_runs_are_reduced_to_what_is_judged():
    """Each number by a loop over raw lines; of a second look only what is compared."""
    always = {
        arm: {FOUND[arm].fine, FOUND[arm[0], "sqrt", arm[2]].fine} for arm in FOUND
    }
    raw = [
        invented_setting(seed, (*arm, rate))
        for seed in SHORT_JUDGED
        for arm in SHORT_ARMS
        for rate in always[arm]
        | ({*RATES[arm[0]], *FOUND[arm]} if seed in FIRST_LOOK else set())
    ]
    table = pd.DataFrame(raw).sample(frac=1.0, random_state=1)
    steps, search, gradients = reduce_runs(round_runs(table), FOUND)

    def mine(line):
        return {
            one["rate"]: one
            for one in raw
            if all(one[name] == line[name] for name in (*ARM, "seed"))
        }

    assert len(steps) == len(SHORT_ARMS) * len(SHORT_JUDGED)
    for line in steps.to_dict("records"):
        arm = tuple(line[name] for name in ARM)
        runs, rates = mine(line), FOUND[arm]
        assert line["rate"] == rates.fine
        assert line["steps"] == runs[rates.fine]["steps"]
        assert line["final_loss"] == pytest.approx(
            runs[rates.fine]["final_loss"], rel=1e-4
        )
        other = FOUND[arm[0], "sqrt", 16].fine
        assert line["steps_same_rate"] == runs[other]["steps"]
    assert len(search) == len(SHORT_ARMS) * len(FIRST_LOOK)
    for line in search.to_dict("records"):
        arm = tuple(line[name] for name in ARM)
        runs, rates = mine(line), FOUND[arm]
        assert line["coarse_rate"] == rates.coarse
        for name in ("coarse", "below", "above"):
            assert line[f"steps_{name}"] == runs[getattr(rates, name)]["steps"]
        assert line["rates"] == sum(runs[r]["steps"] < INF for r in RATES[arm[0]])
    assert len(gradients) == len(SHORT_CASES) * len(SHORT_JUDGED)
    for line in gradients.to_dict("records"):
        for one in raw:
            if all(one[name] == line[name] for name in (*CASE, "seed")):
                assert line[one["arm"]] == pytest.approx(one["gradient"], rel=1e-4)
        assert line[SLOPE] == pytest.approx(INVENTED_SLOPE, rel=1e-4)


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Make a record of invented runs; returns status, its folder and what was run."""
    ran = []

    def run_invented(seed, settings):
        ran.append((seed, settings))
        return invented_runs(seed, settings)

    same = Rescaled("sgd", 16, 4.0, 100, 0.0, 0.0)
    monkeypatch.setattr(training, "JUDGED", SHORT_JUDGED)
    monkeypatch.setattr(training, "LOOKS", (5, 10))
    monkeypatch.setattr(training, "ALL_ARMS", SHORT_ARMS)
    monkeypatch.setattr(training, "find_undecided", lambda *_: [])
    monkeypatch.setattr(training, "run_settings", run_invented)
    monkeypatch.setattr(training, "run_setting", invented_setting)
    monkeypatch.setattr(training, "make_executor", ThreadPoolExecutor)
    monkeypatch.setattr(training, "measure_rescaled", lambda: [same])

    def make(name="record", work="work"):
        before = len(ran)
        folders = ["--work", tmp_path / work, "--output", tmp_path / name]
        status = main(["--jobs", "1", *map(str, folders)])
        return status, tmp_path / name, ran[before:]

    return make


def test_the_record_is_made_and_read(make, capsys):
    """Rates on tuning seeds, then judged ones; what is read is what was run."""
    status, folder, ran = make()
    assert status == 0
    assert [seed for seed, _ in ran] == [*TUNING, *TUNING, *FIRST_LOOK]
    assert "training judged-5: 204, 5 of 5" in capsys.readouterr().out
    tables = {"steps.csv", "search.csv", "gradients.csv", "reference.csv"}
    assert set(contents(folder)) == {*tables, "record.json"}
    kept = read_record(folder)
    assert set(kept.by_arm) == set(SHORT_ARMS)
    assert kept.about["configuration"]["steps"] == STEPS
    assert kept.about["seeds"] == {"tuning": [*TUNING], "judged": [*FIRST_LOOK]}
    assert kept.rescaled[0].weights == 0.0
    runs = [pd.DataFrame(invented_runs(*part)) for part in ran[2 * len(TUNING) :]]
    steps, search, gradients = reduce_runs(round_runs(pd.concat(runs)), FOUND)
    pd.testing.assert_frame_equal(kept.runs, steps, check_dtype=False)
    pd.testing.assert_frame_equal(kept.search, search, check_dtype=False)
    pd.testing.assert_frame_equal(kept.gradients, gradients, check_dtype=False)


def test_interrupted_and_resumed_gives_the_same_bytes(make, monkeypatch):
    """Nothing is written meanwhile, and no finished seed is run again."""
    _, whole, _ = make("whole", "elsewhere")
    run = training.run_settings

    def interrupted(seed, settings):
        if seed == SHORT_JUDGED[3]:
            raise KeyboardInterrupt
        return run(seed, settings)

    monkeypatch.setattr(training, "run_settings", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make()
    monkeypatch.setattr(training, "run_settings", run)
    status, folder, after = make()
    assert status == 0
    assert {203} <= {seed for seed, _ in after} <= {203, 204}
    assert contents(folder) == contents(whole)
    assert make()[2] == []


def test_seeds_double_where_a_check_is_open(make, monkeypatch):
    """One optimiser's; what was decided is not run again, and no look is added."""
    asked = []

    def find(table, chosen, among):
        asked.append((len(set(table["seed"])), chosen, set(among)))
        return [("sgd", 16)]

    monkeypatch.setattr(training, "find_undecided", find)
    _, folder, ran = make()
    assert [seed for seed, _ in ran[-5:]] == [*SHORT_JUDGED[5:]]
    for _, settings in ran[-5:]:
        assert {(o, d) for o, _, d, _ in settings} == {("sgd", 16)}
        assert {arm[3] for arm in settings} == {
            FOUND[one].fine for one in FOUND if one[0] == "sgd"
        }
    assert asked == [(5, FOUND, set(SHORT_CASES))]
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
    chosen = {
        arm: Rates(rate, rate, fine_rate(rate, -1), fine_rate(rate, 1))
        for arm in ALL_ARMS
        for rate in [RATES[arm[0]][1]]
    }
    runs = pd.DataFrame(
        [
            (*arm, rate, seed, *measured)
            for seed in JUDGED[: LOOKS[1]]
            for arm in ALL_ARMS
            for rate in {*RATES[arm[0]], *chosen[arm]}
            for start in [math.sqrt(arm[2]) if ARMS[arm[1]] == "none" else 1.0]
            for measured in [(steps.get(arm[1], 22.0), 0.01, start, rate * start)]
        ],
        columns=[*RUN, *OF_RUN],
    )
    cases = {(arm[0], arm[2]) for arm in ALL_ARMS}
    assert [case for case in find_undecided(runs, chosen, cases) if case[1] == 16] == []
    mine = runs["optimiser"].eq("adam") & runs["d_k"].eq(16) & runs["arm"].eq("sqrt")
    runs.loc[mine & runs["seed"].mod(2).eq(0), "steps"] = np.inf
    assert find_undecided(runs, chosen, [("sgd", 16), ("adam", 16)]) == [("adam", 16)]


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

"""What pages show of training, from a record of a test's own: four runs an arm."""

import csv
import math
from statistics import median

import numpy as np
import pandas as pd
import pytest

from montecarlo.claims.training import (
    ARM,
    ARMS,
    CASE,
    MEASURED,
    RATES,
    SEARCHED,
    SLOPE,
    SPACING,
    Record,
    Rescaled,
)
from montecarlo.report.content.training import (
    LANGUAGE_FOLDER,
    median_with_ends,
    read_language,
    share_with_ends,
    view_language,
    view_training,
)

D_K, TUNING, JUDGED = (16, 64), [0, 1], [100, 101, 102, 103]
FAST, SLOW = 1.0, 2.0
NEVER = math.inf


def record_of(steps, *, final_loss=0.01, exact=0.0):
    """Make a record in which the seeds of each arm take so many steps."""
    runs = [
        (optimiser, arm, d_k, seed, FAST, n, final_loss, n)
        for optimiser in RATES
        for arm in ARMS
        for d_k in D_K
        for seed, n in zip(JUDGED, steps, strict=True)
    ]
    search = [(*run[:4], FAST, run[5], 1.1 * run[5], NEVER, 1) for run in runs]
    gradients = [
        (o, d_k, seed, *[0.5] * len(ARMS), 1.0)
        for o in RATES
        for d_k in D_K
        for seed in JUDGED
    ]
    rescaled = tuple(
        Rescaled(o, 16, c, 100, exact if c == 4.0 else 1e-12, 1.234e-13)
        for o in RATES
        for c in (3.0, 4.0)
    )
    configuration = {"steps": 300, "learned": 0.1, "n_keys": 32, "n_queries": 16}
    configuration |= {"d_k": D_K, "rates": dict.fromkeys(RATES, (FAST, SLOW))}
    configuration |= {"looks": (4, 8, 16), "spacing": SPACING}
    seeds = {"tuning": TUNING, "judged": JUDGED}
    return Record(
        pd.DataFrame(runs, columns=[*ARM, "seed", *MEASURED]),
        pd.DataFrame(search, columns=[*ARM, "seed", *SEARCHED]),
        pd.DataFrame(gradients, columns=[*CASE, "seed", *ARMS, SLOPE]),
        rescaled,
        {"configuration": configuration, "seeds": seeds},
    )


def line_of(view, *wanted):
    """The one line of an optimiser, an arm and a d_k."""
    (line,) = (x for x in view.lines if (x.optimiser, x.arm, x.d_k) == wanted)
    return line


def test_a_line_is_of_the_seeds_of_an_arm():
    """Rate, steps and share; and what the spacing of rates makes."""
    view = view_training(record_of((10.0, 20.0, 30.0, NEVER)))
    assert len(view.lines) == len(RATES) * len(ARMS) * len(D_K)
    line = line_of(view, "sgd", "sqrt", 64)
    assert (line.rate, line.share[0]) == (FAST, 0.75)
    assert view.spacing == pytest.approx(1.1)
    assert line.steps == (25.0, None, None)  # four seeds have no interval
    assert (line.learned, line.seeds) == (3, 4)
    assert view.count("sgd", "sqrt") == (6, 8)
    assert view.tuning == 2


def test_median_beyond_the_budget_is_no_number():
    """Where half of the seeds never get there, nothing is said but that."""
    view = view_training(record_of((10.0, NEVER, NEVER, NEVER)))
    line = line_of(view, "adam", "none", 16)
    assert line.steps[0] is None


def test_equal_to_the_bit_is_said_of_what_is():
    """A factor whose weights are off by anything is not among the exact ones."""
    theorem = view_training(record_of((1.0,) * 4)).theorem
    assert (theorem.exact, theorem.others) == ((4.0,), (3.0,))
    assert theorem.off_sgd == theorem.off_adam == 1.3e-13  # a bound is rounded up
    assert view_training(record_of((1.0,) * 4, exact=1e-17)).theorem.exact == ()


def test_interval_of_a_median_is_two_seeds():
    """Of 48 seeds the 17th and the 32nd: as binomial tables have it."""
    steps = np.random.default_rng(1).permutation(np.arange(1.0, 49.0))
    assert median_with_ends(steps) == (24.5, 17.0, 32.0)
    steps[steps > 30.0] = NEVER
    assert median_with_ends(steps) == (24.5, 17.0, None)


def test_share_of_all_seeds_has_an_end_below_one():
    """Of 48 of 48 seeds it is 0.025 to the power 1/48."""
    share, low, high = share_with_ends(48, 48)
    assert (share, high) == (1.0, 1.0)
    assert low == pytest.approx(0.025 ** (1 / 48), rel=1e-9)


def test_language_lines_are_those_of_the_record():
    """Of the language model, each number by a loop over lines of the record."""
    record = read_language()
    view = view_language(record)
    with (LANGUAGE_FOLDER / "language.csv").open(encoding="utf-8", newline="") as file:
        runs = list(csv.DictReader(file))
    assert view.seeds == len(record.about["seeds"]["judged"])
    for line in view.lines:
        setting = (line.arm, str(line.d_k), line.rate)
        mine = [
            one
            for one in runs
            if (one["arm"], one["d_k"], float(one["rate"])) == setting
        ]
        steps = [float(one["steps"]) for one in mine if one["steps"]]
        held_out = [float(one["held_out"]) for one in mine]
        assert len(mine) == view.seeds
        assert line.learned == len(steps)
        expected = median(steps) if len(steps) == len(mine) else None
        assert line.steps == expected or len(steps) not in (0, len(mine))
        assert line.held_out == (median(held_out), min(held_out), max(held_out))
    for arm in ("none", "sqrt", "linear"):
        mine = [line.learned for line in view.lines if line.arm == arm]
        sizes = {line.d_k for line in view.lines}
        assert view.count(arm) == (sum(mine), len(sizes) * view.seeds)


def test_the_language_record_is_whole():
    """All arms with all seeds, of which 16 are judged, on others than are tuned."""
    found = read_language()
    sizes, seeds = found.about["configuration"], found.about["seeds"]
    assert not set(seeds["tuning"]) & set(seeds["judged"])
    assert len(seeds["judged"]) == 16
    arms = dict(iter(found.runs.groupby(["arm", "d_k"])))
    assert set(arms) == {(arm, d_k) for arm in sizes["arms"] for d_k in sizes["d_k"]}
    for runs in arms.values():
        assert sorted(runs["seed"]) == seeds["judged"]
        (rate,), (coarse,) = set(runs["rate"]), set(runs["coarse_rate"])
        assert coarse in sizes["rates"]
        assert round(math.log(rate / coarse, sizes["spacing"]), 1) % 1.0 == 0.0

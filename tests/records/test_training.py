"""The training records: rates are chosen on seeds that are not judged; all is there."""

import json
import math
import shutil

import numpy as np
import pandas as pd
import pytest

from montecarlo.errors import InputError
from montecarlo.records.training import (
    ARMS,
    CASE,
    D_K,
    FOLDER,
    LOOKS,
    MEASURED,
    RATES,
    RUN,
    SETTING,
    choose_rates,
    read_language,
    read_record,
    require_paired,
)

INF = np.inf
TUNING, JUDGED = range(12), range(200, 248)
NAMES = ("sgd", "sqrt", 16)


def table_of(steps, left=None, seeds=TUNING):
    """Runs of one arm; steps, and what is left of the loss, by rate."""
    left = left or {}
    lines = [
        (*NAMES, rate, seed, some[seed % len(some)], left.get(rate, 0.0), 1.0, 1.0)
        for rate, some in steps.items()
        for seed in seeds
    ]
    return pd.DataFrame(lines, columns=[*RUN, *MEASURED])


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


def test_every_tuning_seed_is_needed():
    """A choice on fewer would be another."""
    with pytest.raises(InputError, match="runs must have all seeds 0 to 11"):
        choose_rates(table_of({1.0: [20]}, seeds=TUNING[1:]), TUNING)


def test_what_is_not_compared_may_have_other_seeds():
    """More seeds with one optimiser and d_k, and the tuning seeds in each."""
    one, other = table_of({1.0: [20]}), table_of({1.0: [20]}).assign(d_k=64)
    more = table_of({1.0: [20]}, seeds=JUDGED)
    require_paired(pd.concat([one, other, more]))
    with pytest.raises(InputError, match="runs must have all seeds 0 to 11"):
        choose_rates(pd.concat([one, other[1:]]), TUNING)


@pytest.mark.parametrize("change", ["missing", "other", "twice"])
def test_unpaired_seeds_are_refused(change):
    """A seed that one setting lacks, has of its own, or has twice."""
    table = table_of({1.0: [20], 3.0: [10]})
    require_paired(table)
    if change == "missing":
        table = table[1:]
    elif change == "other":
        table.loc[0, "seed"] = 99
    else:
        table = pd.concat([table, table[:1]])
    with pytest.raises(InputError, match="the same seeds in all arms"):
        require_paired(table)


# --- The record of the package --------------------------------------------------------


def test_the_record_is_whole():
    """All settings with all seeds, curves at the rates that are chosen now."""
    kept = read_record()
    cases = dict(iter(kept.runs.groupby(CASE)))
    assert len(cases) == len(D_K) * len(RATES)
    for (optimiser, _), some in cases.items():
        seeds, settings = set(some["seed"]), len(ARMS) * len(RATES[optimiser])
        assert len(some) == settings * len(seeds)
        assert len(seeds) - len(TUNING) in LOOKS
        assert seeds == {*TUNING, *range(200, 200 + len(seeds) - len(TUNING))}
    assert kept.runs[RUN].equals(kept.runs[RUN].sort_values(RUN, ignore_index=True))
    assert not set(kept.seeds["tuning"]) & set(kept.seeds["judged"])
    assert len(kept.judged) == (~kept.runs["seed"].isin(TUNING)).sum()
    drawn = kept.losses[SETTING].drop_duplicates().itertuples(index=False)
    assert {tuple(one[:3]): one[3] for one in drawn} == kept.chosen
    assert not kept.losses.isna().any(axis=None)
    # what is before the first step has no rate
    starts = kept.runs.groupby(["arm", "d_k", "seed"])["gradient"].nunique()
    assert set(starts) == {1}


def test_the_record_has_the_theorem():
    """To the bit for powers of 4 and gradient descent, by rounding for the others."""
    rescaled = read_record().rescaled
    exact = [
        one for one in rescaled if one.optimiser == "sgd" and one.factor in {4, 16}
    ]
    assert {(one.weights, one.loss) for one in exact} == {(0.0, 0.0)}
    assert {one.factor for one in rescaled} == {3, 4, 10, 16}
    assert max(one.loss for one in rescaled) < 5e-7


@pytest.mark.parametrize("planted", ["everywhere", "in one arm", "announced"])
def test_a_missing_seed_is_refused(planted, tmp_path):
    """Whether all runs of it are gone, one arm's, or it was never run."""
    shutil.copytree(FOLDER, folder := tmp_path / "record")
    table = pd.read_csv(folder / "runs.csv")
    gone = table["seed"] == 203
    if planted == "in one arm":
        gone &= table["arm"] == "sqrt"
    if planted == "announced":
        content = json.loads((folder / "record.json").read_text(encoding="utf-8"))
        content["seeds"]["judged"].append(999)
        (folder / "record.json").write_text(json.dumps(content), encoding="utf-8")
    else:
        table[~gone].to_csv(folder / "runs.csv", index=False)
    with pytest.raises(InputError, match="runs must have"):
        read_record(folder)


def test_a_record_that_is_not_there(tmp_path):
    """It is said which, in a line."""
    with pytest.raises(InputError, match="record must be a readable file"):
        read_record(tmp_path / "nowhere")


def test_the_language_record_is_whole():
    """All settings with all seeds, of which 8 are judged, on others than are tuned."""
    found, sizes = read_language(), read_language().about["configuration"]
    tuning, judged = found.seeds["tuning"], found.seeds["judged"]
    assert not set(tuning) & set(judged)
    assert len(judged) >= 8
    per_seed = math.prod(len(sizes[name]) for name in ("arms", "d_k", "rates"))
    assert len(found.runs) == per_seed * len((*tuning, *judged))
    arms = {("adam", arm, d_k) for arm in sizes["arms"] for d_k in sizes["d_k"]}
    assert set(found.chosen) == arms

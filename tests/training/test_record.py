"""The record of training: rates chosen on seeds of their own, files that say it all."""

import numpy as np
import pandas as pd
import pytest

from montecarlo.errors import InputError
from montecarlo.training import record
from montecarlo.training.arms import ARMS, D_K, JUDGED, RATES, TUNING
from montecarlo.training.record import (
    RUN,
    SETTING,
    choose_rates,
    read_record,
    require_paired,
    summarise_losses,
    training_digest,
)

INF = np.inf
NAMES = ("sgd", "sqrt", 16)


def table_of(steps, left=None, seeds=TUNING):
    """Runs of one arm; steps, and what is left of the loss, by rate."""
    left = left or {}
    lines = [
        (*NAMES, rate, seed, some[seed % len(some)], left.get(rate, 0.0), 1.0, 1.0)
        for rate, some in steps.items()
        for seed in seeds
    ]
    return pd.DataFrame(lines, columns=[*RUN, *record.MEASURED])


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


def test_no_judged_seed_moves_a_choice():
    """Whatever became of them; and they are not those that choose."""
    tuning = table_of({1.0: [20], 3.0: [10]})
    judged = table_of({1.0: [1], 3.0: [INF]}, {3.0: INF}, JUDGED)
    assert choose_rates(pd.concat([judged, tuning, judged])) == choose_rates(tuning)
    assert not set(TUNING) & set(JUDGED)


def test_every_tuning_seed_is_needed():
    """A choice on fewer would be another."""
    with pytest.raises(InputError, match="runs must have all seeds 0 to 11"):
        choose_rates(table_of({1.0: [20]}, seeds=TUNING[1:]))


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


def test_quantiles_are_those_of_judged_seeds():
    """Every fifth step, at the chosen rate; infinite where too many have diverged."""
    table = pd.concat(
        [table_of({1.0: [20], 3.0: [10]}, seeds=some) for some in (TUNING, JUDGED)]
    )
    losses = np.zeros((len(table), 11), dtype=np.float32)
    wanted = (table["seed"].isin(JUDGED) & (table["rate"] == 3.0)).to_numpy()
    losses[wanted] = np.arange(len(JUDGED))[:, np.newaxis]
    losses[np.flatnonzero(wanted)[24:], 10] = np.inf
    found = summarise_losses(table, losses, {NAMES: 3.0})
    assert found["step"].tolist() == [0, 5, 10]
    assert set(found["rate"]) == {3.0}
    ranks = np.quantile(np.arange(len(JUDGED)), [0.1, 0.5, 0.9])
    np.testing.assert_allclose(found.loc[1, ["q10", "median", "q90"]].tolist(), ranks)
    assert found.loc[2, ["q10", "median", "q90"]].tolist() == [ranks[0], INF, INF]


def test_the_digest_is_of_code(monkeypatch, tmp_path):
    """Another number is other code; a comment and a docstring are not."""
    before, package = training_digest(), record.FOLDER.parent
    texts = {
        name: (package / f"{name}.py").read_text(encoding="utf-8")
        for name in record.CODE
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(record, "FOLDER", tmp_path / "recorded")
    path, text = tmp_path / "arms.py", texts["arms"]
    for old, new, same in (
        ("", "", True),
        ("LEARNED = 0.1", "LEARNED = 0.2", False),
        ("range(200, 248)", "range(200, 249)", False),
        ("#: A run has learned", "#: It is known", True),
        ("A divisor with an initialisation.", "Other words.", True),
    ):
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        assert (training_digest() == before) == same


# --- The record of the package --------------------------------------------------------


def test_the_record_is_not_stale():
    """Where this fails, what is trained has changed: ``python -m montecarlo train``
    makes the record anew.
    """
    assert read_record().about["code"] == training_digest()


def test_the_record_is_whole():
    """All settings with all seeds, curves at the rates that are chosen now."""
    kept = read_record()
    settings = len(ARMS) * len(D_K) * sum(map(len, RATES.values()))
    assert len(kept.runs) == settings * (len(TUNING) + len(JUDGED))
    assert kept.runs[RUN].equals(kept.runs[RUN].sort_values(RUN, ignore_index=True))
    assert kept.seeds == {"tuning": (*TUNING,), "judged": (*JUDGED,)}
    assert len(kept.judged) == settings * len(JUDGED)
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

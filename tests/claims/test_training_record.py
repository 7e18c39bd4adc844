"""The record of training: all of its seeds, and small enough to ship."""

import math

import pytest

from montecarlo.claims.training import (
    ARM,
    ARMS,
    CASE,
    D_K,
    FOLDER,
    LOOKS,
    MEASURED,
    RATES,
    SEARCHED,
    SLOPE,
    SPACING,
    read_record,
)
from montecarlo.errors import InputError

#: Bytes of all files.
MOST = 300_000


def test_the_record_is_whole():
    """All arms with all seeds, each at a rate that was tried, none of them tuned on."""
    kept = read_record()
    assert [*kept.runs] == [*ARM, "seed", *MEASURED]
    assert [*kept.search] == [*ARM, "seed", *SEARCHED]
    assert [*kept.gradients] == [*CASE, "seed", *ARMS, SLOPE]
    assert set(kept.by_arm) == {(o, a, d) for o in RATES for a in ARMS for d in D_K}
    assert set(kept.by_case) == {(o, d) for o in RATES for d in D_K}
    tuning = set(kept.about["seeds"]["tuning"])
    for (optimiser, arm, d_k), runs in kept.by_arm.items():
        assert len(runs) in LOOKS
        assert [*runs.index] == [*range(200, 200 + len(runs))]
        assert [*kept.by_case[optimiser, d_k].index] == [*runs.index]
        assert tuning.isdisjoint(runs.index)
        search = kept.search_by_arm[optimiser, arm, d_k]
        assert [*search.index] == [*range(200, 200 + LOOKS[0])]
        (rate,), (coarse,) = set(runs["rate"]), set(search["coarse_rate"])
        assert coarse in RATES[optimiser]
        places = math.log(rate / coarse, SPACING)
        assert places == pytest.approx(round(places), abs=0.02)  # three digits
        assert search["rates"].between(0, len(RATES[optimiser])).all()
    # what is before the first step has no optimiser
    starts = kept.gradients.groupby(["d_k", "seed"])[[*ARMS]].nunique()
    assert set(starts.to_numpy().ravel()) == {1}
    same = kept.runs[kept.runs["arm"].eq("sqrt")]
    assert same["steps"].equals(same["steps_same_rate"])


def test_the_record_has_the_theorem():
    """To the bit for powers of 4 and gradient descent, by rounding for the others."""
    rescaled = read_record().rescaled
    exact = [
        one for one in rescaled if one.optimiser == "sgd" and one.factor in {4, 16}
    ]
    assert {(one.weights, one.loss) for one in exact} == {(0.0, 0.0)}
    assert {one.factor for one in rescaled} == {3, 4, 10, 16}
    assert max(one.loss for one in rescaled) < 5e-7


def test_a_record_that_is_not_there(tmp_path):
    """It is said which, in a line."""
    with pytest.raises(InputError, match="record must be a readable file"):
        read_record(tmp_path / "nowhere")


def test_the_record_is_small():
    """It ships with the package."""
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < MOST

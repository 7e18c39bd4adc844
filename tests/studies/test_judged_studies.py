"""Whole studies: draws are shared, truths are means, and errors are counted."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from montecarlo.study.presets import Grid
from studies import judged_studies
from studies.judged_studies import (
    ERROR_RATES,
    OUTCOMES,
    JudgedStudy,
    Remembering,
    judge_studies,
    judge_study,
    tally,
    truths,
)

GRID = Grid(
    d_k=(16, 64),
    n_keys=(32,),
    distributions=("rademacher",),
    distribution_d_k=(16,),
    first=16,
    most=32,
)
SUPPORTED, REFUTED, OPEN = map(OUTCOMES.index, ("supported", "refuted", "undecided"))


def study_of(estimates, half, outcomes):
    """A study with one case per estimate, all regions 0.9 to 1.1."""
    estimates = np.array(estimates)
    region = np.tile([0.9, 1.1], (len(estimates), 1))
    return JudgedStudy(
        estimates, estimates - half, estimates + half, region, np.array(outcomes)
    )


def test_nothing_is_drawn_twice():
    """What was asked for once is answered from memory."""
    calls = []
    executor = Remembering()
    for _ in range(3):
        assert executor.submit(calls.append, 7).result() is None
    assert calls == [7]


@pytest.mark.slow
def test_error_rates_see_the_same_draws():
    """At a larger error rate cases are decided sooner; where both took the same
    replicates the estimates are equal, and the intervals are narrower.
    """
    found = judge_study(3, GRID)
    loose, strict = (found[rate] for rate in sorted(ERROR_RATES, reverse=True))
    there = np.isfinite(strict.estimate) & (loose.estimate == strict.estimate)

    assert there.sum() > 50
    assert (loose.low[there] >= strict.low[there]).all()
    assert (loose.high[there] <= strict.high[there]).all()


@pytest.mark.slow
def test_studies_are_kept(tmp_path, monkeypatch):
    """A study that the folder has is read, not drawn."""
    monkeypatch.setattr(judged_studies, "quick_grid", lambda: GRID)
    with ThreadPoolExecutor(1) as executor:
        first = judge_studies([1, 2], executor, tmp_path)
        monkeypatch.setattr(judged_studies, "judge_study", pytest.fail)
        again = judge_studies([1, 2], executor, tmp_path)

    for rate in ERROR_RATES:
        for one, other in zip(first[rate], again[rate], strict=True):
            assert np.array_equal(one.outcome, other.outcome)


def test_truth_is_the_mean_and_may_lie_too_near_an_edge():
    """A truth four of its errors clear of every edge is known to lie on one side."""
    studies = [
        study_of([1.0 + s, 1.1 + s], 0.01, [SUPPORTED, OPEN]) for s in (-0.01, 0.01)
    ]
    truth, known = truths(studies)

    assert truth == pytest.approx([1.0, 1.1])
    assert known.tolist() == [True, False]


def test_errors_are_counted_by_study():
    """A study errs once, however many of its intervals miss or cases are wrong."""
    right = [study_of([1.0, 1.3], 0.05, [SUPPORTED, REFUTED]) for _ in range(8)]
    missing = study_of([1.06, 1.36], 0.05, [SUPPORTED, REFUTED])
    wrong = study_of([1.0, 1.3], 0.05, [REFUTED, OPEN])
    found = tally(0.2, [*right, missing, wrong])

    assert (found.studies, found.missed, found.wrong) == (10, 1, 1)
    assert found.cases == 2
    assert found.undecided == pytest.approx(1 / 20)

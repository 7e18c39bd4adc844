"""z scores of finished studies are judged: right ones pass, planted errors do not."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from montecarlo.attention import quantities
from montecarlo.claims import z_scores as module
from montecarlo.claims.running import Study, run_study
from montecarlo.claims.schema import Catalogue
from montecarlo.claims.z_scores import (
    FALSE_ALARM,
    FEWEST,
    judge_z_scores,
    largest_limit,
    mean_square_limits,
    z_scores,
)
from montecarlo.study.presets import Grid

GRID = Grid(
    d_k=(1, 4, 16, 64),
    n_keys=(32,),
    distributions=("rademacher", "uniform", "laplace"),
    distribution_d_k=(16, 64),
    distribution_n_keys=(32,),
    divisors=("none", "sqrt"),
    first=128,
    most=128,
    every_row=True,
)


@pytest.mark.parametrize(("factor", "outcome"), [(1.0, "supported"), (1.04, "refuted")])
def test_biased_variance_is_seen(monkeypatch, factor, outcome):
    """A variance that is 4 % too large is, though its tolerance is 5 %; a right one is
    not refuted.  Both at any seed: 4 % are eight standard errors and more at d_k = 64.
    """
    right = quantities.PAIR_QUANTITIES["score_variance"]

    def biased(means, d_k):
        return factor * right.evaluate(means, d_k)

    wrong = replace(right, evaluate=biased)
    monkeypatch.setitem(quantities.PAIR_QUANTITIES, "score_variance", wrong)
    with ThreadPoolExecutor(2) as executor:
        record = run_study(Study(Catalogue(), GRID, 35), executor).claims.z_scores
    assert record.outcome == outcome


def made_up(n_points, n_each, rng, factor=1.0, shared=1.0):
    """A table of measurements with as many z scores, of which a part is shared."""
    common = rng.standard_normal((n_points, 1))
    own = rng.standard_normal((n_points, n_each))
    z = factor * (math.sqrt(shared) * common + math.sqrt(1.0 - shared) * own)
    table = pd.DataFrame(
        {
            "estimate": 3.0 + 0.5 * z.ravel(),
            "reference": 3.0,
            "reference_error": 0.0,
            "std_error": 0.5,
            "ci_low": 0.0,
            "ci_high": 9.0,
            "n_replicates": 10**6,
            "n_queries": 1,
            "quantity": "entropy",
            "distribution_q": "gaussian",
            "distribution_k": "gaussian",
            "normalisation": "none",
            "mask": "none",
            "dependence": "none",
            "initialisation": "",
            "d_k": np.repeat(np.arange(n_points), n_each),
            "n_keys": 8,
        }
    )
    return table.astype({"n_keys": "Int64"})


def test_limits_hold_their_rate(monkeypatch):
    """Of mean squares of scores that are all the same within points of unequal sizes,
    as many lie outside the limits as these say; a rate of 0.01 for 4,000 samples, so
    that twice as many are beyond six standard errors.
    """
    monkeypatch.setattr(module, "FALSE_ALARM", 0.02)  # of all four sides
    sizes = np.repeat([1.0, 5.0, 20.0], [40, 40, 40])
    rng = np.random.default_rng(5)
    squares = np.square(rng.standard_normal((4000, len(sizes))))
    means = (squares * sizes).sum(axis=1) / sizes.sum()

    low, high = mean_square_limits(sizes)

    assert 0.0 < np.mean((means < low) | (means > high)) < 0.02
    assert low < 1.0 < high


@pytest.mark.parametrize("z", [7.0, -7.0])
def test_largest_alone_is_judged(z):
    """One score far out, on either side, is refuted where the mean square is not."""
    table = made_up(200, 5, np.random.default_rng(7), shared=0.3)
    assert judge_z_scores(table).outcome == "supported"

    table.loc[3, "estimate"] = 3.0 + 0.5 * z
    record = judge_z_scores(table)
    assert record.outcome == "refuted"
    assert record.mean_square < record.mean_square_high
    assert record.largest == pytest.approx(7.0, rel=1e-3)


@pytest.mark.parametrize("factor", [0.5, 1.6])
def test_wrong_errors_are_refuted_on_both_sides(factor):
    """Standard errors that are too large are as wrong as those that are too small."""
    table = made_up(200, 5, np.random.default_rng(8), factor=factor, shared=0.3)
    record = judge_z_scores(table)
    assert record.outcome == "refuted"
    inside = record.mean_square_low <= record.mean_square <= record.mean_square_high
    assert not inside


def test_degrees_of_freedom_count():
    """Few replicates make large distances common: a score is what its tail says."""
    table = made_up(1, 1, np.random.default_rng(9))
    table["estimate"], table["n_replicates"] = 3.0 - 0.5 * 6.0, FEWEST
    (z,) = z_scores(table)["z"]
    exact = scipy.stats.norm.ppf(scipy.stats.t.cdf(-6.0, FEWEST - 1))
    assert z == pytest.approx(exact)
    assert abs(z) < 5.0

    table["n_replicates"] = FEWEST - 1
    assert z_scores(table).empty

    table["estimate"] = 3.0 - 0.5 * 701.0
    table["n_replicates"] = 1000
    assert z_scores(table)["z"].between(-38.0, -30.0).all()  # finite


def test_limit_of_the_largest_is_bonferronis():
    """A quarter of the false alarms on each side, divided by the number of scores."""
    exact = scipy.stats.norm.isf(FALSE_ALARM / 4.0 / 1000)
    assert largest_limit(1000) == pytest.approx(exact)
    assert largest_limit(1000) < largest_limit(5000) < 6.0


def test_error_of_a_reference_counts():
    """A reference that is known to no better than an estimate makes a score smaller."""
    table = made_up(1, 1, np.random.default_rng(9)).assign(estimate=4.0)
    (alone,) = z_scores(table)["z"]
    (both,) = z_scores(table.assign(reference_error=0.5))["z"]
    assert both == pytest.approx(alone / math.sqrt(2.0), rel=1e-5)


def test_rare_shares_have_no_score():
    """Of 6400 rows 31 are too few on either side.  Where 64 are expected and one comes,
    the score is that of the binomial error: replicates differ by less.
    """
    table = made_up(4, 1, np.random.default_rng(3)).assign(
        quantity="saturated",
        reference=[31 / 6400, 1 - 31 / 6400, 0.01, 0.5],
        estimate=[0.0, 1.0, 1 / 6400, 0.5],
        std_error=1 / 6400,
        n_replicates=100,
        n_queries=64,
    )
    found = z_scores(table)
    error = math.sqrt(0.01 * 0.99 / 6400)
    tail = scipy.stats.t.cdf((1 / 6400 - 0.01) / error, 99)

    assert found.index.tolist() == [2, 3]
    assert found["z"].tolist() == pytest.approx([scipy.stats.norm.ppf(tail), 0.0])


def test_nothing_to_judge_is_said():
    """Without any exact value, or any bounded interval, nothing is judged."""
    table = made_up(2, 2, np.random.default_rng(10))
    for column, value in (("reference", math.nan), ("ci_high", math.inf)):
        record = judge_z_scores(table.assign(**{column: value}))
        assert record.outcome == "not_applicable"
        assert record.number == 0
    empty = pd.DataFrame(columns=table.columns)
    assert judge_z_scores(empty).outcome == "not_applicable"

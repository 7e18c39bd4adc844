"""The report card: files, pooled rows, the model for small rates, and what it says."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import msgspec
import numpy as np
import pandas as pd
import pytest
import scipy.stats

from montecarlo.claims.running import Study, run_study, write_results
from montecarlo.claims.schema import Catalogue
from montecarlo.estimation.intervals import FEWEST_BEHIND_A_MEAN
from montecarlo.records.calibration import (
    ALLOWED,
    RATES,
    actual_over_nominal,
    by_quantity,
    extrapolate,
    family_of,
    read_card,
)
from montecarlo.report.content.record import read_claims, with_calibration
from montecarlo.report.content.report_card import view_card
from montecarlo.report.language.catalogues import read_template
from montecarlo.study.presets import Grid

NOTHING = Grid(d_k=(16,), n_keys=(), distributions=(), first=2, most=2)

#: One-sided error rate of an interval of some report.
IN_USE = 1e-6


def counted(low, high, samples=10**6, **names):
    """A line of misses that were counted."""
    line = {"judged": True, "distribution": "gaussian", "context": "", "d_k": 64}
    line |= {"quantity": "entropy", "summary": "mean", "samples": samples, **names}
    for side, counts in (("low", low), ("high", high)):
        line |= {f"{side}_{rate:g}": n for rate, n in zip(RATES, counts, strict=True)}
    return line


def test_worse_side_counts():
    """Actual over nominal is that of the side which misses more."""
    rates = pd.DataFrame([counted((9_000, 2_000, 50), (20_000, 500, 100))])
    ratios = actual_over_nominal(rates).iloc[0].tolist()
    assert ratios == pytest.approx([2.0, 2.0, 1.0])


def test_rows_of_a_quantity_add_up():
    """Rows of one distribution, d_k and quantity are judged together, others apart."""
    rates = [
        counted((10, 0, 0), (0, 0, 0), divisor="sqrt"),
        counted((30, 0, 0), (0, 0, 0), divisor="none"),
        counted((7, 0, 0), (0, 0, 0), d_k=16),
    ]
    groups = by_quantity(pd.DataFrame(rates))

    assert groups["low_0.01"].tolist() == [40, 7]
    assert groups["samples"].tolist() == [2 * 10**6, 10**6]


@pytest.mark.parametrize("power", [0.8, 0.9, 1.0, 1.1])
def test_model_continues_a_power_distribution(power):
    """Counts that follow a power law are continued along it."""
    counts = tuple(int(10**9 * 0.9 * rate**power) for rate in RATES)
    rates = pd.DataFrame([counted(counts, (0, 0, 0), samples=10**9)])

    expected = 0.9 * 1e-6 ** (power - 1.0)
    assert extrapolate(rates, 1e-6) == pytest.approx([expected], rel=0.02)


def test_rows_of_the_package_keep_their_promise():
    """On the card of the package, judged combinations miss at most 1.5 times as often.

    At the smallest rate about a hundred misses are nominal, so that a ratio has a
    standard error of a tenth.
    """
    card = read_card()
    groups = by_quantity(card.rates[card.rates["judged"]])

    assert (groups["samples"] >= 10**6).all()
    assert (actual_over_nominal(groups) <= ALLOWED).all(axis=None)


def test_rows_of_the_package_cover():
    """Nominal 95 % intervals of judged rows cover in at least 95 % of the draws, less a
    simultaneous margin with a false alarm of 1 in 1,000 over all rows.
    """
    rates = read_card().rates
    judged = rates[rates["judged"]]
    least = scipy.stats.binom.ppf(1e-3 / len(judged), judged["draws"], 0.95)

    assert (judged["draws"] >= 2000).all()
    assert (judged["covered"] >= least).all()


def test_rows_that_are_not_judged_are_there_with_cause():
    """The card shows rows that are not judged, and some of them break the promise."""
    rates = read_card().rates
    groups = by_quantity(rates[~rates["judged"]])

    assert (actual_over_nominal(groups) > ALLOWED).any(axis=None)


def test_studies_of_the_package_are_seldom_wrong():
    """At most as many of the studies miss, or decide wrongly, as their error rate and
    the luck of 300 studies allow (false alarm below 1 in 1,000 at the full rate).
    """
    studies = read_card().studies
    assert (studies["studies"] >= 300).all()
    for one in studies.to_dict("records"):
        most = scipy.stats.binom.isf(5e-4, one["studies"], one["error_rate"])
        assert max(one["missed"], one["wrong"]) <= most


def test_view_is_that_of_the_card():
    """What pages show: judged distributions first, the worst of each, three digits."""
    card = read_card()
    view = view_card(card, IN_USE)
    judged = by_quantity(card.rates[card.rates["judged"]])
    worst = actual_over_nominal(judged).max().to_numpy()
    shown = np.max([grade.worst for grade in view.grades if grade.judged], axis=0)

    assert shown == pytest.approx(worst, rel=5e-3)
    order = [grade.judged for grade in view.grades]
    assert order == sorted(order, reverse=True)
    assert {line.replicates for line in view.power} == {128, 512}


def test_card_goes_by_way_of_the_results(tmp_path):
    """Pages read it in results, as it was put in."""
    card = read_card()
    with ThreadPoolExecutor(1) as executor:
        plain = run_study(Study(Catalogue(), NOTHING, whole_grid=False), executor)
    claims = msgspec.structs.replace(plain.claims, simultaneous_error=IN_USE)
    plain = replace(plain, claims=claims)
    results = with_calibration(plain, card)

    write_results(results, tmp_path)
    assert read_claims(tmp_path).report_card == view_card(card, IN_USE)
    write_results(plain, tmp_path)
    assert read_claims(tmp_path).report_card is None
    assert with_calibration(plain, None) is plain


def test_words_of_the_page_are_those_of_the_rule():
    """The page says what makes a mean unbounded; it once said another number."""
    words = {4: "four", 11: "eleven"}
    said = f"fewer than {words[FEWEST_BEHIND_A_MEAN]} replicates"
    assert said in read_template("sections/report-card.html.j2")


def test_families_have_names():
    """A mean is of none, so are quantiles; an indicator's mean is a share."""
    assert family_of("entropy", "mean") == family_of("weight_max", "q10") == ""
    assert family_of("saturated", "mean") == "share"
    assert family_of("score_std", "value") == "score_std"
    assert family_of("score_variance", "slope") == "slope"
    assert family_of("jacobian_frobenius", "spread") == "spread"

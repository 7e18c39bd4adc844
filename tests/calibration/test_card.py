"""The report card: files, pooled rows, the model for small rates, and what it says."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import scipy.stats

from montecarlo.calibration.card import (
    ALLOWED,
    actual_over_nominal,
    by_quantity,
    extrapolate,
    read_card,
    write_card,
)
from montecarlo.calibration.rates import RATES, Power, Rates, RowName
from montecarlo.calibration.studies import Tally
from montecarlo.claims.running import Study, run_study, write_results
from montecarlo.claims.schema import Catalogue
from montecarlo.estimation.intervals import FEWEST_BEHIND_A_MEAN
from montecarlo.report.content.record import read_claims, with_calibration
from montecarlo.report.content.report_card import view_card
from montecarlo.report.language.templates import read_template
from montecarlo.study.presets import Grid

NOTHING = Grid(d_k=(16,), n_keys=(), distributions=(), first=2, most=2)
ROW = RowName("gaussian", "", 64, 32, "sqrt", "entropy", "mean")

#: One-sided error rate of an interval of some report.
IN_USE = 1e-6


def rates_of(low, high, samples=10**6, row=ROW):
    """A record of counted misses."""
    return Rates(
        row,
        judged=True,
        replicates=128,
        samples=samples,
        low=low,
        high=high,
        draws=2000,
        covered=1900,
        bank_z=None,
    )


def table_of(*records, folder):
    """The table of rates that these records give."""
    power = [Power(ROW, 0.02, 128, 100, 0.0, 90, 1)]
    studies = [Tally(0.2, 300, 5, 1, 100, 0.1)]
    write_card(folder, [(list(records), power)], studies, {"simultaneous_error": 1e-6})
    return read_card(folder)


def test_card_is_read_as_it_was_written(tmp_path):
    """Counts, places without keys and the tallies come back."""
    pairs = ROW._replace(n_keys=None, quantity="score_variance")
    card = table_of(
        rates_of((1, 2, 3), (4, 5, 6)),
        rates_of((0, 0, 0), (9, 9, 9), row=pairs),
        folder=tmp_path,
    )

    assert card.rates["low_0.01"].tolist() == [1, 0]
    assert card.rates["high_0.0001"].tolist() == [6, 9]
    assert card.rates["n_keys"].isna().tolist() == [False, True]
    assert card.power["supported"].tolist() == [90]
    assert card.studies["missed"].tolist() == [5]
    assert read_card(tmp_path / "nowhere") is None


def test_worse_side_counts(tmp_path):
    """Actual over nominal is that of the side which misses more."""
    card = table_of(rates_of((9_000, 2_000, 50), (20_000, 500, 100)), folder=tmp_path)

    ratios = actual_over_nominal(card.rates).iloc[0].tolist()
    assert ratios == pytest.approx([2.0, 2.0, 1.0])


def test_rows_of_a_quantity_add_up(tmp_path):
    """Rows of one distribution, d_k and quantity are judged together, others apart."""
    other = ROW._replace(divisor="none")
    card = table_of(
        rates_of((10, 0, 0), (0, 0, 0)),
        rates_of((30, 0, 0), (0, 0, 0), row=other),
        rates_of((7, 0, 0), (0, 0, 0), row=ROW._replace(d_k=16)),
        folder=tmp_path,
    )
    groups = by_quantity(card.rates)

    assert groups["low_0.01"].tolist() == [40, 7]
    assert groups["samples"].tolist() == [2 * 10**6, 10**6]


@pytest.mark.parametrize("power", [0.8, 0.9, 1.0, 1.1])
def test_model_continues_a_power_distribution(tmp_path, power):
    """Counts that follow a power law are continued along it."""
    counts = tuple(int(10**9 * 0.9 * rate**power) for rate in RATES)
    card = table_of(rates_of(counts, (0, 0, 0), samples=10**9), folder=tmp_path)

    expected = 0.9 * 1e-6 ** (power - 1.0)
    assert extrapolate(card.rates, 1e-6) == pytest.approx([expected], rel=0.02)


def test_bank_rows_rows_of_the_package_keep_their_promise():
    """On the card of the package, judged combinations miss at most 1.5 times as often.

    At the smallest rate about a hundred misses are nominal, so that a ratio has a
    standard error of a tenth.
    """
    card = read_card()
    groups = by_quantity(card.rates[card.rates["judged"]])

    assert (groups["samples"] >= 10**6).all()
    assert (actual_over_nominal(groups) <= ALLOWED).all(axis=None)


def test_bank_rows_rows_of_the_package_cover():
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
    """Pages and figure read the card in results, not in the package; it comes back as
    it was put in, and results without one have none.
    """
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
    rates = results.curves.query("curve == 'miss_rate' and outcome == 'judged'")
    assert set(rates["x"]) == {1e-2, 1e-3, 1e-4}
    judged = [grade for grade in view_card(card, IN_USE).grades if grade.judged]
    assert rates["estimate"].max() == max(grade.worst[-1] for grade in judged)


def test_words_of_the_page_are_those_of_the_rule():
    """The page says what makes a mean unbounded; it once said another number."""
    words = {4: "four", 11: "eleven"}
    said = f"fewer than {words[FEWEST_BEHIND_A_MEAN]} replicates"
    assert said in read_template("sections/report-card.html.j2")

"""The report card says itself what of it is stale."""

import json

import pandas as pd
import scipy.stats

from montecarlo.calibration.bank import points, row_keys
from montecarlo.calibration.card import (
    FAMILIES,
    FOLDER,
    family_of,
    find_uncounted,
    read_card,
)
from montecarlo.calibration.probes import (
    NUMBERS,
    PROBED,
    PROBED_RATE,
    PROBES_FILE,
    SAME,
    find_changes,
    probe,
)
from montecarlo.calibration.rates import RowName
from montecarlo.calibration.studies import studies_recipe
from montecarlo.report.content.report_card import view_card
from montecarlo.sampling.design_points import parse_point

ABOUT = json.loads((FOLDER / "about.json").read_text(encoding="utf-8"))


def kept():
    """The probes of the package's card."""
    table = pd.read_csv(
        FOLDER / PROBES_FILE, keep_default_na=False, na_values={"n_keys": [""]}
    )
    return table.astype({"context": "str", "n_keys": "Int64"})


def named(table):
    """The names of a table's rows; pairs have 0 keys."""
    rows = table[list(RowName._fields)].assign(n_keys=table["n_keys"].fillna(0))
    return rows.itertuples(index=False, name=None)


def test_stale_rows_are_named():
    """The rows of the card that come out otherwise today are those that it says are
    stale.  Where this fails, what is drawn or computed has changed: ``python -m
    montecarlo calibrate`` makes the card anew; until then ``stale`` of about.json has
    to name these rows, which are then left out of it.
    """
    assert find_changes(kept(), probe(ABOUT["seed"], points())) == ABOUT["stale"]


def test_what_was_not_counted_is_said():
    """Rows that are calibrated today and were not then are of families that the pages
    say were not counted.
    """
    then = set(named(kept()))
    missing = set()
    for point in points():
        place = (point.distribution_k.name, point.dependence.name.replace("none", ""))
        sizes = (point.d_k, point.n_keys or 0)
        for key in row_keys(point):
            if (*place, *sizes, key.divisor, key.quantity, key.summary) not in then:
                missing.add(family_of(key.quantity, key.summary))
    card = read_card()
    assert missing <= set(find_uncounted(card.rates)) <= set(FAMILIES)
    assert view_card(card, 1e-6).not_counted == find_uncounted(card.rates)


def test_stale_rows_are_left_out():
    """None of them is in what pages and README read; other rows are."""
    card, every = read_card(), pd.read_csv(FOLDER / "rates.csv")
    assert len(card.rates) == len(every) - len(ABOUT["stale"])
    view = view_card(card, 1e-6)
    assert view.stale == len(ABOUT["stale"])
    assert view.earlier_claims == (ABOUT["studies"] != studies_recipe())
    gaps = card.rates[card.rates["quantity"].eq("score_distribution_gap")]
    for row in ABOUT["stale"]:
        assert row["quantity"] == "score_distribution_gap"
        assert not (
            gaps["distribution"].eq(row["distribution"]) & gaps["d_k"].eq(row["d_k"])
        ).any()
    assert len(gaps)


def moved(then, row, name, by):
    """Probes of which one number of a row is moved by so many standard errors."""
    error = (then.loc[row, "high"] - then.loc[row, "low"]) / 2.0
    error /= scipy.stats.t.isf(PROBED_RATE, PROBED - 1)
    now = then.copy()
    now.loc[row, name] += by * error
    return now


def test_change_is_seen():
    """A row whose value or end of an interval moves by more than a tenth of its
    standard error is named; rounding and rows that one table lacks are not, nor is a
    number near 0 that rounding moves by more than a part of itself.
    """
    place = [
        parse_point("laplace", "laplace", 4),
        parse_point("laplace", "laplace", 4, 32),
    ]
    then = probe(3, place)
    assert find_changes(then, probe(3, place)) == []
    for name in NUMBERS:
        (row,) = find_changes(then, moved(then, 2, name, 1.1 * SAME))
        assert row == {**then.loc[2, list(RowName._fields)].dropna().to_dict()}
        assert find_changes(then, moved(then, 2, name, -0.9 * SAME)) == []
    near = then.assign(value=then["value"].where(then.index != 2, 1e-9))
    assert find_changes(near, moved(near, 2, "value", 1e-6)) == []
    assert find_changes(then, then.iloc[1:]) == []
    exact = then.assign(low=then["value"], high=then["value"])
    assert len(find_changes(exact, exact.assign(value=exact["value"] * 1.01))) == (
        then["value"].ne(0.0).sum()
    )

"""The calibration record is made as the report judges, and says what of it is stale."""

import json
import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.estimation.intervals import t_quantile
from montecarlo.estimation.summaries import RowKey
from montecarlo.records.calibration import (
    FAMILIES,
    FOLDER,
    Tally,
    actual_over_nominal,
    by_quantity,
    family_of,
    find_uncounted,
    read_card,
    studies_recipe,
)
from montecarlo.report.content.report_card import view_card
from montecarlo.sampling.design_points import parse_point
from studies import calibration
from studies.banks import (
    BankRow,
    estimate,
    index_chunks,
    points,
    read_or_draw,
    row_keys,
)
from studies.calibration import (
    NUMBERS,
    PROBED,
    PROBED_RATE,
    PROBES_FILE,
    RELATIONS,
    Power,
    Rates,
    RowName,
    count_misses,
    main,
    make_series_row,
    measure_rates,
    measure_series,
    probe,
    write_card,
)

#: Standard errors by which a probe may differ.  Processors round differently, which may
#: put a row of 2048 into the next bin; what changes an interval by less changes no
#: count of misses that could be told.  Then the same as a part of the number, where an
#: interval has no width.
SAME, ROUNDING = 0.1, 1e-3
SIZE, SEED, N = 192, 5, 24
D_K = (16, 64, 256)
KEYS = {
    None: RowKey("none", "score_variance", "value"),
    32: RowKey("sqrt", "gradient_query", "mean"),
}


def find_changes(then, now):
    """The probes that come out otherwise now, by the columns that name them.

    Rows that only one table has are none of these.
    """
    both = then.merge(now, on=list(RowName._fields), suffixes=("_then", "_now"))
    found = []
    for one in both.to_dict("records"):
        width = one["high_then"] - one["low_then"]
        error = width / (2.0 * t_quantile(PROBED_RATE, PROBED))
        pairs = [(one[f"{name}_then"], one[f"{name}_now"]) for name in NUMBERS]
        if not all(is_same(*pair, error) for pair in pairs):
            names = {str(name): one[name] for name in RowName._fields}
            # JSON has no missing number
            found.append({k: v for k, v in names.items() if not pd.isna(v)})
    return found


def is_same(then, now, error):
    """Whether two numbers differ by rounding at most; no number is itself."""
    if math.isnan(then) or math.isnan(now):
        return math.isnan(then) and math.isnan(now)
    if 0.0 < error < math.inf:
        return abs(then - now) <= SAME * error
    return math.isclose(then, now, rel_tol=ROUNDING, abs_tol=1e-12)


@cache
def banks_of(n_keys, distribution="laplace"):
    """The banks of a short series, drawn once for all tests."""
    return [
        read_or_draw(
            parse_point(distribution, distribution, d_k, n_keys), SEED, SIZE, None
        )
        for d_k in D_K
    ]


@pytest.mark.parametrize("n_keys", KEYS)
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
def test_many_contrasts_are_the_report_s(n_keys, relation):
    """Samples that go through NumPy together have the intervals that each has alone."""
    banks, key = banks_of(n_keys), KEYS[n_keys]
    (chunk,) = index_chunks(SIZE, N * len(banks), 20, seed=9)
    split = np.split(chunk, len(banks), axis=1)
    low, high = make_series_row(banks, key, relation).sample(chunk)(0.01)
    for number in range(len(chunk)):
        alone = [
            estimate(bank, key, some[number])
            for bank, some in zip(banks, split, strict=True)
        ]
        expected = relation.estimate(D_K, alone).interval(0.01)
        ends = relation.back(low[number]), relation.back(high[number])
        assert ends == pytest.approx(expected, rel=1e-9)


def bank_of_rows():
    """A bank with shares between 0 and 1, and quantiles far apart."""
    return read_or_draw(parse_point("gaussian", "gaussian", 64, 32), SEED, SIZE, None)


def test_families_are_counted():
    """A bank and a series give rows of every family, pairs those of the deviation."""
    pairs = read_or_draw(parse_point("gaussian", "gaussian", 16), SEED, SIZE, None)
    found = [*measure_rates(bank_of_rows(), 64, 4), *measure_rates(pairs, 64, 4)]
    found += measure_series(banks_of(None), 64, 4)
    families = {family_of(one.row.quantity, one.row.summary) for one in found}
    assert families == {"", *FAMILIES}


def test_wrong_errors_are_seen(monkeypatch):
    """Intervals half as wide miss far more often: the count is not blind."""
    banks = banks_of(None)

    def misses():
        found = measure_series(banks, 4000, 1)
        rows = [one for one in found if one.row.quantity == "score_abs"]
        return {one.row.summary: max(one.low[0], one.high[0]) for one in rows}

    right = misses()
    ends = calibration.mean_ends

    def narrow(moments, n, rate):
        low, high = ends(moments, n, rate)
        return (moments.value + low) / 2.0, (moments.value + high) / 2.0

    monkeypatch.setattr(calibration, "mean_ends", narrow)
    wrong = misses()
    assert set(right) == {"slope", "ratio_of_ends"}
    for name, count in right.items():
        assert count < 2.5 * 40  # nominally 40 of 4,000
        assert wrong[name] > 5 * 40


def test_misses_are_counted_by_side():
    """Of 4,096 samples of replicates 0 to 3 about a quarter lie wholly above, an eighth
    of those at the smallest rate, and a half wholly below: off by six errors at most.
    """

    def sample(indices):
        (one,) = indices.T

        def ends(rate):
            above = (one == 0) & ((rate > 1e-4) | (np.arange(len(one)) % 8 == 0))
            return np.where(above, 1.0, -2.0), np.where(one > 1, -1.0, 2.0)

        return ends

    low, high = count_misses(BankRow(0.0, sample), 4, 1, 4096, 7)
    assert low[0] == low[1]
    for found, share in ((low[0], 1 / 4), (low[2], 1 / 32), (high[0], 1 / 2)):
        assert abs(found / 4096 - share) < 6.0 * np.sqrt(share * (1 - share) / 4096)
    assert len(set(high)) == 1


def test_series_rise():
    """One distribution and n, at least two d_k, none begins at 1."""
    for one in calibration.all_series():
        d_k = [point.d_k for point in one]
        assert d_k == sorted(set(d_k))
        assert len(d_k) > 1
        assert min(d_k) >= calibration.FIRST_D_K
        assert len({(c.distribution_k, c.n_keys) for c in one}) == 1
        assert calibration.series_keys(one[0])


# --- Probes ---------------------------------------------------------------------------

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
    studies.calibration`` makes the card anew; until then ``stale`` of about.json has
    to name these rows, which are then left out of it.
    """
    assert find_changes(kept(), probe(ABOUT["seed"], points())) == ABOUT["stale"]


def test_what_was_not_counted_is_said():
    """New rows are of families that pages say were not counted."""
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
    assert view.earlier_claims == (
        ABOUT["studies"] != studies_recipe(read_catalogue().checks())
    )
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


# --- The card -------------------------------------------------------------------------


def test_card_is_read_as_it_was_written(tmp_path):
    """Counts, places without keys and the tallies come back."""
    row = RowName("gaussian", "", 64, 32, "sqrt", "entropy", "mean")
    pairs = row._replace(n_keys=None, quantity="score_variance")
    counted = [
        Rates(one, True, 128, 10**6, low, high, 2000, 1900, None)  # noqa: FBT003
        for one, low, high in (
            (row, (1, 2, 3), (4, 5, 6)),
            (pairs, (0, 0, 0), (9, 9, 9)),
        )
    ]
    power = [Power(row, 0.02, 128, 100, 0.0, 90, 1)]
    studies = [Tally(0.2, 300, 5, 1, 100, 0.1)]
    write_card(tmp_path, [(counted, power)], studies, {"simultaneous_error": 1e-6})
    card = read_card(tmp_path)

    assert card.rates["low_0.01"].tolist() == [1, 0]
    assert card.rates["high_0.0001"].tolist() == [6, 9]
    assert card.rates["n_keys"].isna().tolist() == [False, True]
    assert card.power["supported"].tolist() == [90]
    assert card.studies["missed"].tolist() == [5]
    assert read_card(tmp_path / "nowhere") is None


@pytest.mark.slow
def test_short_card(tmp_path, capsys):
    """A short run writes a card that the pages can show, and keeps what it drew.

    Over all judged combinations the misses at 1 in 100 are at most 1.5 times as many
    as stated: a few hundred thousand samples of small banks, whose own luck is shared
    by all samples of one.  A run with Student's t in place of the quantile of 1 in 100
    at 1 in 30 fails.
    """
    work, output = tmp_path / "work", tmp_path / "card"
    arguments = ["--short", "--jobs", "2", "--work", str(work), "--output", str(output)]

    assert main(arguments) == 0
    card = read_card(output)
    groups = by_quantity(card.rates[card.rates["judged"]])
    pooled = groups.select_dtypes("number").sum().to_frame().T
    assert float(actual_over_nominal(pooled)[0.01].iloc[0]) <= 1.5
    assert view_card(card, 1e-6).grades
    assert "written" in capsys.readouterr().out
    assert any(work.rglob("*.npz"))

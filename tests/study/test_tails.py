"""Rows of overflow probabilities: what they say, beside what theory says."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.study.table import COLUMNS, FORMATS, OVERFLOW, tail_rows
from montecarlo.theory.score_distribution import log_score_tail

TAILS = ((16, 4), (64, 2))


def rows_of(tails=TAILS, seed=1, workers=1):
    """The rows by column name."""
    with ThreadPoolExecutor(workers) as executor:
        return [
            dict(zip(COLUMNS, row, strict=True))
            for row in tail_rows(tails, seed, executor)
        ]


def test_rows_name_what_they_are():
    """One row for each d_k and format, in order, each with a name of its own."""
    rows = rows_of()

    asked = [(d, name) for d, _ in TAILS for name in FORMATS]
    assert [(row["d_k"], row["number_format"]) for row in rows] == asked
    assert {row["quantity"] for row in rows} == {OVERFLOW}
    assert {row["softmax"] for row in rows} == {"naive"}
    assert {row["divisor"] for row in rows} == {"none"}
    blocks = [4] * len(FORMATS) + [2] * len(FORMATS)
    assert [row["n_replicates"] for row in rows] == blocks
    assert len({row["row_id"] for row in rows}) == len(rows)


def test_rows_agree_with_theory():
    """Estimates lie within 6 of their errors (2e-9 each) of the exact probability, and
    intervals hold both.
    """
    for row in rows_of():
        limit = NUMBER_FORMATS[row["number_format"]].log_largest
        exact = math.exp(log_score_tail(limit, row["d_k"]))
        assert row["reference"] == exact
        assert abs(row["estimate"] - exact) < 6.0 * row["std_error"]
        assert row["ci_low"] < min(row["estimate"], exact)
        assert row["ci_high"] > max(row["estimate"], exact)
        assert row["ci_low"] >= 0.0
        assert row["reference_error"] < 0.1 * row["std_error"]


def test_rows_do_not_depend_on_workers():
    """Any number of workers gives the same rows; another seed does not."""
    assert rows_of(workers=2) == rows_of()
    changed = rows_of(seed=2)
    for one, other in zip(rows_of(), changed, strict=True):
        assert one["estimate"] != other["estimate"]
        assert one["reference"] == pytest.approx(other["reference"], rel=1e-15)

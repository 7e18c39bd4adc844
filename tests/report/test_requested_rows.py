"""A study samples the rows that somebody reads: all of them, and no other."""

import json
from functools import cache

import pytest

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.running import Study, points_of_study
from montecarlo.claims.simulation import check_rows
from montecarlo.claims.z_scores import reference_rows
from montecarlo.errors import InputError
from montecarlo.estimation.summaries import DISTRIBUTION, has_row
from montecarlo.report.content.reading import read_rows
from montecarlo.report.content.tables import TABLES
from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.files import draw
from montecarlo.report.render.contents import page_rows
from montecarlo.study.measured import row_id, table_row
from montecarlo.study.presets import PRESETS
from montecarlo.study.table import tabulate

READERS = {f"table {name}": reader for name, (reader, _) in TABLES.items()}
READERS |= {f"figure {name}": spec.rows for name, spec in FIGURES.items()}
SMALLER = ("quick", "standard")


@cache
def planned(preset):
    """The rows that a preset's study samples, by name; quantities of rows and pairs."""
    study = Study(read_catalogue(), PRESETS[preset], pages=page_rows)
    return [(point, key) for point, keys in study.rows.items() for key in keys]


@pytest.mark.parametrize("preset", SMALLER)
def test_what_is_read_is_sampled_and_nothing_else(preset):
    """Each row that is planned is one of its point, named by a check, a page or the
    self-check on references; each that is named is planned.  No point is without.
    """
    grid, rows = PRESETS[preset], planned(preset)
    points = points_of_study(Study(read_catalogue(), grid))
    named = set(check_rows(read_catalogue().checks(), points, grid.divisors))
    for reader in READERS.values():
        mine = set(reader(points))
        assert mine <= set(rows)
        named |= mine
    named |= set(reference_rows({point for point, _ in named}))
    assert len(rows) == len(set(rows))
    assert set(rows) == named
    assert all(has_row(*row) for row in rows if row[1].summary != DISTRIBUTION)
    assert {point for point, _ in rows} < set(points)


@pytest.mark.parametrize("name", READERS)
def test_a_row_that_lacks_is_an_error(name):
    """Whatever row of its own is taken away, a reader is told which; of others none."""
    reader, grid = READERS[name], PRESETS["quick"]
    points = points_of_study(Study(read_catalogue(), grid))
    table = tabulate(
        table_row(point, key, *[1.0] * 4, 1, None, None)
        for point, key in planned("quick")
        if key.summary != DISTRIBUTION
    )
    mine = [row_id(*row) for row in reader(points) if row[1].summary != DISTRIBUTION]
    found = read_rows(table, reader, points, grid.divisors)
    assert sorted(found["row_id"]) == sorted(mine)
    for row in mine[:: max(1, len(mine) // 5)]:
        with pytest.raises(InputError, match=row):
            read_rows(table[table["row_id"].ne(row)], reader, points, grid.divisors)


def test_every_row_of_a_report_is_read(report):
    """By claims.json, by a cell of a table, by a figure, or held against theory."""
    claims = (report.folder / "claims.json").read_text(encoding="utf-8")
    estimates = report.results.measurements.set_index("row_id")["estimate"]
    cells = {
        cell.row
        for table in report.contents.tables.values()
        for _, line in table.rows
        for cell in line
        if cell is not None
    }
    figures = {
        row_id(*row)
        for spec in FIGURES.values()
        for row in spec.rows(report.results.points)
    }
    named = {row_id(*row) for row in reference_rows(report.results.points)}
    elsewhere = {*estimates.index} - cells - figures - named
    unread = [name for name in elsewhere if json.dumps(name) not in claims]
    # of saturated rows, where there are none, no gradient is known
    assert estimates[unread].isna().all()
    assert cells - {""} <= {*estimates.index}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_of_all_rows_that_it_names(report, name):
    """With others of a quantity, summary, divisor and format, or none, it changes."""
    spec, (rows, curves) = report.contents.drawings[name]
    kinds = ["quantity", "summary", "divisor", "number_format", "softmax"]

    def shown(rows):
        return draw(spec, rows, curves), spec.fact(rows, curves)

    whole = shown(rows)
    for _, kind in rows.groupby(kinds):
        other = rows["estimate"].where(~rows.index.isin(kind.index), 0.9)
        assert (
            shown(rows.drop(kind.index)) != whole
            or shown(rows.assign(estimate=other)) != whole
        )

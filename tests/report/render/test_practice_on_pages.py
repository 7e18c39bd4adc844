"""The table of what to divide by shows the record, with a line for each kind of row."""

import pytest

from montecarlo.report.content.practice import read_practice
from tests.report.conftest import CODES

RECORD = read_practice()


def lines_of(table):
    """Return the raw values of each line of a table."""
    lines = (line.iter("data") for line in table.find("tbody").iter("tr"))
    return [[float(one.get("value")) for one in line] for line in lines]


@pytest.mark.parametrize("name", CODES)
def test_tables_show_the_record(report, name):
    """Values at both d_k, and factors in the order of the heads; a dash for none."""
    page = report.page(name)
    sizes = lines_of(page.by_id["table-practice-sizes"])
    for shown, line in zip(sizes, RECORD.sizes.values(), strict=True):
        assert shown == [one.exact for pair in line.values() for one in pair]
    table = page.by_id["table-practice-growth"]
    for shown, line in zip(lines_of(table), RECORD.growth.values(), strict=True):
        assert shown == [one.factor for one in line.values() if one]
    assert "".join(table.itertext()).count("–") == sum(
        one is None for line in RECORD.growth.values() for one in line.values()
    )


@pytest.mark.parametrize("name", CODES)
def test_sentences_below_have_the_numbers_of_the_record(report, name):
    """Growth of logarithms, sink and sigmoids; the key that is aligned with a query."""
    section = report.page(name).by_id["practice"]
    _, growth, aligned, _ = section.iter("p")
    sink, sigmoid = RECORD.beside["sink"], RECORD.beside["sigmoid"]
    wanted = [RECORD.log_growth**0.5, RECORD.log_growth]
    wanted += [sink["fewer"].exact, sink["more"].exact, sink["held"].added]
    wanted += [sigmoid["fewer"].exact, sigmoid["more"].exact, -sigmoid["held"].added]
    planted = [one.exact for line in RECORD.planted.values() for one in line]
    for paragraph, values in ((growth, wanted), (aligned, planted)):
        shown = sorted(float(one.get("value")) for one in paragraph.iter("data"))
        assert shown == sorted(values)

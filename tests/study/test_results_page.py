"""docs/results-folder.md names the columns that tables have."""

import re
from pathlib import Path

from montecarlo.report.content.curves import CURVES
from montecarlo.study.measured import COLUMNS

PAGE = Path(__file__).parents[2] / "docs" / "results-folder.md"


def test_columns_are_those_of_the_tables():
    """In their order: of measurements.csv a line each, of a curve a line a file."""
    text = PAGE.read_text(encoding="utf-8")
    _, _, table = text.partition("## measurements.csv")
    table, _, curves = table.partition("## curves/*.csv")
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == COLUMNS
    found = re.findall(r"^\| `(\w+)\.csv` \| `([\w ]+)` \|", curves, re.MULTILINE)
    assert [(name, tuple(columns.split())) for name, columns in found] == [
        (name, columns) for name, columns in CURVES.items()
    ]

"""docs/limits.md says the limits that readers have."""

from pathlib import Path

import pytest

from montecarlo import small_files
from montecarlo.model import arrays, expected, files
from montecarlo.report.content import record
from montecarlo.study import columns, folder

PAGE = Path(__file__).parents[1] / "docs" / "limits.md"
LIMITS = [
    ("axes, and the length of each", arrays.MOST_AXES, arrays.MOST_LENGTH),
    ("digits of a number in a name", files.MOST_DIGITS),
    ("| configuration, claims of one's own", small_files.MOST_WRITTEN),
    ("| `config.json` of a model", expected.MOST_CONFIG),
    ("parts of a key", small_files.MOST_PARTS),
    ("| `run.json`", folder.MOST_RUN),
    ("| `claims.json`", record.MOST_CLAIMS),
    ("| `measurements.csv`, `curves/*.csv`", columns.MOST_TABLE),
]


def written(number):
    """Return a limit as the page writes it."""
    power = number.bit_length() - 1
    is_power = number == 2**power and number > 1000
    return f"2^{power}" if is_power else f"{number:,}"


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit[0])
def test_limits_are_those_of_the_page(limit):
    """One line of the table for each, with the number that the program has."""
    name, *numbers = limit
    (line,) = [x for x in PAGE.read_text(encoding="utf-8").splitlines() if name in x]
    assert line.endswith(f"| {', '.join(map(written, numbers))} |")

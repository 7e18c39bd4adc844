"""Numbers in prose have three digits at most, and no more than are sure."""

import re

import pytest
from babel import Locale

from montecarlo.report.language.numbers import NumberFormat

#: Value, error, and what prose has of it in English.
BRIEF = [
    (0.123456, None, "0.123"),
    (123.456, None, "123"),
    (2.0, None, "2"),
    (0.5, 0.0, "0.5"),
    (1.23456, 0.0004, "1.23"),
    (1.23456, 0.04, "1.23"),
    (1.23456, 0.4, "1.2"),
    (12.3456, 4.0, "12"),
    (-0.98765, 0.001, "−0.988"),
]


@pytest.mark.parametrize(("value", "error", "written"), BRIEF)
def test_brief(value, error, written):
    """The last digit is the first of the error, where there is one."""
    found = NumberFormat(Locale.parse("en")).brief(value, error)
    assert re.sub("<[^>]*>", "", found) == written


def test_brief_per_cent():
    """Of a share, in per cent."""
    found = NumberFormat(Locale.parse("en")).brief(0.123456, 0.0001, percent=True)
    assert re.sub("<[^>]*>", "", found) == "12.3\N{NO-BREAK SPACE}%"

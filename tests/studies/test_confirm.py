"""The confirming run: its record is of today's catalogue, and is made again."""

import pytest

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.report.content.confirming import (
    Confirming,
    read_confirming,
    write_confirming,
)
from studies.confirm import confirm

RECORD = read_confirming()


def test_record_is_of_this_catalogue():
    """Whoever changes what claims are judged by, or what is said, runs it again."""
    assert RECORD.catalogue == read_catalogue().digest()
    assert [*RECORD.verdicts] == [claim.id for claim in read_catalogue().claim]


def test_seed_is_what_the_digits_say(tmp_path):
    """Eight hexadecimal digits are a number; a record reads back."""
    record = Confirming("0000002a" + 56 * "f", {"one": "holds"})
    assert record.seed == 42
    write_confirming(record, tmp_path / "record.json")
    assert read_confirming(tmp_path / "record.json") == record


@pytest.mark.slow
def test_run_gives_the_record_again(tmp_path):
    """Verdicts of a seed are what they were."""
    assert confirm(tmp_path, 2) == RECORD

"""The confirming run: its record is of today's catalogue, and is made again."""

import json

import pytest

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.report.content.findings import CONFIRMING
from studies.confirm import confirm, seed_of
from tests.conftest import remade

RECORD = json.loads(CONFIRMING.read_bytes())


def test_record_is_of_this_catalogue():
    """Whoever changes what claims are judged by, or what is said, runs it again."""
    assert RECORD["catalogue"] == read_catalogue().digest()
    assert [*RECORD["verdicts"]] == [claim.id for claim in read_catalogue().claim]


def test_seed_is_what_the_digits_say():
    """Eight hexadecimal digits are a number."""
    assert seed_of("0000002a" + 56 * "f") == 42


@pytest.mark.slow
@remade
def test_run_gives_the_record_again(tmp_path):
    """Verdicts of a seed are what they were."""
    assert confirm(tmp_path, 2) == RECORD

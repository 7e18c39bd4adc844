"""The confirming run: its record is of today's catalogue, and is made again."""

from dataclasses import replace

import msgspec
import pytest

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.report.content import findings as reading
from montecarlo.report.content.confirming import (
    Confirming,
    read_confirming,
    write_confirming,
)
from montecarlo.report.content.findings import read_results
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


def test_page_counts_verdicts_that_are_the_same(report, monkeypatch):
    """Of this catalogue and the standard preset; one that differs is counted as such."""
    found = read_results(report.folder)
    digest = found.run["catalogue"]
    verdicts = {one.id: str(one.verdict) for one in found.claims}
    first = found.claims[0].id
    other = {**verdicts, first: "fails" if verdicts[first] != "fails" else "holds"}
    standard = replace(found, run={**found.run, "preset": "standard"})
    every = len(verdicts)
    for record, page, told in (
        (Confirming(digest, verdicts), standard, (digest[:8], every, every)),
        (Confirming(digest, other), standard, (digest[:8], every - 1, every)),
        (Confirming(64 * "0", verdicts), standard, None),
        (Confirming(digest, verdicts), found, None),
    ):
        monkeypatch.setattr(reading, "read_confirming", lambda record=record: record)
        assert page.confirmed == told


@pytest.mark.slow
def test_run_gives_the_record_again(tmp_path):
    """Verdicts of a seed are what they were."""
    assert msgspec.structs.asdict(confirm(tmp_path, 2)) == msgspec.structs.asdict(
        RECORD
    )

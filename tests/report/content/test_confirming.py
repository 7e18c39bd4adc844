"""What a page says of the confirming run."""

from dataclasses import replace

from montecarlo.report.content import findings as reading
from montecarlo.report.content.confirming import Confirming
from montecarlo.report.content.findings import read_results


def test_page_counts_verdicts_that_are_the_same(report, monkeypatch):
    """Of this catalogue and the standard preset; one that differs is not counted."""
    found = read_results(report.folder)
    digest = found.run["catalogue"]
    verdicts = {one.id: str(one.verdict) for one in found.claims}
    first = found.claims[0].id
    other = {**verdicts, first: "fails" if verdicts[first] != "fails" else "holds"}
    standard = replace(found, run={**found.run, "preset": "standard"})
    every = sum(bool(one.sources) for one in found.claims)
    for record, page, told in (
        (Confirming(digest, verdicts), standard, (digest[:8], every, every)),
        (Confirming(digest, other), standard, (digest[:8], every - 1, every)),
        (Confirming(64 * "0", verdicts), standard, None),
        (Confirming(digest, verdicts), found, None),
    ):
        monkeypatch.setattr(reading, "read_confirming", lambda record=record: record)
        assert page.confirmed == told

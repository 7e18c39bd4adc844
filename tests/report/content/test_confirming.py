"""What a page says of the confirming run."""

import json
from dataclasses import replace

from montecarlo.report.content import findings as reading
from montecarlo.report.content.findings import read_results


def test_page_counts_verdicts_that_are_the_same(report, monkeypatch, tmp_path):
    """Of this catalogue and the standard preset; one that differs is not counted."""
    found = read_results(report.folder)
    digest = found.run["catalogue"]
    verdicts = {one.id: str(one.verdict) for one in found.claims}
    first = found.claims[0].id
    other = {**verdicts, first: "fails" if verdicts[first] != "fails" else "holds"}
    standard = replace(found, run={**found.run, "preset": "standard"})
    every = sum(bool(one.sources) for one in found.claims)
    record = tmp_path / "confirming.json"
    monkeypatch.setattr(reading, "CONFIRMING", record)
    for catalogue, recorded, page, told in (
        (digest, verdicts, standard, (digest[:8], every, every)),
        (digest, other, standard, (digest[:8], every - 1, every)),
        (64 * "0", verdicts, standard, None),
        (digest, verdicts, found, None),
    ):
        record.write_text(json.dumps({"catalogue": catalogue, "verdicts": recorded}))
        assert page.confirmed == told

"""A report whose sampling ran out of time: honest, told, and made again to the byte."""

import json

import html5lib
import pytest

from montecarlo.study.folder import write_run
from tests.commands import report as main
from tests.conftest import contents, small_study

pytestmark = pytest.mark.usefixtures("one_figure")


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """A report that had no time."""
    folder = tmp_path_factory.mktemp("limited")
    output = folder / "output"
    laplace = {"distributions": ["laplace"], "distribution_d_k": [16]}
    given = small_study(folder, **laplace, first=32, most=128)
    assert (
        main([*given, "--output", str(output), "--max-seconds", "1e-9", "--quiet"]) == 0
    )
    return output


@pytest.fixture
def refused(tmp_path, capsys):
    """Run what must be refused: one line, status 2, nothing written."""

    def run_refused(*arguments):
        output = tmp_path / "refused"
        status = main([*map(str, arguments), "--output", str(output)])
        (line,) = capsys.readouterr().err.splitlines()
        assert status == 2
        assert not output.exists()
        return line

    return run_refused


def record_of(folder):
    """What run.json says."""
    return json.loads((folder / "run.json").read_bytes())


def test_what_is_undecided_is_undecided(limited):
    """Two replicates decide nothing; theory and what is on record do."""
    claims = json.loads((limited / "claims.json").read_bytes())["claims"]
    sampled = {
        case["outcome"]
        for claim in claims
        for interpretation in claim["interpretations"]
        for check in interpretation["checks"]
        for case in check["cases"]
        if case["rows"] and not case["by_theory"] and check["relation"] != "tends_to"
    }
    assert sampled == {"undecided"}
    assert set(record_of(limited)["replicates"].values()) == {2}
    assert record_of(limited)["time_limit_reached"] is True


def test_page_says_so(limited):
    """The evidence tells that time ran out, the report the command to make it again."""
    evidence = (limited / "evidence-en.html").read_text(encoding="utf-8")
    assert "A time limit ended the sampling" in evidence
    text = (limited / "en.html").read_text(encoding="utf-8")
    page = html5lib.parse(text)
    (shown,) = page.iter("{http://www.w3.org/1999/xhtml}pre")

    command = "python -m montecarlo report --replicates-from run.json"
    assert "".join(shown.itertext()).strip() == command


@pytest.mark.slow
def test_same_replicates_same_bytes(limited, tmp_path):
    """From run.json alone every file is made again to the byte."""
    again = tmp_path / "again"
    source = str(limited / "run.json")
    given = ["--replicates-from", source, "--jobs", "1", "--quiet"]
    assert main([*given, "--output", str(again)]) == 0
    assert contents(again) == contents(limited)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"program": "other"}, "must be of montecarlo"),
        ({"replicates": {}}, "must lie between 1 and 128, got None"),
        ({"own_claims": "own-claims.toml"}, "claims of one's own"),
    ],
)
def test_other_files_are_refused(refused, limited, tmp_path, change, words):
    """What is no run.json of such a report is refused in one line."""
    write_run(tmp_path, record_of(limited) | change)
    assert words in refused("--replicates-from", tmp_path / "run.json")


def test_number_beyond_the_budget_is_refused(refused, limited, tmp_path):
    """No more replicates than the grid's budget are taken from a file."""
    record = record_of(limited)
    name = next(iter(record["replicates"]))
    record["replicates"][name] = 129
    write_run(tmp_path, record)
    path = tmp_path / "run.json"
    assert "between 1 and 128, got 129" in refused("--replicates-from", path)
    path.unlink()
    assert "readable run.json" in refused("--replicates-from", path)

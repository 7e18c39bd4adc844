"""A user's own claims are judged by the rule of the catalogue, and reported."""

import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.special

import montecarlo.report.running as report_command
from montecarlo import expected_row, judge
from montecarlo.claims.catalogue import parse_catalogue
from montecarlo.claims.own_claims import study_of_claims
from montecarlo.claims.running import needed_budgets
from montecarlo.cli import judge as judge_command
from montecarlo.errors import InputError
from montecarlo.report import running
from montecarlo.report.running import DATA_FILES
from montecarlo.sampling.design_points import parse_point
from montecarlo.study.executors import make_executor
from montecarlo.study.folder import (
    JOURNAL,
    STAGING,
    read_run,
)
from montecarlo.theory.references import reference
from tests.commands import judge as main
from tests.commands import report as report_main
from tests.conftest import claim_text, claims_of, contents, forbidden, gaussian

EXAMPLE = Path(__file__).parents[2] / "docs" / "own-claim.toml"


def write(path, expected=16.0, d_k=16):
    """Write a claim about one variance."""
    text = claim_text(
        'divisor = "none"\nrelation = "equals"\n'
        f"expected = {expected}\ntolerance = 0.05",
        f'd_k = [{d_k}, {d_k}], distributions = ["gaussian"]',
    )
    path.write_text(text)
    return str(path)


def judged(check, topic="weights"):
    """Judge a claim of one check; its verdict, its cases, and all that was found."""
    found = judge(claims_of(check, topic))
    assert found["not_judged"] == []
    (claim,) = found["claims"]
    cases = claim["interpretations"][0]["checks"][0]["cases"]
    return claim["verdict"], cases, found


def test_example_is_judged(capsys):
    """The documented example runs: one claim holds, the other does not."""
    assert main([str(EXAMPLE), "--jobs", "1"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["holds", "halved-head-halves-variance"]
    assert lines[3].split() == ["fails", "temperature-two-is-one-hot"]
    # what was measured, what is exact where theory has it, and what was claimed
    number = r"[0-9.]+ ± [0-9.]+"
    first = rf"gaussian, d_k = .*: {number}, exact 32, claimed .* to .*"
    assert re.fullmatch(first, lines[2].strip())
    second = rf".*gaussian, .*: {number}, claimed at least 0.9"
    assert re.fullmatch(second, lines[5].strip())
    (line,) = (line for line in lines if line.startswith("error rate"))
    assert "nominal 1 %" in line


def test_theory_judges_without_sampling(tmp_path, monkeypatch, capsys):
    """What it decides is decided; what it does not is named, with status 4."""
    monkeypatch.setattr(judge_command, "run_study", forbidden)
    for expected, verdict, status in ((16.0, "holds", 0), (18.0, "fails", 1)):
        assert main([write(tmp_path / "x.toml", expected), "--exact"]) == status
        first, _, third, last = capsys.readouterr().out.splitlines()
        assert first.split() == [verdict, "mine"]
        assert "d_k = 16: exact 16, claimed " in third
        assert "nothing was sampled" in last
    assert main([str(EXAMPLE), "--exact", "--json"]) == 4
    printed, told = capsys.readouterr()
    assert told == (
        "montecarlo judge: claim 'temperature-two-is-one-hot', interpretation "
        "'median': theory does not decide weight_max at gaussian(std=2.0) * gaussian, "
        "d_k = 48, n = 100\n"
    )
    claims = json.loads(printed)["claims"]
    assert [claim["verdict"] for claim in claims] == ["holds", "open"]
    assert claims[0]["interpretations"][0]["reason"] == "theory"
    assert main([str(EXAMPLE), "--exact", "--seed", "2"]) == 2


def test_places_that_the_grid_lacks_are_added(tmp_path, capsys):
    """A claim about d_k = 48, which no preset has, is measured there.

    The status is 1 for the verdicts named by `--fail-on`, and only then.
    """
    path = write(tmp_path / "claim.toml", expected=48.0, d_k=48)
    assert main([path, "--fail-on", "holds", "--jobs", "1"]) == 1
    capsys.readouterr()
    assert main([path, "--json", "--fail-on", "fails", "--jobs", "1"]) == 0
    record = json.loads(capsys.readouterr().out)
    (claim,) = record["claims"]
    assert claim["error_rate"] == record["error_rate"]
    assert claim["interpretations"][0]["checks"][0]["cases"][0]["d_k"] == 48


def test_what_is_undecided_says_what_to_type(tmp_path, capsys):
    """About how many replicates decide it, and the command, which decides it."""
    path = tmp_path / "close.toml"
    what = 'relation = "at_least"\nlow = 79.0'
    domain = 'd_k = [64, 64], n_keys = [128, 128], distributions = ["gaussian"]'
    path.write_text(claim_text(what, domain, "effective_keys", "mean"))
    assert main([str(path), "--most", "32", "--jobs", "1"]) == 1
    *_, told, command = capsys.readouterr().out.splitlines()
    needed = int(
        re.fullmatch(r"undecided +1 of .* about (\d+) .* decide them", told)[1]
    )
    assert needed > 32
    label, _, typed = command.partition(" python -m montecarlo judge ")
    words = shlex.split(typed)
    assert (label.strip(), words[0], words[2:]) == (
        "next",
        "--most",
        [str(path), "--jobs", "1"],
    )
    assert int(words[1]) >= needed
    assert main(words) == 0
    assert "undecided" not in capsys.readouterr().out
    assert judge(path, most=int(words[1]))["claims"][0]["verdict"] == "holds"


def test_unknown_fields_name_the_known(tmp_path, capsys):
    """Those of the table that it stands in."""
    text = claim_text('relatoin = "at_least"', "d_k = [4, 4]")
    for wrong, known, near in (
        ("relatoin", "quantity, relation, summary", "'relation'"),
        ("dk", "d_k, n_keys, distributions", "'d_k'"),
    ):
        path = tmp_path / "wrong.toml"
        right = text.replace("relatoin", "relation").replace("d_k = ", f"{wrong} = ")
        path.write_text(text if wrong == "relatoin" else right)
        assert main([str(path)]) == 2
        told = capsys.readouterr().err
        assert f"there are {known}" in told
        assert told.endswith(f"Did you mean {near}?\n")


# --- The report -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The report of the documented example, in two languages."""
    output = tmp_path_factory.mktemp("finished") / "own"
    languages = ["--lang", "de", "--lang", "es"]
    assert main([str(EXAMPLE), "--output", str(output), *languages, "--jobs", "1"]) == 1
    return output


@pytest.fixture
def copied(finished, tmp_path):
    """A finished report to spoil."""
    return Path(shutil.copytree(finished, tmp_path / "copied"))


def test_report_is_that_of_the_report_command(finished):
    """Pages, data, the user's file; no erratum, one figure."""
    assert set(contents(finished, JOURNAL)) == {
        *("index.html", "de.html", "es.html", "claims.toml", "run.json"),
        *DATA_FILES,
        "figures/cases.svg",
    }
    record = read_run(finished)
    assert (record["languages"], record["only"]) == (["de", "es"], [])
    assert (finished / "claims.toml").read_bytes() == EXAMPLE.read_bytes()
    assert not (finished / STAGING).exists()
    page = (finished / "de.html").read_text(encoding="utf-8")
    assert "Mit Köpfen der Größe" in page
    assert page.count("<img") == 1
    assert "(auf Englisch)" in page  # the other claim is in one language


def test_several_files_are_judged_by_themselves(tmp_path, capsys):
    """Each has its folder; a mistake in the last is found first."""
    good = write(tmp_path / "good.toml")
    bad = write(tmp_path / "bad.toml", expected=20.0)
    output = tmp_path / "both"
    assert main([good, "--json", "--jobs", "1"]) == 0
    alone = json.loads(capsys.readouterr().out)
    typed = [good, bad, "--jobs", "1"]
    assert main([*typed, "--output", str(output), "--lang", "en"]) == 1
    text = capsys.readouterr().out
    for file in (good, bad):
        folder = output / Path(file).stem
        assert f"{file}\n{folder / 'index.html'}\n" in text
        assert (folder / "en.html").exists()
    assert main([*typed, "--json"]) == 1
    first, second = json.loads(capsys.readouterr().out)["files"]
    assert first == {"file": good, **alone}
    assert second["claims"][0]["verdict"] == "fails"
    broken = tmp_path / "broken.toml"
    broken.write_text("[[claim]]\nide = 1\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge_command, "run_study", forbidden)
        assert main([good, str(broken)]) == 2
    assert "broken.toml" in capsys.readouterr().err


def test_report_is_rendered_again(finished, tmp_path):
    """The report command renders the same bytes from the folder, without sampling."""
    again = tmp_path / "again"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_command, "run_study", forbidden)
        patch.setattr(running, "make_executor", lambda *_, **__: make_executor(1))
        given = ["--from", str(finished), "--output", str(again), "--quiet"]
        assert report_main(given) == 0
    assert contents(again) == contents(finished, JOURNAL)


def test_a_ratio_is_held_against_that_of_two_expectations():
    """Of divisors of one's own, too; the exact value is written with the case."""
    check = {
        "quantity": "jacobian_trace",
        "divisor": "d_k^0.6/sqrt",
        "relation": "equals",
        "expected": "reference",
        "tolerance": 0.05,
        "domain": gaussian(16, 32),
    }
    verdict, (case,), _ = judged(check, "gradients")
    assert verdict == "holds"
    point = parse_point("gaussian", "gaussian", 16, 32)
    exact = reference("jacobian_trace", point, "d_k^0.6/sqrt", "mean")
    assert case["exact"] == pytest.approx(exact.value, rel=1e-12)


def entropy_of_unit_vectors():
    """Mean entropy of softmax of 10 cos(q, k), 32 keys in 16 dimensions, by a loop.

    Of 20,000 rows: known to 0.3 %.
    """
    rng = np.random.default_rng(71)
    q, k = rng.normal(size=(20_000, 1, 16)), rng.normal(size=(20_000, 32, 16))
    cosines = (q * k).sum(axis=2) / np.sqrt((q**2).sum(axis=2) * (k**2).sum(axis=2))
    weights = scipy.special.softmax(10.0 * cosines, axis=1)
    return scipy.special.entr(weights).sum(axis=1).mean()


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "holds"), (1.1, "fails")])
def test_normalised_queries_and_keys_are_judged(factor, verdict):
    """Where a domain says so; another entropy is refuted, and cases name it."""
    names = ["l2(gain=10.0)", "none"]
    check = {
        "quantity": "entropy",
        "divisor": "none",
        "relation": "equals",
        "expected": factor * entropy_of_unit_vectors(),
        "tolerance": 0.02,
        # where the grid has plain rows
        "domain": gaussian(16, 32, normalisation=names[:1]),
    }
    ruled, (case,), found = judged(check)
    assert ruled == verdict
    assert case["normalisation"] == names[0]
    assert "l2(gain=10.0)" in found.frame()["where"].item()
    # and both kinds of points, each by itself, where both are named
    check["domain"]["normalisation"] = names
    _, cases, _ = judged(check)
    # undivided rows of plain entries have an entropy of 1 or so
    assert {case["normalisation"] for case in cases} == set(names)
    assert len({case["rows"][0] for case in cases}) == 2


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "holds"), (1.1, "fails")])
def test_masked_rows_are_judged(factor, verdict):
    """Where a domain says so; the case names the mask as tables do, and so does its
    line.
    """
    exact = expected_row(32, d_k=16, mask="causal")
    check = {
        "quantity": "output_variance",
        "relation": "equals",
        "expected": factor * exact["inverse_participation"].value,
        "tolerance": 0.02,
        # as wide as the rows: causal
        "domain": gaussian(16, 32, mask=["window( 032 )"]),
    }
    ruled, (case,), found = judged(check)
    assert ruled == verdict
    assert case["mask"] == "window(32)"
    assert "window(32)" in found.frame()["where"].item()
    assert "window(32), d_k" in repr(found)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"summary": "q100"}, "summary"),
        ({"summary": "q050"}, "summary"),
        ({"quantity": "saturated"}, "summary"),
        ({"quantity": "jacobian_trace", "divisor": "none/sqrt"}, "summary with the"),
    ],
)
def test_what_is_no_quantile_is_refused(changes, part):
    """Shares and ratios have none, and names are one each."""
    check = {"quantity": "entropy", "summary": "q99", "relation": "at_least"}
    with pytest.raises(InputError, match=f"{part} .*must be one of"):
        judge(claims_of({**check, "low": 0.0, **changes}))


@pytest.mark.parametrize("text", [None, "", "[[claim]]"])
def test_report_with_another_file_is_not_rendered(text, copied, tmp_path, capsys):
    """Without the claims that the results were judged by, there is one line."""
    file = copied / "claims.toml"
    file.unlink() if text is None else file.write_text(text, encoding="utf-8")
    output = tmp_path / "again"
    assert report_main(["--from", str(copied), "--output", str(output)]) == 2
    error = capsys.readouterr().err
    assert "claims.toml" in error
    assert error.count("\n") == 1
    assert not output.exists()


@pytest.mark.parametrize("n_keys", [128, 1024, 4096, 16384, 131072])
def test_no_preset_decides_less_than_a_smaller_one(n_keys):
    """Of a claim of one's own, wherever it lies: at 4096 keys the standard preset had
    32 replicates, the quick one up to 256.
    """
    check = {
        "quantity": "entropy",
        "relation": "at_least",
        "low": 0.1,
        "domain": gaussian(64, n_keys),
    }
    claims = claims_of(check)
    catalogue = parse_catalogue(claims, "claims", own=True)
    most = []
    for preset in ("quick", "standard", "full"):
        (budget,) = needed_budgets(study_of_claims(catalogue, preset=preset)).values()
        most.append(budget.analyses()[-1])
    assert most == sorted(most)
    assert most[0] >= 256


@pytest.mark.slow
def test_an_error_of_weights_above_1_can_be_judged():
    """Rows of 65,536 keys in float16, whose weights add up to far more than 1.

    A program that shares no code gave 1.26 +- 0.04.
    """
    check = {
        "quantity": "format_error",
        "divisor": "sqrt",
        "number_format": "float16",
        "softmax": "shifted",
        "relation": "at_least",
        "low": 1.1,
        "domain": gaussian(64, 65536),
    }
    verdict, (case,), _ = judged(check, "arithmetic")
    assert verdict == "holds"
    assert case["estimate"] == pytest.approx(1.26, abs=0.12)

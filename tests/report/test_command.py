"""The command: what it refuses, what it leaves alone, what it prints, and its bytes."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import html5lib
import pytest

import montecarlo.report.running as report_command
from montecarlo.__main__ import main as program
from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import ALL_FORMATS
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.cli import studies
from montecarlo.cli.command_line import build_parser
from montecarlo.cli.listing import KINDS
from montecarlo.cli.report import command_again, summary_lines
from montecarlo.errors import UnfinishedError
from montecarlo.estimation import engine
from montecarlo.report.figures import FIGURES
from montecarlo.report.language import catalogues
from montecarlo.report.language.catalogues import LANGUAGES
from montecarlo.report.running import DATA_FILES
from montecarlo.sampling.design_points import WEIGHT_KINDS
from montecarlo.sampling.distributions import DISTRIBUTIONS
from montecarlo.study.folder import (
    DIGEST,
    JOURNAL,
    STAGING,
    TIMING_FILE,
    digest,
    files_of,
    write_run,
)
from montecarlo.study.presets import PRESETS
from tests.commands import report as main
from tests.commands import run_python
from tests.conftest import ALONE, TINY_GRID, contents, forbidden

TINY = "seed = 1\n" + TINY_GRID


@pytest.fixture
def config(tmp_path):
    """Write a configuration file and return what the command is told of it."""

    def write(text=TINY, name="study.toml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return ["--config", str(path), *ALONE]

    return write


@pytest.fixture
def run(capsys):
    """Run the command here; returns its status and what it printed."""

    def run_main(*arguments):
        status = main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return run_main


@pytest.fixture
def refused(run, tmp_path):
    """Run what must be refused: nothing sampled or written, one line, status 2."""

    def run_refused(*arguments):
        output = tmp_path / "refused"
        known = {path: path.read_bytes() for path in files_of(tmp_path)}
        if "--output" not in arguments:
            arguments = (*arguments, "--output", output)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(report_command, "run_study", forbidden)
            status, printed, complaint = run(*arguments)
        assert status == 2, complaint
        assert printed == ""
        assert not output.exists()
        assert {path: path.read_bytes() for path in files_of(tmp_path)} == known
        (line,) = complaint.splitlines()
        assert line.startswith("montecarlo report: error: ")
        return line

    return run_refused


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small report that the command wrote, in two languages."""
    folder = tmp_path_factory.mktemp("finished")
    path = folder / "study.toml"
    path.write_text(TINY, encoding="utf-8")
    output = folder / "output"
    typed = ["--config", str(path), *ALONE, "--lang", "de", "--quiet"]
    status = main([*typed, "--output", str(output)])
    assert status == 0
    return output


@pytest.fixture
def earlier(finished, tmp_path):
    """A copy of that report, to spoil, and for runs that break off."""
    return Path(shutil.copytree(finished, tmp_path / "earlier"))


# --- What is refused ----------------------------------------------------------------


#: What is typed, and what the refusal says; PATH is a folder with files to be refused.
REFUSED = """
--lang deu | language must be one of en, de, .*all; got 'deu'. Did you mean 'de'
--preset qiuck | preset must be one of quick, standard, full; got .* mean 'quick'
--only unscaled-onehot | claim must be one of .*unscaled-one-hot.* mean 'unscaled-one-h
--executor procesess | executor must be one of threads, .* Did you mean 'processes'
--format markdwon | format must be one of html, .* Did you mean 'markdown'
--fail-on selfcheck | fail-on, unless none, must be one of self-check, .* mean 'self-
--fail-on fail | Did you mean 'fails'
--jobs 0 | jobs must lie between 1 and 1024, got 0
--jobs nan | jobs must be
--config none.toml | config must be a readable file, got 'none.toml'
--config PATH | config must be a regular file, got
--config PATH/binary.toml | binary.toml
--config docs/own-claim.toml | no claims; python -m montecarlo judge docs/own-claim.toml
--from nowhere | nowhere
--from PATH/observed | those of a report, got an observation
--from FINISHED --seed 2 | --from must stand without --seed, got 2
--from FINISHED --preset quick | --from must stand without --preset
--from FINISHED --fresh | --from must stand without --fresh
--from FINISHED --only linear-varianc | Did you mean 'linear-variance'
--from FINISHED --only linear-variance --output FINISHED | files that are not written
"""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_what_cannot_be_meant_is_refused(refused, finished, tmp_path, line):
    """With the names there are and the nearest, or what it must be."""
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "observed").mkdir()
    write_run(tmp_path / "observed", {"kind": "observation"})
    typed, message = line.split(" | ")
    typed = typed.replace("PATH", str(tmp_path)).replace("FINISHED", str(finished))
    assert re.search(message, refused(*typed.split()))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("d_k = [4, 16]", "d_k = [0]", "grid.d_k"),
        ("d_k = [4, 16]", 'd_k = ["4"]', "grid.d_k"),
        ("n_keys = [8]", "n_keys = [1]", "grid.n_keys"),
        ("seed = 1", "seed = -1", "seed"),
        ("seed = 1", "seed = true", "seed"),
        ("seed = 1", "sede = 1", "sede"),
        ("seed = 1", "jobs = 1", "jobs"),
        ("first = 4", "frist = 4", "frist"),
        ("seed = 1", "error_rate = 0.5", "error_rate"),
        ("seed = 1", "error_rate = 5e-324", "error_rate"),
        ("seed = 1", 'only = "linear-variance"', "only"),
        ("[grid]", "[grid", "TOML"),
        ("seed = 1", "seed = 1\nseed = 2", "TOML"),
        ("d_k = [4, 16]", "", "d_k"),
        ('"laplace"', '"laplas"', "Did you mean 'laplace'"),
        ('"laplace"', '"studentt5(std=2.0)"', "Did you mean 'student_t5'"),
        ("first = 4", 'divisors = ["sqr"]\nfirst = 4', "Did you mean 'sqrt'"),
        ("seed = 1", 'only = ["linear-varianc"]', "mean 'linear-variance'"),
    ],
)
def test_wrong_file_is_refused(refused, config, old, new, named):
    """A configuration that cannot be meant is one line that names the field."""
    assert old in TINY
    line = refused(*config(TINY.replace(old, new)))
    assert named in line


def test_language_that_cannot_be_read_is_refused(
    refused, config, tmp_path, monkeypatch
):
    """A malformed catalogue is found before anything is sampled."""
    path = tmp_path / "de.po"
    path.write_text("no catalogue", encoding="utf-8")
    monkeypatch.setattr(catalogues, "catalogue_path", lambda code: path)
    assert "'de'" in refused("--lang", "de", *config())


def test_output_that_cannot_be_written_is_refused(
    refused, config, tmp_path, monkeypatch
):
    """A disk that refuses is named."""

    def refuse(self, *_, **__):
        raise PermissionError(30, "Read-only file system", str(self))

    arguments = config()
    monkeypatch.setattr(Path, "mkdir", refuse)
    assert "Read-only file system" in refused(*arguments, "--output", tmp_path / "new")


@pytest.mark.parametrize("name", ["thesis.tex", "run.json"])
def test_foreign_folder_is_refused(refused, config, tmp_path, name):
    """A folder with what is not ours is not touched, whatever it is called."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / ".gitkeep").touch()
    (mine / name).write_text('{"program": "other"}', encoding="utf-8")
    line = refused(*config(), "--output", mine)
    assert repr(str(mine)) in line
    assert sorted(path.name for path in mine.iterdir()) == [".gitkeep", name]


# --- Runs that do not finish --------------------------------------------------------


def failing_sampler(monkeypatch, error):
    """Let sampling fail after some replicates were drawn."""
    sample, drawn = engine.sample, []

    def fail(*arguments, **options):
        drawn.append(arguments)
        if len(drawn) > 3:
            raise error
        return sample(*arguments, **options)

    monkeypatch.setattr(engine, "sample", fail)
    return drawn


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("operands could not be broadcast together"), 70),
        (UnfinishedError("a worker died"), 3),
        (KeyboardInterrupt(), 130),
    ],
)
def test_failed_run_leaves_the_old_report(run, config, earlier, error, expected):
    """No byte changes, one line says why, what was sampled is kept."""
    before = contents(earlier, JOURNAL)
    arguments = config(TINY.replace("seed = 1", "seed = 2"))
    with pytest.MonkeyPatch.context() as patch:
        drawn = failing_sampler(patch, error)
        status, printed, complaint = run(*arguments, "--output", earlier)
    assert len(drawn) > 3
    assert status == expected
    assert printed == ""
    assert complaint.startswith("Traceback") == (expected == 70)
    assert expected == 70 or len(complaint.splitlines()) == 1
    assert contents(earlier, JOURNAL) == before
    assert not (earlier / STAGING).exists()
    assert (earlier / JOURNAL).exists()
    assert expected != 130 or "3 finished batches are kept" in complaint


# --- Rendering again ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("drawn_here")
def test_rendering_in_place_loses_nothing(
    run, finished, earlier, tmp_path, monkeypatch
):
    """Where it is, all of a report is rendered to the same bytes without sampling; less
    goes to another folder, where no page links to a language that is not there.
    """
    monkeypatch.setattr(report_command, "run_study", forbidden)
    place, before = earlier, contents(earlier, JOURNAL)
    for less in (["--lang", "en"], ["--format", "markdown"]):
        status, _, complaint = run("--from", place, "--output", place, *less)
        assert status == 2
        assert "--output must name another folder" in complaint
    assert run("--from", place, "--output", place, "--quiet")[0] == 0
    assert contents(place, JOURNAL) == before
    other = tmp_path / "other"
    run("--from", finished, "--output", other, "--lang", "en", "--quiet")
    assert not (other / "de.html").exists()
    for name in ("index.html", "en.html"):
        assert 'href="de.html"' not in (other / name).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("drawn_here")
def test_some_claims_are_rendered_again(run, finished, tmp_path):
    """Its claims, no errata, all of the data; its verdicts can fail it."""
    chosen = ["--from", finished, "--only", "linear-variance,works-in-training"]
    output = tmp_path / "some"
    status, *_ = run(*chosen, "--output", output, "--lang", "en", "--quiet")
    assert status == 0
    page = html5lib.parse(
        (output / "en.html").read_bytes(), namespaceHTMLElements=False
    )
    ids = {e.get("id") for e in page.iter("div") if e.get("id")}
    assert {one for one in ids if one.startswith("claim-")} == {
        "claim-linear-variance",
        "claim-works-in-training",
    }
    for name in ("measurements.csv", "claims.json"):
        assert (output / name).read_bytes() == (finished / name).read_bytes()
    verdicts = {
        claim["id"]: claim["verdict"]
        for claim in json.loads((finished / "claims.json").read_bytes())["claims"]
    }
    mine = {verdicts["linear-variance"], verdicts["works-in-training"]}
    for verdict in (min(mine), min({*verdicts.values()} - mine)):
        typed = [*chosen, "--output", output, "--lang", "en", "--quiet"]
        status, *_ = run(*typed, "--fail-on", verdict)
        assert status == (1 if verdict in mine else 0)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"catalogue": "0"}, "claims and records of this version"),
        ({"training": "0"}, "claims and records of this version"),
        ({"sha256": {}}, "'measurements.csv' among the files"),
    ],
)
def test_other_records_are_refused(refused, earlier, change, named):
    """Of other claims, or without hashes."""
    path = earlier / "run.json"
    record = json.loads(path.read_bytes()) | change
    path.write_text(json.dumps(record | {DIGEST: digest(record)}))
    assert named in refused("--from", earlier)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="needs to see what is loaded")
def test_interrupted_while_it_starts(tmp_path):
    """Ctrl-C ends the command with one line also while modules are imported."""
    words = [sys.executable, "-m", "montecarlo", "report"]
    command = subprocess.Popen(  # noqa: S603
        words, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    maps = Path(f"/proc/{command.pid}/maps")
    while "pandas" not in maps.read_text(encoding="utf-8"):
        time.sleep(0.005)
    command.send_signal(signal.SIGINT)
    _, complaint = command.communicate(timeout=60)
    assert command.returncode == 130
    assert complaint == "montecarlo report: interrupted, nothing was written\n"


# --- What is printed ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("distributions", list(DISTRIBUTIONS)),
        ("claims", [claim.id for claim in read_catalogue().claim]),
        ("quantities", ["score_variance", "jacobian_frobenius", "effective_keys"]),
        ("divisors", [*DIVISORS, "2*d_k^0.6"]),
        ("initialisations", list(WEIGHT_KINDS)),
        ("formats", list(ALL_FORMATS)),
        ("figures", list(FIGURES)),
        ("kinds", [kind for kind in KINDS if kind != "kinds"]),
    ],
)
def test_lists_name_everything(capsys, kind, names):
    """Each kind is listed on standard output, one name a line."""
    assert program(["--list", *[kind] * (kind != "kinds")]) == 0
    printed, complaint = capsys.readouterr()
    assert complaint == ""
    lines = printed.splitlines()
    assert len(lines) > len(names) or kind == "quantities"
    for name in names:
        assert any(name in line for line in lines), name


@pytest.mark.slow
def test_run_prints_three_lines(run, config, tmp_path):
    """Three lines: what to open, what came out, how to do it again."""
    output = tmp_path / "output"
    status, printed, complaint = run(*config(), "--output", output)
    assert (status, complaint) == (0, "")  # no progress where nobody looks
    lines = printed.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["open", "claims:", "again:"]
    again = shlex.split(lines[2])[5:]
    assert run(*again)[:2] == (0, printed)
    assert contents(output, JOURNAL).keys() >= {"en.html", "index.html", "run.json"}


@pytest.mark.parametrize(
    ("typed", "again"),
    [
        ("", " --seed 1"),
        ("--seed=1 --only a,b", " --seed=1 --only a,b"),
        ("--from x --format markdown", " --from x --format markdown"),
        ("--config f.toml --output 'a b'", " --config f.toml --output 'a b'"),
    ],
)
def test_again_is_the_whole_command(typed, again):
    """As typed, with the seed."""
    words = shlex.split(typed)
    command = command_again(build_parser("report").read(words), words, {"seed": 1})
    assert command == f"python -m montecarlo report{again}"


@pytest.mark.parametrize(
    ("written", "opened"),
    [
        (["claims.json", "de.html", "index.html"], "index.html"),
        (["claims.json", "figures/a.svg", "report-en.md", "run.json"], "report-en.md"),
    ],
)
def test_a_page_is_what_to_open(written, opened):
    """Of the format that was asked for."""
    record = SimpleNamespace(failed_self_checks=list)
    results = SimpleNamespace(record=record, counts=[(2, "open")])
    told = summary_lines(results, [Path("x") / name for name in written])
    assert told[0].startswith(f"open {Path('x') / opened} ")


@pytest.mark.parametrize(
    ("typed", "failed", "status"),
    [
        ([], ["z-scores"], 0),
        (["--fail-on", "self-check"], [], 0),
        (["--fail-on", "fails,self-check"], ["entries"], 1),
    ],
)
def test_refuted_self_check_ends_in_its_status(monkeypatch, typed, failed, status):
    """Status 1 where a check of the simulator itself is refuted, if it is asked for."""
    record = SimpleNamespace(claims=(), failed_self_checks=lambda: failed)
    results = SimpleNamespace(record=record)
    found = lambda *_, **__: (results, ())  # noqa: E731 - in the place of a function
    monkeypatch.setattr("montecarlo.cli.report.write_or_render", found)
    assert main([*typed, "--quiet"]) == status


# --- What is asked for --------------------------------------------------------------


def test_flags_go_before_the_file(run, config, tmp_path, monkeypatch):
    """A flag beats the file, the file beats the defaults; a preset takes its grid."""
    asked = []

    def note(study, target, **_):
        asked.append((study, target))
        raise KeyboardInterrupt

    monkeypatch.setattr(studies, "write_report", note)
    file = config(TINY.replace("seed = 1", "seed = 5"))[:2]
    flags = ["--seed", 7, "--lang", "ja", "--lang", "en", "--output", tmp_path / "flag"]
    for typed in (file, [*file, *flags], [*file, "--preset", "quick"]):
        assert run(*typed)[0] == 130
    (plain, to), (flagged, other), (preset, _) = asked
    assert (plain.seed, to.languages, to.output.name) == (5, (*LANGUAGES,), "output")
    assert (flagged.seed, other.languages) == (7, ("en", "ja"))
    assert (other.output.name, other.jobs) == ("flag", None)
    assert flagged.grid == plain.grid != preset.grid == PRESETS["quick"]
    assert plain.grid.d_k == (4, 16)
    assert [one.preset for one, _ in asked] == ["", "", "quick"]


ONLY = TINY_GRID.replace("[4, 16]", "[16, 64]").replace("[8]", "[32]")
ONLY = ONLY.replace("[4]", "[16]")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claims", "topic"),
    [
        (["unscaled-gradient-vanishes", "unscaled-one-hot"], "weights"),
        (["gradient-sets-update"], "training"),  # on record: nothing is sampled
    ],
)
def test_only_some_claims(run, config, tmp_path, claims, topic):
    """Only what the claims need is sampled, and the pages do without the rest."""
    output = tmp_path / "only"
    arguments = [*config(ONLY), "--output", output]
    for claim in claims:
        arguments += ["--only", claim]
    status, _, complaint = run(*arguments)
    assert (status, complaint) == (0, "")
    record = json.loads((output / "run.json").read_bytes())
    assert record["only"] == claims
    names = list(record["replicates"])
    assert {name.endswith("pairs") for name in names} <= {topic == "variance"}
    assert bool(names) == (topic != "training")
    judged = json.loads((output / "claims.json").read_bytes())["claims"]
    assert [claim["id"] for claim in judged] == claims
    page = (output / "en.html").read_text(encoding="utf-8")
    for claim in read_catalogue().claim:
        assert (f'id="claim-{claim.id}"' in page) == (claim.id in claims)
    for other in ("variance", "weights"):
        assert (f'<section id="{other}">' in page) == (other == topic)
    text = re.sub("<[^>]+>", "", page)
    assert f"--only {','.join(claims)}" in text


@pytest.mark.slow
def test_page_tells_how_to_make_it_again(run, config, tmp_path, monkeypatch):
    """What stands under "Reproduce this report" samples and judges the same."""
    more = 'seed = 20251120\nerror_rate = 0.05\nonly = ["linear-variance"]'
    text = TINY.replace("seed = 1", more)
    run(*config(text), "--output", tmp_path / "first", "--quiet")
    page = html5lib.parse((tmp_path / "first" / "en.html").read_text(encoding="utf-8"))
    (shown,) = page.iter("{http://www.w3.org/1999/xhtml}pre")
    typed = "".join(shown.itertext())
    if written := re.match(r"cat > (\S+) <<'(\w+)'\n(.*)\n\2\n", typed, re.DOTALL):
        (tmp_path / written[1]).write_text(written[3], encoding="utf-8")
        typed = typed[written.end() :]
    *program, command = shlex.split(typed)[:4]
    arguments = shlex.split(typed)[4:]
    assert (program, command) == (["python", "-m", "montecarlo"], "report")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report_command, "make_report", lambda *_, **__: None)
    assert run(*arguments, "--output", "second", "--jobs", 1, "--quiet")[0] == 0
    for name in DATA_FILES:
        first, second = (tmp_path / folder / name for folder in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()


# --- The same bytes -----------------------------------------------------------------


@pytest.mark.slow
def test_workers_hash_seed_and_folder_change_no_byte(config, finished, tmp_path):
    """Every file but that of the times."""
    arguments = [*config(), "--lang", "de"]
    words = ("-m", "montecarlo", "report", *arguments, "--jobs", "2", "--quiet")
    done = run_python(*words, cwd=tmp_path, PYTHONHASHSEED="2", LC_ALL="C")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert contents(tmp_path / "output", JOURNAL) == contents(finished, JOURNAL)
    assert {"en.html", "de.html", "index.html", "run.json"} < set(
        contents(finished, JOURNAL)
    )
    timing = json.loads((tmp_path / "output" / TIMING_FILE).read_bytes())
    assert (timing["jobs"], timing["executor"]) == (2, "processes")


def test_another_seed_changes_the_numbers(run, config, finished, tmp_path):
    """The comparison above is not of constants."""
    other = tmp_path / "other"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_command, "make_report", lambda *_, **__: None)
        run(*config(), "--output", other, "--seed", 2, "--quiet")
    name = "measurements.csv"
    assert (other / name).read_bytes() != (finished / name).read_bytes()
    first = [line.rpartition(",")[2] for line in (other / name).read_text().split()]
    second = [line.rpartition(",")[2] for line in (finished / name).read_text().split()]
    assert first == second  # the same rows, by their names

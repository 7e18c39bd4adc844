"""What a user sees of the journal: who is refused, with what words, and what helps."""

import builtins
import errno
import io
import multiprocessing
import os
import resource
from contextlib import closing
from pathlib import Path

import pytest

import montecarlo.report.running as report_command
from montecarlo.cli import studies
from montecarlo.cli.report import main
from montecarlo.study.folder import JOURNAL, TIMING_FILE, files_of
from montecarlo.study.journal import open_journal

pytestmark = pytest.mark.usefixtures("one_figure")

STUDY = """
lang = ["en"]
jobs = 1
only = ["linear-variance"]
[grid]
d_k = [16, 64]
n_keys = [32]
distributions = []
first = 16
most = 16
"""


@pytest.fixture
def run(tmp_path, capsys):
    """Run the command here; returns its status and what it complained."""
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    config = ["--config", str(tmp_path / "study.toml"), "--quiet"]

    def run_main(*arguments):
        output = str(tmp_path / "output")
        status = main([*config, "--output", output, *map(str, arguments)])
        return status, capsys.readouterr().err

    return run_main


@pytest.fixture
def interrupted(run, tmp_path, monkeypatch):
    """The output folder of a run that was stopped while it rendered."""

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(report_command, "make_report", stop)
        status, complaint = run()
    assert status == 130
    assert "finished batches are kept, the same command goes on" in complaint
    assert len(complaint.splitlines()) == 1
    return tmp_path / "output"


def contents(folder):
    """The bytes of every file, but what may differ."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in files_of(folder)
        if path.name != TIMING_FILE
    }


@pytest.mark.slow
def test_same_command_goes_on(run, interrupted, tmp_path, monkeypatch):
    """It samples nothing again, writes what an uninterrupted one writes, and leaves no
    journal.
    """
    whole = tmp_path / "whole"
    assert run("--output", whole)[0] == 0
    with monkeypatch.context() as patch:
        patch.setattr("montecarlo.estimation.engine.sample", None)
        assert run() == (0, "")
    assert contents(interrupted) == contents(whole)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--seed", "2"], "differs in seed;"),
        (["--only", "unscaled-one-hot"], "differs in checks, claims;"),
        ([], "differs in code;"),
    ],
)
def test_another_command_is_refused(run, interrupted, monkeypatch, flags, words):
    """In one line, with what differs and what helps; so is what another version of the
    code has drawn.  Nothing is touched, and the way out that the message names is one.
    """
    before = contents(interrupted)
    if not flags:
        monkeypatch.setattr("montecarlo.claims.running.code_digest", lambda: "other")
    status, complaint = run(*flags)
    assert status == 3
    assert words in complaint
    assert "--fresh" in complaint
    assert len(complaint.splitlines()) == 1
    assert contents(interrupted) == before
    assert run("--fresh", *flags) == (0, "")
    assert not (interrupted / JOURNAL).exists()


def test_what_is_no_journal_is_refused(run, interrupted):
    """In one line; with --fresh the run is made."""
    path = interrupted / JOURNAL
    path.write_bytes(path.read_bytes()[:100] + b"x" * 4096)
    status, complaint = run()
    assert status == 3
    assert "as it was written" in complaint
    assert len(complaint.splitlines()) == 1
    assert run("--fresh") == (0, "")


@pytest.mark.slow
@pytest.mark.usefixtures("drawn_here")
def test_folder_in_use(run, tmp_path):
    """Two runs in one folder: the second is refused, whether it samples or renders."""
    assert run()[0] == 0
    output = tmp_path / "output"
    before = contents(output)
    with closing(open_journal(output)):
        for flags in ([], ["--fresh"]):
            status, complaint = run(*flags)
            assert status == 3
            assert "in use by another run" in complaint
            assert len(complaint.splitlines()) == 1
        again = ["--from", str(output), "--output", str(output), "--quiet"]
        assert main(again) == 3
    assert contents(output) == before
    assert main(again) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("drawn_here")
def test_rendering_again_leaves_the_journal(run, interrupted, tmp_path):
    """An interrupted run can still go on after other results were rendered there."""
    whole = tmp_path / "whole"
    assert run("--output", whole)[0] == 0
    kept = (interrupted / JOURNAL).stat().st_size
    again = ["--from", str(whole), "--output", str(interrupted), "--quiet"]
    assert main(again) == 0
    assert (interrupted / JOURNAL).stat().st_size == kept
    assert run() == (0, "")


def test_folder_that_cannot_be_written(run, monkeypatch):
    """One line with the folder and the reason.  (Permissions themselves do not stop a
    test that is run as root.)
    """

    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "touch", refuse)
    status, complaint = run()
    assert status == 3
    assert "Read-only file system" in complaint
    assert len(complaint.splitlines()) == 1


def _run_on_a_full_disk(arguments, told):
    """Run the command where no file may grow beyond some kilobytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    told.put(main(arguments))


@pytest.mark.slow
def test_full_disk(tmp_path, capfd):
    """One line; what was kept before is there, and with room the run goes on."""
    config = tmp_path / "study.toml"
    config.write_text(STUDY.replace('only = ["linear-variance"]\n', ""))
    output = tmp_path / "output"
    arguments = ["--config", str(config), "--output", str(output), "--quiet"]
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    process = context.Process(target=_run_on_a_full_disk, args=(arguments, told))
    process.start()
    assert told.get(timeout=120) == 3
    process.join()
    (line,) = capfd.readouterr().err.splitlines()
    assert "must be writable" in line
    assert "the same command goes on" in line
    assert (output / JOURNAL).exists()
    assert main(arguments) == 0
    assert not (output / JOURNAL).exists()


def fail_at(monkeypatch, folder, step, error):
    """Let the disk fail at one of the files opened to be written, and of the renames;
    the file is there then, and empty.  Returns a list that is filled if it came to it.
    """
    left, failed, rename = [step], [], Path.replace

    def failing(function):
        def called(path, *arguments, **options):
            mode = arguments[0] if arguments else options.get("mode", "r")
            writes = function is rename or "w" in str(mode)
            if writes and str(path).startswith(str(folder)):
                left[0] -= 1
                if left[0] == -1:
                    failed.append(path)
                    if function is not rename:
                        function(path, *arguments, **options).close()
                    raise error
            return function(path, *arguments, **options)

        return called

    for owner, name in ((io, "open"), (builtins, "open"), (Path, "replace")):
        monkeypatch.setattr(owner, name, failing(getattr(owner, name)))
    return failed


@pytest.mark.slow
@pytest.mark.usefixtures("drawn_here")
def test_a_disk_that_fails_while_publishing(run, tmp_path, monkeypatch, capsys):
    """Whichever file of a report cannot be written or renamed: a line with the reason,
    status 3, and the earlier report is whole or the folder says that it is not; the
    same command finishes it.
    """
    assert run("--format", "json")[0] == 0
    output = tmp_path / "output"
    again = ["--from", str(output), "--output", str(output), "--quiet"]
    monkeypatch.setattr(studies, "_require_other_folder", lambda *_: None)
    again += ["--format", "json", "--lang", "en"]
    assert main(again) == 0
    before = contents(output)
    for step in range(0, 99, 20):  # test_publishing tries every rename
        with monkeypatch.context() as patch:
            error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            failed = fail_at(patch, output, step, error)
            status = main(again)
        if not failed:
            break
        assert status == 3, failed
        (line,) = capsys.readouterr().err.splitlines()
        assert os.strerror(errno.ENOSPC) in line
        if (output / "run.json").exists():
            found = contents(output)
            assert {name: found[name] for name in before} == before
            continue
        assert main(again) == 2
        assert "the same command goes on" in capsys.readouterr().err
        assert run("--format", "json") == (0, "")
        assert main(again) == 0
        assert contents(output) == before
    assert status == 0
    assert step > 2 * len(before)

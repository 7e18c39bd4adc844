"""What a user sees of the journal: who is refused, with what words, and what helps."""

import pytest
from filelock import FileLock

import montecarlo.report.running as report_command
from montecarlo.study.folder import JOURNAL, LOCK
from tests.commands import report as main
from tests.conftest import contents, small_study

pytestmark = pytest.mark.usefixtures("one_figure")


@pytest.fixture
def run(tmp_path, capsys):
    """Run the command here; returns its status and what it complained."""
    config = small_study(tmp_path, {"only": ["linear-variance"]})

    def run_main(*arguments, told=("--quiet",)):
        output = str(tmp_path / "output")
        status = main([*config, *told, "--output", output, *map(str, arguments)])
        return status, capsys.readouterr().err

    return run_main


@pytest.fixture
def interrupted(run, tmp_path, monkeypatch):
    """The output folder of a run that was stopped while it rendered."""

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(report_command, "make_report", stop)
        status, complaint = run("--fresh")
    assert status == 130
    assert complaint.rstrip().endswith(f"--output {tmp_path / 'output'}")
    assert len(complaint.splitlines()) == 1
    return tmp_path / "output"


@pytest.mark.slow
@pytest.mark.usefixtures("drawn_here")
def test_same_command_goes_on(run, interrupted, tmp_path, monkeypatch, capsys):
    """It samples nothing again, also after other results were rendered there, writes
    what an uninterrupted one writes, and leaves no journal.  A folder in use is
    refused, whether a run samples or renders.
    """
    whole = tmp_path / "whole"
    assert run("--output", whole)[0] == 0
    again = ["--from", str(whole), "--output", str(interrupted), "--quiet"]
    with FileLock(interrupted / LOCK):
        for flags in ([], ["--fresh"]):
            status, complaint = run(*flags)
            assert status == 3
            assert len(complaint.splitlines()) == 1
        assert main(again) == 3
    capsys.readouterr()
    assert main(again) == 0
    with monkeypatch.context() as patch:
        patch.setattr("montecarlo.estimation.engine.sample", None)
        status, told = run(told=())
        assert (status, told.startswith("going on from ")) == (0, True)
    assert contents(interrupted) == contents(whole)
    assert not (interrupted / JOURNAL).exists()


@pytest.mark.parametrize("flags", [["--seed", "2", "--only", "scaled-mean-zero"], []])
def test_another_command_is_refused(run, interrupted, monkeypatch, flags):
    """In one line, with what helps; so is what another version of the code has drawn.
    Nothing is touched, and the way out that the message names is one.
    """
    before = contents(interrupted)
    if not flags:
        monkeypatch.setattr("montecarlo.claims.running.code_digest", lambda: "other")
    status, complaint = run(*flags)
    assert status == 3
    assert "--fresh" in complaint
    assert len(complaint.splitlines()) == 1
    assert contents(interrupted) == before
    assert run("--fresh", *flags) == (0, "")
    assert not (interrupted / JOURNAL).exists()

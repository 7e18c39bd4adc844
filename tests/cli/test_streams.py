"""Output that cannot be written, streams that are closed, and the end by SIGTERM."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from montecarlo.cli import exits
from montecarlo.cli.options import Parser
from tests.conftest import ALONE, NOTHING, small_study

ROOT = Path(__file__).parents[2]
#: What is typed, and its status where it can print.
QUICK = {
    "--version": 0,
    "--list divisors": 0,
    "measure --help": 0,
    "measure --quantity entropy --d-k 4 --keys 8 --relative-error 0.2": 0,
}
REPORT = f"report --config study.toml {' '.join(ALONE)}"
MEASURE = next(words for words in QUICK if "--quantity" in words)


@pytest.fixture
def run(tmp_path):
    """Run a command in a folder, redirected as a shell does."""
    small_study(tmp_path, {"only": ["linear-variance"]}, n_keys=[8], first=4, most=4)

    def run_shell(words, redirected):
        return subprocess.run(  # noqa: S603
            ["/bin/bash", "-c", f"{sys.executable} -m montecarlo {words} {redirected}"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    return run_shell


@pytest.mark.parametrize(
    ("words", "redirected"),
    [
        *((words, ">/dev/full") for words in QUICK),
        *(("--version", ">&-"), (MEASURE, ">&-")),
        pytest.param(REPORT, ">/dev/full", marks=pytest.mark.slow),
    ],
)
def test_output_that_cannot_be_written(run, words, redirected):
    """One line, status 3, and nothing that Python says itself at its end."""
    done = run(words, redirected)
    assert done.returncode == exits.FAILED, done.stderr
    (line,) = done.stderr.splitlines()
    assert "standard output must be writable, got: " in line


def test_sigterm_ends_as_an_interruption(capsys):
    """One line, the status that shells give it, and the handler is as it was."""

    def work(*_):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)

    before = signal.getsignal(signal.SIGTERM)
    assert exits.run_work(Parser("x", NOTHING), work, []) == exits.TERMINATED
    assert capsys.readouterr().err == f"montecarlo x: {exits.NOTHING_WRITTEN}\n"
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
@pytest.mark.parametrize(("how", "after"), [("--jobs=1", 0.5), ("--jobs=2", 0.0)])
def test_sigterm_of_a_report(tmp_path, how, after):
    """While it samples and while workers start: one line, and what the same command
    goes on from.
    """
    command = [sys.executable, "-m", "montecarlo", "report", "--preset", "full"]
    with subprocess.Popen(  # noqa: S603
        [*command, "--quiet", "--output", "new", how],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            while not (tmp_path / "new" / ".montecarlo-partial").exists():
                assert process.poll() is None
                time.sleep(0.02)
            time.sleep(after)
            process.terminate()
            _, complaint = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == exits.TERMINATED, complaint
    assert len(complaint.splitlines()) == 1, complaint
    left = {path.name for path in (tmp_path / "new").glob("*")}
    assert left <= {".montecarlo-journal"}

"""What failed can be sampled again, alone: the command says exactly the same."""

import json
import shlex
import subprocess

import pytest

from montecarlo.cli.exits import BUG
from montecarlo.estimation import engine
from montecarlo.sampling.replicates import sample
from montecarlo.study import failures
from montecarlo.study.failures import batch_command
from montecarlo.study.presets import PRESETS
from tests.commands import measure as main
from tests.commands import report
from tests.conftest import ALONE

pytestmark = pytest.mark.usefixtures("one_figure")

STUDY = """
seed = 7
[grid]
d_k = [4, 16]
n_keys = [8]
distributions = []
blocks = [{d_k = [16], n_keys = [8], pairs = false, formats = true}]
tails = [[4, 2]]
divisors = ["none", "sqrt"]
first = 8
most = 16
"""


def words_of(command):
    """The arguments of a command, as a shell reads them."""
    words = shlex.split(command)
    assert words[:4] == ["python", "-m", "montecarlo", "measure"]
    return words[4:]


@pytest.fixture
def asked(monkeypatch):
    """What the replay samples, without sampling."""
    found = []
    monkeypatch.setattr(failures, "sample", lambda *arguments: found.append(arguments))
    return found


def test_every_point_can_be_replayed(asked):
    """The command of a point, as a shell reads it, samples that very point, its
    seed and indices, with or without number formats, under all divisors.
    """
    points = {point for grid in PRESETS.values() for point in grid.points()}
    for point in points:
        command = batch_command(point, 2**62, range(128, 131))
        assert main(words_of(command)) == 0
        again, seed, first, stop, columns = asked.pop()
        assert again == point  # formats included
        assert again.name == point.name
        assert (seed, first, stop) == (2**62, 128, 131)
        if point.has_rows:
            assert set(columns.divisors) == set(PRESETS["full"].divisors)
    assert any(point.formats for point in points)
    assert any("mean" in point.distribution_q.name for point in points)


def test_a_shell_reads_the_command_as_it_stands():
    """Names with brackets and commas are quoted for a shell."""
    for point in PRESETS["quick"].points():
        command = batch_command(point, 1, range(2))
        shown = command.replace("python -m montecarlo measure", "printf '%s\\n'")
        read = subprocess.run(  # noqa: S602 - a command of our own
            shown, shell=True, check=True, capture_output=True, text=True
        )
        assert read.stdout.splitlines() == words_of(command)


@pytest.fixture
def run_report(tmp_path, capsys):
    """Run a small report; returns its status and its complaint."""

    def run():
        path = tmp_path / "study.toml"
        path.write_text(STUDY, encoding="utf-8")
        output = ["--output", str(tmp_path / "output"), "--quiet"]
        status = report(["--config", str(path), *ALONE, *output])
        return status, capsys.readouterr().err

    return run


@pytest.mark.slow
def test_failing_point_is_told_and_replayed(monkeypatch, tmp_path, run_report, capsys):
    """A planted bug: the report ends with its traceback; its command, alone, fails at
    the same replicates; with the error gone, the run goes on where it was.
    """
    drawn = []

    def failing(point, seed, start, stop, divisors):
        if point.formats and start <= 3 < stop:
            raise FloatingPointError(f"planted with seed {seed}")
        drawn.append((point, start, stop))
        return sample(point, seed, start, stop, divisors)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "sample", failing)
        patch.setattr(failures, "sample", failing)
        status, complaint = run_report()
        assert status == BUG
        (line,) = (one for one in complaint.splitlines() if "replay: " in one)
        assert "failed (FloatingPointError: planted with seed 7), replay: " in line
        assert "d_k=16;n_keys=8" in line
        words = words_of(line.partition("replay: ")[2])
        assert main(words) == BUG
        told = capsys.readouterr().err
        assert told.startswith("Traceback")
        assert "FloatingPointError: planted" in told.splitlines()[-2]
    assert main(words) == 0
    assert "sampled without failure" in capsys.readouterr().out

    others = len(drawn)
    with monkeypatch.context() as patch:
        patch.setattr(engine, "sample", lambda *a: drawn.append(a) or sample(*a))
        assert run_report() == (0, "")
    again = {(a[0], a[2], a[3]) for a in drawn[others:]}
    assert again
    assert not again & set(drawn[:others])
    run = json.loads((tmp_path / "output" / "run.json").read_text())
    assert "executor" not in json.dumps(run)

"""The command that judges the judge: a short card, written, read and shown."""

import numpy as np
import pytest

from montecarlo.calibration import pipeline, studies
from montecarlo.calibration.card import actual_over_nominal, by_quantity, read_card
from montecarlo.claims.simulation import ErrorRates
from montecarlo.cli.calibrate import main
from montecarlo.cli.exits import DONE, INPUT_ERROR
from montecarlo.report.content.report_card import view_card
from montecarlo.sampling.design_points import parse_point


@pytest.mark.slow
def test_short_card(tmp_path, capsys):
    """A short run writes a card that the pages can show, and keeps what it drew.

    Over all judged combinations the misses at 1 in 100 are at most 1.5 times as many
    as stated: a few hundred thousand samples of small banks, whose own luck is shared
    by all samples of one.  A run with Student's t in place of the quantile of 1 in 100
    at 1 in 30 fails.
    """
    work, output = tmp_path / "work", tmp_path / "card"
    arguments = ["--short", "--jobs", "2", "--work", str(work), "--output", str(output)]

    assert main(arguments) == DONE
    card = read_card(output)
    groups = by_quantity(card.rates[card.rates["judged"]])
    pooled = groups.select_dtypes("number").sum().to_frame().T
    assert float(actual_over_nominal(pooled)[0.01].iloc[0]) <= 1.5
    assert view_card(card, 1e-6).grades
    assert "written" in capsys.readouterr().out
    assert any(work.rglob("*.npz"))


class NoProbes:
    """Nothing was drawn to be compared, and nothing is written of it."""

    def to_csv(self, *_, **__):
        """Write nothing."""


def test_what_is_shipped_is_whole(tmp_path, monkeypatch):
    """A short card is written beside its work, unless it is asked for elsewhere."""
    written = []
    monkeypatch.setattr(pipeline, "points", list)
    monkeypatch.setattr(pipeline, "all_series", list)
    monkeypatch.setattr(pipeline, "probe", lambda *_: NoProbes())
    monkeypatch.setattr(pipeline, "judge_studies", lambda *_: {})
    monkeypatch.setattr(
        pipeline, "write_card", lambda folder, *_: written.append(folder)
    )
    monkeypatch.setattr(pipeline, "_lines", lambda _: [])
    assert main(["--short", "--jobs", "1", "--work", str(tmp_path)]) == DONE
    assert main(["--jobs", "1", "--work", str(tmp_path)]) == DONE
    assert written == [tmp_path / "short" / "card", pipeline.FOLDER]


def test_a_file_is_no_folder(tmp_path, capsys):
    """It is refused before anything is drawn."""
    file = tmp_path / "file"
    file.touch()
    for given in (["--work", str(file)], ["--output", str(file / "card")]):
        assert main(["--short", *given]) == INPUT_ERROR
        assert "must be a folder, got" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"), [(["--seed", "x"], "seed"), (["--jobs", "0"], "jobs")]
)
def test_bad_input(arguments, words, tmp_path, capsys):
    """One line that names what is wrong, exit status 2, nothing written."""
    given = [*arguments, "--work", str(tmp_path / "w"), "--output", str(tmp_path / "o")]

    assert main(given) == INPUT_ERROR
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert not (tmp_path / "o").exists()


@pytest.mark.slow
def test_a_damaged_file_of_work_is_named(tmp_path, monkeypatch, capsys):
    """It is one line and status 2, whether a bank is damaged or a study."""
    point, one = parse_point("gaussian", "gaussian", 4), np.ones(1)
    study = studies.JudgedStudy(one, one, one, np.ones((1, 2)), np.zeros(1, np.int64))
    monkeypatch.setattr(pipeline, "SHORT", pipeline.Sizes(64, 8, 2, 2))
    monkeypatch.setattr(pipeline, "points", lambda: [point])
    monkeypatch.setattr(pipeline, "all_series", list)
    monkeypatch.setattr(pipeline, "error_rates_of", lambda _: ErrorRates(1e-6, 1, {}))
    monkeypatch.setattr(
        studies, "judge_study", lambda *_: dict.fromkeys(studies.ERROR_RATES, study)
    )
    given = ["--short", "--jobs", "1", "--work", str(tmp_path)]
    assert main(given) == DONE
    bank, *_, last = sorted(tmp_path.rglob("*.npz"))
    assert bank.parent != last.parent
    for path in (bank, last):
        capsys.readouterr()
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])  # as a full disk leaves it
        assert main(given) == INPUT_ERROR
        (line,) = capsys.readouterr().err.splitlines()
        assert str(path) in line
        path.write_bytes(content)

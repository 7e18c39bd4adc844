"""The command that judges the judge: a short card, written, read and shown."""

import pytest

from montecarlo.calibration import making
from montecarlo.calibration.card import actual_over_nominal, by_quantity, read_card
from montecarlo.cli.calibrate import main
from montecarlo.cli.exits import DONE, INPUT_ERROR
from montecarlo.report.content.report_card import view_card


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
    monkeypatch.setattr(making, "points", list)
    monkeypatch.setattr(making, "all_series", list)
    monkeypatch.setattr(making, "probe", lambda *_: NoProbes())
    monkeypatch.setattr(making, "judge_studies", lambda *_: {})
    monkeypatch.setattr(making, "write_card", lambda folder, *_: written.append(folder))
    monkeypatch.setattr(making, "_lines", lambda _: [])
    assert main(["--short", "--jobs", "1", "--work", str(tmp_path)]) == DONE
    assert main(["--jobs", "1", "--work", str(tmp_path)]) == DONE
    assert written == [tmp_path / "short" / "card", making.FOLDER]


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

"""The language model's record, which is read without JAX."""

import importlib.util
import math

import pandas as pd
import pytest

from montecarlo.cli import train
from montecarlo.errors import InputError
from montecarlo.training import language
from montecarlo.training.record import (
    FOLDER,
    LANGUAGE_CODE,
    LANGUAGE_MEASURED,
    RUN,
    read_language,
    training_digest,
    write_language,
)


def made_up():
    """Runs of all seeds: tuning seeds learn at one rate, judged ones at another."""
    steps = {(seed, 3e-3): 100.0 for seed in language.TUNING}
    steps |= {(seed, 1e-2): 100.0 for seed in language.JUDGED}
    lines = [
        (language.OPTIMISER, arm, 16, rate, seed, steps.get((seed, rate), math.inf))
        for arm in language.ARMS
        for rate in language.RATES
        for seed in (*language.TUNING, *language.JUDGED)
    ]
    table = pd.DataFrame(lines, columns=[*RUN, "steps"])
    return table.assign(**dict.fromkeys(LANGUAGE_MEASURED[1:], 0.5))


def test_seeds_for_rates_are_not_judged():
    """And of judged seeds there are 8."""
    assert not set(language.TUNING) & set(language.JUDGED)
    assert len(language.JUDGED) >= 8


def test_rates_are_chosen_on_tuning_seeds(tmp_path):
    """What would be best for the judged ones is not looked at."""
    table = made_up()
    write_language(tmp_path, table, {"command": "none"})
    found = read_language(tmp_path)
    assert set(found.chosen) == {("adam", arm, 16) for arm in language.ARMS}
    assert set(found.chosen.values()) == {3e-3}
    assert set(found.judged["seed"]) == set(language.JUDGED)
    assert found.about["code"] == training_digest(LANGUAGE_CODE)
    wanted = table.sort_values(RUN, ignore_index=True)
    pd.testing.assert_frame_equal(found.runs, wanted)


def test_unpaired_seeds_are_refused(tmp_path):
    """An arm with another seed than the others is not compared."""
    table = made_up()
    table.loc[table.index[-1], "seed"] = 999
    with pytest.raises(InputError, match="same seeds"):
        write_language(tmp_path, table, {})


def test_a_missing_extra_is_one_line(monkeypatch, capsys):
    """That says what to install, with the status of a wrong input."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert train.main(["--language"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "montecarlo-attention[training]" in line


def test_the_record_is_not_stale():
    """It was made by the code that is here, and has every run."""
    if not (FOLDER / "language.json").exists():
        pytest.skip("not made yet")
    found = read_language()
    assert found.about["code"] == training_digest(LANGUAGE_CODE)
    sizes = (language.ARMS, language.D_K, language.RATES, language.TUNING)
    per_seed = math.prod(map(len, sizes[:3]))
    assert len(found.runs) == per_seed * len((*language.TUNING, *language.JUDGED))

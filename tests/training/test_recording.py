"""The command that makes the record: kept seed by seed, the same bytes, compared."""

import json

import numpy as np
import pandas as pd
import pytest

from montecarlo.cli import exits
from montecarlo.cli.train import main
from montecarlo.errors import InputError
from montecarlo.training import record, recording, reproducing, retrieval
from montecarlo.training.arms import ARMS, RATES, TUNING
from montecarlo.training.record import FILES, MEASURED, read_record, round_runs
from montecarlo.training.reproducing import SEEDS, compare

D_K, JUDGED = (16,), range(100, 105)  # of invented runs
ALL = [*TUNING, *JUDGED]


@pytest.fixture
def make(tmp_path, invented):
    """Make a record of invented runs; returns status, its folder and what was run."""

    def make(name="record", work="work"):
        before = len(invented)
        typed = ["--jobs", "1", "--work", str(tmp_path / work)]
        status = main([*typed, "--output", str(tmp_path / name)])
        return status, tmp_path / name, invented[before:]

    return make


def contents(folder):
    """Bytes of every file of a record."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_record_is_made_and_read(make, capsys):
    """All seeds once; what is read is what was run, to five digits."""
    status, folder, ran = make()
    assert (status, ran) == (exits.DONE, ALL)
    assert "seed    104, 17 of 17" in capsys.readouterr().out
    assert set(contents(folder)) == FILES - {"language.csv", "language.json"}
    kept = read_record(folder)
    n_rates = {one: len(rates) for one, rates in RATES.items()}
    arms = len(ALL) * len(ARMS) * len(D_K)
    assert len(kept.runs) == arms * sum(n_rates.values())
    assert set(kept.chosen) == {(o, a, d) for o in RATES for a in ARMS for d in D_K}
    assert all(kept.chosen[one] == RATES[one[0]][2] for one in kept.chosen)
    # from the sixth rate on none learned, and at the largest all diverged
    never = kept.runs[np.isinf(kept.runs["steps"])]
    assert len(never) == arms * sum(n - 5 for n in n_rates.values())
    gone = kept.runs[np.isinf(kept.runs["final_loss"])].groupby("optimiser")["rate"]
    assert dict(gone.unique().map(list)) == {o: [r[-1]] for o, r in RATES.items()}
    assert kept.about["configuration"]["steps"] == retrieval.STEPS
    assert kept.rescaled[0].weights == 0.0


def test_interrupted_and_resumed_gives_the_same_bytes(make, monkeypatch):
    """Nothing is written meanwhile, and no finished seed is run again."""
    _, whole, _ = make("whole", "elsewhere")
    invented_runs = recording.run_seed

    def interrupted(seed, steps):
        if seed == JUDGED[3]:
            raise KeyboardInterrupt
        return invented_runs(seed, steps)

    monkeypatch.setattr(recording, "run_seed", interrupted)
    status, folder, before = make()
    assert status == exits.INTERRUPTED
    assert not contents(folder)
    monkeypatch.setattr(recording, "run_seed", invented_runs)
    status, folder, after = make()
    assert status == exits.DONE
    assert set(before) >= {*TUNING, *JUDGED[:3]}
    assert not set(before) & set(after)
    assert sorted(before + after) == ALL
    assert contents(folder) == contents(whole)


@pytest.mark.parametrize("damage", ["cut", "another seed's", "of other code"])
def test_a_file_of_work_that_is_not_its_own(
    damage, make, tmp_path, monkeypatch, capsys
):
    """Damaged or another seed's: named, status 2.  Of other code: made again."""
    make()
    capsys.readouterr()
    path, other = sorted((tmp_path / "work").iterdir())[:2]
    if damage == "of other code":
        monkeypatch.setattr(recording, "training_digest", lambda: "other")
        assert make()[0] == exits.DONE
        assert make()[2] == []
        assert len(list((tmp_path / "work").iterdir())) == 2 * len(ALL)
        return
    content = path.read_bytes()
    path.write_bytes(content[:-100] if damage == "cut" else other.read_bytes())
    assert make()[0] == exits.INPUT_ERROR
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line
    assert "without that file the same command makes it anew" in line


def test_files_of_others_stay(make, tmp_path, capsys):
    """A folder with anything else in it is refused before anything is run."""
    (tmp_path / "record").mkdir()
    (tmp_path / "record" / "thesis.tex").write_text("mine", encoding="utf-8")
    status, folder, ran = make()
    assert (status, ran) == (exits.INPUT_ERROR, [])
    assert "output must be empty or hold an earlier record" in capsys.readouterr().err
    assert set(contents(folder)) == {"thesis.tex"}


@pytest.mark.parametrize("planted", ["everywhere", "in one arm", "announced"])
def test_a_missing_seed_is_refused(planted, make):
    """Whether all runs of it are gone, one arm's, or it was never run."""
    _, folder, _ = make()
    table = pd.read_csv(folder / "runs.csv")
    gone = table["seed"] == 103
    if planted == "in one arm":
        gone &= table["arm"] == "sqrt"
    if planted == "announced":
        content = json.loads((folder / "record.json").read_text(encoding="utf-8"))
        content["seeds"]["judged"].append(999)
        (folder / "record.json").write_text(json.dumps(content), encoding="utf-8")
    else:
        table[~gone].to_csv(folder / "runs.csv", index=False)
    read_record.cache_clear()
    with pytest.raises(InputError, match="runs must have"):
        read_record(folder)


def test_a_record_that_is_not_there(tmp_path):
    """It is said which, in a line."""
    with pytest.raises(InputError, match="record must be a readable file"):
        read_record(tmp_path / "nowhere")


def test_runs_of_a_seed_are_those_of_training(monkeypatch):
    """What is kept of real runs is what came out of them."""
    monkeypatch.setattr(retrieval, "STEPS", 2)
    monkeypatch.setattr(recording, "run_seed", lambda *a: trials.setdefault(a, run(*a)))
    trials, run = {}, lambda *a: list(RUN_SEED(*a))
    table, losses = recording.read_or_run(5, None)
    (found,) = trials.values()
    assert losses.shape == (len(found), 2)
    for name in ("optimiser", "arm", "d_k", "rate", "seed", *MEASURED[1:]):
        assert table[name].tolist() == [getattr(one, name) for one in found]
    assert set(table["steps"]) == {np.inf}


RUN_SEED = recording.run_seed

# --- --short --------------------------------------------------------------------------


@pytest.fixture
def kept(make, monkeypatch):
    """The record that ``--short`` is compared with: an invented one."""
    _, folder, _ = make()
    found = read_record(folder)
    monkeypatch.setattr(reproducing, "read_record", lambda: found)
    return found


def test_short_agrees_with_the_record(kept, invented, capsys):
    """The first judged seeds, run and not read; status 0."""
    del kept
    before = len(invented)
    assert main(["--short", "--jobs", "1"]) == exits.DONE
    assert invented[before:] == [*JUDGED[:SEEDS]]
    assert "\nagrees; asked: every digit" in capsys.readouterr().out


@pytest.mark.parametrize("name", MEASURED)
def test_one_other_digit_is_seen(name, kept, capsys):
    """In one run of hundreds, in the last digit that is kept; status 1."""
    place = kept.judged.index[np.isfinite(kept.judged[name])][0]
    kept.runs.loc[place, name] *= 1.0001
    assert main(["--short", "--jobs", "1"]) == exits.FAILING
    assert "does not agree" in capsys.readouterr().out


def test_short_keeps_nothing(capsys):
    """What says where to is refused beside it."""
    for option in ("--work", "--output"):
        assert main(["--short", option, "x"]) == exits.INPUT_ERROR
        assert "--short must stand without" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("column", "share", "agrees"),
    [
        ("final_loss", 0.6, True),
        ("steps", 0.6, True),
        ("final_loss", 0.7, False),
        ("gradient", 0.01, False),
        ("update", 0.01, False),
    ],
)
def test_on_other_kernels_some_may_differ(column, share, agrees, kept):
    """Runs at high rates end elsewhere; what precedes learning, and others, do not."""
    runs = kept.judged.reset_index(drop=True)
    found = runs.copy()
    found.loc[: int(share * len(runs)), column] = 0.123
    assert compare(found, runs, exact=False)[1] == agrees
    assert not compare(found, runs, exact=True)[1]
    assert compare(runs, runs, exact=True)[1]


def test_other_runs_do_not_agree(kept):
    """A run too few, or of another seed."""
    runs = kept.judged
    assert not compare(runs[1:], runs, exact=False)[1]
    assert not compare(runs.assign(seed=runs["seed"] + 1), runs, exact=False)[1]


def test_never_is_no_number():
    """Never and never agree, never and once do not."""
    line = dict.fromkeys(MEASURED, 1.0) | {"optimiser": "sgd", "arm": "a", "d_k": 1}
    runs = pd.DataFrame([line | {"rate": 1.0, "seed": 1, "steps": np.inf}])
    assert compare(runs, runs, exact=True)[1]
    assert not compare(runs.assign(steps=299.0), runs, exact=False)[1]


def test_numbers_are_rounded_as_they_are_kept():
    """To five digits, in the order of the file."""
    line = {"optimiser": "sgd", "arm": "a", "d_k": 1, "rate": 1.0}
    numbers = {"final_loss": 1.234567, "gradient": np.inf, "update": 1.0, "steps": 3}
    found = round_runs(pd.DataFrame([line | numbers | {"seed": s} for s in (2, 1)]))
    assert found["seed"].tolist() == [1, 2]
    assert found.loc[0, MEASURED].tolist() == [3.0, 1.2346, np.inf, 1.0]
    assert record.DIGITS == 5

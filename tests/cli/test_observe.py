"""What `observe` writes and prints: tables, a record, a figure, the terminal."""

import hashlib
import json
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from montecarlo.model.observing import PARTS
from montecarlo.report.figures.applied_scale import build_scales
from montecarlo.study.folder import STAGING, read_run
from tests.commands import observe as main

TABLE, RECORD = "observation.csv", "observation.json"
SCALES, FIGURE = "applied-scale.csv", "figures/applied-scales.svg"


def planted_weights(q, k):
    """Return attention weights of heads that are divided by the root, and others.

    Of the first layer one head is divided twice, one has a bias, one each key alike;
    of the second, one lacks weight, one is capped and one fits no scale.
    """
    scores = q @ np.swapaxes(k, -1, -2)
    logits = scores / q.shape[-1] ** 0.5
    n = scores.shape[-1]
    places = np.arange(n)
    logits[:, 0, 1] /= q.shape[-1] ** 0.5
    logits[:, 0, 2] -= 0.25 * np.abs(places[:, None] - places)
    logits[:, 0, 3] = 0.0
    logits[:, 1, 1] = 2.0 * np.tanh(logits[:, 1, 1] / 2.0)
    logits[:, 1, 2] = logits[::-1, 1, 2]
    logits = np.where(places <= places[:, None], logits, -np.inf)
    weights = softmax(logits, axis=-1)
    weights[:, 1, 0] *= 0.8
    return weights


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Eight heads with faults, causal, as a file."""
    rng = np.random.default_rng(1)
    q = rng.normal(size=(8, 2, 4, 40, 16)) * np.linspace(0.5, 3.0, 4)[:, None, None]
    k = rng.normal(size=(8, 2, 2, 40, 16)) + 0.4
    path = tmp_path_factory.mktemp("planted") / "planted.npz"
    np.savez(path, q=q, k=k, weights=planted_weights(q, np.repeat(k, 2, axis=2)))
    return path


@pytest.fixture(scope="module")
def observed(planted):
    """What came of observing them: the folder, the record, lines that were printed."""
    folder, printed = planted.parent / "o", planted.parent / "printed.txt"
    with printed.open("w") as lines, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", lines)
        assert run(planted, "--causal", "--output", folder) == 0
    return SimpleNamespace(
        folder=folder,
        record=json.loads((folder / RECORD).read_text()),
        lines=printed.read_text().splitlines(),
    )


def test_terminal_has_the_numbers_of_the_table(observed):
    """Each head has a line with its values in observation.csv, rounded to four digits,
    its divisor in applied-scale.csv or a dash, its state, and the largest parts of the
    variance.
    """
    table = pd.read_csv(observed.folder / TABLE).set_index(["layer", "head"])
    scales = pd.read_csv(observed.folder / SCALES).set_index(["layer", "head"])
    heads = {(one["layer"], one["head"]): one for one in observed.record["heads"]}
    start = next(i for i, x in enumerate(observed.lines) if x.startswith("layer  head"))
    seen, spreads = [], []
    for line in observed.lines[start + 1 : start + 9]:
        layer, head, *numbers, applied, state = line.split()[:8]
        values = table.loc[(layer, head)].set_index("quantity")["value"]
        names = ("score_variance", "score_row_variance", "scaled_row_variance")
        for shown, name in zip(numbers, (*names, "unit_divisor"), strict=True):
            assert float(shown) == pytest.approx(values[name], rel=6e-4)
        one = heads[int(layer), int(head)]
        divisor = scales["implied_divisor"][int(layer), int(head)]
        assert applied == ("-" if np.isnan(divisor) else f"{divisor:.4g}")
        assert state == one["state"]
        shares = {n: values[f"part_{n}"] / values["score_variance"] for n in PARTS}
        assert one["shares"] == pytest.approx(shares, rel=1e-9)
        largest = sorted(shares, key=lambda name: -abs(shares[name]))[:3]
        parts = ", ".join(f"{name} {shares[name]:.0%}" for name in largest)
        assert line.rstrip().endswith(parts)
        seen.append((int(layer), int(head)))
        spreads.append(abs(np.log(values["scaled_row_variance"])))
    assert sorted(seen) == sorted(heads)
    assert spreads == sorted(spreads, reverse=True)
    states = Counter(one["state"] for one in heads.values())
    counts = ", ".join(
        f"{states[name]} {name}" for name in ("peaked", "balanced", "flat")
    )
    assert f"8 heads, d_k = 16, divisor 4: {counts}" in observed.lines


def test_record_tells_every_head(observed):
    """Each head once, with what was planted; findings as they are printed."""
    applied = observed.record["applied"]
    told = Counter(one["outcome"] for one in applied["heads"])
    assert told == {"scale": 6, "uniform": 1, "no_fit": 1}
    places = {(one["layer"], one["head"]) for one in applied["heads"]}
    assert len(places) == len(applied["heads"]) == 8
    assert [f"  {line}" for line in applied["findings"]] == observed.lines[1:8]
    assert applied["answer"] == "no"


def test_json_is_what_the_record_has(planted, observed, tmp_path, capsys):
    """`--json` prints one object, the one in observation.json, and nothing else."""
    assert run(planted, "--causal", "--json", "--output", tmp_path / "o") == 0
    assert json.loads(capsys.readouterr().out) == observed.record["applied"]


def drawn(scales):
    """Return the figure, drawn from a table."""
    return build_scales(scales, pd.DataFrame())


def marks_of(axes, marker):
    """Return what stands where a marker is drawn."""
    lines = [line for line in axes.lines if line.get_marker() == marker]
    return [point for line in lines for point in line.get_xydata().tolist()]


@pytest.fixture
def scales(observed):
    """The table that the figure is drawn from."""
    return pd.read_csv(observed.folder / SCALES).assign(expected=4.0)


def test_figure_shows_each_head(scales):
    """A point for each divisor, in its layer; marks at the top for the others."""
    picture = drawn(scales)
    axes = picture.panels[0].axes
    told = scales[scales["outcome"].eq("scale")]
    points = np.array(marks_of(axes, "o"))
    there = points[np.isfinite(points[:, 1])]
    assert there[:, 1] == pytest.approx(told["implied_divisor"])
    assert np.round(there[:, 0]).tolist() == told["layer"].tolist()
    ((place, _),) = marks_of(axes, "^")
    assert round(place) == 0
    ((place, _),) = marks_of(axes, "x")
    assert round(place) == 1
    legend = [key.label.words for key in picture.keys]
    assert legend == ["expected: 4", "all keys alike", "none above 0"]


def test_figure_has_the_intervals(scales):
    """Bars end where the table says; one that reaches the scale 0 is open upwards."""
    wide = scales.assign(ci_low=0.9, ci_high=1.1, implied_scale=1.0)
    wide = wide.assign(implied_divisor=1.0, outcome="scale")
    wide.loc[0, "ci_low"] = -0.1
    axes = drawn(wide).panels[0].axes
    (bars,) = axes.collections
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    assert ends[:, 0] == pytest.approx(1.0 / 1.1)
    assert ends[1:, 1] == pytest.approx(1.0 / 0.9)
    assert ends[0, 1] == pytest.approx(axes.get_ylim()[1])


def test_without_weights_there_is_no_figure(files, tmp_path, capsys):
    """Queries and keys alone tell no scale, and the terminal says so."""
    assert run(files, "--output", tmp_path / "o") == 0
    assert not (tmp_path / "o" / "figures").exists()
    printed = capsys.readouterr().out
    assert printed.startswith("scores divided by sqrt(d_k) = 4? cannot be told")
    assert "fewer than 5" not in printed


def test_few_sequences_say_so(tmp_path, capsys):
    """Without intervals the tokens at hand are described, and that is told."""
    rng = np.random.default_rng(1)
    q, k = (rng.normal(size=(4, 1, 2, 24, 16)) for _ in "qk")
    np.savez(tmp_path / "qk.npz", q=q, k=k)
    assert run(tmp_path / "qk.npz", "--output", tmp_path / "o") == 0
    assert "fewer than 5 sequences" in capsys.readouterr().out
    assert pd.read_csv(tmp_path / "o" / TABLE)["std_error"].isna().all()


@pytest.fixture
def files(tmp_path):
    """Write queries and keys of five sequences."""
    rng = np.random.default_rng(1)
    q, k = (rng.normal(size=(5, 1, 2, 24, 16)) for _ in "qk")
    path = tmp_path / "qk.npz"
    np.savez(path, q=q, k=k)
    return path


def run(*arguments):
    """Run the command."""
    return main([str(argument) for argument in arguments])


def test_command_writes_a_folder_of_results(planted, tmp_path, capsys):
    """Tables, record, figure; hashes that hold; the same bytes again."""
    outputs = [tmp_path / "a", tmp_path / "b"]
    for output in outputs:
        assert run(planted, "--output", output) == 0
    printed = capsys.readouterr().out
    assert "8 heads, d_k = 16" in printed
    assert str(outputs[0] / TABLE) in printed
    record = read_run(outputs[0])
    assert (
        record["files"][0]["sha256"] == hashlib.sha256(planted.read_bytes()).hexdigest()
    )
    assert set(record["sha256"]) == {TABLE, RECORD, SCALES, FIGURE}
    assert record == read_run(outputs[1])
    assert not (outputs[0] / STAGING).exists()
    columns = pd.read_csv(outputs[0] / TABLE).columns
    assert columns[:4].tolist() == ["layer", "head", "quantity", "value"]


def test_options_are_on_record(files, tmp_path):
    """In run.json every option that changes the numbers."""
    more = ["--axes", "sequence,layer,head,token,d", "--causal", "--divisor", "5"]
    assert run(files, "--output", tmp_path / "o", "--quiet", *more) == 0
    assert read_run(tmp_path / "o")["options"] == {
        "axes": ["sequence", "layer", "head", "token", "d"],
        "causal": True,
        "expect": None,
        "rtol": 0.01,
        "divisor": "5",
    }


@pytest.mark.parametrize(
    ("state", "divisor", "status"),
    [("flat", "1000", 1), ("saturated", "0.01", 1), ("flat,saturated", "4", 0)],
)
def test_states_fail_a_run(files, tmp_path, state, divisor, status):
    """A head in a state that was named is an exit status of 1, and only that."""
    arguments = ["--fail-on", state, "--divisor", divisor, "--quiet"]
    assert run(files, "--output", tmp_path / "o", *arguments) == status
    assert (tmp_path / "o" / TABLE).exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fail-on", "hot"], "fail-on must be one of saturated, peaked"),
        (["--divisor", "root"], "divisor must be one of none, sqrt"),
        (["--divisor", "-1"], "divisor must be one of none, sqrt"),
        (["--axes", "head,token,d"], "must have the axes head,token,d, got shape"),
    ],
)
def test_bad_options_are_refused(files, tmp_path, capsys, arguments, message):
    """One line on standard error, status 2, and nothing is written."""
    output = tmp_path / "o"
    assert run(files, "--output", output, *arguments) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.count("\n") == 1
    assert message in found.err
    assert not output.exists() or not list(output.iterdir())


def test_bad_numbers_leave_the_old_report(files, tmp_path, capsys):
    """What is found while reading leaves a finished folder as it was."""
    output = tmp_path / "o"
    assert run(files, "--output", output, "--quiet") == 0
    before = read_run(output)
    with np.load(files) as held:
        q, k = held["q"], held["k"]
    q[3, 0, 1, 7, 2] = np.nan
    np.savez(files, q=q, k=k)
    assert run(files, "--output", output) == 2
    assert "got nan at sequence 3, layer 0, head 1, token 7, d 2" in (
        capsys.readouterr().err
    )
    assert read_run(output) == before

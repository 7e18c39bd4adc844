"""What is printed: nothing that a terminal would obey, and in any encoding."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from montecarlo import assert_attention_scale
from montecarlo.errors import InputError
from montecarlo.names import parse_folder
from montecarlo.plain_text import printable
from montecarlo.study.console import print_table
from tests.commands import observe, report, run_python

#: Two claims, one of them refuted.
CLAIMS = Path(__file__).parents[1] / "docs" / "own-claim.toml"
#: Red, the window's title, a link, the other direction, a C1 introducer, a bell.
HOSTILE = "a\x1b[31mb\x1b]0;t\x07\u202etxt.exe\x9b2J\u2028\x00z"


def is_harmless(text):
    """Whether a terminal shows all of a text."""
    return all(one.isprintable() or one == "\n" for one in text)


def test_what_cannot_be_seen_is_escaped():
    """Control characters and turned writing; letters of any language stay."""
    assert not is_harmless(HOSTILE)
    assert is_harmless(printable(HOSTILE))
    assert "\\x1b[31m" in printable(HOSTILE)
    assert "\\u202e" in printable(HOSTILE)
    assert printable("± 中文 日本語 ñ\n") == "± 中文 日本語 ñ\n"
    assert printable("caf\udce9") == "caf\\udce9"


def members(path):
    """Write an archive whose member has a hostile name."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(HOSTILE.replace("\x00", ""), b"x")


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("members.npz", members),
        (f"{HOSTILE}.npz".replace("\x00", ""), lambda path: path.write_bytes(b"x")),
    ],
)
def test_names_in_a_model_are_escaped(tmp_path, capfd, name, write):
    """Refused in one line that a terminal shows, and no folder is left."""
    output = tmp_path / "new" / "observed"
    write(tmp_path / name)
    assert observe([str(tmp_path / name), "--output", str(output)]) == 2
    complaint = capfd.readouterr().err
    assert is_harmless(complaint)
    assert len(complaint.splitlines()) == 1
    assert "\\x1b" in complaint
    assert not (tmp_path / "new").exists()


def test_tables_take_no_markup(capsys):
    """What looks like markup is text: a link would be one that a terminal opens."""
    text = "[link=https://example.org]a[/link] :smile: [red]b"
    print_table(["[red]x"], [[text]])
    heading, line = capsys.readouterr().out.splitlines()
    assert (heading.rstrip(), line) == ("[red]x", text)


def test_any_encoding():
    """Signs that an encoding lacks are escaped; what was measured is not lost."""
    words = "--quantity score_variance --d-k 4 --most 64 --relative-error 0.9"
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    found = run_python("-m", "montecarlo", "measure", *words.split(), **ascii_only)
    assert found.returncode == 0, found.stderr
    assert r" \xb1 " in found.stdout


def test_a_home_is_expanded(tmp_path, monkeypatch, capfd):
    """``~``, where it is typed; a home that there is not is told before any work."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert parse_folder("output", "~/rep") == tmp_path / "rep"
    assert report(["--output", "~nobody-of-this-name/rep"]) == 2
    assert "output must name a folder" in capfd.readouterr().err


#: Prints a table, as a library does, which would end the process.
LONG_TABLE = (
    "import sys; from montecarlo.study.console import print_table\n"
    "print_table(['x'], [['a line' * 20]] * 4000)\n"
    "sys.exit(7)"
)
JUDGED = ("-m", "montecarlo", "judge", str(CLAIMS), "--jobs", "1")


@pytest.mark.parametrize(
    ("typed", "status"),
    [
        pytest.param(JUDGED, 1, marks=pytest.mark.slow),  # of two claims one is refuted
        (("-c", LONG_TABLE), 7),
    ],
)
def test_a_reader_that_ends_changes_no_status(typed, status):
    """If somebody reads one line of it: the same end, and no complaint."""
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, *typed], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == status
    process.stderr.close()


#: Ends of lines of all kinds, and what GitHub's runner takes for a command: ``::`` at
#: the start of a line, ``##[`` anywhere in it.
COMMANDS = (
    "x\n::error::forged",
    "x\r::stop-commands::t",
    "x\u2028::add-mask::0",
    "::error::first",
    "##[error]within",
)


def obeyed(printed):
    """Return the lines of an output that GitHub's runner would obey."""
    lines = re.split("[\n\r\u2028\u2029\x85]", printed)
    return [one for one in lines if one.lstrip().startswith("::") or "##[" in one]


@pytest.mark.parametrize("name", COMMANDS)
def test_names_in_files_command_no_runner(tmp_path, capfd, name):
    """Of arrays that are not read, and of an architecture: one line each."""
    q = np.random.default_rng(1).normal(size=(1, 1, 1, 8, 4))
    weights = np.full((1, 1, 1, 8, 8), 1 / 8)
    model, config = tmp_path / "qk.npz", tmp_path / "config.json"
    output = ["--output", str(tmp_path / "o")]
    np.savez(model, **{"q": q, "k": q, "weights": weights, name: q})
    assert obeyed(f"{name}\n")
    assert observe([str(model), *output]) == 0
    told = capfd.readouterr().out
    assert not obeyed(told)
    nested = {"model_type": "a", name: {"model_type": "t5"}}
    for content in ({"model_type": name}, nested):
        config.write_text(json.dumps(content))
        for options in ([], ["--json"]):
            typed = [str(model), *output, *options, "--config", str(config)]
            assert observe(typed) == 4
            told = capfd.readouterr().out
            assert not obeyed(told)
            if "--json" in options:
                assert json.loads(told)["answer"] == "cannot_be_told"
    config.write_text(json.dumps({"model_type": "llama", name: 1}))
    np.savez(model, **{name: q})
    assert observe([str(model), *output, "--config", str(config)]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert not obeyed(line)
    with pytest.raises(InputError) as error:
        assert_attention_scale(model)
    assert str(error.value).isprintable()

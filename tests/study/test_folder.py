"""Reading a results folder back: what is not as it was written is refused in a line."""

import json

import pytest

from montecarlo.errors import InputError
from montecarlo.study.folder import (
    DIGEST,
    RUN_FILE,
    SCHEMA,
    TIMING_FILE,
    digest,
    read_run,
    write_json,
    write_run,
    write_text,
)


@pytest.fixture
def output(tmp_path):
    """A folder as a run leaves it."""
    write_text(tmp_path / "figures" / "one.svg", "one")
    write_text(tmp_path / TIMING_FILE, "1.0 s")
    write_run(tmp_path, {"seed": 1})
    return tmp_path


def test_what_was_written_is_read(output):
    """Files are named with their hashes, but run.json and what may differ."""
    run = read_run(output)
    assert (run["program"], run["schema"], run["seed"]) == ("montecarlo", SCHEMA, 1)
    assert [*run["sha256"]] == ["figures/one.svg"]
    (output / TIMING_FILE).write_text("2.0 s", encoding="utf-8")
    assert read_run(output) == run


def test_changed_and_missing_files_are_refused(output):
    """Reading finds a file that was changed, or is gone, and names it."""
    path = output / "figures" / "one.svg"
    path.write_text("onE", encoding="utf-8")
    with pytest.raises(InputError, match=r"figures/one\.svg"):
        read_run(output)
    path.unlink()
    with pytest.raises(InputError, match=r"figures/one\.svg"):
        read_run(output)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"schema": SCHEMA + 1}, f"schema {SCHEMA}, got {SCHEMA + 1}"),
        ({"program": "other"}, "other"),
        ({"sha256": {"../a": "0"}}, "../a"),
        ({"seed": 2, DIGEST: "0"}, RUN_FILE),
    ],
)
def test_other_records_are_refused(output, change, named):
    """Of another schema or program, with hashes of what is not in the folder, or not
    as it was written.
    """
    run = json.loads((output / RUN_FILE).read_bytes()) | change
    write_json(output / RUN_FILE, run | {DIGEST: digest(run)} | change)
    with pytest.raises(InputError) as caught:
        read_run(output)
    assert named in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"schema": 1}', "{", None])
def test_unreadable_run_json(tmp_path, text):
    """A run.json that is no record, or none at all, is refused in one line."""
    if text is not None:
        (tmp_path / RUN_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"readable run\.json"):
        read_run(tmp_path)


def test_json_has_no_infinity(tmp_path):
    """Equal data give equal bytes, in the order given; NaN and infinity are refused."""
    path = tmp_path / "one.json"
    write_json(path, {"b": 1, "a": "é"})
    assert path.read_bytes() == '{\n "b": 1,\n "a": "é"\n}\n'.encode()
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"a": float("inf")})

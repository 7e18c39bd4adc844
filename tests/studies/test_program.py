"""What programs share: options, tables, and parts that are made once."""

from contextlib import suppress
from importlib import import_module

import numpy as np
import pytest

from montecarlo.errors import InputError, UnfinishedError
from studies import program
from studies.program import (
    HERE,
    keep,
    run_program,
)

#: Programs that import what is an extra.
NEEDS = {"language_model": "jax", "watch_alarms": "torch"}
ARRAYS = {"numbers": np.arange(12.0), "others": np.arange(12.0)}


def test_a_part_is_made_once(tmp_path, monkeypatch):
    """It is read back as it was made; of another recipe, or code, it is made anew."""
    made = []

    def make():
        made.append(1)
        return ARRAYS

    for recipe, times in (([1], 1), ([1], 1), ([2], 2), ([1], 2)):
        found = keep(tmp_path, "part", recipe, make)
        assert found.keys() == ARRAYS.keys()
        assert all(np.array_equal(found[name], ARRAYS[name]) for name in ARRAYS)
        assert len(made) == times
    monkeypatch.setattr(program, "code", lambda: "other")
    keep(tmp_path, "part", [1], make)
    keep(None, "part", [1], make)
    assert len(made) == 4


def test_a_part_is_whole_or_not_there(monkeypatch, tmp_path):
    """What ends while it is written is not taken for a part by the next run."""

    def half(file, **_):
        file.write(b"PK")
        raise OSError("planted")

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(OSError, match="planted"):
        keep(tmp_path, "part", [1], lambda: ARRAYS)
    assert not list(tmp_path.glob("*.npz"))


def test_a_changed_byte_is_found(tmp_path):
    """Wherever it is: the file is refused by its name, or read as it was written."""
    keep(tmp_path, "part", [1], lambda: ARRAYS)
    (path,) = tmp_path.iterdir()
    written = path.read_bytes()
    for place in range(0, 700, 7):
        content = bytearray(written)
        content[place % len(content)] ^= 0x55
        path.write_bytes(content)
        with suppress(ValueError):
            found = keep(tmp_path, "part", [1], lambda: ARRAYS)
            assert all(found[n].tobytes() == ARRAYS[n].tobytes() for n in found), place


@pytest.mark.parametrize("path", sorted(HERE.glob("*.py")), ids=lambda path: path.stem)
def test_every_program_can_be_imported(path):
    """None names what the package does not have any more."""
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem])
    import_module(f"studies.{path.stem}")


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (InputError("jobs must be 1, got 2"), 2, "jobs must be 1, got 2"),
        (UnfinishedError("the disk is full"), 3, "the disk is full"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_expected_ends_are_one_line(error, status, told, capsys):
    """With the status that a command has for them; a bug keeps its traceback."""

    def end():
        raise error

    assert run_program("x", end) == status
    assert capsys.readouterr().err == f"python -m studies.x: {told}\n"
    assert run_program("x", lambda: 1) == 1
    with pytest.raises(ZeroDivisionError):
        run_program("x", lambda: 1 // 0)

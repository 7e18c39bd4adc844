"""Files that a user names: regular ones, small, and TOML that is cheap to parse."""

import errno
import os
from pathlib import Path

import pytest

from montecarlo.errors import InputError, UnfinishedError
from montecarlo.small_files import (
    MOST_TOML_BYTES,
    parse_toml,
    read_small,
    write_file,
)
from tests.commands import judge, report


def test_long_files_are_refused_before_parsing():
    """A configuration has a few lines."""
    with pytest.raises(InputError, match="config must have at most"):
        parse_toml("config", "a=1\n" * MOST_TOML_BYTES)


@pytest.fixture(params=["pipe", "device", "link"])
def endless(request, tmp_path):
    """A pipe that nobody writes to, a device without an end, a link to one."""
    path = tmp_path / "endless.toml"
    if request.param == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    return Path("/dev/zero") if request.param == "device" else path


def test_only_regular_files_are_opened(endless, capsys):
    """A pipe would be waited for: one line at once, status 2, whatever names it."""
    with pytest.raises(InputError, match="x must be a regular file, got "):
        read_small("x", endless)
    file = str(endless)
    for command, *typed in (
        (judge, file),
        (report, "--config", file),
    ):
        assert command(typed) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert file in line


def test_a_results_folder_whose_record_is_a_pipe(tmp_path, capsys):
    """As a stranger's folder may have."""
    os.mkfifo(tmp_path / "run.json")
    assert report(["--from", str(tmp_path), "--output", str(tmp_path / "x")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert report(["--output", str(tmp_path)]) == 2


def test_a_file_at_odd_paths(tmp_path):
    """Refused, or written where a link leads."""
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "broken.npz").symlink_to(tmp_path / "none" / "one.npz")
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "device.npz").symlink_to("/dev/full")
    (tmp_path / "file").write_text("")
    for name in ("pipe", "broken", "folder", "device", "x" * 300, "file/one", "a\0b"):
        with pytest.raises(InputError, match="path must be"):
            write_file("path", tmp_path / f"{name}.npz", b"new")
    (tmp_path / "link.npz").symlink_to(tmp_path / "new.npz")
    write_file("path", tmp_path / "link.npz", b"new")
    assert (tmp_path / "new.npz").read_bytes() == b"new"
    assert (tmp_path / "link.npz").is_symlink()


@pytest.mark.parametrize("failing", ["write_bytes", "replace"])
def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch, failing):
    """A disk that is full leaves what was there, and no part."""
    path = tmp_path / "one.svg"
    path.write_bytes(b"before")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, failing, full)
    with pytest.raises(UnfinishedError, match="figure must be a file that can be"):
        write_file("figure", path, b"after")
    monkeypatch.undo()
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]

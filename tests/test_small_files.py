"""Files that a user names: regular ones, small, and TOML that is cheap to parse."""

import os
from pathlib import Path

import pytest

from montecarlo.errors import InputError
from montecarlo.small_files import MOST_TOML_BYTES, parse_toml, read_small
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

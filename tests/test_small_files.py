"""Files that a user names: regular ones, small, and TOML that is cheap to parse."""

import os
import time
from pathlib import Path

import pytest

from montecarlo.errors import InputError
from montecarlo.small_files import MOST_PARTS, MOST_WRITTEN, parse_toml, read_small
from tests.commands import judge, report

#: What is refused at once, and what costs most of what is not.
DEEP = {
    "dotted": "a" + ".a" * (MOST_WRITTEN // 2 - 2) + "=1",
    "table": "[" + "a." * (MOST_WRITTEN // 2 - 2) + "a]",
    "spaced": "a" + " . a" * (MOST_WRITTEN // 4 - 2) + "=1",
    "quoted": '"a"' + ".'a'" * (MOST_WRITTEN // 4 - 2) + "=1",
    "inline": "x={a" + ".a" * MOST_PARTS + "=1}",
    "long": "a=1\n" * MOST_WRITTEN,
}


@pytest.mark.parametrize("name", DEEP)
def test_long_keys_are_refused_before_parsing(name):
    """Of a key, each part costs as much as all before it: 100 KB took 8 GB."""
    started = time.process_time()
    with pytest.raises(InputError, match="config must have at most") as refused:
        parse_toml("config", DEEP[name])
    assert time.process_time() - started < 1.0
    assert len(str(refused.value)) < 300


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
        (report, "--replicates-from", file),
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

"""Files that a user names: regular ones, small, and TOML that is cheap to parse."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from montecarlo.cli.judge import main as judge
from montecarlo.cli.report import main as report
from montecarlo.errors import InputError
from montecarlo.small_files import MOST_PARTS, MOST_WRITTEN, parse_toml, read_small

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
#: Bytes that a parsed file may take.
MOST_MEMORY = 500 * 2**20


def filled(unit):
    """Return as many units as a file may have, each with a key of its own."""
    lines, size = [], 0
    while size < MOST_WRITTEN:
        number, key = len(lines), ""
        while number or not key:
            number, digit = divmod(number, len(LETTERS))
            key += LETTERS[digit]
        lines.append(unit.replace("KEY", key))
        size += len(lines[-1])
    return "".join(lines[:-1])


REST = ".a" * (MOST_PARTS - 1)
#: What is refused at once, and what costs most of what is not.
DEEP = {
    "dotted": "a" + ".a" * (MOST_WRITTEN // 2 - 2) + "=1",
    "table": "[" + "a." * (MOST_WRITTEN // 2 - 2) + "a]",
    "spaced": "a" + " . a" * (MOST_WRITTEN // 4 - 2) + "=1",
    "quoted": '"a"' + ".'a'" * (MOST_WRITTEN // 4 - 2) + "=1",
    "inline": "x={a" + ".a" * MOST_PARTS + "=1}",
    "long": "a=1\n" * MOST_WRITTEN,
}
COSTLY = {
    "keys": filled("KEY=1\n"),
    "dotted": filled(f"KEY{REST}=1\n"),
    "tables": filled(f"[KEY{REST}]\n"),
    "inline": "x=[" + filled("{a=1},")[:-18] + "]",
    "arrays": "x=[" + filled("[],")[:-18] + "]",
    "word": "a" * (MOST_WRITTEN - 4) + "=1",
    "quotes": "x='''" + '"' * (MOST_WRITTEN - 10) + "'''",
}


@pytest.mark.parametrize("name", DEEP)
def test_long_keys_are_refused_before_parsing(name):
    """Of a key, each part costs as much as all before it: 100 KB took 8 GB."""
    started = time.process_time()
    with pytest.raises(InputError, match="config must have at most") as refused:
        parse_toml("config", DEEP[name])
    assert time.process_time() - started < 1.0
    assert len(str(refused.value)) < 300


@pytest.mark.slow
@pytest.mark.parametrize("name", COSTLY)
def test_what_is_parsed_is_cheap(tmp_path, name):
    """Two seconds and 500 MB at most, of a process of its own."""
    file = tmp_path / "x.toml"
    file.write_text(COSTLY[name], encoding="ascii")
    code = (
        "import sys, time, resource; from pathlib import Path\n"
        "from montecarlo.small_files import parse_toml\n"
        "content = Path(sys.argv[1]).read_bytes()\n"
        "started = time.process_time(); parse_toml('x', content)\n"
        "print(time.process_time() - started)"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, str(file)],
        preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY)
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 2.0


@pytest.mark.parametrize(
    "text",
    [
        "a.b.c.d.e.f.g.h = 1",
        'x = "Dots... and. More. dots. 1.2.3 and so on."',
        "x = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]",
    ],
)
def test_what_people_write_is_read(text):
    """Texts and numbers have dots as well."""
    assert parse_toml("config", text)


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

"""Paths that cannot be reached: one line that names them, status 2, nothing made."""

import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from montecarlo.__main__ import main
from tests.rights import as_nobody

CLAIM = Path(__file__).parents[2] / "docs" / "own-claim.toml"
#: How each command is given a file or folder.
COMMANDS = (
    "report --from PATH --output new",
    "figures --from PATH --output new",
    "measure --row r00000000000 --from PATH",
    "report --output PATH --preset quick --only introduced-2017",
    "figures --output PATH --preset quick",
    "report --config PATH --output new",
    "judge PATH --output new",
    "judge own.toml --output PATH",
    "observe PATH.npz --output new",
    "observe qk.npz --output PATH",
)
PATHS = {
    "loop": "loop",
    "closed": "closed/x",
    "long": "x" * 300,
    "below a file": "own.toml/x",
}


@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.parametrize("typed", COMMANDS)
def test_what_cannot_be_reached_is_refused(typed, kind, tmp_path, monkeypatch, capsys):
    """A loop of links, a folder of somebody else, a name that no file can have."""
    folder = tmp_path / "here"
    folder.mkdir(mode=0o777)
    for above in (folder, *folder.parents[:2]):
        above.chmod(0o777)
    monkeypatch.chdir(folder)
    shutil.copyfile(CLAIM, folder / "own.toml")
    (folder / "qk.npz").write_bytes(b"")
    (folder / "closed").mkdir(mode=0)
    for suffix in ("", ".npz"):
        (folder / f"loop{suffix}").symlink_to(f"loop{suffix}")
    before = sorted(folder.iterdir())
    main(typed.replace("PATH", "loop").split())  # nobody may not import
    capsys.readouterr()
    with as_nobody() if kind == "closed" else nullcontext():
        assert main(typed.replace("PATH", PATHS[kind]).split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert PATHS[kind][:60] in line
    assert sorted(folder.iterdir()) == before

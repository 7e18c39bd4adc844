"""Paths that cannot be reached: one line that names them, status 2, nothing made."""

from contextlib import nullcontext

import pytest

from montecarlo.__main__ import main
from tests.rights import as_nobody

#: How each command is given a file or folder, and a name for it.
COMMANDS = {
    "results": "report --from PATH --output new",
    "figures": "figures --from PATH --output new",
    "row": "measure --row r00000000000 --from PATH",
    "output": "report --output PATH --preset quick --only introduced-2017",
    "figures output": "figures --output PATH --preset quick",
    "configuration": "report --config PATH --output new",
    "record": "report --replicates-from PATH --output new",
    "claims": "judge PATH --output new",
    "claims output": "judge own.toml --output PATH",
    "model": "observe PATH.npz --output new",
    "models": "observe PATH.npz PATH.npy --output new",
    "model output": "observe qk.npz --output PATH",
}
CLAIM = """
[[claim]]
id = "x"
topic = "variance"
statement = "x"
[[claim.interpretation]]
id = "y"
[[claim.interpretation.check]]
quantity = "score_variance"
summary = "value"
relation = "at_least"
low = 1.0
domain = { d_k = [4, 4], distributions = ["gaussian"] }
"""


@pytest.mark.parametrize("kind", ["loop", "closed", "long", "below a file"])
@pytest.mark.parametrize("name", COMMANDS)
def test_what_cannot_be_reached_is_refused(name, kind, tmp_path, monkeypatch, capsys):
    """A loop of links, a folder of somebody else, a name that no file can have."""
    folder = tmp_path / "here"
    folder.mkdir(mode=0o777)
    for above in (folder, *folder.parents[:2]):
        above.chmod(0o777)
    monkeypatch.chdir(folder)
    (folder / "own.toml").write_text(CLAIM, encoding="utf-8")
    (folder / "qk.npz").write_bytes(b"")
    (folder / "closed").mkdir(mode=0)
    for suffix in ("", ".npz", ".npy"):
        (folder / f"loop{suffix}").symlink_to(f"loop{suffix}")
    path = {
        "loop": "loop",
        "closed": "closed/x",
        "long": "x" * 300,
        "below a file": "own.toml/x",
    }[kind]
    before = sorted(folder.iterdir())
    words = COMMANDS[name].split()
    main([word.replace("PATH", "loop") for word in words])  # nobody may not import
    capsys.readouterr()
    with as_nobody() if kind == "closed" else nullcontext():
        assert main([word.replace("PATH", path) for word in words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert path[:60] in line
    assert sorted(folder.iterdir()) == before

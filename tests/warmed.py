"""A report made once: a server that imports this forks processes that need not wait.

What `test_kills` kills has then read catalogues and templates and found exact values
already; drawing, judging and writing are left, which kills are aimed at.
"""

import tempfile
from pathlib import Path

from montecarlo.cli.report import main
from tests.test_kills import leave_out, prepare

leave_out()
with tempfile.TemporaryDirectory() as scratch:
    folder = prepare(Path(scratch, "warm"))
    given = ["--config", str(folder / "study.toml"), "--quiet"]
    assert main([*given, "--output", str(folder / "output")]) == 0

"""Commands as functions: what is typed to the exit status; and a Python of its own."""

import os
import subprocess
import sys
from functools import partial

from montecarlo.cli.exits import run

report, figures, measure, judge, observe = (
    partial(run, name) for name in ("report", "figures", "measure", "judge", "observe")
)


def run_python(*arguments, cwd=None, check=False, **environment):
    """Run this Python in a process of its own; returns how it ended, with its texts."""
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=check,
    )

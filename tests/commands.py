"""Commands as functions: what is typed to the exit status."""

from functools import partial

from montecarlo.cli.exits import run

report, figures, measure, judge, observe = (
    partial(run, name) for name in ("report", "figures", "measure", "judge", "observe")
)

"""``python -m montecarlo.report``: the same as ``python -m montecarlo report``."""

import sys

from montecarlo.cli.exits import run

if __name__ == "__main__":
    sys.exit(run("report"))

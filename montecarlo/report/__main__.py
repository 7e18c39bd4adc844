"""``python -m montecarlo.report``: the command ``report``, as it is often typed."""

import sys

from montecarlo.cli.exits import run

if __name__ == "__main__":
    sys.exit(run("report"))

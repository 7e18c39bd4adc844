"""``python -m montecarlo.report``: the same as ``python -m montecarlo report``."""

import sys

try:
    from montecarlo.cli.exits import run
except KeyboardInterrupt:  # in the first tenths of a second: no traceback
    sys.exit(130)

if __name__ == "__main__":
    sys.exit(run("report"))

"""``python -m montecarlo.report``: the command ``report``, as it is often typed."""

import sys

from montecarlo.cli.report import main

if __name__ == "__main__":
    sys.exit(main())

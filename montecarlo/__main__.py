"""``python -m montecarlo``: what there is."""

import sys

import montecarlo


def main() -> int:
    """Print the commands, and how to begin in Python; returns the exit status."""
    print(montecarlo.__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main())

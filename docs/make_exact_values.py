"""Write docs/exact-values.csv: exact expectations over rows, for others to cite.

Run it where the theory was changed; a test fails until it was.  Values have six
significant digits; ``error`` is how far numerics may have moved them before rounding.
"""

import csv
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from montecarlo.theory import expected_row

TABLE = "exact-values.csv"
COLUMNS = ("n_keys", "std", "d_k", "divisor", "quantity", "value", "error")
KEYS = (2, 16, 128, 1024, 4096, 16384, 131072, 1048576)
#: Standard deviations of the scores, from nearly uniform rows to nearly one-hot ones.
STDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
#: Head sizes in use, for standard normal queries and keys.
HEADS = (16, 64, 128, 256, 512)
DIVISORS = ("none", "sqrt", "linear")
HERE = Path(__file__).parent


def places() -> Iterator[dict[str, Any]]:
    """Yield what `expected_row` is asked, in the order of the table."""
    for n_keys, std in product(KEYS, STDS):
        yield {"n_keys": n_keys, "std": std}
    for n_keys, d_k, divisor in product(KEYS, HEADS, DIVISORS):
        yield {"n_keys": n_keys, "d_k": d_k, "divisor": divisor}


def lines(place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a place, one for each quantity."""
    asked = {"std": "", "d_k": "", "divisor": "", **place}
    for quantity, found in expected_row(**place).items():
        value, error = f"{found.value:.6g}", f"{found.error:.0e}"
        yield {**asked, "quantity": quantity, "value": value, "error": error}


def main(folder: Path) -> None:
    """Write the table into a folder."""
    with (folder / TABLE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for place in places():
            writer.writerows(lines(place))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HERE)

"""Exact expectations over rows, for others to cite: docs/exact-values.csv.

Run ``python -m studies.exact_values`` where the theory was changed; a test fails until
it was.  Values have six significant digits; ``error`` is how far numerics may have
moved them before rounding.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from montecarlo.theory import expected_row
from studies.program import ROOT, parse, run_program, write_table

TABLE = ROOT / "docs" / "exact-values.csv"
KEYS = (2, 16, 128, 1024, 4096, 16384, 131072, 1048576)
#: Standard deviations of the scores, from nearly uniform rows to nearly one-hot ones.
STDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
#: Head sizes in use, for standard normal queries and keys.
HEADS = (16, 64, 128, 256, 512)
DIVISORS = ("none", "sqrt", "linear")


def places() -> Iterator[dict[str, Any]]:
    """Yield what `expected_row` is asked, in the order of the table."""
    for n_keys, std in product(KEYS, STDS):
        yield {"n_keys": n_keys, "std": std}
    for n_keys, d_k, divisor in product(KEYS, HEADS, DIVISORS):
        yield {"n_keys": n_keys, "d_k": d_k, "divisor": divisor}


def lines(place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a place, one for each quantity."""
    names = ("n_keys", "std", "d_k", "divisor")
    asked = {name: place.get(name, "") for name in names}
    for quantity, found in expected_row(**place).items():
        value, error = f"{found.value:.6g}", f"{found.error:.0e}"
        yield {**asked, "quantity": quantity, "value": value, "error": error}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the table."""
    options = parse("exact_values", __doc__, argv, output=TABLE)
    write_table(options.output, [line for place in places() for line in lines(place)])
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("exact_values", main))

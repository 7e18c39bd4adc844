"""Exact quantiles of the largest weight, for the points of the presets.

Run ``python -m studies.quantiles`` where the theory or the points were changed; a test
makes some lines again.  Out: ``montecarlo/theory/quantiles.csv``, which
`montecarlo.theory.references` reads: below a weight of 1/2 a quantile takes seconds.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product

from montecarlo.study.presets import PRESETS
from montecarlo.theory.references import QUANTILES, quantile_table_key
from montecarlo.theory.weight_distribution import quantile_of_queries
from studies.program import parse, run_program, write_table

#: The full preset has another thousand places, and half an hour of one core.
TABULATED = ("quick", "standard")
LEVELS = (0.1, 0.5, 0.9)
Place = tuple[int, int, str, float]


def places(presets: Iterable[str] = TABULATED) -> list[Place]:
    """Return (d_k, number of keys, scale, probability) of all quantiles, in order."""
    grids = [PRESETS[name] for name in presets]
    rows = {
        quantile_table_key(point, divisor)
        for grid in grids
        for point, divisor in product(grid.points(), grid.divisors)
    }
    return sorted((*row, level) for row in rows if row for level in LEVELS)


def line(place: Place) -> dict[str, object]:
    """Return a line of the table."""
    d_k, n_keys, scale, level = place
    found = quantile_of_queries(d_k, n_keys, float(scale), level)
    return {
        "d_k": d_k,
        "n_keys": n_keys,
        "scale": scale,
        "probability": level,
        "value": f"{found.value:.10g}",
        "error": f"{found.error + 1e-10 * found.value:.0e}",
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Write the table."""
    options = parse("quantiles", __doc__, argv, output=QUANTILES, jobs=2)
    with ProcessPoolExecutor(options.jobs) as executor:
        lines = list(executor.map(line, places(), chunksize=4))
    write_table(options.output, lines)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("quantiles", main))

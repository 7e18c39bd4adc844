"""How many times as fast as what people would do instead, to the same standard error.

Run as ``python -m studies [--quick]``: one process, one core, one sitting.  Out:
``studies/speed.csv``, and the same table on the terminal.
"""

import argparse
import csv
import statistics
from collections.abc import Iterator
from pathlib import Path

from threadpoolctl import threadpool_limits

from montecarlo.estimation.summaries import RowKey
from montecarlo.sampling.design_points import parse_point
from studies.contenders import (
    D_K,
    FAMILY,
    floor,
    ours,
    row_contenders,
    torch,
    variance_contenders,
)
from studies.timing import median_seconds_of, ratios, time_together

TABLE = Path(__file__).with_name("speed.csv")
COLUMNS = (
    *("task", "d_k", "n_keys", "against"),
    *("times", "least", "most"),
    *("ours_ms", "theirs_ms", "largest_spread"),
)
#: Blocks of pairs: those of the first look of the standard preset.
BLOCKS = 128
#: d_k of the variance; n_keys, replicates, blocks and runs of the row family.
VARIANCES = (16, 64, 256, 1024)
ROWS = ((128, 32, 6, 4), (1024, 16, 4, 2), (16384, 8, 3, 1))
Line = dict[str, object]


def variance_lines(d_k: int, replicates: int, pairs: int, runs: int) -> Iterator[Line]:
    """Yield the lines of Var(q·k), and of its ratio to the entry variances."""
    plain, ratio, *others = time_together(
        list(variance_contenders(d_k, replicates, pairs)), runs
    )
    for task, one in (("Var(q·k)", plain), ("score_variance_ratio", ratio)):
        for other in others:
            yield _line((task, d_k, None), one, other)


def row_lines(n_keys: int, replicates: int, blocks: int, runs: int) -> Iterator[Line]:
    """Yield the lines of the row family: geometric means over its estimates."""
    one, *others = time_together(list(row_contenders(n_keys, replicates, blocks)), runs)
    for other in others:
        yield _line(("row family", D_K, n_keys), one, other)


def floor_lines(n_keys: int, replicates: int) -> Iterator[Line]:
    """Yield ours over a floor of the same reductions: the row family, and all."""
    point = parse_point("gaussian", "gaussian", D_K, n_keys)
    keys = {"entropy": RowKey("sqrt", FAMILY[1], "mean")}
    family = next(row_contenders(n_keys, replicates, 1)).run
    whole = ours(point, replicates, keys).run
    for task, mine, least in (
        ("row family", family, floor(n_keys, replicates, whole=False)),
        ("all row quantities", whole, floor(n_keys, replicates, whole=True)),
    ):
        one, other = (x / replicates for x in median_seconds_of(mine, least))
        numbers = (one / other, "", "", 1e3 * one, 1e3 * other, "")
        line = (task, D_K, n_keys, "ours over the floor", *numbers)
        yield dict(zip(COLUMNS, line, strict=True))


def _line(task: tuple[object, ...], one, other) -> Line:  # noqa: ANN001
    times = ratios(one, other)
    middle = statistics.geometric_mean(times)
    spread = max(one.spread, other.spread)
    numbers = (middle, min(times), max(times), 1e3 * one.seconds, 1e3 * other.seconds)
    return dict(zip(COLUMNS, (*task, other.name, *numbers, spread), strict=True))


def lines(*, quick: bool) -> Iterator[Line]:
    """Yield all lines of the table; quick: of the smallest sizes, roughly."""
    blocks = 32 if quick else BLOCKS
    for d_k in VARIANCES[:1] if quick else VARIANCES:
        yield from variance_lines(d_k, blocks, 2 ** (16 if quick else 22) // d_k, 6)
    for n_keys, replicates, blocks, runs in ROWS[:1] if quick else ROWS:
        yield from row_lines(n_keys, replicates, blocks, runs)
        yield from floor_lines(n_keys, replicates)


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table and write it."""
    parser = argparse.ArgumentParser(
        prog="python -m studies", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="the smallest sizes only")
    parser.add_argument("--table", type=Path, default=TABLE, help="the file to write")
    options = parser.parse_args(argv)
    if torch is None:
        print('PyTorch is not installed (pip install ".[benchmark]"): left out')
    done: list[Line] = []
    with threadpool_limits(limits=1):
        for line in lines(quick=options.quick):
            done.append(line)
            print(*(_shown(line[name]) for name in COLUMNS), sep="  ", flush=True)
    with options.table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([[_shown(line[name]) for name in COLUMNS] for line in done])
    return 0


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else str(value)


if __name__ == "__main__":
    raise SystemExit(main())

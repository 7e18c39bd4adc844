"""How time grows with what doubles: ``growth.csv`` beside this, docs/cost-growth.svg.

Run ``python -m studies.growth`` on an idle machine; it takes two minutes.  CPU seconds
of rows under four divisors as keys, dimension and replicates double, and of writing the
report's pages as languages are added; seconds by the clock of a quick report as workers
double.
"""

import csv
import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib as mpl
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from montecarlo.attention.divisors import DIVISORS
from montecarlo.estimation.summaries import RowKey, columns_of
from montecarlo.report.language.catalogues import LANGUAGES
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.replicates import sample
from studies.program import ROOT, parse, run_program, write_table
from studies.speed import seconds_of

TABLE = ROOT / "studies" / "growth.csv"
PICTURE = ROOT / "docs" / "cost-growth.svg"
#: What doubles, and its sizes.
KEYS = tuple(2**i for i in range(7, 15))
HEAD_SIZES = tuple(2**i for i in range(4, 12))
REPLICATES = tuple(2**i for i in range(5, 12))
QUANTITIES = ("entropy", "weight_max", "jacobian_frobenius", "gradient_query")
#: As docs/cost.md says it.
NAMES = {
    "n_keys": "keys n",
    "d_k": "dimension",
    "replicates": "replicates",
    "languages": "languages (pages alone)",
    "workers": "workers (by the clock)",
}
Line = dict[str, object]


def rows_of(n_keys: int, d_k: int, replicates: int) -> Callable[[], object]:
    """Return the sampling of rows of Gaussian entries."""
    point = parse_point("gaussian", "gaussian", d_k, n_keys)
    keys = [RowKey(name, one, "mean") for name in DIVISORS for one in QUANTITIES]
    columns = columns_of(point, keys)
    return lambda: sample(point, 1, 0, replicates, columns)


def spent_by(*options: str) -> tuple[float, float]:
    """Return seconds of CPU, and by the clock, of a report with some options."""
    before, start = os.times(), time.perf_counter()
    command = [sys.executable, "-m", "montecarlo", "report", "--quiet", *options]
    subprocess.run(command, check=True)  # noqa: S603 - this program
    elapsed, after = time.perf_counter() - start, os.times()
    return sum(after[2:4]) - sum(before[2:4]), elapsed


def lines() -> Iterator[Line]:
    """Yield seconds for each size of what grows."""
    sizes = [("n_keys", n, (n, 64, 32)) for n in KEYS]
    sizes += [("d_k", d, (128, d, 128)) for d in HEAD_SIZES]
    sizes += [("replicates", r, (128, 64, r)) for r in REPLICATES]
    for name, size, rows in sizes:
        yield {"what": name, "size": size, "seconds": seconds_of(rows_of(*rows))}
    with TemporaryDirectory() as folder:
        for workers in (1, 2, 4):
            wanted = "--preset", "quick", "--jobs", str(workers), "--lang", "en"
            _, elapsed = spent_by(*wanted, "--fresh", "--output", folder)
            yield {"what": "workers", "size": workers, "seconds": elapsed}
        for count in range(1, len(LANGUAGES) + 1):
            some = "--lang", ",".join([*LANGUAGES][:count])
            cpu, _ = spent_by("--from", folder, *some, "--output", f"{folder}/{count}")
            yield {"what": "languages", "size": count, "seconds": cpu}


def draw(table: Sequence[dict[str, str]]) -> str:
    """Return the figure: time over that of the smallest size, as the size grows."""
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "growth"}):
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        axes = figure.add_subplot()
        for what, name in NAMES.items():
            mine = [line for line in table if line["what"] == what]
            sizes = [float(line["size"]) for line in mine]
            spent = [float(line["seconds"]) for line in mine]
            x, y = ([one / all_[0] for one in all_] for all_ in (sizes, spent))
            axes.plot(x, y, marker="o", label=name)
        axes.plot(
            [1, 128], [1, 128], color="0.7", linestyle="--", label="in proportion"
        )
        axes.set(xscale="log", yscale="log", xlabel="times the smallest size")
        axes.set_ylabel("times its time")
        axes.set_xticks([2**i for i in range(8)], [str(2**i) for i in range(8)])
        axes.legend()
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def read_table(path: Path = TABLE) -> list[dict[str, str]]:
    """Read the table."""
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, write the table and draw it."""
    options = parse("growth", __doc__, argv, output=TABLE)
    with threadpool_limits(limits=1):
        found = [{**one, "seconds": f"{one['seconds']:.4g}"} for one in lines()]
    write_table(options.output, found)
    PICTURE.write_text(draw(read_table(options.output)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("growth", main))

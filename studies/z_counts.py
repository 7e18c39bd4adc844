"""How the z scores of a study scatter on clean seeds: what their limits rest on.

Run as ``python -m studies.z_counts [--preset NAME] [--jobs N]``: whole studies of the
quick preset, each of its own seed.  Out: ``montecarlo/claims/z_counts.json``, which
`montecarlo.claims.z_scores` reads, and ``studies/z_counts.csv``, the distribution of
root mean square and largest of each group, with the limits and how often they, and
limits for a larger rate, were exceeded.

With ``--preset NAME`` another preset is held against what is kept, and its lines of the
table are written anew.  A study of the quick preset takes about 8 s of one core, one of
the standard preset two minutes.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial

import msgspec
import numpy as np
import pandas as pd
from scipy.special import ndtr

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.running import Study, run_study
from montecarlo.claims.z_scores import (
    COUNTS,
    FALSE_ALARM,
    FAMILIES,
    Counts,
    Scatter,
    groups_of,
    largest_limit,
    read_counts,
    rms_limits,
    scatter_of,
    z_scores,
)
from montecarlo.estimation.summaries import row_keys
from montecarlo.names import look_up
from montecarlo.study.executors import make_executor
from montecarlo.study.folder import write_json
from montecarlo.study.presets import PRESETS, Grid
from montecarlo.study.table import find_reference
from studies.program import HERE, parse, run_program

TABLE = HERE / "z_counts.csv"
#: The preset whose counts are kept.
COUNTED = "quick"
#: First and last, far from those of reports, tests and the report card.
SEEDS = range(1001, 1101)
#: Two-sided tail probabilities at which large z scores are counted.
LEVELS = (1e-2, 1e-3, 1e-4)
#: Rates of alarms, both sides together, that so many seeds can count.
RATES = (0.1, 0.01)
SHARES = (0.05, 0.5, 0.95, 1.0)


def scores_of(seed: int, preset: str) -> pd.DataFrame:
    """Return the z scores of one study, with its seed."""
    study = Study(read_catalogue(), PRESETS[preset], seed=seed, preset=preset)
    with ThreadPoolExecutor(1) as executor:
        found = run_study(study, executor)
    return z_scores(found.measurements).assign(seed=seed)


def count(scores: pd.DataFrame, preset: str) -> Counts:
    """Count how the z scores of many seeds of a preset scatter."""
    tails = 2.0 * ndtr(-scores["z"].abs().to_numpy())
    families = {"all": scores} | {
        name: rows
        for name in FAMILIES
        if len(rows := scores[scores["family"].eq(name)])
    }
    return Counts(
        preset,
        tuple(sorted(map(int, scores["seed"].unique()))),
        fingerprint_rows(PRESETS[preset]),
        tuple((level, _short(float(np.mean(tails < level)))) for level in LEVELS),
        {name: _scatter(rows) for name, rows in families.items()},
    )


def _scatter(scores: pd.DataFrame) -> Scatter:
    """Return mean square and dependence: 2 ρ n² is the variance of a sum of n squares.

    Points are weighted by n², as they are in the mean square of a study.
    """
    squares = np.square(scores["z"])
    sums = squares.groupby([scores["point"], scores["seed"]]).agg(["sum", "size"])
    each = sums.groupby(level="point").agg({"sum": "var", "size": "mean"})
    dependence = each["sum"].sum() / (2.0 * np.square(each["size"]).sum())
    return Scatter(len(scores), _short(squares.mean()), _short(float(dependence)))


def fingerprint_rows(grid: Grid) -> str:
    """Return a hash of the budgets of a grid and of its rows that theory knows.

    Other rows share their draws in other ways: what was counted is stale.
    """
    lines = []
    for point, budget in grid.budgets().items():
        lines.append(f"{point.name} {budget.analyses()}")
        lines += [
            " ".join(key)
            for key in row_keys(point, grid.divisors)
            if find_reference(point, key) is not None
        ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def lines(scores: pd.DataFrame, counts: Counts) -> Iterator[dict[str, object]]:
    """Yield for each group the distribution of rms and largest, limits and alarms."""
    by_seed = [list(groups_of(rows)) for _, rows in scores.groupby("seed")]
    each = FALSE_ALARM / 2.0 / len(by_seed[0])
    for place, (kind, name, _) in enumerate(by_seed[0]):
        tables = [groups[place][2] for groups in by_seed]
        scatter = scatter_of(name, counts.scatter)
        sizes = [t.groupby("point").size().to_numpy(dtype=float) for t in tables]
        rms = np.array([np.sqrt(np.square(t["z"]).mean()) for t in tables])
        largest = np.array([t["z"].abs().max() for t in tables])
        rates = {}
        for rate in (*RATES, each):
            ends = np.array([rms_limits(size, scatter, rate) for size in sizes])
            outside = (rms < ends[:, 0]) | (rms > ends[:, 1])
            rates[rate] = float(outside.mean())
        limits = np.array(
            [largest_limit(len(groups[0][2]), counts) for groups in by_seed]
        )
        yield {
            "kind": kind,
            "name": name or "all",
            "seeds": len(tables),
            "scores": _short(float(np.mean([len(t) for t in tables]))),
            "points": _short(float(np.mean([len(size) for size in sizes]))),
            **_quantiles("rms", rms),
            "rms_low": _short(float(ends[:, 0].mean())),
            "rms_high": _short(ends[:, 1].mean()),
            **{f"outside_{rate}": _short(rates[rate]) for rate in RATES},
            "outside": _short(rates[each]),
            **_quantiles("largest", largest),
            "largest_limit": _short(limits.mean()),
            "beyond": _short(float(np.mean(largest > limits))),
        }


def _quantiles(name: str, values: np.ndarray) -> dict[str, float]:
    return {f"{name}_{q}": _short(float(np.quantile(values, q))) for q in SHARES}


def _short(value: float) -> float:
    """Keep four digits: counts are known to no more."""
    return float(f"{value:.4g}")


def collect(seeds: Iterable[int], preset: str, executor: Executor) -> pd.DataFrame:
    """Return the z scores of studies of some seeds."""
    return pd.concat(executor.map(partial(scores_of, preset=preset), seeds))


def main(argv: Sequence[str] | None = None) -> int:
    """Count, write what was counted, and print the table."""
    options = parse("z_counts", __doc__, argv, preset=COUNTED, jobs=1)
    look_up("preset", options.preset, PRESETS)
    with make_executor(options.jobs) as executor:
        scores = collect(SEEDS, options.preset, executor)
    print(write(scores, options.preset).to_string(index=False))
    return 0


def write(scores: pd.DataFrame, preset: str) -> pd.DataFrame:
    """Write what was counted, and return the lines of the table that are new."""
    counts = count(scores, preset) if preset == COUNTED else read_counts()
    if preset == COUNTED:
        write_json(COUNTS, msgspec.to_builtins(counts))
    new = pd.DataFrame(lines(scores, counts))
    new.insert(0, "preset", preset)
    old = pd.read_csv(TABLE) if TABLE.exists() else new[:0]
    table = pd.concat([old[old["preset"].ne(preset)], new])
    table.to_csv(TABLE, index=False, lineterminator="\n")
    return new


if __name__ == "__main__":
    raise SystemExit(run_program("z_counts", main))

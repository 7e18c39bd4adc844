"""The calibration record: how often the judge's intervals miss, by point and quantity.

Run as ``python -m studies.calibration [--short] [--jobs N]``: an hour or two; --short a
minute, which writes into its work folder.  Banks of real replicates are judged in
samples (`studies.banks`), whole studies many times (`studies.judged_studies`).  Out:
the files that `montecarlo.records.calibration` reads: counts and not shares, so that
whoever reads them can put an error on them.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from montecarlo.attention.softmax import Array
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.running import Study, error_rates_of
from montecarlo.claims.schema import Catalogue
from montecarlo.estimation.estimates import (
    POINTWISE,
    Estimate,
    log_log_slope,
    ratio_of_ends,
)
from montecarlo.estimation.intervals import mean_ends
from montecarlo.estimation.summaries import QUANTILE_RATIO, RowKey, has_interval
from montecarlo.records.calibration import (
    ALLOWED,
    FOLDER,
    RATES,
    Tally,
    actual_over_nominal,
    by_quantity,
    read_card,
    studies_recipe,
)
from montecarlo.sampling.design_points import INDEPENDENT, DesignPoint, parse_point
from montecarlo.study.executors import available_cores, make_executor
from montecarlo.study.fingerprint import made_with
from montecarlo.study.presets import PRESETS
from montecarlo.study.table import find_reference
from studies.banks import (
    PAIRS,
    ROWS,
    SIZE,
    Bank,
    BankRow,
    Ends,
    Indices,
    estimate,
    first_analysis,
    index_chunks,
    make_row,
    moments_of,
    points,
    pooled_value,
    read_or_draw,
    row_keys,
)
from studies.judged_studies import judge_studies, tally
from studies.program import ROOT, parse, run_program

#: Distances of what is claimed from the truth, in tolerances.
DISTANCES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0, 3.0)
#: Judged samples of each claim whose power is measured.
POWER_SAMPLES = 2**13
#: Streams of judged samples, apart from each other and from the bank's.
SEED_MISSES, SEED_COVERAGE, SEED_POWER = 101, 102, 103
SEED_SERIES_MISSES, SEED_SERIES_COVERAGE = 111, 112
#: The least d_k of a series: there the slopes of the catalogue begin.
FIRST_D_K = 16
#: The file of probes; their replicates, a quarter where they are expensive, and the
#: one-sided error rate of their intervals.
PROBES_FILE, PROBED, PROBED_RATE = "probes.csv", 16, 0.01
NUMBERS = ("value", "low", "high")

#: Value and both ends of the interval of each sample, of one bank.
Part = tuple[Array, Array, Array]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is drawn.

    Attributes
    ----------
    bank : int
        Replicates of a bank, at most.
    samples, draws : int
        Judged samples of a quantity, and those of a row estimated as the report does.
    studies : int
    step : int
        Every which point has a bank.
    """

    bank: int
    samples: int
    draws: int
    studies: int
    step: int = 1


WHOLE = Sizes(SIZE, 2**20, 2000, 300)
SHORT = Sizes(256, 2**11, 50, 2, step=5)


class RowName(NamedTuple):
    """What names a row of a card."""

    distribution: str
    context: str
    d_k: int
    n_keys: int | None
    divisor: str
    quantity: str
    summary: str  # of a series the relation: its d_k is the largest


@dataclass(frozen=True, slots=True)
class Rates:
    """How often the intervals of one row miss.

    Attributes
    ----------
    row : RowName
    judged : bool
        Whether the distribution has the moments that the row's intervals need.
    replicates, samples : int
        Of a judged sample; judged samples.
    low, high : tuple of int
        Samples whose interval lies above, and below the truth, by `RATES`.
    draws, covered : int
        Samples estimated as the report estimates, and how many of their 95 % intervals
        hold the truth: the exact one where it is known.
    bank_z : float or None
        Distance of the bank from the exact value, in its standard errors.
    """

    row: RowName
    judged: bool
    replicates: int
    samples: int
    low: tuple[int, ...]
    high: tuple[int, ...]
    draws: int
    covered: int
    bank_z: float | None


@dataclass(frozen=True, slots=True)
class Power:
    """How a claim of equality comes out at some distance from the truth.

    Attributes
    ----------
    row : RowName
    tolerance : float
        Relative, the smallest that the catalogue has for the quantity.
    replicates, samples : int
    distance : float
        In tolerances: up to 1 the claim is true.
    supported, refuted : int
        Samples; the others are undecided.
    """

    row: RowName
    tolerance: float
    replicates: int
    samples: int
    distance: float
    supported: int
    refuted: int


def measure_rates(bank: Bank, samples: int, draws: int) -> list[Rates]:
    """Judge samples of every row of a bank; those of a quantity are shared by its rows.

    As many draws are estimated as the report does it, for the coverage.
    """
    keys = list(row_keys(bank.point))
    n = first_analysis(bank.point)
    rows = Counter(map(_pool, keys))
    shares = {key: math.ceil(samples / rows[_pool(key)]) for key in keys}
    size, records = len(bank.means), []
    for key in keys:
        (value, error), known = pooled_value(bank, key), find_reference(bank.point, key)
        z = (value - known.value) / error if known and error > 0.0 else None
        low, high = count_misses(make_row(bank, key), size, n, shares[key], SEED_MISSES)
        make, truth = partial(estimate, bank, key), known.value if known else value
        hits = count_covered(make, truth, size, n, draws, SEED_COVERAGE)
        judged, row = has_interval(bank.point, key.quantity), row_name(bank, key)
        records.append(Rates(row, judged, n, shares[key], low, high, draws, hits, z))
    return records


def _pool(key: RowKey) -> tuple[str, bool]:
    """Name the rows that share judged samples: those that are judged together."""
    return key.quantity, key.summary == QUANTILE_RATIO


def count_misses(
    row: BankRow, size: int, n_replicates: int, samples: int, seed: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Count the samples whose interval lies above, and below the truth, by `RATES`."""
    counts = np.zeros((2, len(RATES)), dtype=np.int64)
    for indices in index_chunks(size, n_replicates, samples, seed):
        ends = row.sample(indices)
        for number, rate in enumerate(RATES):
            low, high = ends(rate)
            counts[:, number] += (low > row.truth).sum(), (high < row.truth).sum()
    above, below = counts.tolist()
    return tuple(above), tuple(below)


def count_covered(
    make: Callable[[Indices], Estimate],
    truth: float,
    *where: int,
) -> int:
    """Count the 95 % intervals, made as the report makes them, that hold the truth.

    ``where`` is as for `index_chunks`.
    """
    intervals = (
        make(indices).interval(POINTWISE)
        for chunk in index_chunks(*where)
        for indices in chunk
    )
    return sum(bool(low <= truth <= high) for low, high in intervals)


def row_name(bank: Bank, key: RowKey) -> RowName:
    """Name a row of a bank."""
    point = bank.point
    context = "" if point.dependence == INDEPENDENT else point.dependence.name
    place = (point.distribution_k.name, context, point.d_k, point.n_keys)
    return RowName(*place, key.divisor, key.quantity, key.summary)


def tolerances(catalogue: Catalogue) -> dict[tuple[str, str], float]:
    """Return the smallest tolerance of each quantity and summary that has one."""
    found: dict[tuple[str, str], float] = {}
    for check in catalogue.checks():
        means = check.summary in ("mean", "value")
        if check.relation == "equals" and check.tolerance and means:
            name = check.quantity, check.summary
            found[name] = min(check.tolerance, found.get(name, check.tolerance))
    return found


def measure_power(
    bank: Bank, tolerance: dict[tuple[str, str], float], error_rate: float
) -> Iterator[Power]:
    """Judge claims at `DISTANCES` from the truth, true ones and false ones.

    Tolerances are those of `tolerances`, the error rate that of a simultaneous
    interval.
    """
    first = first_analysis(bank.point)
    for key in row_keys(bank.point):
        relative = tolerance.get((key.quantity, key.summary))
        if relative is None or not has_interval(bank.point, key.quantity):
            continue
        row = make_row(bank, key)
        margin = relative * (abs(row.truth) or 1.0)
        for n in (first, 4 * first):
            ends = [
                row.sample(indices)(error_rate)
                for indices in index_chunks(
                    len(bank.means), n, POWER_SAMPLES, SEED_POWER
                )
            ]
            low, high = (np.concatenate(side) for side in zip(*ends, strict=True))
            for distance in DISTANCES:
                claimed = row.truth + distance * margin
                inside = (claimed - margin <= low) & (high <= claimed + margin)
                outside = (high < claimed - margin) | (claimed + margin < low)
                yield Power(
                    row_name(bank, key),
                    relative,
                    n,
                    POWER_SAMPLES,
                    distance,
                    int(inside.sum()),
                    int(outside.sum()),
                )


# --- Series: slopes and ratios of ends over banks of rising d_k -----------------------


@dataclass(frozen=True, slots=True)
class Relation:
    """A statistic along d_k, for one sample and for many.

    Attributes
    ----------
    name : str
    estimate : callable
        (sizes, estimates) -> Estimate, as the report makes it.
    weights : callable
        sizes -> weights of the logarithms.
    back : callable
        From the logarithm to the statistic.
    """

    name: str
    estimate: Callable[[Sequence[float], Sequence[Estimate]], Estimate]
    weights: Callable[[Sequence[float]], Array]
    back: Callable[[float], float]


def slope_weights(sizes: Sequence[float]) -> Array:
    """Return what least squares of ln value on ln size weighs each logarithm with."""
    x = np.log(np.asarray(sizes, dtype=np.float64))
    centred = x - x.mean()
    return np.asarray(centred / (centred**2).sum())


def _end_weights(sizes: Sequence[float]) -> Array:
    return np.array([-1.0, *[0.0] * (len(sizes) - 2), 1.0])


RELATIONS = (
    Relation("slope", log_log_slope, slope_weights, float),
    Relation("ratio_of_ends", lambda _, e: ratio_of_ends(e), _end_weights, math.exp),
)


def all_series() -> list[tuple[DesignPoint, ...]]:
    """Return the series of points that have banks, by rising d_k: pairs first."""
    found: dict[tuple[str, int | None], list[DesignPoint]] = {}
    for distribution, d_k, n_keys in (
        *((distribution, d, None) for distribution, d in PAIRS),
        *ROWS,
    ):
        if d_k >= FIRST_D_K:
            point = parse_point(distribution, distribution, d_k, n_keys)
            found.setdefault((distribution, n_keys), []).append(point)
    rising = (sorted(some, key=lambda c: c.d_k) for some in found.values() if some[1:])
    return [tuple(some) for some in rising]


def series_keys(point: DesignPoint) -> list[RowKey]:
    """Name the rows whose slope or ratio of ends some claim is judged by."""
    along = ("slope_between", "ratio_of_ends_between")
    keys = {
        RowKey(check.divisor, check.quantity, check.summary)
        for check in read_catalogue().checks()
        if check.relation in along
    }
    pairs = not point.has_rows
    return sorted(key for key in keys if (key.summary == "value") == pairs)


def contrast_ends(weights: Array, parts: Sequence[Part]) -> tuple[Array, Array]:
    """Return both ends of weighted sums of logarithms, one for each sample.

    Notes
    -----
    As `montecarlo.estimation.estimates` does it for one: half-widths add in squares, on
    each side by itself.
    """
    value = down = up = np.zeros_like(parts[0][0])
    for weight, part in zip(weights.tolist(), parts, strict=True):
        if weight == 0.0:
            continue
        with np.errstate(divide="ignore"):
            centre, low, high = (np.log(np.maximum(end, 0.0)) for end in part)
        below, above = centre - low, high - centre
        if weight < 0.0:
            below, above = above, below
        value = value + weight * centre
        down = down + (weight * below) ** 2
        up = up + (weight * above) ** 2
    return value - np.sqrt(down), value + np.sqrt(up)


def measure_series(banks: Sequence[Bank], samples: int, draws: int) -> list[Rates]:
    """Judge samples of the slopes and ratios of ends of a series, as `measure_rates`.

    Banks are of equal sizes, by rising d_k.
    """
    last, (size,) = banks[-1].point, {len(bank.means) for bank in banks}
    n, records = first_analysis(last), []
    for key, relation in product(series_keys(last), RELATIONS):
        row, where = make_series_row(banks, key, relation), (size, n * len(banks))
        low, high = count_misses(row, *where, samples, SEED_SERIES_MISSES)
        make, truth = partial(_relate, banks, key, relation), relation.back(row.truth)
        hits = count_covered(make, truth, *where, draws, SEED_SERIES_COVERAGE)
        place = (last.distribution_k.name, "", last.d_k, last.n_keys)
        name = RowName(*place, key.divisor, key.quantity, relation.name)
        judged = all(has_interval(bank.point, key.quantity) for bank in banks)
        records.append(Rates(name, judged, n, samples, low, high, draws, hits, None))
    return records


def make_series_row(banks: Sequence[Bank], key: RowKey, relation: Relation) -> BankRow:
    """Return a relation of a row as a statistic of samples, each of all banks.

    Its truth and ends are weighted sums of logarithms.
    """
    weights = relation.weights([bank.point.d_k for bank in banks])
    pooled = [pooled_value(bank, key)[0] for bank in banks]

    def sample(indices: Indices) -> Ends:
        split = np.split(indices, len(banks), axis=1)
        moments = [
            moments_of(bank, key, some) for bank, some in zip(banks, split, strict=True)
        ]
        n = split[0].shape[1]

        def ends(error_rate: float) -> tuple[Array, Array]:
            parts = [(one.value, *mean_ends(one, n, error_rate)) for one in moments]
            return contrast_ends(weights, parts)

        return ends

    return BankRow(float(weights @ np.log(pooled)), sample)


def _relate(
    banks: Sequence[Bank], key: RowKey, relation: Relation, indices: Indices
) -> Estimate:
    split = np.split(indices, len(banks))
    made = [estimate(bank, key, some) for bank, some in zip(banks, split, strict=True)]
    return relation.estimate([bank.point.d_k for bank in banks], made)


# --- Probes: whether a card is stale --------------------------------------------------


def probe(seed: int, points: Iterable[DesignPoint]) -> pd.DataFrame:
    """Return value and interval of every row of some banks, of few replicates."""
    lines = []
    for point in points:
        bank = read_or_draw(point, seed, PROBED, None)
        for key in row_keys(point):
            made = estimate(bank, key, np.arange(len(bank.means)))
            numbers = (made.value, *made.interval(PROBED_RATE))
            shown = (float(f"{number:.9g}") for number in numbers)
            lines.append((*row_name(bank, key), *shown))
    table = pd.DataFrame.from_records(lines, columns=[*RowName._fields, *NUMBERS])
    return table.astype({"n_keys": "Int64"})


# --- The card -------------------------------------------------------------------------


def write_card(
    folder: Path,
    found: Sequence[tuple[list[Rates], list[Power]]],
    tallies: Iterable[Tally],
    about: dict[str, Any],
) -> None:
    """Write the files of a card; rates and powers are found by bank."""
    folder.mkdir(parents=True, exist_ok=True)
    rates = [_flat(record) for records, _ in found for record in records]
    power = [_flat(record) for _, records in found for record in records]
    for name, records in (
        ("rates", rates),
        ("power", power),
        ("studies", [asdict(one) for one in tallies]),
    ):
        table = pd.DataFrame.from_records(records)
        if "n_keys" in table:
            table = table.astype({"n_keys": "Int64"})
        path = folder / f"{name}.csv"
        table.to_csv(path, index=False, lineterminator="\n", float_format="%.6g")
    text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    (folder / "about.json").write_text(text, encoding="utf-8")


def _flat(record: Rates | Power) -> dict[str, Any]:
    """Return a record as one line: its row's names first, a column for each count."""
    flat: dict[str, Any] = {**record.row._asdict()}
    for name, value in asdict(record).items():
        if name == "row":
            continue
        if isinstance(value, tuple):
            flat |= {
                f"{name}_{rate:g}": v for rate, v in zip(RATES, value, strict=True)
            }
        else:
            flat[name] = value
    return flat


def main(argv: Sequence[str] | None = None) -> int:
    """Make the card and tell what it comes to."""
    work, jobs = ROOT / "work" / "calibration", available_cores()
    options = parse(
        *("calibration", __doc__, argv),
        short=False,
        seed=1,
        jobs=jobs,
        work=work,
        output=FOLDER,
    )
    work = options.work / ("short" if options.short else "whole")
    output = options.output
    if options.short and output == FOLDER:  # what is shipped is whole
        output = work / "card"
    work.mkdir(parents=True, exist_ok=True)
    with make_executor(options.jobs) as executor:
        sizes = SHORT if options.short else WHOLE
        for line in make_card(sizes, options.seed, executor, work, output):
            print(line, flush=True)
    return 0


def make_card(
    sizes: Sizes, seed: int, executor: Executor, work: Path, output: Path
) -> Iterator[str]:
    """Draw, judge, count and write; yields what to print on the way."""
    standard = Study(read_catalogue(), PRESETS["standard"])
    error_rate = error_rates_of(standard).simultaneous_error
    chosen, series = points()[:: sizes.step], all_series()[:: sizes.step]
    # rows take longest, so that no worker is left alone with one at the end
    banks = {
        point: executor.submit(judge_bank, point, seed, sizes, error_rate, work)
        for point in reversed(chosen)
    }
    found = []
    for point in chosen:
        found.append(banks[point].result())
        yield f"bank    {point.name}"
    done = [executor.submit(judge_series, one, seed, sizes, work) for one in series]
    for one, rates in zip(series, done, strict=True):
        found.append((rates.result(), []))
        yield f"series  {one[0].name} to {one[-1].d_k}"
    yield f"studies {sizes.studies}"
    studies = judge_studies(range(seed, seed + sizes.studies), executor, work)
    tallies = [tally(rate, some) for rate, some in studies.items()]
    about: dict[str, object] = {
        "command": f"python -m studies.calibration --seed {seed}",
        "seed": seed,
        "simultaneous_error": error_rate,
        "studies": studies_recipe(read_catalogue().checks()),
        "stale": [],
        **made_with(),
    }
    write_card(output, found, tallies, about)
    table = probe(seed, chosen)
    table.to_csv(output / PROBES_FILE, index=False, lineterminator="\n")
    yield from _lines(output)


def judge_bank(
    point: DesignPoint, seed: int, sizes: Sizes, error_rate: float, work: Path
) -> tuple[list[Rates], list[Power]]:
    """Draw the bank of a point, or read it, and judge samples of it.

    The error rate is one-sided, of one simultaneous interval of the standard report.
    """
    bank = read_or_draw(point, seed, sizes.bank, work)
    rates = measure_rates(bank, sizes.samples, sizes.draws)
    return rates, list(measure_power(bank, tolerances(read_catalogue()), error_rate))


def judge_series(
    series: Sequence[DesignPoint], seed: int, sizes: Sizes, work: Path
) -> list[Rates]:
    """Draw the banks of a series, or read them, and judge slopes and ratios of ends."""
    banks = [read_or_draw(point, seed, sizes.bank, work) for point in series]
    return measure_series(banks, sizes.samples, sizes.draws)


def _lines(folder: Path) -> Iterator[str]:
    card = read_card(folder)
    if card is None:
        raise RuntimeError(f"card must have been written to {folder}")
    ratios = actual_over_nominal(by_quantity(card.rates[card.rates["judged"]]))
    for rate, ratio in ratios.max().items():
        yield f"worst   {ratio:.2f} times as often as stated at {rate:g}"
    beyond = int((ratios > ALLOWED).any(axis=1).sum())
    yield f"beyond  {beyond} of {len(ratios)} judged combinations, asked is {ALLOWED}"
    for one in card.studies.to_dict("records"):
        yield (
            f"studies {one['missed']} of {one['studies']} miss somewhere, "
            f"{one['wrong']} decide wrongly, at an error rate of {one['error_rate']:g}"
        )
    yield f"written {folder}"


if __name__ == "__main__":
    raise SystemExit(run_program("calibration", main))

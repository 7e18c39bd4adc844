"""Making the report card: banks and studies are drawn, judged, counted, and written.

Into its folder as it is, not published like a run's: the card is part of the package,
where what is stale is marked by hand, and what changed is looked at as a diff.
"""

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path

from montecarlo.calibration.bank import SIZE, points, read_or_draw
from montecarlo.calibration.card import (
    ALLOWED,
    FILES,
    FOLDER,
    actual_over_nominal,
    by_quantity,
    read_card,
    write_card,
)
from montecarlo.calibration.probes import PROBES_FILE, probe
from montecarlo.calibration.rates import (
    Power,
    Rates,
    measure_power,
    measure_rates,
    tolerances,
)
from montecarlo.calibration.series import all_series, measure_series
from montecarlo.calibration.studies import judge_studies, studies_recipe, tally
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.running import Study, error_rates_of
from montecarlo.names import parse_folder, parse_jobs, parse_seed
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.executors import available_cores, make_executor
from montecarlo.study.fingerprint import made_with
from montecarlo.study.presets import PRESETS
from montecarlo.study.work_folders import work_folders


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


def make_card(arguments: argparse.Namespace) -> Iterator[str]:
    """Make the card and yield what to print on the way."""
    sizes = SHORT if arguments.short else WHOLE
    seed = parse_seed(arguments.seed)
    jobs = parse_jobs(arguments.jobs) or available_cores()
    work = parse_folder("work", arguments.work)
    work /= "short" if arguments.short else "whole"
    output = work / "card" if arguments.short else FOLDER  # what is shipped is whole
    if arguments.output is not None:
        output = parse_folder("output", arguments.output)
    with work_folders(work, output, FILES, "an earlier card"):
        yield from _make(sizes, seed, jobs, work, output)


def _make(
    sizes: Sizes, seed: int, jobs: int, work: Path, output: Path
) -> Iterator[str]:
    """Draw, judge, count and write; yields what to print on the way."""
    standard = Study(read_catalogue(), PRESETS["standard"])
    error_rate = error_rates_of(standard).simultaneous_error
    with make_executor(jobs) as executor:
        todo = [(one, seed, sizes, error_rate, work) for one in points()[:: sizes.step]]
        # rows take longest, so that no worker is left alone with one at the end
        futures = {executor.submit(judge_bank, *one): one[0] for one in reversed(todo)}
        for future in as_completed(futures):
            future.result()
            yield f"bank    {futures[future].name}"
        found = [future.result() for future in reversed(futures)]
        series = all_series()[:: sizes.step]
        done = [executor.submit(judge_series, one, seed, sizes, work) for one in series]
        for one, rates in zip(series, done, strict=True):
            found.append((rates.result(), []))
            yield f"series  {one[0].name} to {one[-1].d_k}"
        yield f"studies {sizes.studies}"
        seeds = range(seed, seed + sizes.studies)
        studies = judge_studies(seeds, executor, work)
    tallies = [tally(rate, some) for rate, some in studies.items()]
    about: dict[str, object] = {
        "command": f"python -m montecarlo calibrate --seed {seed}",
        "seed": seed,
        "simultaneous_error": error_rate,
        "studies": studies_recipe(),
        "stale": [],
        **made_with(),
    }
    write_card(output, found, tallies, about)
    probes = probe(seed, points()[:: sizes.step])
    probes.to_csv(output / PROBES_FILE, index=False, lineterminator="\n")
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

"""A user's own claims: sampled as far as they need, judged by the same rule.

A claim speaks of ranges, and a verdict about a range needs points over the whole of
it, whatever the preset's grid has there: a quantity that is small at both ends may be
large between them.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from decimal import ROUND_CEILING, ROUND_FLOOR
from itertools import product
from pathlib import Path
from typing import Any, get_args

import msgspec
import pandas as pd
from threadpoolctl import threadpool_limits

from montecarlo.attention.divisors import split_pairs
from montecarlo.attention.quantities import FORMAT_QUANTITIES, PAIR_QUANTITIES
from montecarlo.claims.catalogue import name_place, parse_catalogue, read_own_catalogue
from montecarlo.claims.checks import Check
from montecarlo.claims.outcomes import Case, ClaimsRecord, Located
from montecarlo.claims.recorded import RECORDED
from montecarlo.claims.running import Study, exact_value, rows_of_study, run_study
from montecarlo.claims.schema import Catalogue
from montecarlo.claims.simulation import Evidence, cases_of, is_applicable, points_of
from montecarlo.errors import InputError, show
from montecarlo.estimation.intervals import round_end
from montecarlo.estimation.summaries import columns_of, lacks
from montecarlo.names import MOST_SEED, look_up, require_executor, require_whole
from montecarlo.sampling.cost import (
    replicate_seconds,
    require_affordable,
    require_spread,
)
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.small_files import parse_toml
from montecarlo.study.measured import round_to
from montecarlo.study.measurement import at_work
from montecarlo.study.presets import PRESETS, Block, Dimension, Grid, Keys

COLUMNS = ("claim", "verdict", "checked", "where", "measured", "claimed", "outcome")


class Judged(dict[str, Any]):
    """What claims.json says of claims of one's own; in a notebook, its table.

    ``["claims"]`` holds them, with ``id`` and ``verdict`` each; ``["not_judged"]`` says
    in a line each what could not be judged, and why.
    """

    def __init__(self, record: ClaimsRecord, not_judged: Sequence[str]) -> None:
        said: dict[str, Any] = msgspec.to_builtins(record)
        super().__init__(said, not_judged=list(not_judged))
        self._record = record

    def frame(self) -> pd.DataFrame:
        """Return a line for each case of each check: claimed, measured, outcome."""
        return pd.DataFrame(self._lines(), columns=list(COLUMNS))

    def _repr_html_(self) -> str:
        shown = self.frame().to_html(index=False, border=0, max_rows=40)
        notes = pd.DataFrame({"not judged": self["not_judged"]})
        return shown + (notes.to_html(index=False, border=0) if len(notes) else "")

    def _lines(self) -> Iterator[tuple[str, ...]]:
        for claim in self._record.claims:
            for interpretation in claim.interpretations:
                for check in interpretation.checks:
                    checked = f"{check.quantity} ({check.summary}), {check.divisor}"
                    for case in check.cases:
                        named = claim.id, str(claim.verdict), checked
                        outcome = f"{case.outcome}{', by theory' * case.by_theory}"
                        yield (*named, *say_case(case), outcome)


def say_case(case: Case) -> tuple[str, str, str]:
    """Say where a case is, what was measured there, and what was claimed."""
    where = [part for part in (case.distribution, case.context) if part]
    if case.d_k_range:
        low, high = case.d_k_range
        where.append(f"d_k = {low}" if low == high else f"d_k = {low} to {high}")
    if case.n_keys is not None:
        where.append(f"n = {case.n_keys}")
    measured = _say_measured(case)
    least, most = case.region_low, case.region_high
    if least is not None and most is not None:
        claimed = f"{least:.4g} to {most:.4g}"
    elif least is not None:
        claimed = f"at least {least:.4g}"
    elif most is not None:
        claimed = f"at most {most:.4g}"
    else:
        claimed = "a limit, which theory decides"
    return ", ".join(where), measured, claimed


def _say_measured(case: Case) -> str:
    """Say what was measured: with its error, or with the ends of its interval."""
    low, high = case.interval
    if case.is_binned:
        digits = (high - low) / 4.0
        ends = (
            round_to(low, digits, ROUND_FLOOR),
            round_to(high, digits, ROUND_CEILING),
        )
        return f"in [{', '.join(ends)}]"
    if case.estimate is None:  # perhaps a quantile beyond what is counted
        bounded = case.simultaneous_high is not None
        return f"at most {round_end(high, 4, up=True):.4g}" if bounded else "-"
    error = case.std_error or 0.0
    measured = round_to(case.estimate, error)
    if error and case.is_wide:
        ends = (f"{round_end(low, 2, up=False):g}", f"{round_end(high, 2, up=True):g}")
        return f"{measured}, in [{', '.join(ends)}]"
    return f"{measured} ± {round_to(error, error)}" if error else measured


#: Sizes that a grid may have.
SIZES = {"d_k": Dimension, "n_keys": Keys}


def own_study(
    catalogue: Catalogue,
    *,
    preset: str = "quick",
    seed: int = 1,
    error_rate: float = 0.01,
) -> Study:
    """Return the study that judges a user's claims.

    Parameters
    ----------
    catalogue : Catalogue
        The user's.
    preset : str
        Whose grid and budgets to use; points that a claim speaks of and the grid lacks
        are added to it.
    seed : int
    error_rate : float
        Nominal probability that any decided check is wrong: from 1e-12 to below 0.5.

    Raises
    ------
    InputError
        If the preset is not known, a number is out of its range, or a range holds sizes
        that cannot be sampled.
    """
    seed = require_whole("seed", seed, 0, MOST_SEED)
    grid = fitting_grid(catalogue, look_up("preset", preset, PRESETS))
    return Study(catalogue, grid, seed, error_rate, preset, whole_grid=False)


def fitting_grid(catalogue: Catalogue, grid: Grid) -> Grid:
    """Return a grid that has points over the whole domain of every claim's checks.

    Parameters
    ----------
    catalogue : Catalogue
    grid : Grid
        Kept where it has these points already, but for the fixed numbers of replicates
        of some: no preset is to decide less than a smaller one.

    Raises
    ------
    ValueError
        If a domain holds what cannot be sampled; names claim and field.

    Notes
    -----
    A check that names no distribution is judged under every distribution that the grid
    has in its domain, so points that one check adds may call for more under another:
    they are added until none is missing.
    """
    checks = [
        (f"claim {claim.id!r}", check)
        for claim in catalogue.claim
        for check in catalogue.only((claim.id,)).claim_checks()
    ]
    checks += [
        (f"self_check {one.id!r}", check)
        for one in catalogue.self_check
        for check in one.check
    ]
    checks = [
        (where, check) for where, check in checks if check.quantity not in RECORDED
    ]
    asked = [check.divisor for _, check in checks]
    divisors, _ = split_pairs([*grid.divisors, *asked])
    # numbers of replicates that suit a report: of a user's claims as many as decide
    free = (msgspec.structs.replace(block, replicates=0) for block in grid.blocks)
    grid = msgspec.structs.replace(
        grid, tails=(), divisors=divisors, blocks=tuple(free), every_row=False
    )
    for where, check in checks:
        _require_sizes(check, where)
        with name_place(where, "domain"):
            _require_places(check, len(grid.divisors))
    while True:
        points = grid.points()
        formats = {point.name: point.formats for point in points}
        missing = []
        for where, check in checks:
            with name_place(where, "domain"):
                missing += [
                    block
                    for block in _blocks(check, points)
                    if not all(
                        c.formats <= formats.get(c.name, -1) for c in block.points()
                    )
                ]
        if not missing:
            return grid
        blocks = (*grid.blocks, *dict.fromkeys(missing))
        grid = msgspec.structs.replace(grid, blocks=blocks)


def judge(
    claims: Path | str | Mapping[str, Any],
    *,
    preset: str = "quick",
    seed: int = 1,
    error_rate: float = 0.01,
    executor: Executor | None = None,
) -> Judged:
    """Judge claims of one's own.

    Parameters
    ----------
    claims : Path, str or mapping
        A file in the format of ``docs/own-claim.toml``; a text of several lines is one
        itself, a mapping what such a file holds.
    preset, seed, error_rate
        As for `own_study`.
    executor : concurrent.futures.Executor, optional
        Workers; by default one thread.

    Returns
    -------
    Judged
        What claims.json says, as a dict: ``claims`` with ``id`` and ``verdict`` each,
        and ``not_judged``, why what they ask cannot be judged, a line each.  Its
        ``frame()`` is a table.

    Raises
    ------
    InputError
        If they are no claims, or speak of what cannot be sampled.
    """
    require_executor(executor)
    catalogue = _catalogue_of(claims)
    study = own_study(catalogue, preset=preset, seed=seed, error_rate=error_rate)
    not_judged = list(find_unjudged(study))
    with threadpool_limits(limits=1, user_api="blas"), at_work(executor, 1) as workers:
        results = run_study(study, workers)
    return Judged(results.claims, not_judged)


def _catalogue_of(claims: Path | str | Mapping[str, Any]) -> Catalogue:
    if isinstance(claims, Mapping):
        return parse_catalogue(dict(claims), "claims", own=True)
    if not isinstance(claims, Path | str):
        raise InputError(f"claims must be a file, a text or a dict, got {show(claims)}")
    if isinstance(claims, Path) or "\n" not in claims:
        return read_own_catalogue(Path(claims))[0]
    return parse_catalogue(parse_toml("claims", claims), "claims", own=True)


def find_unjudged(study: Study) -> Iterator[str]:
    """Yield what a user's claims ask and cannot be judged: where, of what, and why.

    Each distribution, dependence, initialisation and normalisation that a domain names
    has to be judged in all of its cases; of the distributions of a domain that names
    none, one has to be.
    """
    budgets = dict.fromkeys(study.grid.points(), 0)
    evidence = Evidence(budgets, study.grid.divisors, exact_value)
    for where, check in _checks_of(study.catalogue):
        if check.quantity in RECORDED:
            if lacking := _lacks_record(check, evidence.cases(check)):
                yield f"{where}: {check.quantity} is not judged: {lacking} on record"
            continue
        named = bool(check.domain.distributions)
        there = set(evidence.cases(check))
        groups: dict[tuple[str, str], list[Located]] = {}
        for case in cases_of(check, budgets, study.grid.divisors):
            distribution = case.distribution if named else "all distributions"
            groups.setdefault((distribution, case.context), []).append(case)
        for group, cases in groups.items():
            compared = [evidence.points(check, case) for case in cases if case in there]
            unknown = len(cases) - len(compared)
            if not compared or (named and unknown):
                why = f"theory has no exact value in {unknown} of {len(cases)} cases"
            elif not any(is_applicable(check, points) for points in compared):
                why = "the entries lack the moments that an interval needs"
            else:
                continue
            asked = ", ".join(filter(None, group))
            yield f"{where}: {check.quantity} is not judged for {asked}: {why}"
    if all(claim.kind == "assumption" for claim in study.catalogue.claim):
        yield "nothing is judged: no claim is of a kind that can be"


def _checks_of(catalogue: Catalogue) -> Iterator[tuple[str, Check]]:
    """Yield the checks whose outcome is a verdict, each with its place in the file."""
    for claim in catalogue.claim:
        for interpretation in claim.interpretation:
            for check in interpretation.check:
                yield f"claim {claim.id!r}, interpretation {interpretation.id!r}", check
    for self_check in catalogue.self_check:
        for check in self_check.check:
            yield f"self_check {self_check.id!r}", check


def _lacks_record(check: Check, cases: Sequence[Located]) -> str:
    """Tell what of a domain is not on record: all, or an end of its range of d_k."""
    sizes = {case.d_k for case in cases} - {None}
    missing = [f"d_k = {d_k} is not" for d_k in check.domain.d_k if d_k not in sizes]
    return (missing[0] if sizes and missing else "") if cases else "nothing is"


def most_seconds(study: Study) -> float:
    """Return about how long a study samples on one core if nothing is decided early."""
    budgets = study.grid.budgets()
    return sum(
        replicate_seconds(point, len(columns_of(point, keys).divisors))
        * budgets[point].analyses()[-1]
        for point, keys in rows_of_study(study).items()
    )


def fill_range(low: int, high: int) -> tuple[int, ...]:
    """Return both ends of a range of sizes and those to look at between them.

    Parameters
    ----------
    low, high : int
        The ends, of which ``low`` is not the larger.

    Returns
    -------
    tuple of int
        With the powers of two that lie between; where none does, the geometric middle.

    Notes
    -----
    Every power of two, for keys as well: of a range's cost its largest sizes have the
    most, so that every other power alone would save a third of it.

    Examples
    --------
    >>> fill_range(3, 40)
    (3, 4, 8, 16, 32, 40)
    >>> fill_range(70, 90)
    (70, 79, 90)
    """
    between = [2**i for i in range(high.bit_length()) if low < 2**i < high]
    between = between or [round(math.sqrt(low * high))]
    return tuple(sorted({low, *between, high}))


def _require_sizes(check: Check, where: str) -> None:
    """Refuse ranges beyond what can be sampled."""
    for field in _fields(check):
        least, most = get_args(SIZES[field])[1].ge, get_args(SIZES[field])[1].le
        low, high = getattr(check.domain, field)
        with name_place(where, f"domain.{field}"):
            if not least <= low <= high <= most:
                raise InputError(
                    f"must lie between {least} and {most}, got [{low}, {high}]"
                )


def _require_places(check: Check, n_divisors: int) -> None:
    """Refuse points where the quantity does not exist, or that cost too much."""
    for block in _blocks(check, ()):
        for point in block.points():
            if why := lacks(check.quantity, check.number_format, check.softmax, point):
                raise InputError(f"must have {check.quantity} everywhere, which {why}")
            require_affordable(point, n_divisors)
            require_spread(point, check.divisor)


def _fields(check: Check) -> tuple[str, ...]:
    return ("d_k",) if check.quantity in PAIR_QUANTITIES else ("d_k", "n_keys")


def _blocks(check: Check, points: Iterable[DesignPoint]) -> Iterator[Block]:
    """Yield the points of a check's domain, for each thing that it names."""
    domain = check.domain
    rows = check.quantity not in PAIR_QUANTITIES
    formats = check.quantity in FORMAT_QUANTITIES
    there: dict[tuple[str, str, str, str], set[int]] = {
        key: set()
        for key in product(
            domain.distributions or ("gaussian",),
            domain.dependence,
            domain.initialisation,
            domain.normalisation,
        )
    }
    for c in points_of(check, points):
        _, _, normalisation, dependence, initialisation = c.names
        key = c.label, dependence, initialisation, normalisation
        there.setdefault(key, set()).add(c.n_keys or 0)
    d_k = fill_range(*domain.d_k)
    for key, found in there.items():
        distributions, dependence, initialisation, normalisation = key
        n_keys = fill_range(*domain.n_keys) if rows else ()
        if rows and check.along_d_k:  # no series may lack the ends
            n_keys = tuple(sorted({*n_keys, *found}))
        distribution_q, _, distribution_k = (
            part.strip() for part in distributions.partition("*")
        )
        yield Block(
            d_k,
            n_keys,
            pairs=not rows,
            distribution_q=distribution_q,
            distribution_k=distribution_k,
            dependence=dependence,
            initialisation=initialisation,
            normalisation=normalisation,
            formats=formats,
        )

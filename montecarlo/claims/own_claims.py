"""A user's own claims: sampled as far as they need, judged by the same rule.

A claim speaks of ranges, and a verdict about a range needs points over the whole of it:
a quantity that is small at both ends may be large between them.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from decimal import ROUND_CEILING, ROUND_FLOOR
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
from threadpoolctl import threadpool_limits

from montecarlo.attention.quantities import (
    FORMAT_QUANTITIES,
    PAIR_QUANTITIES,
    QUANTITIES,
)
from montecarlo.claims.catalogue import parse_catalogue, read_own_catalogue, within
from montecarlo.claims.checks import Check
from montecarlo.claims.outcomes import Case, ClaimsRecord
from montecarlo.claims.recorded import RECORDED
from montecarlo.claims.running import Study, exact_value, rows_of_study, run_study
from montecarlo.claims.schema import Catalogue
from montecarlo.claims.simulation import (
    Evidence,
    cases_of,
    is_applicable,
    row_key,
)
from montecarlo.errors import InputError, show
from montecarlo.estimation.engine import LEAST
from montecarlo.estimation.intervals import round_end
from montecarlo.estimation.summaries import columns_of
from montecarlo.names import (
    MOST_REPLICATES,
    MOST_SEED,
    look_up,
    require_executor,
    require_whole,
)
from montecarlo.sampling.cost import (
    replicate_seconds,
    require_affordable,
    require_spread,
)
from montecarlo.sampling.distributions import DISTRIBUTIONS
from montecarlo.small_files import parse_toml
from montecarlo.study.measured import round_to
from montecarlo.study.measurement import at_work
from montecarlo.study.presets import PRESETS, Block, Grid
from montecarlo.study.rows import require_row

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
        lines = [
            (
                claim.id,
                str(claim.verdict),
                f"{check.quantity} ({check.summary}), {check.divisor}",
                *say_case(case),
                f"{case.outcome}{', by theory' * case.by_theory}",
            )
            for claim in self._record.claims
            for interpretation in claim.interpretations
            for check in interpretation.checks
            for case in check.cases
        ]
        return pd.DataFrame(lines, columns=list(COLUMNS))

    def _repr_html_(self) -> str:
        shown = self.frame().to_html(index=False, border=0, max_rows=40)
        notes = pd.DataFrame({"not judged": self["not_judged"]})
        return shown + (notes.to_html(index=False, border=0) if len(notes) else "")


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
        low_end = round_to(low, digits, ROUND_FLOOR)
        return f"in [{low_end}, {round_to(high, digits, ROUND_CEILING)}]"
    if case.estimate is None:  # perhaps a quantile beyond what is counted
        bounded = case.simultaneous_high is not None
        return f"at most {round_end(high, 4, up=True):.4g}" if bounded else "-"
    error = case.std_error or 0.0
    measured = round_to(case.estimate, error)
    if error and case.is_wide:
        least, most = round_end(low, 2, up=False), round_end(high, 2, up=True)
        return f"{measured}, in [{least:g}, {most:g}]"
    return f"{measured} ± {round_to(error, error)}" if error else measured


def own_study(
    catalogue: Catalogue,
    *,
    preset: str = "quick",
    seed: int = 1,
    error_rate: float = 0.01,
    most: int | None = None,
) -> Study:
    """Return the study that judges a user's claims.

    Parameters
    ----------
    catalogue : Catalogue
        The user's.
    preset : str
        Whose budgets to use.
    seed : int
    error_rate : float
        Nominal probability that any decided check is wrong: from 1e-12 to below 0.5.
    most : int, optional
        Replicates of a point at most, in place of the preset's.

    Raises
    ------
    InputError
        If the preset is not known, a number is out of its range, or a range holds sizes
        that cannot be sampled.
    """
    seed = require_whole("seed", seed, 0, MOST_SEED)
    budgets = look_up("preset", preset, PRESETS)
    if most is not None:
        most = require_whole("most", most, LEAST, MOST_REPLICATES)
        first, first_large = (
            min(most, one) for one in (budgets.first, budgets.first_large)
        )
        budgets = msgspec.structs.replace(
            budgets, first=first, first_large=first_large, most=most, most_large=most
        )
    grid = fitting_grid(catalogue, budgets)
    return Study(catalogue, grid, seed, error_rate, preset, whole_grid=False)


def fitting_grid(catalogue: Catalogue, grid: Grid) -> Grid:
    """Return a grid that has points over the whole domain of every claim's checks.

    Parameters
    ----------
    catalogue : Catalogue
    grid : Grid
        Whose budgets and divisors it has.

    Raises
    ------
    ValueError
        If a domain holds what cannot be sampled; names claim and field.
    """
    checks = [
        (f"claim {claim.id!r}", check)
        for claim in catalogue.claim
        for check in claim.checks()
        if check.quantity not in RECORDED
    ]
    asked = [one for _, check in checks for one in check.divisor.split("/")]
    divisors = tuple(dict.fromkeys([*grid.divisors, *asked]))
    sizes = {n for _, check in checks for n in fill_range(*check.domain.n_keys)}
    blocks: dict[Block, None] = {}
    for where, check in checks:
        with within(f"{where}, field domain"):
            for block in _blocks(check, sizes):
                for point in block.points():
                    require_row(point, row_key(check))
                    require_affordable(point, len(divisors))
                    require_spread(point, check.divisor)
                blocks[block] = None
    if not blocks:
        return grid
    names = (
        *("d_k", "n_keys", "distributions", "tails"),
        *("distribution_d_k", "distribution_n_keys"),
    )
    fields = dict.fromkeys(names, ()) | {"blocks": tuple(blocks), "divisors": divisors}
    return msgspec.structs.replace(grid, **fields, every_row=False)


def judge(  # noqa: PLR0913 - as `measure`, fewer
    claims: Path | str | Mapping[str, Any],
    *,
    preset: str = "quick",
    seed: int = 1,
    error_rate: float = 0.01,
    most: int | None = None,
    executor: Executor | None = None,
) -> Judged:
    """Judge claims of one's own.

    Parameters
    ----------
    claims : Path, str or mapping
        A file in the format of ``docs/own-claim.toml``; a text of several lines is one
        itself, a mapping what such a file holds.
    preset : str
        Budget of replicates: ``quick``, ``standard`` or ``full``.
    seed : int
        Of all random numbers.
    error_rate : float
        Probability, at most, that any decided check of the file is wrong.
    most : int, optional
        Replicates of each point at most, in place of the preset's.
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
    study = own_study(
        catalogue, preset=preset, seed=seed, error_rate=error_rate, most=most
    )
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

    Of what a domain names all cases have to be judged; of the distributions of a domain
    that names none, those of one.
    """
    budgets = dict.fromkeys(study.grid.points(), 0)
    evidence = Evidence(budgets, study.grid.divisors, exact_value)
    checks = [
        (f"claim {claim.id!r}, interpretation {one.id!r}: {check.quantity}", check)
        for claim in study.catalogue.claim
        for one in claim.interpretation
        for check in one.check
    ]
    for what, check in checks:
        there = evidence.cases(check)
        if check.quantity in RECORDED:
            sizes = {case.d_k for case in there}
            for d_k in check.domain.d_k if sizes != {None} else ():
                if d_k not in sizes:
                    yield f"{what} is not judged: d_k = {d_k} is not on record"
            continue
        every = cases_of(check, budgets, study.grid.divisors)
        unknown = [case for case in every if case not in there]
        wild = [
            c
            for c in there
            if not is_applicable(check, evidence.points_by_case(check)[c])
        ]
        for why, cases in (
            ("theory has no exact value", unknown),
            ("the entries lack the moments that an interval needs", wild),
        ):
            if cases and (check.domain.distributions or len(cases) == len(every)):
                named = sorted({f"{c.distribution} {c.context}".strip() for c in cases})
                yield f"{what} is not judged for {', '.join(named)}: {why}"
    if all(claim.kind == "assumption" for claim in study.catalogue.claim):
        yield "nothing is judged: no claim is of a kind that can be"


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


def _blocks(check: Check, sizes: Collection[int]) -> Iterator[Block]:
    """Yield the points of a check's domain, for each thing that it names.

    One that names no distribution is of every one that may stand there.  ``sizes`` are
    the numbers of keys that any check has: no series over d_k may lack the ends.
    """
    domain, (low, high) = check.domain, check.domain.n_keys
    of_pairs = check.quantity in PAIR_QUANTITIES
    n_keys = fill_range(low, high)
    if check.along_d_k:
        n_keys = tuple(sorted(n for n in sizes if low <= n <= high))
    gaussian_alone = QUANTITIES[check.quantity].needs == "gaussian keys"
    for distributions, dependence, initialisation, normalisation, mask in product(
        domain.distributions or DISTRIBUTIONS,
        domain.dependence,
        domain.initialisation,
        domain.normalisation,
        domain.mask,
    ):
        any_other = not domain.distributions and distributions != "gaussian"
        if any_other and (gaussian_alone or initialisation):
            continue
        distribution_q, _, distribution_k = distributions.partition(" * ")
        yield Block(
            fill_range(*domain.d_k),
            () if of_pairs else n_keys,
            pairs=of_pairs,
            distribution_q=distribution_q,
            distribution_k=distribution_k,
            dependence=dependence,
            initialisation=initialisation,
            normalisation=normalisation,
            mask=mask,
            formats=check.quantity in FORMAT_QUANTITIES,
        )

"""Judges a user's own claims, on samples of the points that they need.

A claim about a range of sizes needs points all over the range: a quantity that is small
at both ends may be large between them.
"""

import math
import os
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
from montecarlo.claims.catalogue import at_place, parse_catalogue, read_own_catalogue
from montecarlo.claims.checks import CONDITIONS, Check
from montecarlo.claims.outcomes import Case, ClaimsRecord
from montecarlo.claims.recorded import RECORDED
from montecarlo.claims.running import Study, exact_value, run_study
from montecarlo.claims.schema import Catalogue
from montecarlo.claims.simulation import Evidence, cases_of, is_applicable, row_key
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
from montecarlo.study.measurement import open_workers
from montecarlo.study.presets import PRESETS, Block, Grid
from montecarlo.study.rows import require_row

#: Columns of `JudgedClaims.frame`.
COLUMNS = ("claim", "verdict", "checked", "where", "measured", "claimed", "outcome")
#: Fields of a grid that are budgets.
BUDGET = ("first", "most", "first_large", "most_large")


class JudgedClaims(dict[str, Any]):
    """The content of claims.json for a user's claims, printed as a table.

    ``["claims"]`` holds the claims, each with ``id`` and ``verdict``.
    ``["not_judged"]`` holds one line for each part that could not be judged, with the
    reason.
    """

    def __init__(self, record: ClaimsRecord, not_judged: Sequence[str]) -> None:
        super().__init__(msgspec.to_builtins(record), not_judged=list(not_judged))
        self._record = record

    def frame(self) -> pd.DataFrame:
        """Return a DataFrame with a line for each case of each check.

        A case is a design point, or a series of points over d_k.  Columns are
        `COLUMNS`: what was checked, where, what was measured and claimed, and the
        outcome.
        """
        lines = [
            (
                claim.id,
                str(claim.verdict),
                f"{check.quantity} ({check.summary}), {check.divisor}",
                *describe_case(case),
                f"{case.outcome}{', by theory' * case.by_theory}",
            )
            for claim in self._record.claims
            for interpretation in claim.interpretations
            for check in interpretation.checks
            for case in check.cases
        ]
        return pd.DataFrame(lines, columns=list(COLUMNS))

    def __repr__(self) -> str:
        """Return the table of `frame` and the lines of ``not_judged`` as text."""
        return "\n".join([self.frame().to_string(index=False), *self["not_judged"]])

    def _repr_html_(self) -> str:
        """Return the table of `frame` and the lines of ``not_judged`` as HTML."""
        table = self.frame().to_html(index=False, border=0, max_rows=40)
        notes = pd.DataFrame({"not judged": self["not_judged"]})
        return table + (notes.to_html(index=False, border=0) if len(notes) else "")


def describe_case(case: Case) -> tuple[str, str, str]:
    """Return a case in words: (conditions and sizes, estimate, claimed values).

    Such as ``("gaussian, d_k = 64", "1.001 ± 0.003", "0.95 to 1.05")``.
    """
    where = [part for part in (case.distribution, case.context) if part]
    if case.d_k_range:
        low, high = case.d_k_range
        where.append(f"d_k = {low}" if low == high else f"d_k = {low} to {high}")
    if case.n_keys is not None:
        where.append(f"n = {case.n_keys}")
    least, most = case.region
    claimed = f"{least:.4g} to {most:.4g}"
    if math.isinf(most):
        claimed = f"at least {least:.4g}"
    if math.isinf(least):
        limit = "a limit, which theory decides"
        claimed = limit if math.isinf(most) else f"at most {most:.4g}"
    return ", ".join(where), _describe_estimate(case), claimed


def _describe_estimate(case: Case) -> str:
    """Return the estimate of a case as text, with its error or interval.

    Such as ``1.001 ± 0.003``, ``0.02, in [0.01, 0.05]`` for a wide interval, or
    ``in [0.1, 0.2]`` for a bin of a histogram.  Without a standard error it is the
    number alone.  Without an estimate it is ``at most 0.1``, or a hyphen if there is no
    bound.
    """
    low, high = case.interval
    if case.is_binned:
        digits = (high - low) / 4.0
        low_end = round_to(low, digits, ROUND_FLOOR)
        return f"in [{low_end}, {round_to(high, digits, ROUND_CEILING)}]"
    if case.estimate is None:  # none, or a quantile beyond the histogram's range
        bounded = case.simultaneous_high is not None
        return f"at most {round_end(high, 4, up=True):.4g}" if bounded else "-"
    error = case.std_error or 0.0
    measured = round_to(case.estimate, error)
    if error and case.is_wide:
        least, most = round_end(low, 2, up=False), round_end(high, 2, up=True)
        return f"{measured}, in [{least:g}, {most:g}]"
    return f"{measured} ± {round_to(error, error)}" if error else measured


def study_of_claims(
    catalogue: Catalogue,
    *,
    preset: str = "quick",
    seed: int = 1,
    error_rate: float = 0.01,
    most: int | None = None,
) -> Study:
    """Return the study that samples what a user's claims need, and judges them.

    Parameters
    ----------
    catalogue : Catalogue
        The user's claims.
    preset : str
        Preset whose budgets are used.
    seed : int
    error_rate : float
        Nominal probability that any decided check is wrong, between 1e-12 and 0.5; the
        ends are not allowed.
    most : int, optional
        Maximal number of replicates of a point, instead of the preset's.

    Raises
    ------
    InputError
        If the preset is unknown, a number is out of its range, or a domain has sizes
        that cannot be sampled.
    """
    seed = require_whole("seed", seed, 0, MOST_SEED)
    grid = look_up("preset", preset, PRESETS)
    if most is not None:
        most = require_whole("most", most, LEAST, MOST_REPLICATES)
        budget = {name: min(most, getattr(grid, name)) for name in BUDGET}
        budget |= {"most": most, "most_large": most}
        grid = msgspec.structs.replace(grid, **budget)
    grid = fitting_grid(catalogue, grid)
    return Study(catalogue, grid, seed, error_rate, preset, whole_grid=False)


def fitting_grid(catalogue: Catalogue, grid: Grid) -> Grid:
    """Return a grid of design points that covers the domains of the claims' checks.

    Parameters
    ----------
    catalogue : Catalogue
    grid : Grid
        Provides budgets and divisors, to which those of the checks are added.  Its
        points are not used.  Returned unchanged if nothing needs sampling.

    Raises
    ------
    InputError
        If a domain cannot be sampled; the message names claim and field.
    """
    checks = [
        (f"claim {claim.id!r}", check)
        for claim in catalogue.claim
        for check in claim.checks()
        if check.quantity not in RECORDED
    ]
    named = [name for _, check in checks for name in check.divisor.split("/")]
    divisors = tuple(dict.fromkeys([*grid.divisors, *named]))
    sizes = {n for _, check in checks for n in fill_range(*check.domain.n_keys)}
    blocks: dict[Block, None] = {}
    for place, check in checks:
        with at_place(f"{place}: field domain"):
            for block in _blocks_of_domain(check, sizes):
                for point in block.points():
                    require_row(point, row_key(check))
                    require_affordable(point, len(divisors))
                    require_spread(point, check.divisor)
                blocks[block] = None
    if not blocks:
        return grid
    budget = {name: getattr(grid, name) for name in BUDGET}
    return Grid((), (), (), blocks=tuple(blocks), divisors=divisors, **budget)


def judge(  # noqa: PLR0913 - as `measure`, fewer
    claims: Path | str | Mapping[str, Any],
    *,
    preset: str = "quick",
    seed: int = 1,
    error_rate: float = 0.01,
    most: int | None = None,
    executor: Executor | None = None,
) -> JudgedClaims:
    """Judge claims of your own, on samples of the design points that they need.

    Parameters
    ----------
    claims : Path, str or mapping
        A file in the format of ``docs/own-claim.toml``; or the content of such a file,
        as text of several lines or as a mapping.
    preset : str
        Budget of replicates: ``quick``, ``standard`` or ``full``.
    seed : int
        Of all random numbers.
    error_rate : float
        Nominal probability that any decided check of the file is wrong, between 1e-12
        and 0.5.
    most : int, optional
        Maximal number of replicates of each point, instead of the preset's.
    executor : concurrent.futures.Executor, optional
        Workers; by default one thread.

    Returns
    -------
    JudgedClaims
        Contents of claims.json, as a dict: ``claims`` with ``id`` and ``verdict`` each,
        and ``not_judged``, one line for each part that could not be judged, with the
        reason.  Its ``frame()`` is a table.

    Raises
    ------
    InputError
        If the claims are not valid, or need what cannot be sampled.
    """
    require_executor(executor)
    catalogue = _catalogue_of(claims)
    study = study_of_claims(
        catalogue, preset=preset, seed=seed, error_rate=error_rate, most=most
    )
    not_judged = list(explain_unjudged(study))
    one_thread = threadpool_limits(limits=1, user_api="blas")
    with one_thread, open_workers(executor, 1) as workers:
        results = run_study(study, workers)
    return JudgedClaims(results.claims, not_judged)


def _catalogue_of(claims: Path | str | Mapping[str, Any]) -> Catalogue:
    """Return the validated catalogue of a user's claims.

    ``claims`` is the path of a file, or its content as text or as a mapping.  A text
    without line breaks is taken for a path.
    """
    if isinstance(claims, Mapping):
        return parse_catalogue(dict(claims), "claims", own=True)
    if not isinstance(claims, Path | str):
        raise InputError(f"claims must be a file, a text or a dict, got {show(claims)}")
    if isinstance(claims, str) and "\n" in claims:
        data = parse_toml("claims, a text since it has several lines,", claims)
        return parse_catalogue(data, "claims", own=True)
    if isinstance(claims, str) and not os.path.isfile(claims):  # noqa: PTH113 - never raises
        raise InputError(
            "claims must be the name of a file, as text of a single line, or text of "
            f"several lines, got {show(claims)}, which is no file"
        )
    return read_own_catalogue(Path(claims))[0]


def explain_unjudged(study: Study) -> Iterator[str]:
    """Yield a line of text for each check that cannot be judged, with the reason.

    Such as ``claim 'a', interpretation 'mean': entropy is not judged for ...``.  If the
    domain of a check names distributions, there is a line if any of its cases cannot be
    judged; otherwise only if none can.  For a recorded quantity there is a line for
    each end of the range of d_k that is not recorded.  If all claims are assumptions,
    the last line says so.
    """
    budgets = dict.fromkeys(study.grid.points(), 0)
    evidence = Evidence(budgets, study.grid.divisors, exact_value)
    checks = [
        (f"claim {claim.id!r}, interpretation {one.id!r}: {check.quantity}", check)
        for claim in study.catalogue.claim
        for one in claim.interpretation
        for check in one.check
    ]
    for name, check in checks:
        cases = evidence.cases(check)
        if check.quantity in RECORDED:
            sizes = {case.d_k for case in cases}
            for d_k in sorted({*check.domain.d_k} - sizes) if sizes != {None} else ():
                yield f"{name} is not judged: nothing such is recorded at d_k = {d_k}"
            continue
        every = cases_of(check, budgets, study.grid.divisors)
        unknown = [case for case in every if case not in cases]
        points = evidence.points_by_case(check)
        heavy_tailed = [one for one in cases if not is_applicable(check, points[one])]
        for why, missing in (
            ("theory has no exact value", unknown),
            ("the entries lack the moments that an interval needs", heavy_tailed),
        ):
            if missing and (check.domain.distributions or len(missing) == len(every)):
                where = {f"{c.distribution} {c.context}".strip() for c in missing}
                yield f"{name} is not judged for {', '.join(sorted(where))}: {why}"
    if all(claim.kind == "assumption" for claim in study.catalogue.claim):
        yield "nothing is judged: all claims are assumptions"


def worst_case_seconds(study: Study) -> float:
    """Return roughly how many seconds sampling takes on one core in the worst case.

    That is if all points need their maximal number of replicates.
    """
    budgets = study.grid.budgets()
    return sum(
        replicate_seconds(point, len(columns_of(point, keys).divisors))
        * budgets[point].analyses()[-1]
        for point, keys in study.rows.items()
    )


def fill_range(low: int, high: int) -> tuple[int, ...]:
    """Return sizes to sample in a range: both ends, and powers of two between them.

    Parameters
    ----------
    low, high : int
        Ends of the range, with ``low <= high``.

    Returns
    -------
    tuple of int
        Ascending, with every power of two between the ends; if there is none, with
        their geometric mean, rounded.

    Notes
    -----
    The largest sizes have most of the cost, so leaving out every other power of two
    would save only a third.

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


def _blocks_of_domain(check: Check, sizes: Collection[int]) -> Iterator[Block]:
    """Yield blocks of design points that together cover the domain of a check.

    A block is a grid of sizes for one combination of distributions and conditions.  If
    the domain names no distributions, all of `DISTRIBUTIONS` are used.  It is the
    Gaussian alone with an initialisation, and for quantities that need Gaussian keys.

    Parameters
    ----------
    check : Check
    sizes : collection of int
        Numbers of keys of all checks.  A check of a series over d_k uses those within
        its domain.  Others use `fill_range` of the domain.
    """
    domain, (low, high) = check.domain, check.domain.n_keys
    of_pairs = check.quantity in PAIR_QUANTITIES
    n_keys = fill_range(low, high)
    if check.along_d_k:
        n_keys = tuple(sorted(n for n in sizes if low <= n <= high))
    gaussian_alone = QUANTITIES[check.quantity].needs == "gaussian keys"
    values = product(*(getattr(domain, name) for name in CONDITIONS))
    for distributions, names in product(domain.distributions or DISTRIBUTIONS, values):
        conditions: dict[str, Any] = dict(zip(CONDITIONS, names, strict=True))
        any_other = not domain.distributions and distributions != "gaussian"
        if any_other and (gaussian_alone or conditions["initialisation"]):
            continue
        distribution_q, _, distribution_k = distributions.partition(" * ")
        yield Block(
            fill_range(*domain.d_k),
            () if of_pairs else n_keys,
            pairs=of_pairs,
            distribution_q=distribution_q,
            distribution_k=distribution_k,
            **conditions,
            formats=check.quantity in FORMAT_QUANTITIES,
        )

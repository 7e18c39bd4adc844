"""A point query: one row of the table, or a grid of them, to a wanted precision.

>>> from montecarlo import measure
>>> point = measure("gaussian", "gaussian", 4, 8, quantity="entropy", most=128)
>>> point.quantity, point.n_replicates
('entropy', 128)
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from typing import Any

import pandas as pd
from threadpoolctl import threadpool_limits

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import FORMAT_QUANTITIES
from montecarlo.attention.pairs import PAIR_QUANTITIES
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.errors import InputError
from montecarlo.estimation.engine import LEAST, Budget, Plan, run
from montecarlo.estimation.estimates import POINTWISE
from montecarlo.estimation.samples import SampleStore
from montecarlo.estimation.summaries import RowKey, Summaries, row_keys
from montecarlo.execution.tasks import finish
from montecarlo.names import look_up
from montecarlo.results.table import identity, row_id
from montecarlo.sampling.affordable import require_affordable
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.theory.references import reference

#: Replicates of a point query at first.
FIRST = 128
#: Replicates of a point query at most, unless asked for otherwise.
MOST = 2**17


@dataclass(frozen=True, slots=True)
class Measurement:
    """One row of the table: the columns of measurements.csv."""

    distribution_q: str
    distribution_k: str
    dependence: str
    initialisation: str
    d_k: int
    n_queries: int
    n_keys: int | None
    divisor: str
    number_format: str
    softmax: str
    quantity: str
    summary: str
    estimate: float
    std_error: float
    ci_low: float
    ci_high: float
    n_replicates: int
    reference: float | None
    reference_error: float | None
    row_id: str


def measure(  # noqa: PLR0913 - each column that identifies a row is an option
    distribution_q: str,
    distribution_k: str,
    d_k: int,
    n_keys: int | None = None,
    *,
    quantity: str,
    divisor: str = "none",
    summary: str | None = None,
    number_format: str = "float64",
    softmax: str = "shifted",
    dependence: str = "none",
    initialisation: str = "",
    seed: int = 1,
    relative_error: float = 0.01,
    first: int = FIRST,
    most: int = MOST,
    executor: Executor | None = None,
) -> Measurement:
    """Sample one point and estimate one row.

    Parameters
    ----------
    distribution_q, distribution_k : str
        Distributions of the entries.
    d_k : int
    n_keys : int, optional
        Needed for quantities of rows, left out for those of pairs.
    quantity, divisor, summary, number_format, softmax, dependence, initialisation : str
        As in measurements.csv; the summary is by default the mean, or ``value``.
    seed : int
    relative_error : float
        Replicates are doubled until the standard error is at most this part of the
        estimate.
    first, most : int
        Replicates at first, and at most.
    executor : concurrent.futures.Executor, optional
        Workers; by default one thread.

    Returns
    -------
    Measurement

    Raises
    ------
    InputError
        If the point is not one, has no such row, or takes more than can be had.
    """
    _require_names([quantity], [divisor])
    if n_keys is None and quantity not in PAIR_QUANTITIES:
        raise InputError(f"keys must be given for {quantity}, a quantity of rows")
    formats = quantity in FORMAT_QUANTITIES
    point = parse_point(
        distribution_q,
        distribution_k,
        d_k,
        n_keys,
        dependence,
        initialisation,
        formats=formats,
    )
    chosen = summary or _summary_of(quantity)
    key = RowKey(divisor, quantity, chosen, number_format, softmax)
    effort = _Effort(seed, relative_error, first, most, executor)
    (found,) = _sample_rows({point: [key]}, effort)
    return found


def grid(  # noqa: PLR0913 - as `measure`
    distribution_q: str = "gaussian",
    distribution_k: str | None = None,
    *,
    d_k: Sequence[int],
    n_keys: Sequence[int] = (),
    quantity: Sequence[str],
    divisor: Sequence[str] = ("none",),
    dependence: str = "none",
    initialisation: str = "",
    seed: int = 1,
    relative_error: float = 0.01,
    first: int = FIRST,
    most: int = MOST,
    executor: Executor | None = None,
) -> pd.DataFrame:
    """Estimate quantities over lists of sizes and divisors, from shared samples.

    Each point is sampled once, until every row of it is as precise as asked for.

    Parameters
    ----------
    distribution_q, distribution_k : str
        Distributions of the entries; that of k is by default that of q.
    d_k, n_keys : sequence of int
        Rows are estimated at every combination, pairs at every ``d_k``.
    quantity, divisor : sequence of str
        What a point does not have is left out, like ratios of pairs' divisors.
    dependence, initialisation, seed, relative_error, first, most, executor
        As for `measure`.

    Returns
    -------
    DataFrame
        A line for each point, quantity and divisor; columns as `Measurement`.

    Raises
    ------
    InputError
        If a name is not known, a quantity has no row at all, or a point is not one.
    """
    _require_names(quantity, divisor)
    both = distribution_q, distribution_k or distribution_q
    of_pairs = [name for name in quantity if name in PAIR_QUANTITIES]
    of_rows = [name for name in quantity if name not in PAIR_QUANTITIES]
    asked: dict[DesignPoint, list[RowKey]] = {}
    for d, n in product(d_k, (*n_keys, None)):
        names = of_pairs if n is None else of_rows
        if not names:
            continue
        formats = any(name in FORMAT_QUANTITIES for name in names)
        point = parse_point(*both, d, n, dependence, initialisation, formats=formats)
        known = set(row_keys(point, tuple(DIVISORS)))
        keys = [RowKey(c, name, _summary_of(name)) for name in names for c in divisor]
        asked[point] = [key for key in keys if key in known]
    found = {key.quantity for keys in asked.values() for key in keys}
    if missing := [name for name in quantity if name not in found]:
        raise InputError(
            f"{missing[0]} must have a row at one of these points, with one of the "
            f"divisors {', '.join(divisor)}; quantities of rows need n_keys"
        )
    effort = _Effort(seed, relative_error, first, most, executor)
    table = pd.DataFrame(map(asdict, _sample_rows(asked, effort)))
    return table.astype({"n_keys": "Int64"})


@dataclass(frozen=True, slots=True)
class _Effort:
    """Which draws, and how many: as the arguments of `measure`."""

    seed: int
    relative_error: float
    first: int
    most: int
    executor: Executor | None


def _require_names(quantities: Iterable[str], divisors: Iterable[str]) -> None:
    for name in quantities:
        look_up("quantity", name, QUANTITIES)
    for name in "/".join(divisors).split("/"):
        look_up("divisor", name, DIVISORS)


def _summary_of(quantity: str) -> str:
    return "value" if quantity in PAIR_QUANTITIES else "mean"


def _sample_rows(
    asked: Mapping[DesignPoint, Sequence[RowKey]], effort: _Effort
) -> list[Measurement]:
    """Sample points until their rows are as precise as asked for."""
    if not 0.0 < effort.relative_error < 1.0:
        raise InputError(
            f"relative_error must lie between 0 and 1, got {effort.relative_error!r}"
        )
    if effort.seed < 0:
        raise InputError(f"seed must be at least 0, got {effort.seed!r}")
    if effort.most < LEAST:
        raise InputError(
            f"most must be an integer of at least {LEAST}, got {effort.most!r}"
        )
    keys = [key for rows in asked.values() for key in rows]
    divisors = tuple(dict.fromkeys(d for key in keys for d in key.divisor.split("/")))
    for point, rows in asked.items():
        for key in rows:
            _require_row(point, key)
        require_affordable(point, len(divisors))

    def is_rough(store: SampleStore, point: DesignPoint) -> bool:
        summaries = Summaries(point, store.samples(point), divisors)
        found = map(summaries.estimate, asked[point])
        # without an error, which some distributions have none of, more replicates do
        # not help
        return any(e.std_error > effort.relative_error * abs(e.value) for e in found)

    def undecided(store: SampleStore) -> Iterable[DesignPoint]:
        return [point for point in asked if is_rough(store, point)]

    store = SampleStore()
    budget = Budget(min(effort.first, effort.most), effort.most)
    plan = Plan(dict.fromkeys(asked, budget), effort.seed, divisors)
    at_work = nullcontext(effort.executor) if effort.executor else ThreadPoolExecutor(1)
    with threadpool_limits(limits=1, user_api="blas"), at_work as workers:
        run(plan, store, partial(finish, workers), undecided)
    return [
        _point(point, key, store, divisors)
        for point, rows in asked.items()
        for key in rows
    ]


def _require_row(point: DesignPoint, key: RowKey) -> None:
    """Refuse a row that the point does not have."""
    known = list(row_keys(point, tuple(DIVISORS)))
    if key in known:
        return
    there = dict.fromkeys(known_key.quantity for known_key in known)
    look_up(f"quantity of {point.name}", key.quantity, there)
    mine = [one for one in known if one.quantity == key.quantity]
    for name in ("divisor", "summary", "number_format", "softmax"):
        kinds = dict.fromkeys(getattr(one, name) for one in mine)
        look_up(f"{name} of {key.quantity}", getattr(key, name), kinds)
    kinds = dict.fromkeys(
        f"{k.divisor} {k.summary} {k.number_format} {k.softmax}" for k in mine
    )
    asked = f"{key.divisor} {key.summary} {key.number_format} {key.softmax}"
    look_up(f"divisor, summary, format and softmax of {key.quantity}", asked, kinds)


def _point(
    point: DesignPoint, key: RowKey, store: SampleStore, divisors: tuple[str, ...]
) -> Measurement:
    summaries = Summaries(point, store.samples(point), divisors)
    estimate = summaries.estimate(key)
    low, high = estimate.interval(POINTWISE)
    exact = None
    if "/" not in key.divisor:
        exact = reference(key.quantity, point, key.divisor, key.summary)
    numbers = (estimate.value, estimate.std_error, low, high, estimate.n_replicates)
    known = (None, None) if exact is None else (exact.value, exact.error)
    name = row_id(point, key)
    columns: tuple[Any, ...] = (*identity(point, key), *numbers, *known, name)
    return Measurement(*columns)

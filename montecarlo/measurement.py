"""A point query: one row of the table, sampled alone, to a wanted precision.

>>> from montecarlo.measurement import measure
>>> point = measure("gaussian", "gaussian", 4, 8, quantity="entropy", most=128)
>>> point.quantity, point.n_replicates
('entropy', 128)
"""

from collections.abc import Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from threadpoolctl import threadpool_limits

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import FORMAT_QUANTITIES
from montecarlo.attention.pairs import PAIR_QUANTITIES
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.estimation.engine import LEAST, Budget, Plan, run
from montecarlo.estimation.estimates import POINTWISE
from montecarlo.estimation.samples import SampleStore
from montecarlo.estimation.summaries import RowKey, Summaries, row_keys
from montecarlo.execution.tasks import finish
from montecarlo.names import look_up
from montecarlo.results.table import IDENTITY, identity, row_id
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
    ValueError
        If the point is not one, has no such row, or takes more than can be had.
    """
    if not 0.0 < relative_error < 1.0:
        raise ValueError(
            f"relative_error must lie between 0 and 1, got {relative_error!r}"
        )
    if seed < 0:
        raise ValueError(f"seed must be at least 0, got {seed!r}")
    if most < LEAST:
        raise ValueError(f"most must be an integer of at least {LEAST}, got {most!r}")
    look_up("quantity", quantity, QUANTITIES)
    if n_keys is None and quantity not in PAIR_QUANTITIES:
        raise ValueError(f"keys must be given for {quantity}, a quantity of rows")
    for name in divisor.split("/"):
        look_up("divisor", name, DIVISORS)
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
    chosen = summary or ("value" if quantity in PAIR_QUANTITIES else "mean")
    key = RowKey(divisor, quantity, chosen, number_format, softmax)
    divisors = tuple(dict.fromkeys(divisor.split("/")))
    _require_row(point, key)
    require_affordable(point, len(divisors))

    def undecided(store: SampleStore) -> Iterable[DesignPoint]:
        estimate = Summaries(point, store.samples(point), divisors).estimate(key)
        # without an error, which some distributions have none of, more replicates do
        # not help
        large = estimate.std_error > relative_error * abs(estimate.value)
        return (point,) if large else ()

    store = SampleStore()
    plan = Plan({point: Budget(min(first, most), most)}, seed, divisors)
    at_work = nullcontext(executor) if executor else ThreadPoolExecutor(1)
    with threadpool_limits(limits=1, user_api="blas"), at_work as workers:
        run(plan, store, partial(finish, workers), undecided)
    return _point(point, key, store, divisors)


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
    columns: dict[str, Any] = dict(zip(IDENTITY, identity(point, key), strict=True))
    return Measurement(
        **columns,
        estimate=estimate.value,
        std_error=estimate.std_error,
        ci_low=low,
        ci_high=high,
        n_replicates=estimate.n_replicates,
        reference=None if exact is None else exact.value,
        reference_error=None if exact is None else exact.error,
        row_id=row_id(point, key),
    )

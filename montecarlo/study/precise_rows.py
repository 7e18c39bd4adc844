"""Rows of points, sampled until they are as precise as asked for, or as can be."""

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from threadpoolctl import threadpool_limits

from montecarlo.attention.divisors import DIVISORS, parse_divisor, split_pairs
from montecarlo.attention.quantities import (
    PAIR_QUANTITIES,
    ROW_QUANTITIES,
    quantile_level,
)
from montecarlo.errors import InputError, show
from montecarlo.estimation.engine import LEAST, Budget, Plan, SampleStore, run
from montecarlo.estimation.estimates import POINTWISE, Estimate
from montecarlo.estimation.summaries import (
    QUANTILE_RATIO,
    SHARE_ABOVE,
    RowKey,
    Summaries,
    lacks,
    offered_summaries,
    row_keys,
)
from montecarlo.names import MOST_SEED, look_up, require_number, require_whole
from montecarlo.sampling.cost import (
    replicate_seconds,
    require_affordable,
    require_spread,
)
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.grid import MOST_REPLICATES, Advance
from montecarlo.study.measured import Measurement
from montecarlo.study.table import identity, row_id
from montecarlo.study.tasks import finish
from montecarlo.theory.references import reference

#: Replicates at first, and the wanted standard error as a part of the estimate.
FIRST, RELATIVE_ERROR = 128, 0.01
#: What no sampling reaches, and no float64.
LEAST_RELATIVE = 1e-12
#: Replicates at most, unless asked for otherwise: so many, and what about a minute of
#: one core samples; by the cost of a replicate, not by a clock, so that they are as
#: many on every machine.
MOST, MOST_SECONDS = 2**17, 60.0
#: How many times as many replicates as there may be a row must seem to need for its
#: sampling to end at once: what it needs is known as roughly as its error.
HOPELESS = 2.0
#: From what part of the error two rounds before on an error no longer falls with
#: replicates: four times as many leave half of it.
STUCK = 0.8
#: Replicates without an interval from which on none is waited for.
PATIENCE = 2**12
#: What a row is asked about, and which rows of which points.
Asked = Mapping[DesignPoint, Sequence[RowKey]]


@dataclass(frozen=True, slots=True)
class Effort:
    """Which draws, and how many.

    Attributes
    ----------
    seed : int
    relative_error : float
        Wanted: the standard error as a part of the estimate.
    absolute_error : float or None
        Wanted: the standard error; then there is no relative one.
    first : int
        Replicates at first.
    most : int or None
        Replicates at most; None: `MOST`, and no more than `MOST_SECONDS` take.
    """

    seed: int = 1
    relative_error: float = RELATIVE_ERROR
    absolute_error: float | None = None
    first: int = FIRST
    most: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises
        ------
        InputError
            If an error is not above 0, or a number is out of its range.
        """
        relative = require_number("relative_error", self.relative_error)
        if not LEAST_RELATIVE <= relative < 1.0:
            raise InputError(
                f"relative_error must lie between {LEAST_RELATIVE:g} and 1, got "
                f"{show(self.relative_error)}"
            )
        absolute = self.absolute_error
        if absolute is not None and not (
            0.0 < require_number("absolute_error", absolute) < math.inf
        ):
            raise InputError(
                f"absolute_error must be a number above 0, got {show(absolute)}"
            )
        for name, least, most in (
            ("seed", 0, MOST_SEED),
            ("first", LEAST, MOST_REPLICATES),
            ("most", LEAST, MOST_REPLICATES),
        ):
            if (value := getattr(self, name)) is not None or name != "most":
                whole = require_whole(name, value, least, most)
                object.__setattr__(self, name, whole)  # Python's, also of NumPy's

    def budget(self, seconds: float) -> Budget:
        """Return the budget of a point one of whose replicates takes so long."""
        most = self.most
        if most is None:
            most = max(self.first, min(MOST, int(MOST_SECONDS / seconds)))
        return Budget(min(self.first, most), most)

    def wanted(self, estimate: Estimate) -> float:
        """Return the largest standard error that is small enough."""
        if self.absolute_error is not None:
            return self.absolute_error
        return self.relative_error * abs(estimate.value)

    def needed(self, estimate: Estimate) -> float:
        """Return about how many replicates an estimate needs for the wanted error.

        Infinite for an estimate of 0 with a relative error, NaN where there is no
        error, or still no interval.
        """
        if math.isnan(estimate.std_error):
            return math.nan
        if not estimate.is_bounded:  # a few replicates make all of the variance
            n = estimate.n_replicates
            return 2.0 * n if n < PATIENCE else math.nan
        wanted = self.wanted(estimate)
        if estimate.std_error <= wanted:
            return float(estimate.n_replicates)
        if wanted == 0.0:
            return math.inf
        ratio = estimate.std_error / wanted
        return estimate.n_replicates * (ratio * ratio)  # a power of it may overflow


@dataclass(slots=True)
class PreciseRows:
    """Rows of points that are being sampled.

    Attributes
    ----------
    asked : mapping
        Point to the rows of it.
    effort : Effort
    store : SampleStore
        What was sampled.

    Raises
    ------
    InputError
        If a point has no such row, or takes more than can be had.
    """

    asked: Asked
    effort: Effort
    store: SampleStore = field(default_factory=SampleStore)
    divisors: tuple[str, ...] = field(init=False)
    budgets: dict[DesignPoint, Budget] = field(init=False)
    errors: dict[tuple[DesignPoint, RowKey], list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse rows that a point does not have, before anything is sampled."""
        keys = [key for rows in self.asked.values() for key in rows]
        self.divisors, _ = split_pairs([key.divisor for key in keys])
        for point, rows in self.asked.items():
            for key in rows:
                _require_row(point, key)
                require_spread(point, key.divisor)
            require_affordable(point, len(self.divisors))
        self.budgets = {
            point: self.effort.budget(replicate_seconds(point, len(self.divisors)))
            for point in self.asked
        }

    def is_stuck(self, point: DesignPoint, key: RowKey) -> bool:
        """Tell whether four times the replicates left an error nearly as it was.

        What remains is the width of a bin of the histogram that a quantile is of.
        """
        seen = self.errors.get((point, key), [])
        binned = key.summary in (QUANTILE_RATIO, SHARE_ABOVE) or quantile_level(
            key.summary
        )
        return bool(binned) and len(seen) > 2 and seen[-1] > STUCK * seen[-3]

    def sample(self, workers: Executor, advance: Advance = lambda *_: None) -> None:
        """Sample until every row is precise enough, or cannot be.

        Raises
        ------
        KeyboardInterrupt
            On Ctrl-C; what was sampled until then is in the store.
        """
        plan = Plan(self.budgets, self.effort.seed, self.divisors)
        work = partial(finish, workers)
        try:
            with threadpool_limits(limits=1, user_api="blas"):
                run(plan, self.store, work, self._unfinished, advance)
        except KeyboardInterrupt:
            self.store.drop_after_gaps()
            raise

    def _unfinished(self, _: SampleStore) -> Iterable[DesignPoint]:
        """Name the points with rows that more replicates can make precise enough."""
        for point, rows in self.asked.items():
            limit = HOPELESS * self.budgets[point].most
            summaries = self._summaries(point)
            rough = False
            for key in rows:
                found = summaries.estimate(key)
                self.errors.setdefault((point, key), []).append(found.std_error)
                needed = self.effort.needed(found)
                if found.n_replicates < needed <= limit:
                    rough = rough or not self.is_stuck(point, key)
            if rough:
                yield point

    def _summaries(self, point: DesignPoint) -> Summaries:
        return Summaries(point, self.store.samples(point), self.divisors)

    def rows(self) -> list[Measurement]:
        """Return the rows as far as they are sampled; points with too little lack."""
        return [
            _measurement(point, key, summaries.estimate(key))
            for point, keys in self.asked.items()
            if self.store.n_replicates(point) >= LEAST
            for summaries in (self._summaries(point),)
            for key in keys
        ]

    def shortfalls(self) -> list[float]:
        """Return what each of `rows` needs, if more replicates than it has; else 0."""
        found = []
        for point, keys in self.asked.items():
            if self.store.n_replicates(point) < LEAST:
                continue
            summaries = self._summaries(point)
            for key in keys:
                needed = self.effort.needed(summaries.estimate(key))
                enough = needed <= self.store.n_replicates(point)
                found.append(0.0 if enough else needed)
        return found


def _require_row(point: DesignPoint, key: RowKey) -> None:
    """Refuse a row that the point does not have."""
    singles, ratios = split_pairs([*DIVISORS, key.divisor])
    by_keys = [name for name in singles if parse_divisor(name).needs_keys]
    if by_keys and not point.has_rows:
        raise InputError(
            f"divisor must not depend on n for {key.quantity}, a quantity of pairs, "
            f"which has no keys, got {by_keys[0]!r}"
        )
    known = list(row_keys(point, singles, ratios))
    if key in known:
        return
    if key.quantity in PAIR_QUANTITIES and point.has_rows:
        raise InputError(
            f"keys must be left out for {key.quantity}, a quantity of pairs, got "
            f"{point.n_keys}"
        )
    if point.has_rows and (
        why := lacks(key.quantity, key.number_format, key.softmax, point)
    ):
        raise InputError(f"{key.quantity} {why}")
    there = dict.fromkeys(known_key.quantity for known_key in known)
    look_up(f"quantity of {point.name}", key.quantity, there)
    mine = [one for one in known if one.quantity == key.quantity]
    for name in ("divisor", "summary", "number_format", "softmax"):
        kinds = dict.fromkeys(getattr(one, name) for one in mine)
        if name == "summary" and "/" not in key.divisor:
            quantity = ROW_QUANTITIES.get(key.quantity)
            kinds |= dict.fromkeys(offered_summaries(quantity) if quantity else ())
        look_up(f"{name} of {key.quantity}", getattr(key, name), kinds)
    kinds = dict.fromkeys(
        f"{k.divisor} {k.summary} {k.number_format} {k.softmax}" for k in mine
    )
    asked = f"{key.divisor} {key.summary} {key.number_format} {key.softmax}"
    look_up(f"divisor, summary, format and softmax of {key.quantity}", asked, kinds)


def _measurement(point: DesignPoint, key: RowKey, estimate: Estimate) -> Measurement:
    low, high = estimate.interval(POINTWISE)
    exact = reference(key.quantity, point, key.divisor, key.summary)
    numbers = (estimate.value, estimate.std_error, low, high, estimate.n_replicates)
    known = (None, None) if exact is None else (exact.value, exact.error)
    name = row_id(point, key)
    columns: tuple[Any, ...] = (*identity(point, key), *numbers, *known, name)
    return Measurement(*columns)

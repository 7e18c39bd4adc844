"""Questions of one's own: one row of the table, or a grid of rows, to a precision.

>>> from montecarlo import measure
>>> point = measure(d_k=4, n_keys=8, quantity="entropy", most=128)
>>> point.quantity, point.divisor, point.n_replicates
('entropy', 'sqrt', 128)
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice, product
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from montecarlo.attention.divisors import BASELINE, name_divisor
from montecarlo.attention.number_formats import FLOAT8, FLOAT8_SOFTMAX
from montecarlo.attention.quantities import (
    FORMAT_QUANTITIES,
    PAIR_QUANTITIES,
    QUANTITIES,
    SHARE,
)
from montecarlo.errors import InputError, show
from montecarlo.estimation.engine import LEAST, Budget, Plan, SampleStore, run
from montecarlo.estimation.estimates import Estimate, share_of_replicates
from montecarlo.estimation.summaries import (
    RowKey,
    Summaries,
    columns_of,
    has_row,
)
from montecarlo.names import (
    MOST_JOBS,
    MOST_REPLICATES,
    MOST_SEED,
    MOST_SIZE,
    look_up,
    require_executor,
    require_flag,
    require_number,
    require_text,
    require_whole,
)
from montecarlo.sampling.cost import (
    replicate_seconds,
    require_affordable,
    require_spread,
)
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.distributions import parse_distribution
from montecarlo.sampling.replicates import Columns
from montecarlo.study.executors import finish, make_executor
from montecarlo.study.failures import raise_failed_batches
from montecarlo.study.measured import Measurement, table_row
from montecarlo.study.progress import Advance, progress_bar
from montecarlo.study.rows import RequestedRows, Row, require_row, unite
from montecarlo.theory.references import reference

if TYPE_CHECKING:
    from pandas import DataFrame

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
UNREACHABLE = 2.0
#: Replicates from which on an error that rests on few of them is believed.
MOST_WHILE_FEW = 2**12
#: Points of a grid, and entries of each of its lists, at most.
MOST_POINTS = 4096
#: One, or a list of them.
OneOrMore = str | Sequence[str]


def measure(  # noqa: PLR0913 - each column that identifies a row is an option
    distribution_q: str = "gaussian",
    distribution_k: str | None = None,
    *,
    d_k: int,
    n_keys: int | None = None,
    quantity: str,
    divisor: str | float = BASELINE,
    summary: str | None = None,
    number_format: str = "float64",
    softmax: str = "shifted",
    dependence: str = "none",
    initialisation: str = "",
    normalisation: str = "none",
    mask: str = "none",
    seed: int = 1,
    relative_error: float = RELATIVE_ERROR,
    absolute_error: float | None = None,
    first: int = FIRST,
    most: int | None = None,
    executor: Executor | None = None,
) -> Measurement:
    """Estimate one quantity at one design point, to a wanted precision.

    Parameters
    ----------
    distribution_q : str
        Distribution of the entries of queries: a name, with a mean and a standard
        deviation where it has others than 0 and 1, ``"laplace(std=2)"``.
    distribution_k : str, optional
        Distribution of the entries of keys; by default that of queries.
    d_k : int
        Length of a query.
    n_keys : int, optional
        Keys of an attention row; left out for quantities of pairs.
    quantity : str
        What to estimate; ``python -m montecarlo --list quantities`` names all.
    divisor : str or float
        What scores are divided by: a name, a number, a formula such as ``2*d_k^0.6``,
        ``d_k/8`` or ``sqrt(d_k*ln(n))``, or the ratio of a quantity under two of them,
        ``none/sqrt``.
    summary : str, optional
        Over attention rows: ``mean`` (the default), ``median`` or another quantile,
        such as ``q99``; under a mask also ``first`` and ``last``, the mean of the
        first row or key, or of the last.  Of a quantity of pairs it is ``value``.
    number_format : str
        Format of the weights, such as ``float16``.
    softmax : str
        ``shifted`` by the largest score, or ``naive``.
    dependence : str
        How keys are drawn given queries: ``pairs(0.5)`` or ``planted(0.5)``.
    initialisation : str
        What stands before queries and keys, ``"init(kind=xavier_uniform,width=512)"``;
        nothing where they are drawn themselves.
    normalisation : str
        ``"l2(gain=10)"`` gives each query and key a length of 1, ``"rms"`` a mean
        square of 1, and the product the gain.
    mask : str
        Which keys a query sees: ``causal`` its own and earlier ones, ``window(128)`` of
        these the last 128, ``full`` all; with each there are as many queries as keys.
        ``none`` is that without a mask, of fewer queries where rows are long.
    seed : int
        Of all random numbers.
    relative_error : float
        Wanted standard error, as a part of the estimate.  Replicates are doubled until
        it is reached, or until it is seen that ``most`` are too few.  Of a share
        estimated as 0 it is a part of 1.
    absolute_error : float, optional
        Wanted standard error, in place of a relative one.
    first : int
        Replicates at first.
    most : int, optional
        Replicates at most; by default 131072, and what about a minute samples.
    executor : concurrent.futures.Executor, optional
        Workers; by default one thread.

    Returns
    -------
    Measurement
        The columns of measurements.csv as attributes, ``estimate``, ``std_error``,
        ``ci_low`` and ``ci_high`` among them; printed, it says what was measured.  Its
        ``std_error`` is larger than was wanted where that was out of reach.

    Raises
    ------
    InputError
        If an argument is of another type or out of its range, the point has no such
        row, or the row takes more time or memory than is allowed.
    """
    require_executor(executor)
    names = {
        "distribution_q": distribution_q,
        "distribution_k": distribution_k,
        "dependence": dependence,
        "initialisation": initialisation,
        "normalisation": normalisation,
        "mask": mask,
    }
    parts = {
        "divisor": divisor,
        "quantity": quantity,
        "summary": summary,
        "number_format": number_format,
        "softmax": softmax,
    }
    requested = request_row(names, d_k, n_keys, parts)
    effort = Effort(seed, relative_error, absolute_error, first, most)
    (found,) = _sample(PreciseRows(requested, effort), executor)
    return found


def request_row(
    names: Mapping[str, object],
    d_k: object,
    n_keys: object | None,
    parts: Mapping[str, object],
) -> RequestedRows:
    """Return the one row of a question: as `request_rows`, but nothing may be a list.

    Raises
    ------
    InputError
        As `request_rows`, and if keys are given for a quantity of pairs.
    """
    for name, given in {**names, **parts}.items():
        if name != "divisor" and given is not None:
            require_text(name, given)
    parts = {**parts, "divisor": name_given_divisor(parts["divisor"])}
    d_k = require_whole("d_k", d_k, 1, MOST_SIZE)
    if n_keys is not None:
        n_keys = require_whole("n_keys", n_keys, 2, MOST_SIZE)
    quantity = look_up("quantity", str(parts["quantity"]), QUANTITIES)
    if n_keys is not None and quantity.of == "pairs":
        raise InputError(
            f"keys must be left out for {quantity.name}, a quantity of pairs, got "
            f"{show(n_keys)}"
        )
    return request_rows(names, d_k, () if n_keys is None else n_keys, parts)


def request_rows(
    names: Mapping[str, object],
    d_k: object,
    n_keys: object,
    parts: Mapping[str, object],
) -> RequestedRows:
    """Return the rows of a question: those that there are of all combinations.

    Parameters
    ----------
    names : mapping
        What names a point beside its sizes, each one or a list; a ``distribution_k`` of
        None is that of q.
    d_k, n_keys : int, or sequence of int
    parts : mapping
        Those of `RowKey`, each one or a list; a ``summary`` of None is the usual one.

    Raises
    ------
    InputError
        If an argument is of another type or too long, a name is not known, or a
        quantity has no row at all.
    """
    sizes_of = [
        [require_whole(name, one, least, MOST_SIZE) for one in _several(name, given)]
        for name, given, least in (("d_k", d_k, 1), ("n_keys", n_keys, 2))
    ]
    sizes = [*product(sizes_of[0], (*sizes_of[1], None))]
    named = {name: _texts(name, given) for name, given in names.items()}
    points = math.prod(map(len, named.values())) * len(sizes)
    if points > MOST_POINTS:
        raise InputError(
            f"names and sizes must make at most {MOST_POINTS} points, got {points}"
        )
    columns = {
        name: [*_spellings(given)] if name == "divisor" else _texts(name, given)
        for name, given in parts.items()
    }
    quantities = dict.fromkeys(
        look_up("quantity", name, QUANTITIES).name for name in columns["quantity"]
    )
    rows: list[Row] = []
    refused: dict[str, Row] = {}
    for texts, (d, n) in product(product(*named.values()), sizes):
        wanted = [one for one in quantities if (one in PAIR_QUANTITIES) == (n is None)]
        if not wanted:
            continue
        of_point = dict(zip(named, texts, strict=True))
        if names["distribution_k"] is None:
            of_point["distribution_k"] = of_point["distribution_q"]
        formats = any(name in FORMAT_QUANTITIES for name in wanted)
        point = parse_point(**of_point, d_k=d, n_keys=n, formats=formats)
        for key in _keys_of({**columns, "quantity": wanted}):
            if has_row(point, key):
                rows.append((point, key))
            else:
                refused.setdefault(key.quantity, (point, key))
    there = {key.quantity for _, key in rows}
    for name in quantities:
        if name not in there and name in refused:
            require_row(*refused[name])
        if name not in there:
            raise InputError(f"n_keys must be given for {name}, a quantity of rows")
    return unite(rows)


def _keys_of(columns: Mapping[str, Iterable[str]]) -> Iterator[RowKey]:
    """Yield the keys of all combinations, quantity by quantity."""
    for quantity, divisor, summary, number_format, softmax in product(
        *(columns[name] for name in ("quantity", "divisor", *RowKey._fields[2:]))
    ):
        shifted = number_format in FLOAT8 and softmax == "shifted"
        yield RowKey(
            QUANTITIES[quantity].divisor(divisor),
            quantity,
            summary or usual_summary(quantity),
            number_format,
            FLOAT8_SOFTMAX if shifted else softmax,
        )


#: What None stands for depends on the rest: on q, and on the quantity.
HAVE_USUAL = ("distribution_k", "summary")


def _texts(name: str, given: object) -> list[str]:
    """Return texts, each once; of some None stands for the usual one, as "" does."""
    several = _several(name, "" if given is None and name in HAVE_USUAL else given)
    if not several:
        raise InputError(f"{name} must name at least one, got none")
    return [*dict.fromkeys(require_text(name, one) for one in several)]


def name_given_divisor(given: object) -> str:
    """Return the name of a divisor, or of a ratio of two; a number is one, too."""
    if isinstance(given, str):
        return name_divisor(given)
    return name_divisor(repr(require_number("divisor", given)))


@contextmanager
def at_work(executor: Executor | None, jobs: int | None) -> Iterator[Executor]:
    """Yield workers: those of somebody else are theirs to end."""
    if executor is not None:
        yield executor
    elif jobs == 1:
        with ThreadPoolExecutor(1) as thread:
            yield thread
    else:
        with make_executor(jobs) as workers:
            yield workers


def usual_summary(quantity: str) -> str:
    """Return the summary that is meant where none is named."""
    return "value" if quantity in PAIR_QUANTITIES else "mean"


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
        relative = self.relative_error
        require_number("relative_error", relative, LEAST_RELATIVE, 1.0, ends=False)
        if self.absolute_error is not None:
            require_number("absolute_error", self.absolute_error, 0.0, ends=False)
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
        of = abs(estimate.value)
        if of == 0.0 and estimate.within == SHARE:
            of = 1.0  # no error is a part of 0
        return self.relative_error * of

    def needed(self, estimate: Estimate) -> float:
        """Return about how many replicates an estimate needs for the wanted error.

        Infinite for an estimate of 0 with a relative error and for one that is known to
        a bin, NaN where there is no error, or still no interval.
        """
        if math.isnan(estimate.std_error):
            return math.nan
        n, is_bounded = estimate.n_replicates, estimate.is_bounded
        wanted = self.wanted(estimate)
        if is_bounded and estimate.std_error <= wanted:
            return float(n)
        if n < MOST_WHILE_FEW and (estimate.rests_on_few or not is_bounded):
            return 2.0 * n  # more replicates may well make its error much smaller
        if not is_bounded:
            return math.nan
        if wanted == 0.0 or estimate.is_binned:
            return math.inf
        ratio = estimate.std_error / wanted
        return n * (ratio * ratio)  # a power of it may overflow


@dataclass(slots=True)
class PreciseRows:
    """Rows of points that are being sampled.

    Attributes
    ----------
    requested : mapping
        Point to the rows of it.
    effort : Effort
    store : SampleStore
        What was sampled.

    Raises
    ------
    InputError
        If a point takes more than can be had.
    """

    requested: RequestedRows
    effort: Effort
    store: SampleStore = field(default_factory=SampleStore)
    columns: dict[DesignPoint, Columns] = field(init=False)
    budgets: dict[DesignPoint, Budget] = field(init=False)

    def __post_init__(self) -> None:
        """Refuse what takes too much, before anything is sampled."""
        self.columns = {
            point: columns_of(point, keys) for point, keys in self.requested.items()
        }
        for point, keys in self.requested.items():
            for key in keys:
                require_spread(point, key.divisor)
            require_affordable(point, self.n_divisors)
        self.budgets = {
            point: self.effort.budget(replicate_seconds(point, self.n_divisors))
            for point in self.requested
        }

    @property
    def n_divisors(self) -> int:
        """How many divisors there are in all."""
        return len({one for keys in self.columns.values() for one in keys.divisors})

    def sample(self, workers: Executor, advance: Advance = lambda *_: None) -> None:
        """Sample until every row is precise enough, or cannot be.

        Raises
        ------
        KeyboardInterrupt
            On Ctrl-C; what was sampled until then is in the store.
        """
        plan = Plan(self.budgets, self.effort.seed, self.columns)
        work = partial(finish, workers)
        try:
            with threadpool_limits(limits=1, user_api="blas"):
                failures = run(plan, self.store, work, self._unfinished, advance)
        except KeyboardInterrupt:
            self.store.drop_after_gaps()
            raise
        raise_failed_batches(failures, self.effort.seed)

    def _unfinished(self, _: SampleStore) -> Iterable[DesignPoint]:
        """Name the points with rows that more replicates can make precise enough."""
        for point in self.requested:
            limit = UNREACHABLE * self.budgets[point].most
            if any(
                estimate.n_replicates < self.effort.needed(estimate) <= limit
                for _, estimate in self._estimates(point)
            ):
                yield point

    def _estimates(self, point: DesignPoint) -> Iterator[tuple[RowKey, Estimate]]:
        """Yield the rows of a point; none of one with too few replicates."""
        if self.store.n_replicates(point) >= LEAST:
            samples = self.store.samples(point)
            summaries = Summaries(point, samples, self.columns[point])
            yield from (
                (key, _estimate(summaries, key)) for key in self.requested[point]
            )

    def estimates(self) -> list[tuple[Measurement, Estimate]]:
        """Return the rows as far as they are sampled; points with too little lack."""
        return [
            (_measurement(point, key, *estimate.numbers), estimate)
            for point in self.requested
            for key, estimate in self._estimates(point)
        ]


def _estimate(summaries: Summaries, key: RowKey) -> Estimate:
    """Estimate a row; a share that was 0 or 1 in every replicate by replicates."""
    found = summaries.estimate(key)
    is_share = QUANTITIES[key.quantity].indicator and "/" not in key.divisor
    return share_of_replicates(found) if is_share and found.value in (0, 1) else found


def exact_row(requested: RequestedRows) -> Measurement | None:
    """Return the one row of a question as theory has it, None where it has no value.

    Nothing is sampled: there is no estimate, and there are no replicates.
    """
    ((point, (key,)),) = requested.items()
    found = _measurement(point, key, *[math.nan] * 4, 0)
    return None if found.reference is None else found


def _measurement(point: DesignPoint, key: RowKey, *numbers: float) -> Measurement:
    exact = reference(key.quantity, point, key.divisor, key.summary)
    known = (None, None) if exact is None else (exact.value, exact.error)
    columns: tuple[Any, ...] = table_row(point, key, *numbers, *known)
    return Measurement(*columns)


def grid(  # noqa: PLR0913 - as `measure`
    distribution_q: OneOrMore = "gaussian",
    distribution_k: OneOrMore | None = None,
    *,
    d_k: int | Sequence[int],
    n_keys: int | Sequence[int] = (),
    quantity: OneOrMore,
    divisor: str | float | Sequence[str | float] = BASELINE,
    summary: OneOrMore | None = None,
    number_format: OneOrMore = "float64",
    softmax: OneOrMore = "shifted",
    dependence: OneOrMore = "none",
    initialisation: OneOrMore = "",
    normalisation: OneOrMore = "none",
    mask: OneOrMore = "none",
    seed: int = 1,
    relative_error: float = RELATIVE_ERROR,
    absolute_error: float | None = None,
    first: int = FIRST,
    most: int | None = None,
    jobs: int | None = 1,
    executor: Executor | None = None,
    progress: bool = False,
) -> "DataFrame":
    """Estimate quantities over lists of what names a row, from shared samples.

    Each point is sampled once, until every row of it is as precise as asked for.

    Parameters
    ----------
    distribution_q : str, or sequence of str
        Distributions of the entries of queries.
    distribution_k : str, or sequence of str, optional
        Distributions of the entries of keys, each with each of queries; by default the
        same as those.
    d_k : int, or sequence of int
        Lengths of a query.
    n_keys : int, or sequence of int
        Keys of an attention row, each with each length.  Quantities of pairs have none,
        and are estimated once for each length.
    quantity : str, or sequence of str
        What to estimate.
    divisor : str or float, or sequence of these
        What scores are divided by, as for `measure`.
    summary : str, or sequence of str, optional
        Over attention rows, as for `measure`.
    number_format : str, or sequence of str
        Formats of the weights.
    softmax : str, or sequence of str
        ``shifted``, ``naive``, or both.
    dependence : str, or sequence of str
        How keys are drawn given queries.
    initialisation : str, or sequence of str
        What stands before queries and keys.
    normalisation : str, or sequence of str
        What is done to each query and key before the product.
    mask : str, or sequence of str
        Which keys a query sees, as for `measure`.
    seed : int
        Of all random numbers.
    relative_error : float
        Wanted standard error of each row, as a part of its estimate.
    absolute_error : float, optional
        Wanted standard error of each row, in place of a relative one.
    first : int
        Replicates of each point at first.
    most : int, optional
        Replicates of each point at most, as for `measure`.
    jobs : int, optional
        Processes; one: a thread, None: one process for each core.
    executor : concurrent.futures.Executor, optional
        Other workers, in place of these.
    progress : bool
        Whether to show a bar, on a terminal.

    Returns
    -------
    DataFrame
        A line for each combination that a point has, with the columns of
        measurements.csv, ``mask`` among them.  Distributions and divisors stand as they
        were typed, 13.5 as the number; of two spellings of one, the first.

    Raises
    ------
    InputError
        If an argument is of another type or out of its range, a name is not known, a
        quantity has no row at all, or a point is not one.
    """
    from pandas import DataFrame

    require_executor(executor)
    require_flag("progress", progress)
    jobs = None if jobs is None else require_whole("jobs", jobs, 1, MOST_JOBS)
    names = {
        "distribution_q": distribution_q,
        "distribution_k": distribution_k,
        "dependence": dependence,
        "initialisation": initialisation,
        "normalisation": normalisation,
        "mask": mask,
    }
    parts = {
        "divisor": divisor,
        "quantity": quantity,
        "summary": summary,
        "number_format": number_format,
        "softmax": softmax,
    }
    requested = request_rows(names, d_k, n_keys, parts)
    effort = Effort(seed, relative_error, absolute_error, first, most)
    rows = _sample(PreciseRows(requested, effort), executor, jobs, progress=progress)
    table = DataFrame(map(asdict, rows))
    spelled = _spellings(divisor)
    table["divisor"] = table["divisor"].map(lambda name: spelled.get(name, name))
    for side in ("distribution_q", "distribution_k"):
        given = distribution_q if names[side] is None else names[side]
        typed = {parse_distribution(one).name: one for one in _texts(side, given)[::-1]}
        table[side] = table[side].map(typed)
    return table.astype({"n_keys": "Int64"})


def _sample(
    rows: PreciseRows,
    executor: Executor | None,
    jobs: int | None = 1,
    *,
    progress: bool = False,
) -> list[Measurement]:
    """Sample rows by some workers."""
    with (
        at_work(executor, jobs) as workers,
        progress_bar(rows.n_divisors, quiet=not progress) as advance,
    ):
        rows.sample(workers, advance)
    return [measured for measured, _ in rows.estimates()]


def _several(name: str, given: object) -> list[object]:
    """Return a list of what may be one alone; one that is too long is not gone through.

    Raises
    ------
    InputError
        If it is too long, or no list but something else that holds others.
    """
    if isinstance(given, Mapping | bytes | bytearray):
        raise InputError(f"{name} must be one, or a list, got {show(given)}")
    is_scalar_array = getattr(given, "ndim", 1) == 0
    if isinstance(given, str) or not isinstance(given, Iterable) or is_scalar_array:
        return [given]
    found = list(islice(given, MOST_POINTS + 1))
    if len(found) > MOST_POINTS:
        raise InputError(f"{name} must name at most {MOST_POINTS}, got more")
    return found


def _spellings(given: object) -> dict[str, object]:
    """Return the names of divisors, each with how it was typed first."""
    spelled: dict[str, object] = {}
    for one in _several("divisor", given):
        spelled.setdefault(name_given_divisor(one), one)
    return spelled

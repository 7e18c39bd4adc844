"""`measure` and `grid`: rows of measurements.csv for any point, to a given precision.

>>> from montecarlo import measure
>>> point = measure(d_k=4, n_keys=8, quantity="entropy", most=128)
>>> point.quantity, point.divisor, point.n_replicates
('entropy', 'sqrt', 128)
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice, product
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeGuard

from threadpoolctl import threadpool_limits

from montecarlo.attention.divisors import BASELINE, name_divisor
from montecarlo.attention.number_formats import FLOAT8, FLOAT8_SOFTMAX
from montecarlo.attention.quantities import (
    FORMAT_QUANTITIES,
    PAIR_QUANTITIES,
    QUANTITIES,
    SHARE,
    SPELLINGS,
)
from montecarlo.errors import InputError, show
from montecarlo.estimation.engine import (
    LEAST,
    Advance,
    Budget,
    Plan,
    SampleStore,
    run,
)
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
    NONE,
    look_up,
    require_executor,
    require_flag,
    require_number,
    require_text,
    require_whole,
)
from montecarlo.sampling.batches import join
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
from montecarlo.study.progress import progress_bar
from montecarlo.study.rows import RequestedRows, Row, group_by_point, require_row
from montecarlo.theory.references import reference

if TYPE_CHECKING:
    from pandas import DataFrame

#: Defaults: replicates in the first round, and target of standard error/estimate.
FIRST, RELATIVE_ERROR = 128, 0.01
#: Limit of the target, below the rounding error of the samples.
LEAST_RELATIVE = 1e-12
#: Default limits: number of replicates, and estimated time on one core in seconds.  The
#: time is estimated, not measured, so that results do not depend on the machine.
MOST, MOST_SECONDS = 2**17, 60.0
#: Sampling of a row ends early if it needs this many times more replicates than its
#: budget.  A smaller factor could end it by mistake: the need is an estimate.
UNREACHABLE = 2.0
#: Number of replicates from which on the standard error of an estimate that depends on
#: outliers is taken as it is.
MOST_WITH_OUTLIERS = 2**12
#: Largest number of points of a grid, and of elements of each of its lists.
MOST_POINTS = 4096
#: A string or a list of strings.
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
    """Estimate one quantity at one design point, to a given precision.

    Parameters
    ----------
    distribution_q : str
        Distribution of the entries of queries: a name, with the mean and the standard
        deviation unless they are 0 and 1, such as ``"laplace(std=2)"``.
    distribution_k : str, optional
        Distribution of the entries of keys; default: ``distribution_q``.
    d_k : int
        Length of a query, at least 1.
    n_keys : int, optional
        Number of keys of an attention row, at least 2; omitted for quantities of pairs.
    quantity : str
        Name of a quantity; ``python -m montecarlo --list quantities`` lists all.
    divisor : str or float
        What scores are divided by: a name, a number, or a formula such as
        ``2*d_k^0.6``, ``d_k/8`` or ``sqrt(d_k*ln(n))``.  ``none/sqrt`` means the ratio
        of the quantity under the two divisors.
    summary : str, optional
        Summary over attention rows: ``mean`` (default), ``median`` or another quantile
        such as ``q99``.  Under a mask also ``first`` and ``last``, the mean of the
        first or last row or key.  For a quantity of pairs: ``value``.
    number_format : str
        Number format of the weights, such as ``float16``.
    softmax : str
        ``shifted`` (the maximum is subtracted first) or ``naive``.
    dependence : str
        Dependence of keys on queries: ``none``, ``pairs(0.5)`` or ``planted(0.5)``.
    initialisation : str
        Initialisation of the projections that make queries and keys, such as
        ``"init(kind=xavier_uniform,width=512)"``.  Empty: no projections.
    normalisation : str
        ``"l2(gain=10)"`` normalises each query and key to length 1, ``"rms"`` to mean
        square 1; the gain multiplies the product.  Default: ``none``.
    mask : str
        Which keys a query attends to: with ``causal`` its own and earlier ones, with
        ``window(128)`` the last 128 of these, with ``full`` all; there are as many
        queries as keys.  ``none``: all, with fewer queries if rows are long.
    seed : int
        Seed of the random numbers, from 0 to 2**63 - 1.
    relative_error : float
        Target of standard error/|estimate|, between 1e-12 and 1.  Replicates are
        doubled until it is reached or is seen to need more than ``most``.  For a share
        that is estimated as 0, the target of the standard error itself.
    absolute_error : float, optional
        Target of the standard error, positive; replaces ``relative_error``.
    first : int
        Number of replicates in the first round, from 2 to 2**20, and not above
        ``most``.  The default is reduced to ``most`` if that is smaller.
    most : int, optional
        Largest number of replicates, from 2 to 2**20.  Default: 131072, or as many as
        take about a minute on one core.
    executor : concurrent.futures.Executor, optional
        Workers; default: one thread.  A script must start processes below
        ``if __name__ == "__main__":``.

    Returns
    -------
    Measurement
        The columns of measurements.csv as attributes, such as ``estimate``,
        ``std_error``, ``ci_low`` and ``ci_high``; printing it shows a description.  Its
        ``std_error`` is larger than the target if that could not be reached.

    Raises
    ------
    InputError
        If an argument is of a wrong type or out of range, the point lacks the row, or
        the row needs more time or memory than is allowed.
    """
    options = _select_options(locals())
    require_executor(executor)
    requested = request_row(d_k, n_keys, options)
    effort = seed, relative_error, absolute_error, first, most
    (measured,) = _sample(PreciseRows(requested, *effort), executor)
    return measured


#: Fields of the key of a row.
KEY_FIELDS = RowKey._fields
#: Names of a point apart from its sizes: parameters of `parse_point`.
_POINT_NAMES = (
    *("distribution_q", "distribution_k", "dependence", "initialisation"),
    *("normalisation", "mask"),
)


def _select_options(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that name a point or a row, by name.

    They are the parameters of `parse_point`, without sizes, and the fields of `RowKey`.
    """
    return {name: parameters[name] for name in (*_POINT_NAMES, *KEY_FIELDS)}


def request_row(
    d_k: object, n_keys: object | None, options: Mapping[str, object]
) -> RequestedRows:
    """Return the one row that single values specify, as {its point: (its key,)}.

    Parameters are those of `request_rows`, but no lists.

    Raises
    ------
    InputError
        As for `request_rows`; also if a value is a list, or if ``n_keys`` is given for
        a quantity of pairs.
    """
    for name, value in {"d_k": d_k, "n_keys": n_keys, **options}.items():
        if _is_list(value):
            raise InputError(f"{name} must be a single value, got {show(value)}")
    if n_keys is not None and str(options["quantity"]) in PAIR_QUANTITIES:
        raise InputError(
            f"n_keys must be left out for {options['quantity']}, a quantity of pairs, "
            f"got {show(n_keys)}"
        )
    return request_rows(d_k, () if n_keys is None else n_keys, options)


def request_rows(
    d_k: object, n_keys: object, options: Mapping[str, object]
) -> RequestedRows:
    """Return the rows that exist among all combinations of sizes and options.

    The result maps each design point to the keys of its rows.

    Parameters
    ----------
    d_k, n_keys : int, or sequence of int
    options : mapping
        Every argument of `grid` that names a distribution, condition, quantity,
        divisor, summary, number format or softmax, by its name: a value or a list of
        values.  ``distribution_k`` and ``summary`` may be None.

    Raises
    ------
    InputError
        If a value is of a wrong type, a list too long or empty (except ``n_keys``) or a
        name unknown, if there are more than `MOST_POINTS` points, or if a quantity, a
        divisor, a summary, a number format or a softmax has no row at all.
    """
    sizes_of = [
        [require_whole(name, one, least, MOST_SIZE) for one in _list_of(name, values)]
        for name, values, least in (("d_k", d_k, 1), ("n_keys", n_keys, 2))
    ]
    sizes = [*product(sizes_of[0], (*sizes_of[1], None))]
    columns = {
        name: [*_spellings(value)] if name == "divisor" else _texts(name, value)
        for name, value in options.items()
    }
    names = [columns[name] for name in _POINT_NAMES]
    points = math.prod(map(len, names)) * len(sizes)
    if points > MOST_POINTS:
        raise InputError(
            f"names and sizes must make at most {MOST_POINTS} points, got {points}"
        )
    quantities = dict.fromkeys(
        look_up("quantity", one, QUANTITIES).name for one in columns["quantity"]
    )
    rows: list[Row] = []
    missing: list[Row] = []
    for values, (d, n) in product(product(*names), sizes):
        wanted = [one for one in quantities if (one in PAIR_QUANTITIES) == (n is None)]
        if not wanted:
            continue
        named = dict(zip(_POINT_NAMES, values, strict=True))
        named["distribution_k"] = named["distribution_k"] or named["distribution_q"]
        formats = any(name in FORMAT_QUANTITIES for name in wanted)
        point = parse_point(**named, d_k=d, n_keys=n, formats=formats)
        for key in _keys_of({**columns, "quantity": wanted}):
            (rows if has_row(point, key) else missing).append((point, key))
    for part in KEY_FIELDS:
        present = {getattr(key, part) for _, key in rows}
        for point, key in missing:
            if getattr(key, part) not in present:
                require_row(point, key)
    present = {key.quantity for _, key in rows}
    for name in (one for one in quantities if one not in present):
        raise InputError(f"n_keys must be given for {name}, a quantity of rows")
    return group_by_point(rows)


def _keys_of(columns: Mapping[str, Iterable[str]]) -> Iterator[RowKey]:
    """Yield a `RowKey` for each combination of the values in the columns.

    ``columns`` maps each field of the key to its values.  An empty summary means the
    first that the quantity has.  The divisor becomes ``none`` for a quantity that does
    not depend on it, and the softmax ``shifted`` becomes `FLOAT8_SOFTMAX` for formats
    of eight bits.
    """
    for quantity, divisor, summary, number_format, softmax in product(
        *(columns[name] for name in ("quantity", "divisor", *KEY_FIELDS[2:]))
    ):
        shifted = number_format in FLOAT8 and softmax == "shifted"
        yield RowKey(
            QUANTITIES[quantity].divisor(divisor),
            quantity,
            SPELLINGS.get(summary, summary) or QUANTITIES[quantity].summaries[0],
            number_format,
            FLOAT8_SOFTMAX if shifted else softmax,
        )


def _texts(name: str, value: object) -> list[str]:
    """Return the values of an option as a list of texts, without repetitions.

    ``value`` is a text or a list of texts.  None becomes "" for the options whose
    default it is.  ``name`` is that of the option.  Any other value, and an empty list,
    raises an `InputError`.
    """
    may_be_none = name in {"distribution_k", "summary"}
    texts = _list_of(name, "" if value is None and may_be_none else value)
    return [*dict.fromkeys(require_text(name, one) for one in texts)]


def open_workers(
    executor: Executor | None, jobs: int | None
) -> AbstractContextManager[Executor]:
    """Return a context manager that provides workers.

    If ``executor`` is given, these are the workers, and they are not shut down.
    Otherwise new workers are started, and shut down at the end: a thread for ``jobs`` =
    1, else so many processes.  With None there is a process for each core.
    """
    if executor is not None:
        return nullcontext(executor)
    return ThreadPoolExecutor(1) if jobs == 1 else make_executor(jobs)


@dataclass(slots=True)
class PreciseRows:
    """Rows that are sampled until their estimates are precise enough, with the samples.

    Attributes
    ----------
    requested : mapping
        For each point, the keys of its rows.
    seed, relative_error, absolute_error, first, most
        As for `measure`.
    store : SampleStore
        The samples.
    columns, budgets : dict
        For each point, the columns of its replicates and its `Budget`.

    Raises
    ------
    InputError
        If a number is out of range, or a point needs too much time or memory.
    """

    requested: RequestedRows
    seed: int = 1
    relative_error: float = RELATIVE_ERROR
    absolute_error: float | None = None
    first: int = FIRST
    most: int | None = None
    store: SampleStore = field(default_factory=SampleStore)
    columns: dict[DesignPoint, Columns] = field(init=False)
    budgets: dict[DesignPoint, Budget] = field(init=False)

    def __post_init__(self) -> None:
        relative = self.relative_error
        require_number("relative_error", relative, LEAST_RELATIVE, 1.0, ends=False)
        if self.absolute_error is not None:
            require_number("absolute_error", self.absolute_error, 0.0, ends=False)
        self.seed = require_whole("seed", self.seed, 0, MOST_SEED)
        self.first = require_whole("first", self.first, LEAST, MOST_REPLICATES)
        if self.most is not None:
            self.most = require_whole("most", self.most, LEAST, MOST_REPLICATES)
            if self.most < self.first != FIRST:
                raise InputError(f"first must be at most {self.most}, got {self.first}")
        self.columns = {
            point: columns_of(point, keys) for point, keys in self.requested.items()
        }
        for point, keys in self.requested.items():
            for key in keys:
                require_spread(point, key.divisor)
            require_affordable(point, self.n_divisors)
        self.budgets = {point: self._budget(point) for point in self.requested}

    def _budget(self, point: DesignPoint) -> Budget:
        """Return the budget of a point: its first and its largest number of replicates.

        If ``most`` is None, the largest is what takes about `MOST_SECONDS`, but not
        above `MOST`, and not below ``first``.
        """
        most = self.most
        if most is None:
            in_time = int(MOST_SECONDS / replicate_seconds(point, self.n_divisors))
            most = max(self.first, min(MOST, in_time))
        return Budget(min(self.first, most), most)

    @property
    def n_divisors(self) -> int:
        """Number of different divisors of all points."""
        return len({one for keys in self.columns.values() for one in keys.divisors})

    def target_error(self, estimate: Estimate) -> float:
        """Return the standard error that an estimate should reach.

        It is ``absolute_error`` if that is given.  Otherwise it is ``relative_error``
        times the absolute value of the estimate, so 0 if the estimate is 0.  For a
        share that is estimated as 0, it is ``relative_error`` itself.
        """
        if self.absolute_error is not None:
            return self.absolute_error
        is_no_share = estimate.value == 0.0 and estimate.within == SHARE
        return self.relative_error * (1.0 if is_no_share else abs(estimate.value))

    def replicates_needed(self, estimate: Estimate) -> float:
        """Return about how many replicates would reach the target error.

        The error is taken to fall with the square root of their number.  The result is
        the present number if the target is reached, and twice that number if the
        estimate depends on outliers.  It is inf if no number suffices: the target is
        relative and the estimate 0, or the interval is a bin of a histogram.  It is NaN
        if there is no standard error, or no interval even after many replicates.
        """
        if math.isnan(estimate.std_error):
            return math.nan
        n, is_bounded = estimate.n_replicates, estimate.is_bounded
        target = self.target_error(estimate)
        if is_bounded and estimate.std_error <= target:
            return float(n)
        if n < MOST_WITH_OUTLIERS and (estimate.depends_on_outliers or not is_bounded):
            return 2.0 * n  # the error may fall by far more than usual
        if not is_bounded:
            return math.nan
        if target == 0.0 or estimate.is_binned:
            return math.inf
        ratio = estimate.std_error / target
        return n * (ratio * ratio)  # ratio**2 may raise on overflow

    def sample(self, workers: Executor, advance: Advance = lambda *_: None) -> None:
        """Sample all points until every row reaches its target error, if it can.

        On Ctrl-C the store has the batches that have finished.  If sampling fails at
        some points, `raise_failed_batches` raises an error once the others have
        finished.
        """
        plan = Plan(self.budgets, self.seed, self.columns)
        work = partial(finish, workers)
        with threadpool_limits(limits=1, user_api="blas"):
            failures = run(plan, self.store, work, self._unfinished, advance)
        raise_failed_batches(failures, self.seed)

    def _unfinished(self, _: SampleStore) -> Iterable[DesignPoint]:
        """Yield the points that need more replicates.

        They have a row that has not reached its target error.  The row must be able to
        reach it with at most `UNREACHABLE` times the largest number of replicates of
        its point.
        """
        for point in self.requested:
            limit = UNREACHABLE * self.budgets[point].most
            if any(
                estimate.n_replicates < self.replicates_needed(estimate) <= limit
                for _, estimate in self._estimates(point)
            ):
                yield point

    def _estimates(self, point: DesignPoint) -> Iterator[tuple[RowKey, Estimate]]:
        """Yield (key, estimate) of each row of a point.

        Nothing is yielded if the point has too few replicates.  A share that is
        estimated as 0 or 1 has the wider interval of `share_of_replicates`.
        """
        if self.store.n_replicates(point) >= LEAST:
            samples = join(self.store.packed(point))
            summaries = Summaries(point, samples, self.columns[point])
            for key in self.requested[point]:
                estimate = summaries.estimate(key)
                is_share = QUANTITIES[key.quantity].indicator and "/" not in key.divisor
                if is_share and estimate.value in {0.0, 1.0}:
                    estimate = share_of_replicates(estimate)
                yield key, estimate

    def estimates(self) -> list[tuple[Measurement, Estimate]]:
        """Return (row as a `Measurement`, its `Estimate`) for all rows.

        Rows of points with too few replicates are omitted.
        """
        return [
            (_measurement(point, key, *estimate.numbers), estimate)
            for point in self.requested
            for key, estimate in self._estimates(point)
        ]


def exact_row(requested: RequestedRows) -> Measurement | None:
    """Return the only requested row with its exact value, without sampling.

    The value is the attribute ``reference``.  Estimate, standard error and interval are
    NaN, and there are 0 replicates.  None if theory has no exact value of the row.
    """
    ((point, (key,)),) = requested.items()
    measured = _measurement(point, key, *[math.nan] * 4, 0)
    return None if measured.reference is None else measured


def _measurement(point: DesignPoint, key: RowKey, *numbers: float) -> Measurement:
    """Return a row as a `Measurement`, with its exact value if theory has one.

    ``numbers`` are those of `Estimate.numbers`.
    """
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
    """Estimate rows for all combinations of sizes and names, to a given precision.

    Each point is sampled once, until each of its rows is precise enough.  Single values
    are as for `measure`.

    Parameters
    ----------
    distribution_q : str, or sequence of str
        Distributions of the entries of queries.
    distribution_k : str, or sequence of str, optional
        Distributions of the entries of keys, each combined with each of queries.
        Default: the same as that of queries.
    d_k : int, or sequence of int
        Lengths of a query.
    n_keys : int, or sequence of int
        Numbers of keys of a row, each combined with each ``d_k``.  Quantities of pairs
        are estimated once for each ``d_k``.
    quantity : str, or sequence of str
        Names of quantities.
    divisor : str or float, or sequence of these
        What scores are divided by.
    summary : str, or sequence of str, optional
        Summaries over attention rows.
    number_format : str, or sequence of str
        Number formats of the weights.
    softmax : str, or sequence of str
        ``shifted``, ``naive`` or both.
    dependence : str, or sequence of str
        Dependences of keys on queries.
    initialisation : str, or sequence of str
        Initialisations of the projections that make queries and keys.
    normalisation : str, or sequence of str
        Normalisations of each query and key.
    mask : str, or sequence of str
        Which keys a query attends to.
    seed : int
        Seed of the random numbers.
    relative_error : float
        Target of standard error/|estimate| for each row.
    absolute_error : float, optional
        Target of the standard error of each row; replaces ``relative_error``.
    first : int
        Number of replicates of each point in the first round.
    most : int, optional
        Largest number of replicates of each point.
    jobs : int, optional
        Number of processes; 1: a thread.  None: a process for each core.  A script must
        start processes below ``if __name__ == "__main__":``.
    executor : concurrent.futures.Executor, optional
        Other workers, instead of ``jobs``: such as a ``ThreadPoolExecutor``, or
        ``client.get_executor(pure=False)`` of a client of Dask.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    DataFrame
        A row for each combination that exists, with the columns of measurements.csv,
        always including ``mask``.  Distributions and divisors are spelled as they were
        given, such as 13.5 as a number; of two spellings, the first.  An empty
        ``initialisation`` is ``none``.  Where the target could not be reached,
        ``std_error`` is larger.

    Raises
    ------
    InputError
        If an argument is of a wrong type or out of range, a name is unknown, a
        quantity, a divisor, a summary, a number format or a softmax has no row at all,
        or a combination is not a point.
    """
    options = _select_options(locals())
    from pandas import DataFrame

    require_executor(executor)
    require_flag("progress", progress)
    jobs = None if jobs is None else require_whole("jobs", jobs, 1, MOST_JOBS)
    requested = request_rows(d_k, n_keys, options)
    effort = seed, relative_error, absolute_error, first, most
    rows = _sample(PreciseRows(requested, *effort), executor, jobs, progress=progress)
    table = DataFrame(map(asdict, rows)).replace({"initialisation": {"": NONE}})
    spellings = _spellings(divisor)
    table["divisor"] = table["divisor"].map(lambda name: spellings.get(name, name))
    for side in ("distribution_q", "distribution_k"):
        given = distribution_q if options[side] is None else options[side]
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
    """Sample rows to their target errors, and return them as `Measurement` objects.

    Parameters are those of `grid`.
    """
    with (
        open_workers(executor, jobs) as workers,
        progress_bar(rows.n_divisors, quiet=not progress) as advance,
    ):
        rows.sample(workers, advance)
    return [measured for measured, _ in rows.estimates()]


def _is_list(value: object) -> TypeGuard[Iterable[object]]:
    """Return whether a value is iterable, but no text and no array of shape ()."""
    is_scalar = isinstance(value, str) or getattr(value, "ndim", 1) == 0
    return isinstance(value, Iterable) and not is_scalar


def _list_of(name: str, value: object) -> list[object]:
    """Return the elements of a list of values; for a single value, a list of it.

    ``name`` is that of the option, for messages.

    Raises
    ------
    InputError
        If the list is too long, perhaps infinite, or is a mapping or bytes.  Also if it
        is empty, except for ``n_keys``: quantities of pairs of a query and a key have
        no number of keys.
    """
    if isinstance(value, Mapping | bytes | bytearray):
        raise InputError(f"{name} must be a value or a list, got {show(value)}")
    if not _is_list(value):
        return [value]
    elements = list(islice(value, MOST_POINTS + 1))
    if len(elements) > MOST_POINTS:
        raise InputError(f"{name} must name at most {MOST_POINTS}, got more")
    if not elements and name != "n_keys":  # of which pairs have none
        raise InputError(f"{name} must have at least one value, got none")
    return elements


def _spellings(value: object) -> dict[str, object]:
    """Return each divisor as it was given, by its canonical name.

    Such as ``{"sqrt": "d_k^0.5", "13.5": 13.5}``.  ``value`` is a divisor or a list of
    divisors.  If a divisor is given in two spellings, the first counts.
    """
    spellings: dict[str, object] = {}
    for one in _list_of("divisor", value):
        if not isinstance(one, str | Real):
            ways = "a number, a name or a formula as text, such as '2*d_k^0.6'"
            raise InputError(f"divisor must be {ways}, got {show(one)}")
        text = one if isinstance(one, str) else repr(require_number("divisor", one))
        spellings.setdefault(name_divisor(text), one)
    return spellings

"""Questions of one's own: one row of the table, or a grid of them, to a precision.

>>> from montecarlo import measure
>>> point = measure("gaussian", "gaussian", 4, 8, quantity="entropy", most=128)
>>> point.quantity, point.n_replicates
('entropy', 128)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain, islice, product

import numpy as np
import pandas as pd

from montecarlo.attention.divisors import name_divisor, split_pairs
from montecarlo.attention.quantities import (
    FORMAT_QUANTITIES,
    PAIR_QUANTITIES,
    QUANTITIES,
    beyond_table,
)
from montecarlo.errors import MOST_QUOTED, InputError, show
from montecarlo.estimation.summaries import RowKey, row_keys
from montecarlo.names import (
    MOST_JOBS,
    MOST_SIZE,
    look_up,
    require_executor,
    require_number,
    require_text,
    require_whole,
)
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.study.executors import make_executor
from montecarlo.study.measured import Measurement
from montecarlo.study.precise_rows import FIRST, RELATIVE_ERROR, Effort, PreciseRows
from montecarlo.study.progress import progress_bar

#: Points of a grid, and entries of each of its lists, at most.
MOST_POINTS = 4096


def measure(  # noqa: PLR0913 - each column that identifies a row is an option
    distribution_q: str,
    distribution_k: str,
    d_k: int,
    n_keys: int | None = None,
    *,
    quantity: str,
    divisor: str | float = "none",
    summary: str | None = None,
    number_format: str = "float64",
    softmax: str = "shifted",
    dependence: str = "none",
    initialisation: str = "",
    seed: int = 1,
    relative_error: float = RELATIVE_ERROR,
    absolute_error: float | None = None,
    first: int = FIRST,
    most: int | None = None,
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
    quantity, summary, number_format, softmax, dependence, initialisation : str
        As in measurements.csv; the summary is by default the mean, or ``value``.
    divisor : str or float
        A name, a number, a formula such as ``2*d_k^0.6`` or ``sqrt(d_k*ln(n))``, or
        the ratio of two, ``none/sqrt``.
    seed : int
    relative_error : float
        Replicates are doubled until the standard error is at most this part of the
        estimate, or until it is seen that ``most`` will not do.
    absolute_error : float, optional
        The standard error that is wanted, in the place of a relative one.
    first : int
        Replicates at first.
    most : int, optional
        Replicates at most; by default 131072, and what about a minute samples.
    executor : concurrent.futures.Executor, optional
        Workers; by default one thread.

    Returns
    -------
    Measurement
        Whose ``std_error`` is larger than was wanted if that could not be had; printed,
        it says what was measured.

    Raises
    ------
    InputError
        If an argument is of another type or out of its range, the point is not one, has
        no such row, or takes more than can be had.
    """
    require_executor(executor)
    asked = ask(
        distribution_q,
        distribution_k,
        d_k,
        n_keys,
        dependence,
        initialisation,
        RowKey(
            _name_divisor(divisor),
            quantity,
            "" if summary is None else summary,
            number_format,
            softmax,
        ),
    )
    effort = Effort(seed, relative_error, absolute_error, first, most)
    rows = PreciseRows(asked, effort)
    with _at_work(executor, 1) as workers:
        rows.sample(workers)
    (found,) = rows.rows()
    return found


def ask(  # noqa: PLR0913, PLR0917 - what identifies a row
    distribution_q: str,
    distribution_k: str,
    d_k: int,
    n_keys: int | None,
    dependence: str,
    initialisation: str,
    key: RowKey,
) -> dict[DesignPoint, list[RowKey]]:
    """Return the point and the row of a question; an empty summary is the usual one.

    Raises
    ------
    InputError
        If an argument is of another type, a name is not known, or keys are missing.
    """
    texts = {
        "distribution_q": distribution_q,
        "distribution_k": distribution_k,
        "dependence": dependence,
        "initialisation": initialisation,
        **key._asdict(),
    }
    for name, text in texts.items():
        require_text(name, text)
    d_k = require_whole("d_k", d_k, 1, MOST_SIZE)
    if n_keys is not None:
        n_keys = require_whole("n_keys", n_keys, 2, MOST_SIZE)
    look_up("quantity", key.quantity, QUANTITIES)
    key = key._replace(summary=key.summary or _summary_of(key.quantity))
    if n_keys is None and key.quantity not in PAIR_QUANTITIES:
        raise InputError(f"keys must be given for {key.quantity}, a quantity of rows")
    point = parse_point(
        distribution_q,
        distribution_k,
        d_k,
        n_keys,
        dependence,
        initialisation,
        formats=key.quantity in FORMAT_QUANTITIES,
        also=beyond_table(key.quantity, key.summary),
    )
    return {point: [key]}


def grid(  # noqa: PLR0913 - as `measure`
    distribution_q: str = "gaussian",
    distribution_k: str | None = None,
    *,
    d_k: int | Sequence[int],
    n_keys: int | Sequence[int] = (),
    quantity: str | Sequence[str],
    divisor: str | float | Sequence[str | float] = "none",
    summary: str | None = None,
    dependence: str = "none",
    initialisation: str = "",
    seed: int = 1,
    relative_error: float = RELATIVE_ERROR,
    absolute_error: float | None = None,
    first: int = FIRST,
    most: int | None = None,
    jobs: int | None = 1,
    executor: Executor | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Estimate quantities over lists of sizes and divisors, from shared samples.

    Each point is sampled once, until every row of it is as precise as asked for.

    Parameters
    ----------
    distribution_q, distribution_k : str
        Distributions of the entries; that of k is by default that of q.
    d_k, n_keys : int, or sequence of int
        Rows are estimated at every combination, pairs at every ``d_k``.
    quantity : str, or sequence of str
    divisor : str or float, or sequence of these
        As for `measure`.  What a point does not have is left out, like ratios of
        quantities of pairs.
    summary : str, optional
        ``median`` or ``q99``, for example; by default the mean, or ``value``.
    dependence, initialisation, seed, relative_error, absolute_error, first, most
        As for `measure`.
    jobs : int, optional
        Processes; one: a thread, None: one process for each core.
    executor : concurrent.futures.Executor, optional
        Other workers, in the place of these.
    progress : bool
        Whether to show a bar, on a terminal.

    Returns
    -------
    DataFrame
        A line for each point, quantity and divisor; columns as `Measurement`.

    Raises
    ------
    InputError
        If an argument is of another type or out of its range, a name is not known, a
        quantity has no row at all, or a point is not one.
    """
    require_executor(executor)
    if not isinstance(progress, bool | np.bool):
        raise InputError(f"progress must be True or False, got {show(progress)}")
    jobs = None if jobs is None else require_whole("jobs", jobs, 1, MOST_JOBS)
    names = [require_text("quantity", one) for one in _several("quantity", quantity)]
    quantities = list(dict.fromkeys(names))
    if not quantities:
        raise InputError("quantity must name at least one, got none")
    for name in quantities:
        look_up("quantity", name, QUANTITIES)
    if summary is not None:
        require_text("summary", summary)

    def summary_of(name: str) -> str:
        return summary or _summary_of(name)

    divisors = _several("divisor", divisor)
    named = list(dict.fromkeys(map(_name_divisor, divisors)))
    singles, ratios = split_pairs(named)
    both = (
        require_text("distribution_q", distribution_q),
        distribution_q
        if distribution_k is None
        else require_text("distribution_k", distribution_k),
    )
    require_text("dependence", dependence)
    require_text("initialisation", initialisation)
    sizes = _sizes("d_k", d_k, 1), _sizes("n_keys", n_keys, 2)
    if (points := len(sizes[0]) * (1 + len(sizes[1]))) > MOST_POINTS:
        raise InputError(
            f"d_k and n_keys must make at most {MOST_POINTS} points, got {points}"
        )
    of_pairs = [name for name in quantities if name in PAIR_QUANTITIES]
    of_rows = [name for name in quantities if name not in PAIR_QUANTITIES]
    asked: dict[DesignPoint, list[RowKey]] = {}
    for d, n in product(sizes[0], (*sizes[1], None)):
        names = of_pairs if n is None else of_rows
        if not names:
            continue
        formats = any(name in FORMAT_QUANTITIES for name in names)
        also = tuple(chain(*(beyond_table(x, summary_of(x)) for x in names)))
        point = parse_point(
            *both, d, n, dependence, initialisation, formats=formats, also=also
        )
        known = set(row_keys(point, singles, ratios))
        keys = [RowKey(c, name, summary_of(name)) for name in names for c in named]
        asked[point] = [key for key in keys if key in known]
    found = {key.quantity for keys in asked.values() for key in keys}
    if missing := [name for name in quantities if name not in found]:
        raise InputError(
            f"{missing[0]} must have a row of the summary "
            f"{show(summary_of(missing[0]))} at one of these points, with one of the "
            f"divisors {', '.join(named)[:MOST_QUOTED]}; "
            "quantities of rows need n_keys"
        )
    effort = Effort(seed, relative_error, absolute_error, first, most)
    rows = PreciseRows(asked, effort)
    with (
        _at_work(executor, jobs) as workers,
        progress_bar(len(rows.divisors), quiet=not progress) as advance,
    ):
        rows.sample(workers, advance)
    table = pd.DataFrame(map(asdict, rows.rows()))
    return table.astype({"n_keys": "Int64"})


def _several(name: str, given: object) -> list[object]:
    """Return a list of what may be one alone; one that is too long is not gone through.

    Raises
    ------
    InputError
        If it is too long, or no list but something else that holds others.
    """
    if isinstance(given, Mapping | bytes | bytearray):
        raise InputError(f"{name} must be one, or a list, got {show(given)}")
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [given]
    if getattr(given, "ndim", 1) == 0:  # an array of NumPy's that is none
        return [given]
    if isinstance(given, Sized) and len(given) > MOST_POINTS:
        raise InputError(f"{name} must name at most {MOST_POINTS}, got {len(given)}")
    found = list(islice(given, MOST_POINTS + 1))
    if len(found) > MOST_POINTS:
        raise InputError(f"{name} must name at most {MOST_POINTS}, got more")
    return found


def _sizes(name: str, given: object, least: int) -> list[int]:
    """Return whole numbers of any kind as Python's."""
    return [require_whole(name, one, least, MOST_SIZE) for one in _several(name, given)]


def _name_divisor(given: object) -> str:
    """Return the name of a divisor, or of a ratio of two; a number is one, too."""
    if isinstance(given, str):
        return name_divisor(given)
    return name_divisor(repr(require_number("divisor", given)))


@contextmanager
def _at_work(executor: Executor | None, jobs: int | None) -> Iterator[Executor]:
    """Yield workers: those of somebody else are theirs to end."""
    if executor is not None:
        yield executor
    elif jobs == 1:
        with ThreadPoolExecutor(1) as thread:
            yield thread
    else:
        with make_executor(jobs) as workers:
            yield workers


def _summary_of(quantity: str) -> str:
    return "value" if quantity in PAIR_QUANTITIES else "mean"

"""A grid of questions of one's own, as a table."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from concurrent.futures import Executor
from dataclasses import asdict
from itertools import chain, islice, product

import numpy as np
from pandas import DataFrame

from montecarlo.attention.divisors import split_pairs
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
    require_text,
    require_whole,
)
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.study.measurement import (
    FIRST,
    RELATIVE_ERROR,
    Effort,
    PreciseRows,
    at_work,
    name_given_divisor,
    usual_summary,
)
from montecarlo.study.progress import progress_bar

#: Points of a grid, and entries of each of its lists, at most.
MOST_POINTS = 4096


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
    normalisation: str = "none",
    seed: int = 1,
    relative_error: float = RELATIVE_ERROR,
    absolute_error: float | None = None,
    first: int = FIRST,
    most: int | None = None,
    jobs: int | None = 1,
    executor: Executor | None = None,
    progress: bool = False,
) -> DataFrame:
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
    dependence, initialisation, normalisation, seed, relative_error, absolute_error, \
first, most
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
        Distributions and divisors stand as they were typed, 13.5 as the number; of two
        spellings of one divisor, the first.

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
    if distribution_k is None:
        distribution_k = distribution_q
    texts = {
        "distribution_q": distribution_q,
        "distribution_k": distribution_k,
        "dependence": dependence,
        "initialisation": initialisation,
        "normalisation": normalisation,
        "summary": "" if summary is None else summary,
    }
    for name, text in texts.items():
        require_text(name, text)
    names = [require_text("quantity", one) for one in _several("quantity", quantity)]
    if not names:
        raise InputError("quantity must name at least one, got none")
    names = [look_up("quantity", name, QUANTITIES).name for name in names]
    summaries = {name: summary or usual_summary(name) for name in names}
    spelled = _spellings(divisor)
    named = list(spelled)
    singles, ratios = split_pairs(named)
    sizes = _sizes("d_k", d_k, 1), _sizes("n_keys", n_keys, 2)
    if (points := len(sizes[0]) * (1 + len(sizes[1]))) > MOST_POINTS:
        raise InputError(
            f"d_k and n_keys must make at most {MOST_POINTS} points, got {points}"
        )
    asked: dict[DesignPoint, list[RowKey]] = {}
    for d, n in product(sizes[0], (*sizes[1], None)):
        names = [one for one in summaries if (one in PAIR_QUANTITIES) == (n is None)]
        if not names:
            continue
        point = parse_point(
            distribution_q,
            distribution_k,
            d,
            n,
            dependence,
            initialisation,
            normalisation,
            formats=any(name in FORMAT_QUANTITIES for name in names),
            also=tuple(chain(*(beyond_table(x, summaries[x]) for x in names))),
        )
        known = set(row_keys(point, singles, ratios))
        keys = [RowKey(c, name, summaries[name]) for name in names for c in named]
        asked[point] = [key for key in keys if key in known]
    found = {key.quantity for keys in asked.values() for key in keys}
    if missing := [name for name in summaries if name not in found]:
        raise InputError(
            f"{missing[0]} must have a row of the summary "
            f"{show(summaries[missing[0]])} at one of these points, with one of the "
            f"divisors {', '.join(named)[:MOST_QUOTED]}; quantities of rows need n_keys"
        )
    effort = Effort(seed, relative_error, absolute_error, first, most)
    rows = PreciseRows(asked, effort)
    with (
        at_work(executor, jobs) as workers,
        progress_bar(len(rows.divisors), quiet=not progress) as advance,
    ):
        rows.sample(workers, advance)
    table = DataFrame(map(asdict, rows.rows())).assign(
        distribution_q=distribution_q, distribution_k=distribution_k
    )
    table["divisor"] = table["divisor"].map(spelled)
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


def _spellings(given: object) -> dict[str, object]:
    """Return the names of divisors, each with how it was typed first."""
    spelled: dict[str, object] = {}
    for one in _several("divisor", given):
        spelled.setdefault(name_given_divisor(one), one)
    return spelled


def _sizes(name: str, given: object, least: int) -> list[int]:
    """Return whole numbers of any kind as Python's."""
    return [require_whole(name, one, least, MOST_SIZE) for one in _several(name, given)]

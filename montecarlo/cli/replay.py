"""Sampling again what failed in a report, alone: the same draws, in this process."""

import argparse
import re
import time
from collections.abc import Callable

from threadpoolctl import threadpool_limits

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.errors import InputError
from montecarlo.estimation.engine import OVERFLOW
from montecarlo.names import MOST_DIGITS, look_up, parse_seed, parse_whole
from montecarlo.sampling.cost import (
    replicate_seconds,
    require_affordable,
    require_affordable_tail,
    require_soon,
    tail_seconds,
)
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.rare_events import estimate_tail
from montecarlo.sampling.replicates import sample
from montecarlo.study.presets import MOST_REPLICATES
from montecarlo.study.tails import tail_task
from montecarlo.study.tasks import Task


def replay(arguments: argparse.Namespace) -> str:
    """Sample the replicates that ``--replicates`` names; returns a line that says so.

    Parameters
    ----------
    arguments : argparse.Namespace
        Of ``python -m montecarlo measure``, as typed; with all divisors, and a number
        format other than float64 stands for all of them.

    What sampling raises comes out as it is: its traceback is what a replay is for.
    """
    seed = parse_seed(arguments.seed)
    indices = _indices(arguments.replicates)
    look_up("number-format", arguments.number_format, NUMBER_FORMATS)
    for name, allowed in (("quantity", {None, OVERFLOW}), ("row", {None})):
        if (typed := getattr(arguments, name)) not in allowed:
            raise InputError(f"{name} must be left out with replicates, got {typed!r}")
    if arguments.quantity == OVERFLOW:
        task, which = _tail(arguments, seed, indices), OVERFLOW
        function: Callable[..., object] = estimate_tail
    else:
        point = _point(arguments)
        require_affordable(point, len(DIVISORS))
        seconds = replicate_seconds(point, len(DIVISORS))
        require_soon("replicates", len(indices), seconds)
        task = (point, seed, indices.start, indices.stop, tuple(DIVISORS))
        function, which = sample, point.name
    started = time.perf_counter()
    with threadpool_limits(limits=1, user_api="blas"):
        function(*task)
    seconds = time.perf_counter() - started
    return f"sampled without failure in {seconds:.1f} s: {which}"


def _indices(typed: str) -> range:
    numbers = re.fullmatch("[0-9]+:[0-9]+", typed) and len(typed) <= MOST_DIGITS
    first, _, stop = typed.partition(":")
    if not (numbers and int(first) < int(stop)):
        raise InputError(
            f"replicates must be two whole numbers A:B with A below B, got {typed!r}"
        )
    if int(stop) > MOST_REPLICATES:
        raise InputError(
            f"replicates must end at {MOST_REPLICATES} at most, got {typed!r}: no "
            "report samples more"
        )
    return range(int(first), int(stop))


def _tail(arguments: argparse.Namespace, seed: int, indices: range) -> Task:
    if indices.start > 0:
        raise InputError(
            f"replicates of {OVERFLOW} must begin with 0, got {arguments.replicates!r}"
        )
    d_k = parse_whole("d-k", arguments.d_k)
    parse_point("gaussian", "gaussian", d_k)  # refuses what is no length
    require_affordable_tail(d_k)
    require_soon("replicates", len(indices), tail_seconds(d_k))
    return tail_task(d_k, arguments.number_format, seed, indices.stop)


def _point(arguments: argparse.Namespace) -> DesignPoint:
    if arguments.keys is None and arguments.number_format != "float64":
        raise InputError(
            "number-format must be left out without keys: pairs have no rows, got "
            f"{arguments.number_format!r}"
        )
    return parse_point(
        arguments.distribution_q or arguments.distribution,
        arguments.distribution_k or arguments.distribution,
        parse_whole("d-k", arguments.d_k),
        None if arguments.keys is None else parse_whole("keys", arguments.keys),
        arguments.dependence,
        arguments.initialisation,
        formats=arguments.number_format != "float64",
    )

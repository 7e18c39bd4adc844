"""Rows are asked for: the one mechanism that says what a study samples.

A row is named by a design point and a `RowKey`: divisor, quantity, summary, number
format and softmax.  Whoever reads rows names them: checks (`claims.simulation`), the
self-check on references (`claims.z_scores`), tables and figures of pages
(`report.content.reading`), a user's claims, `measure` and `grid`; the explorer's
numbers are a table of their own.  `unite` joins what is named: the points, and the rows
of each; a point without a row is not sampled.  `estimation.summaries.columns_of` turns
the rows of a point into the columns that its replicates are reduced to, and nothing
else is computed; draws depend on the point alone, so a row has the same bytes in any
company.  A grid with ``every_row``, that of the full preset, names all of its rows.
Who reads a row that was not sampled is told which: see `study.table.find_rows`.
"""

from collections.abc import Iterable, Mapping

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import ALL_FORMATS, SOFTMAXES
from montecarlo.attention.quantities import QUANTILE_RATIO, QUANTITIES, SHARE_ABOVE
from montecarlo.errors import InputError
from montecarlo.estimation.summaries import (
    ANY_QUANTILE,
    RowKey,
    every_key,
    has_row,
    reason_missing,
)
from montecarlo.names import look_up
from montecarlo.sampling.design_points import DesignPoint

Row = tuple[DesignPoint, RowKey]
#: The rows of each point that is sampled.
RequestedRows = Mapping[DesignPoint, tuple[RowKey, ...]]
#: What each part of a key may be, for a message.
_KNOWN: Mapping[str, Iterable[str]] = {
    "divisor": DIVISORS,
    "summary": (
        *("mean", "median", "q10", "q90", "value"),
        *(QUANTILE_RATIO, SHARE_ABOVE),
    ),
    "number_format": ALL_FORMATS,
    "softmax": SOFTMAXES,
}


def unite(rows: Iterable[Row]) -> dict[DesignPoint, tuple[RowKey, ...]]:
    """Return the rows of each point, once, in the order in which they are named."""
    keys_of: dict[DesignPoint, dict[RowKey, None]] = {}
    for point, key in rows:
        keys_of.setdefault(point, {})[key] = None
    return {point: tuple(keys) for point, keys in keys_of.items()}


def in_order(
    requested: RequestedRows, points: Iterable[DesignPoint], divisors: tuple[str, ...]
) -> dict[DesignPoint, tuple[RowKey, ...]]:
    """Return rows in the order of some points and of `every_key`."""
    ordered = {}
    for point in points:
        if point in requested:
            place = {key: n for n, key in enumerate(every_key(point, divisors))}
            ordered[point] = tuple(
                sorted(
                    requested[point], key=lambda key: (place.get(key, len(place)), key)
                )
            )
    return ordered


def require_row(point: DesignPoint, key: RowKey) -> None:
    """Require that a point has a row.

    Raises
    ------
    InputError
        If not: why, and what it has in its place.
    """
    if has_row(point, key):
        return
    quantity = QUANTITIES[key.quantity]
    if why := reason_missing(point, key):
        raise InputError(f"{quantity.name} {why}")
    for part, known in _KNOWN.items():
        others = {name: key._replace(**{part: name}) for name in known}
        there = [name for name, other in others.items() if has_row(point, other)]
        if there and part == "summary" and quantity.grid and "/" not in key.divisor:
            there.append(ANY_QUANTILE)
        if there:
            look_up(
                f"{part} of {key.quantity}", getattr(key, part), dict.fromkeys(there)
            )
    raise InputError(
        f"{quantity.name} must have such a row at {point.name}, got {' '.join(key)}"
    )

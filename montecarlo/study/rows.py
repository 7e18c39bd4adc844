"""Requested rows: the only way to say what a study samples.

A row is named by a design point and a `RowKey`: divisor, quantity, summary, number
format and softmax.  It is requested by whatever reads it: checks (`claims.simulation`),
the comparison with references (`claims.z_scores`), tables and figures of pages
(`report.content.reading`), a user's claims, `measure` and `grid`.  With ``every_row``
a grid requests all rows of its points.

`group_by_point` collects the requests: the points to sample, and the rows of each.
`estimation.summaries.columns_of` derives the columns to which replicates are reduced,
and nothing else is computed.  Random numbers depend on the point alone, so the value
of a row does not depend on the other requests.  `study.table.find_rows` raises an error
for a row that is read but was not requested.
"""

from collections.abc import Iterable, Mapping

from montecarlo.attention.divisors import DIVISORS, parse_divisor
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

#: A row of measurements.csv: (design point, key of the estimate).
Row = tuple[DesignPoint, RowKey]
#: For each point that is sampled, the keys of its requested rows.
RequestedRows = Mapping[DesignPoint, tuple[RowKey, ...]]
#: Possible values of the fields of a `RowKey`, for messages.
_KNOWN: Mapping[str, Iterable[str]] = {
    "divisor": DIVISORS,
    "summary": ("mean", "median", "q10", "q90", "value", QUANTILE_RATIO, SHARE_ABOVE),
    "number_format": ALL_FORMATS,
    "softmax": SOFTMAXES,
}


def group_by_point(rows: Iterable[Row]) -> dict[DesignPoint, tuple[RowKey, ...]]:
    """Return the keys of the rows of each design point, each key once: point -> keys.

    The order is that of ``rows``.
    """
    keys_of: dict[DesignPoint, dict[RowKey, None]] = {}
    for point, key in rows:
        keys_of.setdefault(point, {})[key] = None
    return {point: tuple(keys) for point, keys in keys_of.items()}


def sort_rows(
    requested: RequestedRows, points: Iterable[DesignPoint], divisors: tuple[str, ...]
) -> dict[DesignPoint, tuple[RowKey, ...]]:
    """Return the requested keys of each point, in the order of tables.

    Points are in the order of ``points``, and keys in that of `every_key` with these
    ``divisors``.  Keys that `every_key` does not yield come last.  Points without
    requested keys are left out, and so are requested points that are not in ``points``.
    """
    ordered: dict[DesignPoint, tuple[RowKey, ...]] = {}
    for point in points:
        if keys := set(requested.get(point, ())):
            every = [*every_key(point, divisors)]
            known = [key for key in every if key in keys]
            ordered[point] = (*known, *sorted(keys.difference(every)))
    return ordered


def require_row(point: DesignPoint, key: RowKey) -> None:
    """Raise `InputError` unless a design point can have a row of measurements.csv.

    It cannot if the quantity is not defined there, for example.

    Raises
    ------
    InputError
        The message says why there is no such row, or which values a field of the key
        may have.
    """
    if has_row(point, key):
        return
    quantity = QUANTITIES[key.quantity]
    if reason := reason_missing(point, key):
        raise InputError(f"{quantity.name} {reason}")
    divisors = map(parse_divisor, key.divisor.split("/"))
    if not point.has_rows and any(one.needs_keys for one in divisors):
        raise InputError(f"divisor must have no n for pairs, got {key.divisor}")
    if "/" in key.divisor:
        ratios = {name: one for name, one in QUANTITIES.items() if one.compared}
        why = f"with the ratio {key.divisor} as divisor"
        look_up(f"quantity {why}", quantity.name, ratios)
        look_up(f"summary {why}", key.summary, dict.fromkeys(quantity.compared))
    for part, known in _KNOWN.items():
        possible = [one for one in known if has_row(point, key._replace(**{part: one}))]
        if possible and part == "summary":
            possible += [f"{ANY_QUANTILE} from 1 on"] * bool(quantity.grid)
            by_mask = point.has_rows and not (point.is_masked or quantity.given)
            possible += ["first or last under a mask"] * by_mask
        if possible:
            of_formats = part in {"number_format", "softmax"}
            hint = " (only quantities format_... have others)" * of_formats
            kind = f"{part} of {key.quantity}{hint}"
            look_up(kind, getattr(key, part), dict.fromkeys(possible))
    raise InputError(
        f"{quantity.name} must have such a row at {point.name}, got {' '.join(key)}"
    )

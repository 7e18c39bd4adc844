"""The columns of the tables: one type a line, which lines that are read must have."""

import csv
import hashlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from montecarlo.estimation.summaries import RowKey
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.small_files import read_small
from montecarlo.study.folder import ResultsError
from montecarlo.study.validating import about, validate

MEASUREMENTS = "measurements.csv"
#: Bytes of a table at most; that of the full preset has 8 million.
MOST_TABLE = 2**26
#: The largest number that there is: JSON and tables have no infinity but in intervals.
LARGEST = 1.7976931348623157e308
#: How others write a number that is missing.
NOT_NUMBERS = {"nan", "-nan", "+nan"}
Finite = Annotated[float, about("", ge=-LARGEST, le=LARGEST)]
Size = Annotated[int, about("", ge=1, le=2**24)]
Count = Annotated[int, about("", ge=1, le=2**40)]
Error = Annotated[float, about("", ge=0)]


class MeasurementLine(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of measurements.csv: one estimate."""

    distribution_q: Annotated[str, about("distribution of the entries of Q")]
    distribution_k: Annotated[str, about("distribution of the entries of K")]
    normalisation: Annotated[
        str, about("what is done to each query and key; `none`: nothing")
    ]
    dependence: Annotated[str, about("how K is drawn given Q; `none`: independently")]
    initialisation: Annotated[str, about("what stands before q and k; `none`: nothing")]
    d_k: Annotated[int, about("length of a query or key", ge=1, le=2**24)]
    n_queries: Annotated[int, about("queries of one replicate", ge=1, le=2**24)]
    n_keys: Annotated[
        Annotated[int, about("", ge=2, le=2**24)] | None,
        about("keys of a row; empty for pairs"),
    ]
    divisor: Annotated[str, about("what scores are divided by, or two to be compared")]
    number_format: Annotated[str, about("what scores and weights are kept in")]
    softmax: Annotated[str, about("`shifted` by the largest score, or `naive`")]
    quantity: Annotated[str, about("what is measured (`--list quantities`)")]
    summary: Annotated[str, about("`value` of pairs; mean or quantile over rows")]
    estimate: Annotated[
        float | None,
        about(
            "the estimate; empty: undefined or, with an interval, a quantile beyond "
            "what is counted, of which the interval is the bound",
            "the quantity's",
        ),
    ]
    std_error: Annotated[
        Error | None,
        about("its standard error; empty where there is none", "the quantity's"),
    ]
    ci_low: Annotated[
        float | None,
        about(
            "lower end of the 95 % interval, within the quantity's range",
            "the quantity's",
        ),
    ]
    ci_high: Annotated[float | None, about("upper end, likewise", "the quantity's")]
    n_replicates: Annotated[int, about("replicates it is made of", ge=1, le=2**40)]
    reference: Annotated[
        Finite | None, about("exact value; empty where none is known", "the quantity's")
    ]
    reference_error: Annotated[
        Finite | None, about("numerical error of the exact value", "the quantity's")
    ]
    row_id: Annotated[
        str,
        about(
            "name of the line: `r`, and the start of the SHA-256 of what identifies it",
            pattern=r"^r[0-9a-f]{11}\Z",
        ),
    ]


#: What identifies a row.
IDENTITY = (
    "distribution_q",
    "distribution_k",
    "normalisation",
    "dependence",
    "initialisation",
    "d_k",
    "n_queries",
    "n_keys",
    "divisor",
    "number_format",
    "softmax",
    "quantity",
    "summary",
)


def identity(point: DesignPoint, key: RowKey) -> tuple[str | int | None, ...]:
    """Return the values of the columns that identify a row, in order."""
    return (
        *point.names,
        point.d_k,
        point.shape[0],
        point.n_keys,
        key.divisor,
        key.number_format,
        key.softmax,
        key.quantity,
        key.summary,
    )


def row_id(point: DesignPoint, key: RowKey) -> str:
    """Return the name of a row: a hash of what identifies it.

    Without a normalisation it is what it was before there were any.
    """
    named = dict(zip(IDENTITY, identity(point, key), strict=True))
    if not point.is_normalised:
        del named["normalisation"]
    text = ";".join(map(str, named.values()))
    return "r" + hashlib.sha256(text.encode()).hexdigest()[:11]


def validate_table(
    folder: Path, name: str, kind: type[Struct]
) -> list[dict[str, str | None]]:
    """Make sure that each line of a table of a folder has its type.

    Returns
    -------
    list of dict
        The lines as text; None where a field is empty.

    Raises
    ------
    ResultsError
        One line: the table, the line of the file, requirement, what came.
    """
    lines = []
    try:
        text = read_small(name, folder / name, MOST_TABLE).decode()
        for number, line in _lines(text, kind.__struct_fields__, name):
            validate(line, kind, f"{name}, line {number},", typed=False)
            filled = filter(None, line.values())
            if not NOT_NUMBERS.isdisjoint(map(str.lower, filled)):
                raise ResultsError(
                    f"{name}, line {number}, must leave empty what is no number"
                )
            if kind is MeasurementLine:
                _require_interval(line, f"{name}, line {number},")
            lines.append(line)
    except (csv.Error, UnicodeDecodeError) as error:
        raise ResultsError(f"{name} must be a table, got none: {error}") from None
    return lines


def _require_interval(line: dict[str, str | None], name: str) -> None:
    """Make sure that estimate, error and interval go together."""
    low, high = line["ci_low"], line["ci_high"]
    if (low is None) != (high is None) or float(low or 0.0) > float(high or 0.0):
        raise ResultsError(
            f"{name} must have two ends of an interval in order, or none, got {low!r} "
            f"and {high!r}"
        )
    if line["estimate"] is None and line["std_error"] is not None:
        raise ResultsError(
            f"{name} must have no std_error without an estimate, got "
            f"{line['std_error']!r}"
        )


def _lines(
    text: str, columns: tuple[str, ...], name: str
) -> Iterator[tuple[int, dict[str, str | None]]]:
    rows = csv.reader(text.splitlines(), strict=True)
    for wanted, came in zip_longest(columns, next(rows, [])):
        if came != wanted:
            raise ResultsError(
                f"{name} must have the columns {', '.join(columns)}, got "
                f"{(came or 'none')[:40]!r} for {wanted!r}"
            )
    for number, row in enumerate(rows, start=2):
        if len(row) != len(columns):
            raise ResultsError(
                f"{name}, line {number}, must have {len(columns)} fields, got "
                f"{len(row)}"
            )
        yield number, {c: v or None for c, v in zip(columns, row, strict=True)}

"""Data that were read, held against their types; one line says where they differ."""

import re
import reprlib
from typing import Any, TypeVar

import msgspec
from msgspec import Meta

from montecarlo.study.folder import ResultsError

#: Where the types are explained.
EXPLAINED = "docs/results-folder.md"
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def about(text: str, unit: str = "", **limits: Any) -> Meta:  # noqa: ANN401 - of Meta
    """Return what a field of a file is, for its type and for the page that lists them.

    Parameters
    ----------
    text : str
        One phrase.
    unit : str
        Of a number; empty: none.
    limits
        As `msgspec.Meta` takes them.
    """
    return Meta(description=text, extra={"unit": unit}, **limits)


T = TypeVar("T")


def validate(data: object, kind: type[T], name: str, *, typed: bool = True) -> T:
    """Return data as their type.

    Parameters
    ----------
    data : object
        Plain data: lists, mappings, texts and numbers.
    kind : type
    name : str
        What messages call the data: a file, or a line of one.
    typed : bool
        Whether numbers are numbers; otherwise they are texts of them.

    Raises
    ------
    ResultsError
        One line: name, place, requirement, what came.
    """
    try:
        return msgspec.convert(data, kind, strict=typed)
    except (msgspec.ValidationError, OverflowError) as error:
        what, _, place = str(error).partition(" - at `$")
        place = place.removesuffix("`")
        came = reprlib.repr(_at(data, place))
        raise ResultsError(
            f"{name} must be as {EXPLAINED} says: {what:.200} at "
            f"{place.lstrip('.') or 'its top'}, got {came:.200}"
        ) from None


def require_whole(data: Any, record: object, name: str) -> None:  # noqa: ANN401 - plain data of any shape
    """Make sure that no field was left out of what a record was read from.

    A field that has a default in the type is written as all others are: where it is not
    there, something was taken out.  Of the record's own fields, some may be.  The data
    are plain, and `validate` made the record of them.

    Raises
    ------
    ResultsError
        One line: name, and the field that is missing.
    """
    whole = msgspec.json.decode(msgspec.json.encode(record))
    missing = _missing({field: whole[field] for field in data}, data, "")
    if missing:
        raise ResultsError(f"{name} must be as {EXPLAINED} says, got no {missing}")


def _missing(whole: Any, came: Any, place: str) -> str:  # noqa: ANN401 - likewise
    """Return the place of the first field that is not there; empty where all are."""
    if isinstance(whole, dict):
        parts = [(f".{field}", value, field) for field, value in whole.items()]
    elif isinstance(whole, list):
        parts = [(f"[{number}]", value, number) for number, value in enumerate(whole)]
    else:
        return ""
    for step, value, key in parts:
        here = f"{place}{step}"
        if isinstance(whole, dict) and key not in came:
            return here.lstrip(".")
        if found := _missing(value, came[key], here):
            return found
    return ""


def _at(data: Any, place: str) -> object:  # noqa: ANN401 - plain data of any shape
    """Return what stands at a place, or as near to it as can be told."""
    for name, number in _STEP.findall(place):
        try:
            data = data[name] if name else data[int(number)]
        except (LookupError, TypeError):
            break
    return data

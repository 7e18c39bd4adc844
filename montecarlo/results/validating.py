"""Data that were read, held against their types; one line says where they differ."""

import re
import reprlib
from typing import Any, TypeVar

import msgspec
from msgspec import Meta

from montecarlo.results.folder import ResultsError

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


def _at(data: Any, place: str) -> object:  # noqa: ANN401 - plain data of any shape
    """Return what stands at a place, or as near to it as can be told."""
    for name, number in _STEP.findall(place):
        try:
            data = data[name] if name else data[int(number)]
        except (LookupError, TypeError):
            break
    return data

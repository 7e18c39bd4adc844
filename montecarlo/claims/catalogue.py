"""The catalogue: texts, claims, readings and checks, read from TOML and validated.

A catalogue is data.  It holds what a claim says and how it is checked, and never how
the check came out.
"""

import math
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.quantities import (
    PAIR_QUANTITIES,
    QUANTITIES,
    ROW_QUANTITIES,
)
from montecarlo.estimation.summaries import SPREAD
from montecarlo.names import look_up
from montecarlo.sampling.laws import parse_law

Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")]
Text = Annotated[str, Meta(min_length=1, max_length=2000)]
Finite = Annotated[float, Meta(ge=-1e30, le=1e30)]
Power = Annotated[float, Meta(ge=-4, le=4)]
Size = Annotated[int, Meta(ge=1, le=2**24)]


class CatalogueError(ValueError):
    """A catalogue that cannot be used; one line with file, claim and field."""


class Level(Struct, frozen=True, forbid_unknown_fields=True):
    """A number that may depend on the cell: times · d_k**d_k_power · n**n_power."""

    times: Finite = 1.0
    d_k_power: Power = 0.0
    n_keys_power: Power = 0.0

    def at(self, d_k: int | None, n_keys: int | None) -> float:
        """Return the number for a cell; sizes that a cell lacks must not be needed."""
        value = self.times
        for size, power in ((d_k, self.d_k_power), (n_keys, self.n_keys_power)):
            if power != 0.0:
                if size is None:
                    raise ValueError("level depends on a size that the cell lacks")
                value *= size**power
        return value


class Domain(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a text speaks: ranges of d_k and of n, both ends included, and laws."""

    d_k: tuple[Size, Size] = (16, 1024)
    n_keys: tuple[Size, Size] = (32, 512)
    laws: tuple[str, ...] = ()  # none named: all


class Threshold(Struct, frozen=True, forbid_unknown_fields=True):
    """A bound that stands for a vague word, and the range to vary it over."""

    bound: Literal["low", "high"]
    start: Finite
    stop: Finite


Relation = Literal[
    "equals",
    "at_least",
    "at_most",
    "between",
    "slope_between",
    "ratio_of_ends_between",
]


class Check(Struct, frozen=True, forbid_unknown_fields=True):
    """One comparison of measured rows with what the claim says."""

    quantity: str
    relation: Relation
    summary: str = "mean"
    divisor: str = "none"
    expected: Finite | Level | Literal["reference"] | None = None
    tolerance: Annotated[float, Meta(gt=0, lt=1)] | None = None
    low: Finite | Level | None = None
    high: Finite | Level | None = None
    domain: Domain = Domain()
    threshold: Threshold | None = None

    @property
    def along_d_k(self) -> bool:
        """Whether the check speaks of a whole series over d_k, not of one cell."""
        return self.relation in ("slope_between", "ratio_of_ends_between")


class Reading(Struct, frozen=True, forbid_unknown_fields=True):
    """One precise meaning of a claim."""

    id: Name
    check: Annotated[tuple[Check, ...], Meta(min_length=1)]
    label: Text | None = None  # none: the quantity and summary of its first check
    scope: Literal["everywhere", "somewhere", "compare"] = "everywhere"


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a text says it."""

    text: Name
    section: Annotated[str, Meta(min_length=1, max_length=20)]


class Sentences(Struct, frozen=True, forbid_unknown_fields=True):
    """What a page says of the claim, for each verdict that it may get."""

    supported: Text
    refuted: Text
    conditional: Text
    inconclusive: Text


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence of a text, in our words, with its readings."""

    id: Name
    topic: Literal["variance", "weights", "gradients"]
    statement: Text
    source: Annotated[tuple[Source, ...], Meta(min_length=1)]
    sentences: Sentences
    reading: Annotated[tuple[Reading, ...], Meta(min_length=1)]
    kind: Literal["measured"] = "measured"


class SelfCheck(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that must hold if the simulator is right, whatever the texts say."""

    id: Name
    statement: Text
    check: Annotated[tuple[Check, ...], Meta(min_length=1)]


class TextEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """One of the judged texts."""

    key: Name
    name: Text
    language: Annotated[str, Meta(min_length=2, max_length=10)]


class Catalogue(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that is judged."""

    text: tuple[TextEntry, ...] = ()
    claim: tuple[Claim, ...] = ()
    self_check: tuple[SelfCheck, ...] = ()

    def checks(self) -> Iterator[Check]:
        """Yield every check of every claim and self-check."""
        for claim in self.claim:
            for reading in claim.reading:
                yield from reading.check
        for self_check in self.self_check:
            yield from self_check.check

    def only(self, ids: tuple[str, ...]) -> "Catalogue":
        """Return the catalogue with these claims alone.

        Raises
        ------
        ValueError
            If a claim is not known.
        """
        by_id = {claim.id: claim for claim in self.claim}
        kept = tuple(look_up("claim", name, by_id) for name in dict.fromkeys(ids))
        return Catalogue(self.text, kept, self.self_check)


def read_catalogue(path: Path | None = None) -> Catalogue:
    """Read and validate a catalogue.

    Parameters
    ----------
    path : Path, optional
        A TOML file; by default the catalogue of the five texts.

    Returns
    -------
    Catalogue

    Raises
    ------
    CatalogueError
        If the file cannot be read or is not a catalogue; names file, claim and field.
    """
    source = path or files("montecarlo.claims").joinpath("catalogue.toml")
    name = path.name if path else "catalogue.toml"
    try:
        data = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CatalogueError(f"{name}: cannot be read as TOML: {error}") from error
    return parse_catalogue(data, name)


def parse_catalogue(data: dict[str, Any], name: str) -> Catalogue:
    """Validate a catalogue that was read from TOML.

    Parameters
    ----------
    data : dict
        What the file holds.
    name : str
        Its name, for messages.

    Raises
    ------
    CatalogueError
        With one line: file, claim, field, requirement and what came.
    """
    unknown = set(data) - {"text", "claim", "self_check"}
    if unknown:
        raise CatalogueError(
            f"{name}: tables must be text, claim and self_check, got {min(unknown)!r}"
        )
    texts = tuple(_entries(data, "text", "key", TextEntry, name))
    claims = tuple(_entries(data, "claim", "id", Claim, name))
    self_checks = tuple(_entries(data, "self_check", "id", SelfCheck, name))
    keys = {text.key: text for text in texts}
    for claim in claims:
        where = f"{name}: claim {claim.id!r}"
        for source in claim.source:
            _require(where, "source.text", look_up, "text", source.text, keys)
        _unique([reading.id for reading in claim.reading], f"{where}: reading.id")
        for reading in claim.reading:
            for check in reading.check:
                _validate_check(check, f"{where}, reading {reading.id!r}")
    for self_check in self_checks:
        for check in self_check.check:
            _validate_check(check, f"{name}: self_check {self_check.id!r}")
    return Catalogue(texts, claims, self_checks)


def _entries(
    data: dict[str, Any], table: str, key: str, kind: type[Any], name: str
) -> Iterator[Any]:
    """Convert the entries of one table, naming the entry and field that is wrong."""
    entries = data.get(table, [])
    if not isinstance(entries, list):
        raise CatalogueError(f"{name}: {table} must be a list of tables ([[{table}]])")
    for number, entry in enumerate(entries, start=1):
        named = entry.get(key) if isinstance(entry, dict) else None
        label = repr(named) if isinstance(named, str) else f"number {number}"
        try:
            yield msgspec.convert(entry, kind, strict=True)
        except msgspec.ValidationError as error:
            message = str(error).replace(" - at `$.", ", at `").replace("`$`", "it")
            raise CatalogueError(f"{name}: {table} {label}: {message}") from None
    _unique([entry[key] for entry in entries], f"{name}: {table}.{key}")


def _unique(values: list[str], where: str) -> None:
    for value in values:
        if values.count(value) > 1:
            raise CatalogueError(f"{where} must be unique, got {value!r} twice")


def _require(where: str, field: str, function: Any, *arguments: Any) -> Any:
    """Call a function that raises ValueError, and name the place in its message."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise CatalogueError(f"{where}, field {field}: {error}") from None


#: Fields that a relation needs, beside those that every check has.
_FIELDS = {
    "equals": {"expected", "tolerance"},
    "at_least": {"low"},
    "at_most": {"high"},
    "between": {"low", "high"},
    "slope_between": {"low", "high"},
    "ratio_of_ends_between": {"low", "high"},
}
#: These may be open on one side.
_HALF_OPEN = {"slope_between", "ratio_of_ends_between"}


def _validate_check(check: Check, where: str) -> None:
    _require(where, "quantity", look_up, "quantity", check.quantity, QUANTITIES)
    for divisor in check.divisor.split("/"):
        _require(where, "divisor", look_up, "divisor", divisor, DIVISORS)
    allowed = {name: name for name in _summaries(check)}
    _require(where, "summary", look_up, "summary", check.summary, allowed)
    for law in check.domain.laws:
        _require(where, "domain.laws", parse_law, law)
    for field in ("d_k", "n_keys"):
        low, high = getattr(check.domain, field)
        if low > high:
            raise CatalogueError(
                f"{where}, field domain.{field}: must rise, got [{low}, {high}]"
            )
    given = {
        field
        for field in ("expected", "tolerance", "low", "high")
        if getattr(check, field) is not None
    }
    needs = _FIELDS[check.relation]
    open_sided = check.relation in _HALF_OPEN and given and given < needs
    if given != needs and not open_sided:
        needed = " and ".join(sorted(needs))
        got = ", ".join(sorted(given)) or "none"
        raise CatalogueError(
            f"{where}, field relation: {check.relation} needs {needed}, got {got}"
        )
    if check.threshold is not None and check.threshold.bound not in given:
        raise CatalogueError(
            f"{where}, field threshold.bound: must be one of the bounds given, "
            f"got {check.threshold.bound!r}"
        )


def _summaries(check: Check) -> tuple[str, ...]:
    """Name the summaries that a check's quantity has under its divisor."""
    if check.quantity in PAIR_QUANTITIES:
        return ("value",)
    quantity = ROW_QUANTITIES[check.quantity]
    if "/" in check.divisor:
        return ("mean", SPREAD) if quantity.compared else ()
    return (*quantity.summaries, SPREAD) if quantity.grid else quantity.summaries


def level_at(
    level: float | Level | None, default: float, d_k: int | None, n_keys: int | None
) -> float:
    """Return a bound for a cell; ``default`` where there is none."""
    if level is None:
        return default
    if isinstance(level, Level):
        return level.at(d_k, n_keys)
    return float(level)


#: What a missing bound means.
UNBOUNDED = (-math.inf, math.inf)

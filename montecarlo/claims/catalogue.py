"""Reading a catalogue from TOML and validating it, with errors that name the place."""

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from montecarlo.attention.divisors import DIVISORS, pairs_of
from montecarlo.attention.number_formats import (
    FORMAT_QUANTITIES,
    NUMBER_FORMATS,
    SOFTMAXES,
)
from montecarlo.attention.pairs import PAIR_QUANTITIES
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.attention.rows import ROW_QUANTITIES
from montecarlo.claims.cells import canonical_laws
from montecarlo.claims.schema import (
    Catalogue,
    Check,
    Claim,
    Level,
    ModelSize,
    SelfCheck,
    TextEntry,
)
from montecarlo.claims.shapes import SHAPE_CHECKS
from montecarlo.estimation.summaries import SPREAD
from montecarlo.names import look_up
from montecarlo.sampling.dependence import parse_dependence
from montecarlo.sampling.setups import parse_setup


class CatalogueError(ValueError):
    """A catalogue that cannot be used; one line with file, claim and field."""


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
    except (OSError, ValueError, RecursionError) as error:
        raise CatalogueError(f"{name}: cannot be read as TOML: {error}") from error
    return parse_catalogue(data, name, own=path is not None)


def parse_catalogue(data: dict[str, Any], name: str, *, own: bool = False) -> Catalogue:
    """Validate a catalogue that was read from TOML.

    Parameters
    ----------
    data : dict
        What the file holds.
    name : str
        Its name, for messages.
    own : bool
        Whether it is a user's own: sentences for the verdicts may then be left out.

    Raises
    ------
    CatalogueError
        With one line: file, claim, field, requirement and what came.
    """
    unknown = set(data) - {"text", "claim", "self_check", "model"}
    if unknown:
        raise CatalogueError(
            f"{name}: tables must be text, claim, self_check and model, "
            f"got {min(unknown)!r}"
        )
    texts = tuple(_entries(data, "text", "key", TextEntry, name))
    claims = tuple(_entries(data, "claim", "id", Claim, name))
    self_checks = tuple(_entries(data, "self_check", "id", SelfCheck, name))
    models = tuple(_entries(data, "model", "name", ModelSize, name))
    keys = {text.key: text for text in texts}
    for claim in claims:
        where = f"{name}: claim {claim.id!r}"
        _validate_kind(claim, where, own=own)
        for source in claim.source:
            with _placed(where, "source.text"):
                look_up("text", source.text, keys)
        _validate_readings(claim, where)
        for check in claim.right.check if claim.right else ():
            _validate_check(check, f"{where}, right")
    for self_check in self_checks:
        for check in self_check.check:
            _validate_check(check, f"{name}: self_check {self_check.id!r}")
    return Catalogue(texts, claims, self_checks, models)


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


def _require_canonical(canonical: str, given: str) -> None:
    if given != canonical:
        raise ValueError(f"must be {canonical!r}, got {given!r}")


def _unique(values: list[str], where: str) -> None:
    for value in values:
        if values.count(value) > 1:
            raise CatalogueError(f"{where} must be unique, got {value!r} twice")


@contextmanager
def _placed(where: str, field: str) -> Iterator[None]:
    """Name the place in the message of a `ValueError`."""
    try:
        yield
    except ValueError as error:
        raise CatalogueError(f"{where}, field {field}: {error}") from None


def _validate_kind(claim: Claim, where: str, *, own: bool) -> None:
    """Require what a claim of its kind must have, and nothing else."""
    measured, shape = claim.kind == "measured", claim.kind == "shape"
    if shape:
        with _placed(where, "id"):
            look_up("claim of kind shape", claim.id, SHAPE_CHECKS)
    for field, given, needed in (
        ("reading", bool(claim.reading), measured),
        ("sentences", claim.sentences is not None, measured or shape),
        ("note", claim.note is not None, not measured and not shape),
    ):
        if given != needed and not (own and field == "sentences"):
            verb = "be there" if needed else "be left out"
            raise CatalogueError(
                f"{where}, field {field}: must {verb} for the kind {claim.kind!r}"
            )


def _validate_readings(claim: Claim, where: str) -> None:
    """Require readings with ids and checks, and sentences that speak of these alone."""
    readings = {reading.id: reading for reading in claim.reading}
    _unique([reading.id for reading in claim.reading], f"{where}: reading.id")
    for when in claim.sentences.when if claim.sentences else ():
        for named in when.readings:
            with _placed(where, "sentences.when.readings"):
                look_up("reading", named, readings)
    for reading in claim.reading:
        for check in reading.check:
            _validate_check(check, f"{where}, reading {reading.id!r}")


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
    with _placed(where, "quantity"):
        look_up("quantity", check.quantity, QUANTITIES)
    with _placed(where, "divisor"):
        look_up("divisor", check.divisor, {name: name for name in _divisors(check)})
    allowed = {name: name for name in _summaries(check)}
    with _placed(where, "summary"):
        look_up("summary", check.summary, allowed)
    for law in check.domain.laws:
        with _placed(where, "domain.laws"):
            canonical = canonical_laws(law)
        if law != canonical:
            raise CatalogueError(
                f"{where}, field domain.laws: must be {canonical!r}, got {law!r}"
            )
    for name in check.domain.dependence:
        with _placed(where, "domain.dependence"):
            _require_canonical(parse_dependence(name).name, name)
    for name in check.domain.setup:
        with _placed(where, "domain.setup"):
            setup = parse_setup(name)
            _require_canonical(setup.name if setup else "", name)
    with _placed(where, "number_format"):
        look_up("number_format", check.number_format, NUMBER_FORMATS)
    with _placed(where, "softmax"):
        look_up("softmax", check.softmax, dict.fromkeys(SOFTMAXES))
    for field in ("d_k", "n_keys"):
        low, high = getattr(check.domain, field)
        if low > high:
            raise CatalogueError(
                f"{where}, field domain.{field}: must rise, got [{low}, {high}]"
            )
    _validate_levels(check, where)
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


def _validate_levels(check: Check, where: str) -> None:
    """Bounds rise, and depend on sizes that a cell has."""
    pairs = check.quantity in PAIR_QUANTITIES
    for field in ("expected", "low", "high"):
        level = getattr(check, field)
        for power, lacking in (("d_k_power", check.along_d_k), ("n_keys_power", pairs)):
            if isinstance(level, Level) and lacking and getattr(level, power) != 0.0:
                raise CatalogueError(
                    f"{where}, field {field}.{power}: must be 0 where a cell has no "
                    f"such size, got {getattr(level, power)!r}"
                )
    bounds = {"low": check.low, "high": check.high}
    if check.threshold is not None:
        bounds |= {"start": check.threshold.start, "stop": check.threshold.stop}
    for first, last in (("low", "high"), ("start", "stop")):
        low, high = bounds.get(first), bounds.get(last)
        if isinstance(low, float) and isinstance(high, float) and low > high:
            raise CatalogueError(
                f"{where}, field {first}: must be at most {last}, {high!r}, got {low!r}"
            )


def _divisors(check: Check) -> tuple[str, ...]:
    """Name the divisors under which the table has rows of a check's quantity."""
    pair = PAIR_QUANTITIES.get(check.quantity)
    if pair is not None:
        return tuple(DIVISORS) if pair.divided else ("none",)
    if check.quantity in FORMAT_QUANTITIES:
        return tuple(DIVISORS)
    compared = ROW_QUANTITIES[check.quantity].compared
    pairs = pairs_of(tuple(DIVISORS)) if compared else ()
    return (*DIVISORS, *pairs)


def _summaries(check: Check) -> tuple[str, ...]:
    """Name the summaries that a check's quantity has under its divisor."""
    if check.quantity in PAIR_QUANTITIES:
        return ("value",)
    if check.quantity in FORMAT_QUANTITIES:
        return ("mean",)
    quantity = ROW_QUANTITIES[check.quantity]
    if "/" in check.divisor:
        return ("mean", SPREAD)
    return (*quantity.summaries, SPREAD) if quantity.grid else quantity.summaries

"""Reading a catalogue from TOML; errors name the file, the claim and the field.

msgspec checks types and ranges, as `schema` and `checks` have them.  What it cannot say
is said here.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
from msgspec import Struct

from montecarlo.attention.divisors import name_divisor
from montecarlo.attention.masks import parse_mask
from montecarlo.attention.quantities import (
    FORMAT_QUANTITIES,
    PAIR_QUANTITIES,
    QUANTITIES,
)
from montecarlo.claims import checks, schema
from montecarlo.claims.checks import CONTROL, Check, Domain, Words
from montecarlo.claims.facts import FACTS, KINDS
from montecarlo.claims.recorded import RECORDED
from montecarlo.claims.schema import Catalogue, Claim, Interpretation, Sentence
from montecarlo.claims.simulation import canonical_distributions, row_key
from montecarlo.claims.words import read_thresholds
from montecarlo.errors import InputError, show
from montecarlo.estimation.summaries import offered_summaries
from montecarlo.names import look_up
from montecarlo.sampling.design_points import (
    name_of,
    parse_dependence,
    parse_initialisation,
    parse_normalisation,
    parse_point,
)
from montecarlo.small_files import parse_toml, read_package_toml, read_small
from montecarlo.study.rows import require_row
from montecarlo.theory.limits import limit_of

#: Table of a file: the field that names an entry, and its type.
TABLES: dict[str, tuple[str, type[msgspec.Struct]]] = {
    "text": ("key", schema.TextEntry),
    "claim": ("id", Claim),
    "self_check": ("id", schema.SelfCheck),
    "model": ("name", schema.ModelSize),
    "passage": ("id", schema.Passage),
    "record": ("claim", schema.RecordEntry),
}
#: Those that a user's file has.
OWN_TABLES = ("text", "claim")
#: Fields that a relation needs, beside those that every check has.
_NEEDS = {
    "equals": {"expected", "tolerance"},
    "at_least": {"low"},
    "at_most": {"high"},
    "between": {"low", "high"},
    "slope_between": {"low", "high"},
    "tends_to": {"to"},
}
#: Fields whose texts may be written in several ways, and the one that tables have.
#: Initialisations on record have plain names.
_SPELLED: dict[str, Callable[[str], str]] = {
    "quantity": lambda name: QUANTITIES[name].name if name in QUANTITIES else name,
    "divisor": name_divisor,
    "distributions": canonical_distributions,
    "dependence": lambda name: parse_dependence(name).name,
    "initialisation": lambda name: (
        name_of(parse_initialisation(name)) if "(" in name else name
    ),
    "normalisation": lambda name: parse_normalisation(name).name,
    "mask": lambda name: parse_mask(name).name,
}
_ANYWHERE, _PLAIN = Domain(), Check("", "equals")
_CONTROL = re.compile(f"[{CONTROL}]")
_UNKNOWN_FIELD = re.compile(
    r"Object contains unknown field `(\w+)`(?:, at `(?:.*\.)?(\w+)(?:\[\d+\])?`)?"
)
#: Fields that a user may write wrong.
_HOLDERS = {
    "interpretation": Interpretation,
    "check": Check,
    "domain": Domain,
    **dict.fromkeys(("finding", "right", "concedes"), Sentence),
    **dict.fromkeys(("low", "high", "expected"), checks.Level),
}
#: Fields of a check where the name of a number may stand.
_NUMBER_FIELDS = frozenset({"tolerance", "low", "high", "times"})


class CatalogueError(InputError):
    """A catalogue that cannot be used; one line with file, claim and field."""


@contextmanager
def within(place: str) -> Iterator[None]:
    """Name the place in the message of what is refused within it."""
    try:
        yield
    except CatalogueError as error:
        raise CatalogueError(f"{place}, {error}") from None
    except InputError as error:
        raise CatalogueError(f"{place}: {error}") from None


def _require(field: str, holds: object, requirement: str, got: object) -> None:
    """Refuse what a field has, in the words of its requirement."""
    if not holds:
        raise CatalogueError(f"field {field}: {requirement}, got {got}")


def _require_name(field: str, name: str, known: Iterable[str]) -> None:
    with within(f"field {field}"):
        look_up(field, name, dict.fromkeys(known))


def _require_usual(has: Check | Domain, fields: Iterable[str], why: str) -> None:
    """Refuse what differs from the default where it does not act."""
    prefix, usual = ("domain.", _ANYWHERE) if isinstance(has, Domain) else ("", _PLAIN)
    for field in fields:
        given = getattr(has, field)
        shown = repr(list(given) if isinstance(given, tuple) else given)
        requirement = f"must be left out for {why}"
        _require(prefix + field, given == getattr(usual, field), requirement, shown)


def require_check(check: Check) -> None:
    """Refuse a check that cannot be decided."""
    quantity, domain = check.quantity, check.domain
    if quantity not in QUANTITIES:
        _require_name("quantity", quantity, {**QUANTITIES, **RECORDED})
    if no_rows := quantity in PAIR_QUANTITIES or quantity in RECORDED:
        _require_usual(domain, ("n_keys",), f"{quantity}, which has no rows")
    if quantity in RECORDED:
        _require_recorded(check)
    else:
        _require_usual(domain, ("part",), f"{quantity}, which is sampled")
        _require_row(check)
    _require_sizes(check, no_rows=no_rows)
    _require_bounds(check)


def _require_recorded(check: Check) -> None:
    """Of what is on record a check chooses among what there is, and compares it."""
    quantity, domain = RECORDED[check.quantity], check.domain
    _require_name("divisor", check.divisor, quantity.divisors)
    _require_name("summary", check.summary, summaries_named(check.quantity))
    for name in domain.initialisation:
        _require_name("domain.initialisation", name, quantity.initialisations)
    for name in domain.part:
        _require_name("domain.part", name, quantity.parts)
    why = f"{check.quantity}, which is on record"
    usual = ("distributions", "dependence", "normalisation", "mask")
    _require_usual(domain, usual, why)
    _require_usual(check, ("number_format", "softmax"), why)
    _require(
        "relation",
        not check.along_d_k and check.expected != "reference",
        f"must compare {why}, with a number",
        check.relation,
    )


def _require_sizes(check: Check, *, no_rows: bool) -> None:
    """Ranges rise, and levels depend on sizes that a case has."""
    for field in ("d_k", "n_keys"):
        low, high = getattr(check.domain, field)
        rises = low < high or (low == high and (field != "d_k" or not check.along_d_k))
        _require(f"domain.{field}", rises, "must rise", f"[{low}, {high}]")
    must = "must be 0 where a case has no such size"
    for field in ("expected", "low", "high"):
        level = getattr(check, field)
        for size, lacking in (("d_k", check.along_d_k), ("n_keys", no_rows)):
            power = getattr(level, f"{size}_power", 0.0)
            _require(f"{field}.{size}_power", not (lacking and power), must, power)


def _require_bounds(check: Check) -> None:
    """Require the bounds that a relation needs, and that these rise."""
    low, high = check.low, check.high
    if isinstance(low, float) and isinstance(high, float):
        _require("low", low <= high, f"must be at most high, {high!r}", repr(low))
    fields = ("expected", "tolerance", "low", "high", "to")
    given = {field for field in fields if getattr(check, field) is not None}
    needs = _NEEDS[check.relation]
    enough = check.relation == "slope_between" and given and given < needs
    needed = f"{check.relation} needs {' and '.join(sorted(needs))}"
    shown = ", ".join(sorted(given)) or "none"
    _require("relation", given == needs or enough, needed, shown)
    if check.relation == "tends_to":
        _require_limit(check)


def _require_limit(check: Check) -> None:
    """Theory knows what becomes of some quantities, undivided, for Gaussian entries."""
    domain = check.domain
    sizes_alone = Domain(domain.d_k, domain.n_keys, ("gaussian",))
    limit = limit_of(check.quantity, check.summary, domain.n_keys[0])
    _require(
        "relation",
        check.divisor == "none" and domain == sizes_alone and limit is not None,
        "tends_to needs the divisor none, a domain of sizes and the distributions "
        "['gaussian'] alone, and a quantity and summary whose limit is known",
        f"{check.divisor}, {check.quantity}, {check.summary} and {domain}",
    )


def _require_row(check: Check) -> None:
    """Require that what is sampled is a row of the first point of its domain."""
    domain, of_pairs = check.domain, check.quantity in PAIR_QUANTITIES
    distributions = (*domain.distributions, "gaussian")[0].split(" * ")
    with within("field domain"):
        point = parse_point(
            distributions[0],
            distributions[-1],
            domain.d_k[0],
            None if of_pairs else domain.n_keys[0],
            domain.dependence[0],
            domain.initialisation[0],
            domain.normalisation[0],
            domain.mask[0],
            formats=check.quantity in FORMAT_QUANTITIES,
        )
    require_row(point, row_key(check))


def summaries_named(quantity: str) -> tuple[str, ...]:
    """Return the summaries of a quantity that can be asked for, for a message."""
    if quantity in RECORDED:
        return (RECORDED[quantity].summary,)
    return offered_summaries(QUANTITIES[quantity])


def require_words(words: Words) -> None:
    """Refuse a text that cannot be shown; it may be in several languages."""
    texts = [words] if isinstance(words, str) else list(words.values())
    if not texts:
        raise InputError(f"must be a text, got {words!r}")
    for text in texts:
        if found := _CONTROL.search(text):
            raise InputError(f"must have no control character, got {found[0]!a}")


def require_sentence(
    sentence: Sentence, interpretations: Mapping[str, Interpretation]
) -> None:
    """Require that there is what a sentence rests on.

    ``interpretations`` are those of its claim, by id.
    """
    values = sentence.value.items()
    named = [one.interpretation for _, one in values if one.interpretation is not None]
    for name in (*sentence.interpretations, *named):
        _require_name("interpretations", name, interpretations)
    for check in sentence.check:
        require_check(check)
    for name, value in values:
        asserted = sentence.check
        if value.interpretation is not None:
            asserted = interpretations[value.interpretation].check
        field, requirement = f"value.{name}.check", f"must be below {len(asserted)}"
        _require(field, value.check < len(asserted), requirement, value.check)


def require_claim(claim: Claim, catalogue: Catalogue) -> None:
    """Require that what is said of a claim goes together."""
    if claim.kind in KINDS:
        _require_name("id", claim.id, FACTS)
    measured = claim.kind == "measured"
    requirement = f"must be {'there' if measured else 'left out'} for {claim.kind!r}"
    there = len(claim.interpretation)
    _require("interpretation", bool(there) == measured, requirement, there)
    interpretations = {one.id: one for one in claim.interpretation}
    for source in claim.source:
        _require_name("source.text", source.text, [one.key for one in catalogue.text])
        for name in source.admits:
            _require_name("source.admits", name, interpretations)
    _require_once("interpretation.id", [one.id for one in claim.interpretation])
    for one in claim.interpretation:
        with within(f"interpretation {one.id!r}"):
            for check in one.check:
                require_check(check)
    for sentence, place in claim.sentences():
        with within(place):
            require_sentence(sentence, interpretations)
    if claim.same is not None:
        _require_name("same", claim.same, [one.id for one in catalogue.claim])


def _require_once(what: str, values: Sequence[str]) -> None:
    for number, value in enumerate(values):
        if value in values[:number]:
            raise InputError(f"{what} must be unique, got {value!r} twice")


def require_catalogue(catalogue: Catalogue) -> None:
    """Require that what a catalogue says goes together."""
    for words, place in catalogue.words():
        with within(place):
            require_words(words)
    for claim in catalogue.claim:
        with within(f"claim {claim.id!r}"):
            require_claim(claim, catalogue)
    for passage in catalogue.passage:
        with within(f"passage {passage.id!r}"):
            require_sentence(passage.sentence, {})
    for one in catalogue.self_check:
        with within(f"self_check {one.id!r}"):
            for check in one.check:
                require_check(check)
    if not catalogue.claim:
        raise InputError("there must be a claim ([[claim]]), got none")


@cache
def read_catalogue() -> Catalogue:
    """Read and validate the catalogue of the five texts."""
    name = "claims/catalogue.toml"
    return parse_catalogue(read_package_toml(name), name)


def read_own_catalogue(path: Path) -> tuple[Catalogue, bytes]:
    """Read and validate a user's catalogue; returns it with the bytes of its file.

    Raises
    ------
    CatalogueError
        If the file cannot be read or is not a catalogue; names file, claim and field.
    """
    content = read_small(path.name, path)
    data = parse_toml(path.name, content)
    return parse_catalogue(data, path.name, own=True), content


def parse_catalogue(data: dict[str, Any], name: str, *, own: bool = False) -> Catalogue:
    """Validate a catalogue that was read from TOML.

    Parameters
    ----------
    data : dict
        What the file holds.
    name : str
        Its name, for messages.
    own : bool
        Whether it is a user's own: ``language`` says then which one plain texts are
        in, English by default.

    Raises
    ------
    CatalogueError
        With one line: file, claim, field, requirement and what came.
    """
    try:
        catalogue = _convert(data, own=own)
        require_catalogue(catalogue)
    except InputError as error:
        raise CatalogueError(f"{name}: {error}") from None
    return catalogue


def _convert(data: Mapping[str, Any], *, own: bool) -> Catalogue:
    """Return what a file holds as a catalogue, its types and ranges checked."""
    by_name = {} if own else data.get("check", {})
    tables = OWN_TABLES if own else tuple(TABLES)
    known = (*tables, "language" if own else "check")
    if unknown := [one for one in data if one not in known]:
        must = f"entries must be {', '.join(known)}"
        raise InputError(f"{must}, got {unknown[0]!r}")
    language = data.get("language", "en") if own else None
    if own and (not isinstance(language, str) or _CONTROL.search(language)):
        raise InputError(f"language must be a text, got {show(language)}")
    parts = {one: tuple(_entries(data, one, by_name)) for one in tables}
    return Catalogue(**parts, language=language)


def _entries(
    data: Mapping[str, Any], table: str, by_name: Mapping[str, Any]
) -> Iterator[Any]:
    """Convert the entries of one table, naming the entry and field that is wrong.

    ``by_name`` are the checks that entries name.
    """
    entries, (key, kind) = data.get(table, []), TABLES[table]
    if not isinstance(entries, list):
        raise InputError(f"{table} must be a list of tables ([[{table}]])")
    for number, entry in enumerate(entries, start=1):
        named = entry.get(key) if isinstance(entry, dict) else None
        label = repr(named) if isinstance(named, str) else f"number {number}"
        with within(f"{table} {label}"):
            try:
                yield msgspec.convert(_spell_out("", entry, by_name), kind, strict=True)
            except msgspec.ValidationError as error:
                message = str(error).replace(" - at `$.", ", at `").replace("`$`", "it")
                raise InputError(message + _choices(message, kind)) from None
            except (UnicodeEncodeError, RecursionError) as error:
                raise InputError(f"must be what a file may hold: {error}") from None
    _require_once(f"{table}.{key}", [entry[key] for entry in entries])


def _spell_out(
    field: str,
    value: Any,  # noqa: ANN401 - what TOML holds
    by_name: Mapping[str, Any],
) -> Any:  # noqa: ANN401
    """Return what a field holds: numbers and checks for names, names as in tables.

    ``by_name`` are the checks that have names.  Numbers of NumPy are Python's.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if field == "check" and isinstance(value, str) and by_name:
        value = look_up("check", value, by_name)
    if field in _NUMBER_FIELDS and isinstance(value, str):
        return look_up(field, value, read_thresholds())
    if field in _SPELLED and isinstance(value, str | int | float):
        with within(f"field {field}"):
            return _SPELLED[field](str(value))
    if isinstance(value, list | tuple):
        return [_spell_out(field, one, by_name) for one in value]
    if isinstance(value, dict):
        return {name: _spell_out(name, one, by_name) for name, one in value.items()}
    if not isinstance(value, str | float | int | None):
        raise InputError(
            f"{field} must be a text, a number or a list, got {show(value)}"
        )
    return value


def _choices(message: str, kind: type[Struct]) -> str:
    """Name what a field may be, where a message says only what it is not."""
    if unknown := _UNKNOWN_FIELD.match(message):
        holder = _HOLDERS.get(unknown[2] or "", kind)
        known = holder.__struct_fields__
        near = difflib.get_close_matches(unknown[1], known, n=1)
        hint = f". Did you mean {near[0]!r}?" if near else ""
        return f"; there are {', '.join(known)}{hint}"
    for field, values in (("topic", schema.Topic), ("relation", checks.Relation)):
        if message.startswith("Invalid enum value") and message.endswith(f"{field}`"):
            return f"; there are {', '.join(get_args(values))}"
    return ""

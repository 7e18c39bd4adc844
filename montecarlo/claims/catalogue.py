"""Reads and validates catalogue files (TOML); errors name file, claim and field.

msgspec checks types and ranges, as declared in `schema` and `checks`.  This module
checks everything else.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from operator import attrgetter
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
    SPELLINGS,
)
from montecarlo.claims import checks, schema
from montecarlo.claims.checks import CONDITIONS, CONTROL, Check, Domain, Words
from montecarlo.claims.facts import FACTS, KINDS
from montecarlo.claims.recorded import RECORDED
from montecarlo.claims.schema import Catalogue, Claim, Interpretation, Sentence
from montecarlo.claims.simulation import canonical_distributions, row_key
from montecarlo.claims.verdicts import Quantifier, Verdict
from montecarlo.claims.words import read_thresholds
from montecarlo.errors import InputError, show
from montecarlo.estimation.summaries import offered_summaries
from montecarlo.names import look_up, suggest
from montecarlo.sampling.design_points import (
    name_of,
    parse_dependence,
    parse_initialisation,
    parse_normalisation,
    parse_point,
)
from montecarlo.small_files import parse_toml, read_package_toml, read_small
from montecarlo.study.presets import Block, Grid
from montecarlo.study.rows import require_row
from montecarlo.theory.limits import limit_of

#: Tables of a catalogue file: name -> field that identifies an entry, and type.
TABLES: dict[str, tuple[str, type[msgspec.Struct]]] = {
    "text": ("key", schema.TextEntry),
    "claim": ("id", Claim),
    "self_check": ("id", schema.SelfCheck),
    "model": ("name", schema.ModelSize),
    "passage": ("id", schema.Passage),
    "record": ("claim", schema.RecordEntry),
}
#: Tables that a user's file may have.
OWN_TABLES = ("text", "claim")
#: The fields with expected values that each relation needs.
_NEEDS = {
    "equals": {"expected", "tolerance"},
    "at_least": {"low"},
    "at_most": {"high"},
    "between": {"low", "high"},
    "slope_between": {"low", "high"},
    "tends_to": {"to"},
}
#: Fields whose values have several spellings -> function that returns the canonical
#: one.  Recorded initialisations have plain names.
_CANONICAL: dict[str, Callable[[str], str]] = {
    "quantity": lambda name: QUANTITIES[name].name if name in QUANTITIES else name,
    "divisor": name_divisor,
    "summary": lambda name: SPELLINGS.get(name, name),
    "distributions": canonical_distributions,
    "dependence": lambda name: parse_dependence(name).name,
    "initialisation": lambda name: (
        name_of(parse_initialisation(name)) if "(" in name else name
    ),
    "normalisation": lambda name: parse_normalisation(name).name,
    "mask": lambda name: parse_mask(name).name,
}
_DEFAULT = Check("", "equals")
_CONTROL = re.compile(f"[{CONTROL}]")
_UNKNOWN_FIELD = re.compile(
    r"Object contains unknown field `([^`]+)`(?:, at `(?:.*\.)?(\w+)(?:\[\d+\])?`)?"
)
#: Types of nested tables, by field name, for messages about unknown fields.
_NESTED = {
    "interpretation": Interpretation,
    "check": Check,
    "domain": Domain,
    **dict.fromkeys(("finding", "right", "concedes"), Sentence),
    **dict.fromkeys(("low", "high", "expected"), checks.Level),
    "grid": Grid,
    "blocks": Block,
}
#: Fields of a check that may name one of `read_thresholds` instead of a number.
_NUMBER_FIELDS = frozenset({"tolerance", "low", "high", "times"})


@contextmanager
def at_place(place: str) -> Iterator[None]:
    """Prefix the message of an `InputError` raised in a with block by its place.

    ``place`` is a text such as ``claim 'variance'``; a colon follows it.
    """
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def _require(field: str, holds: object, requirement: str, got: object) -> None:
    """Raise `InputError` about a field of the file unless ``holds`` is true.

    The message has the name of the field, the requirement, and ``got``, its value.
    """
    if not holds:
        raise InputError(f"field {field}: {requirement}, got {got}")


def _require_name(field: str, name: str, known: Iterable[str]) -> None:
    """Raise `InputError` about a field of the file unless its value is a known name.

    ``name`` is the value, and ``known`` are the allowed names.
    """
    with at_place(f"field {field}"):
        look_up(field, name, dict.fromkeys(known))


def _require_default(check: Check, why: str, *fields: str) -> None:
    """Raise `InputError` for fields of a check that are given but have no effect.

    ``fields`` are paths such as ``domain.mask``.  A field with its default value counts
    as not given.  ``why`` completes the message "must be left out for ...".
    """
    for field in fields:
        given, default = map(attrgetter(field), (check, _DEFAULT))
        shown = repr(list(given) if isinstance(given, tuple) else given)
        _require(field, given == default, f"must be left out for {why}", shown)


def require_check(check: Check) -> None:
    """Raise `InputError` for a check that no sample, record or theory can decide.

    Its names must be known, and its domain and its numbers must fit quantity and
    relation.  The message names the field.
    """
    quantity = check.quantity
    _require_name("quantity", quantity, {**QUANTITIES, **RECORDED})
    if no_rows := quantity in PAIR_QUANTITIES or quantity in RECORDED:
        _require_default(check, f"{quantity}, which has no rows", "domain.n_keys")
    if quantity in RECORDED:
        _require_recorded(check)
    else:
        _require_default(check, f"{quantity}, which is sampled", "domain.part")
        _require_row(check)
    _require_sizes(check, no_rows=no_rows)
    _require_bounds(check)


def _require_recorded(check: Check) -> None:
    """Raise `InputError` for a check of a recorded quantity whose fields do not fit it.

    Divisor, summary, initialisations and parts must be those of the entry in
    `RECORDED`.  Other conditions, distributions, number format and softmax must be left
    out.  The relation must compare with a number, not with an exact value, a slope or a
    limit.
    """
    quantity, domain = RECORDED[check.quantity], check.domain
    _require_name("divisor", check.divisor, quantity.divisors)
    _require_name("summary", check.summary, summaries_of(check.quantity))
    for name in domain.initialisation:
        _require_name("domain.initialisation", name, quantity.initialisations)
    for name in domain.part:
        _require_name("domain.part", name, quantity.parts)
    why = f"{check.quantity}, which is recorded"
    unused = ("distributions", "dependence", "normalisation", "mask")
    _require_default(check, why, *(f"domain.{field}" for field in unused))
    _require_default(check, why, "number_format", "softmax")
    with_number = not check.along_d_k and check.expected != "reference"
    requirement = f"must compare {why}, with a number"
    _require("relation", with_number, requirement, check.relation)


def _require_sizes(check: Check, *, no_rows: bool) -> None:
    """Raise `InputError` for sizes of a check's domain or bounds that do not fit.

    The ends of a range must ascend and may be equal.  For a slope or a limit over d_k,
    those of d_k must differ.  Expected values and bounds may depend only on sizes that
    a case has: not on d_k for a slope or a limit, and not on the number of keys for a
    quantity with ``no_rows``.
    """
    for field in ("d_k", "n_keys"):
        low, high = getattr(check.domain, field)
        rises = low < high or (low == high and (field != "d_k" or not check.along_d_k))
        _require(f"domain.{field}", rises, "must rise", f"[{low}, {high}]")
    requirement = "must be 0 as the case has no such size"
    for field in ("expected", "low", "high"):
        level = getattr(check, field)
        for size, missing in (("d_k", check.along_d_k), ("n_keys", no_rows)):
            power = getattr(level, f"{size}_power", 0.0)
            allowed = not (missing and power)
            _require(f"{field}.{size}_power", allowed, requirement, power)


def _require_bounds(check: Check) -> None:
    """Raise `InputError` unless a check has exactly the numbers its relation needs.

    For ``slope_between`` one of its two bounds is enough.  A lower bound must not
    exceed the upper one, if both are plain numbers.  ``tends_to`` must also pass
    `_require_limit`.
    """
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
    """Raise `InputError` unless theory knows the limit that a check is about.

    It knows limits for undivided scores of Gaussian entries.  So the divisor must be
    ``none``, the domain must name the distributions ``("gaussian",)``, and its other
    conditions must be left out.
    """
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
    """Raise `InputError` unless a check has an estimate at its domain's first point.

    The estimate is that of a quantity with a summary, a divisor and a number format.
    The first point has the first of each list and the lower end of each range.  If the
    domain names no distributions, its entries are Gaussian.
    """
    domain, of_pairs = check.domain, check.quantity in PAIR_QUANTITIES
    distributions = (*domain.distributions, "gaussian")[0].split(" * ")
    with at_place("field domain"):
        point = parse_point(
            distributions[0],
            distributions[-1],
            domain.d_k[0],
            None if of_pairs else domain.n_keys[0],
            **{name: getattr(domain, name)[0] for name in CONDITIONS},
            formats=check.quantity in FORMAT_QUANTITIES,
        )
    require_row(point, row_key(check))


def summaries_of(quantity: str) -> tuple[str, ...]:
    """Return the names of the summaries that a quantity may have, for messages.

    Such as ``("mean", "median", "q99 (not 0.99) or any other percentage")``: the last
    one stands for all quantiles.  ``quantity`` is a name in `QUANTITIES` or `RECORDED`.
    """
    if quantity in RECORDED:
        return (RECORDED[quantity].summary,)
    return offered_summaries(QUANTITIES[quantity])


def require_words(words: Words) -> None:
    """Raise `InputError` for a text of a catalogue that has a control character.

    If the text has a version for each language, all are validated, and there must be at
    least one.  Lengths are not checked: that is done when the file is parsed.
    """
    texts = [words] if isinstance(words, str) else list(words.values())
    if not texts:
        raise InputError(f"must be a text, got {words!r}")
    for text in texts:
        if match := _CONTROL.search(text):
            raise InputError(f"must have no control character, got {match[0]!a}")


def require_sentence(
    sentence: Sentence, interpretations: Mapping[str, Interpretation]
) -> None:
    """Raise `InputError` for a sentence with invalid interpretations or checks.

    Its interpretations must be among ``interpretations``, those of the claim that it is
    about, by id.  Each number in it must refer to a check that exists.
    """
    values = sentence.value.items()
    sources = [value.interpretation for _, value in values if value.interpretation]
    for name in (*sentence.interpretations, *sources):
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
    """Raise `InputError` for a claim whose fields are invalid or contradictory.

    ``catalogue`` has the texts and claims that the claim may name.
    """
    if claim.kind in KINDS:
        _require_name("id", claim.id, FACTS)
    measured = claim.kind == "measured"
    requirement = f"must be {'given' if measured else 'left out'} for {claim.kind!r}"
    number = len(claim.interpretation)
    _require("interpretation", bool(number) == measured, requirement, number)
    interpretations = {one.id: one for one in claim.interpretation}
    for source in claim.source:
        _require_name("source.text", source.text, [one.key for one in catalogue.text])
        for name in source.admits:
            _require_name("source.admits", name, interpretations)
    _require_unique("interpretation.id", [one.id for one in claim.interpretation])
    for one in claim.interpretation:
        with at_place(f"interpretation {one.id!r}"):
            for check in one.check:
                require_check(check)
    for sentence, place in claim.sentences():
        with at_place(place):
            require_sentence(sentence, interpretations)
    if claim.same is not None:
        _require_name("same", claim.same, [one.id for one in catalogue.claim])


def _require_unique(name: str, values: Sequence[str]) -> None:
    """Raise `InputError` if a value occurs twice.

    ``name`` is that of the field, such as ``interpretation.id``, for the message.
    """
    for number, value in enumerate(values):
        if value in values[:number]:
            raise InputError(f"{name} must be unique, got {value!r} twice")


def require_catalogue(catalogue: Catalogue) -> None:
    """Raise `InputError` for a catalogue with invalid texts, claims or checks.

    A catalogue without claims is invalid, too.
    """
    for words, place in catalogue.words():
        with at_place(place):
            require_words(words)
    for claim in catalogue.claim:
        with at_place(f"claim {claim.id!r}"):
            require_claim(claim, catalogue)
    for passage in catalogue.passage:
        with at_place(f"passage {passage.id!r}"):
            require_sentence(passage.sentence, {})
    for one in catalogue.self_check:
        with at_place(f"self_check {one.id!r}"):
            for check in one.check:
                require_check(check)
    if not catalogue.claim:
        raise InputError("claim must have at least one entry ([[claim]]), got none")


@cache
def read_catalogue() -> Catalogue:
    """Return the package's own catalogue: the claims of the five texts.

    It is not validated by `require_catalogue`, which would take 0.2 s; tests do that.
    """
    name = "claims/catalogue.toml"
    return parse_catalogue(read_package_toml(name), name)


def read_own_catalogue(path: Path) -> tuple[Catalogue, bytes]:
    """Return (validated catalogue of a user's claims, content of its file in bytes).

    Raises
    ------
    InputError
        If the file cannot be read or is no catalogue; names file, claim and field.
    """
    content = read_small(path.name, path)
    return parse_catalogue(parse_toml(path.name, content), path.name, own=True), content


def parse_catalogue(data: dict[str, Any], name: str, *, own: bool = False) -> Catalogue:
    """Return the catalogue that the data of a TOML file describe.

    Types are validated.  A user's catalogue is also validated by `require_catalogue`.

    Parameters
    ----------
    data : dict
        The parsed TOML file.
    name : str
        Name of the file, for messages.
    own : bool
        Whether it is a user's.  Such a file has no tables but `OWN_TABLES`, and may
        have a ``language``, that of plain texts, by default English.  Without ``own``
        it may have all of `TABLES`, and a table ``check`` of named checks.

    Raises
    ------
    InputError
        The message has file, claim, field, requirement and value.
    """
    by_name = {} if own else data.get("check", {})
    tables = OWN_TABLES if own else tuple(TABLES)
    known = (*tables, "language" if own else "check")
    language = data.get("language", "en") if own else None
    with at_place(name):
        for entry in data:
            look_up("entry", entry, dict.fromkeys(known))
        if own and (not isinstance(language, str) or _CONTROL.search(language)):
            raise InputError(f"language must be a text, got {show(language)}")
        entries = {table: tuple(_entries(data, table, by_name)) for table in tables}
        catalogue = Catalogue(**entries, language=language)
        if own:
            require_catalogue(catalogue)
    return catalogue


def _entries(
    data: Mapping[str, Any], table: str, by_name: Mapping[str, Any]
) -> Iterator[Any]:
    """Yield the entries of one table of the file, converted to the type in `TABLES`.

    ``data`` is the parsed file, and ``table`` the name of the table, such as ``claim``.
    A table that is missing has no entries.  ``by_name`` maps names to checks, to which
    entries may refer.

    Raises
    ------
    InputError
        If the table is no list, an entry is invalid, or two have the same id.  The
        message names the entry and the field.
    """
    entries, (key, kind) = data.get(table, []), TABLES[table]
    if not isinstance(entries, list):
        raise InputError(f"{table} must be a list of tables ([[{table}]])")
    for number, entry in enumerate(entries, start=1):
        name = entry.get(key) if isinstance(entry, dict) else None
        label = repr(name) if isinstance(name, str) else f"number {number}"
        with at_place(f"{table} {label}"):
            try:
                yield msgspec.convert(_resolve("", entry, by_name), kind, strict=True)
            except msgspec.ValidationError as error:
                raise InputError(validation_message(error, kind)) from None
            except (UnicodeEncodeError, RecursionError) as error:
                raise InputError(f"must be valid TOML data: {error}") from None
    _require_unique(f"{table}.{key}", [entry[key] for entry in entries])


def _resolve(
    field: str,
    value: Any,  # noqa: ANN401 - what TOML holds
    by_name: Mapping[str, Any],
) -> Any:  # noqa: ANN401
    """Return the value of a field, in which names are replaced by what they stand for.

    ``field``, the name of the field, determines what is replaced:

    - in ``check``, a name by the check in ``by_name``;
    - in `_NUMBER_FIELDS`, the name of a threshold by its number;
    - in `_CANONICAL`, a name by its canonical spelling.

    In lists and nested tables each element is replaced in this way.  NumPy numbers
    become Python's.  Other values stay.

    Raises
    ------
    InputError
        If a name is unknown, or a value is no text, number, list or table.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if field == "check" and isinstance(value, str) and by_name:
        value = look_up("check", value, by_name)
    if field in _NUMBER_FIELDS and isinstance(value, str):
        table = "" if field == "tolerance" else " or { times = 2, d_k_power = 0.5 }"
        kind = f"{field}, unless it is a number{table},"
        return look_up(kind, value, read_thresholds())
    if field in _CANONICAL and isinstance(value, str | int | float):
        with at_place(f"field {field}"):
            return _CANONICAL[field](str(value))
    if isinstance(value, list | tuple):
        return [_resolve(field, one, by_name) for one in value]
    if isinstance(value, dict):
        return {name: _resolve(name, one, by_name) for name, one in value.items()}
    if not isinstance(value, str | float | int | None):
        raise InputError(
            f"{field} must be a text, a number or a list, got {show(value)}"
        )
    return value


def validation_message(error: msgspec.ValidationError, kind: type[Struct]) -> str:
    """Return the message of a validation error of msgspec, with the path of the field.

    ``kind`` is the type of the entry.  Allowed fields or values are added, if the error
    is about these.  Examples of messages::

        Expected `bool`, got `int`, at `changed`
        Invalid enum value 'x', at `topic`; there are variance, weights, ...
    """
    message = str(error).replace(" - at `$.", ", at `").replace("`$`", "it")
    missing = r"^Object missing required field `(\w+)`"
    return re.sub(missing, r"\1 must be given", message) + _choices(message, kind)


def _choices(message: str, kind: type[Struct]) -> str:
    """Return the allowed fields or values, to append to an error message of msgspec.

    ``message`` is that of msgspec, and ``kind`` the type of the entry.  The result is
    such as ``; there are id, topic, ...`` for an unknown field or value, and a hint how
    lists are written if a list is expected.  Otherwise it is an empty string.
    """
    if unknown := _UNKNOWN_FIELD.match(message):
        known = _NESTED.get(unknown[2] or "", kind).__struct_fields__
        return f"; there are {', '.join(known)}.{suggest(unknown[1], known)}"
    kinds: dict[str, Any] = {"topic": schema.Topic, "relation": checks.Relation}
    kinds |= {"form": schema.Form, "quantifier": Quantifier, "omits": schema.Omitted}
    kinds |= dict.fromkeys(("verdict", "interpretations"), Verdict)
    wrong = re.match(r"Invalid enum value '(.*)'.*?(\w+)(?:\[[\d.]+\])?`$", message)
    if wrong and wrong[2] in kinds:
        values = get_args(kinds[wrong[2]]) or [*map(str, kinds[wrong[2]])]
        return f"; there are {', '.join(values)}.{suggest(wrong[1], values)}"
    lists = "; lists are [[claim.interpretation]], of tables, or [64, 64], of numbers"
    return lists * message.startswith("Expected `array`, got ")

"""Reading a catalogue from TOML; errors name the file, the claim and the field.

msgspec checks types and ranges, as `schema` and `checks` have them.  What it cannot say
is said here: each ``*_faults`` yields places and what is wrong there, and the first one
is raised.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, time
from functools import cache
from importlib.resources import files
from numbers import Integral, Real
from pathlib import Path
from typing import Any, get_args

import msgspec

from montecarlo.attention.divisors import name_divisor, parse_divisor, split_pairs
from montecarlo.attention.number_formats import NUMBER_FORMATS, SOFTMAXES
from montecarlo.attention.quantities import (
    FORMAT_QUANTITIES,
    PAIR_QUANTITIES,
    QUANTITIES,
    ROW_QUANTITIES,
)
from montecarlo.claims import checks, schema
from montecarlo.claims.checks import CONTROL, Check, Domain, Words
from montecarlo.claims.facts import FACTS, KINDS
from montecarlo.claims.recorded import RECORDED
from montecarlo.claims.schema import Catalogue, Claim, Interpretation, Sentence
from montecarlo.claims.simulation import canonical_distributions
from montecarlo.claims.words import read_words
from montecarlo.claims.yardsticks import NUMBERS
from montecarlo.errors import InputError, show
from montecarlo.estimation.summaries import has_summary, offered_summaries
from montecarlo.names import look_up, require_number, require_text
from montecarlo.sampling.design_points import (
    name_of,
    parse_dependence,
    parse_initialisation,
    parse_normalisation,
)
from montecarlo.small_files import parse_toml, read_small
from montecarlo.theory.limits import limit_of

#: Lists and tables within each other at most: three times what a claim needs.
MOST_NESTED = 30
#: A place within what is checked, perhaps none, and what is wrong there.
Faults = Iterator[tuple[str, str]]
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
OWN_TABLES = ("text", "claim", "self_check", "model")
#: Fields that a relation needs, beside those that every check has.
_NEEDS = {
    "equals": {"expected", "tolerance"},
    "at_least": {"low"},
    "at_most": {"high"},
    "between": {"low", "high"},
    "slope_between": {"low", "high"},
    "tends_to": {"to"},
}
#: How each name in a domain is written.
_CANONICAL: dict[str, Callable[[str], str]] = {
    "distributions": canonical_distributions,
    "dependence": lambda name: parse_dependence(name).name,
    "initialisation": lambda name: name_of(parse_initialisation(name)),
    "normalisation": lambda name: parse_normalisation(name).name,
}
_ANYWHERE = Domain()
_CONTROL = re.compile(f"[{CONTROL}]")
_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(\w+)`")
#: Every field that something in a catalogue may have.
_FIELDS = sorted(
    field
    for module in (checks, schema)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    for field in kind.__struct_fields__
)
#: Fields of a check where the name of a number may stand.
_NUMBER_FIELDS = frozenset({"tolerance", "low", "high", "times"})


class CatalogueError(InputError):
    """A catalogue that cannot be used; one line with file, claim and field."""


@contextmanager
def name_place(where: str, field: str) -> Iterator[None]:
    """Name the place in the message of an `InputError`."""
    try:
        yield
    except InputError as error:
        raise CatalogueError(f"{where}, field {field}: {error}") from None


def _at(place: str, faults: Faults) -> Faults:
    """Yield faults with the place that theirs are within."""
    for within, wrong in faults:
        yield ", ".join(filter(None, (place, within))), wrong


def _refused(field: str, rule: Callable[..., object], *arguments: object) -> Faults:
    """Yield what a rule refuses, as the fault of a field."""
    try:
        rule(*arguments)
    except InputError as error:
        yield f"field {field}", str(error)


def _left_out(has: Check | Domain, usual: Mapping[str, object], why: str) -> Faults:
    """Yield the fields that differ from what is usual where they do not act."""
    prefix = "domain." * isinstance(has, Domain)
    for field, default in usual.items():
        if (given := getattr(has, field)) != default:
            got = list(given) if isinstance(given, tuple) else given
            yield f"field {prefix}{field}", f"must be left out for {why}, got {got!r}"


def _usual(*fields: str) -> dict[str, object]:
    return {field: getattr(_ANYWHERE, field) for field in fields}


def check_faults(check: Check) -> Faults:
    """Yield why a check cannot be decided."""
    quantity, domain = check.quantity, check.domain
    yield from _refused("quantity", _require_quantity, quantity)
    yield from _refused("divisor", _require_divisor, check)
    summaries = dict.fromkeys(_summaries(check))
    yield from _refused("summary", look_up, "summary", check.summary, summaries)
    yield from _name_faults(domain, "distributions", "dependence")
    if quantity in RECORDED:
        yield from _recorded_faults(check)
    else:
        yield from _name_faults(domain, "initialisation", "normalisation")
        why = f"{quantity}, which is sampled"
        yield from _left_out(domain, _usual("part"), why)
    for field, known in (("number_format", NUMBER_FORMATS), ("softmax", SOFTMAXES)):
        table = dict.fromkeys(known)
        yield from _refused(field, look_up, field, getattr(check, field), table)
    if quantity not in FORMAT_QUANTITIES:
        usual: dict[str, object] = {"number_format": "float64", "softmax": "shifted"}
        why = f"{quantity}, which has no number formats"
        for place, wrong in _left_out(check, usual, why):
            yield place, f"{wrong}; those that have: {', '.join(FORMAT_QUANTITIES)}"
    if no_rows := quantity in PAIR_QUANTITIES or quantity in RECORDED:
        why = f"{quantity}, which has no rows"
        yield from _left_out(domain, _usual("n_keys"), why)
    yield from _size_faults(check, no_rows=no_rows)
    yield from _relation_faults(check)


def _name_faults(domain: Domain, *fields: str) -> Faults:
    """Require names as they are written in tables."""

    def require(field: str, name: str) -> None:
        if name != (canonical := _CANONICAL[field](name)):
            raise InputError(f"must be {canonical!r}, got {name!r}")

    for field in fields:
        for name in getattr(domain, field):
            yield from _refused(f"domain.{field}", require, field, name)


def _recorded_faults(check: Check) -> Faults:
    """Of what is on record a check chooses among what there is, and compares it."""
    quantity, domain = RECORDED[check.quantity], check.domain
    for field, known in (
        ("initialisation", quantity.initialisations),
        ("part", quantity.parts),
    ):
        for name in getattr(domain, field):
            table = dict.fromkeys(known)
            yield from _refused(f"domain.{field}", look_up, field, name, table)
    why = f"{check.quantity}, which is on record"
    usual = _usual("distributions", "dependence", "normalisation")
    yield from _left_out(domain, usual, why)
    if check.along_d_k or check.expected == "reference":
        must = f"must compare {why}, with a number"
        yield "field relation", f"{must}, got {check.relation}"


def _size_faults(check: Check, *, no_rows: bool) -> Faults:
    """Ranges rise, and levels depend on sizes that a case has."""
    low, high = check.domain.d_k
    if check.along_d_k and low == high:
        must = f"must hold several sizes for {check.relation}"
        yield "field domain.d_k", f"{must}, got [{low}, {high}]"
    for field in ("d_k", "n_keys"):
        low, high = getattr(check.domain, field)
        if low > high:
            yield f"field domain.{field}", f"must rise, got [{low}, {high}]"
    for field in ("expected", "low", "high"):
        level = getattr(check, field)
        for size, lacking in (("d_k", check.along_d_k), ("n_keys", no_rows)):
            power = getattr(level, f"{size}_power", 0.0)
            if lacking and power != 0.0:
                must = "must be 0 where a case has no such size"
                yield f"field {field}.{size}_power", f"{must}, got {power!r}"


def _relation_faults(check: Check) -> Faults:
    """Require the bounds that a relation needs, and that these rise."""
    low, high = check.low, check.high
    if isinstance(low, float) and isinstance(high, float) and low > high:
        yield "field low", f"must be at most high, {high!r}, got {low!r}"
    fields = ("expected", "tolerance", "low", "high", "to")
    given = {field for field in fields if getattr(check, field) is not None}
    needs = _NEEDS[check.relation]
    open_sided = check.relation == "slope_between" and given and given < needs
    if given != needs and not open_sided:
        needed, got = " and ".join(sorted(needs)), ", ".join(sorted(given)) or "none"
        yield "field relation", f"{check.relation} needs {needed}, got {got}"
    if check.relation == "tends_to":
        yield from _limit_faults(check)


def _limit_faults(check: Check) -> Faults:
    """Theory knows what becomes of some quantities, undivided, for Gaussian entries."""
    distributions, needs = list(check.domain.distributions), "tends_to needs"
    if check.divisor != "none" or distributions != ["gaussian"]:
        must = f"{needs} the divisor none and the distributions ['gaussian']"
        yield "field relation", f"{must}, got {check.divisor!r} and {distributions}"
    usual = _usual("normalisation", "dependence", "initialisation")
    yield from _left_out(check.domain, usual, "tends_to")
    n_keys = max(2, check.domain.n_keys[0])  # fewer are refused as a size
    if limit_of(check.quantity, check.summary, n_keys) is None:
        must = f"{needs} a quantity and summary whose limit is known"
        yield "field relation", f"{must}, got {check.quantity!r} and {check.summary!r}"


def _require_quantity(quantity: str) -> None:
    """Require the canonical name of something that is measured, or on record."""
    if quantity not in QUANTITIES:
        look_up("quantity", quantity, {**QUANTITIES, **RECORDED})
    elif (name := QUANTITIES[quantity].name) != quantity:
        raise InputError(f"must be written as {name!r}, got {quantity!r}")


def _require_divisor(check: Check) -> None:
    """Require a divisor under which a check's quantity is measured."""
    name, quantity = check.divisor, check.quantity
    if quantity in RECORDED:
        look_up("divisor", name, dict.fromkeys(RECORDED[quantity].divisors))
        return
    one = QUANTITIES[quantity]
    _, ratios = split_pairs([name])
    if ratios and not one.compared:
        raise InputError(f"must be one divisor for {quantity}, got {name!r}")
    by_none = not one.divided if one.of == "pairs" else not one.divisors((name,))
    if by_none and not ratios and name != "none":
        raise InputError(f"must be 'none' for {quantity}, got {name!r}")
    if one.of == "pairs" and parse_divisor(name).needs_keys:
        raise InputError(
            f"must not depend on n for {quantity}, which has no keys, got {name!r}"
        )


def _summaries(check: Check) -> tuple[str, ...]:
    """Name the summaries that a check's quantity has under its divisor."""
    if check.quantity not in ROW_QUANTITIES:
        return summaries_named(check.quantity)
    if "/" in check.divisor:
        return ROW_QUANTITIES[check.quantity].compared
    quantity = ROW_QUANTITIES[check.quantity]
    also = [check.summary] if has_summary(quantity, check.summary) else []
    return (*also, *summaries_named(check.quantity))


def summaries_named(quantity: str) -> tuple[str, ...]:
    """Return the summaries of a quantity that can be asked for, for a message."""
    if quantity in RECORDED:
        return (RECORDED[quantity].summary,)
    if quantity in PAIR_QUANTITIES:
        return ("value",)
    if quantity in FORMAT_QUANTITIES:
        return ("mean",)
    return offered_summaries(ROW_QUANTITIES[quantity])


def word_faults(words: Words, *, own: bool) -> Faults:
    """Yield why a text cannot be shown; a user's may be in several languages."""
    texts = _texts(words)
    if not texts or (words not in texts and not own):
        yield "", f"must be a text, got {words!r}"
    for text in texts:
        if found := _CONTROL.search(text):
            yield "", f"must have no control character, got {found[0]!a}"


def _texts(words: Words | None) -> list[str]:
    """Return words in each language that they are in."""
    return [words] if isinstance(words, str) else list((words or {}).values())


def sentence_faults(
    sentence: Sentence, interpretations: Mapping[str, Interpretation], *, own: bool
) -> Faults:
    """Yield why a sentence says not what it rests on, or lacks its numbers.

    Parameters
    ----------
    sentence : Sentence
    interpretations : mapping
        Those of its claim, by id.
    own : bool
        Whether it is a user's, who answers for it.
    """
    if not own and not sentence.is_bound:
        must = "must rest on interpretations or checks, or say why on none"
        yield "", f"{must}, got neither"
    values = sentence.value.items()
    named = [one.interpretation for _, one in values if one.interpretation is not None]
    for name in (*sentence.interpretations, *named):
        yield from _refused(
            "interpretations", look_up, "interpretation", name, interpretations
        )
    for check in sentence.check:
        yield from check_faults(check)
    for name, value in values:
        place, asserted = f"field value.{name}", sentence.check
        if value.interpretation is not None:
            asserted = interpretations[value.interpretation].check
        if value.check >= len(asserted):
            must = f"must be below {len(asserted)}"
            yield f"{place}.check", f"{must}, got {value.check}"
    for text in () if own else (*_texts(sentence.text), *_texts(sentence.short)):
        found = set(_PLACEHOLDER.findall(text))
        if not found <= set(sentence.value):
            got = f"{sorted(found)} and {sorted(sentence.value)}"
            yield "", f"must have a number for each placeholder, got {got}"


def claim_faults(claim: Claim, catalogue: Catalogue, *, own: bool) -> Faults:
    """Yield what of a claim does not go together."""
    if claim.kind in KINDS:
        kind = f"claim of kind {claim.kind}"
        yield from _refused("id", look_up, kind, claim.id, FACTS)
    # what a claim of its kind has, and no other
    needs = {"interpretation": claim.kind == "measured"}
    needs |= {} if own else {"finding": True}
    for field, needed in needs.items():
        if bool(getattr(claim, field)) != needed:
            verb = "be there" if needed else "be left out"
            yield f"field {field}", f"must {verb} for the kind {claim.kind!r}"
    texts = {text.key: text for text in catalogue.text}
    interpretations = {one.id: one for one in claim.interpretation}
    for source in claim.source:
        yield from _refused("source.text", look_up, "text", source.text, texts)
        for name in source.admits:
            yield from _refused(
                "source.admits", look_up, "interpretation", name, interpretations
            )
    yield from _twice("interpretation.id", (one.id for one in claim.interpretation))
    for one in claim.interpretation:
        place = f"interpretation {one.id!r}"
        yield from _at(place, interpretation_faults(one, claim, own=own))
    for sentence, place in claim.sentences():
        yield from _at(place, sentence_faults(sentence, interpretations, own=own))
    if claim.same is not None:
        by_id = {one.id: one for one in catalogue.claim}
        yield from _refused("same", look_up, "claim", claim.same, by_id)


def interpretation_faults(one: Interpretation, claim: Claim, *, own: bool) -> Faults:
    """Yield why an interpretation has no outcome, or votes other than texts say it."""
    for check in one.check:
        yield from check_faults(check)
    if own:
        return
    for name in one.words:
        yield from _refused("words", look_up, "word", name, read_words())
    if not claim.source:
        return
    sources = [s for s in claim.source if one.id in (s.admits or claim.admitted())]
    if one.beyond == bool(sources):
        must = f"must be {str(not sources).lower()}"
        yield "field beyond", f"{must}, got {str(one.beyond).lower()}"
    said = (one.quantifier, one.form)
    if sources and said not in {(s.quantifier, s.form) for s in sources}:
        must = "must be said so by a source that admits it"
        yield "field quantifier", f"{must}, got {' '.join(said)}"
    used = {text for name in one.words for text in read_words()[name].texts}
    for text in {source.text for source in sources} - used if one.words else ():
        yield "field words", f"must be words of {text}, got {', '.join(one.words)}"


def _twice(what: str, values: Iterable[str]) -> Faults:
    seen = set()
    for value in values:
        if value in seen:
            yield "", f"{what} must be unique, got {value!r} twice"
        seen.add(value)


def catalogue_faults(catalogue: Catalogue, *, own: bool) -> Faults:
    """Yield what of a catalogue does not go together."""
    if own and not catalogue.claim:
        yield "", "there must be a claim ([[claim]]), got none"
    for words, place in catalogue.words():
        yield from _at(place, word_faults(words, own=own))
    for claim in catalogue.claim:
        faults = claim_faults(claim, catalogue, own=own)
        yield from _at(f"claim {claim.id!r}", faults)
    for passage in catalogue.passage:
        faults = sentence_faults(passage.sentence, {}, own=own)
        yield from _at(f"passage {passage.id!r}", faults)
    for one in catalogue.self_check:
        for check in one.check:
            yield from _at(f"self_check {one.id!r}", check_faults(check))


@cache
def read_catalogue() -> Catalogue:
    """Read and validate the catalogue of the five texts."""
    source = files("montecarlo.claims").joinpath("catalogue.toml")
    return parse_catalogue(
        parse_toml(source.name, read_small(source.name, source)), source.name
    )


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
        Whether it is a user's own: sentences for the verdicts may then be left out,
        texts may be in several languages, and ``language`` says which one plain
        texts are in, English by default.

    Raises
    ------
    CatalogueError
        With one line: file, claim, field, requirement and what came.
    """
    data = _plain(data, name)
    by_name = {} if own else data.pop("check", {})
    tables = OWN_TABLES if own else tuple(TABLES)
    known = (*tables, "language") if own else tables
    if unknown := set(data) - set(known):
        raise CatalogueError(
            f"{name}: entries must be {', '.join(known)}, got {min(unknown)!r}"
        )
    parts = {one: tuple(_entries(data, one, name, by_name)) for one in tables}
    language = data.get("language", "en") if own else None
    if not isinstance(language, str | None):
        raise CatalogueError(f"{name}: language must be a text, got {language!r}")
    catalogue = Catalogue(**parts, language=language)
    for place, wrong in catalogue_faults(catalogue, own=own):
        raise CatalogueError(": ".join(filter(None, (name, place, wrong))))
    return catalogue


def _plain(value: Any, name: str, depth: int = 0) -> Any:  # noqa: ANN401 - data
    """Return data as a TOML file could hold it; refuse any other."""
    if depth < MOST_NESTED:
        if isinstance(value, Mapping):
            items = ((_plain_text(key, name), value[key]) for key in value)
            return {key: _plain(one, name, depth + 1) for key, one in items}
        if isinstance(value, list | tuple):
            return [_plain(one, name, depth + 1) for one in value]
        if isinstance(value, str):
            return _plain_text(value, name)
        if isinstance(value, bool | date | time | None):
            return value
        if isinstance(value, float):  # whatever its value: a field says what it takes
            return float(value)
        if isinstance(value, Real):
            number = require_number(name, value)
            return int(value) if isinstance(value, Integral) else number
    raise CatalogueError(
        f"{name} must hold texts, numbers, true, false, and lists and tables of them, "
        f"at most {MOST_NESTED} within each other, got {show(value)}"
    )


def _plain_text(value: object, name: str) -> str:
    try:
        require_text(f"each name in {name}", value).encode()
    except UnicodeEncodeError:
        raise CatalogueError(f"{name} must hold UTF-8, got {value!a:.99}") from None
    return str(value)


def _entries(
    data: dict[str, Any], table: str, name: str, by_name: Mapping[str, Any]
) -> Iterator[Any]:
    """Convert the entries of one table, naming the entry and field that is wrong.

    ``by_name`` are the checks that entries name.
    """
    entries, (key, kind) = data.get(table, []), TABLES[table]
    if not isinstance(entries, list):
        raise CatalogueError(f"{name}: {table} must be a list of tables ([[{table}]])")
    for number, entry in enumerate(entries, start=1):
        named = entry.get(key) if isinstance(entry, dict) else None
        label = repr(named) if isinstance(named, str) else f"number {number}"
        try:
            yield msgspec.convert(_spell_out("", entry, by_name), kind, strict=True)
        except InputError as error:
            raise CatalogueError(f"{name}: {table} {label}: {error}") from None
        except msgspec.ValidationError as error:
            message = str(error).replace(" - at `$.", ", at `").replace("`$`", "it")
            told = message + _choices(message)
            raise CatalogueError(f"{name}: {table} {label}: {told}") from None
    for _, wrong in _twice(f"{table}.{key}", (entry[key] for entry in entries)):
        raise CatalogueError(f"{name}: {wrong}")


def _spell_out(
    field: str,
    value: Any,  # noqa: ANN401 - what TOML holds
    by_name: Mapping[str, Any],
) -> Any:  # noqa: ANN401
    """Return what a field holds: numbers and checks for names, divisors as in tables.

    ``by_name`` are the checks that have names.
    """
    if field == "check" and isinstance(value, str) and by_name:
        value = look_up("check", value, by_name)
    if field in _NUMBER_FIELDS and isinstance(value, str):
        return look_up(field, value, NUMBERS)
    if field == "divisor" and isinstance(value, str | int | float):
        return name_divisor(str(value))
    if isinstance(value, list):
        within = field if field == "check" else ""
        return [_spell_out(within, one, by_name) for one in value]
    if isinstance(value, dict):
        return {name: _spell_out(name, one, by_name) for name, one in value.items()}
    return value


def _choices(message: str) -> str:
    """Name what a field may be, where a message says only what it is not."""
    if unknown := _UNKNOWN_FIELD.match(message):
        near = difflib.get_close_matches(unknown[1], _FIELDS, n=1)
        return f". Did you mean {near[0]!r}?" if near else ""
    for field, kind in (("topic", schema.Topic), ("relation", checks.Relation)):
        if message.startswith("Invalid enum value") and message.endswith(f"{field}`"):
            return f"; there are {', '.join(get_args(kind))}"
    return ""

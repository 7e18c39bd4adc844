"""Reading a catalogue from TOML and validating it, with errors that name the place."""

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, time
from functools import lru_cache
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
    beyond_table,
)
from montecarlo.claims.checks import (
    CONTROL,
    Check,
    Domain,
    Level,
    Relation,
    Threshold,
    Words,
)
from montecarlo.claims.recorded import FACTS, KINDS, RECORDED
from montecarlo.claims.schema import (
    SHARE,
    Catalogue,
    Claim,
    Interpretation,
    ModelSize,
    Passage,
    RecordEntry,
    SelfCheck,
    Sentence,
    Source,
    TextEntry,
    Topic,
    Value,
)
from montecarlo.claims.simulation import canonical_distributions
from montecarlo.claims.yardsticks import put_numbers
from montecarlo.errors import InputError, show
from montecarlo.estimation.summaries import offered_summaries, summaries_compared
from montecarlo.names import look_up, require_number, require_text
from montecarlo.sampling.design_points import (
    parse_dependence,
    parse_initialisation,
    parse_normalisation,
)
from montecarlo.small_files import parse_toml, read_small
from montecarlo.theory.limits import limit_of

#: Lists and tables within each other at most: three times what a claim needs.
MOST_NESTED = 30


class CatalogueError(InputError):
    """A catalogue that cannot be used; one line with file, claim and field."""


@contextmanager
def name_place(where: str, field: str) -> Iterator[None]:
    """Name the place in the message of an `InputError`."""
    try:
        yield
    except InputError as error:
        raise CatalogueError(f"{where}, field {field}: {error}") from None


_CONTROL = re.compile(f"[{CONTROL}]")


def validate_words(words: Words, where: str, *, own: bool) -> None:
    """Make sure that a text can be shown.

    Parameters
    ----------
    words : str or dict
    where : str
        File and claim, for the message.
    own : bool
        Whether it is a user's, which may be in several languages.

    Raises
    ------
    CatalogueError
        With one line: where, requirement and what came.
    """
    texts = [words] if isinstance(words, str) else list(words.values())
    if not texts or (words not in texts and not own):
        raise CatalogueError(f"{where}: must be a text, got {words!r}")
    for text in texts:
        if found := _CONTROL.search(text):
            raise CatalogueError(
                f"{where}: must have no control character, got {found[0]!a}"
            )


#: Fields that a relation needs, beside those that every check has.
_NEEDS = {
    "equals": {"expected", "tolerance"},
    "at_least": {"low"},
    "at_most": {"high"},
    "between": {"low", "high"},
    "slope_between": {"low", "high"},
    "ratio_of_ends_between": {"low", "high"},
    "tends_to": {"to"},
}
#: These may be open on one side.
_HALF_OPEN = {"slope_between", "ratio_of_ends_between"}


def validate_check(check: Check, where: str) -> None:
    """Make sure that a check can be decided.

    Parameters
    ----------
    check : Check
    where : str
        File, claim and interpretation, for the message.

    Raises
    ------
    CatalogueError
        With one line: where, field, requirement and what came.
    """
    with name_place(where, "quantity"):
        _require_quantity(check.quantity)
    with name_place(where, "divisor"):
        _require_divisor(check)
    allowed = {name: name for name in _summaries(check)}
    with name_place(where, "summary"):
        look_up("summary", check.summary, allowed)
    for distribution in check.domain.distributions:
        with name_place(where, "domain.distributions"):
            canonical = canonical_distributions(distribution)
        if distribution != canonical:
            raise CatalogueError(
                f"{where}, field domain.distributions: must be {canonical!r}, "
                f"got {distribution!r}"
            )
    for name in check.domain.dependence:
        with name_place(where, "domain.dependence"):
            _require_canonical(parse_dependence(name).name, name)
    if check.quantity in RECORDED:
        _require_recorded(check, where)
    else:
        _require_sampled(check, where)
    with name_place(where, "number_format"):
        look_up("number_format", check.number_format, NUMBER_FORMATS)
    with name_place(where, "softmax"):
        look_up("softmax", check.softmax, dict.fromkeys(SOFTMAXES))
    _require_acting(check, where)
    for field in ("d_k", "n_keys"):
        low, high = getattr(check.domain, field)
        if low > high:
            raise CatalogueError(
                f"{where}, field domain.{field}: must rise, got [{low}, {high}]"
            )
    _validate_levels(check, where)
    given = {
        field
        for field in ("expected", "tolerance", "low", "high", "to")
        if getattr(check, field) is not None
    }
    needs = _NEEDS[check.relation]
    open_sided = check.relation in _HALF_OPEN and given and given < needs
    if given != needs and not open_sided:
        needed = " and ".join(sorted(needs))
        got = ", ".join(sorted(given)) or "none"
        raise CatalogueError(
            f"{where}, field relation: {check.relation} needs {needed}, got {got}"
        )
    if check.relation == "tends_to":
        _validate_limit(check, where)
    if check.threshold is not None and check.threshold.bound not in given:
        raise CatalogueError(
            f"{where}, field threshold.bound: must be one of the bounds given, "
            f"got {check.threshold.bound!r}"
        )


def _require_sampled(check: Check, where: str) -> None:
    """Require canonical initialisations and normalisations, and no parts."""
    for name in check.domain.initialisation:
        with name_place(where, "domain.initialisation"):
            initialisation = parse_initialisation(name)
            _require_canonical(initialisation.name if initialisation else "", name)
    for name in check.domain.normalisation:
        with name_place(where, "domain.normalisation"):
            _require_canonical(parse_normalisation(name).name, name)
    if check.domain.part:
        raise CatalogueError(
            f"{where}, field domain.part: must be left out for {check.quantity}, which "
            f"is sampled, got {list(check.domain.part)}"
        )


def _require_recorded(check: Check, where: str) -> None:
    """Of what is on record a check chooses among what there is, and compares it."""
    quantity = RECORDED[check.quantity]
    for field, known in (
        ("initialisation", quantity.initialisations),
        ("part", quantity.parts),
    ):
        for name in getattr(check.domain, field):
            with name_place(where, f"domain.{field}"):
                look_up(field, name, dict.fromkeys(known))
    none = ("none",)
    left = {"distributions": (), "dependence": none, "normalisation": none}
    for field, default in left.items():
        if (given := getattr(check.domain, field)) != default:
            raise CatalogueError(
                f"{where}, field domain.{field}: must be left out for "
                f"{check.quantity}, which is on record, got {list(given)}"
            )
    if check.along_d_k or check.expected == "reference":
        raise CatalogueError(
            f"{where}, field relation: must compare {check.quantity}, which is on "
            f"record, with a number, got {check.relation}"
        )


def _require_acting(check: Check, where: str) -> None:
    """Refuse what the quantity does not read: it would seem to have been judged."""
    if check.quantity not in FORMAT_QUANTITIES:
        for field, default in (("number_format", "float64"), ("softmax", "shifted")):
            if (given := getattr(check, field)) != default:
                raise CatalogueError(
                    f"{where}, field {field}: must be left out for {check.quantity}, "
                    f"which has no number formats, got {given!r}; those that have: "
                    f"{', '.join(FORMAT_QUANTITIES)}"
                )
    n_keys = check.domain.n_keys
    rowless = check.quantity in PAIR_QUANTITIES or check.quantity in RECORDED
    if rowless and n_keys != Domain().n_keys:
        raise CatalogueError(
            f"{where}, field domain.n_keys: must be left out for {check.quantity}, "
            f"which has no rows, got {list(n_keys)}"
        )
    low, high = check.domain.d_k
    if check.along_d_k and low == high:
        raise CatalogueError(
            f"{where}, field domain.d_k: must hold several sizes for "
            f"{check.relation}, got [{low}, {high}]"
        )


def _validate_limit(check: Check, where: str) -> None:
    """Theory knows what becomes of some quantities, undivided, for Gaussian entries."""
    if check.divisor != "none" or check.domain.distributions != ("gaussian",):
        raise CatalogueError(
            f"{where}, field relation: tends_to needs the divisor none and the "
            f"distributions ['gaussian'], got {check.divisor!r} and "
            f"{list(check.domain.distributions)}"
        )
    usual = Domain()
    for name in ("normalisation", "dependence", "initialisation"):
        given = getattr(check.domain, name)
        if given != getattr(usual, name):
            raise CatalogueError(
                f"{where}, field domain.{name}: must be left out for tends_to, got "
                f"{list(given)}"
            )
    if limit_of(check.quantity, check.summary, check.domain.n_keys[0]) is None:
        raise CatalogueError(
            f"{where}, field relation: tends_to needs a quantity and summary whose "
            f"limit is known, got {check.quantity!r} and {check.summary!r}"
        )


def _require_canonical(canonical: str, given: str) -> None:
    if given != canonical:
        raise InputError(f"must be {canonical!r}, got {given!r}")


def _validate_levels(check: Check, where: str) -> None:
    """Bounds rise, and depend on sizes that a case has."""
    pairs = check.quantity in (*PAIR_QUANTITIES, *RECORDED)
    for field in ("expected", "low", "high"):
        level = getattr(check, field)
        for power, lacking in (("d_k_power", check.along_d_k), ("n_keys_power", pairs)):
            if isinstance(level, Level) and lacking and getattr(level, power) != 0.0:
                raise CatalogueError(
                    f"{where}, field {field}.{power}: must be 0 where a case has no "
                    f"such size, got {getattr(level, power)!r}"
                )
    bounds = {"low": check.low, "high": check.high}
    if check.threshold is not None:
        bounds |= {"start": check.threshold.start, "stop": check.threshold.stop}
    for first, last in (("low", "high"), ("start", "stop")):
        low, high = bounds.get(first), bounds.get(last)
        if not isinstance(low, float) or not isinstance(high, float):
            continue
        if low > high or (first == "start" and low == high):
            limit = "at most" if first == "low" else "below"
            raise CatalogueError(
                f"{where}, field {first}: must be {limit} {last}, {high!r}, got {low!r}"
            )


def _require_quantity(quantity: str) -> None:
    """Require the canonical name of something that is measured, or on record."""
    if quantity not in QUANTITIES:
        # facts of the texts have no symbol, and belong to our claims alone
        shown = {name: known for name, known in RECORDED.items() if known.symbol}
        look_up("quantity", quantity, {**QUANTITIES, **shown})
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
    if not ratios and not one.divisors((name,)):
        raise InputError(f"must be 'none' for {quantity}, got {name!r}")
    if one.of == "pairs":
        if not one.divided and name != "none":
            raise InputError(f"must be 'none' for {quantity}, got {name!r}")
        if parse_divisor(name).needs_keys:
            raise InputError(
                f"must not depend on n for {quantity}, which has no keys, got {name!r}"
            )


def _summaries(check: Check) -> tuple[str, ...]:
    """Name the summaries that a check's quantity has under its divisor."""
    if check.quantity in RECORDED:
        return (RECORDED[check.quantity].summary,)
    if check.quantity in PAIR_QUANTITIES:
        return ("value",)
    if check.quantity in FORMAT_QUANTITIES:
        return ("mean",)
    if "/" in check.divisor:
        return summaries_compared(ROW_QUANTITIES[check.quantity])
    asked = [summary for _, summary in beyond_table(check.quantity, check.summary)]
    return (*asked, *offered_summaries(ROW_QUANTITIES[check.quantity]))


_PLACEHOLDER = re.compile(r"%\((\w+)\)s")


def validate_sentence(
    sentence: Sentence,
    interpretations: Mapping[str, Interpretation],
    where: str,
    *,
    own: bool,
) -> None:
    """Make sure that a sentence says what it rests on, and that its numbers exist.

    Parameters
    ----------
    sentence : Sentence
    interpretations : mapping
        Those of its claim, by id.
    where : str
        File, claim and place, for the message.
    own : bool
        Whether it is a user's, who answers for it.

    Raises
    ------
    CatalogueError
        With one line: where, requirement and what came.
    """
    if not own and not sentence.is_bound:
        raise CatalogueError(
            f"{where}: must rest on interpretations or checks, or say why on "
            "none, got neither"
        )
    named = [
        v.interpretation
        for v in sentence.value.values()
        if v.interpretation is not None
    ]
    for name in (*sentence.interpretations, *named):
        with name_place(where, "interpretations"):
            look_up("interpretation", name, interpretations)
    for check in sentence.check:
        validate_check(check, where)
    for name, value in sentence.value.items():
        _validate_value(
            value, sentence, interpretations, f"{where}, field value.{name}"
        )
    for text in _texts(sentence.text, sentence.short):
        found = set(_PLACEHOLDER.findall(text))
        if not own and not found <= set(sentence.value):
            raise CatalogueError(
                f"{where}: must have a number for each placeholder, got "
                f"{sorted(found)} and {sorted(sentence.value)}"
            )


def _texts(*words: Words | None) -> Iterator[str]:
    """Yield words in each language that they are in."""
    for one in words:
        if one is not None:
            yield from [one] if isinstance(one, str) else one.values()


def _validate_value(
    value: Value,
    sentence: Sentence,
    interpretations: Mapping[str, Interpretation],
    where: str,
) -> None:
    """Require a number's check to be there."""
    checks = sentence.check
    if value.interpretation is not None:
        checks = interpretations[value.interpretation].check
    elif value.of in ("before", "after"):
        raise CatalogueError(
            f"{where}.of: must stand with an interpretation, got {value.of!r}"
        )
    if value.check >= len(checks):
        raise CatalogueError(
            f"{where}.check: must be below {len(checks)}, got {value.check}"
        )


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
    if path is not None:
        return read_own_catalogue(path)[0]
    source = files("montecarlo.claims").joinpath("catalogue.toml")
    return _parse_packaged(read_small(source.name, source), source.name)


@lru_cache(maxsize=4)
def _parse_packaged(content: bytes, name: str) -> Catalogue:
    return parse_catalogue(parse_toml(name, content), name)


def read_own_catalogue(path: Path) -> tuple[Catalogue, bytes]:
    """Read and validate a user's catalogue; returns it with the bytes of its file.

    Raises
    ------
    CatalogueError
        As `read_catalogue`.
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
    known = ["text", "claim", "self_check", "model"]
    known += ["language"] if own else ["passage", "record"]
    if unknown := set(data) - set(known):
        raise CatalogueError(
            f"{name}: entries must be {', '.join(known)}, got {min(unknown)!r}"
        )
    texts = tuple(_entries(data, "text", "key", TextEntry, name))
    claims = tuple(_entries(data, "claim", "id", Claim, name))
    self_checks = tuple(_entries(data, "self_check", "id", SelfCheck, name))
    models = tuple(_entries(data, "model", "name", ModelSize, name))
    passages = tuple(_entries(data, "passage", "id", Passage, name))
    records = tuple(_entries(data, "record", "claim", RecordEntry, name))
    language = data.get("language", "en") if own else None
    if not isinstance(language, str | None):
        raise CatalogueError(f"{name}: language must be a text, got {language!r}")
    catalogue = Catalogue(
        texts, claims, passages, self_checks, models, records, language
    )
    if own and not claims:
        raise CatalogueError(f"{name}: there must be a claim ([[claim]]), got none")
    for words, place in catalogue.words():
        validate_words(words, f"{name}: {place}", own=own)
    by_id = {claim.id: claim for claim in claims}
    for claim in claims:
        _validate_claim(claim, texts, f"{name}: claim {claim.id!r}", own=own)
        if claim.same is not None:
            with name_place(f"{name}: claim {claim.id!r}", "same"):
                look_up("claim", claim.same, by_id)
    for passage in passages:
        place = f"{name}: passage {passage.id!r}"
        validate_sentence(passage.sentence, {}, place, own=own)
    for self_check in self_checks:
        for check in self_check.check:
            validate_check(check, f"{name}: self_check {self_check.id!r}")
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
            yield msgspec.convert(_named(put_numbers(entry)), kind, strict=True)
        except InputError as error:
            raise CatalogueError(f"{name}: {table} {label}: {error}") from None
        except msgspec.ValidationError as error:
            message = str(error).replace(" - at `$.", ", at `").replace("`$`", "it")
            told = message + _choices(message)
            raise CatalogueError(f"{name}: {table} {label}: {told}") from None
    _unique([entry[key] for entry in entries], f"{name}: {table}.{key}")


def _named(value: Any) -> Any:  # noqa: ANN401 - what TOML holds
    """Return what a file holds, with each divisor called as it is in tables."""
    if isinstance(value, list):
        return [_named(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        field: name_divisor(str(one))
        if field == "divisor" and isinstance(one, str | int | float)
        else _named(one)
        for field, one in value.items()
    }


def _choices(message: str) -> str:
    """Name what a field may be, where a message says only what it is not."""
    if unknown := _UNKNOWN_FIELD.match(message):
        near = difflib.get_close_matches(unknown[1], sorted(_FIELDS), n=1)
        return f". Did you mean {near[0]!r}?" if near else ""
    for field, names in (("topic", get_args(Topic)), ("relation", get_args(Relation))):
        if message.startswith("Invalid enum value") and message.endswith(f"{field}`"):
            return f"; there are {', '.join(names)}"
    return ""


_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(\w+)`")
#: Every field that something in a catalogue may have.
_FIELDS = {
    field
    for kind in (
        *(TextEntry, Claim, Source, Sentence, Interpretation, Check, Domain, Level),
        *(Threshold, SelfCheck, ModelSize),
    )
    for field in kind.__struct_fields__
}


def _unique(values: list[str], where: str) -> None:
    for value in values:
        if values.count(value) > 1:
            raise CatalogueError(f"{where} must be unique, got {value!r} twice")


def _validate_claim(
    claim: Claim, texts: tuple[TextEntry, ...], where: str, *, own: bool
) -> None:
    _validate_kind(claim, where, own=own)
    keys = {text.key: text for text in texts}
    interpretations = {
        interpretation.id: interpretation for interpretation in claim.interpretation
    }
    for source in claim.source:
        with name_place(where, "source.text"):
            look_up("text", source.text, keys)
        for name in source.admits:
            with name_place(where, "source.admits"):
                look_up("interpretation", name, interpretations)
    _validate_interpretations(claim, where)
    if not own and claim.source:
        _validate_votes(claim, where)
    for sentence, place in claim.sentences():
        validate_sentence(sentence, interpretations, f"{where}, {place}", own=own)


def _validate_interpretations(claim: Claim, where: str) -> None:
    """Require interpretations with ids and checks."""
    _unique(
        [interpretation.id for interpretation in claim.interpretation],
        f"{where}: interpretation.id",
    )
    for interpretation in claim.interpretation:
        for check in interpretation.check:
            validate_check(check, f"{where}, interpretation {interpretation.id!r}")
        if interpretation.share != SHARE and interpretation.quantifier != "usually":
            raise CatalogueError(
                f"{where}, interpretation {interpretation.id!r}, field share: "
                f"must be left out for {interpretation.quantifier}, "
                f"got {interpretation.share!r}"
            )
        # a figure shows the outcomes of an interpretation over one threshold
        if sum(check.threshold is not None for check in interpretation.check) > 1:
            raise CatalogueError(
                f"{where}, interpretation {interpretation.id!r}, field threshold: "
                "must stand in one check at most, got several"
            )


def _validate_votes(claim: Claim, where: str) -> None:
    """Require that an interpretation votes if and only if a text says it so."""
    for interpretation in claim.interpretation:
        sources = [
            source
            for source in claim.source
            if interpretation.id in (source.admits or claim.admitted())
        ]
        said = (interpretation.quantifier, interpretation.form)
        if interpretation.beyond == bool(sources):
            raise CatalogueError(
                f"{where}, interpretation {interpretation.id!r}, field beyond: must be "
                f"{str(not sources).lower()}, got {str(interpretation.beyond).lower()}"
            )
        if sources and said not in {(s.quantifier, s.form) for s in sources}:
            raise CatalogueError(
                f"{where}, interpretation {interpretation.id!r}, field quantifier: "
                f"must be said so by a source that admits it, got {' '.join(said)}"
            )


def _validate_kind(claim: Claim, where: str, *, own: bool) -> None:
    """Require what a claim of its kind must have, and nothing else."""
    if claim.kind in KINDS:
        with name_place(where, "id"):
            look_up(f"claim of kind {claim.kind}", claim.id, FACTS)
    needed_fields = {"interpretation": claim.kind == "measured", "finding": True}
    for field, needed in needed_fields.items():
        given = bool(getattr(claim, field))
        if given != needed and not (own and field == "finding"):
            verb = "be there" if needed else "be left out"
            raise CatalogueError(
                f"{where}, field {field}: must {verb} for the kind {claim.kind!r}"
            )

"""Reading a catalogue from TOML and validating it, with errors that name the place."""

import difflib
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import msgspec

from montecarlo.attention.divisors import name_divisor
from montecarlo.claims.checks import Check, Domain, Level, Relation, Threshold
from montecarlo.claims.facts import FACTS, KINDS
from montecarlo.claims.rules import (
    CatalogueError,
    name_place,
    validate_check,
    validate_words,
)
from montecarlo.claims.schema import (
    SHARE,
    Catalogue,
    Claim,
    Interpretation,
    ModelSize,
    RecordEntry,
    SelfCheck,
    Source,
    TextEntry,
    Topic,
)
from montecarlo.claims.sentence_rules import validate_sentence
from montecarlo.claims.sentences import Passage, Sentence
from montecarlo.claims.yardsticks import put_numbers
from montecarlo.errors import InputError
from montecarlo.names import look_up
from montecarlo.small_files import parse_toml, read_small


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
    for claim in claims:
        _validate_claim(claim, texts, f"{name}: claim {claim.id!r}", own=own)
    for passage in passages:
        place = f"{name}: passage {passage.id!r}"
        validate_sentence(passage.sentence, {}, place, own=own)
    for self_check in self_checks:
        for check in self_check.check:
            validate_check(check, f"{name}: self_check {self_check.id!r}")
    return catalogue


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


#: Which fields a claim of each kind must have.
_NEEDED = {
    "measured": {"interpretation": True, "finding": True},
    "shape": {"interpretation": False, "finding": True},
    "record": {"interpretation": False, "finding": True},
    "practice": {"interpretation": False, "finding": True},
    "assumption": {"interpretation": False, "finding": True},
}


def _validate_kind(claim: Claim, where: str, *, own: bool) -> None:
    """Require what a claim of its kind must have, and nothing else."""
    if claim.kind in KINDS:
        with name_place(where, "id"):
            look_up(f"claim of kind {claim.kind}", claim.id, FACTS)
    for field, needed in _NEEDED[claim.kind].items():
        given = bool(getattr(claim, field))
        if given != needed and not (own and field == "finding"):
            verb = "be there" if needed else "be left out"
            raise CatalogueError(
                f"{where}, field {field}: must {verb} for the kind {claim.kind!r}"
            )

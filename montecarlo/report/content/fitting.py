"""Whether claims.json fits the catalogue that it is of, and tables fit themselves."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from montecarlo.attention.quantities import QUANTITIES
from montecarlo.claims.checks import Check
from montecarlo.claims.outcomes import (
    CheckOutcome,
    ClaimOutcome,
    Judgement,
    SentenceOutcome,
)
from montecarlo.claims.record import CLAIMS_FILE, ClaimsRecord
from montecarlo.claims.schema import Catalogue, Claim, Sentence
from montecarlo.estimation.failures import OVERFLOW
from montecarlo.estimation.summaries import RowKey
from montecarlo.names import look_up
from montecarlo.sampling.design_points import parse_point
from montecarlo.study.columns import MEASUREMENTS
from montecarlo.study.folder import ResultsError
from montecarlo.study.table import row_id

Line = Mapping[str, str | None]


class Named(Protocol):
    """What has an id."""

    @property
    def id(self) -> str:
        """Its id."""


def require_rows(lines: Iterable[Line], claims: Judgement) -> None:
    """Make sure that lines of measurements.csv have their names, and claims such names.

    Raises
    ------
    ResultsError
        One line: file, line, requirement, what came.
    """
    there: set[str] = set()
    for number, line in enumerate(lines, start=2):
        place, name = f"{MEASUREMENTS}, line {number},", str(line["row_id"])
        try:
            made = _name_of(line)
        except ValueError as error:
            raise ResultsError(f"{place} must say what was sampled: {error}") from None
        if made != name:
            raise ResultsError(f"{place} must have the row_id {made}, got {name}")
        if name in there:
            raise ResultsError(f"{place} must stand once, got {name} again")
        there.add(name)
    for name in _name_rows(claims):
        if name and name not in there:
            raise ResultsError(
                f"{CLAIMS_FILE} must name lines of {MEASUREMENTS}, got {name!r:.40}"
            )


def _name_of(line: Line) -> str:
    """Return the name that a line has by what identifies it."""
    text = {name: value or "" for name, value in line.items()}
    look_up("quantity", text["quantity"], {**QUANTITIES, OVERFLOW: None})
    point = parse_point(
        text["distribution_q"],
        text["distribution_k"],
        int(text["d_k"]),
        int(text["n_keys"]) if text["n_keys"] else None,
        text["dependence"],
        text["initialisation"],
    )
    names = ("divisor", "quantity", "summary", "number_format", "softmax")
    return row_id(point, RowKey(*(text[name] for name in names)))


def _name_rows(claims: Judgement) -> Iterator[str]:
    """Yield every name of a line that a record holds."""
    for check in (*claims.judged_checks(), *claims.said_checks()):
        for case in check.cases:
            yield from case.rows
    of_claims = (one for claim in claims.claims for one in claim.sentences())
    for sentence in (*of_claims, *claims.passages):
        yield from (number.row for number in sentence.numbers.values())


def require_catalogue(claims: ClaimsRecord, catalogue: Catalogue) -> None:
    """Make sure that outcomes are those of a catalogue: each of its parts, in order.

    Raises
    ------
    ResultsError
        One line: the file, the place, what the catalogue has, what came.
    """
    _require_same("ids of claims", _ids(catalogue.claim), _ids(claims.claims))
    for claim, outcome in zip(catalogue.claim, claims.claims, strict=True):
        _require_claim(claim, outcome)
    _require_same("ids of passages", _ids(catalogue.passage), _ids(claims.passages))
    for passage, said in zip(catalogue.passage, claims.passages, strict=True):
        _require_sentence(passage.sentence, said, f"passage {passage.id!r}")
    checks = catalogue.self_check
    _require_same("ids of self-checks", _ids(checks), _ids(claims.self_checks))
    for check, found in zip(checks, claims.self_checks, strict=True):
        _require_same(f"self-check {check.id!r}", check.check, _ask(found.checks))
    _require_same("models", catalogue.model, claims.models)
    _require_same("records", catalogue.record, claims.records)


def _require_claim(claim: Claim, outcome: ClaimOutcome) -> None:
    where, voting = f"claim {claim.id!r}", claim.admitted()
    for name in ("kind", "topic"):
        _require_same(
            f"{name} of {where}", getattr(claim, name), getattr(outcome, name)
        )
    _require_same(f"sources of {where}", claim.source, outcome.sources)
    texts = {source.text for source in claim.source}
    _require_same(f"texts of {where}", texts, set(outcome.texts))
    wanted, came = claim.interpretation, outcome.interpretations
    _require_same(f"interpretations of {where}", _ids(wanted), _ids(came))
    for one, found in zip(wanted, came, strict=True):
        place = f"interpretation {one.id!r} of {where}"
        _require_same(f"votes of {place}", one.id in voting, found.votes)
        for name in ("quantifier", "form", "share"):
            _require_same(
                f"{name} of {place}", getattr(one, name), getattr(found, name)
            )
        _require_same(f"checks of {place}", one.check, _ask(found.checks))
    _require_same(f"findings of {where}", len(claim.finding), len(outcome.findings))
    said = list(zip(claim.finding, outcome.findings, strict=True))
    right = None if claim.right is None else claim.right.as_sentence()
    for sentence, made in ((right, outcome.right), (claim.concedes, outcome.concedes)):
        if sentence is None or made is None:
            _require_same(f"sentences of {where}", sentence is None, made is None)
        else:
            said.append((sentence, made))
    for sentence, made in said:
        _require_sentence(sentence, made, where)


def _require_sentence(sentence: Sentence, said: SentenceOutcome, where: str) -> None:
    _require_same(f"checks of {where}", sentence.check, _ask(said.checks))
    wanted = set(sentence.value) if said.holds else set()
    _require_same(f"numbers of {where}", wanted, set(said.numbers))


def _ask(checks: Iterable[CheckOutcome]) -> tuple[Check, ...]:
    return tuple(check.asked for check in checks)


def _ids(entries: Iterable[Named]) -> list[str]:
    return [entry.id for entry in entries]


def _require_same(place: str, wanted: object, came: object) -> None:
    if wanted != came:
        raise ResultsError(
            f"{CLAIMS_FILE} must be of the claims of this version: {place} must be "
            f"{_shorten(wanted)}, got {_shorten(came)}"
        )


def _shorten(value: object) -> str:
    text = str(sorted(value)) if isinstance(value, set) else repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."

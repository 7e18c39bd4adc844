"""claims.json of a report: how everything came out, and what pages show beside it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pandas as pd

from montecarlo.attention.quantities import QUANTITIES
from montecarlo.calibration.card import Card, Counted, count_rate
from montecarlo.claims.checks import Check
from montecarlo.claims.outcomes import CheckOutcome, Judgement, SentenceOutcome
from montecarlo.claims.record import CLAIMS_FILE, ClaimsRecord
from montecarlo.claims.running import StudyResults
from montecarlo.claims.schema import Catalogue, Claim
from montecarlo.claims.sentences import Sentence
from montecarlo.estimation.failures import OVERFLOW
from montecarlo.estimation.summaries import RowKey
from montecarlo.literature.outcomes import LiteratureOutcome
from montecarlo.literature.record import read_literature_record
from montecarlo.names import look_up
from montecarlo.report.content.report_card import CardView, card_curves, view_card
from montecarlo.report.content.sensitivity import Sensitivity, read_sensitivity
from montecarlo.report.content.training import (
    TrainingView,
    training_curves,
    view_training,
)
from montecarlo.sampling.design_points import parse_point
from montecarlo.small_files import read_small
from montecarlo.study.columns import MEASUREMENTS
from montecarlo.study.folder import ResultsError
from montecarlo.study.table import row_id, tabulate_curves
from montecarlo.study.validating import about, require_whole, validate
from montecarlo.training.record import Record, read_language, read_record

#: What a study found, beside its numbers.
_FOUND = ("verdict", "outcome")
#: Bytes of a claims.json at most; that of the full preset has two million.
MOST_CLAIMS = 2**25


class ReportRecord(ClaimsRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """claims.json: how everything that is judged came out."""

    error_rate_counted: Annotated[
        Counted | None, about("what the nominal rate is worth; null: not counted")
    ] = None
    report_card: Annotated[
        CardView | None, about("the judge's report card; null: there is none")
    ] = None
    sensitivity: Annotated[
        Sensitivity | None, about("what other choices would change; null likewise")
    ] = None
    training: Annotated[
        TrainingView | None, about("what training says; null likewise")
    ] = None
    literature: Annotated[
        LiteratureOutcome | None, about("what papers say; null likewise")
    ] = None


def with_calibration(results: StudyResults, card: Card | None) -> StudyResults:
    """Put beside results what the judge's errors were counted to be, and its curves."""
    if card is None:
        return results
    rate = results.claims.simultaneous_error
    view = view_card(card, rate)
    return replace(
        results,
        curves=pd.concat([results.curves, card_curves(view, card)], ignore_index=True),
        claims=_with(
            results.claims, error_rate_counted=count_rate(card, rate), report_card=view
        ),
    )


def with_studies(results: StudyResults) -> StudyResults:
    """Put beside results what training and papers say, and what choices change."""
    record, papers = read_record(), read_literature_record()
    studies = _studies(record)
    claims = _with(results.claims, **studies)
    lines = (*training_curves(studies["training"], record), *papers.lines())
    curves = pd.concat([results.curves, tabulate_curves(lines)], ignore_index=True)
    return replace(results, curves=curves, claims=claims)


def _studies(record: Record) -> dict[str, Any]:
    """Return what claims.json says of studies that ship with the package."""
    return {
        "sensitivity": read_sensitivity(),
        "training": view_training(record, read_language()),
        "literature": read_literature_record().outcome,
    }


def require_fits(claims: ReportRecord, catalogue: Catalogue) -> None:
    """Make sure that pages can show a record: it has the parts that they look up.

    Its claims are those of the catalogue, with the same checks and numbers; each study
    beside them has the parts, names and sizes of the one that ships, or was left out.
    How all came out is the record's own.

    Raises
    ------
    ResultsError
        One line: the file, and the first place that is another.
    """
    of_version = f"{CLAIMS_FILE} must be of the %s of this version, got another %s"
    if place := _first_unlike(_asked(catalogue), _answered(claims), ""):
        raise ResultsError(of_version % ("claims", place))
    for name, sentence, outcome in _sentences(catalogue, claims):
        if outcome.holds and set(sentence.value) != set(outcome.numbers):
            raise ResultsError(of_version % ("claims", f"numbers of {name}"))
    card = claims.report_card
    if card and not all(len(one.worst) == len(card.rates) for one in card.grades):
        raise ResultsError(
            f"{CLAIMS_FILE} must have a number for each rate in report_card.grades"
        )
    if catalogue.language is not None:  # of one's own claims there are no studies
        return
    for name, ships in _studies(read_record()).items():
        came = msgspec.to_builtins(getattr(claims, name))
        shipped = msgspec.to_builtins(ships)
        if came is not None and (place := _first_unlike(shipped, came, name, _FOUND)):
            raise ResultsError(of_version % ("records", place))


def _asked(catalogue: Catalogue) -> dict[str, Any]:
    """Return the parts that a record of a catalogue has."""
    return {
        "claims": [
            {
                "id": claim.id,
                "kind": claim.kind,
                "topic": claim.topic,
                "sources": claim.source,
                "texts": {source.text for source in claim.source},
                "interpretations": [
                    {
                        "id": one.id,
                        "votes": one.id in claim.admitted(),
                        "said": (one.quantifier, one.form, one.share),
                        "checks": one.check,
                    }
                    for one in claim.interpretation
                ],
                "findings": len(claim.finding),
                "right": claim.right is not None,
                "concedes": claim.concedes is not None,
                "sentences": [one.check for one in _said(claim)],
            }
            for claim in catalogue.claim
        ],
        "passages": [(one.id, one.sentence.check) for one in catalogue.passage],
        "self_checks": [(one.id, one.check) for one in catalogue.self_check],
        "models": catalogue.model,
        "records": catalogue.record,
    }


def _answered(claims: ClaimsRecord) -> dict[str, Any]:
    """Return the same parts of a record."""
    return {
        "claims": [
            {
                "id": claim.id,
                "kind": claim.kind,
                "topic": claim.topic,
                "sources": claim.sources,
                "texts": set(claim.texts),
                "interpretations": [
                    {
                        "id": one.id,
                        "votes": one.votes,
                        "said": (one.quantifier, one.form, one.share),
                        "checks": _asked_by(one.checks),
                    }
                    for one in claim.interpretations
                ],
                "findings": len(claim.findings),
                "right": claim.right is not None,
                "concedes": claim.concedes is not None,
                "sentences": [_asked_by(one.checks) for one in claim.sentences()],
            }
            for claim in claims.claims
        ],
        "passages": [(one.id, _asked_by(one.checks)) for one in claims.passages],
        "self_checks": [(one.id, _asked_by(one.checks)) for one in claims.self_checks],
        "models": claims.models,
        "records": claims.records,
    }


def _asked_by(checks: Iterable[CheckOutcome]) -> tuple[Check, ...]:
    return tuple(check.asked for check in checks)


def _said(claim: Claim) -> list[Sentence]:
    """Return what may be said of a claim, in the order of its outcome's sentences."""
    return [sentence for sentence, place in claim.sentences() if place != "line"]


def _sentences(
    catalogue: Catalogue, claims: ClaimsRecord
) -> Iterator[tuple[str, Sentence, SentenceOutcome]]:
    """Yield every sentence with what it belongs to and how it came out."""
    for claim, outcome in zip(catalogue.claim, claims.claims, strict=True):
        for sentence, said in zip(_said(claim), outcome.sentences(), strict=True):
            yield f"claim {claim.id!r}", sentence, said
    for passage, said in zip(catalogue.passage, claims.passages, strict=True):
        yield f"passage {passage.id!r}", passage.sentence, said


def _first_unlike(
    wanted: object, came: object, place: str, found: Collection[str] = ()
) -> str:
    """Return the first place where data have other parts; empty where none.

    Where there are fields with what was ``found``, these may differ, and so may all
    numbers but d_k.
    """
    if isinstance(wanted, dict) and isinstance(came, dict):
        if wanted.keys() != came.keys():
            return place
        parts = [(f"{place}.{key}", wanted[key], came[key]) for key in wanted]
    elif isinstance(wanted, list | tuple) and isinstance(came, list | tuple):
        if len(wanted) != len(came):
            return place.lstrip(".")
        pairs = enumerate(zip(wanted, came, strict=True))
        parts = [(f"{place}[{number}]", *pair) for number, pair in pairs]
    else:
        name = place.rpartition(".")[2]
        both = (wanted, came)
        numbers = all(one is None or isinstance(one, int | float) for one in both)
        free = found and (name in found or (numbers and name != "d_k"))
        return "" if free or wanted == came else place.lstrip(".")
    unlike = (_first_unlike(one, two, where, found) for where, one, two in parts)
    return next(filter(None, unlike), "")


def require_rows(lines: Iterable[Mapping[str, str | None]], claims: Judgement) -> None:
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
    checks = (*claims.judged_checks(), *claims.said_checks())
    named = {name for check in checks for case in check.cases for name in case.rows}
    of_claims = (one for claim in claims.claims for one in claim.sentences())
    for sentence in (*of_claims, *claims.passages):
        named |= {number.row for number in sentence.numbers.values()}
    if lacking := sorted(named - there - {""}):
        raise ResultsError(
            f"{CLAIMS_FILE} must name lines of {MEASUREMENTS}, got {lacking[0]!r:.40}"
        )


def _name_of(line: Mapping[str, str | None]) -> str:
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


def _with(claims: ClaimsRecord, **beside: object) -> ReportRecord:
    """Return a record with further fields: numbers of pages come from results files."""
    return ReportRecord(**(msgspec.structs.asdict(claims) | beside))


def read_claims(folder: Path) -> ReportRecord:
    """Read claims.json of a folder.

    Raises
    ------
    ResultsError
        If it is not as its type says, or a field was left out; one line.
    """
    try:
        content = read_small(CLAIMS_FILE, folder / CLAIMS_FILE, MOST_CLAIMS)
        claims = msgspec.json.decode(content)
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise ResultsError(f"{CLAIMS_FILE} must be JSON, got none: {reason}") from None
    record = validate(claims, ReportRecord, CLAIMS_FILE)
    require_whole(claims, record, CLAIMS_FILE)
    return record

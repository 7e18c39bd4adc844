"""claims.json of a report: how everything came out, and what pages show beside it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pandas as pd

from montecarlo.attention.quantities import QUANTITIES
from montecarlo.claims.checks import Check
from montecarlo.claims.outcomes import (
    InterpretationOutcome,
    Judgement,
    SelfCheckOutcome,
    SentenceOutcome,
)
from montecarlo.claims.papers import PapersOutcome, read_papers_record
from montecarlo.claims.record import CLAIMS_FILE, ClaimsRecord
from montecarlo.claims.running import StudyResults
from montecarlo.claims.schema import Catalogue, Sentence
from montecarlo.estimation.engine import OVERFLOW
from montecarlo.estimation.summaries import RowKey
from montecarlo.names import look_up
from montecarlo.records.training import Record, read_language, read_record
from montecarlo.report.content.training import (
    TrainingView,
    training_curves,
    view_training,
)
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.small_files import read_small
from montecarlo.study.columns import MEASUREMENTS, row_id
from montecarlo.study.curves import tabulate_curves
from montecarlo.study.folder import ResultsError
from montecarlo.study.validating import about, require_whole, validate

#: Bytes of a claims.json at most; that of the full preset has two million.
MOST_CLAIMS = 2**25


class ReportRecord(ClaimsRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """claims.json: how everything that is judged came out."""

    training: Annotated[
        TrainingView | None, about("what training says; null: it was left out")
    ] = None
    literature: Annotated[
        PapersOutcome | None, about("what papers say; null likewise")
    ] = None


def with_studies(results: StudyResults) -> StudyResults:
    """Put beside results what training and papers say."""
    record, papers = read_record(), read_papers_record()
    studies = _studies(record)
    lines = (*training_curves(studies["training"], record), *papers.curves)
    curves = pd.concat([results.curves, tabulate_curves(lines)], ignore_index=True)
    return replace(results, curves=curves, claims=_with(results.claims, **studies))


def _with(claims: ClaimsRecord, **beside: object) -> ReportRecord:
    """Return a record with further fields: numbers of pages come from results files."""
    return ReportRecord(**(msgspec.structs.asdict(claims) | beside))


def _studies(record: Record) -> dict[str, Any]:
    """Return what claims.json says of studies that ship with the package."""
    return {
        "training": view_training(record, read_language()),
        "literature": read_papers_record().outcome,
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
    for place, wanted, came in _parts(catalogue, claims):
        if wanted != came:
            raise ResultsError(of_version % ("claims", place))
    if catalogue.language is not None:  # of one's own claims there are no studies
        return
    for name, ships in _studies(read_record()).items():
        found = getattr(claims, name)
        if found is not None and _fixed(ships) != _fixed(found):
            raise ResultsError(of_version % ("records", name))


def _parts(
    catalogue: Catalogue, claims: ClaimsRecord
) -> Iterator[tuple[str, object, object]]:
    """Yield each part that must be the catalogue's: its place, it, and what came.

    Later parts have places only where earlier ones agree.
    """
    for name, entries, outcomes in (
        ("claims", catalogue.claim, claims.claims),
        ("passages", catalogue.passage, claims.passages),
        ("self-checks", catalogue.self_check, claims.self_checks),
    ):
        yield f"ids of {name}", [one.id for one in entries], [o.id for o in outcomes]
    sentences: list[tuple[str, Sentence, SentenceOutcome]] = []
    for claim, outcome in zip(catalogue.claim, claims.claims, strict=True):
        at, voting = f"claim {claim.id!r}", claim.admitted()
        wanted = [
            (one.id, one.id in voting, one.quantifier, one.form, one.share, one.check)
            for one in claim.interpretation
        ]
        came = [
            (one.id, one.votes, one.quantifier, one.form, one.share, _asked(one))
            for one in outcome.interpretations
        ]
        yield f"interpretations of {at}", wanted, came
        texts = {source.text for source in claim.source}
        number = len(claim.finding), claim.right is None, claim.concedes is None
        there = len(outcome.findings), outcome.right is None, outcome.concedes is None
        yield f"kind of {at}", claim.kind, outcome.kind
        yield f"topic of {at}", claim.topic, outcome.topic
        yield f"sources of {at}", claim.source, outcome.sources
        yield f"texts of {at}", texts, set(outcome.texts)
        yield f"sentences of {at}", number, there
        said = (one for one, place in claim.sentences() if place != "line")
        pairs = zip(said, outcome.sentences(), strict=True)
        sentences += [(at, sentence, found) for sentence, found in pairs]
    for passage, told in zip(catalogue.passage, claims.passages, strict=True):
        sentences.append((f"passage {passage.id!r}", passage.sentence, told))
    for at, sentence, found in sentences:
        yield f"checks of {at}", sentence.check, _asked(found)
        if found.holds:  # otherwise nobody looks for its numbers
            yield f"numbers of {at}", set(sentence.value), set(found.numbers)
    for check, judged in zip(catalogue.self_check, claims.self_checks, strict=True):
        yield f"self-check {check.id!r}", check.check, _asked(judged)
    yield "models", catalogue.model, claims.models
    yield "records", catalogue.record, claims.records


def _asked(
    judged: InterpretationOutcome | SentenceOutcome | SelfCheckOutcome,
) -> tuple[Check, ...]:
    return tuple(check.asked for check in judged.checks)


def _fixed(study: object, name: str = "") -> object:
    """Return a study without what it found: verdicts, outcomes, numbers but d_k."""
    plain = msgspec.to_builtins(study)
    if isinstance(plain, dict):
        return {key: _fixed(value, key) for key, value in plain.items()}
    if isinstance(plain, list | tuple):
        return [_fixed(value) for value in plain]
    is_number = plain is None or isinstance(plain, int | float)
    found = name in {"verdict", "outcome"} or (is_number and name != "d_k")
    return None if found else plain


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
    if text["quantity"] not in QUANTITIES:
        look_up("quantity", text["quantity"], {**QUANTITIES, OVERFLOW: None})
    point = _point(*(text[name] for name in _OF_POINT))
    names = ("divisor", "quantity", "summary", "number_format", "softmax")
    return row_id(point, RowKey(*(text[name] for name in names)))


#: Columns that name a design point.
_OF_POINT = (
    *("distribution_q", "distribution_k", "d_k", "n_keys"),
    *("dependence", "initialisation", "normalisation"),
)


@lru_cache(maxsize=4096)  # a point has a hundred lines
def _point(q: str, k: str, d_k: str, n_keys: str, *others: str) -> DesignPoint:
    return parse_point(q, k, int(d_k), int(n_keys) if n_keys else None, *others)


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

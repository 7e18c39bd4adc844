"""What claims.json may hold, field by field."""

import json
from pathlib import Path
from typing import Annotated, Any

from msgspec import UNSET, Struct, UnsetType

from montecarlo.calibration.card import Counted
from montecarlo.claims.checks import Domain, Level, Limiting, Relation
from montecarlo.claims.schema import (
    Form,
    ModelSize,
    Quantifier,
    RecordEntry,
    Source,
    Topic,
)
from montecarlo.claims.verdicts import Verdict
from montecarlo.report.report_card import CardView
from montecarlo.report.sensitivity import Sensitivity
from montecarlo.report.trained import TrainedModel
from montecarlo.report.z_scores import ZScoresView
from montecarlo.results.columns import Finite
from montecarlo.results.folder import ResultsError
from montecarlo.results.validating import about, validate
from montecarlo.run_record import CLAIMS_FILE
from montecarlo.small_files import read_small

#: Bytes of a claims.json at most; that of the full preset has two million.
MOST_CLAIMS = 2**25

Size = Annotated[int, about("", ge=1, le=2**24)]
Outcome = Annotated[Verdict, about("how it came out")]


class _Record(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of claims.json."""


class PlaceRecord(_Record, frozen=True, kw_only=True):
    """A place that an interpretation looks at, and how it came out there."""

    distribution: Annotated[str, about("distribution of Q and K, or `q * k`")]
    n_keys: Annotated[Size | None, about("keys of a row; null: pairs")]
    context: Annotated[str, about("dependence or initialisation; empty: neither")]
    d_k: Annotated[Size | None, about("null: a series over all of them")]
    outcome: Outcome


class BorderRecord(_Record, frozen=True, kw_only=True):
    """Two neighbouring places between which the outcome changes."""

    distribution: Annotated[str, about("as of a place")]
    n_keys: Annotated[Size | None, about("as of a place")]
    context: Annotated[str, about("as of a place")]
    d_k: Annotated[tuple[Size, Size], about("before and after")]
    outcomes: Annotated[tuple[Verdict, Verdict], about("likewise")]


class LimitRecord(_Record, frozen=True, kw_only=True):
    """What becomes of a row as d_k grows without bound, exactly."""

    tends_to: Annotated[Limiting, about("what it tends to")]
    kind: Annotated[str, about("how fast: a power, or an exponential")]
    exponent: Annotated[Finite | None, about("of that power")]
    constant: Annotated[Finite | None, about("what stands before it, or the limit")]


class CaseRecord(_Record, frozen=True, kw_only=True):
    """A check at one place: an estimate, its interval, the region, the outcome."""

    distribution: Annotated[str, about("as of a place")]
    n_keys: Annotated[Size | None, about("as of a place")]
    context: Annotated[str, about("as of a place")]
    d_k: Annotated[Size | None, about("as of a place")]
    d_k_range: Annotated[tuple[Size, Size], about("smallest and largest d_k of it")]
    rows: Annotated[tuple[str, ...], about("row_id of its lines in measurements.csv")]
    estimate: Annotated[Finite | None, about("null: none", "the quantity's")]
    std_error: Annotated[Finite | None, about("its standard error", "the quantity's")]
    n_replicates: Annotated[int | None, about("replicates it is made of")]
    simultaneous_low: Annotated[
        Finite | None, about("lower end; null: none or infinite")
    ]
    simultaneous_high: Annotated[Finite | None, about("upper end; null likewise")]
    region_low: Annotated[Finite | None, about("of what is claimed; null: open")]
    region_high: Annotated[Finite | None, about("likewise")]
    exact: Annotated[Finite | None, about("exact value; null: none known")]
    limit: Annotated[LimitRecord | None, about("null: none known")]
    outcome: Outcome
    replicates_needed: Annotated[
        int | None, about("to decide it, about; null: decided, or too close to call")
    ]


class CheckRecord(_Record, frozen=True, kw_only=True):
    """A check, as the catalogue has it, and its cases."""

    quantity: Annotated[str, about("what is looked at")]
    summary: Annotated[str, about("value, mean or quantile")]
    divisor: Annotated[str, about("what scores are divided by")]
    number_format: Annotated[str, about("what they are kept in")]
    softmax: Annotated[str, about("how weights are made of them")]
    relation: Annotated[Relation, about("what must hold")]
    expected: Annotated[
        float | Level | str | None, about("of `equals`: a value, or `reference`")
    ]
    tolerance: Annotated[Finite | None, about("of `equals`, as a part of the value")]
    low: Annotated[float | Level | None, about("lower bound; null: open")]
    high: Annotated[float | Level | None, about("upper bound; null: open")]
    to: Annotated[Limiting | None, about("of `tends_to`")]
    domain: Annotated[Domain, about("where a text speaks")]
    cases: Annotated[tuple[CaseRecord, ...], about("one a place")]


class NumberRecord(_Record, frozen=True, kw_only=True):
    """A number of a sentence."""

    value: Annotated[Finite, about("the number", "the quantity's")]
    std_error: Annotated[Finite | None, about("null: a count or an exact value")]
    row: Annotated[str, about("row_id of its line; empty: of none, or of several")]
    percent: Annotated[bool, about("whether it is shown in per cent")]


class SentenceRecord(_Record, frozen=True, kw_only=True):
    """Whether a sentence of the catalogue may be said, and its numbers."""

    holds: Annotated[bool, about("whether all that it asserts came out so")]
    numbers: Annotated[dict[str, NumberRecord], about("by name; none unless it holds")]
    checks: Annotated[tuple[CheckRecord, ...], about("what it rests on")]


class PassageRecord(SentenceRecord, frozen=True, kw_only=True):
    """The same, of a sentence that belongs to no claim."""

    id: Annotated[str, about("of the catalogue")]


class InterpretationRecord(_Record, frozen=True, kw_only=True):
    """One precise meaning of a claim, and how it came out."""

    id: Annotated[str, about("of the catalogue")]
    quantifier: Annotated[Quantifier, about("how it is said")]
    form: Annotated[Form, about("outright, or as an implication")]
    share: Annotated[Finite, about("of the places, that `usually` asks for")]
    verdict: Outcome
    places: Annotated[tuple[PlaceRecord, ...], about("where it was looked at")]
    borders: Annotated[tuple[BorderRecord, ...], about("where the outcome changes")]
    checks: Annotated[tuple[CheckRecord, ...], about("what must hold", min_length=1)]
    votes: Annotated[bool, about("whether a text says it so")]


class ClaimRecord(_Record, frozen=True, kw_only=True):
    """A claim, and how it came out."""

    id: Annotated[str, about("of the catalogue")]
    kind: Annotated[str, about("`measured`, or why not")]
    topic: Annotated[Topic, about("what it is about")]
    sources: Annotated[tuple[Source, ...], about("where texts say it, and how")]
    verdict: Outcome
    error_rate: Annotated[
        float | UnsetType, about("nominal, of it alone; may be left out")
    ] = UNSET
    texts: Annotated[dict[str, Verdict], about("by key: as each text says it")]
    interpretations: Annotated[tuple[InterpretationRecord, ...], about("its meanings")]
    findings: Annotated[tuple[SentenceRecord, ...], about("what may be said of it")]
    right: Annotated[SentenceRecord | None, about("what would be right; null: none")]
    concedes: Annotated[SentenceRecord | None, about("what is right in it")]


class SelfCheckRecord(_Record, frozen=True, kw_only=True):
    """A self-check, and how it came out."""

    id: Annotated[str, about("of the catalogue")]
    verdict: Outcome
    checks: Annotated[tuple[CheckRecord, ...], about("what must hold")]


class ClaimsRecord(_Record, frozen=True, kw_only=True):
    """claims.json: how everything that is judged came out."""

    error_rate: Annotated[float, about("nominal error rate of all of it", gt=0, lt=1)]
    simultaneous_error: Annotated[
        float, about("of one end of one simultaneous interval", gt=0, lt=1)
    ]
    looks: Annotated[
        int | UnsetType, about("at all statistics together; may be left out")
    ] = UNSET
    claims: Annotated[tuple[ClaimRecord, ...], about("in the catalogue's order")]
    passages: Annotated[tuple[PassageRecord, ...], about("likewise")]
    self_checks: Annotated[tuple[SelfCheckRecord, ...], about("likewise")]
    z_scores: Annotated[
        ZScoresView | UnsetType, about("distances to exact values; may be left out")
    ] = UNSET
    models: Annotated[tuple[ModelSize, ...], about("published sizes of models")]
    records: Annotated[tuple[RecordEntry, ...], about("published facts")]
    error_rate_counted: Annotated[
        Counted | UnsetType, about("what the nominal rate is worth; may be left out")
    ] = UNSET
    report_card: Annotated[
        CardView | UnsetType, about("the judge's report card; may be left out")
    ] = UNSET
    trained_model: Annotated[
        TrainedModel | UnsetType, about("the claims on a trained model; likewise")
    ] = UNSET
    sensitivity: Annotated[
        Sensitivity | UnsetType, about("what other choices would change; likewise")
    ] = UNSET


def read_claims(folder: Path) -> dict[str, Any]:
    """Read claims.json of a folder.

    Raises
    ------
    ResultsError
        If it is not as its type says; one line.
    """
    try:
        content = read_small(CLAIMS_FILE, folder / CLAIMS_FILE, MOST_CLAIMS)
        claims = json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise ResultsError(f"{CLAIMS_FILE} must be JSON, got none: {reason}") from None
    validate(claims, ClaimsRecord, CLAIMS_FILE)
    return dict(claims)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")

"""How everything came out: what the judge writes, claims.json holds and pages read.

And reading run.json of a folder of results that has a claims.json.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from montecarlo.claims.checks import Check
from montecarlo.claims.schema import (
    Form,
    ModelSize,
    Omitted,
    RecordEntry,
    Source,
    Topic,
)
from montecarlo.claims.verdicts import (
    DECIDED,
    Outcome,
    Quantifier,
    Reason,
    Ruling,
    Verdict,
    all_of,
    decide,
    decide_exactly,
    replicates_needed,
)
from montecarlo.claims.z_scores import ZScores
from montecarlo.errors import InputError
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import Interval, factor_of, round_end
from montecarlo.small_files import read_small
from montecarlo.study.folder import RUN_FILE, read_run
from montecarlo.study.measured import MEASUREMENTS
from montecarlo.theory.limits import Limit


class Located(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where something was decided; a field that has no meaning there is empty."""

    #: of Q and K, or `q * k`
    distribution: str = ""
    #: how K is drawn given Q
    dependence: str = "none"
    #: what stands before q and k; empty: nothing
    initialisation: str = ""
    #: what is done to each query and key
    normalisation: str = "none"
    #: which keys a query sees
    mask: str = "none"
    #: number format and softmax, where these are compared
    arithmetic: str = ""
    #: an array, a model, an optimiser; empty: simulated
    part: str = ""
    #: keys of a row; null: pairs
    n_keys: int | None = None
    #: null: a series over all of them
    d_k: int | None = None

    @property
    def context(self) -> str:
        """What there is beside distribution and sizes; empty: nothing."""
        dependence = "" if self.dependence == "none" else self.dependence
        if self.part:
            return f"{self.part} {self.initialisation}".strip()
        found = self.arithmetic or dependence or self.initialisation
        named = [one for one in (self.normalisation, self.mask) if one != "none"]
        return " ".join([found, *named]).strip()


def locate(case: Located, **changed: None) -> Located:
    """Return where something was decided, without how it came out."""
    fields = {name: getattr(case, name) for name in Located.__struct_fields__}
    return Located(**(fields | changed))


class Case(Located, frozen=True, kw_only=True):
    """A check in one case: what evidence has for it, the region, the outcome."""

    #: smallest and largest d_k; null: has none
    d_k_range: tuple[int, int] | None = None
    #: row_id of its lines in measurements.csv
    rows: tuple[str, ...] = ()
    #: null: none
    estimate: float | None = None
    #: its standard error
    std_error: float | None = None
    #: replicates it is made of
    n_replicates: int | None = None
    #: lower end; null: none or infinite
    simultaneous_low: float | None = None
    #: upper end; null likewise
    simultaneous_high: float | None = None
    #: of the equivalence region; null: open
    region_low: float | None = None
    region_high: float | None = None
    #: exact value; null: none known
    exact: float | None = None
    #: what becomes of it as d_k grows without bound; null: none known
    limit: Limit | None = None
    outcome: Outcome = Outcome.NOT_APPLICABLE
    #: whether the exact value decided what the sample left undecided
    by_theory: bool = False
    #: for the sample to decide it, about; null: it did, or is too close to
    replicates_needed: int | None = None

    @property
    def is_exact(self) -> bool:
        """Whether theory or algebra decided it, not a sample or a record of runs."""
        computed = self.exact is not None and not self.rows
        return self.by_theory or self.limit is not None or computed

    @property
    def row(self) -> str:
        """Name of its line; empty where it is made of several: a slope, a ratio."""
        return self.rows[0] if len(self.rows) == 1 else ""

    @property
    def is_binned(self) -> bool:
        """Whether a row is known to a bin of a histogram, and has no own error."""
        known = self.estimate, self.simultaneous_low, self.simultaneous_high
        return bool(self.rows) and self.std_error is None and None not in known

    @property
    def is_wide(self) -> bool:
        """Whether its interval, not an error on either side, says how well it is known.

        So of a share that may be 0 or 1, and of what is known to a factor.
        """
        low, high = self.interval
        is_end = low == 0.0 or (high == 1.0 and low >= 0.0)
        return is_end or factor_of(low, high) is not None

    @property
    def region(self) -> tuple[float, float]:
        """The values that count as agreement, both ends included."""
        return _infinite(self.region_low, self.region_high)

    @property
    def interval(self) -> tuple[float, float]:
        """The simultaneous interval; without bounds where there is none."""
        return _infinite(self.simultaneous_low, self.simultaneous_high)


def _infinite(low: float | None, high: float | None) -> tuple[float, float]:
    return (-math.inf if low is None else low, math.inf if high is None else high)


def finite(value: float) -> float | None:
    """Return a number that JSON has: an open end is null."""
    return value if math.isfinite(value) else None


def shorten(value: float) -> float | None:
    """Return six digits of what is itself an estimate of an error."""
    return finite(float(f"{value:.6g}"))


def ends(
    interval: Interval, region: tuple[float, float]
) -> tuple[float | None, float | None]:
    """Round ends outwards to six digits, or as many as compare as they do.

    What lies in the interval lies in what is kept of it.
    """
    return _end(interval.low, region, up=False), _end(interval.high, region, up=True)


def _end(value: float, region: tuple[float, float], *, up: bool) -> float | None:
    kept = (round_end(value, digits, up=up) for digits in range(6, 17))
    sides = [(value > end) - (value < end) for end in region]
    for short in kept:
        if [(short > end) - (short < end) for end in region] == sides:
            return finite(short)
    return finite(value)


def case_on(  # noqa: PLR0913 - what evidence may have
    check: Check,
    where: Located,
    region: tuple[float, float],
    estimate: Estimate | None,
    rate: float,
    *,
    exact: float | None = None,
    limit: Limit | None = None,
    most: int | None = None,
    by_theory: bool = True,
    **found: Any,  # noqa: ANN401 - fields of a case
) -> Case:
    """Return a case of a check as evidence has it, and how it came out.

    Parameters
    ----------
    check : Check
    where : Located
    region : (float, float)
        The values that count as agreement, both ends included.
    estimate : Estimate or None
        None where the check is not applicable.
    rate : float
        That the simultaneous interval states on each side.
    exact : float, optional
        What theory gives for the estimate.
    limit : Limit, optional
        What theory gives for growing d_k, and decides.
    most : int, optional
        Replicates at most; by default no more can be had.
    by_theory : bool
        Whether an exact value decides what the sample leaves undecided; never what is
        held against that value itself.
    **found
        ``rows`` and ``d_k_range``.
    """
    fields = msgspec.structs.asdict(where) | found
    fields |= {"region_low": finite(region[0]), "region_high": finite(region[1])}
    if estimate is None:
        return Case(**fields)
    fields |= {
        "estimate": finite(estimate.value),
        "std_error": shorten(estimate.reported_error),
        "n_replicates": estimate.n_replicates,
        "exact": None if exact is None else finite(exact),
    }
    if limit is not None:
        agrees = limit.tends_to == check.to
        outcome = Outcome.SUPPORTED if agrees else Outcome.REFUTED
        return Case(**fields, limit=limit, outcome=outcome)
    interval, needed = estimate.interval(rate), None
    outcome = decide(interval, region)
    undecided = outcome == Outcome.UNDECIDED
    if undecided and most is not None:
        needed = replicates_needed(estimate, region, rate, most)
    if undecided and by_theory and exact is not None and check.expected != "reference":
        outcome = decide_exactly(exact, region)
    low, high = ends(interval, region)
    return Case(
        **fields,
        simultaneous_low=low,
        simultaneous_high=high,
        outcome=outcome,
        by_theory=undecided and outcome != Outcome.UNDECIDED,
        replicates_needed=needed,
    )


class CheckOutcome(Check, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A check, as the catalogue has it, and its cases."""

    #: where it was decided
    cases: tuple[Case, ...] = ()

    @property
    def asked(self) -> Check:
        """The check alone."""
        return Check(*(getattr(self, name) for name in Check.__struct_fields__))


def join_by_case(checks: Iterable[CheckOutcome]) -> tuple[Case, ...]:
    """Return each case of some checks, with how all of them came out there.

    By distribution, context, number of keys and d_k.
    """
    joined: dict[Located, list[Case]] = {}
    for check in checks:
        for case in check.cases:
            joined.setdefault(locate(case), []).append(case)

    # checks may differ in their domains, so the cases come in no order
    def order(case: Located) -> tuple[object, ...]:
        return case.distribution, case.context, case.n_keys or 0, case.d_k or 0

    return tuple(
        Case(
            **msgspec.structs.asdict(where),
            outcome=all_of(case.outcome for case in joined[where]),
            by_theory=all(case.is_exact for case in joined[where]),
        )
        for where in sorted(joined, key=order)
    )


def find_borders(cases: Sequence[Case]) -> Iterator[tuple[Case, Case]]:
    """Yield cases of neighbouring d_k that came out differently, all else equal.

    Parameters
    ----------
    cases : sequence of Case
        By distribution, context, number of keys and d_k.
    """
    decided = [c for c in cases if c.outcome in DECIDED and c.d_k is not None]
    for before, after in pairwise(decided):
        alike = locate(before, d_k=None) == locate(after, d_k=None)
        if alike and before.outcome != after.outcome:
            yield before, after


class InterpretationOutcome(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True
):
    """One precise meaning of a claim, and how it came out."""

    #: of the catalogue
    id: str
    #: how it is said
    quantifier: Quantifier
    #: outright, or as an implication
    form: Form
    #: the premise that it omits and that may decide it; empty: none
    omits: Omitted = ""
    #: whether a text says it so
    votes: bool
    #: the tested proposition, in English; empty: none
    tested: str = ""
    #: words of degree that have no measure in their text
    words: tuple[str, ...] = ()
    verdict: Verdict
    #: why
    reason: Reason
    #: what must hold
    checks: tuple[CheckOutcome, ...]

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """Where it was looked at, with how all its checks came out there."""
        return join_by_case(self.checks)

    @cached_property
    def borders(self) -> list[tuple[Case, Case]]:
        """Cases between which the outcome changes."""
        return list(find_borders(self.cases))


class NumberOutcome(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A number of a sentence."""

    #: the number
    value: float
    #: null: a count, size or exact value
    std_error: float | None
    #: row_id of its line; empty: of none, or of several
    row: str
    #: whether it is shown in per cent
    percent: bool
    #: most of its digits where it is read in passing
    digits: int = 3


class SentenceOutcome(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether a sentence of the catalogue may be said, and its numbers."""

    #: whether all that it asserts came out so
    holds: bool
    #: by name; none unless it holds
    numbers: dict[str, NumberOutcome]
    #: what it rests on
    checks: tuple[CheckOutcome, ...]


class PassageOutcome(SentenceOutcome, frozen=True, kw_only=True):
    """The same, of a sentence that belongs to no claim."""

    #: of the catalogue
    id: str


class ClaimOutcome(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A claim, and how it came out."""

    #: of the catalogue
    id: str
    #: `measured`, or why not
    kind: str
    #: what it is about
    topic: Topic
    #: where texts say it, and how
    sources: tuple[Source, ...]
    verdict: Verdict
    #: why
    reason: Reason
    #: nominal, of all its checks
    error_rate: float
    #: the tested proposition where interpretations have none
    tested: str = ""
    #: whether its rule was changed after results had been seen
    changed: bool = False
    #: by key: as each text says it
    texts: dict[str, Ruling]
    #: its meanings
    interpretations: tuple[InterpretationOutcome, ...]
    #: what may be said of it
    findings: tuple[SentenceOutcome, ...]
    #: what would be right; null: none
    right: SentenceOutcome | None
    #: what is right in it
    concedes: SentenceOutcome | None

    @property
    def rulings(self) -> set[Ruling]:
        """Return the ruling on it, and those on the propositions that texts state."""
        voting = (one for one in self.interpretations if one.votes)
        rulings = {Ruling(one.verdict, one.reason) for one in voting}
        return {Ruling(self.verdict, self.reason), *rulings}

    @property
    def verdicts(self) -> set[Verdict]:
        """Its verdict, and those on the propositions that texts state."""
        return {ruling.verdict for ruling in self.rulings}

    def verdicts_on(self, source: Source) -> set[Verdict]:
        """Return the verdicts on what is said in one place."""
        said = {
            one.verdict
            for one in self.interpretations
            if one.votes and (not source.admits or one.id in source.admits)
        }
        return said or {self.verdict}

    def sentences(self) -> Iterator[SentenceOutcome]:
        """Yield all that a page may say of it."""
        yield from self.findings
        yield from (one for one in (self.right, self.concedes) if one is not None)


class SelfCheckOutcome(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A self-check, and how it came out."""

    #: of the catalogue
    id: str
    outcome: Outcome
    #: what must hold
    checks: tuple[CheckOutcome, ...]


class Calibration(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How often intervals missed in trials, and how that is paid for."""

    #: one-sided rate that was stated in trials
    rate: float
    #: as often as stated the worst of them missed
    times: float
    #: the share of one end of an interval, by its kind; that is its stated rate
    divided_by: dict[str, float]


CLAIMS_FILE = "claims.json"


class ClaimsRecord(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """claims.json: how everything that is judged came out."""

    #: in the catalogue's order
    claims: tuple[ClaimOutcome, ...]
    passages: tuple[PassageOutcome, ...]
    self_checks: tuple[SelfCheckOutcome, ...]
    #: nominal error rate of all of it
    error_rate: float
    #: that of one end of an interval at one look
    simultaneous_error: float
    #: how often intervals missed in trials
    calibration: Calibration
    #: interim analyses of all statistics together
    analyses: int
    #: distances to exact values
    z_scores: ZScores
    #: published sizes of models
    models: tuple[ModelSize, ...]
    #: published facts
    records: tuple[RecordEntry, ...]

    def judged_checks(self, *, voting: bool = False) -> Iterator[CheckOutcome]:
        """Yield every check of claims and self-checks.

        ``voting``: of claims only those that a verdict is made of.
        """
        for claim in self.claims:
            for interpretation in claim.interpretations:
                if interpretation.votes or not voting:
                    yield from interpretation.checks
        for self_check in self.self_checks:
            yield from self_check.checks

    def said_checks(self) -> Iterator[CheckOutcome]:
        """Yield every check that a sentence rests on."""
        for claim in self.claims:
            for sentence in claim.sentences():
                yield from sentence.checks
        for passage in self.passages:
            yield from passage.checks

    def failed_self_checks(self) -> list[str]:
        """Return the ids of the refuted self-checks, ``z-scores`` last."""
        failed = [c.id for c in self.self_checks if c.outcome == Outcome.REFUTED]
        if self.z_scores.outcome == Outcome.REFUTED:
            failed.append("z-scores")
        return failed


#: Bytes of a claims.json at most; that of the full preset has two million.
MOST_CLAIMS = 2**25


def read_claims(folder: Path) -> ClaimsRecord:
    """Read claims.json of a folder.

    Raises
    ------
    InputError
        If it is not what this version writes; one line.
    """
    try:
        content = read_small(CLAIMS_FILE, folder / CLAIMS_FILE, MOST_CLAIMS)
        return msgspec.json.decode(content, type=ClaimsRecord)
    except (msgspec.DecodeError, RecursionError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise InputError(
            f"{CLAIMS_FILE} must be what this version writes, got: {reason}"
        ) from None


def read_report_run(folder: Path) -> dict[str, Any]:
    """Read run.json of a report, checked: its schema, its digest, hashes of files.

    Raises
    ------
    InputError
        One line: file, requirement, what came.
    """
    run = read_run(folder)
    if "kind" in run:
        raise InputError(
            f"results must be those of a report, got an {run['kind']!s:.40}"
        )
    for name in (MEASUREMENTS, CLAIMS_FILE):
        if name not in run["sha256"]:
            raise InputError(
                f"results must have {name!r} among the files of their {RUN_FILE}, got "
                f"{len(run['sha256'])} others"
            )
    return run

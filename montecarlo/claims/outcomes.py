"""Results of judging: written by the judge, stored in claims.json, read by pages.

Also reads claims.json and run.json of a results folder.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from montecarlo.claims.checks import Check, infinite_if_none
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
    decide,
    decide_exactly,
    join_checks,
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


class CaseKey(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What identifies a case of a check: its sizes, distributions and conditions.

    A case is a design point, a series of points over d_k, or part of a record.  A field
    that does not apply to the case has its default.
    """

    #: of the entries of Q and K, or a pair `q * k`
    distribution: str = ""
    #: of K on Q
    dependence: str = "none"
    #: of the projections to q and k; empty if there are none
    initialisation: str = ""
    #: of each query and key
    normalisation: str = "none"
    #: which keys a query sees
    mask: str = "none"
    #: number format and softmax; empty unless the check is about them
    arithmetic: str = ""
    #: part of a recorded quantity, such as an optimiser; empty if simulated
    part: str = ""
    #: keys per row; null for pairs
    n_keys: int | None = None
    #: null for a series over d_k
    d_k: int | None = None

    @property
    def context(self) -> str:
        """Conditions of the case, without distribution and sizes, as text.

        Such as ``float16 naive causal``; an empty string if there are none.  It has the
        first of arithmetic, dependence and initialisation that the case has, then
        normalisation and mask.  For a recorded quantity it is part and initialisation,
        such as ``adam small-queries``.
        """
        dependence = "" if self.dependence == "none" else self.dependence
        if self.part:
            return f"{self.part} {self.initialisation}".strip()
        condition = self.arithmetic or dependence or self.initialisation
        named = [one for one in (self.normalisation, self.mask) if one != "none"]
        return " ".join([condition, *named]).strip()


def case_key(case: CaseKey, **changed: None) -> CaseKey:
    """Return what identifies a case, without its results.

    ``changed`` are fields that become None.  With ``d_k=None``, cases that differ only
    in d_k have equal keys.
    """
    fields = {name: getattr(case, name) for name in CaseKey.__struct_fields__}
    return CaseKey(**(fields | changed))


#: Relative standard error of ``simulated`` values.
SIMULATED_ERROR = 0.003


class Case(CaseKey, frozen=True, kw_only=True):
    """One case of a check, a design point or a series: its estimate and outcome."""

    #: smallest and largest d_k; null if the case has no d_k
    d_k_range: tuple[int, int] | None = None
    #: row_id of each of its rows in measurements.csv
    rows: tuple[str, ...] = ()
    #: null if there is none
    estimate: float | None = None
    #: of the estimate
    std_error: float | None = None
    #: of the estimate
    n_replicates: int | None = None
    #: ends of the simultaneous interval; null if infinite or missing
    simultaneous_low: float | None = None
    simultaneous_high: float | None = None
    #: ends of the equivalence region; null if infinite
    region_low: float | None = None
    region_high: float | None = None
    #: exact value of the estimated quantity; null if unknown
    exact: float | None = None
    #: value with a relative error of 0.3 %, simulated beforehand; null if there is none
    simulated: float | None = None
    #: limit for large d_k; null unless the check asks for it
    limit: Limit | None = None
    outcome: Outcome = Outcome.NOT_APPLICABLE
    #: whether the exact value decided, as the sample did not
    by_theory: bool = False
    #: total number of replicates that would decide; null if decided or too close
    replicates_needed: int | None = None

    @property
    def better_simulated(self) -> float | None:
        """The value ``simulated``, if its error is smaller than that of the estimate.

        None if it is not smaller, or if nothing was simulated.  If the estimate has no
        standard error, ``simulated`` counts as better.
        """
        if self.simulated is None or self.std_error is None:
            return self.simulated
        is_better = SIMULATED_ERROR * abs(self.simulated) < self.std_error
        return self.simulated if is_better else None

    @property
    def is_exact(self) -> bool:
        """Whether theory or algebra decided the case, not a sample or a training run.

        Also true if there is a sample that left the case undecided.
        """
        computed = self.exact is not None and not self.rows
        return self.by_theory or self.limit is not None or computed

    @property
    def row(self) -> str:
        """The row_id of the estimate in measurements.csv.

        An empty string if there is no estimate, or if it combines several rows, as a
        slope does.
        """
        return self.rows[0] if len(self.rows) == 1 else ""

    @property
    def is_binned(self) -> bool:
        """Whether the interval is a bin of a histogram, without a standard error."""
        known = self.estimate, self.simultaneous_low, self.simultaneous_high
        return bool(self.rows) and self.std_error is None and None not in known

    @property
    def is_wide(self) -> bool:
        """Whether pages show the interval in place of the standard error.

        True if the interval begins at 0, if it lies within [0, 1] and ends at 1, or if
        its ends are positive and differ by at least a factor of 2.
        """
        low, high = self.interval
        is_end = low == 0.0 or (high == 1.0 and low >= 0.0)
        return is_end or factor_of(low, high) is not None

    @property
    def region(self) -> tuple[float, float]:
        """The equivalence region as (low, high), ends included; may be infinite."""
        return infinite_if_none(self.region_low, self.region_high)

    @property
    def interval(self) -> tuple[float, float]:
        """The simultaneous interval as (low, high); missing ends are infinite."""
        return infinite_if_none(self.simultaneous_low, self.simultaneous_high)


def finite_or_none(value: float) -> float | None:
    """Return a number, or None for infinity and NaN, which JSON cannot represent."""
    return value if math.isfinite(value) else None


def six_digits(value: float) -> float | None:
    """Return a number rounded to six significant digits; None if it is not finite."""
    return finite_or_none(float(f"{value:.6g}"))


def round_interval(
    interval: Interval, region: tuple[float, float]
) -> tuple[float | None, float | None]:
    """Return the ends of an interval rounded outwards, to at least six digits.

    Parameters
    ----------
    interval : Interval
    region : (float, float)
        Equivalence region.

    Returns
    -------
    (low, high)
        They have the fewest significant digits, at least six, with which they are on
        the same side of each end of the region as before.  None for an end that is
        infinite or NaN.
    """

    def signs(value: float) -> list[int]:
        """Return -1, 0 or 1 for each end of ``region``: value below, at or above it."""
        return [(value > end) - (value < end) for end in region]

    def round_outwards(value: float, *, up: bool) -> float | None:
        """Return an end of the interval rounded up or down; None if it is not finite.

        It gets the fewest significant digits, from 6 to 16, with which `signs` stay the
        same.
        """
        rounded = (round_end(value, digits, up=up) for digits in range(6, 17))
        same = (one for one in rounded if signs(one) == signs(value))
        return finite_or_none(next(same, value))

    low, high = interval
    return round_outwards(low, up=False), round_outwards(high, up=True)


def decide_case(  # noqa: PLR0913 - results of evidence
    check: Check,
    where: CaseKey,
    region: tuple[float, float],
    estimate: Estimate | None,
    rate: float,
    *,
    exact: float | None = None,
    limit: Limit | None = None,
    most: int | None = None,
    by_theory: bool = True,
    **others: Any,  # noqa: ANN401 - fields of a case
) -> Case:
    """Return one case of a check with its estimate, region and outcome.

    Parameters
    ----------
    check : Check
    where : CaseKey
        The sizes, distributions and conditions of the case.
    region : (float, float)
        Equivalence region, ends included.
    estimate : Estimate or None
        None if the check is not applicable.
    rate : float
        One-sided error rate of the simultaneous interval.
    exact : float, optional
        Exact value of the estimated quantity.
    limit : Limit, optional
        Limit for large d_k, by theory.  It decides the case.
    most : int, optional
        Maximal number of replicates; None if there can be no more than there are.
    by_theory : bool
        Whether an exact value decides if the sample does not.  It never does if the
        check compares with that value.
    **others
        Further fields of the case: ``rows``, ``d_k_range`` and ``simulated``.

    Returns
    -------
    Case
    """
    low, high = map(finite_or_none, region)
    ends = {"region_low": low, "region_high": high}
    fields = msgspec.structs.asdict(where) | ends | others
    if estimate is None:
        return Case(**fields)
    fields |= {
        "estimate": finite_or_none(estimate.value),
        "std_error": six_digits(estimate.reported_error),
        "n_replicates": estimate.n_replicates,
        "exact": None if exact is None else finite_or_none(exact),
    }
    if limit is not None:
        outcome = Outcome.SUPPORTED if limit.tends_to == check.to else Outcome.REFUTED
        return Case(**fields, limit=limit, outcome=outcome)
    interval, needed = estimate.interval(rate), None
    outcome = decide(interval, region)
    undecided = outcome == Outcome.UNDECIDED
    if undecided and most is not None:
        needed = replicates_needed(estimate, region, rate, most)
    if undecided and by_theory and exact is not None and check.expected != "reference":
        outcome = decide_exactly(exact, region)
    low, high = round_interval(interval, region)
    return Case(
        **fields,
        simultaneous_low=low,
        simultaneous_high=high,
        outcome=outcome,
        by_theory=undecided and outcome != Outcome.UNDECIDED,
        replicates_needed=needed,
    )


class CheckOutcome(Check, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A check with its cases, each with an outcome."""

    cases: tuple[Case, ...] = ()

    @property
    def check(self) -> Check:
        """The check without its cases."""
        return Check(*(getattr(self, name) for name in Check.__struct_fields__))


def join_by_case(checks: Iterable[CheckOutcome]) -> tuple[Case, ...]:
    """Return the cases of several checks, each case once with a joint outcome.

    A case is a design point, or a series of points over d_k.  `join_checks` joins the
    outcomes of the checks that have the case; checks without it do not count.  The
    returned cases have no estimates.  They are sorted by distribution, context, number
    of keys and d_k.
    """
    joined: dict[CaseKey, list[Case]] = {}
    for check in checks:
        for case in check.cases:
            joined.setdefault(case_key(case), []).append(case)

    return tuple(
        Case(
            **msgspec.structs.asdict(where),
            outcome=join_checks(case.outcome for case in joined[where]),
            by_theory=all(case.is_exact for case in joined[where]),
        )
        for where in sorted(
            joined, key=lambda c: (c.distribution, c.context, c.n_keys or 0, c.d_k or 0)
        )
    )


def find_thresholds(cases: Sequence[Case]) -> Iterator[tuple[Case, Case]]:
    """Yield (case, next case) where the outcome changes between neighbouring d_k.

    The two cases are the same in everything but d_k.  Cases that are not decided, or
    have no d_k, are left out.

    Parameters
    ----------
    cases : sequence of Case
        Sorted by distribution, context, number of keys and d_k.
    """
    decided = [c for c in cases if c.outcome in DECIDED and c.d_k is not None]
    for before, after in pairwise(decided):
        alike = case_key(before, d_k=None) == case_key(after, d_k=None)
        if alike and before.outcome != after.outcome:
            yield before, after


class InterpretationOutcome(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True
):
    """The verdict on one precise meaning of a claim, with its checks."""

    #: in the catalogue
    id: str
    quantifier: Quantifier
    form: Form
    #: premise that the sentence omits and on which the verdict may depend; or empty
    omits: Omitted = ""
    #: whether a text states it, so that it counts for the claim's verdict
    votes: bool
    #: the tested proposition, in English; may be empty
    tested: str = ""
    #: words of degree without a measure in their text
    words: tuple[str, ...] = ()
    verdict: Verdict
    reason: Reason
    #: all must hold
    checks: tuple[CheckOutcome, ...]

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """The cases of all checks, each once with the joint outcome of its checks."""
        return join_by_case(self.checks)


class NumberOutcome(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A number that a sentence of a page shows."""

    value: float
    #: null for a count, a size or an exact value
    std_error: float | None
    #: its row_id in measurements.csv; empty if it is no single row
    row: str
    #: whether it is displayed in per cent
    percent: bool
    #: largest number of digits where it is displayed without its error
    digits: int = 3


class SentenceOutcome(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether a sentence of the catalogue is true, and the numbers that it shows."""

    #: whether all that it asserts is true
    holds: bool
    #: by name; empty unless it holds
    numbers: dict[str, NumberOutcome]
    #: those that it asserts
    checks: tuple[CheckOutcome, ...]


class PassageOutcome(SentenceOutcome, frozen=True, kw_only=True):
    """Whether a sentence that belongs to no claim is true, and its numbers."""

    #: in the catalogue
    id: str


class ClaimOutcome(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The verdict on a claim, with its interpretations and sentences."""

    #: in the catalogue
    id: str
    #: as in the catalogue: `measured`, `shape`, `record` or `assumption`
    kind: str
    topic: Topic
    #: places in the texts
    sources: tuple[Source, ...]
    verdict: Verdict
    reason: Reason
    #: nominal, for all its checks together
    error_rate: float
    #: the tested proposition of a claim without interpretations
    tested: str = ""
    #: whether its rule was changed after results had been seen
    changed: bool = False
    #: key of a text -> ruling on the claim as that text states it
    texts: dict[str, Ruling]
    interpretations: tuple[InterpretationOutcome, ...]
    #: possible results, in the catalogue's order
    findings: tuple[SentenceOutcome, ...]
    #: correction of a claim that fails; null if the catalogue has none
    right: SentenceOutcome | None
    #: what is right about a claim that fails; null likewise
    concedes: SentenceOutcome | None

    @property
    def rulings(self) -> set[Ruling]:
        """The verdicts on the claim and on each voting interpretation, with reasons.

        An interpretation votes, that is counts for the claim's verdict, if a text
        states it.
        """
        voting = (one for one in self.interpretations if one.votes)
        rulings = {Ruling(one.verdict, one.reason) for one in voting}
        return {Ruling(self.verdict, self.reason), *rulings}

    @property
    def verdicts(self) -> set[Verdict]:
        """The verdicts on the claim and its voting interpretations, as in `rulings`."""
        return {ruling.verdict for ruling in self.rulings}

    def verdicts_on(self, source: Source) -> set[Verdict]:
        """Return the verdicts on the meanings that one place in a text may have.

        These are the voting interpretations that the place admits.  If there are none,
        the result is the verdict on the claim.
        """
        verdicts = {
            one.verdict
            for one in self.interpretations
            if one.votes and (not source.admits or one.id in source.admits)
        }
        return verdicts or {self.verdict}

    def sentences(self) -> Iterator[SentenceOutcome]:
        """Yield the outcomes of all sentences: findings, correction, concession."""
        yield from self.findings
        yield from (one for one in (self.right, self.concedes) if one is not None)


class SelfCheckOutcome(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The outcome of a self-check of the simulator, with its checks."""

    #: in the catalogue
    id: str
    outcome: Outcome
    #: all must hold
    checks: tuple[CheckOutcome, ...]


class Calibration(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How often intervals missed the value in trials, and the correction for it."""

    #: one-sided error rate of the intervals in the trials
    rate: float
    #: largest observed rate of misses, as a multiple of that
    times: float
    #: kind of interval -> share of the error rate over the rate that it states
    divided_by: dict[str, float]


CLAIMS_FILE = "claims.json"


class ClaimsRecord(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of claims.json: results of all claims, passages and self-checks."""

    #: in the catalogue's order
    claims: tuple[ClaimOutcome, ...]
    passages: tuple[PassageOutcome, ...]
    self_checks: tuple[SelfCheckOutcome, ...]
    #: nominal, for all decided checks together
    error_rate: float
    #: share of it for one end of an interval at one interim analysis
    simultaneous_error: float
    calibration: Calibration
    #: number of interim analyses of all statistics together
    analyses: int
    #: comparison of estimates with exact values
    z_scores: ZScores
    #: published sizes of models
    models: tuple[ModelSize, ...]
    #: published facts
    records: tuple[RecordEntry, ...]

    def judged_checks(self, *, voting: bool = False) -> Iterator[CheckOutcome]:
        """Yield every check of interpretations and self-checks, with its cases.

        With ``voting``, interpretations are left out that do not count for a claim's
        verdict.
        """
        for claim in self.claims:
            for interpretation in claim.interpretations:
                if interpretation.votes or not voting:
                    yield from interpretation.checks
        for self_check in self.self_checks:
            yield from self_check.checks

    def sentence_checks(self) -> Iterator[CheckOutcome]:
        """Yield every check that a sentence of a page asserts, with its cases."""
        for claim in self.claims:
            for sentence in claim.sentences():
                yield from sentence.checks
        for passage in self.passages:
            yield from passage.checks

    def failed_self_checks(self) -> list[str]:
        """Return the ids of the refuted self-checks; an empty list if there are none.

        If the comparison of estimates with exact values is refuted, ``z-scores`` is the
        last.
        """
        failed = [c.id for c in self.self_checks if c.outcome == Outcome.REFUTED]
        if self.z_scores.outcome == Outcome.REFUTED:
            failed.append("z-scores")
        return failed


#: Largest size of a claims.json in bytes; that of the full preset has two million.
MOST_CLAIMS = 2**25


def read_claims(folder: Path) -> ClaimsRecord:
    """Return the content of claims.json in a results folder.

    Raises
    ------
    InputError
        If it cannot be read, or is not in the format of this version; the message is
        one line.
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
    """Return the content of run.json of a report, after checking all files' hashes.

    Raises
    ------
    InputError
        If a hash differs, the folder is not from a report, or it lacks measurements.csv
        or claims.json; the message is one line.
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
                f"{len(run['sha256'])} others: name the folder of the report itself, "
                "not one that was made --from it"
            )
    return run

"""The results folder of a report, and what pages select from it.

`Findings` joins the outcomes in claims.json (`montecarlo.claims.outcomes`) with the
words of the catalogue.  Nothing is judged here: for each claim it selects the sentence
that holds, and for each interpretation the cases that are shown.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec
import pandas as pd

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.checks import Words
from montecarlo.claims.outcomes import (
    Case,
    CaseKey,
    CheckOutcome,
    ClaimOutcome,
    ClaimsRecord,
    InterpretationOutcome,
    NumberOutcome,
    SelfCheckOutcome,
    SentenceOutcome,
    case_key,
    read_claims,
    read_report_run,
)
from montecarlo.claims.running import Study, points_of_study
from montecarlo.claims.schema import Catalogue, Claim, Topic
from montecarlo.claims.verdicts import Outcome, Verdict
from montecarlo.report.content.curves import CurveTables, read_curves
from montecarlo.report.content.training import TrainingView, training_view
from montecarlo.report.language.symbols import check_formula
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.measured import MEASUREMENTS
from montecarlo.study.presets import Grid
from montecarlo.study.table import read_table

#: Verdicts of a run whose seed is the catalogue's SHA-256, by ``studies.confirm``.
CONFIRMING = Path(__file__).with_name("confirming.json")
#: Verdicts with which a text is listed among those that get something wrong.
WRONG = (Verdict.FAILS, Verdict.PARTLY)


class FilledSentence(NamedTuple):
    """A true sentence of the catalogue, with numbers for its placeholders.

    Attributes
    ----------
    text : Words
        With placeholders ``%(name)s``.
    numbers : mapping
        Name of a placeholder -> its number.
    checks : tuple of CheckOutcome
        The checks that the sentence asserts.
    """

    text: Words
    numbers: Mapping[str, NumberOutcome]
    checks: tuple[CheckOutcome, ...] = ()


#: (sentence to put in a claim's place, line of arithmetic behind it).
Correction = tuple[FilledSentence, FilledSentence]


@dataclass(frozen=True)
class Findings:
    """The content of a results folder, and the catalogue of claims behind it.

    A *claim* here is its outcome; its words are in the catalogue.  A *text* is one of
    the texts that make the claims, identified by its key.
    """

    measurements: pd.DataFrame
    curves: CurveTables
    record: ClaimsRecord  # claims.json
    run: dict[str, Any]  # the content of run.json
    catalogue: Catalogue  # the words of the claims in the record
    points: Sequence[DesignPoint] = ()  # of the study
    training: TrainingView | None = None  # None for a user's own claims
    selected: bool = False  # whether only a part of the judged claims is left

    def only(self, catalogue: Catalogue) -> "Findings":
        """Return the findings on the claims of a smaller catalogue and on no others.

        That catalogue must still have all passages of this one.  `Catalogue.only` drops
        them, so add them again.
        """
        chosen = {claim.id for claim in catalogue.claim}
        kept = tuple(one for one in self.claims if one.id in chosen)
        record = msgspec.structs.replace(self.record, claims=kept)
        return replace(self, record=record, catalogue=catalogue, selected=True)

    @property
    def own(self) -> bool:
        """Whether the claims are from a user's file, and not from the five texts."""
        return self.catalogue.language is not None

    @property
    def is_selection(self) -> bool:
        """Whether only some claims of the catalogue were judged or are shown."""
        return self.selected or bool(self.run.get("only"))

    @property
    def claims(self) -> tuple[ClaimOutcome, ...]:
        """The outcomes of all claims, in the order of the catalogue."""
        return self.record.claims

    @property
    def counts(self) -> list[tuple[str, int]]:
        """(verdict, number of claims) for each verdict that occurs.

        Such as ``[("holds", 12), ("fails", 3)]``, in the order of `Verdict`.  Questions
        of readers, which no text claims, do not count.
        """
        return self.count_verdicts(self.claims)

    def count_verdicts(self, claims: Iterable[ClaimOutcome]) -> list[tuple[str, int]]:
        """Return (verdict, number of the given claims) for each verdict that occurs.

        Questions of readers, which no text claims, do not count.  All claims from a
        user's file count.
        """
        found = Counter(one.verdict for one in claims if self.own or one.sources)
        return [(v.value, found[v]) for v in Verdict if found[v]]

    @property
    def topics(self) -> list[str]:
        """The topics of the claims, in the order of `Topic`.

        Such as ``["variance", "weights"]``.
        """
        found = {claim.topic for claim in self.claims}
        return [topic for topic in get_args(Topic) if topic in found]

    def by_topic(self, topic: str) -> list[ClaimOutcome]:
        """Return the claims about a topic, in page order: questions of readers last."""
        found = {claim.id: claim for claim in self.claims if claim.topic == topic}
        return [found[one.id] for one in self._in_order if one.id in found]

    def number(self, claim: ClaimOutcome) -> int:
        """Return the number of a claim on the page, from 1.

        Questions of readers have numbers of their own, from 1.
        """
        return self._numbers[claim.id]

    def entry_of(self, claim: ClaimOutcome) -> Claim:
        """Return the catalogue's entry, with the words, for the outcome of a claim."""
        return self._entries[claim.id]

    def label(
        self, claim: ClaimOutcome, interpretation: InterpretationOutcome
    ) -> Words | None:
        """Return words for an interpretation: its label, else the tested proposition.

        None if the catalogue has neither; the interpretation is then shown as a
        formula.
        """
        entries = self.entry_of(claim).interpretation
        found = (one for one in entries if one.id == interpretation.id)
        return next((one.label or one.tested or None for one in found), None)

    def admitting_texts(
        self, claim: ClaimOutcome, interpretation: InterpretationOutcome
    ) -> list[tuple[Words, str]]:
        """Return (name, key) of each text whose words admit an interpretation.

        The list is empty if all texts that make the claim admit it, or none of them.
        """
        entry = self.entry_of(claim)
        keys = [key for key in claim.texts if interpretation.id in entry.admitted(key)]
        every = len(keys) == len(claim.texts)
        return [] if every else [(self.names[key], key) for key in keys]

    def finding(
        self, claim: ClaimOutcome, *, short: bool = False
    ) -> FilledSentence | None:
        """Return the sentence that states the result on a claim; None if none is true.

        It is the first true one of the claim's findings, with its numbers.  With
        ``short``, its short form if the catalogue has one.
        """
        pairs = zip(claim.findings, self.entry_of(claim).finding, strict=True)
        said = (
            _filled(one, (short and words.short) or words.text) for one, words in pairs
        )
        return next(filter(None, said), None)

    def lines(self, topic: str) -> list[tuple[ClaimOutcome, ...]]:
        """Return the lines of a topic's table, each a tuple of the claims in it.

        A claim and its restatements share a line if all have the same verdict and
        reason.  If these differ, or the restated claim is not among the claims, each
        has a separate line.
        """
        found: list[tuple[ClaimOutcome, ...]] = []
        for name, claims in groupby(self.by_topic(topic), self._restated_id):
            group = tuple(claims)
            alike = len({(one.verdict, one.reason) for one in group}) == 1
            whole = alike and any(one.id == name for one in group)
            found += [group] if whole else [(one,) for one in group]
        return found

    def restated_claim(self, line: Sequence[ClaimOutcome]) -> ClaimOutcome:
        """Return the claim that the other claims in a line of a table restate.

        ``line`` is from `lines`.  If it has a single claim, that is returned.
        """
        return next(
            one for one in line if self.entry_of(one).same is None or len(line) == 1
        )

    def correction(self, claim: ClaimOutcome) -> Correction | None:
        """Return (sentence, arithmetic) that correct a claim that some text has wrong.

        None if the claim is wrong in no text, or if the catalogue has no correction
        that is true.
        """
        return self._replacement(claim) if Verdict.FAILS in claim.verdicts else None

    def clarification(self, claim: ClaimOutcome) -> Correction | None:
        """Return (clearer sentence, arithmetic) for a claim that is wrong in no text.

        None if it is wrong in some text, or if the catalogue has no such sentence that
        is true.
        """
        return None if Verdict.FAILS in claim.verdicts else self._replacement(claim)

    def _replacement(self, claim: ClaimOutcome) -> Correction | None:
        """Return (sentence, arithmetic) that the catalogue has in place of a claim.

        The arithmetic is a sentence with the steps behind it.  None if the catalogue
        has none, or if the sentence is not true.
        """
        words = self.entry_of(claim).right
        if words is None:
            return None
        sentence = _filled(claim.right, words.text)
        line = _filled(claim.right, words.arithmetic)
        return (sentence, line) if sentence and line else None

    def concession(self, claim: ClaimOutcome) -> FilledSentence | None:
        """Return the sentence on what is right in a claim that is wrong in some text.

        None if the claim is wrong in no text, or if the catalogue has no such sentence
        that is true.
        """
        words = self.entry_of(claim).concedes
        if words is None or Verdict.FAILS not in claim.verdicts:
            return None
        return _filled(claim.concedes, words.text)

    @property
    def changed(self) -> list[ClaimOutcome]:
        """The claims whose check was changed after results were seen, in page order."""
        found = (claim for claim in self.claims if claim.changed)
        return sorted(found, key=lambda one: (not one.sources, self.number(one)))

    @property
    def confirmed(self) -> tuple[str, int, int] | None:
        """Agreement of the verdicts with those of a second run with another seed.

        (first eight hexadecimal digits of the catalogue's SHA-256, number of claims
        with the same verdict, number of all claims), such as ``("0a1b2c3d", 40, 41)``.
        The seed of the second run is a hash of the catalogue.  Questions of readers do
        not count.  None if the second run was of another catalogue or preset, or this
        report has only some claims.
        """
        catalogue, verdicts = json.loads(CONFIRMING.read_bytes()).values()
        mine = self.run["catalogue"], self.run["preset"]
        if mine != (catalogue, "standard") or self.is_selection:
            return None
        claims = [claim for claim in self.claims if claim.sources]
        same = sum(verdicts[claim.id] == claim.verdict for claim in claims)
        return catalogue[:8], same, len(claims)

    @cached_property
    def errors(self) -> list[tuple[str, str, FilledSentence, list[tuple[Words, str]]]]:
        """What the texts get wrong, wholly or partly: an entry for each statement.

        An entry is (id of the claim, verdict, sentence that says what is wrong, texts).
        ``texts`` has (name, key) of each text that gets it wrong; the verdict is that
        for the first of them.
        """
        said = {one.id: one for one in self.record.passages}
        claims = {one.id: one for one in self.claims}
        found: list[tuple[str, str, FilledSentence, list[tuple[Words, str]]]] = []
        for passage in self.catalogue.passage:
            one = _filled(said.get(passage.id), passage.sentence.text)
            texts = claims[passage.claim].texts if passage.claim in claims else {}
            keys = [key for key in texts if texts[key].verdict in WRONG]
            if one and keys:
                names: list[tuple[Words, str]] = [(self.names[k], k) for k in keys]
                found.append((str(passage.claim), texts[keys[0]].verdict, one, names))
        return found

    @cached_property
    def passages(self) -> dict[str, list[FilledSentence]]:
        """Place on the page -> the true sentences there that are outside of tables.

        The catalogue says which places there are.  Those without a true sentence are
        missing.
        """
        entries = {passage.id: passage for passage in self.catalogue.passage}
        found: dict[str, list[FilledSentence]] = {}
        for outcome in self.record.passages:
            entry = entries[outcome.id]
            if said := _filled(outcome, entry.sentence.text):
                found.setdefault(entry.place, []).append(said)
        return found

    def statement_of(self, check: SelfCheckOutcome) -> Words:
        """Return the words of the statement that a check of the simulator tests."""
        entries = self.catalogue.self_check
        return next(one.statement for one in entries if one.id == check.id)

    @cached_property
    def names(self) -> dict[str, Words]:
        """Key of each text -> its name."""
        return {text.key: text.name for text in self.catalogue.text}

    def texts(self) -> list[tuple[Words, str]]:
        """Return (name, key) of each text that makes any of the claims."""
        keys = (source.text for claim in self.claims for source in claim.sources)
        return [(self.names[key], key) for key in dict.fromkeys(keys)]

    @cached_property
    def _entries(self) -> dict[str, Claim]:
        """Id of each claim -> its entry in the catalogue."""
        return {claim.id: claim for claim in self.catalogue.claim}

    def _restated_id(self, claim: ClaimOutcome | Claim) -> str:
        """Return the id of the claim that a claim restates, or else its own id."""
        return self._entries[claim.id].same or claim.id

    @cached_property
    def _in_order(self) -> list[Claim]:
        """The claims of the catalogue in the order of the page.

        They are sorted by topic.  Restatements follow the claim that they restate, and
        questions of readers come last.
        """
        entries, topics = self.catalogue.claim, get_args(Topic)
        first: dict[str, int] = {}
        for number, one in enumerate(entries):
            first.setdefault(self._restated_id(one), number)

        def place(claim: Claim) -> tuple[bool, int, int, bool]:
            """Return the sort key of a claim.

            (whether it is only a question of readers, number of its topic, number of
            the first claim that it restates or is restated by, whether it restates
            another).
            """
            asked = not (self.own or claim.source)
            group = first[self._restated_id(claim)]
            return asked, topics.index(claim.topic), group, claim.same is not None

        return sorted(entries, key=place)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """Id of each claim -> its number on the page, from 1.

        Questions of readers are numbered separately, also from 1.
        """
        entries = self._in_order
        said = [one.id for one in entries if self.own or one.source]
        asked = [one.id for one in entries if not (self.own or one.source)]
        return {name: n for names in (said, asked) for n, name in enumerate(names, 1)}


def read_results(
    folder: Path, catalogue: Catalogue | None = None, run: dict[str, Any] | None = None
) -> Findings:
    """Return the content of a results folder, together with the catalogue behind it.

    Parameters
    ----------
    folder : Path
    catalogue : Catalogue, optional
        What the results were judged by; by default the catalogue of the five texts.
    run : dict, optional
        The content of run.json, for a folder that does not have it yet.  By default
        run.json is read, and the hashes of the files are verified.

    Raises
    ------
    InputError
        If claims.json is not in the format of this version.  Without ``run``, also if
        run.json is missing, or the hash of a file differs from that in it.
    """
    run = read_report_run(folder) if run is None else run
    catalogue = catalogue or read_catalogue()
    grid = msgspec.convert(run["grid"], Grid)
    whole_grid = not run["only"] and catalogue.language is None
    return Findings(
        read_table(folder / MEASUREMENTS),
        read_curves(folder),
        read_claims(folder),
        run,
        catalogue,
        points_of_study(Study(catalogue, grid, whole_grid=whole_grid)),
        None if catalogue.language else training_view(),
    )


def _filled(outcome: SentenceOutcome | None, text: Words) -> FilledSentence | None:
    """Return a sentence with the numbers of its outcome.

    ``text`` is the sentence with placeholders.  None if it is not true, or if there is
    no outcome.
    """
    if outcome is None or not outcome.holds:
        return None
    return FilledSentence(text, outcome.numbers, outcome.checks)


def count_outcomes(cases: Iterable[Case]) -> Counter[str]:
    """Return how many cases have each outcome: outcome -> number of cases."""
    return Counter(str(case.outcome) for case in cases)


def exceptions(interpretation: InterpretationOutcome) -> list[Case]:
    """Return the refuted cases without a single d_k, such as slopes over d_k.

    The list is empty if no case of the interpretation is supported.
    """
    cases = interpretation.cases
    if not any(case.outcome == Outcome.SUPPORTED for case in cases):
        return []
    refuted = (case for case in cases if case.outcome == Outcome.REFUTED)
    return [case for case in refuted if case.d_k is None]


#: Smallest and largest d_k of a case.
Ends = tuple[int, int] | None


def check_columns(check: CheckOutcome) -> list[Ends]:
    """Return the columns of the table of a check: ranges (low, high) of d_k, ascending.

    Such as ``[(64, 64), (256, 256)]``, or ``[(16, 1024)]`` for a series over d_k.  If
    no case has a d_k, the list is ``[None]``.
    """
    return [*sorted({c.d_k_range for c in check.cases if c.d_k_range})] or [None]


def check_lines(check: CheckOutcome) -> list[tuple[Case, list[Case | None]]]:
    """Return the lines of the table of a check; the cases in a line differ only in d_k.

    A line is (first case, cases): the first case names the distribution and the number
    of keys, and ``cases`` has one for each of `check_columns`, or None.
    """
    found: dict[CaseKey, dict[Ends, Case]] = {}
    for case in check.cases:
        found.setdefault(case_key(case, d_k=None), {})[case.d_k_range] = case
    heads = check_columns(check)
    return [
        (next(iter(line.values())), [line.get(ends) for ends in heads])
        for line in found.values()
    ]


def table_name(check: CheckOutcome) -> str:
    """Return an HTML id for the table of a check: ``check-`` and ten hex digits.

    Equal tables have equal ids.
    """
    places = [
        f"{c.distribution} {c.context} {c.n_keys} {c.d_k_range} {c.row}"
        for c in check.cases
    ]
    text = ";".join([check_formula(check), *places])
    return f"check-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


#: A check, and a case of it that is shown for a verdict.
PlacedCase = tuple[CheckOutcome, Case]
#: Outcomes of the cases that are shown, by verdict; `Verdict.HOLDS` has its own rule.
DECIDING = {
    Verdict.FAILS: (Outcome.REFUTED,),
    Verdict.OPEN: (Outcome.UNDECIDED,),
    Verdict.PARTLY: (Outcome.SUPPORTED, Outcome.REFUTED),
}


def deciding_cases(interpretation: InterpretationOutcome) -> list[PlacedCase]:
    """Return (check, case) for the cases that show an interpretation's verdict best.

    ======= ==========================================================================
    holds   the supported case whose interval is nearest to an end of its region
    fails   the refuted case with the smallest d_k, then the smallest n
    open    the undecided case with the smallest d_k and n
    partly  the supported and the refuted case with the smallest d_k and n
    ======= ==========================================================================

    The list is empty for other verdicts.  Cases that have neither a d_k nor a
    distribution do not count.  For ``holds``, cases with imprecise estimates come last
    (see `_nearness`).
    """
    if interpretation.verdict == Verdict.HOLDS:
        pairs = _placed_cases(interpretation, Outcome.SUPPORTED)
        return sorted(pairs, key=lambda pair: _nearness(pair[1]))[:1]
    outcomes = DECIDING.get(interpretation.verdict, ())
    placed = (_placed_cases(interpretation, outcome) for outcome in outcomes)
    return [pair for pairs in placed for pair in sorted(pairs, key=_sort_key)[:1]]


def extreme_cases(check: CheckOutcome) -> list[Case]:
    """Return the cases of a check with the lowest and the highest estimate, in order.

    Only cases with a d_k count.  One case if all estimates are equal; an empty list if
    there are no estimates.
    """
    sized = (case for case in check.cases if case.d_k_range is not None)
    cases = (case for case in sized if case.estimate is not None)
    ranked = sorted(cases, key=lambda case: case.estimate or 0.0)
    alike = not ranked or ranked[0].estimate == ranked[-1].estimate
    return ranked[:1] if alike else [ranked[0], ranked[-1]]


def _placed_cases(
    interpretation: InterpretationOutcome, outcome: Outcome
) -> Iterator[PlacedCase]:
    """Yield (check, case) for each case with a given outcome.

    Cases that have neither a d_k nor a distribution are left out.
    """
    for check in interpretation.checks:
        for case in check.cases:
            placed = case.d_k_range is not None or case.distribution
            if placed and case.outcome == outcome:
                yield check, case


def _sort_key(pair: PlacedCase) -> tuple[int, int]:
    """Return the sort key of a case: (largest d_k, number of keys).

    Each is 0 where the case has none.
    """
    return (pair[1].d_k_range or (0, 0))[1], pair[1].n_keys or 0


def _nearness(case: Case) -> tuple[bool, float]:
    """Return a sort key by how near a case's interval is to an end of its region.

    (whether the estimate is imprecise, smallest distance of an end of the interval from
    the same end of the region, in standard errors).  An estimate is imprecise if the
    region is positive and the standard error is more than a third of the estimate.
    Without a standard error the key is (False, inf).
    """
    error, estimate = case.std_error, case.estimate
    if not error:
        return False, math.inf
    vague = case.region[0] > 0.0 and error > abs(estimate or math.inf) / 3.0
    gaps = [
        abs(end - limit)
        for end, limit in zip(case.interval, case.region, strict=True)
        if math.isfinite(end) and math.isfinite(limit)
    ]
    return vague, min(gaps, default=math.inf) / error

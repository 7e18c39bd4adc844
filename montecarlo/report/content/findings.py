"""A results folder as pages read it: what the judge wrote, and the catalogue's words.

Outcomes are those of `montecarlo.claims.outcomes`, as claims.json holds them; what is
chosen of them here is which sentence is said and which case is shown first.
"""

import hashlib
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
from montecarlo.claims.running import points_of_study
from montecarlo.claims.schema import Catalogue, Claim, Topic
from montecarlo.claims.verdicts import Outcome, Verdict
from montecarlo.report.content.confirming import read_confirming
from montecarlo.report.content.curves import Curves, read_curves
from montecarlo.report.content.training import TrainingView, training_view
from montecarlo.report.language.symbols import check_formula
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.measured import MEASUREMENTS
from montecarlo.study.presets import Grid
from montecarlo.study.table import read_table

#: A text that says so is named with what it gets wrong.
WRONG = (Verdict.FAILS, Verdict.PARTLY)


class Said(NamedTuple):
    """A sentence that holds, its numbers by name, and the checks that it rests on."""

    text: Words
    numbers: Mapping[str, NumberOutcome]
    checks: tuple[CheckOutcome, ...] = ()


@dataclass(frozen=True)
class Findings:
    """A results folder, read back and verified, and what it was judged by."""

    measurements: pd.DataFrame
    curves: Curves
    record: ClaimsRecord  # claims.json
    run: dict[str, Any]  # what run.json holds, or will
    catalogue: Catalogue  # of the claims in the record: their words
    points: Sequence[DesignPoint] = ()  # that rows may be of
    training: TrainingView | None = None  # beside the claims of the five texts
    selected: bool = False  # whether claims that were judged are left out

    def only(self, catalogue: Catalogue) -> "Findings":
        """Return them with the claims of a part of the catalogue alone."""
        chosen = {claim.id for claim in catalogue.claim}
        kept = tuple(one for one in self.claims if one.id in chosen)
        record = msgspec.structs.replace(self.record, claims=kept)
        return replace(self, record=record, catalogue=catalogue, selected=True)

    @property
    def divisors(self) -> Sequence[str]:
        """The divisors that were sampled."""
        divisors: Sequence[str] = self.run["grid"]["divisors"]
        return divisors

    @property
    def own(self) -> bool:
        """Whether the claims are a user's, not those of the five texts."""
        return self.catalogue.language is not None

    @property
    def of_some(self) -> bool:
        """Whether they are of some claims of a catalogue, as was asked for."""
        return self.selected or bool(self.run.get("only"))

    @property
    def claims(self) -> tuple[ClaimOutcome, ...]:
        """All claims, in the order of the catalogue."""
        return self.record.claims

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many claims have each verdict that any has."""
        return self.count_verdicts(self.claims)

    def count_verdicts(self, claims: Iterable[ClaimOutcome]) -> list[tuple[str, int]]:
        """Return how many of some claims have each verdict, for those that any has.

        Questions of readers are none; a user's own claims name no texts, and all count.
        """
        found = Counter(one.verdict for one in claims if self.own or one.sources)
        return [(v.value, found[v]) for v in Verdict if found[v]]

    @property
    def topics(self) -> list[str]:
        """Topics that claims are about, in their order."""
        found = {claim.topic for claim in self.claims}
        return [topic for topic in get_args(Topic) if topic in found]

    def by_topic(self, topic: str) -> list[ClaimOutcome]:
        """Return the claims of a topic in the order of their numbers."""
        place = [claim.id for claim in self._in_order].index
        found = (claim for claim in self.claims if claim.topic == topic)
        return sorted(found, key=lambda claim: place(claim.id))

    def number(self, claim: ClaimOutcome) -> int:
        """Return its place on the page, from 1; questions of readers apart."""
        return self._numbers[claim.id]

    def words_of(self, claim: ClaimOutcome) -> Claim:
        """Return what the catalogue says of a claim."""
        return self._entries[claim.id]

    def label(
        self, claim: ClaimOutcome, interpretation: InterpretationOutcome
    ) -> Words | None:
        """Return what an interpretation says, or None where a symbol names it."""
        entries = self.words_of(claim).interpretation
        found = (one for one in entries if one.id == interpretation.id)
        return next((one.label or one.tested or None for one in found), None)

    def only_said_by(
        self, claim: ClaimOutcome, interpretation: InterpretationOutcome
    ) -> list[tuple[Words, str]]:
        """Return names and keys of the texts that may mean it, none if all may."""
        entry = self.words_of(claim)
        keys = [key for key in claim.texts if interpretation.id in entry.admitted(key)]
        every = len(keys) == len(claim.texts)
        return [] if every else [(self.names[key], key) for key in keys]

    def finding(self, claim: ClaimOutcome, *, short: bool = False) -> Said | None:
        """Return the first sentence of the catalogue that holds of a claim.

        If ``short``, in a few words, where the catalogue has them.
        """
        pairs = zip(claim.findings, self.words_of(claim).finding, strict=True)
        said = (
            _say(one, (short and words.short) or words.text) for one, words in pairs
        )
        return next(filter(None, said), None)

    def lines(self, topic: str) -> list[tuple[ClaimOutcome, ...]]:
        """Return the claims of a topic, one that others restate together with them.

        They stand alone where they did not all come out alike.
        """
        found: list[tuple[ClaimOutcome, ...]] = []
        for name, claims in groupby(self.by_topic(topic), self._restated):
            group = tuple(claims)
            alike = len({(one.verdict, one.reason) for one in group}) == 1
            whole = alike and any(one.id == name for one in group)
            found += [group] if whole else [(one,) for one in group]
        return found

    def lead(self, line: Sequence[ClaimOutcome]) -> ClaimOutcome:
        """Return the claim of a line that the others of it restate."""
        return next(
            one for one in line if self.words_of(one).same is None or len(line) == 1
        )

    def right(self, claim: ClaimOutcome) -> tuple[Said, Said] | None:
        """Return what would be right, and a line to redo by hand, if a claim fails."""
        return self._better(claim) if Verdict.FAILS in claim.verdicts else None

    def clearer(self, claim: ClaimOutcome) -> tuple[Said, Said] | None:
        """Return what says with numbers what a claim says vaguely, likewise."""
        return None if Verdict.FAILS in claim.verdicts else self._better(claim)

    def _better(self, claim: ClaimOutcome) -> tuple[Said, Said] | None:
        words = self.words_of(claim).right
        if words is None:
            return None
        sentence = _say(claim.right, words.text)
        line = _say(claim.right, words.arithmetic)
        return (sentence, line) if sentence and line else None

    def concedes(self, claim: ClaimOutcome) -> Said | None:
        """Return what is right in a claim that fails."""
        words = self.words_of(claim).concedes
        if words is None or Verdict.FAILS not in claim.verdicts:
            return None
        return _say(claim.concedes, words.text)

    @property
    def changed(self) -> list[ClaimOutcome]:
        """The claims whose rules were changed after results, in their order."""
        found = (claim for claim in self.claims if claim.changed)
        return sorted(found, key=lambda one: (not one.sources, self.number(one)))

    @property
    def confirmed(self) -> tuple[str, int, int] | None:
        """Return what the confirming run says of these verdicts.

        The first eight digits of its catalogue, how many verdicts are the same, and of
        how many; None where it is of another catalogue or preset, or this report of a
        part of the catalogue.
        """
        record = read_confirming()
        mine = self.run["catalogue"], self.run["preset"]
        if mine != (record.catalogue, "standard") or self.of_some:
            return None
        said = [one for one in self.claims if one.sources]
        same = sum(record.verdicts[one.id] == one.verdict for one in said)
        return record.catalogue[:8], same, len(said)

    @cached_property
    def wrong(self) -> list[tuple[str, str, Said, list[tuple[Words, str]]]]:
        """What texts get wrong, or in part: claims, verdicts, what is said, texts."""
        said = {one.id: one for one in self.record.passages}
        claims = {one.id: one for one in self.claims}
        found: list[tuple[str, str, Said, list[tuple[Words, str]]]] = []
        for passage in self.catalogue.passage:
            one = _say(said.get(passage.id), passage.sentence.text)
            texts = claims[passage.claim].texts if passage.claim in claims else {}
            keys = [key for key in texts if texts[key].verdict in WRONG]
            if one and keys:
                names: list[tuple[Words, str]] = [(self.names[k], k) for k in keys]
                verdict = texts[keys[0]].verdict
                found.append((str(passage.claim), verdict, one, names))
        return found

    @cached_property
    def passages(self) -> dict[str, list[Said]]:
        """The sentences that belong to no claim and hold, by place of the page."""
        entries = {passage.id: passage for passage in self.catalogue.passage}
        found: dict[str, list[Said]] = {}
        for outcome in self.record.passages:
            entry = entries[outcome.id]
            if said := _say(outcome, entry.sentence.text):
                found.setdefault(entry.place, []).append(said)
        return found

    def statement_of(self, check: SelfCheckOutcome) -> Words:
        """Return what a self-check says."""
        entries = self.catalogue.self_check
        return next(one.statement for one in entries if one.id == check.id)

    @cached_property
    def names(self) -> dict[str, Words]:
        """The name of each text by its key."""
        return {text.key: text.name for text in self.catalogue.text}

    def texts(self) -> list[tuple[Words, str]]:
        """Return names and keys of the texts that claims are from."""
        keys = (source.text for claim in self.claims for source in claim.sources)
        return [(self.names[key], key) for key in dict.fromkeys(keys)]

    @cached_property
    def _entries(self) -> dict[str, Claim]:
        return {claim.id: claim for claim in self.catalogue.claim}

    def _restated(self, claim: ClaimOutcome | Claim) -> str:
        """Return the id of the claim that it restates, or its own."""
        return self._entries[claim.id].same or claim.id

    @cached_property
    def _in_order(self) -> list[Claim]:
        """Claims as they stand on the page: by topic, restated ones together.

        Questions of readers come last.
        """
        entries, topics = self.catalogue.claim, get_args(Topic)
        first: dict[str, int] = {}
        for number, one in enumerate(entries):
            first.setdefault(self._restated(one), number)

        def place(one: Claim) -> tuple[bool, int, int, bool]:
            asked = not (self.own or one.source)
            group = first[self._restated(one)]
            return asked, topics.index(one.topic), group, one.same is not None

        return sorted(entries, key=place)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        entries = self._in_order
        said = [one.id for one in entries if self.own or one.source]
        asked = [one.id for one in entries if not (self.own or one.source)]
        return {name: n for names in (said, asked) for n, name in enumerate(names, 1)}


def read_results(
    folder: Path, catalogue: Catalogue | None = None, run: dict[str, Any] | None = None
) -> Findings:
    """Read a results folder, judged by a catalogue, or else by that of the five texts.

    ``run`` is what run.json will hold, of a folder that is being made; by default
    run.json is read and the files are checked against it.

    Raises
    ------
    InputError
        If run.json is missing, or a file does not agree with it.
    """
    run = read_report_run(folder) if run is None else run
    record = read_claims(folder)
    measurements = read_table(folder / MEASUREMENTS)
    catalogue = catalogue or read_catalogue()
    grid = msgspec.convert(run["grid"], Grid)
    whole_grid = not run["only"] and catalogue.language is None
    return Findings(
        measurements,
        read_curves(folder),
        record,
        run,
        catalogue,
        points_of_study(catalogue, grid, whole_grid=whole_grid),
        None if catalogue.language else training_view(),
    )


def _say(outcome: SentenceOutcome | None, text: Words) -> Said | None:
    """Return a sentence with its numbers; None where it does not hold."""
    if outcome is None or not outcome.holds:
        return None
    return Said(text, outcome.numbers, outcome.checks)


def count_outcomes(cases: Iterable[Case]) -> Counter[str]:
    """Count how many cases came out how."""
    return Counter(str(case.outcome) for case in cases)


def exceptions(interpretation: InterpretationOutcome) -> list[Case]:
    """Return the series over d_k that are against it, where other cases are for it."""
    cases = interpretation.cases
    if not any(case.outcome == Outcome.SUPPORTED for case in cases):
        return []
    refuted = (case for case in cases if case.outcome == Outcome.REFUTED)
    return [case for case in refuted if case.d_k is None]


Ends = tuple[int, int] | None


def columns(check: CheckOutcome) -> list[Ends]:
    """Return the d_k, or ranges of d_k, that the table of a check has columns for.

    None alone: its cases have none.
    """
    return [*sorted({c.d_k_range for c in check.cases if c.d_k_range})] or [None]


def lines(check: CheckOutcome) -> list[tuple[Case, list[Case | None]]]:
    """Return the lines of the table of a check; the first case of each names it."""
    found: dict[CaseKey, dict[Ends, Case]] = {}
    for case in check.cases:
        found.setdefault(case_key(case, d_k=None), {})[case.d_k_range] = case
    heads = columns(check)
    return [
        (next(iter(line.values())), [line.get(ends) for ends in heads])
        for line in found.values()
    ]


def table_name(check: CheckOutcome) -> str:
    """Name the table of a check: the same check of the same cases has the same name."""
    places = [
        f"{c.distribution} {c.context} {c.n_keys} {c.d_k_range} {c.row}"
        for c in check.cases
    ]
    text = ";".join([check_formula(check), *places])
    return f"check-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


#: A case that is shown for a verdict, and its check.
Telling = tuple[CheckOutcome, Case]


def find_telling(interpretation: InterpretationOutcome) -> list[Telling]:
    """Return the cases that decided an interpretation.

    The smallest counterexample where it fails, the smallest case that is open, the one
    that it holds by the least among those that are known well; where it depends, the
    smallest for it and the smallest against it.  What is vague has none.
    """
    one = [interpretation]
    found: list[Telling | None] = []
    if interpretation.verdict == Verdict.HOLDS:
        cases = [p for p in _placed(one) if p[1].outcome == Outcome.SUPPORTED]
        found = [min(cases, key=lambda pair: _nearness(pair[1]), default=None)]
    elif interpretation.verdict == Verdict.FAILS:
        found = [smallest(one, Outcome.REFUTED)]
    elif interpretation.verdict == Verdict.OPEN:
        found = [smallest(one, Outcome.UNDECIDED)]
    elif interpretation.verdict == Verdict.PARTLY:
        found = [smallest(one, o) for o in (Outcome.SUPPORTED, Outcome.REFUTED)]
    return [pair for pair in found if pair is not None]


def find_range(check: CheckOutcome) -> list[Case]:
    """Return the cases of a check with the lowest and highest estimate, if it has any.

    One where it has no other.
    """
    sized = (case for case in check.cases if case.d_k_range is not None)
    cases = (case for case in sized if case.estimate is not None)
    ranked = sorted(cases, key=lambda case: case.estimate or 0.0)
    alike = not ranked or ranked[0].estimate == ranked[-1].estimate
    return ranked[:1] if alike else [ranked[0], ranked[-1]]


def smallest(
    interpretations: Sequence[InterpretationOutcome], outcome: str
) -> Telling | None:
    """Return the case of an outcome with the smallest d_k and n, and its check."""
    return min(
        (pair for pair in _placed(interpretations) if pair[1].outcome == outcome),
        key=lambda pair: ((pair[1].d_k_range or (0, 0))[1], pair[1].n_keys or 0),
        default=None,
    )


def _placed(interpretations: Sequence[InterpretationOutcome]) -> Iterator[Telling]:
    """Yield the cases that are of a size or of a distribution, with their checks."""
    for check in (check for one in interpretations for check in one.checks):
        for case in check.cases:
            if case.d_k_range is not None or case.distribution:
                yield check, case


def _nearness(case: Case) -> tuple[bool, float]:
    """Return by how many standard errors an interval stays inside, vague ones last.

    One is vague where the error of a positive quantity is over a third of its value.
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

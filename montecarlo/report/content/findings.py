"""From results on disk to what a page shows: typed records, no words, no HTML.

Words come from the catalogue of claims and the templates, in the page's language;
verdicts, numbers and their rows come from the results and nowhere else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.checks import Words
from montecarlo.claims.outcomes import (
    ClaimOutcome,
    InterpretationOutcome,
    SelfCheckOutcome,
    SentenceOutcome,
)
from montecarlo.claims.record import read_report_run
from montecarlo.claims.schema import Catalogue, Claim
from montecarlo.report.content.fitting import require_rows
from montecarlo.report.content.record import ReportRecord, read_claims
from montecarlo.report.content.telling import find_telling
from montecarlo.report.content.views import (
    FAILING,
    CheckView,
    ClaimView,
    Findings,
    InterpretationView,
    RightView,
    Said,
    SelfCheckView,
)
from montecarlo.report.language.own_words import Shown, show_words
from montecarlo.report.language.symbols import check_formula, check_symbol
from montecarlo.study.columns import CURVES, MEASUREMENTS, validate_table


@dataclass(frozen=True, slots=True)
class Results:
    """A results folder, read back and verified."""

    measurements: pd.DataFrame
    curves: pd.DataFrame
    claims: ReportRecord  # what claims.json holds
    run: dict[str, Any]  # what run.json holds
    selected: bool = False  # whether claims that were judged are left out

    @property
    def of_some(self) -> bool:
        """Whether they are of some claims of a catalogue, as was asked for."""
        return self.selected or bool(self.run.get("only"))

    def only(self, catalogue: Catalogue) -> "Results":
        """Return them with the claims of a catalogue alone."""
        chosen = {claim.id for claim in catalogue.claim}
        claims = tuple(one for one in self.claims.claims if one.id in chosen)
        kept = msgspec.structs.replace(self.claims, claims=claims)
        return replace(self, claims=kept, selected=True)


def read_results(folder: Path, run: dict[str, Any] | None = None) -> Results:
    """Read a results folder.

    Parameters
    ----------
    folder : Path
    run : dict, optional
        The record that run.json will hold, for a folder that is being made; by
        default run.json is read and the files are checked against it.

    Raises
    ------
    montecarlo.study.folder.ResultsError
        If run.json is missing, a file does not agree with it, or is not as
        docs/results-folder.md says.
    """
    record = read_report_run(folder) if run is None else run
    claims = read_claims(folder)
    validate_table(folder / CURVES)
    require_rows(validate_table(folder / MEASUREMENTS), claims)
    return Results(
        _read_table(folder / MEASUREMENTS), _read_table(folder / CURVES), claims, record
    )


def _read_table(path: Path) -> pd.DataFrame:
    """Read a table whose empty fields are missing numbers, and whose words are words.

    All at once: in pieces, a column that is empty at first has its type guessed twice.
    """
    return pd.read_csv(path, keep_default_na=False, na_values=[""], low_memory=False)


def gather(results: Results, catalogue: Catalogue | None = None) -> Findings:
    """Turn results into what pages show; by default, of claims of the five texts."""
    catalogue = catalogue or read_catalogue()
    record = results.claims
    by_id = {claim.id: claim for claim in catalogue.claim}
    words = partial(show_words, language=catalogue.language)
    names = {text.key: words(text.name) for text in catalogue.text}
    own = catalogue.language is not None
    asked = [one.id for one in catalogue.claim if not own and not one.source]
    said = [one.id for one in catalogue.claim if one.id not in asked]
    numbers = {name: n for names in (said, asked) for n, name in enumerate(names, 1)}
    passages: dict[str, tuple[Said, ...]] = {}
    entries = {passage.id: passage for passage in catalogue.passage}
    for passage in record.passages:
        entry = entries[passage.id]
        one = _say(passage, words(entry.sentence.text))
        if one is not None:
            passages[entry.place] = (*passages.get(entry.place, ()), one)
    statements = {check.id: words(check.statement) for check in catalogue.self_check}
    return Findings(
        record,
        results.run,
        tuple(
            _claim(numbers[one.id], one, by_id[one.id], names, words)
            for one in record.claims
        ),
        passages,
        tuple(
            SelfCheckView(one.id, statements[one.id], one.verdict, _checks(one))
            for one in record.self_checks
        ),
        own,
    )


def _claim(
    number: int,
    outcome: ClaimOutcome,
    claim: Claim,
    names: Mapping[str, Shown],
    words: Callable[[Words], Shown],
) -> ClaimView:
    labels = {
        one.id: None if one.label is None else words(one.label)
        for one in claim.interpretation
    }
    interpretations = tuple(
        InterpretationView(
            labels.get(one.id), check_symbol(one.checks[0]), one, _checks(one)
        )
        for one in outcome.interpretations
    )
    pairs = zip(outcome.findings, claim.finding, strict=True)
    said = (_say(one, words(finding.text)) for one, finding in pairs)
    right = concedes = None
    if outcome.verdicts & {*FAILING}:
        if claim.right is not None:
            sentence = _say(outcome.right, words(claim.right.sentence))
            line = _say(outcome.right, words(claim.right.arithmetic))
            if sentence is not None and line is not None:
                right = RightView(sentence, line)
        if claim.concedes is not None:
            concedes = _say(outcome.concedes, words(claim.concedes.text))
    return ClaimView(
        number,
        words(claim.statement),
        names,
        outcome,
        next((one for one in said if one is not None), None),
        interpretations,
        right,
        concedes,
        find_telling(outcome.verdict, [one for one in interpretations if one.votes]),
    )


def _say(outcome: SentenceOutcome | None, text: Shown) -> Said | None:
    """Return a sentence with its numbers; None where it does not hold."""
    if outcome is None or not outcome.holds:
        return None
    return Said(text, outcome.numbers, _checks(outcome))


def _checks(
    outcome: InterpretationOutcome | SelfCheckOutcome | SentenceOutcome,
) -> tuple[CheckView, ...]:
    return tuple(CheckView(check_formula(one), one.cases) for one in outcome.checks)

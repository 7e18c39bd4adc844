"""From results on disk to what a page shows: typed records, no words, no HTML.

Words come from the catalogue of claims and the templates, in the page's language;
verdicts, numbers and their rows come from the results and nowhere else.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.checks import Words
from montecarlo.claims.records import failed_self_checks
from montecarlo.claims.schema import Catalogue, Claim
from montecarlo.report.content.claims_record import read_claims
from montecarlo.report.content.fitting import require_rows
from montecarlo.report.content.telling import telling
from montecarlo.report.content.views import (
    FAILING,
    VERDICTS,
    BorderView,
    CaseView,
    CheckView,
    ClaimView,
    Findings,
    InterpretationView,
    NumberView,
    RightView,
    Said,
    SelfCheckView,
    SourceView,
)
from montecarlo.report.content.z_scores import read_z_scores
from montecarlo.report.language.own_words import Shown, shown_words
from montecarlo.report.language.symbols import check_formula, row_symbol
from montecarlo.results.columns import CURVES, MEASUREMENTS, validate_table
from montecarlo.run_record import read_report_run


@dataclass(frozen=True, slots=True)
class Results:
    """A results folder, read back and verified.

    Attributes
    ----------
    measurements, curves : DataFrame
    claims, run : dict
        What claims.json and run.json hold.
    """

    measurements: pd.DataFrame
    curves: pd.DataFrame
    claims: dict[str, Any]
    run: dict[str, Any]


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
    montecarlo.results.folder.ResultsError
        If run.json is missing, a file does not agree with it, or is not as
        docs/results-folder.md says.
    """
    record = read_report_run(folder) if run is None else run
    claims = read_claims(folder)
    validate_table(folder / CURVES)
    require_rows(validate_table(folder / MEASUREMENTS), claims)
    return Results(
        _read_table(folder / MEASUREMENTS),
        _read_table(folder / CURVES),
        claims,
        record,
    )


def _read_table(path: Path) -> pd.DataFrame:
    """Read a table whose empty fields are missing numbers, and whose words are words.

    All at once: in pieces, a column that is empty at first has its type guessed twice.
    """
    return pd.read_csv(path, keep_default_na=False, na_values=[""], low_memory=False)


def gather(results: Results, catalogue: Catalogue | None = None) -> Findings:
    """Turn results into what the pages show.

    Parameters
    ----------
    results : Results
    catalogue : Catalogue, optional
        The one that the results were judged by; by default that of the five texts.
    """
    catalogue = catalogue or read_catalogue()
    by_id = {claim.id: claim for claim in catalogue.claim}
    words = partial(shown_words, language=catalogue.language)
    names = {text.key: words(text.name) for text in catalogue.text}
    numbers = {claim.id: n for n, claim in enumerate(catalogue.claim, start=1)}
    claims = tuple(
        _claim(numbers[record["id"]], record, by_id[record["id"]], _Words(names, words))
        for record in results.claims["claims"]
    )
    passages: dict[str, tuple[Said, ...]] = {}
    entries = {passage.id: passage for passage in catalogue.passage}
    for record in results.claims["passages"]:
        entry = entries[record["id"]]
        said = _said(record, words(entry.sentence.text))
        if said is not None:
            passages[entry.place] = (*passages.get(entry.place, ()), said)
    statements = {check.id: check.statement for check in catalogue.self_check}
    self_checks = tuple(
        SelfCheckView(
            record["id"],
            words(statements[record["id"]]),
            record["verdict"],
            _outcomes(record["checks"]),
            tuple(_check(check) for check in record["checks"]),
        )
        for record in results.claims["self_checks"]
    )
    found = Counter(claim.verdict for claim in claims)
    counts = tuple((verdict, found[verdict]) for verdict in VERDICTS if found[verdict])
    return Findings(
        claims,
        passages,
        self_checks,
        counts,
        results.claims["error_rate"],
        results.claims["simultaneous_error"],
        results.run,
        tuple(results.claims["models"]),
        tuple(results.claims["records"]),
        catalogue.language is not None,
        read_z_scores(results.claims),
        tuple(failed_self_checks(results.claims)),
    )


@dataclass(frozen=True, slots=True)
class _Words:
    """Names of the texts by key, and how a catalogue's words become shown ones."""

    names: Mapping[str, Shown]
    shown: Callable[[Words], Shown]


def _claim(
    number: int, record: Mapping[str, Any], claim: Claim, words: _Words
) -> ClaimView:
    labels = {
        interpretation.id: words.shown(interpretation.label)
        for interpretation in claim.interpretation
        if interpretation.label is not None
    }
    verdict = record["verdict"]
    interpretations = tuple(
        _interpretation(r, labels.get(r["id"])) for r in record["interpretations"]
    )
    pairs = zip(record["findings"], claim.finding, strict=True)
    said = (_said(one, words.shown(finding.text)) for one, finding in pairs)
    right = concedes = None
    if claim.right is not None and verdict in FAILING:
        sentence = _said(record["right"], words.shown(claim.right.sentence))
        line = _said(record["right"], words.shown(claim.right.arithmetic))
        if sentence is not None and line is not None:
            right = RightView(sentence, line)
    if claim.concedes is not None and verdict in FAILING:
        concedes = _said(record["concedes"], words.shown(claim.concedes.text))
    voting = [
        interpretation for interpretation in interpretations if interpretation.votes
    ]
    return ClaimView(
        number,
        claim.id,
        claim.topic,
        claim.kind,
        words.shown(claim.statement),
        tuple(_source(source, words.names) for source in record["sources"]),
        verdict,
        record["texts"],
        next((one for one in said if one is not None), None),
        interpretations,
        right,
        concedes,
        telling(verdict, voting),
        record.get("error_rate"),
    )


def _source(record: Mapping[str, Any], names: Mapping[str, Shown]) -> SourceView:
    return SourceView(
        names[record["text"]],
        record["text"],
        record["section"],
        record["point"],
        record["line"],
        tuple(record["sentence"]),
        record["quantifier"],
        record["form"],
        tuple(record["premises"]),
        tuple(record["admits"]),
    )


def _said(record: Mapping[str, Any], text: Shown) -> Said | None:
    """Return a sentence with its numbers; None where it does not hold."""
    if not record["holds"]:
        return None
    numbers = {
        name: NumberView(n["value"], n["std_error"], n["row"], n["percent"])
        for name, n in record["numbers"].items()
    }
    return Said(text, numbers, tuple(map(_check, record["checks"])))


def _interpretation(
    record: Mapping[str, Any], label: Shown | None
) -> InterpretationView:
    first = record["checks"][0]
    return InterpretationView(
        record["id"],
        label,
        row_symbol(first["quantity"], first["summary"], first["divisor"]),
        record["quantifier"],
        record["form"],
        record["share"],
        record["votes"],
        record["verdict"],
        Counter(place["outcome"] for place in record["places"]),
        tuple(_check(check) for check in record["checks"]),
        tuple(
            BorderView(
                b["distribution"],
                b["context"],
                b["n_keys"],
                tuple(b["d_k"]),
                tuple(b["outcomes"]),
            )
            for b in record["borders"]
        ),
        tuple(
            (place["distribution"], place["context"], place["n_keys"])
            for place in record["places"]
            if place["d_k"] is None
            and place["outcome"] == "refuted"
            and record["verdict"] == "conditional"
        ),
    )


def _outcomes(checks: Sequence[Mapping[str, Any]]) -> Mapping[str, int]:
    return Counter(case["outcome"] for check in checks for case in check["cases"])


def _check(record: Mapping[str, Any]) -> CheckView:
    cases = tuple(
        CaseView(
            case["distribution"],
            case["context"],
            case["n_keys"],
            case["d_k"],
            tuple(case["d_k_range"]),
            case["rows"][0] if len(case["rows"]) == 1 else "",
            case["estimate"],
            case["std_error"],
            (case["simultaneous_low"], case["simultaneous_high"]),
            (case["region_low"], case["region_high"]),
            case["outcome"],
            case["replicates_needed"],
            case["exact"],
            case["limit"],
        )
        for case in record["cases"]
    )
    return CheckView(check_formula(record), cases)

"""From results on disk to what a page shows: typed records, no words, no HTML.

Words come from the catalogue of claims and the templates, in the page's language;
verdicts, numbers and their rows come from the results and nowhere else.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.schema import Catalogue, Claim, Words
from montecarlo.report.own_words import Shown, shown_words
from montecarlo.report.symbols import check_formula, row_symbol
from montecarlo.report.views import (
    VERDICTS,
    BorderView,
    CellView,
    CheckView,
    ClaimView,
    Findings,
    ReadingView,
    RightView,
    SelfCheckView,
)
from montecarlo.results.folder import read_run


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
        If run.json is missing or a file does not agree with it.
    """
    record = read_run(folder) if run is None else run
    return Results(
        _read_table(folder / "measurements.csv"),
        _read_table(folder / "curves.csv"),
        json.loads((folder / "claims.json").read_text(encoding="utf-8")),
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
    claims = tuple(
        _claim(record, by_id[record["id"]], names, words)
        for record in results.claims["claims"]
    )
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
        self_checks,
        counts,
        results.claims["error_rate"],
        results.claims["decision_error"],
        results.run,
        tuple(results.claims["models"]),
        catalogue.language is not None,
    )


def _claim(
    record: Mapping[str, Any],
    claim: Claim,
    names: Mapping[str, Shown],
    words: Callable[[Words], Shown],
) -> ClaimView:
    labels = {
        reading.id: words(reading.label)
        for reading in claim.reading
        if reading.label is not None
    }
    verdict = record["verdict"]
    readings = tuple(_reading(r, labels.get(r["id"])) for r in record["readings"])
    sentence = claim.note
    if claim.sentences is not None:
        came_out = {reading.id: reading.verdict for reading in readings}
        sentence = claim.sentences.chosen(verdict, came_out)
    right = None
    if claim.right is not None and verdict in ("refuted", "conditional"):
        view = _reading(record["right"], None)
        right = RightView(
            words(claim.right.sentence), words(claim.right.arithmetic), view
        )
    return ClaimView(
        claim.id,
        claim.topic,
        words(claim.statement),
        tuple((names[s["text"]], s["text"], s["section"]) for s in record["sources"]),
        verdict,
        None if sentence is None else words(sentence),
        readings,
        right,
        _smallest(readings, "refuted")
        if verdict in ("refuted", "conditional")
        else None,
        _telling(verdict, readings),
    )


def _smallest(
    readings: Sequence[ReadingView], outcome: str
) -> tuple[CheckView, CellView] | None:
    """Return the cell of an outcome with the smallest d_k and n, and its check."""
    return min(
        ((check, cell) for check, cell in _cells(readings) if cell.outcome == outcome),
        key=lambda found: (found[1].d_k_range[1], found[1].n_keys or 0),
        default=None,
    )


def _telling(
    verdict: str, readings: Sequence[ReadingView]
) -> tuple[CheckView, CellView] | None:
    """Return the cell that stands for a verdict.

    Of a claim that fails somewhere, the smallest counterexample; of one that is open,
    the smallest place that is; of one that holds, the place that it holds by the least.
    """
    if verdict in ("refuted", "conditional"):
        found = _smallest(readings, "refuted")
        if found is not None:
            return found
    if verdict in ("conditional", "inconclusive"):
        found = _smallest(readings, "inconclusive")
        if found is not None:
            return found
    held = [pair for pair in _cells(readings) if pair[1].outcome == "supported"]
    return min(held, key=lambda pair: _margin(pair[1]), default=None)


def _cells(
    readings: Sequence[ReadingView],
) -> list[tuple[CheckView, CellView]]:
    return [(c, cell) for r in readings for c in r.checks for cell in c.cells]


def _margin(cell: CellView) -> float:
    """Return how many standard errors an interval stays away from its window's ends."""
    gaps = [
        abs(end - limit)
        for end, limit in zip(cell.decision, cell.window, strict=True)
        if end is not None and limit is not None
    ]
    if not gaps or not cell.std_error:
        return math.inf
    return min(gaps) / cell.std_error


def _reading(record: Mapping[str, Any], label: Shown | None) -> ReadingView:
    first = record["checks"][0]
    return ReadingView(
        record["id"],
        label,
        row_symbol(first["quantity"], first["summary"], first["divisor"]),
        record["scope"],
        record["verdict"],
        Counter(place["outcome"] for place in record["places"]),
        tuple(_check(check) for check in record["checks"]),
        tuple(
            BorderView(
                b["law"],
                b["context"],
                b["n_keys"],
                tuple(b["d_k"]),
                tuple(b["outcomes"]),
            )
            for b in record["borders"]
        ),
        tuple(
            (place["law"], place["context"], place["n_keys"])
            for place in record["places"]
            if place["d_k"] is None
            and place["outcome"] == "refuted"
            and record["verdict"] == "conditional"
        ),
    )


def _outcomes(checks: Sequence[Mapping[str, Any]]) -> Mapping[str, int]:
    return Counter(cell["outcome"] for check in checks for cell in check["cells"])


def _check(record: Mapping[str, Any]) -> CheckView:
    cells = tuple(
        CellView(
            cell["law"],
            cell["context"],
            cell["n_keys"],
            cell["d_k"],
            tuple(cell["d_k_range"]),
            cell["rows"][0] if len(cell["rows"]) == 1 else "",
            cell["estimate"],
            cell["std_error"],
            (cell["decision_low"], cell["decision_high"]),
            (cell["window_low"], cell["window_high"]),
            cell["outcome"],
            cell["replicates_needed"],
        )
        for cell in record["cells"]
    )
    return CheckView(check_formula(record), cells)

"""findings.json: every verdict with its words in all languages, its numbers, its rows.

A text is a mapping from codes of languages to what stands there, formulas between
dollars; infinite ends of intervals are null.  All else is as the judge wrote it.
"""

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from montecarlo.claims.checks import Words
from montecarlo.claims.outcomes import (
    CheckOutcome,
    ClaimOutcome,
    InterpretationOutcome,
    SelfCheckOutcome,
)
from montecarlo.report.content.findings import Said, find_telling
from montecarlo.report.figures import FIGURES
from montecarlo.report.language.catalogues import Language, read_language
from montecarlo.report.language.own_words import show_words
from montecarlo.report.language.symbols import check_formula, check_symbol
from montecarlo.report.render.contents import Contents, canonical_command

#: Version of its shape.
SCHEMA = 4
Plain = dict[str, Any]


def render_findings(contents: Contents, _: Language) -> str:
    """Return the findings as JSON."""
    findings, run = contents.findings, contents.findings.run
    languages = [read_language(code) for code in contents.languages]

    def translate(words: Words | None) -> dict[str, str] | None:
        if words is None:
            return None
        shown = show_words(words, findings.catalogue.language)
        if isinstance(shown, dict):
            return shown
        return {each.code: each.translate(shown) for each in languages}

    def say(said: Said | None) -> Plain | None:
        if said is None:
            return None
        return {
            "text": translate(said.text),
            "numbers": msgspec.to_builtins(said.numbers),
            "checks": _checks(said.checks),
        }

    def interpret(claim: ClaimOutcome, one: InterpretationOutcome) -> Plain:
        label = translate(findings.label(claim, one))
        named = {"label": label, "symbol": check_symbol(one.checks[0])}
        found: Plain = msgspec.to_builtins(one)
        return found | named | {"checks": _checks(one.checks)}

    def judged(claim: ClaimOutcome) -> Plain:
        told, right = find_telling(claim), findings.right(claim)
        meanings = claim.interpretations
        found: Plain = msgspec.to_builtins(claim)
        del found["findings"]  # the one that is said stands alone
        return found | {
            "number": findings.number(claim),
            "statement": translate(findings.words_of(claim).statement),
            "names": {key: translate(name) for key, name in findings.names.items()},
            "finding": say(findings.finding(claim)),
            "interpretations": [interpret(claim, one) for one in meanings],
            "right": right and {"sentence": say(right[0]), "arithmetic": say(right[1])},
            "concedes": say(findings.concedes(claim)),
            "telling": told and [*_checks(told[:1]), msgspec.to_builtins(told[1])],
        }

    def checked(check: SelfCheckOutcome) -> Plain:
        return {
            "id": check.id,
            "statement": translate(findings.statement_of(check)),
            "verdict": str(check.verdict),
            "checks": _checks(check.checks),
        }

    found = {
        "program": "montecarlo",
        "schema": SCHEMA,
        "languages": list(contents.languages),
        "command": canonical_command(contents.findings.run),
        "seed": run["seed"],
        "versions": dict(run["versions"]),
        "error_rate": findings.record.error_rate,
        "simultaneous_error": findings.record.simultaneous_error,
        "counts": dict(findings.counts),
        "claims": [judged(claim) for claim in findings.claims],
        "passages": {
            place: [say(one) for one in passages]
            for place, passages in findings.passages.items()
        },
        "self_checks": [checked(check) for check in findings.record.self_checks],
        "figures": {
            name: FIGURES[name].name_numbers(fact)
            for name, fact in contents.facts.items()
            if name in FIGURES
        },
    }
    return json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _checks(checks: Iterable[CheckOutcome]) -> list[Plain]:
    """Return checks as formulas, with their cases."""
    return [
        {"formula": check_formula(one), "cases": msgspec.to_builtins(one.cases)}
        for one in checks
    ]

"""findings.json: every verdict with its words in all languages, its numbers, its rows.

A text is a mapping from codes of languages to what stands there, formulas between
dollars; infinite ends of intervals are null.
"""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.captions import name_numbers
from montecarlo.report.language.catalogues import SOURCE, Language, read_language
from montecarlo.report.language.own_words import OwnWords, Shown
from montecarlo.report.render.contents import Contents, File
from montecarlo.report.render.reproduce import canonical_command

#: Version of its shape.
SCHEMA = 4
#: Fields of views that hold texts.
_WORDS = {"statement", "text", "label"}


def files(_: Contents) -> Iterator[File]:
    """Yield one file for all languages."""
    yield "findings.json", render_findings, SOURCE


def render_findings(contents: Contents, _: Language) -> str:
    """Return the findings as JSON."""
    findings, run = contents.findings, contents.findings.run
    languages = [read_language(code) for code in contents.languages]

    def translate(words: Shown | None) -> dict[str, str] | None:
        if words is None:
            return None
        if isinstance(words, OwnWords):
            return dict(words.texts)
        return {each.code: each.translate(words) for each in languages}

    def record(value: object) -> Any:  # noqa: ANN401 - plain data of any shape
        """Turn a view into a mapping, texts by language; numbers are left alone.

        What the judge wrote stands there as it is, beside what the view adds.
        """
        if isinstance(value, OwnWords):
            return translate(value)
        if isinstance(value, tuple | list):
            return [record(item) for item in value]
        fields = getattr(value, "__dataclass_fields__", None)
        if fields is None:
            return msgspec.to_builtins(value)
        made = {name: getattr(value, name) for name in fields}
        judged = msgspec.to_builtins(made.pop("outcome", {}))
        judged.pop("findings", None)  # the one that is said stands alone
        for name, part in made.items():
            if name == "names":
                judged[name] = {key: translate(words) for key, words in part.items()}
            else:
                judged[name] = translate(part) if name in _WORDS else record(part)
        return judged

    found = {
        "program": "montecarlo",
        "schema": SCHEMA,
        "languages": list(contents.languages),
        "command": canonical_command(run),
        "seed": run["seed"],
        "versions": dict(run["versions"]),
        "error_rate": findings.record.error_rate,
        "simultaneous_error": findings.record.simultaneous_error,
        "counts": dict(findings.counts),
        "claims": [record(claim) for claim in findings.by_weight()],
        "passages": {
            place: record(passages) for place, passages in findings.passages.items()
        },
        "self_checks": record(findings.self_checks),
        "figures": {
            name: name_numbers(FIGURES[name], fact)
            for name, fact in contents.facts.items()
            if name in FIGURES
        },
    }
    return json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

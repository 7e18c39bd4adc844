"""Answers as paragraphs to quote: ``measure --format markdown --lang es``."""

import shlex
from collections.abc import Sequence

from montecarlo.cli.exits import INTERRUPTED
from montecarlo.cli.points import Answer
from montecarlo.names import look_up_all
from montecarlo.report.language.catalogues import (
    LANGUAGES,
    SOURCE,
    Language,
    read_language,
)
from montecarlo.report.language.quoting import quote


def read_languages(codes: Sequence[str] | None) -> list[Language]:
    """Return the languages of some codes; by default English."""
    known = {code: code for code in LANGUAGES}
    return [read_language(one) for one in look_up_all("lang", codes or [SOURCE], known)]


def format_quotation(
    found: Answer, typed: Sequence[str], languages: Sequence[Language]
) -> str:
    """Return a paragraph in each language, with the seed in its command."""
    seeded = any(word.partition("=")[0] in {"--seed", "--row"} for word in typed)
    words = [*typed, *([] if seeded else ["--seed", "1"])]
    command = f"python -m montecarlo measure {shlex.join(words)}"
    if found.status == INTERRUPTED:  # whose replicates nobody has again
        command = ""
    return "\n\n".join(quote(found.measured, one, command) for one in languages)

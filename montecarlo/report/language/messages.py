"""The messages that a language has to translate.

``python -m montecarlo.report.language.messages`` brings the catalogues up to date.

Messages stand in the templates, as ``_("…")`` and ``plain("…")``, in the modules of
figures, as ``message("…")``, in the catalogue of claims, and in the tables of
distributions and quantities.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_python
from babel.messages.pofile import read_po, write_po
from jinja2.ext import babel_extract

from montecarlo.attention.quantities import QUANTITIES
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.papers import read_papers
from montecarlo.claims.recorded import RECORDED
from montecarlo.names import look_up
from montecarlo.report.language.catalogues import (
    LANGUAGES,
    SOURCE,
    Language,
    catalogue_path,
)
from montecarlo.report.language.templates import template_folder
from montecarlo.sampling.distributions import DISTRIBUTIONS

KEYWORDS = ("_", "plain")
#: Read and not imported: before anything is sampled, nothing that draws is needed.
FIGURES = Path(__file__).parents[1] / "figures"
#: Columns that a line of a catalogue may have.
WIDTH = 88
#: Lines that Babel adds: clocks, empty addresses, braces of LaTeX taken for formats.
_NOISE = (
    '"POT-Creation-Date',
    '"PO-Revision-Date',
    '"Generated-By',
    '"Report-Msgid-Bugs-To',
    '"Last-Translator',
    '"Language-Team',
    '"Project-Id-Version',
    "#, python-",
)


def source_messages() -> dict[str, list[str]]:
    """Return every message with the places where it stands."""
    found: dict[str, list[str]] = {}
    in_catalogue = [(str(words), place) for words, place in read_catalogue().words()]
    named = [(one.words, "a distribution") for one in DISTRIBUTIONS.values()]
    known = {**QUANTITIES, **RECORDED}.values()
    named += [(one.words, "a quantity") for one in known if one.words]
    in_package = (*_in_templates(), *_in_figures())
    of_papers = read_papers().words()
    for message, place in (*in_package, *named, *in_catalogue, *of_papers):
        places = found.setdefault(message, [])
        if place not in places:
            places.append(place)
    return found


def require_complete(languages: Iterable[Language]) -> None:
    """Make sure that languages have every message, before anything is sampled.

    Raises
    ------
    montecarlo.report.language.catalogues.LanguageError
        If one is missing.
    """
    messages = source_messages()
    for language in languages:
        for message in messages:
            language.translate(message)


def _in_templates() -> Iterator[tuple[str, str]]:
    for path in sorted(template_folder().rglob("*.html.j2")):
        for message in _of_template(path.read_bytes()):
            yield message, path.name


@lru_cache(maxsize=128)
def _of_template(content: bytes) -> tuple[str, ...]:
    found = [one for _, _, one, _ in babel_extract(BytesIO(content), KEYWORDS, (), {})]
    # a call with values gives a tuple, the message first
    first = [one[0] if isinstance(one, tuple) else one for one in found]
    # None is a variable: the catalogue's own message
    return tuple(str(message) for message in first if message is not None)


def _in_figures() -> Iterator[tuple[str, str]]:
    for path in sorted(FIGURES.rglob("*.py")):
        for message in _of_module(path.read_bytes()):
            yield message, path.name


@lru_cache(maxsize=128)
def _of_module(content: bytes) -> tuple[str, ...]:
    found = extract_python(BytesIO(content), {"message": None}, (), {})
    return tuple(str(message) for _, _, message, _ in found)


def update_catalogue(code: str, old: bytes) -> bytes:
    """Return a language's catalogue with the messages of today.

    Messages that are gone are dropped; new ones are empty, to be translated.
    """
    known = {str(m.id): m for m in read_po(BytesIO(old), locale=code) if m.id}
    fresh = Catalog(locale=code, project="montecarlo", header_comment="", fuzzy=False)
    for message, places in source_messages().items():
        have = known.get(message)
        fresh.add(message, have.string if have else "", user_comments=places)
    out = BytesIO()
    write_po(out, fresh, width=WIDTH, omit_header=False, no_location=True)
    lines = out.getvalue().decode().splitlines()
    kept = [line for line in lines if not line.startswith(_NOISE)]
    return ("\n".join(kept).lstrip("\n") + "\n").encode()


def main(argv: Sequence[str] | None = None) -> int:
    """Bring catalogues up to date; returns 1 if something is left to translate."""
    chosen = list(sys.argv[1:] if argv is None else argv)
    left = 0
    for code in chosen or [code for code in LANGUAGES if code != SOURCE]:
        look_up("language", code, LANGUAGES)
        path = catalogue_path(code)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = update_catalogue(code, path.read_bytes() if path.exists() else b"")
        path.write_bytes(fresh)
        missing = [m for m in read_po(BytesIO(fresh)) if m.id and not m.string]
        print(f"{path.name} ({code}): {len(missing)} messages to translate")
        left += len(missing)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())

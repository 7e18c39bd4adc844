"""Updates the message catalogues of all languages; ``make translations`` runs this.

Messages are in the templates, as ``_("…")`` and ``plain("…")``; in the modules of
figures, as ``message("…")``; in `quoting`, as ``say("…")``; in the catalogue of claims;
and in the tables of distributions and quantities.
"""

import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from montecarlo.attention.quantities import QUANTITIES
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.names import look_up
from montecarlo.report.language.catalogues import (
    LANGUAGES,
    SOURCE,
    catalogue_path,
    find_shipped,
    translation_fault,
)
from montecarlo.report.language.quoting import quantity_words
from montecarlo.sampling.distributions import DISTRIBUTIONS

KEYWORDS = {"_": None, "plain": None, "message": None, "say": None}
#: Babel's extractors, by pattern of file names.
EXTRACTORS = [("**.html.j2", "jinja2.ext:babel_extract"), ("**.py", "python")]
TEMPLATES = find_shipped("report_templates")
QUOTING, FIGURES = Path(__file__).parent, Path(__file__).parents[1] / "figures"
#: Line length of catalogues.
WIDTH = 88
#: Beginnings of lines by Babel that are dropped: times, empty addresses, wrong formats.
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
    """Return all messages: message -> names of the files or entries that use it."""
    found: dict[str, list[str]] = {}
    named = [(one.words, "a distribution") for one in DISTRIBUTIONS.values()]
    named += [(quantity_words(one), "a quantity") for one in QUANTITIES.values()]
    named += [(str(words), place) for words, place in read_catalogue().words()]
    extracted = (*_extract(TEMPLATES), *_extract(FIGURES), *_extract(QUOTING))
    for message, place in (*extracted, *named):
        places = found.setdefault(message, [])
        if place not in places:
            places.append(place)
    return found


def _extract(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (message, name of its file) for each message in the files of a folder."""
    found = extract_from_dir(folder, EXTRACTORS, {}, KEYWORDS)
    for file, _, message, *_ in sorted(found, key=lambda one: one[:2]):
        # of a call with several arguments, the message is the first
        yield message if isinstance(message, str) else message[0], Path(file).name


def update_catalogue(code: str, old: bytes) -> Catalog:
    """Return the message catalogue of a language with exactly the current messages.

    ``old`` is the content of the .po file so far.  Its translations are kept.  New
    messages have an empty translation.
    """
    known = {str(m.id): m for m in read_po(BytesIO(old), locale=code) if m.id}
    fresh = Catalog(locale=code, project="montecarlo", header_comment="", fuzzy=False)
    for message, places in source_messages().items():
        have = known.get(message)
        kept = (have.string, have.flags & {"fuzzy"}) if have else ("", ())
        fresh.add(message, kept[0], flags=kept[1], user_comments=places)
    return fresh


def write_catalogue(catalogue: Catalog) -> bytes:
    """Return a message catalogue as the content of a .po file, without times."""
    out = BytesIO()
    write_po(out, catalogue, width=WIDTH, omit_header=False, no_location=True)
    lines = out.getvalue().decode().splitlines()
    kept = [line for line in lines if not line.startswith(_NOISE)]
    return ("\n".join(kept).lstrip("\n") + "\n").encode()


def main(argv: Sequence[str] | None = None) -> int:
    """Update the message catalogues of languages; return the exit status.

    ``argv`` has codes of languages, by default all but English.  The status is 1 if a
    message lacks a valid translation, otherwise 0.  An unknown code raises an
    `InputError`.
    """
    chosen = list(sys.argv[1:] if argv is None else argv)
    faults: list[str] = []
    for code in chosen or [code for code in LANGUAGES if code != SOURCE]:
        look_up("language", code, LANGUAGES)
        path = catalogue_path(code)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = update_catalogue(code, path.read_bytes() if path.exists() else b"")
        path.write_bytes(write_catalogue(fresh))
        found = [fault for one in fresh if one.id and (fault := translation_fault(one))]
        faults += [f"language {code!r} {fault}" for fault in found]
        print(f"{path.name} ({code}): {len(found)} messages to translate")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

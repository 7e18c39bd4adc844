"""What a user wrote: read, checked, and set for pages as data, never as markup.

A text is in one or several languages.  A page shows that of its own language, or else
the first, marked as being in another.
"""

from functools import partial
from pathlib import Path

from markupsafe import Markup

from montecarlo.claims.catalogue import read_own_catalogue, within
from montecarlo.claims.checks import Words
from montecarlo.claims.schema import Catalogue
from montecarlo.names import look_up
from montecarlo.report.language.catalogues import LANGUAGES, Language, localise
from montecarlo.report.language.formulas import prose

#: The user's file in the folder of a report, from where it can be rendered again.
OWN_FILE = "claims.toml"


#: A message; or what a user wrote, by code of the language.
Shown = str | dict[str, str]


def show_words(words: Words, language: str | None) -> Shown:
    """Return a text of a catalogue as pages show it.

    ``language`` is that of `Catalogue.language`: None for messages; otherwise that of a
    plain text, and the first of several.
    """
    if isinstance(words, str):
        return words if language is None else {language: words}
    # stable: without the file's language, the first is the one that is written first
    return dict(sorted(words.items(), key=lambda text: text[0] != language))


def in_language(words: dict[str, str], code: str) -> tuple[str, str]:
    """Return code and text of a user's words: of this language, or else the first."""
    return (code, words[code]) if code in words else next(iter(words.items()))


def set_own_words(code: str, text: str) -> Markup:
    """Escape a user's text and set its formulas, with its language's decimal sign.

    Raises
    ------
    ValueError
        If the language is not known, or a formula is not understood or not closed.
    """
    language = Language(code, *look_up("language", code, LANGUAGES), {})
    found = prose(text, partial(localise, language))
    # filled into a message, it is looked through for formulas again
    return Markup(str(found).replace("$", "&#36;"))  # noqa: S704 - escaped by `prose`


def read_own_claims(path: Path) -> tuple[Catalogue, bytes]:
    """Read a user's file, make sure that pages can show it; return the bytes as well.

    Raises
    ------
    InputError
        If it is no catalogue, or a text is in a language that there is not or has a
        formula that is not understood; one line.
    """
    catalogue, content = read_own_catalogue(path)
    with within(f"{path.name}, field language"):
        look_up("language", catalogue.language or "", LANGUAGES)
    for words, place in catalogue.words():
        own = show_words(words, catalogue.language)
        for code, text in own.items() if isinstance(own, dict) else ():
            with within(f"{path.name}: {place}, field {code}"):
                set_own_words(code, text)
    return catalogue, content

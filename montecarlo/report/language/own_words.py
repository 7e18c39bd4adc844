"""Texts in a user's file of claims: reading, checking, and conversion for pages.

A text is in one or several languages.  A page shows the one in its own language, or
else the first, marked with its language.  All of it is escaped.
"""

from functools import partial
from pathlib import Path

from markupsafe import Markup

from montecarlo.claims.catalogue import at_place, read_own_catalogue
from montecarlo.claims.checks import Words
from montecarlo.claims.schema import Catalogue
from montecarlo.names import look_up
from montecarlo.report.language.catalogues import LANGUAGES, Language, localise
from montecarlo.report.language.formulas import prose

#: Name of the copy of the user's file in the folder of a report.
OWN_FILE = "claims.toml"


def words_by_language(words: Words, language: str | None) -> str | dict[str, str]:
    """Return a text of a catalogue as a message, or as a dict of wordings by language.

    ``language`` is `Catalogue.language`.  If it is None, a plain string is a message
    and returned as it is.  Otherwise a plain string is a wording in ``language``.  In a
    result such as ``{"de": "...", "en": "..."}``, ``language`` comes first.
    """
    if isinstance(words, str):
        return words if language is None else {language: words}
    # stable: if that language is missing, the order of the file remains
    return dict(sorted(words.items(), key=lambda text: text[0] != language))


def choose_text(words: dict[str, str], code: str) -> tuple[str, str]:
    """Return (language code, text) of the wording in a language, or of the first one.

    ``words`` maps codes of languages to wordings, and ``code`` is the wanted one.
    """
    return (code, words[code]) if code in words else next(iter(words.items()))


def typeset_own_words(code: str, text: str) -> Markup:
    """Return a user's text, in the language ``code``, as HTML with MathML for formulas.

    Raises
    ------
    InputError
        If the language is unknown, or a formula is malformed or not closed.
    """
    language = Language(code, *look_up("language", code, LANGUAGES), {})
    found = prose(text, partial(localise, language))
    # a message that it is filled into is searched for formulas
    return Markup(str(found).replace("$", "&#36;"))  # noqa: S704 - escaped by `prose`


def read_own_claims(path: Path) -> tuple[Catalogue, bytes]:
    """Return (catalogue in a user's file of claims, content of the file).

    Raises
    ------
    InputError
        If it is no valid catalogue, or pages cannot show a text: its language is
        unknown, or a formula is malformed.
    """
    catalogue, content = read_own_catalogue(path)
    with at_place(f"{path.name}, field language"):
        look_up("language", catalogue.language or "", LANGUAGES)
    for words, place in catalogue.words():
        own = words_by_language(words, catalogue.language)
        for code, text in own.items() if isinstance(own, dict) else ():
            with at_place(f"{path.name}: {place}, field {code}"):
                typeset_own_words(code, text)
    return catalogue, content

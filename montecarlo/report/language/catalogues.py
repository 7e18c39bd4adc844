"""Languages of pages: their message catalogues and number formats; the templates.

English is the source language.  A message that is missing, fuzzy or broken in a
catalogue appears in English with ``lang="en"``; ``make translations`` lists such
messages and fails.
"""

import io
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from babel import Locale
from babel.messages.catalog import Message
from babel.messages.pofile import PoFileError, read_po
from markupsafe import Markup

from montecarlo.errors import InputError
from montecarlo.report.language.numbers import CLOSE_PERCENT, NumberFormat

_PACKAGE = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Language:
    """A language of the report: code, BCP 47 tag, name, and translated messages."""

    code: str  # name of its pages and of its catalogue
    tag: str  # BCP 47, for the attribute ``lang``
    name: str  # in the language itself
    #: Source message to translation; empty for English, the source.
    messages: dict[str, str]

    @property
    def numbers(self) -> NumberFormat:
        """The format of numbers in the language."""
        return _number_format(self.code)

    def translate(self, message: str) -> str:
        """Return the translation of an English message, or else the message itself."""
        return self.messages.get(message, message)

    def markup(self, message: str) -> Markup:
        """Return the translation of a message as HTML.

        If there is none, the English message, marked with ``lang="en"``.  Messages
        themselves contain no markup: see `translation_fault`.
        """
        if self.code == SOURCE or message in self.messages:
            return Markup(self.translate(message))  # noqa: S704 - see above
        return Markup(f'<span lang="{SOURCE}">{message}</span>')  # noqa: S704

    def say(self, message: str, /, **values: object) -> Markup:
        """Return the translation of a message as HTML, with its placeholders filled in.

        Values are escaped unless they are markup.
        """
        return self.markup(message) % values

    def say_plain(self, message: str, /, **values: object) -> str:
        """Return the translation of a message as plain text, for an HTML attribute.

        ``values`` are filled in for the placeholders.  They are escaped for HTML unless
        they are markup.
        """
        return str(Markup(self.translate(message)) % values)  # noqa: S704 - see above


_number_format = lru_cache(lambda code: NumberFormat(Locale.parse(code)))
SOURCE = "en"
#: Code -> (BCP 47 tag, name in the language itself).
LANGUAGES = {
    "en": ("en", "English"),
    "de": ("de", "Deutsch"),
    "zh": ("zh-Hans", "中文"),
    "ja": ("ja", "日本語"),
    "es": ("es", "Español"),
}


def read_language(code: str) -> Language:
    """Return the language with a code, with the valid translations in its catalogue.

    Raises
    ------
    InputError
        If the catalogue is missing or malformed.
    KeyError
        If the code is not in `LANGUAGES`.
    """
    tag, name = LANGUAGES[code]
    if code == SOURCE:
        return Language(code, tag, name, {})
    try:
        messages = _read_messages(code, catalogue_path(code).read_bytes())
    except (OSError, UnicodeDecodeError, PoFileError) as error:
        raise InputError(f"language {code!r} must have a catalogue: {error}") from None
    return Language(code, tag, name, messages)


@lru_cache(maxsize=16)
def _read_messages(code: str, content: bytes) -> dict[str, str]:
    """Return the valid translations of a catalogue: English message -> translation.

    ``content`` is that of the .po file of the language ``code``.
    """
    catalogue = read_po(io.BytesIO(content), locale=code, abort_invalid=True)
    return {
        str(message.id): str(message.string)
        for message in catalogue
        if message.id and translation_fault(message) is None
    }


#: Parts that a translation must have as often as its source.
_KEPT = {
    "placeholder": re.compile(r"%(?:\(\w+\))?.?"),
    "formula": re.compile(r"\$[^$]*\$"),
}


def translation_fault(message: Message) -> str | None:
    """Return the reason why the translation of a message is invalid; None if valid.

    The reason follows the name of the language: ``must keep each formula of ...``.  A
    valid translation is not empty or fuzzy, contains no markup, and has each
    placeholder and formula of its source as often as the source.  Formulas may also
    occur more often.
    """
    source, target = str(message.id), str(message.string or "")
    if message.fuzzy or not target:
        return f"must translate {source!r}, got a fuzzy or empty one"
    if any(sign in target for sign in "<>&"):
        return f"must have no markup in messages, got {target!r}"
    for kind, pattern in _KEPT.items():
        have, want = (Counter(pattern.findall(t)) for t in (target, source))
        # a translation may repeat a formula, but not a number
        repeated = kind == "formula" and set(have) == set(want) and have >= want
        if have != want and not repeated:
            return f"must keep each {kind} of {source!r}, got {target!r}"
    return None


_POINT = re.compile(r"(?<=\d)\.(?=\d)")
#: Whole numbers of five or more digits, which are grouped.
_LONG = re.compile(r"(?<![\d.])\d{5,}(?![\d.])")


def localise(language: Language, latex: str) -> str:
    """Return a LaTeX formula with its numbers in the format of a language.

    In German ``n = 16384, 1.5`` becomes ``n = 16{.}384, 1{,}5``.  Signs are in braces,
    so that LaTeX does not take a comma for a separator.  The space before a percent
    sign is removed if the language has none.
    """
    numbers = language.numbers
    if language.code in CLOSE_PERCENT:
        latex = latex.replace(r"\,\%", r"\%")
    latex = _LONG.sub(lambda n: brace(numbers.text(int(n[0]), 0)), latex)
    mark = numbers.decimal_sign
    return latex if mark == "." else _POINT.sub(f"{{{mark}}}", latex)


def brace(written: str) -> str:
    """Return a written number as LaTeX, with braces around its signs: ``1{,}5``."""
    return re.sub(r"(?<=\d)(\D)(?=\d)", r"{\1}", written)


def find_shipped(name: str) -> Path:
    """Return the path of a file or folder in the package, or beside it in a checkout.

    Raises
    ------
    FileNotFoundError
        If it is in neither place.
    """
    for place in (_PACKAGE, _PACKAGE.parent):
        if (path := place / name).exists():
            return path
    raise FileNotFoundError(f"{name} must stand in or beside the package")


def read_template(name: str) -> str:
    """Return the text of a file in the folder of templates."""
    return find_shipped(f"report_templates/{name}").read_text(encoding="utf-8")


def catalogue_path(code: str) -> Path:
    """Return the path of the message catalogue of a language, a .po file."""
    return find_shipped("report_templates") / f"locale/{code}/LC_MESSAGES/montecarlo.po"

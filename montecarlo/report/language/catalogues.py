"""Languages: which there are, their catalogues, and how they write numbers.

English is the source.  A message that a catalogue lacks, or holds as fuzzy, is an
error: a page never falls back to English in silence.
"""

import io
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from babel import Locale
from babel.messages.catalog import Catalog
from babel.messages.pofile import PoFileError, read_po
from markupsafe import Markup

from montecarlo.errors import InputError
from montecarlo.report.language.numbers import CLOSE_PERCENT, NumberFormat
from montecarlo.report.language.templates import template_folder


class LanguageError(InputError):
    """A language catalogue that cannot be used; one line."""


@dataclass(frozen=True, slots=True)
class Language:
    """One language of the report."""

    code: str  # the name of its page and of its catalogue
    tag: str  # what ``lang`` says: BCP 47
    name: str  # what it calls itself
    #: Source message to translation; empty for English, the source.
    messages: dict[str, str]

    @property
    def numbers(self) -> NumberFormat:
        """How it writes numbers."""
        return NumberFormat(Locale.parse(self.code))

    def translate(self, message: str) -> str:
        """Return a message in this language.

        Raises
        ------
        LanguageError
            If the catalogue lacks it.
        """
        if self.code == SOURCE:
            return message
        try:
            return self.messages[message]
        except KeyError:
            raise LanguageError(
                f"language {self.code!r} must have a translation of {message!r}"
            ) from None

    def say(self, message: str, **values: object) -> Markup:
        """Return a message in this language with its placeholders filled in.

        Values are escaped unless they are markup; the message itself holds none,
        which `read_language` makes sure of.
        """
        text = Markup(self.translate(message))  # noqa: S704 - see above
        return text % {
            name: value if isinstance(value, Markup) else str(value)
            for name, value in values.items()
        }


SOURCE = "en"
#: Code to BCP 47 tag and own name.
LANGUAGES = {
    "en": ("en", "English"),
    "de": ("de", "Deutsch"),
    "zh": ("zh-Hans", "中文"),
    "ja": ("ja", "日本語"),
    "es": ("es", "Español"),
}


def read_language(code: str) -> Language:
    """Read the catalogue of a language.

    Raises
    ------
    LanguageError
        If the catalogue is missing, has a fuzzy message, or one with markup.
    """
    tag, name = LANGUAGES[code]
    if code == SOURCE:
        return Language(code, tag, name, {})
    try:
        messages = _read_messages(code, catalogue_path(code).read_bytes())
    except (OSError, UnicodeDecodeError, PoFileError) as error:
        raise LanguageError(
            f"language {code!r} must have a catalogue: {error}"
        ) from None
    return Language(code, tag, name, messages)


@lru_cache(maxsize=16)
def _read_messages(code: str, content: bytes) -> dict[str, str]:
    catalogue = read_po(io.BytesIO(content), locale=code, abort_invalid=True)
    return dict(_messages(code, catalogue))


def catalogue_path(code: str) -> Path:
    """Return where the catalogue of a language is."""
    return template_folder() / "locale" / code / "LC_MESSAGES" / "montecarlo.po"


#: What a translation must hold as often as its source.
_KEPT = {
    "placeholder": re.compile(r"%(?:\(\w+\))?.?"),
    "formula": re.compile(r"\$[^$]*\$"),
}


def _messages(code: str, catalogue: Catalog) -> list[tuple[str, str]]:
    pairs = []
    for message in catalogue:
        if not message.id:
            continue
        source, target = str(message.id), str(message.string or "")
        if message.fuzzy or not target:
            raise LanguageError(
                f"language {code!r} must translate {source!r}, got a fuzzy or empty one"
            )
        if any(sign in target for sign in "<>&"):
            raise LanguageError(
                f"language {code!r} must have no markup in messages, got {target!r}"
            )
        for kind, pattern in _KEPT.items():
            have, want = (Counter(pattern.findall(t)) for t in (target, source))
            # a language may have to repeat a formula, but never a number
            repeated = kind == "formula" and set(have) == set(want) and have >= want
            if have != want and not repeated:
                raise LanguageError(
                    f"language {code!r} must keep each {kind} of {source!r}, "
                    f"got {target!r}"
                )
        pairs.append((source, target))
    return pairs


_POINT = re.compile(r"(?<=\d)\.(?=\d)")
#: Whole numbers that are written in groups, as in tables.
_LONG = re.compile(r"(?<![\d.])\d{5,}(?![\d.])")


def localise(language: Language, latex: str) -> str:
    """Exchange decimal points in LaTeX; braces keep a comma from being a separator.

    Long numbers are grouped; a sign of per cent has no space before it where the
    language wants none.
    """
    numbers = language.numbers
    if language.code in CLOSE_PERCENT:
        latex = latex.replace(r"\,\%", r"\%")
    latex = _LONG.sub(lambda n: brace(numbers.text(int(n[0]), 0)), latex)
    mark = numbers.mark
    return latex if mark == "." else _POINT.sub(f"{{{mark}}}", latex)


def brace(written: str) -> str:
    """Keep the signs between groups of digits from being separators of a formula."""
    return re.sub(r"(?<=\d)(\D)(?=\d)", r"{\1}", written)

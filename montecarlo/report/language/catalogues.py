"""Languages: which there are, their catalogues, how they write numbers, the templates.

English is the source.  A message that a catalogue lacks, or holds as fuzzy or broken,
appears in English and marked as such; ``make translations`` names it and fails.
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
    """One language of the report."""

    code: str  # the name of its page and of its catalogue
    tag: str  # what ``lang`` says: BCP 47
    name: str  # what it calls itself
    #: Source message to translation; empty for English, the source.
    messages: dict[str, str]

    @property
    def numbers(self) -> NumberFormat:
        """How it writes numbers."""
        return _number_format(self.code)

    def translate(self, message: str) -> str:
        """Return a message in this language, or in English where it is lacking."""
        return self.messages.get(message, message)

    def markup(self, message: str) -> Markup:
        """Return a message as markup; English that stands in is marked as English.

        Messages hold no markup of their own, which `fault_of` makes sure of.
        """
        if self.code == SOURCE or message in self.messages:
            return Markup(self.translate(message))  # noqa: S704 - see above
        return Markup(f'<span lang="{SOURCE}">{message}</span>')  # noqa: S704

    def say(self, message: str, /, **values: object) -> Markup:
        """Return a message as markup with its placeholders filled in.

        Values are escaped unless they are markup.
        """
        return self.markup(message) % values

    def say_plain(self, message: str, /, **values: object) -> str:
        """Return the same for an attribute or a title, where no markup can stand."""
        return str(Markup(self.translate(message)) % values)  # noqa: S704 - see above


_number_format = lru_cache(lambda code: NumberFormat(Locale.parse(code)))
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
    """Read the sound messages of a language's catalogue.

    Raises
    ------
    InputError
        If the catalogue is missing or malformed.
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
    catalogue = read_po(io.BytesIO(content), locale=code, abort_invalid=True)
    return {
        str(message.id): str(message.string)
        for message in catalogue
        if message.id and fault_of(message) is None
    }


#: What a translation must hold as often as its source.
_KEPT = {
    "placeholder": re.compile(r"%(?:\(\w+\))?.?"),
    "formula": re.compile(r"\$[^$]*\$"),
}


def fault_of(message: Message) -> str | None:
    """Return why a translation cannot be used, or None where it can.

    It must be there and not be fuzzy, hold no markup, and keep each placeholder and
    formula of its source.
    """
    source, target = str(message.id), str(message.string or "")
    if message.fuzzy or not target:
        return f"must translate {source!r}, got a fuzzy or empty one"
    if any(sign in target for sign in "<>&"):
        return f"must have no markup in messages, got {target!r}"
    for kind, pattern in _KEPT.items():
        have, want = (Counter(pattern.findall(t)) for t in (target, source))
        # a language may have to repeat a formula, but never a number
        repeated = kind == "formula" and set(have) == set(want) and have >= want
        if have != want and not repeated:
            return f"must keep each {kind} of {source!r}, got {target!r}"
    return None


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


def template_folder() -> Path:
    """Return the folder of the templates: beside the package, inside it in a wheel."""
    for place in (_PACKAGE, _PACKAGE.parent):
        if (folder := place / "report_templates").is_dir():
            return folder
    raise FileNotFoundError("report_templates must stand in or beside the package")


def read_template(name: str) -> str:
    """Return the text of a template by its path below the folder."""
    return (template_folder() / name).read_text(encoding="utf-8")


def catalogue_path(code: str) -> Path:
    """Return where the catalogue of a language is."""
    return template_folder() / "locale" / code / "LC_MESSAGES" / "montecarlo.po"

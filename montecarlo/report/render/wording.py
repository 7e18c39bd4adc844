"""Words, sentences and formulas of pages, set in a language: what templates call."""

import re
from collections.abc import Callable
from functools import partial

from babel import Locale
from markupsafe import Markup

from montecarlo.claims.outcomes import NumberOutcome
from montecarlo.report.content.views import Said
from montecarlo.report.language.catalogues import LANGUAGES, Language, localise
from montecarlo.report.language.formulas import math_ml, prose
from montecarlo.report.language.own_words import OwnWords, Shown, set_own_words
from montecarlo.report.render.embedding import Figure

#: As in all messages, a per cent sign is written twice.
_PLACEHOLDER = re.compile(r"%\((\w+)\)s|%%")


def functions_for(
    language: Language, *, quotable: bool
) -> dict[str, Callable[..., object]]:
    """Return what templates call, bound to a language; ``quotable``: with LaTeX."""
    numbers = language.numbers
    return {
        "_": partial(_say, language),
        "translated": partial(_translate, language),
        "said": partial(set_said, language),
        "plain_words": partial(_plain_words, language),
        "other_language": partial(_other_language, language),
        "plain": partial(_plain, language),
        "image": partial(_image, numbers.mark),
        "num": numbers.number,
        "pm": numbers.with_error,
        "percent": numbers.percent,
        "interval": numbers.interval,
        "region": numbers.region,
        "plain_number": numbers.plain,
        "tex": partial(_tex, language, quotable=quotable),
    }


def set_said(language: Language, said: Said) -> Markup:
    """Set a sentence that holds, with its numbers in the language's format.

    Returns
    -------
    Markup
        Each number has its raw value, and the row it comes from; a user's own words
        are in the page's language, or else in another.
    """
    own = isinstance(said.text, OwnWords)

    def fill(placeholder: re.Match[str]) -> str:
        if placeholder[0] == "%%":
            return "%%" if own else "%"  # a user's words come out as they were typed
        number = said.numbers.get(placeholder[1])
        return placeholder[0] if number is None else set_number(language, number)

    if isinstance(said.text, OwnWords):
        words = set_own_words(*said.text.in_language(language.code))
        return Markup(_PLACEHOLDER.sub(fill, words))  # noqa: S704 - escaped, see there
    text = _PLACEHOLDER.sub(fill, language.markup(said.text))
    text = text.replace("%%", "%")  # as in every message that has placeholders
    filled = Markup(text)  # noqa: S704 - a message, checked when read, and our numbers
    return _localised_prose(language, filled)


def set_number(language: Language, number: NumberOutcome) -> Markup:
    """Set a number of a sentence: value ± error, or a share in per cent.

    A count stands in full, an exact value with three digits.
    """
    row = number.row if number.std_error is not None else ""  # an exact value has none
    if number.std_error is None and not number.value.is_integer():
        return language.numbers.number(number.value, abs(number.value) / 10.0)
    write = language.numbers.percent if number.percent else language.numbers.with_error
    return write(number.value, number.std_error, row)


def _image(mark: str, figure: Figure) -> Markup:
    """Return a figure's data URI, with the language's decimal sign in its numbers."""
    return figure.source if mark == "." else figure.with_comma


def _say(language: Language, message: str, /, **values: object) -> Markup:
    """Translate a message, fill in its placeholders, set its formulas."""
    return _localised_prose(language, language.say(message, **values))


def _plain(language: Language, message: str, /, **values: object) -> str:
    """Translate a message for an attribute or a title: no markup, escaped on use."""
    return language.say_plain(message, **values)


def _translate(language: Language, words: Shown) -> Markup:
    """Translate a message of the catalogue of claims, which has no placeholders.

    What a user wrote is shown in the page's language, or else in another.
    """
    if isinstance(words, OwnWords):
        return set_own_words(*words.in_language(language.code))
    return _localised_prose(language, language.markup(words))


def _plain_words(language: Language, words: Shown) -> str:
    """Return such a text where no markup may stand, its formulas as they were typed."""
    if isinstance(words, OwnWords):
        return words.in_language(language.code)[1].replace(r"\$", "$")
    return language.translate(words)


def _other_language(language: Language, words: Shown) -> tuple[str, str] | None:
    """Return tag and name of the language that is shown where it is not the page's."""
    if not isinstance(words, OwnWords):
        return None
    code, _ = words.in_language(language.code)
    name = Locale.parse(code).get_language_name(language.code)
    return None if code == language.code else (LANGUAGES[code][0], name or code)


def _localised_prose(language: Language, text: Markup) -> Markup:
    """Set the formulas of a text with the language's decimal sign."""
    return prose(text, partial(localise, language))


def _tex(language: Language, latex: str, *, quotable: bool) -> Markup:
    """Set a formula that the program made, with the language's decimal sign.

    With its LaTeX where it is ``quotable``: Markdown is made from that.
    """
    formula = math_ml(localise(language, latex), quotable=quotable)
    return Markup(formula)  # noqa: S704 - MathML from a fixed converter

"""Rendering of self-contained HTML pages from contents and templates.

A report has a main page and an evidence page, with every check, table and figure, in
each language.  A report of a user's own claims has a single page with both.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from functools import lru_cache, partial

from babel import Locale
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from montecarlo.attention.divisors import DIVISORS
from montecarlo.claims.checks import Words
from montecarlo.claims.outcomes import NumberOutcome, find_thresholds
from montecarlo.report.content import findings as selection
from montecarlo.report.content.findings import FilledSentence
from montecarlo.report.content.practice import read_practice
from montecarlo.report.content.texts import group_texts, part_of
from montecarlo.report.figures import EVERY_FIGURE
from montecarlo.report.figures.attention import MIDDLE, map_paths
from montecarlo.report.figures.by_dimension import passed_on
from montecarlo.report.language import symbols
from montecarlo.report.language.catalogues import (
    LANGUAGES,
    Language,
    find_shipped,
    localise,
    read_language,
    read_template,
)
from montecarlo.report.language.formulas import math_ml, prose
from montecarlo.report.language.own_words import (
    choose_text,
    typeset_own_words,
    words_by_language,
)
from montecarlo.report.render.contents import (
    RELEASED,
    TABLES,
    Contents,
    canonical_command,
    data_uri,
    place_figures,
)
from montecarlo.sampling import design_points, distributions
from montecarlo.theory.simulated_rows import simulated_table

#: Placeholder for the table in the script of the explorer.
_TABLE = "EXPLORER_TABLE"
#: Optional end tags of cells and rows, which are left out: pages have thousands.
_IMPLIED = re.compile(r"</(?:td|th|tr)>\s*(?=<(?:td|th|tr|/tr|/thead|/tbody)\b)")
#: Content security policy of pages: no requests; only the page's own style and script,
#: by their hashes.
POLICY = (
    "default-src 'none'; img-src data:; font-src data:; style-src '{style}'; "
    "script-src {script}; base-uri 'none'; form-action 'none'"
)
#: Spaces between Chinese or Japanese characters and numbers or formulas, which are
#: removed: the style sheet sets these distances.
_CJK = r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]"
_APART = re.compile(
    rf"(?<={_CJK}) (?=<(?:math|data|span class=(?:label|\"kept\")))"
    rf"|(?:(?<=</math>)|(?<=</data>)) (?={_CJK})"
    rf"|(?<=<)(span class=label>[^<]*</span>) (?={_CJK})"
)
#: A placeholder, or an escaped percent sign.
_PLACEHOLDER = re.compile(r"%\((\w+)\)s|%%")


def render(
    template: str,
    contents: Contents,
    language: Language,
    *,
    quotable: bool = False,
    **values: object,
) -> str:
    """Return a page in a language, as the text of an HTML file.

    Parameters
    ----------
    template : str
        ``report``, ``evidence``, ``erratum``, ``index`` or ``captions``.
    contents : Contents
    language : Language
    quotable : bool
        Whether the HTML is for `to_markdown`: with the LaTeX of each formula, and
        without script and links to the evidence page.
    **values
        Variables for this template alone.
    """
    findings = contents.findings
    if template == "report" and findings.own:
        template = "own"  # a user's claims have a single page
    style = stylesheet()
    script = ""
    if template == "report" and not quotable:
        table = json.dumps(simulated_table(), separators=(",", ":"))
        script = read_template("explorer.js").replace(f"= {_TABLE}", f"= {table}")
    elif template == "index":
        script = read_template("index.js")
    page = environment().get_template(f"{template}.html.j2")
    text = page.render(
        **functions_for(language, findings.catalogue.language, quotable=quotable),
        contents=contents,
        findings=findings,
        numbers=contents.numbers,
        command=canonical_command(findings.run),
        quotable=quotable,
        shown=set(),  # names of the check tables on the page so far
        language=language,
        languages=[(code, *LANGUAGES[code]) for code in contents.languages],
        policy=policy(style, script),
        script=Markup(script),  # noqa: S704 - our own file, no message in it
        style=Markup(style),  # noqa: S704 - our own file, no message in it
        **values,
    ).rstrip("\n")
    if quotable:
        return f"{text}\n"
    if language.code in ("zh", "ja"):
        text = _APART.sub(lambda found: found[1] or "", text)
    return _IMPLIED.sub("", f"{text}\n")


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the Jinja environment, cached, with templates, filters and settings.

    Values are escaped.  An undefined name raises an error.
    """
    made = Environment(
        loader=FunctionLoader(read_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals |= {
        "design_points": design_points,
        "distributions": distributions,
        "selection": selection,
        "symbols": symbols,
        "map_paths": map_paths,
        "middle_weight": MIDDLE,
        "divisors": DIVISORS,
        "find_thresholds": find_thresholds,
        "explorer_table": simulated_table,
        "passed_on": passed_on,
        "figure_specs": EVERY_FIGURE,
        "released": RELEASED,
        "part_of": part_of,
        "place_figures": place_figures,
        "read_practice": read_practice,
        "group_texts": group_texts,
        "tables_of": lambda topic: TABLES.get(topic, ()),
    }
    return made


def stylesheet() -> str:
    """Return the CSS of pages, with the font of formulas embedded."""
    font = find_shipped("report_templates/fonts/math.woff2").read_bytes()
    style = read_template("report.css")
    return style.replace("MATH_FONT", base64.b64encode(font).decode())


def policy(style: str, script: str) -> str:
    """Return the content security policy of a page with this style and this script."""
    allowed = f"'{source_hash(script)}'" if script else "'none'"
    return POLICY.format(style=source_hash(style), script=allowed)


def source_hash(source: str) -> str:
    """Return the hash of a style or script for a content security policy.

    ``sha256-`` and the hash in base64.
    """
    digest = hashlib.sha256(source.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def functions_for(
    language: Language, own_language: str | None = None, *, quotable: bool = False
) -> dict[str, Callable[..., object]]:
    """Return the functions that templates call for a language, by name.

    Parameters
    ----------
    language : Language
    own_language : str, optional
        Code of the default language of a user's own texts; None for the five texts.
    quotable : bool
        Whether formulas have their LaTeX.
    """
    numbers, bare = language.numbers, dict[str, Markup]()
    typeset = partial(typeset_sentence, language, own_language)

    def say(message: str, /, **values: object) -> Markup:
        """Return the translation of a message as HTML, with values and MathML.

        Without values the result is cached.
        """
        if values:
            return _localised_prose(language, language.say(message, **values))
        if message not in bare:
            bare[message] = _localised_prose(language, language.say(message))
        return bare[message]

    def tex(latex: str) -> Markup:
        """Return a LaTeX formula as MathML, with numbers in the page's format.

        With ``quotable`` the LaTeX is added.
        """
        formula = math_ml(localise(language, latex), quotable=quotable)
        return Markup(formula)  # noqa: S704 - MathML from a fixed converter

    def in_language_of(code: str, message: str) -> Markup:
        """Return the translation of a message into another language, as HTML.

        ``code`` is that of the language.
        """
        other = read_language(code)
        return _localised_prose(other, other.say(message))

    return {
        "_": say,
        "in_language_of": in_language_of,
        # for an attribute or a title: escaped by the template
        "plain": language.say_plain,
        "said": typeset,
        "briefly": partial(typeset, brief=True),
        # words of a catalogue have no placeholders
        "translated": lambda words: typeset(FilledSentence(words, {})),
        "plain_words": partial(_plain_words, language, own_language),
        "other_language": partial(_other_language, language, own_language),
        "image": lambda figure: data_uri(figure.svg_in(language)),
        "num": numbers.number,
        "pm": numbers.with_error,
        "percent": numbers.percent,
        "brief": numbers.brief,
        "interval": numbers.interval,
        "bound": numbers.bound,
        "with_factor": numbers.with_factor,
        "region": numbers.region,
        "plain_number": numbers.plain,
        "tex": tex,
    }


def typeset_sentence(
    language: Language,
    own_language: str | None,
    sentence: FilledSentence,
    *,
    brief: bool = False,
) -> Markup:
    """Return a sentence as HTML, with its numbers in the format of the language.

    Numbers have their exact value and row id as attributes.  ``brief`` is as for
    `typeset_number`.  ``own_language`` is the default language of a user's texts, which
    may differ from that of the page; it is None for the five texts.
    """
    words = words_by_language(sentence.text, own_language)

    def fill(placeholder: re.Match[str]) -> str:
        """Return the HTML of a number of the sentence for a matched placeholder.

        A placeholder without a number is returned as it is.
        """
        if placeholder[0] == "%%":  # a percent sign in a user's text stays as typed
            return "%%" if isinstance(words, dict) else "%"
        number = sentence.numbers.get(placeholder[1])
        if number is None:
            return placeholder[0]
        return typeset_number(language, number, brief=brief)

    if isinstance(words, dict):
        text = typeset_own_words(*choose_text(words, language.code))
        return Markup(_PLACEHOLDER.sub(fill, text))  # noqa: S704 - escaped, see there
    filled = _PLACEHOLDER.sub(fill, language.markup(words))
    # the message was checked when it was read
    return _localised_prose(language, Markup(filled))  # noqa: S704


def typeset_number(
    language: Language, number: NumberOutcome, *, brief: bool = False
) -> Markup:
    """Return a number in a sentence as HTML: value ± standard error.

    It is in per cent if ``number.percent``.  An exact value has no error.  It has three
    significant digits, or is in full if it is whole.  With ``brief``, or exact and in
    per cent, a number has no error and at most ``number.digits`` significant digits.
    """
    value, error = number.value, number.std_error
    row = number.row if error is not None else ""
    if brief or (error is None and number.percent):
        return language.numbers.brief(
            value, error, row, percent=number.percent, digits=number.digits
        )
    if error is None and not value.is_integer():
        return language.numbers.number(value, abs(value) / 10.0)
    write = language.numbers.percent if number.percent else language.numbers.with_error
    return write(value, error, row)


def _plain_words(language: Language, own_language: str | None, words: Words) -> str:
    """Return a text of the catalogue as plain text, with LaTeX between dollar signs.

    ``own_language`` is as for `typeset_sentence`.
    """
    text = words_by_language(words, own_language)
    if isinstance(text, dict):
        return choose_text(text, language.code)[1].replace(r"\$", "$")
    return language.translate(text)


def _other_language(
    language: Language, own_language: str | None, words: Words
) -> tuple[str, str] | None:
    """Return (tag, name) of the language of a text; None if it is that of the page.

    Such as ``("de", "German")``, with the name in the language of the page.  Also None
    if ``words`` is a message of the five texts' catalogue.  ``own_language`` is as for
    `typeset_sentence`.
    """
    text = words_by_language(words, own_language)
    if not isinstance(text, dict):
        return None
    code, _ = choose_text(text, language.code)
    name = Locale.parse(code).get_language_name(language.code)
    return None if code == language.code else (LANGUAGES[code][0], name or code)


def _localised_prose(language: Language, text: Markup) -> Markup:
    """Return a text as HTML: formulas as MathML, numbers in a language's format."""
    return prose(text, partial(localise, language))

"""Pages: self-contained HTML files in each language, from contents and templates.

The report says what was claimed and what was measured; its evidence holds every check,
table and figure behind that.  A report of a user's own claims is one page with both.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from babel import Locale
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from montecarlo.attention.divisors import DIVISORS
from montecarlo.claims.checks import Words
from montecarlo.claims.outcomes import NumberOutcome
from montecarlo.report.content import findings as selection
from montecarlo.report.content.findings import FilledSentence
from montecarlo.report.content.practice import read_practice
from montecarlo.report.content.texts import group_texts, part_of
from montecarlo.report.figures import EVERY_FIGURE
from montecarlo.report.figures.attention import MIDDLE, map_paths
from montecarlo.report.language import symbols
from montecarlo.report.language.catalogues import (
    LANGUAGES,
    Language,
    localise,
    read_language,
    read_template,
    template_folder,
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

#: What stands in the script of the explorer for its table.
_TABLE = "EXPLORER_TABLE"
#: End tags that HTML lets the next cell or row imply: tables have thousands of them.
_IMPLIED = re.compile(r"</(?:td|th|tr)>\s*(?=<(?:td|th|tr|/tr|/thead|/tbody)\b)")
#: The one place where the policy of the pages is written: no request, and of styles
#: and scripts the page's own, by their hashes.
POLICY = (
    "default-src 'none'; img-src data:; font-src data:; style-src '{style}'; "
    "script-src {script}; base-uri 'none'; form-action 'none'"
)
#: Spaces between Chinese or Japanese characters and numbers or formulas: the style
#: sheet sets all these apart alike.
_CJK = r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]"
_APART = re.compile(
    rf"(?<={_CJK}) (?=<(?:math|data|span class=(?:label|\"kept\")))"
    rf"|(?:(?<=</math>)|(?<=</data>)) (?={_CJK})"
    rf"|(?<=<)(span class=label>[^<]*</span>) (?={_CJK})"
)
#: As in all messages, a per cent sign is written twice.
_PLACEHOLDER = re.compile(r"%\((\w+)\)s|%%")


def render(
    template: str,
    contents: Contents,
    language: Language,
    *,
    quotable: bool = False,
    **values: object,
) -> str:
    """Render a page in a language, or what Markdown is made of.

    If ``quotable``, each formula, also of tables, has its LaTeX with it, as
    `to_markdown` needs; there is no script then, and no link to the evidence.
    ``values`` are what this template alone has.
    """
    findings = contents.findings
    if template == "report" and findings.own:
        template = "own"  # a user's claims have one page, with their evidence
    style = stylesheet()
    script = ""
    if template == "report" and not quotable:
        table = json.dumps(explorer_table(), separators=(",", ":"))
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
        shown=set(),  # names of tables of checks that stand on the page so far
        language=language,
        languages=[(code, *LANGUAGES[code]) for code in contents.languages],
        policy=policy(style, script),
        script=Markup(script),  # noqa: S704 - our own file, no message in it
        style=Markup(style),  # noqa: S704 - our own file, no message in it
        **values,
    )
    text = text.rstrip("\n") + "\n"
    if quotable:
        return text
    if language.code in ("zh", "ja"):
        text = _APART.sub(lambda found: found[1] or "", text)
    return _IMPLIED.sub("", text)


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Build the environment once: escaping on, undefined names an error."""
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
        "explorer_table": explorer_table,
        "figure_specs": EVERY_FIGURE,
        "released": RELEASED,
        "part_of": part_of,
        "place_figures": place_figures,
        "read_practice": read_practice,
        "group_texts": group_texts,
        "tables_of": lambda topic: TABLES.get(topic, ()),
    }
    return made


def explorer_table() -> dict[str, Any]:
    """Return what the explorer shows, by setting: see studies/explorer.py."""
    table: dict[str, Any] = json.loads(read_template("explorer.json"))
    return table


def stylesheet() -> str:
    """Return the style of every page, with the font for formulas inside."""
    font = template_folder().joinpath("fonts", "math.woff2").read_bytes()
    style = read_template("report.css")
    return style.replace("MATH_FONT", base64.b64encode(font).decode())


def policy(style: str, script: str) -> str:
    """Return the policy of a page: its own style, its own script if it has one."""
    allowed = f"'{source_hash(script)}'" if script else "'none'"
    return POLICY.format(style=source_hash(style), script=allowed)


def source_hash(source: str) -> str:
    """Return the source expression that allows exactly this style or script."""
    digest = hashlib.sha256(source.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def functions_for(
    language: Language, own: str | None = None, *, quotable: bool = False
) -> dict[str, Callable[..., object]]:
    """Return what templates call, bound to a language.

    ``own`` is the language of a user's own words where they do not say, and None for
    the five texts; with ``quotable`` formulas have their LaTeX.
    """
    numbers, bare = language.numbers, dict[str, Markup]()
    typeset = partial(typeset_sentence, language, own)

    def say(message: str, /, **values: object) -> Markup:
        """Translate a message, fill in its placeholders, set its formulas."""
        if values:
            return _localised_prose(language, language.say(message, **values))
        if message not in bare:
            bare[message] = _localised_prose(language, language.say(message))
        return bare[message]

    def tex(latex: str) -> Markup:
        """Set a formula that the program made, with the language's decimal sign."""
        formula = math_ml(localise(language, latex), quotable=quotable)
        return Markup(formula)  # noqa: S704 - MathML from a fixed converter

    def in_language_of(code: str, message: str) -> Markup:
        """Set a message in another language."""
        other = read_language(code)
        return _localised_prose(other, other.say(message))

    return {
        "_": say,
        "in_language_of": in_language_of,
        # for an attribute or a title: escaped on use
        "plain": language.say_plain,
        "said": typeset,
        "briefly": partial(typeset, brief=True),
        # words of a catalogue have no placeholders
        "translated": lambda words: typeset(FilledSentence(words, {})),
        "plain_words": partial(_plain_words, language, own),
        "other_language": partial(_other_language, language, own),
        "image": lambda figure: data_uri(figure.written(language)),
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
    language: Language, own: str | None, said: FilledSentence, *, brief: bool = False
) -> Markup:
    """Set a sentence that holds, with its numbers in the language's format.

    Each has its raw value, and the row it comes from; if ``brief``, at most three
    digits and no error.  A user's ``own`` words, in that language where they do not
    say, are in the page's language, or else in another.
    """
    words = words_by_language(said.text, own)

    def fill(placeholder: re.Match[str]) -> str:
        if placeholder[0] == "%%":  # a user's words come out as they were typed
            return "%%" if isinstance(words, dict) else "%"
        number = said.numbers.get(placeholder[1])
        if number is None:
            return placeholder[0]
        return typeset_number(language, number, brief=brief)

    if isinstance(words, dict):
        text = typeset_own_words(*choose_text(words, language.code))
        return Markup(_PLACEHOLDER.sub(fill, text))  # noqa: S704 - escaped, see there
    filled = _PLACEHOLDER.sub(fill, language.markup(words))
    # a message, checked when read, and our numbers
    return _localised_prose(language, Markup(filled))  # noqa: S704


def typeset_number(
    language: Language, number: NumberOutcome, *, brief: bool = False
) -> Markup:
    """Set a number of a sentence: value ± error, or a share in per cent.

    A count stands in full, an exact value, which has no row, with three digits; if
    ``brief``, no error, and few digits.
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


def _plain_words(language: Language, own: str | None, words: Words) -> str:
    """Return words where no markup may stand, their formulas as they were typed."""
    text = words_by_language(words, own)
    if isinstance(text, dict):
        return choose_text(text, language.code)[1].replace(r"\$", "$")
    return language.translate(text)


def _other_language(
    language: Language, own: str | None, words: Words
) -> tuple[str, str] | None:
    """Return tag and name of the language of words, where it is not the page's."""
    text = words_by_language(words, own)
    if not isinstance(text, dict):
        return None
    code, _ = choose_text(text, language.code)
    name = Locale.parse(code).get_language_name(language.code)
    return None if code == language.code else (LANGUAGES[code][0], name or code)


def _localised_prose(language: Language, text: Markup) -> Markup:
    """Set the formulas of a text with the language's decimal sign."""
    return prose(text, partial(localise, language))

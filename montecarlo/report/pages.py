"""Pages: one self-contained HTML file per language and an index, from findings."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from babel import Locale
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from montecarlo.report.embedding import Figure
from montecarlo.report.errata import Erratum
from montecarlo.report.explorer import Explorer
from montecarlo.report.figures.legends import Legend
from montecarlo.report.formulas import math_ml, prose
from montecarlo.report.language import LANGUAGES, Language, localised
from montecarlo.report.own_words import OwnWords, Shown, set_own_words
from montecarlo.report.report_card import CardView
from montecarlo.report.reproduce import canonical_command
from montecarlo.report.style import nested, policy, stylesheet
from montecarlo.report.tables import AuditRow, TailTable, TopicTable
from montecarlo.report.templates import read_template
from montecarlo.report.trained import TrainedModel
from montecarlo.report.views import ClaimView, Findings, ReadingView

_IMPLIED = re.compile(r"</(?:td|th|tr)>\s*(?=<(?:td|th|tr|/tr|/thead|/tbody)\b)")


@dataclass(frozen=True, slots=True)
class Contents:
    """What the pages of all languages show.

    Attributes
    ----------
    findings : Findings
    errata : sequence of Erratum
        Those that are written with the pages.
    figures : mapping
        Figure id to Figure; without those that the results have no data for.
    tables : mapping
        Topic to its table.
    facts : mapping
        Numbers that alternative texts name.
    audit : sequence of AuditRow
        The table of initialisations.
    tails : TailTable or None
        The table of overflow probabilities.
    legends : mapping
        Figure id to Legend: what it draws.
    threshold_panels : sequence of (ClaimView, ReadingView)
        What the panels of the figure of thresholds show, in their order.
    card : CardView or None
        The judge's report card, None where the package has none.
    trained : TrainedModel or None
        How the claims come out on one, None for claims of a user's own.
    explorer : Explorer or None
        Values to try, None where the grid has too few.
    languages : sequence of str
        Codes of the pages that are written together.
    """

    findings: Findings
    errata: Sequence[Erratum]
    figures: Mapping[str, Figure]
    tables: Mapping[str, TopicTable]
    facts: Mapping[str, Mapping[str, float]]
    audit: Sequence[AuditRow]
    tails: TailTable | None
    legends: Mapping[str, Legend]
    threshold_panels: Sequence[tuple[ClaimView, ReadingView]]
    card: CardView | None
    trained: TrainedModel | None
    explorer: Explorer | None
    languages: Sequence[str]


def render_page(contents: Contents, language: Language) -> str:
    """Render the report in one language.

    Its tables have thousands of cells, so they do without the end tags that HTML lets
    the next cell or row imply.
    """
    page = _render("report.html.j2", contents, language)
    return _IMPLIED.sub("", page)


def render_index(contents: Contents, language: Language) -> str:
    """Render the index, which offers the languages in their own names."""
    return _render("index.html.j2", contents, language)


def render_erratum(contents: Contents, erratum: Erratum, language: Language) -> str:
    """Render the erratum of one text."""
    return _render("erratum.html.j2", contents, language, erratum)


def render_captions(contents: Contents, language: Language) -> str:
    """Render the figures with their captions alone, as HTML for `to_markdown`."""
    return _render("captions.html.j2", contents, language, quotable=True)


def render_fragment(
    contents: Contents, language: Language, *, quotable: bool = False
) -> str:
    """Render the report for a page of someone else's: no head, one element.

    Parameters
    ----------
    contents : Contents
    language : Language
    quotable : bool
        Whether each formula, also of tables, has its LaTeX with it.
    """
    return _render("fragment.html.j2", contents, language, quotable=quotable)


def _render(
    template: str,
    contents: Contents,
    language: Language,
    erratum: Erratum | None = None,
    *,
    quotable: bool = False,
) -> str:
    return render_template(
        template,
        language,
        quotable=quotable,
        script=read_template("report.js") if template == "report.html.j2" else "",
        erratum=erratum,
        errata=contents.errata,
        languages=[(code, *LANGUAGES[code]) for code in contents.languages],
        findings=contents.findings,
        figures=contents.figures,
        tables=contents.tables,
        facts=contents.facts,
        audit=contents.audit,
        shown=set(),
        tails=contents.tails,
        legends=contents.legends,
        threshold_panels=contents.threshold_panels,
        card=contents.card,
        explorer=contents.explorer,
        command=canonical_command(contents.findings.run),
        trained=contents.trained,
    )


def render_template(
    template: str,
    language: Language,
    *,
    quotable: bool = False,
    script: str = "",
    **values: object,
) -> str:
    """Render a template in a language, with the style and policy of every page."""
    style, found = stylesheet(), _environment().get_template(template)
    page = found.render(
        **_functions(language, quotable=quotable),
        **values,
        language=language,
        policy=policy(style, script),
        script=Markup(script),  # noqa: S704 - our own file, no message in it
        style=Markup(style),  # noqa: S704 - our own file, no message in it
        nested_style=Markup(nested(style)),  # noqa: S704 - the same file
    )
    return page.rstrip("\n") + "\n"


@lru_cache(maxsize=1)
def _environment() -> Environment:
    """Build the environment once: escaping on, undefined names an error."""
    environment = Environment(
        loader=FunctionLoader(read_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters["zip"] = zip
    return environment


def _functions(
    language: Language, *, quotable: bool
) -> dict[str, Callable[..., object]]:
    """Return what templates call, bound to a language; macros see the context."""
    numbers = language.numbers
    return {
        "_": partial(_say, language),
        "translated": partial(_translated, language),
        "plain_words": partial(_plain_words, language),
        "other_language": partial(_other_language, language),
        "plain": partial(_plain, language),
        "num": numbers.number,
        "pm": numbers.with_error,
        "interval": numbers.interval,
        "window": numbers.window,
        "plain_number": numbers.plain,
        "image": partial(_image, numbers.mark),
        "tex": partial(_quotable_tex if quotable else _tex, language),
    }


def _image(mark: str, figure: Figure) -> Markup:
    """Return a figure's data URI, with the language's decimal sign in its numbers."""
    return figure.source if mark == "." else figure.with_comma


def _say(language: Language, message: str, /, **values: object) -> Markup:
    """Translate a message, fill in its placeholders, set its formulas."""
    return _localised_prose(language, language.say(message, **values))


def _plain(language: Language, message: str, /, **values: object) -> str:
    """Translate a message for an attribute or a title: no markup, escaped on use."""
    return str(language.say(message, **values))


def _translated(language: Language, words: Shown) -> Markup:
    """Translate a message of the catalogue of claims, which has no placeholders.

    What a user wrote is shown in the page's language, or else in another.
    """
    if isinstance(words, OwnWords):
        return set_own_words(*words.in_language(language.code))
    text = Markup(language.translate(words))  # noqa: S704 - checked when read
    return _localised_prose(language, text)


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
    return prose(text, partial(localised, language))


def _tex(language: Language, latex: str) -> Markup:
    """Set a formula that the program made, with the language's decimal sign."""
    formula = math_ml(localised(language, latex), quotable=False)
    return Markup(formula)  # noqa: S704 - MathML from a fixed converter


def _quotable_tex(language: Language, latex: str) -> Markup:
    """Set such a formula with its LaTeX, which Markdown is made from."""
    formula = math_ml(localised(language, latex))
    return Markup(formula)  # noqa: S704 - as above

"""Pages: two self-contained HTML files per language and an index, from findings.

The report says what was claimed and what was measured; its evidence holds every check,
table and figure behind that.  A report of a user's own claims is one page with both.
"""

import re
from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.records.training import ARMS
from montecarlo.report.content.places import parse_place
from montecarlo.report.content.tables.papers import view_literature
from montecarlo.report.content.texts.errata import Erratum
from montecarlo.report.content.texts.sources import sayers_of
from montecarlo.report.figures import EVERY_FIGURE
from montecarlo.report.figures.captions import numbers_in_words
from montecarlo.report.figures.palette import (
    ARM_LOOKS,
    DISTRIBUTION_LOOKS,
    DIVISOR_LOOKS,
    FORMAT_LOOKS,
)
from montecarlo.report.figures.verdicts import CASES
from montecarlo.report.language.catalogues import LANGUAGES, Language, read_template
from montecarlo.report.render.contents import Contents
from montecarlo.report.render.numbering import place_figures
from montecarlo.report.render.reproduce import canonical_command
from montecarlo.report.render.style import policy, stylesheet
from montecarlo.report.render.wording import functions_for
from montecarlo.sampling.distributions import DISTRIBUTIONS

_IMPLIED = re.compile(r"</(?:td|th|tr)>\s*(?=<(?:td|th|tr|/tr|/thead|/tbody)\b)")


def evidence_name(code: str) -> str:
    """Return the name of the file with the evidence of a language's report."""
    return f"evidence-{code}.html"


def render_page(contents: Contents, language: Language) -> str:
    """Render the report in one language; of own claims with its evidence inside.

    Its tables have thousands of cells, so they do without the end tags that HTML lets
    the next cell or row imply.
    """
    evidence = "" if contents.findings.own else evidence_name(language.code)
    page = render("report.html.j2", contents, language, evidence=evidence)
    return _IMPLIED.sub("", page)


def render_evidence(contents: Contents, language: Language) -> str:
    """Render the evidence of the report in one language, as above."""
    evidence = evidence_name(language.code)
    page = render("evidence.html.j2", contents, language, evidence=evidence)
    return _IMPLIED.sub("", page)


def papers_name(code: str) -> str:
    """Return the name of the file with what papers say, in a language."""
    return f"papers-{code}.html"


def render_papers(contents: Contents, language: Language) -> str:
    """Render what papers say, in one language."""
    return _IMPLIED.sub("", render("papers.html.j2", contents, language))


def render_index(contents: Contents, language: Language) -> str:
    """Render the index, which offers the languages in their own names."""
    return render("index.html.j2", contents, language)


def render_erratum(
    contents: Contents, language: Language, erratum: Erratum, *, quotable: bool = False
) -> str:
    """Render the erratum of one text; ``quotable`` as for `render`."""
    return render(
        "erratum.html.j2", contents, language, erratum=erratum, quotable=quotable
    )


def render_captions(contents: Contents, language: Language) -> str:
    """Render the figures with their captions alone, as HTML for `to_markdown`."""
    return render("captions.html.j2", contents, language, quotable=True, numbers=None)


def render_post(contents: Contents, language: Language) -> str:
    """Render the report without links to its other pages, as HTML for `to_markdown`."""
    return render("report.html.j2", contents, language, quotable=True, script="")


#: Templates whose pages have a script.
_SCRIPTED = ("report.html.j2", "evidence.html.j2")


def render(
    template: str, contents: Contents, language: Language, **values: object
) -> str:
    """Render a template with contents, and with what stands beside them.

    Each formula, also of tables, has its LaTeX with it where ``quotable`` is true;
    figures have no numbers where ``numbers`` is None.
    """
    record = contents.findings.record
    known: dict[str, Any] = {
        **{field.name: getattr(contents, field.name) for field in fields(contents)},
        "script": read_template("report.js") if template in _SCRIPTED else "",
        "evidence": "",
        "numbers": contents.numbers,
        "case_panels": contents.case_panels if CASES.id in contents.figures else (),
        "shown": set(),
        "card": record.report_card,
        "sensitivity": record.sensitivity,
        "training": record.training,
        "command": canonical_command(contents.findings.run),
    }
    return render_template(template, language, **(known | values))


def render_template(
    template: str,
    language: Language,
    *,
    languages: Sequence[str] = (),
    quotable: bool = False,
    script: str = "",
    **values: object,
) -> str:
    """Render a template in a language, with the style and policy of every page.

    ``languages`` are those of the pages that are written together.
    """
    style, found = stylesheet(), _environment().get_template(template)
    page = found.render(
        **functions_for(language, quotable=quotable),
        **{"numbers": None, **values},
        language=language,
        languages=[(code, *LANGUAGES[code]) for code in languages],
        policy=policy(style, script),
        script=Markup(script),  # noqa: S704 - our own file, no message in it
        style=Markup(style),  # noqa: S704 - our own file, no message in it
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
    environment.globals |= {"parse_place": parse_place, "sayers_of": sayers_of}
    environment.globals |= {"view_literature": view_literature}
    environment.globals |= {
        "arms": ARMS,
        "distributions": DISTRIBUTIONS,
        "divisors": DIVISORS,
        "figure_specs": EVERY_FIGURE,
        "formats": NUMBER_FORMATS,
        "looks": FORMAT_LOOKS | DIVISOR_LOOKS | ARM_LOOKS | DISTRIBUTION_LOOKS,
        "numbers_in_words": numbers_in_words,
        "place_figures": place_figures,
    }
    return environment

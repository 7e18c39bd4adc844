"""Pages: two self-contained HTML files per language and an index, from findings.

The report says what was claimed and what was measured; its evidence holds every check,
table and figure behind that.  A report of a user's own claims is one page with both.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from montecarlo.report.content.observed.trained import TrainedModel
from montecarlo.report.content.places import parse_place
from montecarlo.report.content.report_card import CardView
from montecarlo.report.content.sensitivity import Sensitivity
from montecarlo.report.content.tables.explorer import Explorer
from montecarlo.report.content.tables.saturated_rows import SaturatedRow
from montecarlo.report.content.tables.topics import AuditRow, TailTable, TopicTable
from montecarlo.report.content.texts.errata import Erratum
from montecarlo.report.content.texts.sources import sayers_of
from montecarlo.report.content.views import ClaimView, Findings, InterpretationView
from montecarlo.report.figures.captions.legends import Legend
from montecarlo.report.language.catalogues import LANGUAGES, Language
from montecarlo.report.language.templates import read_template
from montecarlo.report.render.embedding import Figure
from montecarlo.report.render.numbering import Numbers, number_all
from montecarlo.report.render.reproduce import canonical_command
from montecarlo.report.render.style import nested, policy, stylesheet
from montecarlo.report.render.wording import functions_for

_IMPLIED = re.compile(r"</(?:td|th|tr)>\s*(?=<(?:td|th|tr|/tr|/thead|/tbody)\b)")


@dataclass(frozen=True, slots=True)
class Contents:
    """What the pages of all languages show."""

    findings: Findings
    errata: Sequence[Erratum]  # those that are written with the pages
    #: Figure id to Figure; without those that the results have no data for.
    figures: Mapping[str, Figure]
    tables: Mapping[str, TopicTable]  # topic to its table
    facts: Mapping[str, Mapping[str, float]]  # numbers that alternative texts name
    audit: Sequence[AuditRow]  # the table of initialisations
    saturated: Sequence[SaturatedRow]  # the table of saturated rows and their gradients
    tails: TailTable | None  # the table of overflow probabilities
    legends: Mapping[str, Legend]  # figure id to Legend: what it draws
    #: What the panels of the figure of thresholds show, in their order.
    threshold_panels: Sequence[tuple[ClaimView, InterpretationView]]
    card: CardView | None  # the judge's report card, None where the package has none
    #: How the claims come out on one, None for claims of a user's own.
    trained: TrainedModel | None
    #: What other choices would change, None for claims of a user's own.
    sensitivity: Sensitivity | None
    explorer: Explorer | None  # values to try, None where the grid has too few
    languages: Sequence[str]  # codes of the pages that are written together

    @property
    def numbers(self) -> Numbers:
        """Numbers of the figures and tables that there are."""
        findings = self.findings
        there = {
            "divisors": self.explorer,
            "audit": self.audit,
            "models": findings.record.models,
            "records": findings.record.records,
            "saturated": self.saturated,
            "tails": self.tails,
            "self-checks": findings.self_checks,
            "sensitivity": self.sensitivity,
            "report-card": self.card and "report-card" in self.figures,
            "power": self.card and "report-card" in self.figures,
        }
        tables = {*self.tables, *(name for name, found in there.items() if found)}
        topics = {claim.topic for claim in findings.claims}
        return number_all(set(self.figures), tables, topics, own=findings.own)


def evidence_name(code: str) -> str:
    """Return the name of the file with the evidence of a language's report."""
    return f"evidence-{code}.html"


def render_page(contents: Contents, language: Language) -> str:
    """Render the report in one language; of own claims with its evidence inside.

    Its tables have thousands of cells, so they do without the end tags that HTML lets
    the next cell or row imply.
    """
    evidence = "" if contents.findings.own else evidence_name(language.code)
    return _IMPLIED.sub(
        "", _render("report.html.j2", contents, language, evidence=evidence)
    )


def render_evidence(contents: Contents, language: Language) -> str:
    """Render the evidence of the report in one language, as above."""
    page = _render(
        "evidence.html.j2", contents, language, evidence=evidence_name(language.code)
    )
    return _IMPLIED.sub("", page)


def render_index(contents: Contents, language: Language) -> str:
    """Render the index, which offers the languages in their own names."""
    return _render("index.html.j2", contents, language)


def render_erratum(
    contents: Contents,
    erratum: Erratum,
    language: Language,
    *,
    quotable: bool = False,
) -> str:
    """Render the erratum of one text; ``quotable`` as for `render_fragment`."""
    return _render("erratum.html.j2", contents, language, erratum, quotable=quotable)


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


#: Templates whose pages have a script.
_SCRIPTED = ("report.html.j2", "evidence.html.j2")


def _render(  # noqa: PLR0913 - what, of what, in which words, and what beside it
    template: str,
    contents: Contents,
    language: Language,
    erratum: Erratum | None = None,
    *,
    evidence: str = "",
    quotable: bool = False,
) -> str:
    return render_template(
        template,
        language,
        quotable=quotable,
        script=read_template("report.js") if template in _SCRIPTED else "",
        erratum=erratum,
        evidence=evidence,
        errata=contents.errata,
        languages=[(code, *LANGUAGES[code]) for code in contents.languages],
        findings=contents.findings,
        figures=contents.figures,
        numbers=None if template == "captions.html.j2" else contents.numbers,
        tables=contents.tables,
        saturated=contents.saturated,
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
        sensitivity=contents.sensitivity,
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
        **functions_for(language, quotable=quotable),
        **{"numbers": None, **values},
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
    environment.globals |= {
        "parse_place": parse_place,
        "sayers_of": sayers_of,
    }
    return environment

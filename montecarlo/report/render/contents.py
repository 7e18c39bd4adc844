"""What pages show, of results: gathered once, for all languages and formats."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from montecarlo.claims.schema import Catalogue
from montecarlo.report.content.findings import Results, gather
from montecarlo.report.content.tables.explorer import Explorer, read_explorer
from montecarlo.report.content.tables.saturated_rows import SaturatedRow, saturated_rows
from montecarlo.report.content.tables.topics import (
    AuditRow,
    TopicTable,
    audit_rows,
    topic_tables,
)
from montecarlo.report.content.texts.errata import Erratum, make_errata
from montecarlo.report.content.views import ClaimView, Findings, InterpretationView
from montecarlo.report.figures import EVERY_FIGURE, FIGURES
from montecarlo.report.figures.captions import (
    Legend,
    figure_facts,
    read_legends,
    threshold_panels,
)
from montecarlo.report.figures.verdicts import (
    CASES,
    case_rows,
    drawn_checks,
    with_verdicts,
)
from montecarlo.report.language.catalogues import Language
from montecarlo.report.language.numbers import decimal_mark
from montecarlo.report.language.own_words import Shown
from montecarlo.report.language.symbols import check_formula
from montecarlo.report.render.embedding import Drawing, Figure, Spread, draw_figures
from montecarlo.report.render.numbering import Numbers, number_all


@dataclass(frozen=True, slots=True)
class Post:
    """How posts are written.

    Attributes
    ----------
    flavour : str
        A name in `montecarlo.report.render.flavours.FLAVOURS`.
    front_matter : tuple of str or None
        Keys, as ``KEY`` or ``KEY=VALUE``; None: those of the flavour.
    """

    flavour: str = "kramdown"
    front_matter: tuple[str, ...] | None = None


KRAMDOWN = Post()


@dataclass(frozen=True, slots=True)
class Contents:
    """What the pages of all languages show; what there are no data for is left out."""

    findings: Findings
    errata: Sequence[Erratum]  # those that are written with the pages
    figures: Mapping[str, Figure]
    drawings: Mapping[str, Drawing]  # what each figure is drawn from
    tables: Mapping[str, TopicTable]
    facts: Mapping[str, Mapping[str, float]]  # numbers that alternative texts name
    audit: Sequence[AuditRow]  # the table of initialisations
    saturated: Sequence[SaturatedRow]  # the table of saturated rows and their gradients
    legends: Mapping[str, Legend]  # figure id to what it draws
    #: What the panels of the figure of thresholds show, in their order.
    threshold_panels: Sequence[tuple[ClaimView, InterpretationView]]
    explorer: Explorer | None  # values to try
    languages: Sequence[str]  # codes of the pages that are written together
    post: Post  # how Markdown is written

    @property
    def numbers(self) -> Numbers:
        """Numbers of the figures and tables that there are."""
        findings = self.findings
        carded = findings.record.report_card and "report-card" in self.figures
        there = {
            "divisors": self.explorer,
            "audit": self.audit,
            "models": findings.record.models,
            "records": findings.record.records,
            "saturated": self.saturated,
            "self-checks": findings.self_checks,
            "sensitivity": findings.record.sensitivity,
            "training": findings.record.training,
            "language": findings.record.training and findings.record.training.language,
            "published": findings.record.training,
            "report-card": carded,
            "power": carded,
        }
        tables = {*self.tables, *(name for name, found in there.items() if found)}
        topics = {claim.outcome.topic for claim in findings.claims}
        return number_all(set(self.figures), tables, topics, own=findings.own)

    @property
    def case_panels(self) -> list[tuple[Shown, str]]:
        """What the panels of the figure of checks show: sentence and formula.

        The sentence is the claim's, or its interpretation's where it has several.
        """
        claims = {one.outcome.id: one for one in self.findings.claims}
        return [
            (_sentence(claims[claim], interpretation), check_formula(check))
            for claim, interpretation, check in drawn_checks(
                self.findings.record.claims
            )
        ]


def _sentence(claim: ClaimView, interpretation: str) -> Shown:
    labels = {one.outcome.id: one.label for one in claim.interpretations}
    label = labels[interpretation] if len(labels) > 1 else None
    return claim.statement if label is None else label


#: Renders a file of contents in a language.
Render = Callable[[Contents, Language], str]
#: Name of a file, what renders it, and the code of its language.
File = tuple[str, Render, str]


def gather_contents(  # noqa: PLR0913 - what, in which words, where, by whom
    results: Results,
    catalogue: Catalogue,
    languages: Sequence[str],
    names: Collection[str] = tuple(EVERY_FIGURE),
    folder: Path | None = None,
    *,
    spread: Spread = map,
    post: Post = KRAMDOWN,
    adaptive: bool = True,
) -> Contents:
    """Gather what a report shows, and write its figures into a folder, if there is one.

    Parameters
    ----------
    results, catalogue, languages, post
        As for `montecarlo.report.making.make_report`.
    names : collection of str
        Keys of `EVERY_FIGURE`: those to draw.
    folder : Path, optional
    spread : callable
        Draws figures, as ``map`` would.
    adaptive : bool
        Whether files suit themselves to light and dark pages; otherwise they are light,
        on a ground of their own.
    """
    results = with_verdicts(results)
    tables = (results.measurements, results.curves)
    facts = figure_facts(*tables)
    findings = gather(results, catalogue)
    if findings.own:  # calibration is the report's to show: here a sentence tells it
        facts.pop("report-card", None)
    drawings: dict[str, Drawing] = {
        name: (FIGURES[name], tables) for name in names if name in facts
    }
    if (findings.own or results.of_some) and CASES.id in names:
        cases = (case_rows(findings.record.claims), tables[1])
        drawings = {CASES.id: (CASES, cases), **drawings}
        facts = {CASES.id: {}, **facts}
    errata: Sequence[Erratum] = []
    # one of some claims would say that the others hold, and of a few sizes that what
    # holds at others fails
    if not results.of_some and results.run["preset"] != "quick":
        errata = make_errata(findings, catalogue, languages)
    comma = any(decimal_mark(code) == "," for code in languages)
    draw = partial(draw_figures, folder=folder, spread=spread, adaptive=adaptive)
    figures = draw(drawings, comma=comma)
    return Contents(
        findings,
        errata,
        figures,
        drawings,
        topic_tables(results.measurements),
        facts,
        audit_rows(results.measurements),
        saturated_rows(results.measurements),
        read_legends(*tables),
        threshold_panels(results.curves, findings),
        read_explorer(*tables),
        languages,
        post,
    )

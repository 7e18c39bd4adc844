"""The contents of pages: figures, tables and errata, for all languages and formats."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
from markupsafe import Markup

from montecarlo.claims.checks import Words
from montecarlo.report.content.curves import CurveTables
from montecarlo.report.content.findings import Findings
from montecarlo.report.content.reading import read_rows, with_divisors
from montecarlo.report.content.tables import TABLES as DATA_TABLES
from montecarlo.report.content.tables import Table, make_tables
from montecarlo.report.content.texts import Erratum, make_errata
from montecarlo.report.figures import EVERY_FIGURE, FIGURES
from montecarlo.report.figures.files import Drawing as Drawn
from montecarlo.report.figures.files import draw, on_light_ground
from montecarlo.report.figures.specs import SECTIONS, Fact, FigureSpec
from montecarlo.report.figures.verdicts import (
    CASES,
    case_rows,
    drawn_checks,
    with_verdicts,
)
from montecarlo.report.language.catalogues import LANGUAGES, SOURCE, read_language
from montecarlo.report.language.own_words import OWN_FILE
from montecarlo.report.language.symbols import check_formula
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.folder import write_text
from montecarlo.study.presets import ERROR_RATE, PRESETS
from montecarlo.study.rows import Row

#: (figure, tables that it is drawn from).
Drawing = tuple[FigureSpec, tuple[pd.DataFrame, CurveTables]]


@dataclass(frozen=True, slots=True)
class Contents:
    """What the pages of a report show, for all languages.

    Mappings are by id of figure or table; those without data are left out.
    """

    findings: Findings
    errata: Sequence[Erratum]  # of the languages below
    figures: Mapping[str, Drawn]  # without words
    drawings: Mapping[str, Drawing]  # definition and data of each figure
    tables: Mapping[str, Table]
    facts: Mapping[str, Fact]  # numbers in captions and alternative texts
    languages: Sequence[str]  # codes

    @property
    def numbers(self) -> Mapping[str, Mapping[str, int]]:
        """Numbers on pages, from 1: ``figures`` and ``tables`` -> id -> number.

        They run through the report and then its evidence page, so that a number refers
        to the same figure on both pages and in every language.
        """
        findings, record = self.findings, self.findings.record
        there = {
            "models": record.models,
            "records": record.records,
            "self-checks": record.self_checks,
            "training": findings.training,
            "language": findings.training and findings.training.language,
        }
        tables = {*self.tables, *(name for name, found in there.items() if found)}
        sections = {"answer", "method", *(claim.topic for claim in findings.claims)}

        def count(orders: Iterable[Order], ids: Collection[str]) -> dict[str, int]:
            """Return id -> number, from 1, in the order of ``orders`` and sections.

            Only ``ids`` in one of ``sections`` are counted.
            """
            found = (
                name
                for order in orders
                for section, names in order.items()
                for name in names
                if section in sections and name in ids
            )
            return {name: number for number, name in enumerate(found, start=1)}

        own = findings.own
        pages = (True,) if own else (True, False)
        of_figures = [place_figures(own=own, on_report=page) for page in pages]
        return {
            "figures": count(of_figures, self.figures),
            "tables": count([TABLES], tables),
        }

    @property
    def case_panels(self) -> list[tuple[Words, str]]:
        """(sentence, LaTeX formula) for each panel of the figure of checks.

        The sentence is the claim, or its interpretation if it has several.  The list is
        empty if there is no such figure.
        """
        if CASES.id not in self.figures:
            return []
        panels = []
        for claim, interpretation, check in drawn_checks(self.findings.claims):
            label = None
            if len(claim.interpretations) > 1:
                label = self.findings.label(claim, interpretation)
            statement = self.findings.entry_of(claim).statement
            panels.append((label or statement, check_formula(check)))
        return panels


#: Section to the ids of its figures or tables, in the order of a page.
Order = Mapping[str, tuple[str, ...]]
TABLES: Order = {
    "variance": ("audit", "variance"),
    "weights": ("weights", "divisors"),
    "gradients": ("gradients", "saturated"),
    "arithmetic": ("tails",),
    "training": ("training", "language"),
    "record": ("models", "records"),
    "method": ("self-checks",),
}


def place_figures(*, own: bool, on_report: bool) -> Order:
    """Return the ids of the figures of a page, in order: section -> tuple of ids.

    The page is the report with ``on_report``, else its evidence page.  A report of a
    user's ``own`` claims has one page, with all figures.  A figure that has no section,
    such as ``attention``, is left out.
    """
    shown = [s for s in EVERY_FIGURE.values() if own or s.on_report == on_report]
    return {
        section: tuple(spec.id for spec in shown if section == spec.section)
        for section in SECTIONS
    }


def page_rows(
    points: Sequence[DesignPoint], divisors: Collection[str]
) -> Iterator[Row]:
    """Yield (point, row key) of all rows that the figures and tables of pages read.

    ``points`` and ``divisors`` are those of the study.
    """
    readers = [spec.rows for spec in FIGURES.values()]
    readers += [reader for reader, _ in DATA_TABLES.values()]
    for reader in readers:
        yield from with_divisors(reader(points), divisors)


def gather_contents(  # noqa: PLR0913 - content, languages, folder and workers
    findings: Findings,
    languages: Sequence[str],
    names: Collection[str] = tuple(EVERY_FIGURE),
    folder: Path | None = None,
    *,
    spread: Callable[..., Iterable[Any]] = map,
    adaptive: bool = True,
) -> Contents:
    """Return what the pages of a report show, after drawing its figures.

    There are no errata for selected claims, a user's claims and the quick preset.

    Parameters
    ----------
    findings : Findings
    languages : sequence of str
        Codes of languages.
    names : collection of str
        Ids of the figures to draw, of `EVERY_FIGURE`.  Those without data are left out,
        and so is ``cases`` unless claims are selected or a user's.
    folder : Path, optional
        Where files such as ``figures/variance.svg`` are written; by default none are.
    spread : callable
        Draws the figures, as ``map`` does.
    adaptive : bool
        Whether files follow the colour scheme of their reader, in the first language
        alone.  Otherwise they are light, one for each language.
    """
    texts = {} if findings.own else findings.names
    curves = with_verdicts(findings.curves, findings.claims, texts)
    divisors = findings.run["grid"]["divisors"]
    there = findings.measurements, findings.points, divisors
    of_figures = {
        name: (read_rows(there[0], spec.rows, *there[1:]), curves)
        for name, spec in FIGURES.items()
    }
    facts: dict[str, Fact] = {
        name: fact
        for name, spec in FIGURES.items()
        if spec.fact and (fact := spec.fact(*of_figures[name])) is not None
    }
    drawings: dict[str, Drawing] = {
        name: (FIGURES[name], of_figures[name]) for name in names if name in facts
    }
    if (findings.own or findings.is_selection) and CASES.id in names:
        drawings = {CASES.id: (CASES, (case_rows(findings.claims), curves)), **drawings}
        facts = {CASES.id: {}, **facts}
    errata: Sequence[Erratum] = []
    # errata need all claims, and the sizes of more than the quick preset
    if not findings.is_selection and findings.run["preset"] != "quick":
        errata = make_errata(findings, languages)
    specs = [spec for spec, _ in drawings.values()]
    needed = zip(*(data for _, data in drawings.values()), strict=True)
    drawn = spread(draw, specs, *needed) if specs else ()
    figures = {n: one for n, one in zip(drawings, drawn, strict=True) if one}
    if folder is not None:
        for name, code in product(figures, languages[:1] if adaptive else languages):
            svg = figures[name].svg_in(read_language(code))
            file = svg if adaptive else on_light_ground(svg)
            write_text(folder / figure_file(name, code, languages), file)
    return Contents(
        findings, errata, figures, drawings, make_tables(*there), facts, languages
    )


def figure_file(name: str, code: str, languages: Sequence[str]) -> str:
    """Return the path of a figure's file in a report, such as ``figures/variance.svg``.

    ``name`` is the id of the figure, and ``code`` that of the language.  Except for the
    first language it is a part of the path: ``figures/variance.de.svg``.
    """
    return f"figures/{name}{'' if code == languages[0] else f'.{code}'}.svg"


def data_uri(svg: str) -> Markup:
    """Return an SVG as a data URI, for an HTML attribute in double quotes.

    The SVG is percent-encoded, which is a quarter smaller than base64.  Double quotes
    in it are replaced by single ones, so that quotes, < and > need no escape.
    """
    text = svg.replace('"', "'").strip()
    uri = quote(text, safe=" '<>()/:;=,!?&+*@[]|^{}~").replace("&", "&amp;")
    return Markup(f"data:image/svg+xml,{uri}")  # noqa: S704 - quoted above


#: Date of release of this version, as in CITATION.cff.
RELEASED = "2026-11-30"
#: Name of the configuration file in a command for a run that needs one.
FILE_NAME = "report.toml"


def _judge_command(run: Mapping[str, Any], languages: Sequence[str]) -> str:
    """Return the command line that judges a user's claims again.

    ``languages`` are words of the command line such as ``--lang en``.
    """
    words = [f"python -m montecarlo judge {OWN_FILE} --preset {run['preset']}"]
    words.append(f"--seed {run['seed']}")
    if run["error_rate"] != ERROR_RATE:
        words.append(f"--error-rate {run['error_rate']!r}")
    if (most := run["grid"]["most"]) != PRESETS[run["preset"]].most:
        words.append(f"--most {most}")
    return " ".join([*words, *languages, "--output output"])


def canonical_command(run: Mapping[str, Any], command: str = "report") -> str:
    """Return the command line that makes the same report again.

    If options cannot express the run, it first writes a configuration file.  For a
    user's claims it is a command ``judge``, whatever ``command`` is.

    Parameters
    ----------
    run : mapping
        Content of run.json.
    command : str
        ``report``, or ``figures`` for figures from the same sample.
    """
    languages = []
    unsaid = set(LANGUAGES) if command == "report" else {SOURCE}
    if set(run["languages"]) != unsaid:
        languages = [f"--lang {','.join(run['languages'])}"]
    if "own_claims" in run:
        return _judge_command(run, languages)
    words = [f"python -m montecarlo {command}"]
    lines = []
    if run["error_rate"] != ERROR_RATE:
        lines.append(f"error_rate = {run['error_rate']!r}")
    if run["only"] and command != "report":  # there --only selects figures
        lines.append(f"only = {json.dumps(run['only'])}")
    if not run["preset"]:
        # numbers, strings and lists of them are the same in JSON and TOML
        grid = run["grid"].items()
        lines += ["[grid]", *(f"{name} = {json.dumps(value)}" for name, value in grid)]
    file = ""
    if lines:
        file = "\n".join([f"cat > {FILE_NAME} <<'END'", *lines, "END", ""])
        words.append(f"--config {FILE_NAME}")
    if run["preset"]:
        words.append(f"--preset {run['preset']}")
    words.append(f"--seed {run['seed']}")
    if run["only"] and command == "report":
        words.append(f"--only {','.join(run['only'])}")
    return file + " ".join([*words, *languages])

"""What pages show, of findings: gathered once, for all languages and formats."""

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
from montecarlo.report.content.curves import Curves
from montecarlo.report.content.findings import Findings
from montecarlo.report.content.reading import read_rows, within
from montecarlo.report.content.tables import TABLES as DATA_TABLES
from montecarlo.report.content.tables import Table, make_tables
from montecarlo.report.content.texts import Erratum, make_errata
from montecarlo.report.figures import EVERY_FIGURE, FIGURES, FigureSpec
from montecarlo.report.figures.files import Drawing as Drawn
from montecarlo.report.figures.files import draw, on_light_ground
from montecarlo.report.figures.specs import SECTIONS, Fact
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

#: What a figure is, and the tables that it is drawn from.
Drawing = tuple[FigureSpec, tuple[pd.DataFrame, Curves]]
#: Calls a function for each of some arguments, as ``map`` does, on workers if there are
#: any.
Spread = Callable[..., Iterable[Any]]


@dataclass(frozen=True, slots=True)
class Contents:
    """What the pages of all languages show; what there are no data for is left out."""

    findings: Findings
    errata: Sequence[Erratum]  # those that are written with the pages
    figures: Mapping[str, Drawn]  # without words
    drawings: Mapping[str, Drawing]  # what each figure is drawn from
    tables: Mapping[str, Table]
    facts: Mapping[str, Fact]  # numbers that alternative texts name
    languages: Sequence[str]  # codes of the pages that are written together

    @property
    def numbers(self) -> Mapping[str, Mapping[str, int]]:
        """Numbers of the ``figures`` and ``tables`` that there are, by id.

        They are counted through, those of the report first, then those of its evidence:
        a number names the same figure on both pages and in every language.
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
        """What the panels of the figure of checks show: sentence and formula.

        The sentence is the claim's, or its interpretation's where it has several.
        """
        if CASES.id not in self.figures:
            return []
        claims = {one.id: one for one in self.findings.claims}
        panels = []
        for name, part, check in drawn_checks(self.findings.claims):
            claim, label = claims[name], None
            if len(claim.interpretations) > 1:
                meaning = next(i for i in claim.interpretations if i.id == part)
                label = self.findings.label(claim, meaning)
            statement = self.findings.words_of(claim).statement
            panels.append((label or statement, check_formula(check)))
        return panels


#: Sections in their order, each with what stands there.
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
    """Return which figures stand where: on the report or, otherwise, its evidence.

    A user's ``own`` claims have one page, which is both.
    """
    shown = [s for s in EVERY_FIGURE.values() if own or s.on_report == on_report]
    return {
        section: tuple(spec.id for spec in shown if section == spec.section)
        for section in SECTIONS
    }


def page_rows(
    points: Sequence[DesignPoint], divisors: Collection[str]
) -> Iterator[Row]:
    """Name the rows that figures and tables read of some points."""
    readers = [spec.rows for spec in FIGURES.values()]
    readers += [reader for reader, _ in DATA_TABLES.values()]
    for reader in readers:
        yield from within(reader(points), divisors)


def gather_contents(  # noqa: PLR0913 - what, in which words, where, by whom
    findings: Findings,
    languages: Sequence[str],
    names: Collection[str] = tuple(EVERY_FIGURE),
    folder: Path | None = None,
    *,
    spread: Spread = map,
    adaptive: bool = True,
) -> Contents:
    """Gather what a report shows, and write its figures into a folder, if there is one.

    Of `EVERY_FIGURE` those that are named and have data are drawn, by ``spread`` as
    ``map`` would.  ``adaptive`` files, in the first language, suit themselves to light
    and dark pages; others are light, on a ground of their own, one for each language.
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
    if (findings.own or findings.of_some) and CASES.id in names:
        drawings = {CASES.id: (CASES, (case_rows(findings.claims), curves)), **drawings}
        facts = {CASES.id: {}, **facts}
    errata: Sequence[Erratum] = []
    # one of some claims would say that the others hold, and of a few sizes that what
    # holds at others fails
    if not findings.of_some and findings.run["preset"] != "quick":
        errata = make_errata(findings, languages)
    specs = [spec for spec, _ in drawings.values()]
    needed = zip(*(data for _, data in drawings.values()), strict=True)
    drawn = spread(draw, specs, *needed) if specs else ()
    figures = {n: one for n, one in zip(drawings, drawn, strict=True) if one}
    if folder is not None:
        for name, code in product(figures, languages[:1] if adaptive else languages):
            svg = figures[name].written(read_language(code))
            file = svg if adaptive else on_light_ground(svg)
            write_text(folder / figure_file(name, code, languages), file)
    return Contents(
        findings, errata, figures, drawings, make_tables(*there), facts, languages
    )


def figure_file(name: str, code: str, languages: Sequence[str]) -> str:
    """Return where a figure stands: of the first language without its code."""
    return f"figures/{name}{'' if code == languages[0] else f'.{code}'}.svg"


def data_uri(svg: str) -> Markup:
    """Return SVG text as a data URI for a page.

    It has the text, a quarter smaller than in base 64; double quotes become single
    ones, so that these, < and > need no escape.
    """
    text = svg.replace('"', "'").strip()
    uri = quote(text, safe=" '<>()/:;=,!?&+*@[]|^{}~").replace("&", "&amp;")
    return Markup(f"data:image/svg+xml,{uri}")  # noqa: S704 - quoted above


#: When this version was released, as CITATION.cff has it.
RELEASED = "2026-11-25"
#: The configuration file of a run that flags alone cannot name.
FILE_NAME = "report.toml"


def _judge_command(run: Mapping[str, Any], languages: Sequence[str]) -> str:
    """Return what to type to judge claims of one's own again."""
    words = [f"python -m montecarlo judge {OWN_FILE} --preset {run['preset']}"]
    words.append(f"--seed {run['seed']}")
    if run["error_rate"] != ERROR_RATE:
        words.append(f"--error-rate {run['error_rate']!r}")
    if (most := run["grid"]["most"]) != PRESETS[run["preset"]].most:
        words.append(f"--most {most}")
    return " ".join([*words, *languages, "--output output"])


def canonical_command(run: Mapping[str, Any], command: str = "report") -> str:
    """Return what to type to make a report again, from the record of its run.

    Where flags cannot say it, that begins with a configuration file.  Figures are drawn
    from what the same options sample, by default with English words.
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
    if run["only"] and command != "report":  # where --only names figures
        lines.append(f"only = {json.dumps(run['only'])}")
    if not run["preset"]:
        # a value of JSON is one of TOML as well: whole numbers, names, lists of them
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

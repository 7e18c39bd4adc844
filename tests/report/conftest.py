"""One small real study, its results on disk, and its pages, parsed once."""

import fcntl
import json
import os
import pickle
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import html5lib
import pytest
from babel import Locale
from babel.numbers import get_decimal_symbol, parse_decimal
from msgspec import convert

from montecarlo.claims.catalogue import parse_catalogue, read_catalogue
from montecarlo.claims.outcomes import CLAIMS_FILE, ClaimsRecord, InterpretationOutcome
from montecarlo.claims.running import Study, run_study
from montecarlo.claims.schema import Catalogue
from montecarlo.report import running
from montecarlo.report.content.findings import read_results
from montecarlo.report.content.texts import make_errata
from montecarlo.report.figures.files import Drawing, draw
from montecarlo.report.figures.specs import FigureSpec
from montecarlo.report.language.catalogues import SOURCE, Language, read_language
from montecarlo.report.language.own_words import OWN_FILE, read_own_claims
from montecarlo.report.making import select_figures
from montecarlo.report.render import contents as gathering
from montecarlo.report.render.contents import Contents, gather_contents, page_rows
from montecarlo.report.render.pages import render
from montecarlo.report.running import write_data
from montecarlo.study.executors import make_executor
from montecarlo.study.folder import write_run
from montecarlo.study.presets import Block, Grid

CODES = ("en", "de", "zh", "ja", "es")
PLANTED = "planted(0.5)"
INITIALISATION = "init(kind=xavier_uniform,norm=layer,shape=fused,width=512)"
SHIFTED = "gaussian(mean=0.5)"
#: With one of everything that a page has a section, a table or a column for.
SMALL = Grid(
    d_k=(1, 4, 16, 64, 256),
    n_keys=(32, 128),
    distributions=("laplace", "student_t3"),
    distribution_d_k=(16,),
    distribution_n_keys=(),
    blocks=(
        Block((16,), (32,), distribution_q=SHIFTED),
        Block((16,), (32,), distribution_k=SHIFTED),
        Block((16, 256), (128,), pairs=False, dependence=PLANTED),
        Block((64,), initialisation=INITIALISATION),
        Block((64,), (128,), pairs=False, formats=True),
    ),
    tails=((16, 4), (64, 4)),
    first=64,
    most=64,
)
INDEX = "index"
ERRATUM = "erratum-"
EVIDENCE = "evidence-"
#: Languages with most texts of its own, and with next to none.
OWN_PAGES = ("own_report/de", "own_report/zh", "own_report/index")
OWN_CLAIMS = Path(__file__).with_name("own_claims.toml")
#: Long pages are those of English in other words: of these two languages of each.
#: That a translation keeps numbers and markup is the matter of `language/`.
EVIDENCE_PAGES = tuple(f"{EVIDENCE}{code}" for code in ("en", "de"))
#: Those of the texts of which something does not hold in the small study.
ERRATA = (f"{ERRATUM}zh-chat", f"{ERRATUM}ja")


@dataclass(frozen=True)
class Number:
    """A number on a page: what is shown, and the raw value behind it."""

    value: float
    shown: float
    half_unit: float
    row: str | None
    element: Element


class Page:
    """A page, parsed as a browser parses it."""

    def __init__(
        self, text: str, code: str, home: "Report | None" = None, name: str = ""
    ) -> None:
        self.text = text
        self.code = code
        self.name = name  # as it was asked for
        self.home = home
        parser = html5lib.HTMLParser(namespaceHTMLElements=False)
        self.root = parser.parse(text)
        self.errors = parser.errors  # of syntax

    @cached_property
    def parents(self) -> dict[Element, Element]:
        """Each element's parent."""
        return {child: parent for parent in self.root.iter() for child in parent}

    @cached_property
    def by_id(self) -> dict[str, Element]:
        """Elements by id; the last one, where an id stands twice."""
        return {e.get("id"): e for e in self.elements() if e.get("id")}

    def elements(self) -> Iterator[Element]:
        """Yield every element, comments left out."""
        yield from (e for e in self.root.iter() if isinstance(e.tag, str))

    def above(self, element: Element) -> Iterator[Element]:
        """Yield an element and what it stands in, from the inside out."""
        inner: Element | None = element
        while inner is not None:
            yield inner
            inner = self.parents.get(inner)

    def texts(self) -> Iterator[tuple[str, Element]]:
        """Yield each piece of text of the body, in order, with what it stands in."""
        yield from texts_of(self.root.find("body"))

    def numbers(self, inside: Element | None = None) -> list[Number]:
        """Return the numbers of the page, or of an element, read as a reader would."""
        start = self.root if inside is None else inside
        return [self._number(e) for e in start.iter("data")]

    def _number(self, element: Element) -> Number:
        locale = Locale.parse(self.code)
        power = Decimal(1)
        powers = [e for e in element if e.get("class") == "power"]
        if element.get("data-power"):
            powers = [self._power_after(element)]
            assert exponent_of(powers[0]) == int(element.get("data-power", ""))
        if powers:
            power = Decimal(1).scaleb(exponent_of(powers[0]))
        if element.get("data-percent") is not None:
            power /= 100
        written = (element.text or "").replace("\N{MINUS SIGN}", "-")
        shown = parse_decimal(written, locale, strict=True)
        _, _, decimals = written.partition(get_decimal_symbol(locale))
        unit = Decimal(1).scaleb(-len(decimals)) * power
        return Number(
            float(element.get("value", "")),
            float(shown * power),
            float(unit / 2),
            element.get("data-row"),
            element,
        )

    def _power_after(self, element: Element) -> Element:
        """Find the power of ten that stands after a bracket."""
        siblings = list(self.parents[element])
        later = siblings[siblings.index(element) + 1 :]
        return next(e for e in later if e.get("class") == "power")

    def verdicts(self, inside: Element | None = None) -> list[str]:
        """Return what elements are tagged with, in order."""
        start = self.root if inside is None else inside
        return [v for e in start.iter() if (v := e.get("data-verdict")) is not None]


def judged(interpretation: Mapping[str, object]) -> InterpretationOutcome:
    """Return what claims.json has of an interpretation, with its cases joined."""
    return convert(interpretation, InterpretationOutcome)


def words(element: Element) -> str:
    """Return what an element says, with single spaces."""
    return " ".join("".join(element.itertext()).split())


def texts_of(element: Element) -> Iterator[tuple[str, Element]]:
    """Yield each piece of text in an element, in order, with what it stands in."""
    if isinstance(element.tag, str) and element.text:
        yield element.text, element
    for child in element:
        if child.tag != "script":
            yield from texts_of(child)
        if child.tail:
            yield child.tail, element


def exponent_of(power: Element) -> int:
    """Read the exponent of a power of ten."""
    assert (power.text or "") == "×10"
    return int((power[0].text or "").replace("\N{MINUS SIGN}", "-"))


class Report:
    """The results of the study, and its pages as they are asked for."""

    def __init__(self, folder: Path, catalogue: Catalogue) -> None:
        self.folder = folder
        self.catalogue = catalogue
        self.results = read_results(folder, catalogue)
        self._claims = (folder / CLAIMS_FILE).read_bytes()
        with self.keep_figures():
            names = select_figures(self.results)
            self.contents = gather_contents(self.results, CODES, names, folder)
        self.facts = self.contents.facts
        self._pages: dict[str, Page] = {}

    @property
    def claims(self) -> dict[str, Any]:
        """What claims.json holds, as plain data of a test's own."""
        return json.loads(self._claims)

    @contextmanager
    def keep_figures(self) -> Iterator[None]:
        """Let its figures be read where they would be drawn anew, which is slow."""
        kept = self.folder / ".drawn"
        known = pickle.loads(kept.read_bytes()) if kept.exists() else {}  # noqa: S301

        def read(spec: FigureSpec, *tables: object) -> Drawing | None:
            if spec.id not in known:
                known[spec.id] = draw(spec, *tables)
            return known[spec.id]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gathering, "draw", read)
            yield
        kept.write_bytes(pickle.dumps(known))

    def page(self, name: str) -> Page:
        """Return a page: by the code of its language, as the index, as an erratum."""
        if name not in self._pages:
            text, code = self._rendered(name)
            (self.folder / f"{name}.html").write_text(text, encoding="utf-8")
            self._pages[name] = Page(text, code, self, name)
        return self._pages[name]

    def _rendered(self, name: str) -> tuple[str, str]:
        """Render a page by name; returns its language's code as well."""
        kind, _, code = name.rpartition("-")
        if kind == "evidence":
            return render(kind, self.contents, read_language(code)), code
        if name == INDEX:
            return render(INDEX, self.contents, read_language(SOURCE)), SOURCE
        if not name.startswith(ERRATUM):
            return render("report", self.contents, read_language(name)), name
        errata = {erratum.text.key: erratum for erratum in self.contents.errata}
        erratum = errata[name.removeprefix(ERRATUM)]
        language = read_language(erratum.text.language)
        return render(
            "erratum", self.contents, language, erratum=erratum
        ), language.code

    def with_claims(self, claims: Mapping[str, object]) -> Contents:
        """Return the contents as they would be, had the claims come out otherwise."""
        findings = replace(self.results, record=convert(claims, ClaimsRecord))
        return replace(
            self.contents,
            findings=findings,
            errata=make_errata(findings, CODES),
        )

    def with_words(self, change: Callable[[str], str]) -> Contents:
        """Return the contents of own claims, had the user written each text so."""
        data = tomllib.loads(OWN_CLAIMS.read_text(encoding="utf-8"))
        catalogue = parse_catalogue(_rewritten(data, change), "own.toml", own=True)
        findings = replace(self.results, catalogue=catalogue)
        return replace(self.contents, findings=findings)

    @staticmethod
    def key_of(check: Mapping[str, Any]) -> str:
        """Return what tells a check of some cases from others: a page shows it once."""
        rest = {name: v for name, v in check.items() if name not in {"domain", "cases"}}
        where = ("part", "initialisation", "d_k")  # what is on record has no rows
        cases = [
            case["rows"] or [case[name] for name in where] for case in check["cases"]
        ]
        return json.dumps([rest, cases])

    def render(
        self,
        contents: Contents,
        language: Language | str = SOURCE,
        *,
        evidence: bool = False,
    ) -> Page:
        """Render contents of a test's own."""
        if isinstance(language, str):
            language = read_language(language)
        template = "evidence" if evidence else "report"
        return Page(render(template, contents, language), language.code)


#: Fields that hold texts; below one of them may stand a table of languages.
TEXTS = {"statement", "label", "text", "sentence", "arithmetic", "name"}


def _rewritten(value: Any, change: Callable[[str], str]) -> Any:
    """Return a file's tables with each text changed."""
    if isinstance(value, list):
        return [_rewritten(inner, change) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        # where a claim is from is the key of a text, and no text
        key: inner if key == "source" else _changed(key, inner, change)
        for key, inner in value.items()
    }


def _changed(field: str, value: Any, change: Callable[[str], str]) -> Any:
    """Return what a field holds with each text changed."""
    if field in TEXTS and isinstance(value, str):
        return change(value)
    if field in TEXTS and isinstance(value, dict) and set(value) <= set(CODES):
        return {code: change(text) for code, text in value.items()}
    return _rewritten(value, change)


def made_once(
    factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]
) -> Path:
    """Return a folder of this worker's own, with what the first of them has made."""
    mine, base = factory.mktemp(name), factory.getbasetemp()
    of_all = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    kept = of_all / f"{name}-kept"
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
        if not kept.exists():
            made = factory.mktemp(name)
            make(made)
            made.rename(kept)
    return Path(shutil.copytree(kept, mine, dirs_exist_ok=True))


def sampled(study: Study, folder: Path, **more: str) -> None:
    """Sample, judge, draw and write as the command would, but for the pages."""
    with make_executor(1) as executor:
        results = run_study(study, executor)
    record = write_data(results, folder, own="own_claims" in more)
    write_run(folder, {**record, "only": [], "languages": list(CODES), **more})
    Report(folder, study.catalogue)


@pytest.fixture
def drawn_here(monkeypatch):
    """What is rendered again is drawn here: workers take longer to start than that."""
    monkeypatch.setattr(running, "make_executor", lambda *_, **__: make_executor(1))


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """The small study of the five texts."""
    study = Study(read_catalogue(), SMALL, pages=page_rows)
    folder = made_once(tmp_path_factory, "report", partial(sampled, study))
    return Report(folder, study.catalogue)


@pytest.fixture(scope="session")
def own_report(tmp_path_factory):
    """A small study of a user's own claims."""
    catalogue, content = read_own_claims(OWN_CLAIMS)
    study = Study(catalogue, SMALL, preset="quick", pages=page_rows, whole_grid=False)

    def make(folder: Path) -> None:
        (folder / OWN_FILE).write_bytes(content)
        sampled(study, folder, own_claims=OWN_FILE)

    return Report(made_once(tmp_path_factory, "own", make), catalogue)


@pytest.fixture(params=CODES)
def page(report, request):
    """The report in each language."""
    return report.page(request.param)


@pytest.fixture(params=EVIDENCE_PAGES)
def evidence(report, request):
    """The evidence in two languages."""
    return report.page(request.param)


@pytest.fixture(params=(*(*CODES, *EVIDENCE_PAGES, INDEX), *(*ERRATA, *OWN_PAGES)))
def any_page(request):
    """The report in each language, the index, the errata; and one of own claims."""
    fixture, _, name = request.param.rpartition("/")
    return request.getfixturevalue(fixture or "report").page(name)

"""What MkDocs does not do by itself: pages made of tables and results, formulas, links.

Parsers, tables and a finished report (`extra.report` of mkdocs.yml) go in, pages come
out.  Formulas are MathML, made when the site is: its pages need no script for them and
nothing from other hosts.
"""

import base64
import html
import json
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from montecarlo.cli.command_line import COMMANDS, build_parser, purpose_of
from montecarlo.cli.listing import KINDS
from montecarlo.report.figures import EVERY_FIGURE
from montecarlo.report.language.catalogues import LANGUAGES
from montecarlo.report.language.formulas import math_ml

ROOT = Path(__file__).resolve().parents[1]
#: Files of the repository that are pages, and how these are called.
PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "tests/README.md": "tests.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "docs/ask.ipynb": "ask.md",
}
#: Files outside docs/ that pages link to.
FILES = ("CITATION.cff", "action.yml", "examples/text.txt")
#: Where figures are drawn for the gallery.
DRAWN = ROOT / "build" / "figures"
#: What the site has in place of the words that stand between in the repository.
MARK = re.compile(r"<!-- generated: (\w+)([\w ]*) -->.*?<!-- end -->", re.DOTALL)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL
)
#: The source of a formula, which a search would show beside it.
SOURCE = re.compile(r"<annotation\b.*?</annotation>", re.DOTALL)
#: A formula of a heading, where a list of contents has it.
LISTED = re.compile(r"\\\(([^<]*?)\\\)(?=[^<]*</span>)")
#: A heading that says nothing is none.
EMPTY = re.compile(r"<th[^>]*></th>")
#: What scrolls has to be reached by the keyboard.
TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)

# --- Files ----------------------------------------------------------------------------


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the repository's own pages, the notebook, the report and its figures."""
    report = ROOT / config.extra["report"]
    if not (report / "run.json").exists():
        raise PluginError(f"{report} must hold a report, which `make docs` makes")
    draw_figures(report)
    for source, name in PAGES.items():
        if source.endswith(".md"):
            text = (ROOT / source).read_text(encoding="utf-8")
            files.append(File.generated(config, name, content=text))
    for name, content in read_notebook(ROOT / "docs" / "ask.ipynb"):
        files.append(File.generated(config, name, content=content))
    copied = {f"files/{name}": ROOT / name for name in FILES}
    for folder, under in ((report, "report"), (DRAWN, "gallery")):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                copied[f"{under}/{path.relative_to(folder).as_posix()}"] = path
    for name, path in copied.items():
        if not name.endswith(".md"):  # corrections are files to copy, and no pages
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Put the report's Markdown files, which are no pages, beside its pages."""
    for path in (ROOT / config.extra["report"]).glob("*.md"):
        shutil.copy(path, Path(config.site_dir) / "report")


def draw_figures(report: Path) -> None:
    """Draw all figures of a report, on a light ground for pages of either scheme."""
    shutil.rmtree(DRAWN, ignore_errors=True)
    command = [sys.executable, "-m", "montecarlo", "figures", "--lang", "en", "--quiet"]
    asked = ["--from", str(report), "--output", str(DRAWN)]
    subprocess.run([*command, *asked], check=True, cwd=ROOT)  # noqa: S603 - our own


def read_notebook(path: Path) -> Iterator[tuple[str, str | bytes]]:
    """Yield a notebook as a page, and its pictures; what it shows stands in it."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = []
    for at, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text")})
            if "image/png" in data:
                picture = f"ask-{at}.png"
                yield picture, base64.b64decode("".join(data["image/png"]))
                parts.append(f"![What the cell above draws]({picture})")
            elif "text/html" in data:
                table = re.sub(r"(?s)<style.*?</style>", "", "".join(data["text/html"]))
                parts.append(re.sub(r"\n\s*", "\n", table).strip())
            else:
                shown = "".join(data["text/plain"]).rstrip()
                parts.append(f"```text\n{shown}\n```")
    parts.append(f'<a href="{path.name}" download>{path.name}</a> is the notebook.')
    yield "ask.md", "\n\n".join(parts) + "\n"


# --- Pages ----------------------------------------------------------------------------


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:  # noqa: ANN401
    """Fill in what is generated, and point links at pages of the site."""
    report = ROOT / config.extra["report"]
    if page.file.src_uri == "commands.md":  # an option leads to what says what it is
        page.meta["search"] = {"boost": 3}

    def generate(mark: re.Match[str]) -> str:
        if mark[1] == "python":
            return "\n\n".join(f"::: montecarlo.{name}" for name in mark[2].split())
        return "\n".join(GENERATED[mark[1]](report))

    markdown = MARK.sub(generate, markdown)
    here = posixpath.dirname(source_of(page.file.src_uri))
    kept = FENCE.findall(markdown)
    pieces = FENCE.split(markdown)
    linked = [
        LINK.sub(lambda link: f"{link[1]}{in_site(link[2], here)}{link[3]}", piece)
        for piece in pieces
    ]
    return "".join(a + b for a, b in zip(linked, [*kept, ""], strict=True))


def source_of(name: str) -> str:
    """Return the file of the repository that a page of the site is."""
    known = {page: source for source, page in PAGES.items()}
    return known.get(name, f"docs/{name}")


def in_site(target: str, here: str) -> str:
    """Return a link of a file in a folder of the repository as one of the site."""
    parts = urlsplit(target)
    if parts.scheme or not parts.path:
        return target
    path = posixpath.normpath(posixpath.join(here, parts.path))
    anchor = f"#{parts.fragment}" if parts.fragment else ""
    if path in PAGES:
        return PAGES[path] + anchor
    if path in FILES:
        return f"files/{path}"
    if path.startswith("docs/"):
        return path.removeprefix("docs/") + anchor
    raise PluginError(f"{target}: {path} must be among PAGES or FILES of the site")


def on_page_content(content: str, **_: Any) -> str:  # noqa: ANN401
    """Set formulas as MathML; let tables be reached and scrolled."""

    def set_formula(found: re.Match[str]) -> str:
        latex = html.unescape(found[3])
        formula = SOURCE.sub("", math_ml(latex))
        block = '<math display="block">'
        return formula.replace("<math>", block, 1) if found[2] == "[" else formula

    content = FORMULA.sub(set_formula, content)
    content = EMPTY.sub("<td></td>", content)
    return TABLE.sub(
        r'<div class="scroll" role="group" aria-label="Table" tabindex="0">\g<0></div>',
        content,
    )


def on_post_page(output: str, **_: Any) -> str:  # noqa: ANN401
    """Set formulas of contents lists; name what the theme leaves without a name."""
    output = LISTED.sub(
        lambda found: SOURCE.sub("", math_ml(html.unescape(found[1]))), output
    )
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


# --- What is generated ----------------------------------------------------------------


def write_table(headings: tuple[str, ...], rows: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield a table whose first column is code."""
    yield f"| {' | '.join(headings)} |"
    yield "|---" * len(headings) + "|"
    for name, *others in rows:
        cells = [f"`{name}`", *(other.replace("|", r"\|") or "-" for other in others)]
        yield f"| {' | '.join(cells)} |"


def write_claims(_: Path) -> Iterator[str]:
    """Yield the file of claims that says what such a file may hold."""
    text = (ROOT / "docs" / "own-claim.toml").read_text(encoding="utf-8")
    yield f"```toml\n{text}```"


def write_commands(_: Path) -> Iterator[str]:
    """Yield what each parser's help says."""
    for name in COMMANDS:
        told = build_parser(name).format_help().rstrip()
        yield f"\n## {name}\n\n{purpose_of(name)}\n"
        yield f"```text\n{told}\n```\n"


def write_lists(_: Path) -> Iterator[str]:
    """Yield every table that `--list` prints."""
    for name, (told, headings, rows) in list(KINDS.items())[1:]:
        yield f"\n## {name.capitalize()}\n\n{told[0].upper()}{told[1:]}.\n"
        yield from write_table(headings, rows())
        yield ""


def write_gallery(_: Path) -> Iterator[str]:
    """Yield small pictures of all figures, then each with its caption and its line.

    What the captions end with is about all figures, and stands before them.
    """
    captions = (DRAWN / "captions.en.md").read_text(encoding="utf-8")
    *sections, last = re.split(r"^## ", captions, flags=re.MULTILINE)[1:]
    *parts, of_all = last.split("\n\n", 3)  # name, picture and caption of the last
    sections.append("\n\n".join(parts))
    told_of = {name: told for name, _, told in (s.partition("\n") for s in sections)}
    headings = {name: EVERY_FIGURE[name].shows for name in told_of}
    yield f"{of_all}\n"
    yield '<div class="pictures">'
    for name, shows in headings.items():
        (file,) = re.findall(rf"\(({name}\.[^)]*)\)", told_of[name])
        picture = f'<img src="gallery/{file}" alt="" loading="lazy">'
        yield f'<a href="#{name}">{picture}<span>{shows}</span></a>'
    yield "</div>"
    for name, told in told_of.items():
        shows = headings[name]
        yield f"\n## {shows[0].upper()}{shows[1:]} {{#{name}}}"
        yield told.replace(f"({name}.", f"(gallery/{name}.").rstrip()
        yield f"\n```sh\npython -m montecarlo figures --only {name}\n```"


def write_report(report: Path) -> Iterator[str]:
    """Yield links to the report's pages in each language."""
    yield "| language | report | evidence |\n|---|---|---|"
    for code, (tag, name) in LANGUAGES.items():
        pages = (f"{code}.html", f"evidence-{code}.html")
        cells = [
            f"[{word}](report/{page}){{hreflang={tag}}}"
            for word, page in zip(("report", "evidence"), pages, strict=True)
            if (report / page).exists()
        ]
        yield f"| {name} | {' | '.join(cells)} |"


GENERATED: dict[str, Callable[[Path], Iterator[str]]] = {
    "claims": write_claims,
    "commands": write_commands,
    "gallery": write_gallery,
    "lists": write_lists,
    "report": write_report,
}

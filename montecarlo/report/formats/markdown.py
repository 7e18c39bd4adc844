"""Posts in each language, and the errata, as Markdown for kramdown and MathJax."""

import json
import re
from collections.abc import Iterator

from montecarlo.report.language.catalogues import SOURCE, Language
from montecarlo.report.render.contents import Contents, File
from montecarlo.report.render.errata_markdown import errata_files
from montecarlo.report.render.markdown import read_html, to_markdown
from montecarlo.report.render.pages import render_captions, render_fragment


def files(contents: Contents) -> Iterator[File]:
    """Yield a post in each language, and the errata."""
    for code in contents.languages:
        yield f"report-{code}.md", _render_post, code
    yield from errata_files(contents, _beside)


def _render_post(contents: Contents, language: Language) -> str:
    """Return the post of a language."""
    tree = read_html(render_fragment(contents, language, quotable=True))
    title = ""
    if (heading := tree.find("h1")) is not None:
        # that of the captions has no formula
        plain = read_html(render_captions(contents, language)).find("h1")
        title = "" if plain is None else plain.get_text().strip()
        heading.decompose()
    return front_matter(language.code, title) + to_markdown(tree, _beside)


def front_matter(code: str, title: str) -> str:
    """Return what a static site wants to know of a post; keys in their order."""
    values = {
        "audio": "false",
        "generated": "true",
        "lang": code,
        "layout": "post",
        "title": json.dumps(title.replace('"', "'"), ensure_ascii=False),
        "translated": "false" if code == SOURCE else "true",
        "type": "note",
    }
    lines = [f"{key}: {value}" for key, value in values.items()]
    return "\n".join(["---", *lines, "---", "", ""])


def _beside(address: str) -> str:
    """Return an address as it is beside a post: figures are files, errata Markdown."""
    if address.startswith("#figure-"):
        return f"figures/{address.removeprefix('#figure-')}.svg"
    address = re.sub(r"^(erratum-[\w-]+)\.html", r"\1.md", address)
    return re.sub(r"^(\w{2})\.html#", r"report-\1.md#", address)

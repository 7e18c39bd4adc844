"""Posts in each language, and the errata, as Markdown of the flavour asked for."""

import re
from collections.abc import Iterator
from functools import partial

from montecarlo.report.language.catalogues import Language
from montecarlo.report.render.contents import Contents, File
from montecarlo.report.render.errata_markdown import errata_files
from montecarlo.report.render.flavours import FLAVOURS, front_matter
from montecarlo.report.render.markdown import read_html, to_markdown
from montecarlo.report.render.pages import render_captions, render_post


def files(contents: Contents) -> Iterator[File]:
    """Yield a post in each language, and the errata."""
    for code in contents.languages:
        yield f"report-{code}.md", _render_post, code
    yield from errata_files(contents, _beside)


def _render_post(contents: Contents, language: Language) -> str:
    """Return the post of a language."""
    tree = read_html(render_post(contents, language))
    title = ""
    if (heading := tree.find("h1")) is not None:
        # that of the captions has no formula
        plain = read_html(render_captions(contents, language)).find("h1")
        title = "" if plain is None else plain.get_text().strip()
        heading.extract()
    flavour = FLAVOURS[contents.post.flavour]
    keys = contents.post.front_matter
    convert = partial(to_markdown, link=_beside, flavour=flavour)
    text = convert(tree)
    if flavour.titled and heading is not None:
        text = f"{convert(heading)}\n{text}"
    front = flavour.front_matter if keys is None else keys
    return front_matter(language.code, title, front) + text


def _beside(address: str) -> str:
    """Return an address as it is beside a post: figures are files, errata Markdown."""
    if address.startswith("#figure-"):
        return f"figures/{address.removeprefix('#figure-')}.svg"
    address = re.sub(r"^(erratum-[\w-]+)\.html", r"\1.md", address)
    return re.sub(r"^(\w{2})\.html#", r"report-\1.md#", address)

"""An element in each language, to be put into a page of someone else's."""

import re
from collections.abc import Iterator

from montecarlo.report.language.catalogues import Language
from montecarlo.report.render.contents import Contents, File
from montecarlo.report.render.pages import render_fragment

_STYLES = re.compile(r"(<style\b.*?</style>)", re.DOTALL)
_BRACES = {ord(brace): f"&#{ord(brace)};" for brace in "{}"}


def files(contents: Contents) -> Iterator[File]:
    """Yield the elements."""
    for code in contents.languages:
        yield f"fragment-{code}.html", _render_fragment, code


def _render_fragment(contents: Contents, language: Language) -> str:
    """Return the element of a language."""
    return without_tags(render_fragment(contents, language))


def without_tags(html: str) -> str:
    """Write braces so that no template engine takes them for a tag of its own.

    Jinja, Liquid, Hugo and their like run over files before a browser reads them.  In
    texts and attributes a brace is written by its number, and read as the same; in
    styles, where numbers mean nothing, a space is as good.
    """
    parts = _STYLES.split(html)
    parts[::2] = (text.translate(_BRACES) for text in parts[::2])
    parts[1::2] = (re.sub(r"\{(?=[{%#])", "{ ", style) for style in parts[1::2])
    return "".join(parts)

r"""An erratum as Markdown that its author pastes: formulas as the text writes them.

In: the erratum's page.  Out: the same words as Markdown, each formula between the
signs of that text's own Markdown; in another flavour than kramdown, as it writes them.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial

from montecarlo.report.content.texts.errata import Erratum
from montecarlo.report.language.catalogues import Language
from montecarlo.report.render.contents import KRAMDOWN, Contents, File
from montecarlo.report.render.flavours import FLAVOURS, front_matter
from montecarlo.report.render.markdown import read_html, to_markdown
from montecarlo.report.render.pages import render_erratum

#: Before and behind a formula, by key of the text; the notes' signs for all others.
_SIGNS = {"zh-chat": ("$ ", " $"), "zh-post": ("$", "$")}
_NOTES = (r"\\( ", r" \\)")
#: What kramdown would take for its own in a formula that it does not know as one.
_TAKEN = re.compile(
    r"\\(?P<command>.)|(?P<sign>[*`'\"<>\[\]|]|(?<![A-Za-z0-9])_|\.(?=\.)|-(?=-))"
)
#: Signs that lose a backslash before them, doubled or not.
_ESCAPABLE = set("\\.*_+`<>()[]{}#!:|\"'$=-~")
#: What means the same between dollars, where nothing can be escaped.
_BETWEEN_DOLLARS = {"*": r"\ast ", "<": r"\lt ", ">": r"\gt "}


def errata_files(
    contents: Contents, link: Callable[[str], str] = str
) -> Iterator[File]:
    """Yield the erratum of each text as Markdown; ``link`` says what it points to."""
    for erratum in contents.errata:
        render = partial(_render_erratum, erratum=erratum, link=link)
        yield f"erratum-{erratum.key}.md", render, erratum.language


def _render_erratum(
    contents: Contents, language: Language, erratum: Erratum, link: Callable[[str], str]
) -> str:
    """Return the erratum of a text as Markdown."""
    page = render_erratum(contents, language, erratum, quotable=True)
    front = ""
    if contents.post.front_matter:  # what is pasted has none, if it is not asked for
        heading = read_html(page).find("h1")
        title = "" if heading is None else heading.get_text().strip()
        front = front_matter(language.code, title, contents.post.front_matter)
    if contents.post.flavour == KRAMDOWN.flavour:  # as the texts are written
        return front + erratum_markdown(erratum.key, page, link)
    flavour = FLAVOURS[contents.post.flavour]
    return front + to_markdown(read_html(page), link, flavour)


def erratum_markdown(key: str, page: str, link: Callable[[str], str] = str) -> str:
    """Return an erratum as Markdown.

    Parameters
    ----------
    key : str
        That of the text.
    page : str
        The erratum's page, with the LaTeX of each formula.
    link : callable
        What becomes of addresses.
    """
    text = to_markdown(read_html(page), link)
    pieces = text.split("$$")  # any other dollar is written as a number
    pieces[1::2] = [formula_in_text(key, latex) for latex in pieces[1::2]]
    return "".join(pieces)


def formula_in_text(key: str, latex: str) -> str:
    r"""Return a formula as a text's own Markdown writes it.

    Examples
    --------
    >>> formula_in_text("de", r"\{d_k\}")
    '\\\\( \\\\{d_k\\\\} \\\\)'
    """
    before, behind = _SIGNS.get(key, _NOTES)
    if before == _NOTES[0]:
        latex = _TAKEN.sub(_keep, latex)
    else:
        for sign, command in _BETWEEN_DOLLARS.items():
            latex = latex.replace(sign, command)
    return f"{before}{latex}{behind}"


def _keep(found: re.Match[str]) -> str:
    """Return a command or sign so that kramdown hands it on as it is."""
    command = found["command"]
    if command is None:
        return "\\" + found["sign"]
    if command not in _ESCAPABLE:
        return found.group()
    return rf"\\\{command}" if command in "\\_*`'\"<>[]|" else rf"\\{command}"

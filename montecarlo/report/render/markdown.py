"""Markdown from pages: posts, errata and captions with the same words and numbers.

In: HTML of our own templates, with the LaTeX of each formula.  Out: CommonMark with
tables, formulas between dollars, as GitHub reads it, and MkDocs with its extensions
tables, md_in_html and pymdownx.arithmatex.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from itertools import groupby

from bs4 import BeautifulSoup
from bs4.builder import HTMLTreeBuilder
from bs4.element import PageElement, Tag
from markdownify import MarkdownConverter

from montecarlo.report.content.texts import Erratum
from montecarlo.report.language.catalogues import SOURCE, Language
from montecarlo.report.render.contents import Contents, figure_file
from montecarlo.report.render.pages import render

#: What is of no use outside of a page; an unseen caption is the title of its table.
_SKIPPED = (
    "form, head, .heads, .languages, .script-only, .skip, .standing, .where, "
    ".unseen:not(caption)"
)
#: Where text may stand without a paragraph around it, also beside blocks.
_CONTAINERS = (
    "html, body, header, nav, main, section, article, div, details, "
    "figure, figcaption, blockquote, li, dt, dd"
)
_MORE_BLOCKS = {"html", "body", "details", "summary"}
_BLOCKS = HTMLTreeBuilder.DEFAULT_BLOCK_ELEMENTS | _MORE_BLOCKS
#: Signs that every reader of Markdown lets a backslash take the meaning from, and those
#: that only some do, which are written by their numbers.
_ESCAPED = re.compile(r"([\\`*_\[\]])")
_NUMBERED = re.compile(r"[|<>#~${}]")
#: What begins a list, a heading or a definition at the beginning of a line.
_START = re.compile(r"^(?:(\d+)(?=[.)])|([-+:=]))")
_CODE_SIGNS = re.compile(r"[&<>*_`\\\[\]|{}$#~\"']")
#: Commands and signs of a formula that a reader of Markdown may take for its own.
#: Dollar signs of text are written otherwise.
_FORMULA = re.compile(r"\$([^$\n]+)\$")
_TAKEN = re.compile(r"\\(?:[A-Za-z]+|.)|[&*<>`~\[\]]|(?<![A-Za-z0-9])_")
#: What means the same.  Between spaces ``_`` begins no emphasis, and GitHub refuses
#: ``\operatorname``.
_SAME = {"*": r"\ast ", "<": r"\lt ", ">": r"\gt ", "_": " _ "}
_SAME |= {r"\,": r"\thinspace ", r"\:": r"\ ", r"\;": r"\ ", r"\!": r"\negthinspace "}
_SAME |= {r"\{": r"\lbrace ", r"\}": r"\rbrace ", r"\operatorname": r"\mathrm"}


class _Page(BeautifulSoup):
    """Refuses what it would repair: elements that are neither void nor closed."""

    def handle_endtag(self, name: str, nsprefix: str | None = None) -> None:
        if self.currentTag is not None and self.currentTag.name != name:
            raise ValueError(f"pages must close {self.currentTag.name!r}, got {name!r}")
        super().handle_endtag(name, nsprefix)


def read_html(text: str) -> Tag:
    """Parse a page of our own, or a part of one, for `to_markdown`.

    Raises
    ------
    ValueError
        If an element is not closed.
    """
    # the end of what is around all meets whatever is still open
    tree = _Page(f"<div>{text}</div>", "html.parser")
    for element in tree.select(_SKIPPED):
        element.extract()
    for section in tree.select("section[id], article[id]"):
        if heading := section.find(["h2", "h3"]):
            heading.attrs.setdefault("id", section["id"])

    def is_block(element: PageElement) -> bool:
        return isinstance(element, Tag) and element.name in _BLOCKS

    for container in tree.select(_CONTAINERS):
        for alone, elements in groupby(list(container.contents), is_block):
            if not alone:
                first, *others = elements
                first.wrap(tree.new_tag("p")).extend(others)
    return tree


def to_markdown(element: Tag, link: Callable[[str], str] = str) -> str:
    """Return an element as Markdown; ``link`` says what becomes of addresses."""
    return _Converter(link).convert_soup(element).strip("\n") + "\n"


class _Converter(MarkdownConverter):
    """Writes CommonMark; methods get an element and the text made of it.

    Some readers take a formula as it is written, others what CommonMark makes of it:
    both get the same.
    """

    def __init__(self, link: Callable[[str], str]) -> None:
        # wrap: a paragraph is one line, however long
        super().__init__(
            bullets="-", strip=["em"], sup_symbol="<sup>", wrap=True, wrap_width=None
        )
        self.link = link

    def escape(self, text: str, _: object = None) -> str:
        """Return text that no reader of Markdown takes for its own."""
        text = _ESCAPED.sub(r"\\\1", text.replace("&", "&amp;"))
        return _NUMBERED.sub(lambda sign: f"&#{ord(sign[0])};", text)

    def convert_p(self, el: Tag, text: str, **_: object) -> str:
        formula, line = el.find("math"), _START.sub(_keep_start, text.strip())
        if formula is not None and el.get_text().strip() == formula.get_text().strip():
            line = f"${self.convert_math(formula, '')}$"
        return f"\n\n{line}\n\n" if line else ""

    def convert_hN(self, n: int, el: Tag, text: str, *_: object) -> str:  # noqa: N802
        heading = _name_block(f"{'#' * n} {text.strip()}", el.get("id"))
        return f"\n\n{heading}\n\n"

    def convert_ul(self, el: Tag, text: str, **_: object) -> str:
        """Keep a list and the one right before it from becoming one, by a comment."""
        before = el.find_previous(string=re.compile(r"\S"))
        item = before.find_parent("li") if before else None
        follows = item is not None and item.parent not in list(el.parents)
        comment = "<!-- -->\n\n" if follows else ""
        return f"\n\n{comment}{text.strip()}\n\n"

    convert_ol = convert_ul

    def convert_li(self, el: Tag, text: str, parent_tags: object) -> str:
        """Indent by four columns, without which MkDocs nests nothing."""
        made = str(super().convert_li(el, text, parent_tags))  # type: ignore[misc]
        marker, _, rest = made.partition(" ")
        lines = rest.strip("\n").split("\n")
        width = len(marker) + 1
        inner = [" " * 4 + line[width:] if line else line for line in lines[1:]]
        return "\n".join([marker.ljust(4) + lines[0], *inner]) + "\n"

    def convert_img(self, el: Tag, _text: str, **_: object) -> str:
        """Make a picture of a file; its address is that of the figure's id."""
        figure = el.find_parent("figure") or el
        address = self.link(f"#{figure.get('id', '')}")
        picture = f"![{self.escape(str(el['alt']))}]({address})"
        return _name_block(picture, figure.get("id"))

    def convert_caption(self, _el: Tag, text: str, **_: object) -> str:
        return f"**{text.strip()}**\n\n"

    def convert_table(self, el: Tag, text: str, **_: object) -> str:
        return f"\n\n{_name_block(text.strip(), el.get('id'))}\n\n"

    def convert_details(self, _el: Tag, text: str, **_: object) -> str:
        return f'\n\n<details markdown="1">{text.rstrip()}\n\n</details>\n\n'

    def convert_summary(self, el: Tag, text: str, **_: object) -> str:
        """Keep it in its line, where nothing is converted, unless it has a formula."""
        if el.find("math") is None:
            return f"\n<summary>{escape(el.get_text().strip())}</summary>\n\n"
        return f'\n<summary markdown="span">\n\n{text.strip()}\n\n</summary>\n\n'

    def convert_dt(self, _el: Tag, text: str, **_: object) -> str:
        return f"\n\n**{text.replace('**', '').strip()}**\n\n"

    def convert_dd(self, _el: Tag, text: str, **_: object) -> str:
        return f"\n\n{text.strip()}\n\n"

    def convert_pre(self, el: Tag, _text: str, **_: object) -> str:
        code = el.get_text().strip("\n")
        return f"\n\n~~~\n{code}\n~~~\n\n"

    def convert_code(self, el: Tag, _text: str, **_: object) -> str:
        code = _CODE_SIGNS.sub(lambda sign: f"&#{ord(sign[0])};", el.get_text())
        return f"<code>{code}</code>"

    def convert_math(self, el: Tag, _text: str, **_: object) -> str:
        latex = (el.find("annotation") or el).get_text().strip()
        latex = latex.replace(r"\|", r"\Vert ").replace("|", r"\vert ")  # of tables
        latex = latex.replace("[", r"\lbrack ").replace("]", r"\rbrack ")  # of links
        return f"${_TAKEN.sub(_keep_taken, latex)}$"

    def convert_a(self, el: Tag, text: str, **_: object) -> str:
        return f"[{text}]({self.link(str(el.get('href', '')))})"

    def convert_span(self, el: Tag, text: str, **_: object) -> str:
        """Write a verdict in bold; in a table an estimate follows it at once."""
        if "data-verdict" not in el.attrs:
            return text
        return f"**{text.strip()}**" + (" " if el.name == "b" else "")

    convert_b = convert_span

    def convert_br(self, *_: object, **_kept: object) -> str:
        return "<br>"


def _name_block(block: str, name: object) -> str:
    """Return a heading, a table or a picture that links can name, if it has one."""
    return f'<a id="{name}"></a>\n\n{block}' if name else block


def _keep_start(found: re.Match[str]) -> str:
    """Return what begins a paragraph so that it begins nothing else."""
    return f"{found[1]}\\" if found[1] else f"&#{ord(found[2])};"


def _keep_taken(found: re.Match[str]) -> str:
    """Return a command or sign of a formula so that every reader hands it on."""
    taken = found[0]
    if taken in _SAME:
        return _SAME[taken]
    if taken[1:].isalnum() or taken == r"\ ":
        return taken
    return "".join(f"&#{ord(sign)};" for sign in taken)


def render_markdown_post(contents: Contents, language: Language) -> str:
    """Return the report of a language as a post."""
    page = render("report", contents, language, quotable=True)
    link = partial(link_beside, code=language.code, languages=contents.languages)
    return to_markdown(read_html(page), link)


def link_beside(
    address: str, code: str = SOURCE, languages: Sequence[str] = (SOURCE,)
) -> str:
    """Return an address as it is beside a post: figures are files, errata Markdown."""
    if address.startswith("#figure-"):
        return figure_file(address.removeprefix("#figure-"), code, languages)
    address = re.sub(r"^(erratum-[\w-]+)\.html", r"\1.md", address)
    return re.sub(r"^(\w{2})\.html#", r"report-\1.md#", address)


def render_markdown_erratum(
    contents: Contents,
    language: Language,
    erratum: Erratum,
    link: Callable[[str], str] = str,
) -> str:
    """Return the erratum of a text as Markdown, formulas in the text's delimiters."""
    page = render("erratum", contents, language, quotable=True, erratum=erratum)
    before, after = erratum.text.formula.split("…")
    text = to_markdown(read_html(page), link)
    return _FORMULA.sub(lambda found: f"{before}{found[1]}{after}", text)

"""Conversion of rendered HTML to Markdown, for posts, errata and captions.

The HTML comes from the package's templates, rendered with the LaTeX of each formula.
The Markdown is CommonMark with tables and with formulas between dollar signs.  GitHub
reads it, and MkDocs with the extensions tables, md_in_html and pymdownx.arithmatex.
Formulas of errata alone are in the notation of their text, into which they are pasted.
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
from montecarlo.report.language.catalogues import Language
from montecarlo.report.render.contents import Contents, figure_file
from montecarlo.report.render.pages import render

#: Elements that are left out; a hidden caption stays, as the title of its table.
_SKIPPED = (
    "form, head, .heads, .languages, .script-only, .skip, .standing, .where, "
    ".unseen:not(caption)"
)
#: Elements in which text may stand beside blocks without a paragraph.
_CONTAINERS = (
    "html, body, header, nav, main, section, article, div, details, "
    "figure, figcaption, blockquote, li, dt, dd"
)
_MORE_BLOCKS = {"html", "body", "details", "summary"}
_BLOCKS = HTMLTreeBuilder.DEFAULT_BLOCK_ELEMENTS | _MORE_BLOCKS
#: Characters that a backslash escapes in every Markdown parser, and characters that it
#: escapes only in some, which become numeric references.
_ESCAPED = re.compile(r"([\\`*_\[\]])")
_NUMBERED = re.compile(r"[|<>#~${}]")
#: Beginnings of a line that would start a list, a heading or a definition.
_START = re.compile(r"^(?:(\d+)(?=[.)])|([-+:=]))")
_CODE_SIGNS = re.compile(r"[&<>*_`\\\[\]|{}$#~\"']")
#: A formula; dollar signs in text are numeric references.
_FORMULA = re.compile(r"\$([^$\n]+)\$")
#: Commands and characters of a formula that a Markdown parser may interpret.
_TAKEN = re.compile(r"\\(?:[A-Za-z]+|.)|[&*<>`~\[\]]|(?<![A-Za-z0-9])_")
#: Equivalents that parsers leave alone.  ``_`` between spaces begins no emphasis, and
#: GitHub rejects ``\operatorname``.
_SAME = {"*": r"\ast ", "<": r"\lt ", ">": r"\gt ", "_": " _ "}
_SAME |= {r"\,": r"\thinspace ", r"\:": r"\ ", r"\;": r"\ ", r"\!": r"\negthinspace "}
_SAME |= {r"\{": r"\lbrace ", r"\}": r"\rbrace ", r"\operatorname": r"\mathrm"}


def read_html(text: str) -> Tag:
    """Return HTML of the package's templates as a tree of elements, for `to_markdown`.

    Elements that posts do not need are removed.  Text outside of paragraphs is put into
    paragraphs.
    """
    tree = BeautifulSoup(f"<div>{text}</div>", "html.parser")
    for element in tree.select(_SKIPPED):
        element.extract()
    for section in tree.select("section[id], article[id]"):
        if heading := section.find(["h2", "h3"]):
            heading.attrs.setdefault("id", section["id"])

    def is_block(element: PageElement) -> bool:
        """Return whether an element is a block: whether its tag is in `_BLOCKS`."""
        return isinstance(element, Tag) and element.name in _BLOCKS

    for container in tree.select(_CONTAINERS):
        for alone, elements in groupby(list(container.contents), is_block):
            if not alone:
                first, *others = elements
                first.wrap(tree.new_tag("p")).extend(others)
    return tree


def to_markdown(element: Tag, link: Callable[[str], str] = str) -> str:
    """Return an HTML element as Markdown text.

    ``link`` is called with each address in the element, and returns the one for
    Markdown.
    """
    return _Converter(link).convert_soup(element).strip("\n") + "\n"


class _Converter(MarkdownConverter):
    """Converter from HTML to CommonMark, with a method for each kind of element.

    The methods are called with an element and its content, converted to Markdown.

    Formulas are written so that they are the same before and after CommonMark's
    processing, since some sites read them before and some after.
    """

    def __init__(self, link: Callable[[str], str]) -> None:
        # with these a paragraph is one line
        super().__init__(
            bullets="-", strip=["em"], sup_symbol="<sup>", wrap=True, wrap_width=None
        )
        self.link = link

    def escape(self, text: str, _: object = None) -> str:
        """Return a text in which no character has a meaning in Markdown."""
        text = _ESCAPED.sub(r"\\\1", text.replace("&", "&amp;"))
        return _NUMBERED.sub(lambda sign: f"&#{ord(sign[0])};", text)

    def convert_p(self, el: Tag, text: str, **_: object) -> str:
        """Return a paragraph; a formula alone in it becomes a displayed formula."""
        formula, line = el.find("math"), _START.sub(_escape_start, text.strip())
        if formula is not None and el.get_text().strip() == formula.get_text().strip():
            line = f"${self.convert_math(formula, '')}$"
        return f"\n\n{line}\n\n" if line else ""

    def convert_hN(self, n: int, el: Tag, text: str, *_: object) -> str:  # noqa: N802
        """Return a heading of level n, with an anchor for its id."""
        heading = _name_block(f"{'#' * n} {text.strip()}", el.get("id"))
        return f"\n\n{heading}\n\n"

    def convert_ul(self, el: Tag, text: str, **_: object) -> str:
        """Return a list; a comment separates it from a list directly before."""
        before = el.find_previous(string=re.compile(r"\S"))
        item = before.find_parent("li") if before else None
        follows = item is not None and item.parent not in list(el.parents)
        comment = "<!-- -->\n\n" if follows else ""
        return f"\n\n{comment}{text.strip()}\n\n"

    convert_ol = convert_ul

    def convert_li(self, el: Tag, text: str, parent_tags: object) -> str:
        """Return an item of a list: its marker, and text indented by four columns.

        MkDocs requires four.
        """
        made = str(super().convert_li(el, text, parent_tags))  # type: ignore[misc]
        marker, _, rest = made.partition(" ")
        lines = rest.strip("\n").split("\n")
        width = len(marker) + 1
        inner = [" " * 4 + line[width:] if line else line for line in lines[1:]]
        return "\n".join([marker.ljust(4) + lines[0], *inner]) + "\n"

    def convert_img(self, el: Tag, _text: str, **_: object) -> str:
        """Return an image; ``link`` returns its address from the id of the figure."""
        figure = el.find_parent("figure") or el
        address = self.link(f"#{figure.get('id', '')}")
        picture = f"![{self.escape(str(el['alt']))}]({address})"
        return _name_block(picture, figure.get("id"))

    def convert_caption(self, _el: Tag, text: str, **_: object) -> str:
        """Return the caption of a table in bold."""
        return f"**{text.strip()}**\n\n"

    def convert_table(self, el: Tag, text: str, **_: object) -> str:
        """Return a table, with an anchor for its id."""
        return f"\n\n{_name_block(text.strip(), el.get('id'))}\n\n"

    def convert_details(self, _el: Tag, text: str, **_: object) -> str:
        """Return a collapsible part as HTML, with Markdown inside."""
        return f'\n\n<details markdown="1">{text.rstrip()}\n\n</details>\n\n'

    def convert_summary(self, el: Tag, text: str, **_: object) -> str:
        """Return the summary of a collapsible part as text in one line.

        If there is a formula in it, it is Markdown.
        """
        if el.find("math") is None:
            return f"\n<summary>{escape(el.get_text().strip())}</summary>\n\n"
        return f'\n<summary markdown="span">\n\n{text.strip()}\n\n</summary>\n\n'

    def convert_dt(self, _el: Tag, text: str, **_: object) -> str:
        """Return a term as a paragraph in bold."""
        return f"\n\n**{text.replace('**', '').strip()}**\n\n"

    def convert_dd(self, _el: Tag, text: str, **_: object) -> str:
        """Return a definition as a paragraph."""
        return f"\n\n{text.strip()}\n\n"

    def convert_pre(self, el: Tag, _text: str, **_: object) -> str:
        """Return a fenced block of code."""
        code = el.get_text().strip("\n")
        return f"\n\n~~~\n{code}\n~~~\n\n"

    def convert_code(self, el: Tag, _text: str, **_: object) -> str:
        """Return inline code as HTML, each character as a numeric reference."""
        code = _CODE_SIGNS.sub(lambda sign: f"&#{ord(sign[0])};", el.get_text())
        return f"<code>{code}</code>"

    def convert_math(self, el: Tag, _text: str, **_: object) -> str:
        """Return the LaTeX of a formula between dollar signs: ``$d_k$``."""
        latex = (el.find("annotation") or el).get_text().strip()
        latex = latex.replace(r"\|", r"\Vert ").replace("|", r"\vert ")  # parts cells
        latex = latex.replace("[", r"\lbrack ").replace(
            "]", r"\rbrack "
        )  # begins a link
        return f"${_TAKEN.sub(_protect_token, latex)}$"

    def convert_a(self, el: Tag, text: str, **_: object) -> str:
        """Return a link ``[text](address)``, with the address that ``link`` returns."""
        return f"[{text}]({self.link(str(el.get('href', '')))})"

    def convert_span(self, el: Tag, text: str, **_: object) -> str:
        """Return the text of a ``span`` or ``b`` element, bold if it is a verdict.

        A space follows a verdict in a ``b``, as in tables, where an estimate comes
        next.
        """
        if "data-verdict" not in el.attrs:
            return text
        return f"**{text.strip()}**" + (" " if el.name == "b" else "")

    convert_b = convert_span

    def convert_br(self, *_: object, **_kept: object) -> str:
        """Return a line break, which tables need as HTML."""
        return "<br>"


def _name_block(block: str, name: object) -> str:
    """Return a block of Markdown with an anchor, ``<a id="x"></a>``, before it.

    ``name`` is the id of the block; with None no anchor is added.
    """
    return f'<a id="{name}"></a>\n\n{block}' if name else block


def _escape_start(match: re.Match[str]) -> str:
    r"""Return the matched beginning of a paragraph, escaped so that it begins no list.

    ``1`` before a full stop becomes ``1\``, and ``-`` a numeric reference.
    """
    return f"{match[1]}\\" if match[1] else f"&#{ord(match[2])};"


def _protect_token(match: re.Match[str]) -> str:
    r"""Return LaTeX for a part of a formula that Markdown would change otherwise.

    The matched part is a command or a character that a Markdown parser may interpret:
    ``*`` becomes ``\ast``, and ``&`` a numeric reference.  Most commands, such as
    ``\alpha``, stay as they are.
    """
    taken = match[0]
    if taken in _SAME:
        return _SAME[taken]
    if taken[1:].isalnum() or taken == r"\ ":
        return taken
    return "".join(f"&#{ord(sign)};" for sign in taken)


def render_markdown_post(contents: Contents, language: Language) -> str:
    """Return the report in a language as a post, the text of a Markdown file."""
    page = render("report", contents, language, quotable=True)
    link = partial(link_in_post, code=language.code, languages=contents.languages)
    return to_markdown(read_html(page), link)


def link_in_post(address: str, code: str, languages: Sequence[str]) -> str:
    """Return the address in a Markdown post for an address on an HTML page.

    ``#figure-variance`` becomes the figure's file, ``figures/variance.svg``, and
    ``en.html#x`` the Markdown file, ``report-en.md#x``.  An erratum's ``.html`` becomes
    ``.md``.  Other addresses stay as they are.  ``code`` is the language of the post,
    and ``languages`` are those of the report.
    """
    if address.startswith("#figure-"):
        return figure_file(address.removeprefix("#figure-"), code, languages)
    address = re.sub(r"^(erratum-[\w-]+)\.html", r"\1.md", address)
    return re.sub(r"^(\w{2})\.html#", r"report-\1.md#", address)


def render_markdown_erratum(
    contents: Contents, language: Language, erratum: Erratum
) -> str:
    """Return an erratum as Markdown, with the formula delimiters of its text.

    A comment at the beginning names the delimiters.  There are no links, which would be
    dead where an entry is pasted.  Each entry has version, seed and the id of its claim
    instead.
    """
    page = render("erratum", contents, language, quotable=True, erratum=erratum)
    before, after = erratum.text.formula.split("…")
    text = to_markdown(read_html(page), str)
    text = _FORMULA.sub(lambda found: f"{before}{found[1]}{after}", text)
    return f"<!-- formulas as in the text: {erratum.text.formula} -->\n\n{text}"

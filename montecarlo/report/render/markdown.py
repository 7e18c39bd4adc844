"""Markdown from a page: the same words and numbers, for static sites.

In: HTML of our own templates, with the LaTeX of each formula.  Out: Markdown as
kramdown reads it, formulas between double dollars, which it hands to MathJax.
Nothing in it can be taken for a tag of Liquid, which sites run over posts first.
"""

import re
from collections.abc import Callable
from itertools import groupby
from typing import ClassVar

from bs4 import BeautifulSoup
from bs4.builder import HTMLTreeBuilder
from bs4.element import PageElement, Tag
from markdownify import MarkdownConverter

#: What is of no use outside of a page; an unseen caption is the title of its table.
_SKIPPED = "form, head, .languages, .script-only, .skip, .unseen:not(caption)"
#: Where text may stand without a paragraph around it, also beside blocks.
_CONTAINERS = (
    "html, body, header, nav, main, section, article, div, details, "
    "figure, figcaption, blockquote, li, dt, dd"
)
_MORE_BLOCKS = {"html", "body", "details", "summary"}
_BLOCKS = HTMLTreeBuilder.DEFAULT_BLOCK_ELEMENTS | _MORE_BLOCKS
#: Signs that begin something in Markdown, wherever they stand.
_SIGNS = re.compile(r"([\\`*_\[\]|<>#~])")
#: What begins a list, a heading or a definition at the beginning of a line.
_START = re.compile(r"^(\d+(?=[.)])|(?=[-+:=]))")
_LIQUID = re.compile(r"\{(?=[{%])")
_CODE_SIGNS = re.compile(r"[&<>*_`\\\[\]|{}$#~\"']")


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
    for container in tree.select(_CONTAINERS):
        for is_block, elements in groupby(list(container.contents), _is_block):
            if not is_block:
                first, *others = elements
                first.wrap(tree.new_tag("p")).extend(others)
    return tree


def _is_block(element: PageElement) -> bool:
    return isinstance(element, Tag) and element.name in _BLOCKS


def to_markdown(
    element: Tag,
    link: Callable[[str], str] = str,
    flavour: "type[Kramdown] | None" = None,
) -> str:
    """Return an element as Markdown, by default kramdown's.

    Parameters
    ----------
    element : Tag
    link : callable
        What becomes of addresses.
    flavour : type, optional
    """
    return (flavour or Kramdown)(link).convert_soup(element).strip("\n") + "\n"


class Kramdown(MarkdownConverter):
    """Gives kramdown what it reads; methods get an element and the text made of it.

    Where markdownify's own way is right for kramdown, there is no method.

    Attributes
    ----------
    titled : bool
        Whether a page has its title as a heading, not in its front matter alone.
    front_matter : tuple of str
        What stands before the page, if nothing else is asked for.
    """

    titled: ClassVar[bool] = False
    front_matter: ClassVar[tuple[str, ...]] = ("layout=post", "title", "lang")

    def __init__(self, link: Callable[[str], str]) -> None:
        # wrap: a paragraph is one line, however long
        super().__init__(
            bullets="-", strip=["em"], sup_symbol="<sup>", wrap=True, wrap_width=None
        )
        self.link = link

    def escape(self, text: str, _: object = None) -> str:
        """Return text that Markdown, Liquid and MathJax leave as it is."""
        text = _SIGNS.sub(r"\\\1", text.replace("&", "&amp;")).replace("$", "&#36;")
        return re.sub(r"\{(?=[{%:])", "&#123;", text)

    def convert_p(self, el: Tag, text: str, **_: object) -> str:
        line = text.strip()
        formula = el.find("math")
        if formula is not None and _is_alone(formula, el):
            line = self.write_block_formula(_latex(formula))
        else:
            line = self.begin(line)
        return f"\n\n{line}\n\n" if line else ""

    def begin(self, line: str) -> str:
        """Return a paragraph that is no list, heading or definition."""
        return _START.sub(r"\1\\", line)

    def write_formula(self, latex: str) -> str:
        """Return a formula within a line."""
        return f"$${latex}$$"

    #: A formula that stands alone: kramdown sees that itself.
    write_block_formula = write_formula

    def name_heading(self, heading: str, name: str) -> str:
        """Return a heading that links can name."""
        return f"{heading} {{#{name}}}"

    def name_block(self, block: str, name: str) -> str:
        """Return a table or a picture that links can name."""
        return f"{block}\n{{: #{name}}}"

    def convert_hN(self, n: int, el: Tag, text: str, *_: object) -> str:  # noqa: N802
        heading = f"{'#' * n} {text.strip()}"
        if "id" in el.attrs:
            heading = self.name_heading(heading, str(el["id"]))
        return f"\n\n{heading}\n\n"

    def convert_ul(self, el: Tag, text: str, **_: object) -> str:
        """Keep a list and the one right before it from becoming one, by a comment."""
        before = el.find_previous(string=re.compile(r"\S"))
        item = before.find_parent("li") if before else None
        follows = item is not None and item.parent not in list(el.parents)
        comment = "<!-- -->\n\n" if follows else ""
        return f"\n\n{comment}{text.strip()}\n\n"

    convert_ol = convert_ul

    def convert_img(self, el: Tag, _text: str, **_: object) -> str:
        """Make a picture of a file; its address is that of the figure's id."""
        figure = el.find_parent("figure") or el
        address = self.link(f"#{figure.get('id', '')}")
        return self._name(f"![{self.escape(str(el['alt']))}]({address})", figure)

    def convert_caption(self, _el: Tag, text: str, **_: object) -> str:
        return f"**{text.strip()}**\n\n"

    def convert_table(self, el: Tag, text: str, **_: object) -> str:
        return f"\n\n{self._name(text.strip(), el)}\n\n"

    def _name(self, written: str, block: Tag) -> str:
        return (
            self.name_block(written, str(block["id"]))
            if "id" in block.attrs
            else written
        )

    def convert_details(self, _el: Tag, text: str, **_: object) -> str:
        return f'\n\n<details markdown="1">{text.rstrip()}\n\n</details>\n\n'

    def convert_summary(self, el: Tag, text: str, **_: object) -> str:  # noqa: ARG002
        return f'\n<summary markdown="span">{text.strip()}</summary>\n\n'

    def convert_pre(self, el: Tag, _text: str, **_: object) -> str:
        code = _LIQUID.sub("{ ", el.get_text()).strip("\n")
        return f"\n\n~~~\n{code}\n~~~\n\n"

    def convert_code(self, el: Tag, _text: str, **_: object) -> str:
        code = _CODE_SIGNS.sub(lambda sign: f"&#{ord(sign[0])};", el.get_text())
        return f"<code>{code}</code>"

    def convert_math(self, el: Tag, _text: str, **_: object) -> str:
        return self.write_formula(_latex(el))

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


def _latex(formula: Tag) -> str:
    """Return LaTeX without what a table or Liquid would take."""
    latex = (formula.find("annotation") or formula).get_text().strip()
    latex = latex.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
    # two braces are as good with a space between them
    return _LIQUID.sub("{ ", latex).replace("}}", "} }").replace("%}", "% }")


def _is_alone(formula: Tag, paragraph: Tag) -> bool:
    """Tell whether nothing stands beside a formula in its paragraph."""
    return paragraph.get_text().strip() == formula.get_text().strip()

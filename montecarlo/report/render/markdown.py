"""Markdown from pages: posts and errata with the same words and numbers.

In: HTML of our own templates, with the LaTeX of each formula.  Out: Markdown as
kramdown reads it, formulas between double dollars, which it hands to MathJax; or
CommonMark.  Nothing in it can be taken for a tag of Liquid, which sites run over posts
first.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from html import escape, unescape
from itertools import groupby
from typing import ClassVar

from bs4 import BeautifulSoup
from bs4.builder import HTMLTreeBuilder
from bs4.element import PageElement, Tag
from markdownify import MarkdownConverter

from montecarlo.errors import InputError
from montecarlo.names import look_up
from montecarlo.report.content.texts import Erratum
from montecarlo.report.language.catalogues import SOURCE, Language
from montecarlo.report.render.contents import Contents, figure_file
from montecarlo.report.render.pages import render

#: What is of no use outside of a page; an unseen caption is the title of its table.
_SKIPPED = "form, head, .heads, .languages, .script-only, .skip, .unseen:not(caption)"
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
#: What means the same between dollars, where nothing can be escaped.
_BETWEEN_DOLLARS = {"*": r"\ast ", "<": r"\lt ", ">": r"\gt "}
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

    def is_block(element: PageElement) -> bool:
        return isinstance(element, Tag) and element.name in _BLOCKS

    for container in tree.select(_CONTAINERS):
        for alone, elements in groupby(list(container.contents), is_block):
            if not alone:
                first, *others = elements
                first.wrap(tree.new_tag("p")).extend(others)
    return tree


def to_markdown(
    element: Tag,
    link: Callable[[str], str] = str,
    flavour: "type[Kramdown] | None" = None,
) -> str:
    """Return an element as Markdown; ``link`` says what becomes of addresses."""
    return (flavour or Kramdown)(link).convert_soup(element).strip("\n") + "\n"


class Kramdown(MarkdownConverter):
    """Gives kramdown what it reads; methods get an element and the text made of it.

    Where markdownify's own way is right for kramdown, there is no method.
    """

    #: Whether a page has its title as a heading, not in its front matter alone.
    titled: ClassVar[bool] = False
    #: What stands before the page, if nothing else is asked for.
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
        formula, line = el.find("math"), self.begin(text.strip())
        if formula is not None and el.get_text().strip() == formula.get_text().strip():
            line = self.write_block_formula(_latex(formula))
        return f"\n\n{line}\n\n" if line else ""

    def begin(self, line: str) -> str:
        """Return a paragraph that is no list, heading or definition."""
        return _START.sub(r"\1\\", line)

    def write_formula(self, latex: str) -> str:
        """Return a formula within a line."""
        return f"$${latex}$$"

    def write_block_formula(self, latex: str) -> str:
        """Return a formula that stands alone: kramdown sees that itself."""
        return self.write_formula(latex)

    def name_block(self, block: str, name: object) -> str:
        """Return a heading, a table or a picture that links can name, if it has one."""
        mark = f" {{#{name}}}" if block.startswith("#") else f"\n{{: #{name}}}"
        return block + mark if name else block

    def convert_hN(self, n: int, el: Tag, text: str, *_: object) -> str:  # noqa: N802
        heading = self.name_block(f"{'#' * n} {text.strip()}", el.get("id"))
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
        picture = f"![{self.escape(str(el['alt']))}]({address})"
        return self.name_block(picture, figure.get("id"))

    def convert_caption(self, _el: Tag, text: str, **_: object) -> str:
        return f"**{text.strip()}**\n\n"

    def convert_table(self, el: Tag, text: str, **_: object) -> str:
        return f"\n\n{self.name_block(text.strip(), el.get('id'))}\n\n"

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


#: Signs that every reader of Markdown lets a backslash take the meaning from, and those
#: that only some do, which are written by their numbers.
_ESCAPED = re.compile(r"([\\`*_\[\]])")
_NUMBERED = re.compile(r"[|<>#~${}]")
#: What begins a list, a heading or a definition at the beginning of a line.
_COMMON_START = re.compile(r"^(?:(\d+)(?=[.)])|([-+:=]))")
#: Commands and signs of a formula that a reader of Markdown may take for its own.
_COMMON_TAKEN = re.compile(r"\\(?:[A-Za-z]+|.)|[&*<>`~\[\]]|(?<![A-Za-z0-9])_")
#: What means the same.  Between spaces ``_`` begins no emphasis, and GitHub refuses
#: ``\operatorname``.
_SAME = {**_BETWEEN_DOLLARS, "_": " _ "}
_SAME |= {r"\,": r"\thinspace ", r"\:": r"\ ", r"\;": r"\ ", r"\!": r"\negthinspace "}
_SAME |= {r"\{": r"\lbrace ", r"\}": r"\rbrace ", r"\operatorname": r"\mathrm"}


class CommonMark(Kramdown):
    """CommonMark with tables and formulas between dollars.

    So read it GitHub, and MkDocs with its extensions tables, md_in_html and
    pymdownx.arithmatex.  Some readers take a formula as it is written, others what
    CommonMark makes of it: both get the same.
    """

    titled: ClassVar[bool] = True
    front_matter: ClassVar[tuple[str, ...]] = ()

    def escape(self, text: str, _: object = None) -> str:
        """Return text that no reader of Markdown takes for its own."""
        text = _ESCAPED.sub(r"\\\1", text.replace("&", "&amp;"))
        return _NUMBERED.sub(lambda sign: f"&#{ord(sign[0])};", text)

    def begin(self, line: str) -> str:
        """Return a paragraph that is no list, heading or definition."""
        return _COMMON_START.sub(
            lambda m: f"{m[1]}\\" if m[1] else f"&#{ord(m[2])};", line
        )

    def write_formula(self, latex: str) -> str:
        return f"${_COMMON_TAKEN.sub(_keep_common, latex)}$"

    def write_block_formula(self, latex: str) -> str:
        return f"${self.write_formula(latex)}$"

    def name_block(self, block: str, name: object) -> str:
        return f'<a id="{name}"></a>\n\n{block}' if name else block

    def convert_li(self, el: Tag, text: str, parent_tags: object) -> str:
        """Indent by four columns, without which MkDocs nests nothing."""
        made = str(super().convert_li(el, text, parent_tags))  # type: ignore[misc]
        marker, _, rest = made.partition(" ")
        lines = rest.strip("\n").split("\n")
        width = len(marker) + 1
        inner = [" " * 4 + line[width:] if line else line for line in lines[1:]]
        return "\n".join([marker.ljust(4) + lines[0], *inner]) + "\n"

    def convert_summary(self, el: Tag, text: str, **_: object) -> str:
        """Keep it in its line, where nothing is converted, unless it has a formula."""
        if el.find("math") is None:
            return f"\n<summary>{escape(el.get_text().strip())}</summary>\n\n"
        return f'\n<summary markdown="span">\n\n{text.strip()}\n\n</summary>\n\n'

    def convert_dt(self, _el: Tag, text: str, **_: object) -> str:
        return f"\n\n**{text.replace('**', '').strip()}**\n\n"

    def convert_dd(self, _el: Tag, text: str, **_: object) -> str:
        return f"\n\n{text.strip()}\n\n"


def _keep_common(found: re.Match[str]) -> str:
    """Return a command or sign of a formula so that every reader hands it on."""
    taken = found[0]
    if taken in _SAME:
        return _SAME[taken]
    if taken[1:].isalnum() or taken == r"\ ":
        return taken
    return "".join(f"&#{ord(sign)};" for sign in taken)


#: By the name that asks for it.
FLAVOURS: dict[str, type[Kramdown]] = {"kramdown": Kramdown, "commonmark": CommonMark}


#: Keys of front matter, values that YAML takes as they stand (a number, a date or
#: true is one then), and characters that it does not take.
_KEY = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_PLAIN = re.compile(r"\w[\w./+-]*(?: [\w./+-]+)*")
_UNSEEN = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def front_matter(code: str, title: str, keys: Sequence[str]) -> str:
    """Return what a static site wants to know of a post, in the order of its keys.

    These are ``KEY=VALUE``, or known ones: title, lang, generated and translated.

    Raises
    ------
    InputError
        If a key without a value is not known, one is no word, or stands twice.
    """
    known = {
        "title": _quote(title.replace('"', "'")),
        "lang": code,
        "generated": "true",
        "translated": "false" if code == SOURCE else "true",
    }
    lines = {}
    for asked in keys:
        key, sign, value = asked.partition("=")
        if sign and not _KEY.fullmatch(key):
            raise InputError(f"front-matter must have words as keys, got {asked!r}")
        if key in lines:
            raise InputError(f"front-matter must have each key once, got {key!r} again")
        plain = value if _PLAIN.fullmatch(value) else _quote(value)
        lines[key] = plain if sign else look_up("front-matter", key, known)
    shown = [f"{key}: {value}" for key, value in lines.items()]
    return "\n".join(["---", *shown, "---", "", ""]) if shown else ""


def _quote(text: str) -> str:
    """Return a text in double quotes as YAML has it: JSON without what is unseen."""
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def render_markdown_post(contents: Contents, language: Language) -> str:
    """Return the report of a language as a post."""
    page = render("report", contents, language, quotable=True)
    tree, title = read_html(page), _TITLE.findall(page)[0]
    flavour = FLAVOURS[contents.post.flavour]
    link = partial(link_beside, code=language.code, languages=contents.languages)
    if not flavour.titled and (heading := tree.find("h1")):
        heading.extract()
    keys = contents.post.front_matter
    front = flavour.front_matter if keys is None else keys
    text = to_markdown(tree, link, flavour)
    return front_matter(language.code, unescape(title), front) + text


#: The title of a page, which has no formula.
_TITLE = re.compile("<title>(.*?)</title>")


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
    """Return the erratum of a text as Markdown that its author pastes.

    In kramdown, as the texts are written, formulas stand between the signs of that
    text; in another flavour, as it writes them.
    """
    page = render("erratum", contents, language, quotable=True, erratum=erratum)
    front, flavour = "", FLAVOURS[contents.post.flavour]
    if contents.post.front_matter:  # what is pasted has none, if it is not asked for
        title = unescape(_TITLE.findall(page)[0])
        front = front_matter(language.code, title, contents.post.front_matter)
    if flavour is Kramdown:
        return front + erratum_markdown(erratum.text.key, read_html(page), link)
    return front + to_markdown(read_html(page), link, flavour)


#: Before and behind a formula, by key of the text; the notes' signs for all others.
_PASTED_SIGNS = {"zh-chat": ("$ ", " $"), "zh-post": ("$", "$")}
_NOTES = (r"\\( ", r" \\)")
#: What kramdown would take for its own in a formula that it does not know as one.
_PASTED_TAKEN = re.compile(
    r"\\(?P<command>.)|(?P<sign>[*`'\"<>\[\]|]|(?<![A-Za-z0-9])_|\.(?=\.)|-(?=-))"
)
#: Signs that lose a backslash before them, doubled or not.
_ESCAPABLE = set("\\.*_+`<>()[]{}#!:|\"'$=-~")


def erratum_markdown(key: str, page: Tag, link: Callable[[str], str] = str) -> str:
    """Return an erratum's page as Markdown for the text of a key."""

    class Pasted(Kramdown):
        """Kramdown in which formulas stand as that text has them."""

        def write_formula(self, latex: str) -> str:
            return formula_in_text(key, latex)

    return to_markdown(page, link, Pasted)


def formula_in_text(key: str, latex: str) -> str:
    r"""Return a formula as a text's own Markdown writes it.

    Examples
    --------
    >>> formula_in_text("de", r"\{d_k\}")
    '\\\\( \\\\{d_k\\\\} \\\\)'
    """
    before, behind = _PASTED_SIGNS.get(key, _NOTES)
    if before == _NOTES[0]:
        latex = _PASTED_TAKEN.sub(_keep_pasted, latex)
    else:
        for sign, command in _BETWEEN_DOLLARS.items():
            latex = latex.replace(sign, command)
    return f"{before}{latex}{behind}"


def _keep_pasted(found: re.Match[str]) -> str:
    """Return a command or sign so that kramdown hands it on as it is."""
    command = found["command"]
    if command is None:
        return "\\" + found["sign"]
    if command not in _ESCAPABLE:
        return found.group()
    return rf"\\\{command}" if command in "\\_*`'\"<>[]|" else rf"\\{command}"

"""Markdown from pages: posts and errata with the same words and numbers.

In: HTML of our own templates, with the LaTeX of each formula.  Out: Markdown as
kramdown reads it, formulas between double dollars, which it hands to MathJax; or
CommonMark.  Nothing in it can be taken for a tag of Liquid, which sites run over posts
first.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape, unescape
from html.parser import HTMLParser
from itertools import groupby
from typing import ClassVar

from montecarlo.errors import InputError
from montecarlo.names import look_up
from montecarlo.report.content.texts import Erratum
from montecarlo.report.language.catalogues import SOURCE, Language
from montecarlo.report.render.contents import Contents, figure_file
from montecarlo.report.render.pages import render, render_erratum

#: Elements that hold nothing, and are not closed.
_VOID = {"br", "hr", "img", "input", "link", "meta", "wbr"}
#: What is of no use outside of a page: elements, and those of a class; an unseen
#: caption is the title of its table.
_SKIPPED = {"form", "head", "script", "style"}
_SKIPPED_CLASSES = {"heads", "languages", "script-only", "skip", "unseen"}
#: Where text may stand without a paragraph around it, also beside blocks.
_CONTAINERS = {"html", "body", "header", "nav", "main", "section", "article", "div"}
_CONTAINERS |= {"details", "figure", "figcaption", "li", "dt", "dd"}
#: What hands its id on to the heading in it.
_NAMING = {"section", "article"}
#: At the ends of a block, and beside it, space says nothing.
_BLOCKS = _CONTAINERS | {"h1", "h2", "h3", "h4", "p", "pre", "summary", "output"}
_BLOCKS |= {"ul", "ol", "dl", "table", "caption", "thead", "tbody", "tr", "th", "td"}
_SPACE = re.compile(r"[\t \r\n]+")
#: Signs that begin something in Markdown, wherever they stand.
_SIGNS = re.compile(r"([\\`*_\[\]|<>#~])")
#: What begins a list, a heading or a definition at the beginning of a line.
_START = re.compile(r"^(\d+(?=[.)])|(?=[-+:=]))")
_LIQUID = re.compile(r"\{(?=[{%])")
#: What means the same between dollars, where nothing can be escaped.
_BETWEEN_DOLLARS = {"*": r"\ast ", "<": r"\lt ", ">": r"\gt "}
_CODE_SIGNS = re.compile(r"[&<>*_`\\\[\]|{}$#~\"']")


@dataclass(eq=False, slots=True)
class Element:
    """An element of a page: its name, its attributes, and what it holds."""

    name: str
    attributes: dict[str, str]
    parent: "Element | None" = None
    contents: "list[Element | str]" = field(default_factory=list)

    def walk(self) -> "Iterator[Element]":
        """Yield this element and all in it, in the order of the page."""
        yield self
        for one in self.contents:
            if isinstance(one, Element):
                yield from one.walk()

    def find(self, *names: str) -> "Element | None":
        """Return the first element in it of one of some names."""
        return next((one for one in self.walk() if one.name in names), None)

    def remove(self) -> None:
        """Take it out of what is around it."""
        if self.parent is not None:
            self.parent.contents.remove(self)

    def text(self) -> str:
        """Return all text in it."""
        return "".join(
            one if isinstance(one, str) else one.text() for one in self.contents
        )


class _Reader(HTMLParser):
    """Makes elements of a page, without those that are skipped."""

    def __init__(self) -> None:
        super().__init__()
        self.around = Element("", {})

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        made = Element(tag, attributes, self.around)
        self.around.contents.append(made)
        if tag not in _VOID:
            self.around = made

    def handle_endtag(self, tag: str) -> None:
        """Refuse what a browser would repair."""
        ended = self.around
        if ended.name != tag or ended.parent is None:
            raise ValueError(f"pages must close {ended.name!r}, got {tag!r}")
        self.around = ended.parent
        if _is_skipped(ended):
            ended.remove()

    def handle_data(self, data: str) -> None:
        contents = self.around.contents
        if contents and isinstance(contents[-1], str):
            contents[-1] += data
        else:
            contents.append(data)


def read_html(text: str) -> Element:
    """Parse a page of our own, or a part of one, for `to_markdown`.

    Raises
    ------
    ValueError
        If an element is not closed.
    """
    reader = _Reader()
    # the end of what is around all meets whatever is still open
    reader.feed(f"<div>{text}</div>")
    reader.close()
    page = reader.around
    for one in list(page.walk()):
        name = one.attributes.get("id") if one.name in _NAMING else None
        if name and (heading := one.find("h2", "h3")):
            heading.attributes.setdefault("id", name)
        if one.name in _CONTAINERS:
            runs = groupby(one.contents, _is_block)
            one.contents = []
            for is_block, contents in runs:
                one.contents += contents if is_block else [_paragraph(one, contents)]
    return page


def _is_skipped(element: Element) -> bool:
    classes = set(element.attributes.get("class", "").split())
    if element.name == "caption":
        classes -= {"unseen"}
    return element.name in _SKIPPED or not classes.isdisjoint(_SKIPPED_CLASSES)


def _is_block(one: Element | str) -> bool:
    return isinstance(one, Element) and one.name in _BLOCKS


def _paragraph(around: Element, contents: Iterable[Element | str]) -> Element:
    """Return a paragraph of what stands within a block without one."""
    made = Element("p", {}, around, list(contents))
    for one in made.contents:
        if isinstance(one, Element):
            one.parent = made
    return made


def to_markdown(
    element: Element,
    link: Callable[[str], str] = str,
    flavour: "type[Kramdown] | None" = None,
) -> str:
    """Return an element as Markdown; ``link`` says what becomes of addresses."""
    return (flavour or Kramdown)(link).convert(element).strip("\n") + "\n"


class Kramdown:
    """Gives kramdown what it reads; methods get an element and the text made of it.

    An element without a method is the text in it.

    Attributes
    ----------
    titled : bool
        Whether a page has its title as a heading, not in its front matter alone.
    front_matter : tuple of str
        What stands before the page, if nothing else is asked for.
    least_indent : int
        Columns before what an item of a list holds, at the least.
    """

    titled: ClassVar[bool] = False
    front_matter: ClassVar[tuple[str, ...]] = ("layout=post", "title", "lang")
    least_indent: ClassVar[int] = 0

    def __init__(self, link: Callable[[str], str]) -> None:
        self.link = link

    def convert(self, el: Element) -> str:
        """Return an element as Markdown."""
        text, inside = "", el.contents
        beside = zip([None, *inside], inside, [*inside[1:], None], strict=False)
        for before, one, after in beside:
            if isinstance(one, Element):
                text = _join(text, self.convert(one))
                continue
            line = self.escape(_SPACE.sub(" ", one))
            line = line.lstrip(" ") if _is_edge(before, el) else line
            text = _join(text, line.rstrip(" ") if _is_edge(after, el) else line)
        method = getattr(self, f"convert_{el.name}", None)
        return str(method(el, text)) if method else text

    def escape(self, text: str) -> str:
        """Return text that Markdown, Liquid and MathJax leave as it is."""
        text = _SIGNS.sub(r"\\\1", text.replace("&", "&amp;")).replace("$", "&#36;")
        return re.sub(r"\{(?=[{%:])", "&#123;", text)

    def convert_p(self, el: Element, text: str) -> str:
        formula, line = el.find("math"), self.begin(text.strip())
        if formula is not None and _is_alone(formula, el):
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

    def name_heading(self, heading: str, name: str) -> str:
        """Return a heading that links can name."""
        return f"{heading} {{#{name}}}"

    def name_block(self, block: str, name: str) -> str:
        """Return a table or a picture that links can name."""
        return f"{block}\n{{: #{name}}}"

    def convert_h1(self, el: Element, text: str) -> str:
        heading = f"{'#' * int(el.name[1])} {text.strip()}"
        name = el.attributes.get("id")
        return f"\n\n{self.name_heading(heading, name) if name else heading}\n\n"

    convert_h2 = convert_h3 = convert_h4 = convert_h1

    def convert_div(self, _el: Element, text: str) -> str:
        return f"\n\n{text.strip()}\n\n"

    convert_section = convert_article = convert_figcaption = convert_dl = convert_div

    def convert_ul(self, el: Element, text: str) -> str:
        """Keep a list and the one right before it from becoming one, by a comment."""
        comment = "<!-- -->\n\n" if _follows_list(el) else ""
        return f"\n\n{comment}{text.strip()}\n\n"

    convert_ol = convert_ul

    def convert_li(self, el: Element, text: str) -> str:
        marker = "- "
        if el.parent is not None and el.parent.name == "ol":
            items = [one for one in el.parent.contents if isinstance(one, Element)]
            marker = f"{items.index(el) + 1}. "
        marker = marker.ljust(self.least_indent)
        return f"{marker}{_indent(text.strip(), len(marker))}\n"

    def convert_dt(self, _el: Element, text: str) -> str:
        return f"\n\n{text.strip()}\n"

    def convert_dd(self, _el: Element, text: str) -> str:
        return f":   {_indent(text.strip(), 4)}\n"

    def convert_img(self, el: Element, _text: str) -> str:
        """Make a picture of a file; its address is that of the figure's id."""
        figure: Element | None = el
        while figure is not None and figure.name != "figure":
            figure = figure.parent
        figure = figure or el
        address = self.link(f"#{figure.attributes.get('id', '')}")
        alternative = self.escape(el.attributes["alt"])
        return self._name(f"![{alternative}]({address})", figure)

    def convert_caption(self, _el: Element, text: str) -> str:
        return f"**{text.strip()}**\n\n"

    def convert_table(self, el: Element, text: str) -> str:
        return f"\n\n{self._name(text.strip(), el)}\n\n"

    def convert_tr(self, el: Element, text: str) -> str:
        """Put a rule below the heads of a table."""
        cells = [one.name for one in el.contents if isinstance(one, Element)]
        rule = "" if "td" in cells else f"|{' --- |' * len(cells)}\n"
        return f"| {text.strip()}\n{rule}"

    def convert_td(self, _el: Element, text: str) -> str:
        return " ".join(text.split("\n")).strip() + " | "

    convert_th = convert_td

    def _name(self, written: str, block: Element) -> str:
        name = block.attributes.get("id")
        return self.name_block(written, name) if name else written

    def convert_details(self, _el: Element, text: str) -> str:
        return f'\n\n<details markdown="1">{text.rstrip()}\n\n</details>\n\n'

    def convert_summary(self, _el: Element, text: str) -> str:
        return f'\n<summary markdown="span">{text.strip()}</summary>\n\n'

    def convert_pre(self, el: Element, _text: str) -> str:
        code = _LIQUID.sub("{ ", el.text()).strip("\n")
        return f"\n\n~~~\n{code}\n~~~\n\n"

    def convert_code(self, el: Element, _text: str) -> str:
        code = _CODE_SIGNS.sub(lambda sign: f"&#{ord(sign[0])};", el.text())
        return f"<code>{code}</code>"

    def convert_math(self, el: Element, _text: str) -> str:
        return self.write_formula(_latex(el))

    def convert_a(self, el: Element, text: str) -> str:
        return f"[{text}]({self.link(el.attributes.get('href', ''))})"

    def convert_span(self, el: Element, text: str) -> str:
        """Write a verdict in bold; in a table an estimate follows it at once."""
        if "data-verdict" not in el.attributes:
            return text
        return f"**{text.strip()}**" + (" " if el.name == "b" else "")

    convert_b = convert_span

    def convert_sup(self, _el: Element, text: str) -> str:
        return f"<sup>{text}</sup>"

    def convert_br(self, _el: Element, _text: str) -> str:
        return "<br>"


def _is_edge(beside: Element | str | None, around: Element) -> bool:
    """Tell whether space is of no meaning there."""
    return _is_block(around if beside is None else beside)


def _join(first: str, second: str) -> str:
    """Join what was made, with the wider of the gaps that both ask for."""
    gap = max(
        len(first) - len(first.rstrip("\n")), len(second) - len(second.lstrip("\n"))
    )
    return first.rstrip("\n") + "\n" * gap + second.lstrip("\n")


def _follows_list(element: Element) -> bool:
    """Tell whether a list stands right before another."""
    around = element.parent.contents if element.parent else [element]
    before = [one for one in around[: around.index(element)] if one != " "]
    last = before[-1] if before else None
    return isinstance(last, Element) and last.name in {"ul", "ol"}


def _indent(text: str, columns: int) -> str:
    """Indent all lines but the first, as what belongs to it."""
    return re.sub(r"\n(?=[^\n])", "\n" + " " * columns, text)


def _latex(formula: Element) -> str:
    """Return LaTeX without what a table or Liquid would take."""
    latex = (formula.find("annotation") or formula).text().strip()
    latex = latex.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
    # two braces are as good with a space between them
    return _LIQUID.sub("{ ", latex).replace("}}", "} }").replace("%}", "% }")


def _is_alone(formula: Element, paragraph: Element) -> bool:
    """Tell whether nothing stands beside a formula in its paragraph."""
    return paragraph.text().strip() == formula.text().strip()


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
    least_indent: ClassVar[int] = 4  # without which MkDocs nests nothing

    def escape(self, text: str) -> str:
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

    def name_heading(self, heading: str, name: str) -> str:
        return f'<a id="{name}"></a>\n\n{heading}'

    def name_block(self, block: str, name: str) -> str:
        return self.name_heading(block, name)

    def convert_summary(self, el: Element, text: str) -> str:
        """Keep it in its line, where nothing is converted, unless it has a formula."""
        if el.find("math") is None:
            return f"\n<summary>{escape(el.text().strip())}</summary>\n\n"
        return f'\n<summary markdown="span">\n\n{text.strip()}\n\n</summary>\n\n'

    def convert_dt(self, _el: Element, text: str) -> str:
        return f"\n\n**{text.replace('**', '').strip()}**\n\n"

    def convert_dd(self, _el: Element, text: str) -> str:
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
        heading.remove()
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
    page = render_erratum(contents, language, erratum, quotable=True)
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


def erratum_markdown(key: str, page: Element, link: Callable[[str], str] = str) -> str:
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

"""Markdown from a page: the same words and numbers, for sites that kramdown renders.

In: HTML of our own templates, with the LaTeX of each formula.  Out: Markdown as
kramdown reads it, formulas between double dollars, which it hands to MathJax.
Nothing in it can be taken for a tag of Liquid, which sites run over posts first.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"br", "img", "meta", "wbr"}
#: Elements of a page that are of no use outside of it.
SKIPPED = {"head", "style", "script", "form"}
SKIPPED_CLASSES = {"skip", "unseen", "languages", "script-only"}
#: Signs that begin something in Markdown, wherever they stand.
_SIGNS = re.compile(r"([\\`*_\[\]|<>#~])")
#: What begins a list, a heading or a definition at the beginning of a line.
_STARTS = re.compile(r"^(?:[-+:=]|(?=\d+[.)]))")
_ITEM = re.compile(r"(?:-|\d+\.) ")
_LIQUID = re.compile(r"\{(?=[{%])")
_SPACE = re.compile(r"[ \t\r\n]+")


@dataclass(slots=True)
class Node:
    """An element: its name, its attributes, and what stands in it."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list["Node | str"] = field(default_factory=list)

    def find(self, tag: str) -> "Node | None":
        """Return the first element of a name inside."""
        return next((node for node in self.walk() if node.tag == tag), None)

    def walk(self) -> Iterator["Node"]:
        """Yield this element and all inside, in order."""
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.walk()

    def text(self) -> str:
        """Return all text inside."""
        parts = (c if isinstance(c, str) else c.text() for c in self.children)
        return "".join(parts)

    @property
    def skipped(self) -> bool:
        """Whether Markdown has no use for it."""
        classes = set(self.attributes.get("class", "").split())
        return self.tag in SKIPPED or not classes.isdisjoint(SKIPPED_CLASSES)


class _Reader(HTMLParser):
    """Reads what our templates write: every element that is not void is closed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Node("")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)

    def handle_endtag(self, tag: str) -> None:
        if self.open[-1].tag != tag:
            raise ValueError(f"pages must close {self.open[-1].tag!r}, got {tag!r}")
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read_html(text: str) -> Node:
    """Parse a page of our own, or a part of one.

    Raises
    ------
    ValueError
        If an element is not closed.
    """
    reader = _Reader()
    reader.feed(text)
    reader.close()
    if len(reader.open) > 1:
        raise ValueError(f"pages must close {reader.open[-1].tag!r}")
    return reader.open[0]


def to_markdown(node: Node, link: Callable[[str], str] = str) -> str:
    """Return an element as Markdown; ``link`` says what becomes of addresses.

    Returns
    -------
    str
        Blocks with an empty line between any two of them.
    """
    return _join(_blocks(node, link)) + "\n"


def _join(blocks: Iterable[str]) -> str:
    """Join blocks with empty lines; a comment keeps two lists from becoming one."""
    text = last = ""
    for block in blocks:
        if not block.strip():
            continue
        if last and _ITEM.match(last) and _ITEM.match(block):
            text += "\n\n<!-- -->"
        text += ("\n\n" if last else "") + block
        last = block
    return text


def _blocks(node: Node, link: Callable[[str], str]) -> Iterator[str]:
    """Yield the blocks of an element, each without empty lines around it."""
    inline: list[Node | str] = []
    for child in node.children:
        if isinstance(child, str) or child.skipped or child.tag not in _BLOCKS:
            inline.append(child)
            continue
        yield _line(inline, link)
        inline = []
        yield from _BLOCKS[child.tag](child, link)
    yield _line(inline, link)


def _heading(node: Node, link: Callable[[str], str]) -> Iterator[str]:
    name = node.attributes.get("id", "")
    anchor = f" {{#{name}}}" if name else ""
    yield f"{'#' * int(node.tag[1])} {_inline(node.children, link)}{anchor}"


def _section(node: Node, link: Callable[[str], str]) -> Iterator[str]:
    """Give the first heading of a section the section's name."""
    headings = (n for n in node.walk() if n.tag in {"h2", "h3"})
    heading = next(headings, None)
    if heading is not None and "id" in node.attributes:
        heading.attributes.setdefault("id", node.attributes["id"])
    yield from _blocks(node, link)


def _list(node: Node, link: Callable[[str], str]) -> Iterator[str]:
    items = [c for c in node.children if isinstance(c, Node) and c.tag == "li"]
    lines = []
    for number, item in enumerate(items, start=1):
        mark = f"{number}. " if node.tag == "ol" else "- "
        inner = _join(_blocks(item, link))
        lines.append(mark + inner.replace("\n", "\n" + " " * len(mark)))
    yield "\n".join(lines)


def _quotation(node: Node, link: Callable[[str], str]) -> Iterator[str]:
    lines = _join(_blocks(node, link)).splitlines()
    yield "\n".join(f"> {line}".rstrip() for line in lines)


def _definitions(node: Node, link: Callable[[str], str]) -> Iterator[str]:
    for child in node.children:
        if isinstance(child, Node) and child.tag == "dt":
            term = _line(child.children, link)
        elif isinstance(child, Node):
            yield f"{term}\n: {_inline(child.children, link)}"


def _figure(node: Node, link: Callable[[str], str]) -> Iterator[str]:
    """Make a picture of a file; its address is that of the figure's id."""
    image, caption = node.find("img"), node.find("figcaption")
    name = node.attributes.get("id", "")
    if image is not None:
        alternative = _escape(image.attributes.get("alt", ""))
        anchor = f"\n{{: #{name}}}" if name else ""
        yield f"![{alternative}]({link('#' + name)}){anchor}"
    if caption is not None:
        yield from _blocks(caption, link)


def _table(node: Node, link: Callable[[str], str]) -> Iterator[str]:
    caption = node.find("caption")
    if caption is not None:
        yield f"**{_inline(caption.children, link)}**"
    lines = []
    for row in (n for n in node.walk() if n.tag == "tr"):
        cases = [c for c in row.children if isinstance(c, Node)]
        written = [_inline(c.children, link) or " " for c in cases]
        lines.append(f"| {' | '.join(written)} |")
        if len(lines) == 1:
            lines.append("|" + " --- |" * len(cases))
    name = node.attributes.get("id", "")
    yield "\n".join([*lines, *([f"{{: #{name}}}"] if name else [])])


def _details(node: Node, link: Callable[[str], str]) -> Iterator[str]:
    summary = node.find("summary")
    words = _inline(summary.children, link) if summary else ""
    yield f'<details markdown="1">\n<summary markdown="span">{words}</summary>'
    rest = [c for c in node.children if c is not summary]
    yield from _blocks(Node("div", {}, rest), link)
    yield "</details>"


def _code_block(node: Node, _: Callable[[str], str]) -> Iterator[str]:
    lines = _LIQUID.sub("{ ", node.text()).strip("\n").splitlines()
    yield "\n".join(f"    {line}" for line in lines)


_Converter = Callable[[Node, Callable[[str], str]], Iterator[str]]
_BLOCKS: dict[str, _Converter] = {
    **dict.fromkeys(("h1", "h2", "h3", "h4"), _heading),
    **dict.fromkeys(("section", "article"), _section),
    **dict.fromkeys(("html", "body", "header", "nav", "main", "div", "p"), _blocks),
    **dict.fromkeys(("ul", "ol"), _list),
    "blockquote": _quotation,
    "dl": _definitions,
    "figure": _figure,
    "table": _table,
    "details": _details,
    "pre": _code_block,
}


def _line(nodes: list[Node | str], link: Callable[[str], str]) -> str:
    """Return a paragraph: one line, its first sign no beginning of a list."""
    line = _STARTS.sub(lambda found: "\\" + found[0], _inline(nodes, link))
    numbered = re.match(r"\\(\d+)([.)])", line)
    if numbered:
        line = f"{numbered[1]}\\{numbered[2]}{line[numbered.end() :]}"
    return line


def _inline(nodes: list[Node | str], link: Callable[[str], str]) -> str:
    """Return text with formulas, code and links, as one line."""
    line = "".join(_piece(node, link) for node in nodes)
    return _SPACE.sub(" ", line).strip()


def _piece(node: Node | str, link: Callable[[str], str]) -> str:
    if isinstance(node, str):
        return _escape(node)
    if node.skipped:
        return ""
    if node.tag in _LITERAL:
        return _LITERAL[node.tag](node)
    inner = "".join(_piece(child, link) for child in node.children)
    if node.tag == "a":
        address = link(node.attributes.get("href", ""))
        return f"[{inner}]({address})"
    if _is_badge(node):  # in a table an estimate follows at once
        return f"**{inner.strip()}**" + (" " if node.tag == "b" else "")
    return f"<{node.tag}>{inner}</{node.tag}>" if node.tag == "sup" else inner


def _is_badge(node: Node) -> bool:
    return "data-verdict" in node.attributes and (
        node.tag == "b" or node.attributes.get("class") == "verdict"
    )


def latex_of(formula: Node) -> str:
    """Return the LaTeX of a formula, without what a table or Liquid would take."""
    annotation = formula.find("annotation")
    latex = (annotation or formula).text().strip()
    latex = latex.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
    # two braces are as good with a space between them
    return _LIQUID.sub("{ ", latex).replace("}}", "} }").replace("%}", "% }")


#: Pieces that are not written from what stands in them.
_LITERAL: dict[str, Callable[[Node], str]] = {
    "math": lambda node: f"$${latex_of(node)}$$",
    "code": lambda node: f"<code>{_as_html(node.text())}</code>",
    "br": lambda _: "<br>",
}


def _escape(text: str) -> str:
    """Return text that Markdown, Liquid and MathJax leave as it is."""
    text = _SIGNS.sub(r"\\\1", text.replace("&", "&amp;"))
    text = text.replace("$", "&#36;")
    return re.sub(r"\{(?=[{%:])", "&#123;", text)


def _as_html(text: str) -> str:
    """Return code: every sign that means something anywhere by its number."""
    return re.sub(r"[&<>*_`\\\[\]|{}$#~\"']", lambda sign: f"&#{ord(sign[0])};", text)

"""Kinds of Markdown: formulas, names of places, lists and definitions differ.

`montecarlo.report.render.markdown` writes kramdown; each further kind is a class here,
with what it does otherwise, and an entry in `FLAVOURS`.
"""

import json
import re
from collections.abc import Sequence
from html import escape
from typing import ClassVar

from bs4.element import Tag

from montecarlo.errors import InputError
from montecarlo.names import look_up
from montecarlo.report.language.catalogues import SOURCE
from montecarlo.report.render.markdown import Kramdown

#: Signs that every reader of Markdown lets a backslash take the meaning from, and those
#: that only some do, which are written by their numbers.
_ESCAPED = re.compile(r"([\\`*_\[\]])")
_NUMBERED = re.compile(r"[|<>#~${}]")
#: What begins a list, a heading or a definition at the beginning of a line.
_START = re.compile(r"^(?:(\d+)(?=[.)])|([-+:=]))")
#: The file of a post, with the code of its language.
_POST = re.compile(r"report-(\w{2})\.md")


class _Plain(Kramdown):
    """What the others share: single dollars around formulas, numbers for signs."""

    titled: ClassVar[bool] = True
    front_matter: ClassVar[tuple[str, ...]] = ()

    def escape(self, text: str, _: object = None) -> str:
        """Return text that no reader of Markdown takes for its own."""
        text = _ESCAPED.sub(r"\\\1", text.replace("&", "&amp;"))
        return _NUMBERED.sub(lambda sign: f"&#{ord(sign[0])};", text)

    def begin(self, line: str) -> str:
        """Return a paragraph that is no list, heading or definition."""
        return _START.sub(lambda m: f"{m[1]}\\" if m[1] else f"&#{ord(m[2])};", line)

    def write_formula(self, latex: str) -> str:
        return f"${latex}$"

    def write_block_formula(self, latex: str) -> str:
        return f"$$\n{latex}\n$$"


class MkDocs(_Plain):
    """Python-Markdown as MkDocs reads it.

    With its extensions tables, attr_list, def_list, md_in_html and pymdownx.arithmatex.
    """

    front_matter = ("title",)

    def convert_li(self, el: Tag, text: str, parent_tags: object) -> str:
        """Indent by four columns, without which nothing is nested."""
        made = str(super().convert_li(el, text, parent_tags))  # type: ignore[misc]
        marker, _, rest = made.partition(" ")
        lines = rest.strip("\n").split("\n")
        width = len(marker) + 1
        inner = [" " * 4 + line[width:] if line else line for line in lines[1:]]
        return "\n".join([marker.ljust(4) + lines[0], *inner]) + "\n"

    def name_heading(self, heading: str, name: str) -> str:
        return f"{heading} {{ #{name} }}"

    def name_block(self, block: str, name: str) -> str:
        if block.startswith("!["):
            return f"{block}{{ #{name} }}"
        return f'<a id="{name}"></a>\n\n{block}'


class _Html(_Plain):
    """What is folded is HTML, in which Markdown begins again after an empty line."""

    def convert_details(self, _el: Tag, text: str, **_: object) -> str:
        return f"\n\n<details>{text.rstrip()}\n\n</details>\n\n"

    def convert_summary(self, el: Tag, text: str, **_: object) -> str:
        """Keep it in its line, where nothing is converted, unless it has a formula."""
        if el.find("math") is None:
            return f"\n<summary>{escape(el.get_text().strip())}</summary>\n\n"
        return f"\n<summary>\n\n{text.strip()}\n\n</summary>\n\n"


class Myst(_Html):
    """MyST, as Sphinx reads it, with the extensions dollarmath and deflist.

    Names of places are those of a whole site, so each begins with its language.
    """

    def name_heading(self, heading: str, name: str) -> str:
        return f"({self.code}-{name})=\n{heading}"

    def name_block(self, block: str, name: str) -> str:
        return f"({self.code}-{name})=\n{block}"

    def convert_a(self, el: Tag, text: str, **_: object) -> str:
        file, sign, name = self.link(str(el.get("href", ""))).partition("#")
        code = _POST.fullmatch(file)
        if sign and (code or not file):
            file, name = "", f"{code[1] if code else self.code}-{name}"
        return f"[{text}]({file}{sign}{name})"


class GitHub(_Html):
    """What GitHub shows: no definitions, and no names of ours without HTML."""

    def write_formula(self, latex: str) -> str:
        return f"$`{latex}`$"

    def write_block_formula(self, latex: str) -> str:
        return f"```math\n{latex}\n```"

    def name_heading(self, heading: str, name: str) -> str:
        return f'<a id="{name}"></a>\n\n{heading}'

    def name_block(self, block: str, name: str) -> str:
        return f'<a id="{name}"></a>\n\n{block}'

    def convert_dt(self, _el: Tag, text: str, **_: object) -> str:
        return f"\n\n**{text.strip()}**\n\n"

    def convert_dd(self, _el: Tag, text: str, **_: object) -> str:
        return f"\n\n{text.strip()}\n\n"


#: By the name that asks for it.
FLAVOURS: dict[str, type[Kramdown]] = {
    "kramdown": Kramdown,
    "mkdocs": MkDocs,
    "myst": Myst,
    "github": GitHub,
}


#: Keys of front matter, values that YAML takes as they stand (a number, a date or
#: true is one then), and characters that it does not take.
_KEY = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_PLAIN = re.compile(r"\w[\w./+-]*(?: [\w./+-]+)*")
_UNSEEN = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def front_matter(code: str, title: str, keys: Sequence[str]) -> str:
    """Return what a static site wants to know of a post, in the order of its keys.

    Parameters
    ----------
    code, title : str
        Of the post.
    keys : sequence of str
        ``KEY=VALUE``, or one that is known: title, lang, generated and translated.

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

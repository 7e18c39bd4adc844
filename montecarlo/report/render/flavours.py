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
#: Commands and signs of a formula that a reader of Markdown may take for its own.
_TAKEN = re.compile(r"\\(?:[A-Za-z]+|.)|[&*<>`~\[\]]|(?<![A-Za-z0-9])_")
#: What means the same.  Between spaces ``_`` begins no emphasis, and GitHub refuses
#: ``\operatorname``.
_SAME = {"*": r"\ast ", "<": r"\lt ", ">": r"\gt ", "_": " _ "}
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
        return _START.sub(lambda m: f"{m[1]}\\" if m[1] else f"&#{ord(m[2])};", line)

    def write_formula(self, latex: str) -> str:
        return f"${_TAKEN.sub(_keep, latex)}$"

    def write_block_formula(self, latex: str) -> str:
        return f"${self.write_formula(latex)}$"

    def name_heading(self, heading: str, name: str) -> str:
        return f'<a id="{name}"></a>\n\n{heading}'

    def name_block(self, block: str, name: str) -> str:
        return self.name_heading(block, name)

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


def _keep(found: re.Match[str]) -> str:
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

r"""What an author wrote, quoted: data, set for a page as text and formulas.

In: a sentence of an author's Markdown.  Out: markup for a page, from which Markdown is
made as from all else.  Marks of emphasis are left out, formulas that pages cannot hold
stay text.
"""

import re

from markupsafe import Markup

from montecarlo.report.language.formulas import math_ml, prose

#: A formula between the signs of one of the texts' Markdown.
_FORMULA = re.compile(
    r"\$\$(?P<display>[^$]+)\$\$|\$(?P<dollars>[^$]+)\$"
    r"|\\\\\((?P<twice>.*?)\\\\\)|\\\((?P<once>.*?)\\\)"
)
#: What can stand between dollars: no dollar, no backslash without a sign behind it.
_CLOSED = re.compile(r"(?:[^$\\]|\\.)+")
#: Signs that a formula may have; the longest of the texts has about a hundred.
MOST_SIGNS = 500


def set_quotation(markdown: str) -> Markup:
    r"""Set an author's sentence for a page.

    Examples
    --------
    >>> set_quotation("**Bold** & <b>$ 5</b>")
    Markup('Bold &amp; &lt;b&gt;$ 5&lt;/b&gt;')
    """
    pieces, place = [], 0
    for found in _FORMULA.finditer(markdown):
        pieces.append(_plain(markdown[place : found.start()]))
        latex = next(group for group in found.groups() if group is not None)
        pieces.append(f"${latex}$" if _is_set(latex) else _plain(found.group()))
        place = found.end()
    return prose("".join([*pieces, _plain(markdown[place:])]))


def _plain(text: str) -> str:
    """Return text without marks of emphasis, whose dollars are dollars."""
    return text.replace("**", "").replace("$", r"\$")


def _is_set(latex: str) -> bool:
    """Tell whether a page can hold a formula."""
    if len(latex) > MOST_SIGNS or not _CLOSED.fullmatch(latex):
        return False
    try:
        math_ml(latex)
    except ValueError:
        return False
    return True

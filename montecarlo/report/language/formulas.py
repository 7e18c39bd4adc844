"""Formulas for pages: LaTeX in, MathML out.

In: the LaTeX of symbols, and sentences with LaTeX between dollars.  Out: MathML that
needs no script and no style of its own, so that the policy of the pages lets it
through.  How it looks is the business of ``math`` in the style sheet and of its font.
"""

import html
import re
from collections.abc import Callable
from functools import lru_cache

from markupsafe import Markup, escape
from math_core import LatexError, LatexToMathML

from montecarlo.errors import InputError

#: The annotation is never drawn; it is there for whoever wants to quote a formula.
_CONVERTER = LatexToMathML(annotation=True, fancy_error=False)
#: For tables, which hold hundreds of them.
_PLAIN = LatexToMathML(annotation=False, fancy_error=False)

#: What must not stand in a page: styles of single elements, which its policy blocks;
#: links to equations, which have no numbers here; what browsers do not draw.
_REFUSED = re.compile(r"<\w[^>]*\s(?:style|href)=|<menclose")

#: What a sentence is cut at.  Tags are passed over: a dollar in an attribute is a
#: dollar.
_PIECES = re.compile(
    r"""
    (?P<tag> </?[A-Za-z][^>]*> )
    | \\ (?P<dollar> \$ )
    | \$ (?P<formula> (?: [^$\\] | \\. )* ) \$
    | (?P<stray> \$ )
    """,
    re.DOTALL | re.VERBOSE,
)

#: A formula with the signs right before and after it, which must not end, or begin, a
#: line.
_CLOSED = re.compile(
    r"([(\[“„«（「『【《]*)<math\b(?:(?!</math>).)*</math>"
    r"([.,;:!?)\]…’”»，。、；：！？）」』】》]*)",
    re.DOTALL,
)

#: A formula whose text is its LaTeX: one letter, or a number without a decimal sign.
_TOLD = re.compile(r"\s*(?:[A-Za-z]|\d+)\s*")

#: A formula that is a number: it needs no setting.
_NUMBER = re.compile(r"(?P<digits>\d[\d.,{}\u00a0]*)(?P<percent>(?:\\,)?\\%)?")
_BRACES = str.maketrans("", "", "{}")

#: A width with more digits than anyone can see.
_LONG_SPACE = re.compile(r'"(0\.\d{3})\d+em"')

#: A root over one low letter, which would hang below the line and cut the letter.
_LOW_ROOT = re.compile(r"<msqrt>(<mi>[acemnopqrsuvwxyz]</mi>)</msqrt>")


@lru_cache(maxsize=4096)
def math_ml(latex: str, *, quotable: bool = True) -> str:
    r"""Return a formula as MathML.

    ``quotable``: the LaTeX is added as an annotation, where the text does not say it.

    Raises
    ------
    ValueError
        If the formula is empty, is not understood, or needs what a page must not hold:
        ``\color``, ``\begin{aligned}`` and ``\begin{cases}`` (styles), ``\eqref``
        (links), ``\boxed`` and ``\cancel`` (not in MathML Core).

    Examples
    --------
    >>> math_ml("d_k").partition("<annotation")[0]
    '<math><semantics><msub><mi>d</mi><mi>k</mi></msub>'
    """
    if not latex.strip():
        raise InputError("a formula must not be empty")
    try:
        told = _TOLD.fullmatch(latex)
        converter = _CONVERTER if quotable and not told else _PLAIN
        found = converter.convert_with_local_state(latex, displaystyle=False)
    except LatexError as error:
        raise InputError(f"formula ${latex}$ is not understood: {error}") from error
    if refused := _REFUSED.search(found):
        raise InputError(
            f"formula ${latex}$ needs what a page must not hold: {refused.group()}"
        )
    found = found.replace("&ApplyFunction;", "\N{FUNCTION APPLICATION}")
    found = _LONG_SPACE.sub(r'"\1em"', found)
    return _LOW_ROOT.sub(r'<msqrt><mpadded height="0.68em">\1</mpadded></msqrt>', found)


def prose(text: str, rewrite: Callable[[str], str] = str) -> Markup:
    r"""Replace every ``$…$`` in a text by inline MathML.

    Markup is taken as it is, anything else is escaped; ``\$`` is a dollar.  The LaTeX
    of each formula is rewritten before it is set.

    Raises
    ------
    ValueError
        If a dollar has no partner, a formula holds a bare ``<``, or `math_ml` raises.

    Examples
    --------
    >>> prose(r"It costs \$5 & more.")
    Markup('It costs $5 &amp; more.')
    """

    def replace(piece: re.Match[str]) -> str:
        if piece["stray"]:
            raise InputError(f"a dollar must have a partner in {str(text)!r}")
        if piece["formula"] is None:
            return piece["dollar"] or piece["tag"]
        if "<" in piece["formula"]:
            raise InputError(rf"a formula must write < as \lt in {str(text)!r}")
        latex = rewrite(html.unescape(piece["formula"]))
        number = _NUMBER.fullmatch(latex)
        if number is not None:  # in the font of the numbers that were measured
            percent = number["percent"] or ""
            kept = percent.replace(r"\,", "\N{NO-BREAK SPACE}").replace("\\", "")
            digits = number["digits"].translate(_BRACES)
            return f"<span class=label>{digits}{kept}</span>"
        return math_ml(latex)

    found = _PIECES.sub(replace, escape(text))
    # browsers break a line at a formula whatever stands there, even a word joiner
    found = _CLOSED.sub(_keep_signs, found)
    return Markup(found)  # noqa: S704 - escaped above, and math_ml escapes


def _keep_signs(found: re.Match[str]) -> str:
    signs = found[1] or found[2]
    return f'<span class="kept">{found[0]}</span>' if signs else found[0]

"""Formulas for pages: converts LaTeX to MathML.

The input is a formula, or a sentence with formulas between dollar signs.  The MathML
has no script and no inline style, which the content security policy of pages would
block.  Font and size of formulas are set in report.css.
"""

import html
import re
from collections.abc import Callable
from functools import lru_cache

from markupsafe import Markup, escape
from math_core import LatexError, LatexToMathML

from montecarlo.errors import InputError

#: Adds the LaTeX as an annotation, which browsers do not show but copy.
_CONVERTER = LatexToMathML(annotation=True, fancy_error=False)
#: Without annotation: for tables with hundreds of formulas.
_PLAIN = LatexToMathML(annotation=False, fancy_error=False)

#: MathML that pages must not have: inline styles, which the policy blocks; links to
#: equations, which have no numbers; elements that browsers do not support.
_REFUSED = re.compile(r"<\w[^>]*\s(?:style|href)=|<menclose")

#: Parts of a sentence that are replaced.  Tags are matched so that a dollar sign in an
#: attribute stays as it is.
_PIECES = re.compile(
    r"""
    (?P<tag> </?[A-Za-z][^>]*> )
    | \\ (?P<dollar> \$ )
    | \$ (?P<formula> (?: [^$\\] | \\. )* ) \$
    | (?P<stray> \$ )
    """,
    re.DOTALL | re.VERBOSE,
)

#: A formula with adjacent brackets and punctuation, from which no line break may part
#: it.
_CLOSED = re.compile(
    r"([(\[“„«（「『【《]*)<math\b(?:(?!</math>).)*</math>"
    r"([.,;:!?)\]…’”»，。、；：！？）」』】》]*)",
    re.DOTALL,
)

#: A formula whose text equals its LaTeX: one letter or a whole number.
_TOLD = re.compile(r"\s*(?:[A-Za-z]|\d+)\s*")

#: A formula that is only a number, which is set as text.
_NUMBER = re.compile(r"(?P<digits>\d[\d.,{}\u00a0]*)(?P<percent>(?:\\,)?\\%)?")
_BRACES = str.maketrans("", "", "{}")

#: A width with needless digits.
_LONG_SPACE = re.compile(r'"(0\.\d{3})\d+em"')

#: A root over one low letter: without padding it would cut the letter.
_LOW_ROOT = re.compile(r"<msqrt>(<mi>[acemnopqrsuvwxyz]</mi>)</msqrt>")


@lru_cache(maxsize=4096)
def math_ml(latex: str, *, quotable: bool = True) -> str:
    r"""Return a LaTeX formula as MathML text.

    With ``quotable`` the LaTeX is added as an annotation, unless the text equals it.

    Raises
    ------
    InputError
        If the formula is empty or cannot be parsed, or needs MathML that a page must
        not have: ``\color``, ``\begin{aligned}`` and ``\begin{cases}`` (styles),
        ``\eqref`` (links), ``\boxed`` and ``\cancel`` (not in MathML Core).

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
    r"""Return a text as HTML, with every ``$…$`` replaced by inline MathML.

    A formula that is only a number becomes text in a ``span``.

    Parameters
    ----------
    text : str or Markup
        A string is escaped, markup is not; ``\$`` is a dollar sign.
    rewrite : callable
        Changes the LaTeX of each formula before conversion.

    Raises
    ------
    InputError
        If a dollar sign has no partner, a formula has an unescaped ``<``, or `math_ml`
        raises.

    Examples
    --------
    >>> prose(r"It costs \$5 & more.")
    Markup('It costs $5 &amp; more.')
    """

    def replace(piece: re.Match[str]) -> str:
        """Return HTML for a matched formula, tag or escaped dollar sign.

        LaTeX is passed through ``rewrite`` first.  A formula that is a number becomes
        text.
        """
        if piece["stray"]:
            raise InputError(f"a dollar must have a partner in {str(text)!r}")
        if piece["formula"] is None:
            return piece["dollar"] or piece["tag"]
        if "<" in piece["formula"]:
            raise InputError(rf"a formula must write < as \lt in {str(text)!r}")
        latex = rewrite(html.unescape(piece["formula"]))
        number = _NUMBER.fullmatch(latex)
        if number is not None:  # in the font of measured numbers
            percent = number["percent"] or ""
            kept = percent.replace(r"\,", "\N{NO-BREAK SPACE}").replace("\\", "")
            digits = number["digits"].translate(_BRACES)
            return f"<span class=label>{digits}{kept}</span>"
        return math_ml(latex)

    found = _PIECES.sub(replace, escape(text))
    # browsers allow a line break at a formula, even beside a word joiner
    found = _CLOSED.sub(_join_punctuation, found)
    return Markup(found)  # noqa: S704 - escaped above, and math_ml escapes


def _join_punctuation(match: re.Match[str]) -> str:
    """Return a matched formula with adjacent punctuation.

    If there is any, both are in a span in which lines do not break.
    """
    signs = match[1] or match[2]
    return f'<span class="kept">{match[0]}</span>' if signs else match[0]

"""Decimal commas in figures, for languages that write them.

An SVG draws each glyph once, and a figure has no full stop that is not a decimal point,
so that one outline for another makes the other set of numbers: both are equally wide.
"""

import re

from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, FixedLocator

#: The outlines of "." and "," in DejaVu Sans, as `svg.compact` writes them.
POINT = "m684 794h660v-794h-660v794z"
COMMA = "m750 794h659v-538l-512-1000h-403l256 1000v538z"
_POINT = re.compile(r"(?<=\d)\.(?=\d)")
_OUTLINE = re.compile(rf"(?<=[\"']){POINT}(?=[\"'])")


def with_comma(svg: str) -> str:
    """Return the SVG of a figure, or its data URI, with commas for decimal points."""
    return _OUTLINE.sub(COMMA, svg)


def write_commas(figure: Figure) -> None:
    """Write commas for the decimal points of a figure that is to become any file.

    Its ticks are fixed where they are.
    """
    figure.draw_without_rendering()  # ticks are made when they are first drawn
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            places = axis.get_majorticklocs()
            labels = [label.get_text() for label in axis.get_majorticklabels()]
            if any(_POINT.search(label) for label in labels):
                axis.set_major_locator(FixedLocator(list(places)))
                axis.set_major_formatter(FixedFormatter([_comma(x) for x in labels]))
    for text in figure.findobj(Text):
        text.set_text(_comma(text.get_text()))


def _comma(text: str) -> str:
    """Exchange decimal points; in a formula braces keep a comma from a space."""
    return _POINT.sub("{,}" if "$" in text else ",", text)

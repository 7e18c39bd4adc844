"""Figures as pages embed them: SVG text in a data URI, and its size."""

import re
from dataclasses import dataclass
from urllib.parse import quote

from markupsafe import Markup

from montecarlo.report.figures.svg.decimals import with_comma

_SIZE = re.compile(r'<svg[^>]*?\bviewBox="[\d.]+ [\d.]+ ([\d.]+) ([\d.]+)"')


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure as a page embeds it."""

    id: str
    source: Markup  # data URI, ready for an attribute in double quotes
    width: int
    height: int

    @property
    def with_comma(self) -> Markup:
        """The data URI with commas for decimal points."""
        return Markup(with_comma(self.source))  # noqa: S704 - paths for paths


def make_figure(name: str, svg: str) -> Figure:
    """Wrap SVG text for a page.

    Raises
    ------
    ValueError
        If the SVG has no size.
    """
    match = _SIZE.search(svg)
    if match is None:
        raise ValueError(f"figure must have a viewBox, got {name!r} without one")
    return Figure(
        name,
        _data_uri(svg),
        round(float(match[1])),
        round(float(match[2])),
    )


def _data_uri(svg: str) -> Markup:
    """Return a data URI of an SVG, as text: a quarter smaller than in base 64.

    Double quotes become single ones, so that these, < and > need no escape.
    """
    text = " ".join(svg.replace('"', "'").split())
    uri = quote(text, safe=" '<>()/:;=,!?&+*@[]|^{}~").replace("&", "&amp;")
    return Markup(f"data:image/svg+xml,{uri}")  # noqa: S704 - quoted above

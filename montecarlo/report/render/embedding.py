"""Figures as pages embed them: SVG text in a data URI, and its size."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
from markupsafe import Markup

from montecarlo.report.figures import FigureSpec
from montecarlo.report.figures.files import on_light_ground, render_svgs
from montecarlo.study.folder import write_text

#: Calls a function for each of some arguments, as ``map`` does, on workers if there are
#: any.
Spread = Callable[..., Iterable[Any]]
_SIZE = re.compile(r'<svg[^>]*?\bviewBox="[\d.]+ [\d.]+ ([\d.]+) ([\d.]+)"')


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure as a page embeds it."""

    id: str
    source: Markup  # data URI, ready for an attribute in double quotes
    width: int
    height: int
    with_comma: Markup  # the same with commas for decimal points


#: What a figure is, and the tables that it is drawn from.
Drawing = tuple[FigureSpec, tuple[pd.DataFrame, pd.DataFrame]]


def draw_figures(
    drawings: Mapping[str, Drawing],
    folder: Path | None = None,
    spread: Spread = map,
    *,
    adaptive: bool = True,
    comma: bool = False,
) -> dict[str, Figure]:
    """Draw the figures whose tables have data for them, into a folder if there is one.

    Files that are not ``adaptive`` are light, on a ground of their own.  A page whose
    numbers have a ``comma`` needs figures with it.
    """
    figures = {}
    specs = [spec for spec, _ in drawings.values()]
    tables = zip(*(tables for _, tables in drawings.values()), strict=True)
    drawn = spread(partial(render_svgs, comma=comma), specs, *tables) if specs else ()
    for name, svgs in zip(drawings, drawn, strict=True):
        if not svgs:
            continue
        svg = svgs[0]
        if folder is not None:
            file = svg if adaptive else on_light_ground(svg)
            write_text(folder / "figures" / f"{name}.svg", file)
        figures[name] = make_figure(name, svg, svgs[-1])
    return figures


def make_figure(name: str, svg: str, with_comma: str | None = None) -> Figure:
    """Wrap SVG text for a page, and the same with decimal commas if it differs.

    Raises
    ------
    ValueError
        If the SVG has no size.
    """
    match = _SIZE.search(svg)
    if match is None:
        raise ValueError(f"figure must have a viewBox, got {name!r} without one")
    width, height = (round(float(size)) for size in match.groups())
    source = _data_uri(svg)
    same = with_comma in {None, svg}
    return Figure(
        name, source, width, height, source if same else _data_uri(with_comma or svg)
    )


def _data_uri(svg: str) -> Markup:
    """Return a data URI of an SVG, as text: a quarter smaller than in base 64.

    Double quotes become single ones, so that these, < and > need no escape.
    """
    text = " ".join(svg.replace('"', "'").split())
    uri = quote(text, safe=" '<>()/:;=,!?&+*@[]|^{}~").replace("&", "&amp;")
    return Markup(f"data:image/svg+xml,{uri}")  # noqa: S704 - quoted above

"""Figures as files for documents: SVG, PDF or PNG, for light, dark or printed pages.

A figure is drawn in the light colours; for other pages each of them is exchanged.
"""

import io
from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.collections import Collection
from matplotlib.colors import ListedColormap, to_hex, to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.typing import ColorType

from montecarlo.report.figures.drawing.decimals import write_commas
from montecarlo.report.figures.drawing.palette import (
    DARK,
    DARK_PAGE,
    GRID,
    INK,
    LIGHT_PAGE,
    MUTED,
)
from montecarlo.report.figures.drawing.panels import house_style
from montecarlo.report.figures.drawing.specs import FigureSpec
from montecarlo.report.figures.drawing.svg import compact

#: What each theme exchanges; on paper, letters are black (matplotlib does not write a
#: pure one, which is what an SVG has without being told).
THEMES: dict[str, Mapping[str, str]] = {
    "light": {},
    "dark": DARK,
    "print": {INK: "#010101", MUTED: "#505050", GRID: "#cccccc"},
}
#: What a file says of itself: neither a clock nor a version, so that bytes are equal.
_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
FORMATS = tuple(_METADATA)


def draw_files(  # noqa: PLR0913 - what, and as what
    spec: FigureSpec,
    tables: tuple[pd.DataFrame, pd.DataFrame],
    formats: Sequence[str],
    theme: str | None = None,
    *,
    dpi: int = 200,
    comma: bool = False,
) -> dict[str, bytes]:
    """Draw a figure in some formats.

    Parameters
    ----------
    spec : FigureSpec
    tables : (DataFrame, DataFrame)
        Measurements and curves.
    formats : sequence of str
        Of `FORMATS`.
    theme : str, optional
        Of `THEMES`, on a ground of its own.  By default an SVG is transparent and suits
        itself to light and dark pages; the others are light.
    dpi : int
        Pixels an inch of a PNG; a figure is 6 inches wide.
    comma : bool
        Whether numbers have commas for decimal points.

    Returns
    -------
    dict
        Format to the file's content; empty where the tables lack what it shows.
    """
    with house_style(spec.id):
        figure = spec.build(*tables)
        if figure is None:
            return {}
        if comma:
            write_commas(figure)
        files = {}
        for name in (f for f in FORMATS if f in formats):
            if name != "svg" or theme is not None:
                _repaint(figure, THEMES[theme or "light"])
            content = io.BytesIO()
            figure.savefig(
                content,
                format=name,
                dpi=dpi,
                facecolor="auto",
                metadata=_METADATA[name],
            )
            files[name] = content.getvalue()
    if "svg" in files:
        files["svg"] = compact(files["svg"].decode(), dark=theme is None).encode()
    return files


def _repaint(figure: Figure, colours: Mapping[str, str]) -> None:
    """Exchange colours, and put the colour of the page behind the figure.

    A figure can be repainted once: afterwards it has other colours.
    """
    figure.draw_without_rendering()  # ticks are made when they are first drawn
    for artist in figure.findobj():
        if isinstance(artist, Line2D):
            artist.set_color(_exchange(artist.get_color(), colours))
            for part in ("markerfacecolor", "markeredgecolor"):
                colour = getattr(artist, f"get_{part}")()
                getattr(artist, f"set_{part}")(_exchange(colour, colours))
        elif isinstance(artist, Patch):
            _repaint_patch(artist, colours)
        elif isinstance(artist, Collection):
            _repaint_collection(artist, colours)
        elif isinstance(artist, Text):
            artist.set_color(_exchange(artist.get_color(), colours))
            if ground := artist.get_bbox_patch():
                _repaint_patch(ground, colours)
    figure.patch.set_facecolor(DARK_PAGE if colours is DARK else LIGHT_PAGE)
    figure.patch.set_alpha(1.0)


def _repaint_patch(patch: Patch, colours: Mapping[str, str]) -> None:
    alpha = patch.get_alpha()
    face, edge = to_rgba(patch.get_facecolor()), to_rgba(patch.get_edgecolor())
    if face[3] > 0.0:
        patch.set_facecolor(_exchange(face, colours))
    if edge[3] > 0.0:
        patch.set_edgecolor(_exchange(edge, colours))
    patch.set_alpha(alpha)


def _repaint_collection(drawn: Collection, colours: Mapping[str, str]) -> None:
    if drawn.get_array() is not None:  # a bar of colours
        shades = drawn.get_cmap()(range(drawn.get_cmap().N))
        drawn.set_cmap(ListedColormap([_exchange(s, colours) for s in shades]))
        return
    alpha = drawn.get_alpha()
    for name in ("facecolor", "edgecolor"):
        painted = [_exchange(c, colours) for c in getattr(drawn, f"get_{name}")()]
        if painted:
            getattr(drawn, f"set_{name}")(painted)
    drawn.set_alpha(alpha)


def _exchange(colour: ColorType, colours: Mapping[str, str]) -> ColorType:
    """Return the counterpart of a colour, as opaque as it is."""
    if isinstance(colour, str) and colour in {"none", "auto"}:
        return colour
    *own, opacity = to_rgba(colour)
    found = to_hex((own[0], own[1], own[2]))
    return (*to_rgb(colours.get(found, found)), opacity)

"""The figure of sampled attention weights, undivided and divided by sqrt(d_k)."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from montecarlo.report.content.curves import EXAMPLE, EXAMPLE_DIVISORS, CurveTables
from montecarlo.report.figures.drawing import Key, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import DIVISOR_LOOKS, INK, SHADES, Look
from montecarlo.report.figures.specs import Fact, FigureSpec

if TYPE_CHECKING:  # slow to import
    from matplotlib.axes import Axes

Weights = NDArray[np.float64]
#: (number of a shade, its cells); a cell is (line, first key, key after the last).
Shaded = tuple[int, list[tuple[int, int, int]]]
#: Weights at the limits of the shades.  They are cubes, since most weights are small:
#: on a linear scale a weight of 1/128 would have the shade of 0.
LEVELS = np.linspace(0.0, 1.0, len(SHADES) + 1) ** 3
#: Weight in the middle of the scale of shades.
MIDDLE = 0.5**3
#: Height of a query's line as a part of the distance between lines.
LINE = 0.88


def example_weights(curves: CurveTables) -> Iterator[tuple[str, Weights]]:
    """Yield (divisor, sampled weights under it); weights are (n_queries, n_keys)."""
    rows = curves[EXAMPLE].sort_values("weight_number")
    for divisor in EXAMPLE_DIVISORS:
        mine = rows[rows["divisor"].eq(divisor)]
        if not mine.empty:
            n_keys = int(mine["n_keys"].iloc[0])
            yield divisor, mine["weight"].to_numpy(np.float64).reshape(-1, n_keys)


def shaded_cells(weights: Weights) -> Iterator[Shaded]:
    """Yield (shade, list of cells with this shade); a shade is an index into `SHADES`.

    A cell is (query, first key, key after the last): adjacent keys of one shade.
    """
    shade = np.minimum(np.searchsorted(LEVELS, weights, "right") - 1, len(SHADES) - 1)
    line, first = np.nonzero(np.diff(shade, axis=1, prepend=-1))
    end = np.nonzero(np.diff(shade, axis=1, append=-1))[1] + 1
    for one in np.unique(shade).tolist():
        mine = shade[line, first] == one
        cells = zip(*(part[mine].tolist() for part in (line, first, end)), strict=True)
        yield one, list(cells)


def map_paths(curves: CurveTables) -> dict[str, list[tuple[float, str]]]:
    """Return SVG paths of the map of sampled weights: divisor -> list of paths.

    A path is (darkness of its colour from 0 to 1, commands).  The first path has 0 and
    covers all cells.  A key is 1 wide.  A query is a line of width 1, whose middle is
    at the number of the query.
    """
    maps = {}
    for name, weights in example_weights(curves):
        n_queries, n_keys = weights.shape
        ground = [(line, 0, n_keys) for line in range(n_queries)]
        shades = {**dict(shaded_cells(weights)), 0: ground}
        maps[name] = [
            (round(shade / (len(SHADES) - 1), 2), _line_path(cells))
            for shade, cells in sorted(shades.items())
        ]
    return maps


def _line_path(cells: Iterable[tuple[int, int, int]]) -> str:
    """Return the commands of an SVG path that draws ``cells``: ``M0 3h12M40 5h1``.

    Cells are those of `shaded_cells`, of one shade.
    """
    return "".join(f"M{first} {line}h{end - first}" for line, first, end in cells)


def build_attention(_: DataFrame, curves: CurveTables) -> Picture | None:
    """Return the figure of the sampled weights: a map, with a panel for each divisor.

    None if the tables lack the data.
    """
    drawn = list(example_weights(curves))
    if len(drawn) < len(EXAMPLE_DIVISORS):
        return None
    picture = Picture((1,) * len(EXAMPLE_DIVISORS), (90.0,) * len(EXAMPLE_DIVISORS))
    marks = [rf"{100.0 * weight:g}\,\%" for weight in (0.0, MIDDLE, 1.0)]
    weight = Label(message("weight of a key"))
    picture.keys.append(Key(weight, Look(INK, ""), "shades", marks))
    for panel, (divisor, weights) in zip(picture.panels, drawn, strict=True):
        plot_weights(panel.axes, weights)
        panel.title = DIVISOR_LOOKS[divisor].label
    return picture


def plot_weights(axes: "Axes", weights: Weights) -> None:
    """Draw weights, shape (n_queries, n_keys), as shaded cells, first query on top."""
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path as Outline

    n_queries, n_keys = weights.shape
    for shade, cells in shaded_cells(weights):
        corners = [
            [(first, y), (end, y), (end, y + LINE), (first, y + LINE)]
            for y, first, end in cells
        ]
        path = Outline.make_compound_path_from_polys(np.array(corners, dtype=float))
        axes.add_collection(
            PathCollection([path], facecolors=[SHADES[shade]], linewidths=0.0),
            autolim=False,
        )
    axes.grid(visible=False)
    axes.set(xlim=(0, n_keys), ylim=(n_queries, 0), xticks=(), yticks=())


def pick_attention(_: DataFrame, curves: CurveTables) -> Fact | None:
    """Return the numbers of the caption by name: mean largest weights in per cent.

    ``first`` is undivided and ``second`` divided, both over the sampled queries.  Sizes
    of the sample are ``n_queries``, ``n`` (keys), ``d_k`` and ``root``, sqrt(d_k).
    Errors, such as ``first_error``, only set the digits.  None if there are no data.
    """
    drawn = [weights for _, weights in example_weights(curves)]
    if len(drawn) < len(EXAMPLE_DIVISORS):
        return None
    first, second = (float(100.0 * one.max(axis=1).mean()) for one in drawn)
    n_queries, n_keys = drawn[0].shape
    d_k = float(curves[EXAMPLE]["d_k"].iloc[0])
    return {
        "first": first,
        "first_error": 1.0,  # not a standard error: shows one decimal
        "second": second,
        "second_error": 1.0,
        "n_queries": float(n_queries),
        "n": float(n_keys),
        "d_k": d_k,
        "root": d_k**0.5,
    }


ATTENTION = FigureSpec(
    "attention",
    build_attention,
    # beside the opening of a report
    shows="weights as drawn, undivided and divided",
    caption=message(
        "%(n_queries)s queries (lines) and %(n)s keys (columns), the same draw at "
        "$d_k$ = %(d_k)s; independent Gaussian entries."
    ),
    alternative=message(
        "Of %(n_queries)s queries the largest of %(n)s weights is %(first)s %% on "
        "average undivided, and %(second)s %% divided by √d_k."
    ),
    fact=pick_attention,
)

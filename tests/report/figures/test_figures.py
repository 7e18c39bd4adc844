import math
import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from montecarlo.report.content.curves import JACOBIAN_ROWS
from montecarlo.report.content.tables import with_interval
from montecarlo.report.figures import FIGURES, by_dimension, formats
from montecarlo.report.figures.attention import (
    build_attention,
    example_weights,
    map_paths,
    plot_weights,
)
from montecarlo.report.figures.by_dimension import VARIANCE_DIVISORS, build_variance
from montecarlo.report.figures.drawing import Picture, house_style, plot_estimates
from montecarlo.report.figures.files import draw
from montecarlo.report.figures.palette import (
    DIVISOR_LOOKS,
    LIGHT,
    PAGE,
    SHADES,
)
from montecarlo.report.figures.specs import FigureSpec
from montecarlo.report.figures.verdicts import ANSWERED as TEXTS_ANSWERED
from montecarlo.report.figures.verdicts import ASKED as TEXTS_ASKED
from montecarlo.report.figures.verdicts import CURVE
from montecarlo.report.language.catalogues import read_language
from tests.report.figures.conftest import measured

SHADE_OF = {LIGHT[shade]: shade for shade in SHADES}


def numbers_drawn(axes: Axes, colour: str) -> list[tuple[float, float]]:
    """Places of all marks of a colour, in order."""
    return sorted(
        (float(x), float(y))
        for line in axes.get_lines()
        if line.get_color() == colour and line.get_marker() not in {"None", None, ""}
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    )


def bars_drawn(axes: Axes) -> list[tuple[float, float]]:
    """Lower and upper ends of all error bars, in order."""
    return sorted(
        (float(segment[0, 1]), float(segment[1, 1]))
        for bars in axes.containers
        for segment in bars.lines[2][0].get_segments()
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_same_results_give_same_bytes(svgs, tables, name):
    """From the results alone: not an earlier figure, a style or an order."""
    assert svgs[name]
    measurements, curves = tables[name]
    turned = measurements.iloc[::-1].reset_index(drop=True)
    with mpl.rc_context({"lines.linewidth": 9.0, "font.size": 30.0, "axes.grid": True}):
        drawing = draw(FIGURES[name], turned, curves)
        assert drawing.svg_in(read_language("en")) == svgs[name]


def joined(picture: Picture) -> set[tuple[float, float]]:
    """The x of both ends of each piece of a line of estimates; a point's twice."""
    pieces = set()
    for one in picture.panels:
        for line in one.axes.get_lines():
            upright = line.get_xdata()[0] == line.get_xdata()[-1]
            if upright or line.get_linestyle() == "None":
                continue
            x, y = (np.asarray(v, float) for v in line.get_data())
            pieces |= {
                (a, a) for a, known in zip(x, np.isfinite(y), strict=True) if known
            }
            both = np.isfinite(y[:-1]) & np.isfinite(y[1:])
            pieces |= set(zip(x[:-1][both], x[1:][both], strict=True))
    return pieces


@pytest.mark.parametrize("unknown", ["none", "unbounded"])
def test_no_line_through_a_point_that_is_not_known(tables, unknown):
    """Where there is no estimate, or an interval without bounds, a line ends."""
    table, curves = tables["weights"]
    with house_style():
        assert {(16, 64), (64, 256)} <= joined(FIGURES["weights"].build(table, curves))

    table = table.copy()
    at = table["d_k"].eq(64)
    table.loc[at, "reference"] = np.nan  # an exact line needs no estimate
    if unknown == "unbounded":
        table.loc[at, ["ci_low", "ci_high"]] = -np.inf, np.inf
    else:
        values = ["estimate", "std_error", "reference", "ci_low", "ci_high"]
        table.loc[at, values] = np.nan
    with house_style():
        pieces = joined(FIGURES["weights"].build(table, curves))
    assert (256, 256) in pieces
    assert not any(low <= 64 <= high for low, high in pieces)


def test_a_point_without_bounds_is_drawn_open(tables):
    """An estimate whose interval is unbounded is an open mark, with a dotted line."""
    rows = tables["weights"][0]
    rows = rows[rows["quantity"].eq("saturated") & rows["divisor"].eq("none")]
    at = rows["d_k"].eq(16)
    axes = Figure().subplots()
    look = DIVISOR_LOOKS["none"]
    table = rows.assign(ci_high=rows["ci_high"].mask(at, np.inf))
    plot_estimates(axes, table, look)
    (open_mark,) = (
        line for line in axes.get_lines() if line.get_markerfacecolor() == PAGE
    )
    assert open_mark.get_xdata().tolist() == [16]
    assert open_mark.get_ydata().tolist() == rows.loc[at, "estimate"].tolist()
    assert any(list(line.get_xdata()) == [16, 16] for line in axes.get_lines())


@pytest.mark.parametrize("name", FIGURES)
def test_missing_data_give_no_figure(tables, name):
    """Without its rows a figure is left out; no error, no empty axes."""
    measurements, curves = tables[name]
    nothing = {kind: lines.iloc[:0] for kind, lines in curves.items()}
    assert FIGURES[name].build(measurements.iloc[:0], nothing) is None
    spec = FigureSpec(name, FIGURES[name].build)
    assert draw(spec, measurements.iloc[:0], nothing) is None


def test_variance_draws_what_the_table_says(tables):
    """Marks of the variance are the estimates with their intervals, lines are exact;
    the headline has the answer only where every estimate is near its exact value.
    """
    rows = with_interval(tables["variance"][0])
    picture = build_variance(rows, {})
    (drawn,) = picture.panels
    for divisor in VARIANCE_DIVISORS:
        mine = rows[rows["divisor"].eq(divisor)].sort_values("d_k")
        assert numbers_drawn(drawn.axes, DIVISOR_LOOKS[divisor].colour) == sorted(
            zip(mine["d_k"], mine["estimate"], strict=True)
        )
        lines = [list(line.get_ydata()) for line in drawn.axes.get_lines()]
        assert mine["reference"].tolist() in lines
    ends = zip(rows["ci_low"], rows["ci_high"], strict=True)
    assert np.allclose(bars_drawn(drawn.axes), sorted(ends))
    near = rows.assign(estimate=1.01 * rows["reference"])
    far = rows.assign(estimate=1.1 * rows["reference"])
    titles = [build_variance(one, {}).headline.words for one in (near, far)]
    assert titles == [by_dimension.VARIANCE_ANSWERED, by_dimension.VARIANCE_ASKED]


def test_weights_are_said_of_sizes_that_were_measured(tables):
    """The headline has its answer from d_k = 64 on, and none without such sizes."""
    rows, curves = tables["weights"]
    few = rows[rows["d_k"].lt(by_dimension.TYPICAL_D_K)]
    titles = [by_dimension.build_weights(one, curves).headline for one in (rows, few)]
    answers = [by_dimension.WEIGHTS_ANSWERED, by_dimension.WEIGHTS_ASKED]
    assert [title.words for title in titles] == answers


def passed_on(cells):
    """Rows of what softmax passes on."""
    return measured(
        cells,
        quantity="gradient_query_undivided",
        summary="median",
        divisor="none/sqrt",
        std_error=0.1,
    )


FALLING = {(64, 128): 0.9, (256, 128): 0.2, (64, 1024): 3.0, (256, 1024): 0.8}


@pytest.mark.parametrize(
    ("changed", "title"),
    [
        ({}, by_dimension.PASSED_ON_ANSWERED),
        ({(256, 128): 0.95}, by_dimension.PASSED_ON_ASKED),  # rises with d_k
        ({(64, 1024): 0.85}, by_dimension.PASSED_ON_ASKED),  # falls with n
        (
            {place: 10.0 * ratio for place, ratio in FALLING.items()},
            by_dimension.PASSED_ON_ASKED,
        ),
    ],
)
def test_gradients_fade_where_the_headline_says_so(changed, title):
    """A line for each n, named at its end; the answer only where ratios fall with d_k,
    come below 1 and rise with n.
    """
    cells = FALLING | changed
    picture = FIGURES["gradients"].build(passed_on(cells), {})
    assert picture.headline.words == title
    (drawn,) = picture.panels
    names = {note.label.symbol: (note.x, note.y) for note in drawn.notes[:2]}
    assert names == {str(n): (256, by_dimension.passed_on(256, n)) for n in (128, 1024)}
    assert any(list(line.get_ydata()) == [1.0, 1.0] for line in drawn.axes.get_lines())


def test_jacobians_have_all_rows():
    """Bars have those that pass less than the axis shows in the first."""
    curve = pd.DataFrame(
        {
            "n_keys": 32,
            "divisor": "none",
            "jacobian_frobenius": [1e-5, 0.1, 0.4, 0.5],
            "share_of_rows": [0.1, 0.2, 0.6, 1.0],
        }
    )
    picture = FIGURES["jacobians"].build(pd.DataFrame(), {JACOBIAN_ROWS: curve})
    (drawn,) = picture.panels
    bars, *_ = drawn.axes.patches[0].get_data()
    assert bars.sum() == pytest.approx(1.0)
    assert bars[0] > 0.1


@pytest.mark.parametrize(
    ("name", "divisor", "share", "title"),
    [
        ("float16", "none", 1.0, formats.ANSWERED),
        ("float16", "none", 0.5, formats.ASKED),
        ("float32", "none", 1.0, formats.ASKED),
        ("float16", "sqrt", 1.0, formats.ASKED),
    ],
)
def test_formats_overflow_where_the_headline_says_so(name, divisor, share, title):
    """Two bars of the shares of rows; the answer only where one is full and nothing
    else overflows, of which a sentence says it.
    """
    rows = [
        measured(
            {(64, 128): one},
            quantity="format_overflow",
            divisor=by,
            number_format=which,
            softmax=way,
            row_id=f"{which} {by} {way}",
        )
        for which in ("float16", "float32")
        for by in ("none", "sqrt")
        for way in ("naive", "shifted")
        for one in [share if (which, by, way) == (name, divisor, "naive") else 0.0]
    ]
    picture = FIGURES["formats"].build(pd.concat(rows), {})
    assert picture.headline.words == title
    (drawn,) = picture.panels
    full = share if (name, divisor) == ("float16", "none") else 0.0
    assert [bar.get_width() for bar in drawn.axes.patches] == [full, 0.0]
    said = formats.ELSEWHERE in [note.label for note in drawn.notes]
    assert said == ((name, divisor) == ("float16", "none"))


@pytest.mark.parametrize(
    ("outcomes", "title"),
    [
        ("sssssttdd" + "ddr", TEXTS_ANSWERED),
        ("sssssstdd" + "ddd", TEXTS_ASKED),  # none wrong
        ("ssssttddd" + "rrr", TEXTS_ASKED),  # many wrong
        ("ssssssssss" + "dr", TEXTS_ASKED),  # mostly right
    ],
)
def test_texts_say_how_their_claims_came_out(outcomes, title):
    """Bars of a text are the shares of its claims; the title has the answer only where
    few are wrong and about half are neither right nor wrong.
    """
    verdicts = {"s": "holds", "t": "partly", "d": "vague", "r": "fails"}
    rows = [
        {"text": text, "name": text, "outcome": verdicts[one]}
        for text, these in (("a", "sd" * 6), ("b", outcomes))
        for one in these
    ]
    curves = {CURVE: pd.DataFrame(rows)}
    picture = FIGURES["texts"].build(pd.DataFrame(), curves)
    assert picture.headline.words == title
    (panel,) = picture.panels
    # a verdict that no claim has takes no place
    counts = [outcomes.count(one) for one in "stdr" if one in "sd" + outcomes]
    first = int(len(set(outcomes)) == 2)  # that with most kinds of verdicts, first
    shown = [bar for bar in panel.axes.patches if round(bar.get_y() + 0.2) == first]
    widths = [bar.get_width() for bar in shown]
    assert widths == pytest.approx([count / 12 for count in counts])
    ends = [bar.get_x() + bar.get_width() for bar in shown]
    assert [0.0, *ends[:-1]] == pytest.approx([bar.get_x() for bar in shown])
    assert ends[-1] == pytest.approx(1.0)


def shades_of(weights):
    """The shade of each weight, from 0 to 9."""
    return np.floor(10.0 * np.cbrt(weights))


def test_maps_of_pages_have_the_same_shades(results):
    """Cells of a path are those whose weight has its part of the darkest shade."""
    for name, weights in example_weights(results[1]):
        seen = np.full(weights.shape, -1.0)
        for part, path in map_paths(results[1])[name]:
            cells = re.findall(r"M(\d+) (\d+)h(\d+)", path)
            assert "".join("M{} {}h{}".format(*one) for one in cells) == path
            for first, line, width in cells:
                seen[int(line), int(first) : int(first) + int(width)] = 9.0 * part
        assert np.abs(seen - shades_of(weights)).max() < 0.05


def test_attention_draws_the_weights_of_the_example(results):
    """Each cell has the shade of its weight; the scale's steps are cubes."""
    weights = dict(example_weights(results[1]))
    assert set(weights) == {"none", "sqrt"}
    for one in weights.values():
        assert one.shape == (10, 128)
        assert np.allclose(one.sum(axis=1), 1.0)
        axes = Figure().subplots()
        plot_weights(axes, one)
        seen = np.zeros(one.shape)
        for patches in axes.collections:
            (shade,), (path,) = patches.get_facecolor(), patches.get_paths()
            for polygon in path.to_polygons():
                (left, low), (right, high) = polygon.min(axis=0), polygon.max(axis=0)
                cells = np.s_[int(low) : math.ceil(high), int(left) : int(right)]
                seen[cells] = SHADES.index(SHADE_OF[to_hex(shade)])
        assert (seen == shades_of(one)).all()
    assert weights["none"].max(axis=1).mean() > 2.0 * weights["sqrt"].max(axis=1).mean()
    marks = build_attention(None, results[1]).keys[0].marks
    assert marks == [r"0\,\%", r"12.5\,\%", r"100\,\%"]

import re
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from montecarlo.report.content.tables.rows import (
    gaussian_rows,
    key_counts,
    largest_scores,
    nearest,
    plain_rows,
    saturation_cells,
)
from montecarlo.report.figures import FIGURES, FigureSpec, render_svg
from montecarlo.report.figures.attention import (
    example_weights,
    plot_saturated,
    plot_weights,
    saturated_rows,
)
from montecarlo.report.figures.drawing import house_style
from montecarlo.report.figures.gradients import plot_gradient_ratio
from montecarlo.report.figures.maps import percent, plot_saturation
from montecarlo.report.figures.palette import DIVISOR_LOOKS, LIGHT, MUTED, SHADES
from montecarlo.report.figures.scores import (
    plot_largest_score,
    plot_relative_largest_score,
    plot_relative_variance,
    plot_variance,
)
from montecarlo.report.figures.verdicts import plot_outcomes, plot_z_scores
from montecarlo.report.figures.weights import plot_effective_keys, plot_weights_by_rank

#: Letters that stand for a quantity, and functions with longer names.
SYMBOLS = {"Var", "tr", "max", "cosh", "E", "H", "F", "J", "K", "N", "P", "Q", "ij"}
SYMBOLS |= set("LTWgacdeijkmnpqrstuvxz")
SHADE_OF = {LIGHT[shade]: shade for shade in SHADES}


def texts_of(figure: Figure) -> list[str]:
    """Every text that stands in a figure that was drawn."""
    found = (text.get_text() for text in figure.findobj(Text))
    return [text for text in found if text.strip()]


def words_in(text: str) -> set[str]:
    """Letters of a text that are no symbol, whether inside or outside formulas."""
    named = re.sub(r"\\(mathrm|operatorname|mathdefault|mathcal)\b", "", text)
    named = re.sub(r"\\(max)\b", r"\1", named)
    named = re.sub(r"\\[a-zA-Z]+", " ", named)  # \sqrt, \lambda: a sign
    letters = re.findall(r"[^\W\d_]+", named)
    if text.startswith("(") and len(text) == 3:  # the letter of a panel
        return set()
    return {word for word in letters if word not in SYMBOLS} - {"Jv", "KJv"}


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
def test_same_results_give_same_bytes(svgs, results, name):
    """A figure is drawn, and from the results alone: not an earlier figure, the style,
    or the order of measurements.
    """
    assert svgs[name]
    assert FIGURES[name].id == name
    measurements, curves = results
    turned = measurements.iloc[::-1].reset_index(drop=True)
    with mpl.rc_context({"lines.linewidth": 9.0, "font.size": 30.0, "axes.grid": True}):
        assert render_svg(FIGURES[name], turned, curves) == svgs[name]


#: Figures that join estimates against d_k, down to the least of the small study.
JOINED = ("effective-keys", "weight-max", "gradients", "gradient-ratio", "planted")


def joined(figure: Figure) -> set[tuple[float, float]]:
    """The x of both ends of each piece of a line of estimates; a point's twice."""
    pieces = set()
    for axes in figure.axes:
        for line in axes.get_lines():
            if line.get_color() == MUTED or line.get_linestyle() == "None":
                continue
            x, y = (np.asarray(v, float) for v in line.get_data())
            pieces |= {
                (a, a) for a, known in zip(x, np.isfinite(y), strict=True) if known
            }
            both = np.isfinite(y[:-1]) & np.isfinite(y[1:])
            pieces |= set(zip(x[:-1][both], x[1:][both], strict=True))
    return pieces


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("unknown", ["unbounded", "none"])
def test_no_line_through_a_point_that_is_not_known(results, name, unknown):
    """Where there is no estimate, or an interval without bounds, a line ends."""
    measurements, curves = results
    planted = measurements["dependence"].str.startswith("planted")
    further = measurements[planted & measurements["d_k"].eq(16)].assign(d_k=4)
    table = pd.concat([measurements, further], ignore_index=True)
    with house_style():
        assert {(4, 16), (16, 64)} <= joined(FIGURES[name].build(table, curves))

    at = table["d_k"].eq(16)
    if unknown == "unbounded":
        table.loc[at, ["ci_low", "ci_high"]] = -np.inf, np.inf
    else:
        values = ["estimate", "std_error", "reference", "ci_low", "ci_high"]
        table.loc[at, values] = np.nan
    with house_style():
        pieces = joined(FIGURES[name].build(table, curves))
    assert (4, 4) in pieces
    assert not any(low <= 16 <= high for low, high in pieces)


@pytest.mark.parametrize("name", FIGURES)
def test_figure_holds_no_word(laid_out, name):
    """Axes, legends and titles carry symbols and numbers only."""
    texts = texts_of(laid_out(name))
    assert texts
    assert {text: words_in(text) for text in texts if words_in(text)} == {}


@pytest.mark.parametrize(
    "text", ["scaled", "$\\mathrm{mean}$", "variance of $d_k$", "(ab)", "重み", "é"]
)
def test_words_are_found(text):
    """The search for words finds them (a negative control)."""
    assert words_in(text)


@pytest.mark.parametrize("name", FIGURES)
def test_missing_data_give_no_figure(results, name):
    """Without its rows a figure is left out; no error, no empty axes."""
    measurements, curves = results
    assert FIGURES[name].build(measurements.iloc[:0], curves.iloc[:0]) is None
    other = measurements[measurements["quantity"].eq("entry_variance_q")]
    assert FIGURES[name].build(other.iloc[:3], curves.iloc[:0]) is None
    spec = FigureSpec(name, FIGURES[name].build)
    assert render_svg(spec, measurements.iloc[:0], curves.iloc[:0]) is None


def test_global_style_is_left_alone(results):
    """Rendering changes no global setting."""
    mpl.get_backend()  # chosen when first asked for, which is not a style
    before = mpl.rcParams.copy()
    render_svg(FIGURES["z-scores"], *results)
    assert mpl.rcParams == before


def test_variance_draws_what_the_table_says(results):
    """Points of the variance are the estimates, the line the exact values."""
    rows = plain_rows(results[0], quantity="score_variance")
    rows = rows[rows["ci_low"].notna()]
    axes = plot_variance(Figure().subplots(), rows)
    for divisor, look in DIVISOR_LOOKS.items():
        mine = rows[rows["divisor"].eq(divisor)]
        assert numbers_drawn(axes, look.colour) == sorted(
            zip(mine["d_k"], mine["estimate"], strict=True)
        )
    gaussian = rows[rows["distribution_q"].eq("gaussian")]
    assert np.allclose(
        bars_drawn(axes),
        sorted(zip(gaussian["ci_low"], gaussian["ci_high"], strict=True)),
    )
    raw = gaussian[gaussian["divisor"].eq("none")]
    lines = [list(line.get_ydata()) for line in axes.get_lines()]
    assert raw["reference"].tolist() in lines


def test_relative_variance_is_estimate_over_reference(results):
    """The lower panel shows Gaussian estimates over their exact values, in place."""
    rows = plain_rows(results[0], quantity="score_variance")
    rows = rows[rows["ci_low"].notna()]
    axes = plot_relative_variance(Figure().subplots(), rows)
    raw = rows.query("divisor == 'none' and distribution_q == 'gaussian'")
    drawn = axes.containers[0].lines[0]
    assert list(drawn.get_xdata()) == raw["d_k"].tolist()
    assert list(drawn.get_ydata()) == (raw["estimate"] / raw["reference"]).tolist()


def test_distribution_without_variance_of_its_estimate_is_not_drawn(laid_out):
    """An estimate without a valid interval, as that of t3, is left out."""
    texts = texts_of(laid_out("variance"))
    assert not any("t_{3}" in text for text in texts)
    assert any("e^{-|x|}" in text for text in texts)


def test_effective_keys_are_drawn_as_part_of_n(results):
    """Points are estimates over n; the dashed line stands at 2 ln n."""
    rows = gaussian_rows(results[0], quantity="effective_keys", summary="mean")
    rows = rows[rows["n_keys"].eq(32)]
    axes = plot_effective_keys(Figure().subplots(), rows)
    mine = rows[rows["divisor"].eq("none")]
    assert numbers_drawn(axes, DIVISOR_LOOKS["none"].colour) == sorted(
        zip(mine["d_k"], mine["estimate"] / 32, strict=True)
    )
    assert any(
        list(line.get_xdata()) == [2.0 * np.log(32.0)] * 2 for line in axes.get_lines()
    )


def test_weights_by_rank_draw_the_curve(results):
    """Points of the weights are the rows of the curve; the line is at 1/n."""
    rows = gaussian_rows(results[1], curve="weight_by_rank", n_keys=32, d_k=16)
    axes = plot_weights_by_rank(Figure().subplots(), rows)
    mine = rows[rows["divisor"].eq("sqrt")]
    assert numbers_drawn(axes, DIVISOR_LOOKS["sqrt"].colour) == sorted(
        zip(mine["x"], mine["estimate"], strict=True)
    )
    assert any(list(line.get_ydata()) == [1 / 32] * 2 for line in axes.get_lines())


def measured(cells: dict[tuple[int, int], float], **values) -> pd.DataFrame:
    """Rows of measurements.csv of Gaussian rows: (d_k, n) to estimate."""
    plain = {
        "distribution_q": "gaussian",
        "distribution_k": "gaussian",
        "dependence": "none",
    }
    plain |= {"initialisation": None, "number_format": "float64", "softmax": "shifted"}
    return pd.DataFrame(
        {
            **plain,
            **values,
            "d_k": d_k,
            "n_keys": n_keys,
            "estimate": estimate,
            "ci_low": 0.99 * estimate,
            "ci_high": 1.01 * estimate,
            "reference": estimate,
        }
        for (d_k, n_keys), estimate in cells.items()
    )


def cells_drawn(axes: Axes) -> dict[tuple[float, float, float, float], str]:
    """Shade of each cell of a map, by its left, right, lower and upper end."""
    (cells,) = axes.collections
    shades = [SHADE_OF[to_hex(colour)] for colour in cells.get_facecolor()]
    found = {}
    for shade, path in zip(shades, cells.get_paths(), strict=True):
        for polygon in path.to_polygons():
            ends = polygon.min(axis=0), polygon.max(axis=0)
            found[ends[0][0], ends[1][0], ends[0][1], ends[1][1]] = shade
    return found


def test_saturation_draws_what_the_table_says(results):
    """Each cell has the number and the shade of its estimate, at its d_k and n."""
    cells = saturation_cells(results[0])
    assert set(cells["divisor"]) == {"none", "sqrt"}
    for divisor in ("none", "sqrt"):
        table = cells[cells["divisor"].eq(divisor)]
        axes = plot_saturation(Figure().subplots(), table, limit=divisor == "none")
        numbers = {text.get_position(): text.get_text() for text in axes.texts}
        shades = cells_drawn(axes)
        assert len(numbers) == len(shades) == len(table) == 6
        for row in table.itertuples():
            assert numbers[row.d_k, row.n_keys] == f"{100.0 * row.estimate:.0f}"
            (shade,) = (
                shade
                for (left, right, low, high), shade in shades.items()
                if left < row.d_k < right and low < row.n_keys < high
            )
            assert shade == SHADES[int(10.0 * row.estimate)]


def test_combination_that_was_not_measured_stays_empty():
    """A cell is as wide as the nearest sizes are apart, and no cell fills a gap."""
    sizes = [(1, 8), (16, 8), (64, 8), (1, 32), (64, 32)]
    table = measured(dict.fromkeys(sizes, 0.5))
    axes = plot_saturation(Figure().subplots(), table, limit=False)
    wanted = {(d_k / 2.0, d_k * 2.0, n / 2.0, n * 2.0): SHADES[5] for d_k, n in sizes}
    found = cells_drawn(axes)
    assert np.allclose(sorted(found), sorted(wanted))
    assert set(found.values()) == {SHADES[5]}


def test_limit_is_drawn_where_it_is_a_limit(results):
    """The line is at 2 ln n over unscaled rows; scaled ones have none.

    Below n = 1, 2 ln n has no place on a logarithmic axis.
    """
    table = saturation_cells(results[0]).query("divisor == 'none'")
    lines = plot_saturation(Figure().subplots(), table, limit=True).get_lines()
    assert len(lines) == 2  # one of them clears the way
    for line in lines:
        n = np.asarray(line.get_ydata())
        assert n.min() < 16.0
        assert n.max() > 32.0
        assert np.allclose(line.get_xdata(), 2.0 * np.log(n))
    assert not plot_saturation(Figure().subplots(), table, limit=False).get_lines()
    sizes = {(d_k, n): 0.5 for d_k in (1, 16) for n in (2, 32)}
    axes = plot_saturation(Figure().subplots(), measured(sizes), limit=True)
    assert axes.get_ylim()[0] < 1.0
    for line in axes.get_lines():
        assert (np.asarray(line.get_xdata()) > 0.0).all()


def test_limit_clears_the_numbers_that_it_runs_through():
    """Behind a number near the line lies its shade; other numbers need none."""
    sizes = {(d_k, n): 0.5 for d_k in (4, 8, 64) for n in (8, 32)}
    axes = plot_saturation(Figure().subplots(), measured(sizes), limit=True)
    backed = {t.get_position() for t in axes.texts if t.get_bbox_patch()}
    assert backed == {(4, 8), (8, 32)}  # 2 ln n is 4.2 and 6.9


def test_cell_far_off_is_left_out_of_the_map():
    """An edge of the grid has no line of its own in the map."""
    grid = {(d_k, n): 0.5 for d_k in (4, 16, 64, 256) for n in (8, 32, 128)}
    edges = {(4096, 32): 0.5, (64, 2048): 0.5}
    table = measured(
        grid | edges, quantity="weight_max", summary="mean", divisor="none"
    )
    kept = saturation_cells(table)
    assert set(zip(kept["d_k"], kept["n_keys"], strict=True)) == set(grid)


@pytest.mark.parametrize(
    "sizes",
    [
        [(4, 8), (16, 8), (64, 8)],
        [(16, 8), (16, 32)],
        [(4, 8), (16, 32)],
        [(4, 8), (16, 8), (16, 32), (64, 32)],
    ],
)
def test_line_of_cells_is_no_map(sizes):
    """A map needs several d_k and several n; of a staircase nothing is left."""
    row = {"quantity": "weight_max", "summary": "mean", "divisor": "none"}
    assert saturation_cells(measured(dict.fromkeys(sizes, 0.5), **row)).empty


@pytest.mark.parametrize(
    ("part", "written"),
    [(0.0021, "0.2"), (0.0095, "1"), (0.305, "30"), (0.994, "99"), (0.9961, "99.6")],
)
def test_percentage_is_whole_but_neither_0_nor_100(part, written):
    """What is neither nothing nor all is not written so."""
    assert percent(part) == written


def test_largest_score_draws_what_the_table_says(results):
    """Points and bars are the rows, the grey line their exact values."""
    rows = largest_scores(results[0])
    assert rows["n_keys"].tolist() == [16, 32, 128]
    assert set(rows["d_k"]) == {64}
    assert set(rows["divisor"]) == {"sqrt"}
    axes = plot_largest_score(Figure().subplots(), rows)
    colour = DIVISOR_LOOKS["sqrt"].colour
    assert numbers_drawn(axes, colour) == sorted(
        zip(rows["n_keys"], rows["estimate"], strict=True)
    )
    assert np.allclose(
        bars_drawn(axes), sorted(zip(rows["ci_low"], rows["ci_high"], strict=True))
    )
    exact, limit = axes.get_lines()[:2]
    ends = [exact.get_ydata()[0], exact.get_ydata()[-1]]
    assert np.allclose(ends, rows["reference"].iloc[[0, -1]], rtol=1e-12)
    assert np.allclose(limit.get_ydata(), np.sqrt(2.0 * np.log(limit.get_xdata())))
    # below, estimates and the asymptotic formula stand over the exact value
    below = plot_relative_largest_score(Figure().subplots(), rows)
    drawn = below.containers[0].lines[0]
    assert list(drawn.get_ydata()) == (rows["estimate"] / rows["reference"]).tolist()
    limit = np.asarray(below.get_lines()[0].get_ydata())
    wanted = np.sqrt(2.0 * np.log(rows["n_keys"])) / rows["reference"]
    assert np.allclose([limit[0], limit[-1]], wanted.iloc[[0, -1]])


def test_largest_scores_are_of_the_d_k_with_most_keys():
    """The figure against n takes the d_k that has most n, or else one near 64."""
    score = {"quantity": "score_max", "summary": "mean", "divisor": "sqrt"}
    grid = {(d_k, n): 2.0 for d_k in (1, 16, 128) for n in (8, 32)}
    assert set(largest_scores(measured(grid, **score))["d_k"]) == {128}
    more = measured(grid | {(16, 2048): 3.0}, **score)
    assert largest_scores(more)["n_keys"].tolist() == [8, 32, 2048]
    assert set(largest_scores(more)["d_k"]) == {16}
    assert largest_scores(measured({(64, 8): 1.4, (16, 32): 2.0}, **score)).empty


def test_gradient_ratio_draws_paired_rows(results):
    """Error bars of the ratio are the intervals of the paired rows."""
    rows = gaussian_rows(results[0], divisor="none/sqrt", summary="mean", n_keys=32)
    rows = rows[rows["quantity"].eq("gradient_query")]
    axes = plot_gradient_ratio(Figure().subplots(), rows)
    assert np.allclose(
        bars_drawn(axes), sorted(zip(rows["ci_low"], rows["ci_high"], strict=True))
    )


def curve_of(name: str, outcome: str, points: dict[float, float]) -> pd.DataFrame:
    """Points of one curve."""
    line = {"curve": name, "claim": "a", "interpretation": "b", "outcome": outcome}
    return pd.DataFrame(
        [{**line, "x": x, "estimate": share} for x, share in points.items()]
    )


def test_outcomes_are_stacked_and_the_threshold_marked():
    """Supported, undecided and refuted fill the panel; the line is where used says."""
    table = pd.concat(
        [
            curve_of("threshold", "supported", {0.5: 1.0, 0.9: 0.25}),
            curve_of("threshold", "refuted", {0.5: 0.0, 0.9: 0.5}),
            curve_of("threshold_used", "", {0.75: np.nan}),
        ]
    )
    axes = plot_outcomes(Figure().subplots(), table)
    heights = []
    for area in axes.collections:
        corners = area.get_paths()[0].vertices
        at_end = corners[np.isclose(corners[:, 0], 0.9), 1]
        heights.append(at_end.max() - at_end.min())
    assert heights == [0.25, 0.25, 0.5]
    assert {tuple(line.get_xdata()) for line in axes.get_lines()} == {(0.75, 0.75)}
    unmarked = plot_outcomes(Figure().subplots(), table.iloc[:4])
    assert not unmarked.get_lines()


def test_thresholds_have_one_letter_each(build, results):
    """There is one panel per interpretation, in the table's order, lettered."""
    figure = build("thresholds")
    curves = results[1][results[1]["curve"].eq("threshold")]
    interpretations = curves.groupby(["claim", "interpretation"]).groups
    assert [one.get_title(loc="left") for one in figure.axes] == [
        f"({chr(ord('a') + place)})" for place in range(len(interpretations))
    ]


def test_z_scores_are_ordered_pairs(results):
    """Extreme z-scores are drawn, and no point that the table does not have."""
    rows = results[0].query("reference.notna() and std_error > 0")
    rows = rows[rows["summary"].isin(("mean", "value"))]
    axes = plot_z_scores(Figure().subplots(), rows)
    z = np.sort((rows["estimate"] - rows["reference"]) / rows["std_error"])
    drawn = np.asarray(axes.get_lines()[0].get_ydata())
    assert drawn[0] == z[0]
    assert drawn[-1] == z[-1]
    assert set(drawn) <= set(z)
    assert (np.diff(drawn) >= 0.0).all()


@pytest.mark.parametrize("name", FIGURES)
def test_legend_stands_on_no_panel(laid_out, name):
    """A legend of the figure overlaps no panel."""
    figure = laid_out(name)
    with house_style():
        boxes = [one.get_window_extent() for one in figure.axes]
        for legend in figure.legends:
            box = legend.get_window_extent()
            assert not any(box.overlaps(other) for other in boxes)


@pytest.mark.parametrize("name", FIGURES)
def test_tick_labels_do_not_overlap(laid_out, name):
    """Neighbouring labels of an x axis leave room between each other."""
    figure = laid_out(name)
    with house_style():
        for one in figure.axes:
            labels = [t for t in one.get_xticklabels() if t.get_visible()]
            low, high = sorted(one.get_xlim())
            boxes = [
                text.get_window_extent()
                for text in labels
                if text.get_text() and low <= text.get_position()[0] <= high
            ]
            for left, right in pairwise(sorted(boxes, key=lambda box: box.x0)):
                assert left.x1 + 2.0 < right.x0


def test_key_counts_prefer_the_wanted_ones():
    """Wanted numbers of keys come first, single points are no panel."""
    table = pd.DataFrame(
        {"n_keys": [8, 8, 32, 32, 64, 64, 512], "d_k": [1, 2, 1, 2, 1, 2, 64]}
    )
    assert key_counts(table, (32, 512), 2) == [8, 32]
    assert key_counts(table, (64, 32), 2) == [32, 64]
    assert key_counts(table.iloc[:0], (64,), 2) == []


def test_nearest_is_by_ratio():
    """128 is nearer to 256 than to 32; of nothing, nothing is nearest."""
    assert nearest([32, 256], 128) == 256
    assert nearest([], 128) is None


def test_attention_draws_the_weights_of_the_example(results):
    """Each cell has the shade of its weight; the scale's steps are squares."""
    weights = {d: w for d, _, w in example_weights(results[1])}
    assert set(weights) == {"none", "sqrt"}
    for one in weights.values():
        assert one.shape == (16, 32)
        assert np.allclose(one.sum(axis=1), 1.0)
        axes = plot_weights(Figure().subplots(), one)
        seen = np.zeros(one.shape)
        patches, *_ = axes.collections
        for shade, path in zip(
            patches.get_facecolor(), patches.get_paths(), strict=True
        ):
            for polygon in path.to_polygons():
                (left, low), (right, high) = polygon.min(axis=0), polygon.max(axis=0)
                cells = np.s_[int(low) : int(high), int(left) : int(right)]
                seen[cells] = SHADES.index(SHADE_OF[to_hex(shade)])
        assert (seen == np.floor(10.0 * np.sqrt(one))).all()
    assert weights["none"].max(axis=1).mean() > 2.0 * weights["sqrt"].max(axis=1).mean()


def test_attention_draws_the_shares_of_the_table():
    """Points are percentages with their intervals, at d_k from 8 to 1024 alone."""
    sizes = {(d_k, n): d_k / 4096 for d_k in (4, 64, 128, 2048) for n in (128, 1024)}
    row = {"quantity": "saturated", "summary": "mean", "divisor": "none"}
    rows = saturated_rows(measured(sizes, **row))
    assert set(rows["d_k"]) == {64, 128}
    axes = plot_saturated(Figure().subplots(), rows)
    points = numbers_drawn(axes, DIVISOR_LOOKS["none"].colour)
    assert points == [(64.0, 1.5625)] * 2 + [(128.0, 3.125)] * 2
    assert np.allclose(bars_drawn(axes)[0], (1.546875, 1.578125))
    marks = [
        line.get_xdata()[0] for line in axes.get_lines() if line.get_color() == MUTED
    ]
    assert marks == [64, 128]
    assert {"$n = 128$", "$n = 1024$"} < {
        text.get_text() for text in axes.get_legend().get_texts()
    }

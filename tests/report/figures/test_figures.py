import re
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from montecarlo.report.figures import FIGURES, FigureSpec, render_svg
from montecarlo.report.figures.drawing import house_style
from montecarlo.report.figures.gradients import plot_gradient_ratio
from montecarlo.report.figures.judgement import plot_outcomes, plot_z_scores
from montecarlo.report.figures.palette import DIVISOR_LOOKS
from montecarlo.report.figures.rows import gaussian_rows, key_counts, nearest
from montecarlo.report.figures.scores import plot_relative_variance, plot_variance
from montecarlo.report.figures.weights import plot_effective_keys, plot_weights_by_rank

#: Letters that stand for a quantity, and functions with longer names.
SYMBOLS = {"Var", "tr", "max", "cosh", "E", "H", "F", "J", "K", "N", "Q"}
SYMBOLS |= set("acdeknpqrtvxz")


def texts_of(figure: Figure) -> list[str]:
    """Every text that stands in a figure."""
    figure.draw_without_rendering()
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


@pytest.mark.parametrize("name", FIGURES)
def test_figure_is_drawn_from_a_small_study(svgs, name):
    """Every figure can be drawn from a small study."""
    assert svgs[name] is not None
    assert FIGURES[name].id == name


@pytest.mark.parametrize("name", FIGURES)
def test_same_results_give_same_bytes(svgs, results, name):
    """A figure depends on the results alone, not on an earlier figure or the style."""
    with mpl.rc_context({"lines.linewidth": 9.0, "font.size": 30.0, "axes.grid": True}):
        assert render_svg(FIGURES[name], *results) == svgs[name]


@pytest.mark.parametrize("name", FIGURES)
def test_order_of_rows_does_not_matter_to_measurements(svgs, results, name):
    """A figure is the same for measurements in another order."""
    measurements, curves = results
    turned = measurements.iloc[::-1].reset_index(drop=True)
    assert render_svg(FIGURES[name], turned, curves) == svgs[name]


@pytest.mark.parametrize("name", FIGURES)
def test_figure_holds_no_word(build, name):
    """Axes, legends and titles carry symbols and numbers only."""
    texts = texts_of(build(name))
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
    before = mpl.rcParams.copy()
    render_svg(FIGURES["z-scores"], *results)
    assert mpl.rcParams == before


def test_variance_draws_what_the_table_says(results):
    """Points of the variance are the estimates, the line the exact values."""
    rows = results[0].query("quantity == 'score_variance' and ci_low.notna()")
    axes = plot_variance(Figure().subplots(), rows)
    for divisor, look in DIVISOR_LOOKS.items():
        mine = rows[rows["divisor"].eq(divisor)]
        assert numbers_drawn(axes, look.colour) == sorted(
            zip(mine["d_k"], mine["estimate"], strict=True)
        )
    gaussian = rows[rows["law_q"].eq("gaussian")]
    assert np.allclose(
        bars_drawn(axes),
        sorted(zip(gaussian["ci_low"], gaussian["ci_high"], strict=True)),
    )
    raw = gaussian[gaussian["divisor"].eq("none")]
    lines = [list(line.get_ydata()) for line in axes.get_lines()]
    assert raw["reference"].tolist() in lines


def test_relative_variance_is_estimate_over_reference(results):
    """The lower panel shows Gaussian estimates over their exact values, in place."""
    rows = results[0].query("quantity == 'score_variance' and ci_low.notna()")
    axes = plot_relative_variance(Figure().subplots(), rows)
    raw = rows.query("divisor == 'none' and law_q == 'gaussian'")
    drawn = axes.containers[0].lines[0]
    assert list(drawn.get_xdata()) == raw["d_k"].tolist()
    assert list(drawn.get_ydata()) == (raw["estimate"] / raw["reference"]).tolist()


def test_law_without_variance_of_its_estimate_is_not_drawn(build):
    """An estimate without a valid interval, as that of t3, is left out."""
    assert not any("t_{3}" in text for text in texts_of(build("variance")))
    assert any("e^{-|x|}" in text for text in texts_of(build("variance")))


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


def test_gradient_ratio_draws_paired_rows(results):
    """Error bars of the ratio are the intervals of the paired rows."""
    rows = gaussian_rows(results[0], divisor="none/sqrt", summary="mean", n_keys=32)
    rows = rows[rows["quantity"].eq("gradient_query")]
    axes = plot_gradient_ratio(Figure().subplots(), rows)
    assert np.allclose(
        bars_drawn(axes), sorted(zip(rows["ci_low"], rows["ci_high"], strict=True))
    )


def curve_of(name: str, points: dict[float, float]) -> pd.DataFrame:
    """Rows of curves.csv of one curve."""
    return pd.DataFrame(
        [{"curve": name, "x": x, "estimate": share} for x, share in points.items()]
    )


def test_outcomes_are_stacked_and_the_threshold_marked():
    """Supported, undecided and refuted fill the panel; the line is where used says."""
    table = pd.concat(
        [
            curve_of("threshold/a/b/supported", {0.5: 1.0, 0.9: 0.25}),
            curve_of("threshold/a/b/refuted", {0.5: 0.0, 0.9: 0.5}),
            curve_of("threshold/a/b/used", {0.75: np.nan}),
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
    """There is one panel per reading, in the order of the table, with a letter."""
    figure = build("thresholds")
    curves = results[1]["curve"]
    readings = curves[curves.str.endswith("/supported")].unique()
    assert [one.get_title(loc="left") for one in figure.axes] == [
        f"({chr(ord('a') + place)})" for place in range(len(readings))
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
def test_legend_stands_on_no_panel(build, name):
    """A legend of the figure overlaps no panel."""
    with house_style(name):
        figure = build(name)
        figure.draw_without_rendering()
        boxes = [one.get_window_extent() for one in figure.axes]
        for legend in figure.legends:
            box = legend.get_window_extent()
            assert not any(box.overlaps(other) for other in boxes)


@pytest.mark.parametrize("name", FIGURES)
def test_tick_labels_do_not_overlap(build, name):
    """Neighbouring labels of an x axis leave room between each other."""
    with house_style(name):
        figure = build(name)
        figure.draw_without_rendering()
        for one in figure.axes:
            labels = [t for t in one.get_xticklabels() if t.get_visible()]
            low, high = sorted(one.get_xlim())
            boxes = [
                text.get_window_extent()
                for text in labels
                if text.get_text() and low <= text.get_position()[0] <= high
            ]
            for left, right in pairwise(boxes):
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

"""Figures look as they did: each against a picture of it that was looked at.

``make baselines`` draws the pictures anew; what changed is then to be looked at.
"""

import os
import shutil
from pathlib import Path

import pytest
from matplotlib.testing.compare import compare_images

from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.drawing import house_style

FOLDER = Path(__file__).with_name("baselines")
WRITE = "MONTECARLO_WRITE_BASELINES"
#: Root mean square of the difference, of 255: kernels of other processors move points
#: by less than a pixel; a series that is missing makes several times as much.
TOLERANCE = 1.5
DPI = 72


def drawn(picture, path):
    """Write the shapes of a figure as pixels, without words."""
    with house_style():
        picture.lay_out()
        picture.figure.savefig(path, dpi=DPI, metadata={"Software": None})
    return path


@pytest.mark.parametrize("name", FIGURES)
def test_figure_is_as_it_was(build, tmp_path, name):
    """A figure of the small study is, but for rounding, its picture here."""
    path = drawn(build(name), tmp_path / f"{name}.png")
    baseline = FOLDER / path.name
    if os.environ.get(WRITE):
        FOLDER.mkdir(exist_ok=True)
        shutil.copy(path, baseline)
    assert baseline.exists(), "make baselines"
    assert compare_images(baseline, path, TOLERANCE) is None


def test_every_picture_is_of_a_figure():
    """No picture of a figure that is gone."""
    assert {path.stem for path in FOLDER.glob("*.png")} == set(FIGURES)


@pytest.mark.parametrize("name", ["variance", "weights"])
def test_a_missing_series_is_seen(build, tmp_path, name):
    """The comparison fails for a figure that lacks its longest line."""
    picture = build(name)
    lines = [line for panel in picture.panels for line in panel.axes.lines]
    longest = max(lines, key=lambda line: len(line.get_xdata()))
    longest.remove()
    path = drawn(picture, tmp_path / f"{name}.png")
    baseline = shutil.copy(FOLDER / path.name, tmp_path / "expected.png")
    assert compare_images(baseline, path, TOLERANCE) is not None

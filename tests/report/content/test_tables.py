"""Which rows figures and tables name, of the points of a grid."""

import pytest

from montecarlo.report.content.tables import name_saturation, nearest, of_key_counts
from montecarlo.sampling.design_points import parse_point


def points_of(sizes):
    """Gaussian rows of some (d_k, n)."""
    return [parse_point("gaussian", "gaussian", *size) for size in sizes]


def sizes_of(points):
    """The sizes of some points."""
    return {(point.d_k, point.n_keys) for point in points}


def test_key_counts_prefer_the_wanted_ones():
    """Wanted numbers of keys come first, single points have no line."""
    points = points_of([(d_k, n) for n in (8, 32, 64) for d_k in (1, 2)] + [(64, 512)])

    def chosen(wanted):
        return {n for _, n in sizes_of(of_key_counts(points, wanted, 2))}

    assert chosen((32, 512)) == {8, 32}
    assert chosen((64, 32)) == {32, 64}
    assert of_key_counts([], (64,), 2) == []


def test_nearest_is_by_ratio():
    """128 is nearer to 256 than to 32; of nothing, nothing is nearest."""
    assert nearest([32, 256], 128) == 256
    assert nearest([], 128) is None


def test_cell_far_off_is_left_out_of_the_map():
    """An edge of the grid has no line of its own in the map."""
    grid = [(d_k, n) for d_k in (4, 16, 64, 256) for n in (8, 32, 128)]
    points = points_of([*grid, (4096, 32), (64, 2048)])
    assert sizes_of(point for point, _ in name_saturation(points)) == set(grid)


@pytest.mark.parametrize(
    "sizes",
    [
        [(4, 8), (16, 8), (64, 8)],
        [(16, 8), (16, 32)],
        [(4, 8), (16, 32)],
        [(4, 8), (16, 8), (16, 32), (64, 32)],
        [],
    ],
)
def test_line_of_cells_is_no_map(sizes):
    """A map needs several d_k and several n; of a staircase nothing is left."""
    assert not list(name_saturation(points_of(sizes)))

"""Which rows figures and tables name, of the points of a grid."""

from montecarlo.report.content.tables import nearest, of_key_counts
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

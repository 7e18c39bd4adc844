"""Which rows of the tables figures and tables are made of."""

import pandas as pd
import pytest

from montecarlo.report.content.tables import (
    key_counts,
    nearest,
    saturation_cells,
)
from tests.report.figures.conftest import measured


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

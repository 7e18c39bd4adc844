"""Masks and blocks of queries, against a matrix of what is seen."""

import numpy as np
import pytest

from montecarlo.attention.masks import parse_mask, query_blocks
from montecarlo.errors import InputError


def seen(name, n):
    """Which keys each query sees, entry by entry."""
    width = int(name[7:-1]) if name.startswith("window") else n
    return [
        [name == "full" or (j <= i and i - j < width) for j in range(n)]
        for i in range(n)
    ]


@pytest.mark.parametrize("n", [2, 7, 32, 45])
@pytest.mark.parametrize("name", ["full", "causal", "window(1)", "window(17)"])
@pytest.mark.parametrize("size", [1, 4, 32, 64])
def test_blocks_hide_what_is_not_seen(name, n, size):
    """All queries once, in order; every key that one sees is in its block."""
    blocks = list(query_blocks(parse_mask(name), (n, n), size))
    assert [q for b in blocks for q in range(n)[b.queries]] == list(range(n))
    for block in blocks:
        visible = np.ones((len(range(n)[block.queries]), len(range(n)[block.keys])))
        block.hide(visible, 0.0)
        whole = np.zeros((len(visible), n))
        whole[:, block.keys] = visible
        assert whole.tolist() == seen(name, n)[block.queries]
        assert block.n_visible.tolist() == visible.sum(axis=1).tolist()
        assert visible.any(axis=0).all()  # no key that none sees


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("none", "none"),
        ("causal", "causal"),
        ("full", "full"),
        (" window( 016 )", "window(16)"),
    ],
)
def test_names(typed, name):
    """A canonical name stands for itself."""
    assert parse_mask(typed).name == name == parse_mask(name).name


@pytest.mark.parametrize("typed", ["", "Causal", "window", "window(0)", "window(-1)"])
def test_what_is_no_mask(typed):
    """One line says what there is, and what came."""
    with pytest.raises(InputError, match=r"^mask must be none, full, causal .*, got"):
        parse_mask(typed)

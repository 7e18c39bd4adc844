"""Masks in questions of one's own, against a program that shares nothing with ours."""

import math

import numpy as np
import pytest

from montecarlo import expected_row, grid, measure
from montecarlo.errors import InputError

#: Standard errors of both together that an estimate may be off by: of normal means one
#: in 10**6 is, by chance, for each of 13 cells.
FAR = 5.0


def every_mask(n, mask):
    """Which keys are seen, as a matrix of 0 and 1."""
    width = {"causal": n, "full": 2 * n}.get(mask) or int(mask[7:-1])
    ahead = np.subtract.outer(np.arange(n), np.arange(n))  # query minus key
    return (ahead < width) if mask == "full" else (ahead >= 0) & (ahead < width)


def textbook(rng, mask, n, d_k, c):
    """Each row's, or key's, values of a fresh replicate, in float64."""
    q, k, v, by_output = rng.standard_normal((4, n, d_k))
    u = rng.standard_normal(n)
    e = np.exp(q @ k.T / c) * every_mask(n, mask)
    p = e / e.sum(axis=1)[:, None]
    squares = (p**2).sum(axis=1)
    by_weights = by_output @ v.T
    by_scores = p * by_weights - p * (p * by_weights).sum(axis=1)[:, None]
    to_query = (p * (u - (p @ u)[:, None])) @ k / c
    return {
        "output_variance": squares,
        "entropy": -(p * np.log(np.where(p > 0.0, p, 1.0))).sum(axis=1),
        "weight_max": p.max(axis=1),
        "jacobian_trace": 1.0 - squares,
        "gradient_query": np.linalg.norm(to_query, axis=1),
        "gradient_key": np.linalg.norm(np.einsum("ij,id->jd", by_scores, q), axis=1),
        "gradient_value": np.linalg.norm(np.einsum("ij,id->jd", p, by_output), axis=1),
    }


def estimate(rng, replicates, quantity, summary, *cell):
    """Mean and standard error of replicates of the textbook."""
    pick = {"mean": np.mean, "first": lambda x: x[0], "last": lambda x: x[-1]}[summary]
    found = [pick(textbook(rng, *cell)[quantity]) for _ in range(replicates)]
    return np.mean(found), np.std(found, ddof=1) / math.sqrt(replicates)


CELLS = [
    ("causal", 24, 16, "sqrt", "entropy", "mean"),
    ("causal", 24, 16, "none", "entropy", "last"),
    ("causal", 40, 8, "none", "output_variance", "mean"),
    ("causal", 33, 16, "sqrt", "gradient_query", "mean"),
    ("causal", 20, 16, "sqrt", "gradient_key", "mean"),
    ("causal", 20, 16, "sqrt", "gradient_key", "first"),
    ("causal", 20, 16, "sqrt", "gradient_key", "last"),
    ("causal", 20, 16, "none", "gradient_value", "mean"),
    ("causal", 20, 16, "sqrt", "gradient_value", "first"),
    ("window(5)", 24, 16, "sqrt", "weight_max", "mean"),
    ("window(7)", 40, 8, "none", "gradient_key", "mean"),
    ("full", 24, 16, "sqrt", "gradient_key", "mean"),
    ("full", 24, 16, "none", "jacobian_trace", "mean"),
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(map(str, cell)))
def test_a_textbook_gives_the_same(cell):
    """Within the errors of both, which are small beside the estimate."""
    mask, n, d_k, divisor, quantity, summary = cell
    c = math.sqrt(d_k) if divisor == "sqrt" else 1.0
    rng = np.random.default_rng(5)
    mean, error = estimate(rng, 600, quantity, summary, mask, n, d_k, c)
    asked = {"d_k": d_k, "n_keys": n, "mask": mask, "divisor": divisor}
    found = measure(**asked, quantity=quantity, summary=summary, first=600, most=600)
    both = math.hypot(error, found.std_error)
    assert abs(found.estimate - mean) < FAR * both < 0.5 * found.estimate
    assert (found.n_queries, found.mask) == (n, mask)


def test_rows_and_names_of_a_grid():
    """Each mask has a line of its own; without one nothing of a row changes."""
    sizes = {"d_k": 4, "n_keys": 8, "quantity": "entropy", "most": 4}
    table = grid(**sizes, mask=["none", "causal", "window(2)"])
    assert table["mask"].to_list() == ["none", "causal", "window(2)"]
    assert table["n_queries"].to_list() == [128, 8, 8]
    assert table["row_id"].nunique() == 3
    (plain,) = grid(**sizes).to_dict("records")
    assert plain["row_id"] == table["row_id"][0] == "r17d8c984051"
    low, high = (
        expected_row(8, d_k=4, mask=mask)["entropy"].value
        for mask in ("window(2)", "causal")
    )
    assert table["reference"].to_list()[1:] == [high, low]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"mask": "window(0)"}, "a width w of at least 1, got 'window\\(0\\)'"),
        ({"mask": "window(9)"}, "a w of at most n_keys, 8, got 9"),
        ({"mask": "causal", "n_keys": None}, "mask must be none without n_keys"),
        ({"summary": "first"}, "summary of entropy must be"),
        ({"divisor": "ln(n)", "n_keys": None}, "divisor must have no n for pairs"),
        ({"quantity": "gradient_key"}, "each key: a mask.*, got .* mask none"),
        ({"quantity": "element_gradient", "mask": "full"}, "needs rows of one length"),
        ({"quantity": "format_error", "mask": "full"}, "is not computed under a mask"),
    ],
)
def test_what_is_refused_in_one_line(asked, message):
    """Before anything is sampled."""
    asked = {"d_k": 4, "n_keys": 8, "quantity": "entropy", **asked}
    if asked["n_keys"] is None:
        asked["quantity"] = "score_variance"
    with pytest.raises(InputError, match=message) as refused:
        measure(**asked)
    assert "\n" not in str(refused.value)


def test_the_first_row_of_a_causal_mask_is_known():
    """It has one key, so that there is nothing to sample on for."""
    for quantity, value in (("output_variance", 1.0), ("entropy", 0.0)):
        asked = {"quantity": quantity, "summary": "first", "mask": "causal"}
        found = measure(d_k=4, n_keys=8, **asked, most=256, first=8)
        assert (found.estimate, found.std_error) == (value, 0.0)
        assert (found.ci_low, found.ci_high) == (value, value)
        assert (found.reference, found.n_replicates) == (value, 8)

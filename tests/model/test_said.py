"""What is said of a model is so, and what cannot be used is refused by its name."""

import numpy as np
import pytest

from montecarlo import applied_scale, assert_attention_scale, compare, observe
from montecarlo.errors import InputError
from montecarlo.model.captured import Captured
from montecarlo.model.comparing import say_first_lost
from tests.model.heads import weighted

D_K = 16
PASSED = {"source": "torch", "scale": None, "cap": None}


def arrays_of(multiplier=D_K**-0.5, tokens=24, d_k=D_K, heads=2):
    """Return queries, keys and weights of some heads."""
    return weighted(multiplier, (3, 1, heads, tokens, d_k))


def captured_of(rows=None, multiplier=D_K**-0.5, **more):
    """Return what was captured of a layer, of which some rows are kept."""
    captured = Captured(rows)
    arrays = {name: one[:, 0] for name, one in arrays_of(multiplier, **more).items()}
    n_queries = arrays["q"].shape[2]
    if rows is not None:
        arrays |= {name: arrays[name][:, :, -rows:] for name in ("q", "weights")}
    captured.add(arrays, PASSED | {"queries": n_queries})
    return captured


def test_what_was_not_followed_is_no_yes():
    """It is named."""
    captured = captured_of()
    assert_attention_scale(captured)
    captured.miss("a product of (2, 3, 4), lost at gather", is_certain=False)
    with pytest.raises(AssertionError, match=r"cannot be told: .*lost at gather"):
        assert_attention_scale(captured)
    told = str(compare(captured, captured))
    assert told.startswith("cannot be told: no head differs by more than rounding, ")
    assert told.endswith("lost at gather")


def test_axes_are_those_of_arrays_beside_something_captured():
    """Which has its own."""
    arrays = {name: one[:, 0] for name, one in arrays_of().items()}
    axes = ("sequence", "head", "token", "d")
    assert compare(arrays, captured_of(), axes=axes).first is None
    assert_attention_scale(captured_of(), axes=axes)


def test_a_comparison_of_some_rows_says_so():
    """Of the last 64 of 200; where all were captured nothing is said."""
    told = str(compare(captured_of(64, tokens=200), captured_of(64, tokens=200)))
    said = "no head differs by more than rounding"
    assert told == f"cannot be told: {said}, of the last 64 rows of 200"
    assert str(compare(captured_of(64, tokens=200), captured_of(tokens=200))) == told
    whole = compare(captured_of(None, tokens=200), captured_of(None, tokens=200))
    assert str(whole) == f"{said}; values and outputs were not compared"
    other = compare(captured_of(64, tokens=200), captured_of(64, 0.2, tokens=200))
    assert "has scale 0.25 = 1/sqrt(d_k) where the reference has 0.2" in str(other)


def test_a_port_that_is_not_finite_is_named():
    """Which side, layer and array; the first that is."""
    right, wrong = arrays_of(), arrays_of()
    wrong["weights"][0, 0, 1, 3, 2] = np.nan
    told = str(compare(wrong, right))
    assert told.startswith("the port is not finite first in the mask, softmax or later")
    assert told.endswith("; layer 0")
    with pytest.raises(InputError, match=r"^reference, layer 0: weights must be fin"):
        compare(right, wrong)


def test_the_operation_that_is_not_finite_first_is_named():
    """Where it can be told; else those among which it is."""
    q, k, weights = (arrays_of()[name][0, 0, 1] for name in ("q", "k", "weights"))
    some, rows, outputs, inf = weights.copy(), weights.copy(), weights @ k, q.copy()
    some[3, 2] = rows[3] = outputs[3] = np.nan
    inf[3, 2] = np.inf
    both = zip("qk", (q, k), strict=True)
    large = {name: (2e2 * one).astype("f2").astype(float) for name, one in both}
    seen = np.zeros_like(weights)
    hidden = seen.copy()
    seen[3, 1:] = hidden[3] = -np.inf  # of the one a key is seen
    for changed, said in (
        ({"weights": some}, "the mask, softmax or later: which cannot be told"),
        ({"weights": rows}, "softmax in 1 of 24 rows, as if a mask hid them"),
        ({"q": inf, "weights": rows}, "q is what attention is given"),
        ({"weights": rows, **large}, "the scores: q and k of float16 make up to "),
        ({"v": k, "outputs": outputs, "added": seen}, "the mask, softmax or later"),
        ({"v": k, "outputs": outputs, "added": hidden}, "the mask: it hides every key"),
        ({"weights": weights, "v": k}, "the output: weights and values are finite"),
    ):
        assert say_first_lost({"q": q, "k": k, **changed}).startswith(said)


def test_no_name_or_hint_is_given_by_coincidence():
    """d_k^(1/4) is sqrt(h) at 64 and 8."""
    with pytest.raises(AssertionError) as error:
        assert_attention_scale(arrays_of(64**-0.25, d_k=64, heads=8))
    told = "divided by 2.82843, 0.354 times sqrt(d_k); sqrt(d_k) = 8 was expected"
    assert str(error.value).endswith(told)


def test_passes_of_parts_are_layers_of_their_own():
    """As generate() runs an encoder once, and its decoder again and again."""
    captured = Captured()
    q = np.random.default_rng(1).normal(size=(1, 2, 6, 4))
    for layers in ((0,), (1, 2), (1, 2)):
        captured.begin()
        for layer in layers:
            arrays = {"q": q, "k": q + layer, "v": q, "outputs": q}
            captured.add(arrays, PASSED)
    counts = {one.layers: len(one.sequences) for one in captured.models()}
    assert counts == {(0,): 1, (1, 2): 2}


def test_a_layer_of_a_single_key_keeps_its_number():
    """It is left out; a port that does not compute it has the same layers."""
    captured, port = Captured(), Captured()
    arrays = {name: one[:, 0] for name, one in arrays_of().items()}
    for one in (arrays, {"k": arrays["k"][:, :, :1]}, arrays):
        captured.add(one, PASSED)
    for _ in range(2):
        port.add(arrays, PASSED)
    assert list(captured.applied_scale()["layer"].unique()) == [0, 2]
    assert compare(port, captured).first is None
    with pytest.raises(InputError, match=r"among 0, 2, which attend to several .* 1$"):
        captured.models(1)


GIVEN = arrays_of()
HEADS = {"q": GIVEN["q"], "k": GIVEN["k"]}
OUTPUTS = HEADS | {"v": GIVEN["k"], "outputs": GIVEN["weights"] @ GIVEN["k"]}
SOURCE, PAIR = {"captured": GIVEN}, {"port": GIVEN, "reference": GIVEN}
#: Arguments that can be used, and what is put in the place of one of them.
WRONG = [
    *((observe, HEADS, {"q": one}) for one in ("no", None, [[1.0], [1.0, 2.0]])),
    *((observe, HEADS, {"axes": one}) for one in ("no", 3, [3, 4])),
    *((observe, HEADS, {"axes": one.split()}) for one in ("head token", "d d token")),
    *((observe, HEADS, {"causal": one}) for one in ("no", None)),
    *((observe, HEADS, {"divisor": one}) for one in ("root", -1.0, np.nan, 1e30)),
    *((applied_scale, OUTPUTS, {"outputs": one}) for one in (3, {"a": 1})),
    *((assert_attention_scale, SOURCE, {"captured": one}) for one in (None, 3, "no")),
    *((assert_attention_scale, SOURCE, {"captured": one}) for one in ({}, {"Q": []})),
    *((assert_attention_scale, SOURCE, {"rtol": one}) for one in (np.nan, "no", 0, 1)),
    *((assert_attention_scale, SOURCE, {"expect": one}) for one in ("no", object())),
    *((compare, PAIR, {"port": one}) for one in (None, object(), "no")),
    *((compare, PAIR, {"rtol": one}) for one in (True, 2.0)),
]


@pytest.mark.parametrize(("function", "usual", "wrong"), WRONG, ids=range(len(WRONG)))
def test_wrong_arguments_are_refused(function, usual, wrong):
    """Each in one line, before it is used."""
    with pytest.raises(InputError) as refused:
        function(**usual | wrong)
    assert str(refused.value).isprintable()


def test_all_rows_are_kept_where_they_fit(monkeypatch):
    """Else the last 64 of each sequence, of what was kept before, too."""
    monkeypatch.setattr("montecarlo.model.captured.MOST_BYTES", 3 * 2**18)
    captured = Captured()
    arrays = {name: one[:, 0] for name, one in arrays_of(tokens=100).items()}
    passed = PASSED | {"queries": 100}
    for rows in (100, 64):
        captured.add(arrays, passed)
        assert captured.models()[0].most_tokens == 100
        assert {len(one.arrays["q"][0][0]) for one in captured._passes[0]} == {rows}
    assert captured.rows_kept == "the last 64 rows of 100"

"""Arrays in hand: their axes, what fits what, and the line that refuses the rest."""

import ml_dtypes  # noqa: F401 - types that NumPy lacks
import numpy as np
import pytest

from montecarlo.errors import InputError
from montecarlo.model import observe
from montecarlo.model.scales import applied_scale

SHAPE = (3, 2, 4, 6, 5)
Q, K = np.random.default_rng(1).normal(size=(2, *SHAPE))
WEIGHTS = np.random.default_rng(2).random((*SHAPE[:4], SHAPE[3]))
LEFT = np.arange(SHAPE[-1]) < 2


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e4m3fn"])
def test_narrow_formats_in_hand(kind):
    """Types that NumPy lacks are computed with in float64."""
    q, k = Q.astype(kind), K.astype(kind)
    assert observe(q, k).equals(observe(q.astype(float), k.astype(float)))


def spoiled(array, value):
    """Return an array with one entry put wrong."""
    array = array.copy()
    array[2, 1, 3, 4, 0] = value
    return array


BAD_ARRAYS = [
    (spoiled(Q, np.nan), K, "q must be finite, got nan at sequence 2, layer 1, head 3"),
    (Q, spoiled(K, -np.inf), "head 3, token 4, d 0"),
    (Q * 1e160, K, "squares"),
    (Q, K[..., :4], "k must have 5 along the axis 'd', as q, got 4"),
    (Q[:2], K, "k must have 2 along the axis 'sequence', as q, got 3"),
    (Q, K[:, :, :3], "axis 'head' as q, 4, or a part that divides it, got 3"),
    (Q[:1, :, :, :1], K[:1], "their scores must vary from token to token"),
    (Q, K * 0.0 + 0.1, "their scores must vary from token to token"),
    (Q * LEFT, K * ~LEFT, "q, k and their scores must vary"),
    (Q[:, :, :, :0], K, "got shape (3, 2, 4, 0, 5): name them"),
    (Q.astype(int), K, "q must hold floating-point numbers, got"),
]


@pytest.mark.parametrize(("q", "k", "message"), BAD_ARRAYS, ids=range(len(BAD_ARRAYS)))
def test_bad_queries_and_keys_are_refused(q, k, message):
    """One line names the array, the axis, and what was expected."""
    with pytest.raises(InputError, match=r"^[^\n]+$") as error:
        observe(q, k)
    assert message in str(error.value)


BAD_EVIDENCE = [
    ({"v": K}, "must be given, got neither"),
    ({"weights": spoiled(WEIGHTS, -0.5)}, "at least 0, got -0.5 in layer 1, head 3"),
    ({"weights": spoiled(WEIGHTS, 1e200)}, "weights must be smaller than 1e[+]100"),
    ({"weights": WEIGHTS[..., :-1]}, "must have 6 along the axis 'key', as k"),
    ({"weights": 100.0 * WEIGHTS}, "must add up to 1 for each .*, got 2.* percent"),
    ({"weights": WEIGHTS[:, :, :1]}, "got 1: are they means over heads"),
    ({"weights": WEIGHTS.swapaxes(2, 3)}, "got 6: are heads and tokens swapped in w"),
    ({"v": K, "outputs": Q.swapaxes(2, 3)}, "heads and tokens swapped in outputs or q"),
    ({"v": K, "outputs": Q, "added": WEIGHTS > 0.5}, "got booleans; of a mask, np.wh"),
    ({"v": K, "outputs": Q[..., :-1]}, "along the axis 'd', as v, got 4"),
    ({"v": K[..., :-1, :], "outputs": Q}, "must have 6 along the axis 'token'"),
]


@pytest.mark.parametrize(
    ("given", "message"), BAD_EVIDENCE, ids=range(len(BAD_EVIDENCE))
)
def test_bad_evidence_is_refused(given, message):
    """What does not fit queries and keys, or is no weight."""
    with pytest.raises(InputError, match=message):
        applied_scale(Q, K, **given)


def test_a_key_that_minus_infinity_hides_is_hidden():
    """As where a large number is taken away; q and k that are swapped are asked for."""
    hidden = np.where(np.tri(SHAPE[3], dtype=bool), 0.0, -np.inf) + 0.0 * WEIGHTS
    given = {"v": K, "outputs": Q, "added": hidden}
    frame = applied_scale(Q, K, **given)
    assert frame.equals(applied_scale(Q, K, **given | {"added": hidden.clip(-1e9)}))
    with pytest.raises(InputError, match="are q and k swapped, or the axes of weights"):
        applied_scale(Q[:, :, :, :5], K, weights=WEIGHTS[..., :5])


def test_causal_needs_as_many_keys():
    """A causal mask has no meaning where queries and keys differ in number."""
    with pytest.raises(InputError, match="axis 'token' where attention is causal"):
        observe(Q, K[:, :, :, :4], causal=True)
    assert len(observe(Q, K[:, :, :, :4]))


def test_a_batch_is_sequences():
    """By the word that libraries have for it."""
    q, k = Q[:, 0], K[:, 0]
    frame = observe(q, k, axes=("batch", "head", "token", "d"))
    assert frame.equals(observe(q, k, axes=("sequence", "head", "token", "d")))


def test_swapped_heads_and_tokens_are_asked_about():
    """More heads than tokens: only if somebody says so."""
    q = np.random.default_rng(1).normal(size=(2, 1, 30, 4, 8))
    with pytest.raises(InputError, match="if these are swapped, type --axes sequence,"):
        observe(q, -q)
    frame = observe(q, -q, axes=("sequence", "layer", "head", "token", "d"))
    assert frame["head"].nunique() == 31  # and their mean

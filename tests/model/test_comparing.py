"""A port beside its reference: what is seen, why, and that rounding is no fault."""

import os
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import softmax

from montecarlo import compare
from montecarlo.errors import InputError
from montecarlo.model.captured import Captured
from montecarlo.model.causes import ALL, explain_vectors
from tests.model.threads import SIZES, THREADS, Size, causal, run, turn

SMALL = Size(*SIZES["small"], 12, 2)
#: Ports whose attention torch's own does not have, or whose values the change lacks.
NOT_BY_TORCH = (
    "onnx 7865: cap after the mask",
    "tt-metal PR 42891: bias scaled, too",
    "timm PR 2236: mask after softmax",
    "labml 282: softmax over queries",
    "onnx PR 7274, jax-js PR 180: key heads tiled",
    "ollama PR 13893: MLA by the absorbed width",
    "first key head for all",
)
#: Options of what is seen in vectors, with weights or without.
OF_VECTORS = {"before", "q_factor", "v_factor"}
#: Names of threads, with what is known of the port: weights; or outputs, a mask and a
#: bias, by which weights are computed, where torch has such attention.
SEEN = [(name, THREADS[name].evidence) for name in THREADS] + [
    (name, "added")
    for name, thread in THREADS.items()
    if name not in NOT_BY_TORCH and not OF_VECTORS & {*thread.port(SMALL)}
]
#: Those without a fault, and what is in them: a bias, a cap, a sink and so on.
SOUND = {
    run(SMALL, **thread.reference(SMALL))["weights"].tobytes(): thread
    for thread in THREADS.values()
}


@pytest.mark.parametrize(("name", "evidence"), SEEN)
def test_the_cause_is_named(name, evidence):
    """Of each thread what its people found after days."""
    thread = THREADS[name]
    size = replace(SMALL, layers=3) if "layers" in name else SMALL
    port, reference = thread.arrays(size)
    if evidence != thread.evidence:
        port, _ = thread.arrays(size, evidence=evidence)
    found = compare(port, reference)
    assert found.first.explained >= ALL
    for pattern in thread.said:
        assert re.search(pattern, str(found)), str(found)


def test_parts_of_a_fused_projection_in_another_order_are_named():
    """By head and kind; a third of them are values, which were not recorded."""
    fused = np.random.default_rng(6).standard_normal((12, 24, 16))
    reference, port = (
        {"q": q, "k": k, "weights": softmax(0.25 * q @ k.swapaxes(1, 2), axis=-1)}
        for q, k in ((fused[::3], fused[1::3]), (fused[:4], fused[4:8]))
    )
    told = str(compare(port, reference, axes=("head", "token", "d")))
    assert "in place of q, by head, the reference's q 0, k 0, none, q 1" in told


def test_weights_are_computed_where_one_side_has_outputs_alone():
    """As torch's own attention has; where nothing makes its outputs, that is said."""
    rng = np.random.default_rng(5)
    q, k, v = rng.standard_normal((3, 2, 4, 24, 16))
    weights = softmax(q @ k.swapaxes(-1, -2) / 4.0, axis=-1)
    reference = {"q": q, "k": k, "weights": weights}
    port = {"q": q, "k": k, "v": v, "outputs": weights @ v}
    axes = ("sequence", "head", "token", "d")
    computed = "weights of the port, which were not captured, are computed"
    alike = compare(port, reference, axes=axes)
    assert alike.first is None
    assert str(alike).startswith("no head differs by more than rounding")
    assert computed in str(alike)
    other = compare(port | {"k": k[..., ::-1]}, reference, axes=axes)
    assert other.first.quantity == "k"
    assert "scale and mask were not looked at" in str(other)
    unknown = compare(port | {"outputs": v}, reference, axes=axes)
    assert str(unknown).startswith("cannot be told: ")
    assert computed not in str(unknown)


#: All sizes, formats and evidence take an hour: `make ports`.  Otherwise a thread is
#: tried at one of the two sizes below, and sound in some of `WAYS`.
EVERY_SIZE = bool(os.environ.get("MONTECARLO_TRIAL"))
SOME = [("small", "bfloat16"), ("medium", "float16")]
FORMATS = ("float32", "bfloat16", "float16")
TRIED = [*product(SIZES, FORMATS)] if EVERY_SIZE else SOME
#: With 64 entries: scores that are not scaled down, and an eps, then a factor.
PEAKED = ("nntile PR 356", "jaxgarden PR 36", "another eps")


@pytest.mark.slow
@pytest.mark.parametrize(("size", "number_format"), TRIED)
def test_the_cause_is_named_in_other_sizes_and_formats(size, number_format, subtests):
    """In fewer bits; but where nearly all weight is on one key, the scale is lost."""
    for at, (name, thread) in enumerate(THREADS.items()):
        is_exact = size != "large" or number_format == "float32"
        is_tried = EVERY_SIZE or SOME[at % 2] == (size, number_format)
        if not is_tried or (not is_exact and name.startswith(PEAKED)):
            continue
        evidence = "added" if thread.evidence == "outputs" else thread.evidence
        tried = Size(*SIZES[size], 24)
        port = thread.arrays(tried, evidence=evidence, number_format=number_format)
        with subtests.test(name):
            found = compare(*port)
            assert all(re.search(one, str(found)) for one in thread.said), str(found)


#: Formats, and of a port and its reference whether results alone are rounded, and
#: whether the reference is in float32.
ROUNDED = ((False, True, False), (False, False, True), (True, False, True))
WAYS = [*product(FORMATS, ROUNDED)]


def sound_pairs(size, evidence, thread, ways):
    """Yield ports without a fault, and what they are set beside.

    ``ways``: some of `WAYS`.  ``evidence``: of the port, and of the reference where
    that is another; then sides with outputs are captured, with the scale that was
    passed.
    """
    options = thread.reference(size)
    mine, theirs = evidence.split()[0], evidence.split()[-1]
    is_same = mine == theirs or "cap" in options or size.tokens == 1
    for number_format, way in ways:
        formats = number_format, "float32" if way[2] else number_format
        made = [
            run(size, one, is_wide=is_wide, evidence=known, **options)
            for one, is_wide, known in zip(
                formats, way[:2], (mine, theirs), strict=True
            )
        ]
        yield tuple(
            one if is_same or known == "weights" else captured(one, **options)
            for one, known in zip(made, (mine, theirs), strict=True)
        )


def captured(arrays, scale=None, **_):
    """Return arrays as they are captured of torch's own attention."""
    if np.ndim(scale):  # which has one scale
        return arrays
    found = Captured()
    passed = {"source": "torch", "scale": scale, "cap": None}
    for layer in range(arrays["q"].shape[1]):
        found.add({name: one[:, layer] for name, one in arrays.items()}, passed)
    return found


@pytest.mark.parametrize(
    ("tokens", "evidence"),
    [(1, "weights"), (5, "weights added"), (24, "weights"), (24, "added weights")],
)
def test_a_sound_port_is_not_accused(tokens, evidence, subtests):
    """Rounded at every step, beside a reference in float32."""
    for at, thread in enumerate(SOUND.values()):
        size = Size(*SIZES["small"], tokens, 2)
        for pair in sound_pairs(size, evidence, thread, [WAYS[at % 9]]):
            with subtests.test(thread.said[0]):
                assert compare(*pair).first is None


#: Of a port alone, or of a port and its reference.
EVIDENCE = ("weights", "outputs", "added", "added weights", "weights added")
#: What others of `EVERY_SIZE` hardly differ from.
SOUND_SOME = [("small", 5, "outputs"), ("small", 24, "added")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "tokens", "evidence"),
    [*product(SIZES, (1, 5, 24, 200), EVIDENCE)] if EVERY_SIZE else SOUND_SOME,
)
def test_no_sound_port_is_accused(size, tokens, evidence, subtests):
    """Of weights and of outputs, with masks passed or not; tried at three sizes."""
    for at, thread in enumerate(SOUND.values()):
        ways = WAYS if EVERY_SIZE else WAYS[at % 3 :: 3]
        for pair in sound_pairs(Size(*SIZES[size], tokens), evidence, thread, ways):
            with subtests.test(thread.said[0]):
                assert compare(*pair).first is None, str(compare(*pair))


def test_rounding_of_large_scores_is_no_fault():
    """What it makes of weights grows with scores."""
    size = Size(*SIZES["medium"], 24)
    options = {"scale": 2.0, "hidden": causal(size)}
    port, reference = (run(size, one, **options) for one in ("bfloat16", "float32"))
    assert compare(port, reference).first is None


def test_a_single_key_has_no_scale():
    """All weights are 1, whatever it is; all rows of five queries are compared."""
    sides = [run(Size(*SIZES["small"], 1), scale=scale) for scale in (1.0, 0.5)]
    for side in sides:
        side |= {name: np.repeat(side[name], 5, axis=-2) for name in ("q", "weights")}
    told = str(compare(*sides))
    assert told.startswith("no head differs by more than rounding")
    assert "all weights are 1, and the scale does not matter" in told


def recorded(scale=0.25, layer=slice(None), seed=1, factor=1.0, windows=()):
    """Return queries, keys and weights, of which a layer may have another scale.

    ``factor`` is one of queries of a head; windows are those of layers.
    """
    q, k = np.random.default_rng(seed).normal(size=(2, 2, 2, 4, 30, 16))
    q[:, 1, 2] *= factor
    scales = np.full((1, 2, 1, 1, 1), 0.25)
    scales[:, layer] = scale
    logits, back = scales * (q @ k.swapaxes(-1, -2)), Size(4, 4, 16, 30).away
    for n, window in enumerate(windows):
        logits[:, n, :, (back < 0) | (back >= window)] = -np.inf
    return {"q": q, "k": k, "weights": softmax(logits, -1)}


def test_the_first_difference_is_named():
    """In the order in which a model computes, with its numbers."""
    reference = recorded()
    assert compare(reference, reference).first is None
    found = compare(recorded(0.25 / 1.07, layer=1), reference)
    assert found.first[:3] == ((1,), (0, 1, 2, 3), "scale")
    assert found.first[-2:] == pytest.approx((0.25 / 1.07, 0.25))
    told = "scale 0.2336 (0.935 times 1/sqrt(d_k)) where the reference has 0.25"
    assert f"the port has {told} = 1/sqrt(d_k): 0.9346 times; layer 1" == str(found)
    found = compare(recorded(factor=1.1), reference)
    assert found.first[:3] == ((1,), (2,), "q")
    assert "multiplies q by a factor by head, 1 to 1.1; layer 1, head 2" in str(found)
    assert set(found.frame["quantity"]) == {"q", "k", "weights"}


def test_what_is_written_otherwise_is_no_difference():
    """Entries in another order, which is said, and a factor that is taken back."""
    reference = {name: one[:1, :1] for name, one in recorded().items()}
    port = reference | {name: reference[name][..., ::-1] for name in "qk"}
    found = compare(port, reference)
    assert found.first is None
    assert str(found).startswith("q and k differ and make the same weights")
    port["q"], port["k"] = 4.0 * port["q"], 0.25 * port["k"]
    assert compare(port, reference).first is None
    narrow = reference | {name: reference[name][..., :8] for name in "qk"}
    assert "8 entries of q and k, the reference 16" in str(compare(narrow, reference))


def test_outputs_are_held_against_weights_and_values():
    """A factor is named; what the reference does as well is no difference."""
    one = recorded()
    sound = one | {"v": one["k"], "outputs": one["weights"] @ one["k"]}
    port = sound | {"outputs": 1.1 * sound["outputs"]}
    assert "multiplies outputs by 1.1" in str(compare(port, sound))
    assert compare(sound, sound).first is compare(port, port).first is None
    added = {"added": np.broadcast_to(np.tri(30), one["weights"].shape)}
    assert "adds its mask, 1 or 0, to the scores" in str(compare(sound | added, sound))


def test_what_nothing_explains_is_said_so():
    """With how far apart it is and where; of the first sequence, too.

    Values that one side lacks are in the table, and agree with nothing.
    """
    port, reference = recorded(), recorded()
    port["q"][0, 0] = recorded(seed=2)["q"][0, 0]
    reference["v"] = reference["k"]
    found = compare(port, reference)
    assert found.first[:3] == ((0,), (0, 1, 2, 3), "q")
    said = r"the port has another q: 1\.\d of its norm apart, most in q of head \d, "
    said += r"query \d+, entry \d+: -?\d.* in place of -?\d.*; layer 0"
    assert re.fullmatch(said, str(found))
    values = found.frame[found.frame["quantity"].eq("v")]
    assert values[["port", "difference"]].isna().all(axis=None)
    assert values["reference"].gt(0.0).all()
    port = recorded()
    port["weights"][1, 1, 2, 21, 7] += 0.25
    said = "most in weights of head 2, query 21, key 7: .* in place of .*; layer 1"
    assert re.search(said, str(compare(port, recorded())))


@pytest.mark.parametrize("is_whole", [*product((True, False), repeat=2)])
@pytest.mark.parametrize("way", [("tiled", "interleaved"), ("interleaved", "tiled")])
def test_key_heads_of_other_groups(way, is_whole):
    """By the heads of keys, or by weights where both hold the two that are shared."""
    q, k = np.random.default_rng(8).normal(size=(2, 8, 24, 16))
    k, sides = k[:2], []
    for name, has_all in zip(way, is_whole, strict=True):
        keys = k[np.arange(8) % 2 if name == "tiled" else np.arange(8) // 4]
        weights = softmax(0.25 * q @ keys.swapaxes(1, 2), axis=-1)
        sides.append({"q": q, "k": keys if has_all else k, "weights": weights})
    found = compare(*sides, axes=("head", "token", "d"))
    said = f"the port has key heads of other groups ({way[0]}, not {way[1]})"
    assert str(found) == f"{said}; layer 0, heads 1, 3, 4, 6"


def test_rotations_that_are_scaled_in_part_are_named():
    """As those of Llama 3.1, which turn the fast pairs as others do."""
    x = np.random.default_rng(9).normal(size=(2, 512, 64))
    (cause,) = explain_vectors("q", turn(x, 5e5), turn(x, 5e5, scaling=8.0), 1e-4)
    said = "scaling or precision of the rotation; the first 15 of 32 pairs agree"
    assert cause.text.endswith(said)


@pytest.mark.parametrize("number_format", ["float32", "bfloat16"])
def test_sinks_are_seen_in_outputs_of_an_unknown_mask(number_format):
    """Another sum multiplies outputs by query, in more than one sequence."""
    size = Size(*SIZES["small"], 24)
    options = {"evidence": "outputs", "hidden": causal(size, 5)}
    port, reference = (
        run(size, number_format, sink=sink, **options) for sink in (0.5, 2.0)
    )
    told = "the port multiplies outputs by a factor by query, 1.* sum, as of a sink; "
    assert re.match(told, str(compare(port, reference)))
    assert compare(port, port).first is None


def test_other_sizes_are_refused():
    """A port of another model is none."""
    reference = recorded()
    for name, sizes in (
        ("layers", np.s_[:, :1]),
        ("sequences", np.s_[:1]),
        ("tokens: numbers of queries and keys", np.s_[..., :20, :]),
    ):
        smaller = {n: array[sizes] for n, array in reference.items()}
        smaller["weights"] = smaller["weights"][..., : smaller["k"].shape[-2]]
        with pytest.raises(InputError, match=f"must have the reference's {name}"):
            compare(smaller, reference)
    with pytest.raises(InputError, match=r"^reference must be what"):
        compare(reference, None)
    percent = reference | {"weights": 100.0 * reference["weights"]}
    with pytest.raises(InputError, match=r"^reference: weights must add up to 1 .*100"):
        compare(percent, percent)
    assert "multiplies weights by 100;" in str(compare(percent, reference))
    with pytest.raises(InputError, match=r"^port: k must be an array, got None"):
        compare({"q": reference["q"]}, reference)


def test_a_key_of_the_future_is_seen_where_weights_are_small():
    """Of all heads and sequences, whose scores have standard deviations about 3."""
    masks = [np.triu(np.ones((48, 48)), n) > 0.0 for n in (2, 1)]
    sides = [run(Size(*SIZES["small"], 48), scale=1.1, hidden=one) for one in masks]
    assert "a mask of offsets -47 to 1 " in str(compare(*sides))


def test_windows_of_the_wrong_layers():
    """What is done in a layer is not said of another."""
    found = compare(recorded(windows=(30, 4)), recorded(windows=(4, 30)))
    first, second = str(found).splitlines()
    assert "has a causal mask where the reference has" in first
    assert first.endswith("layer 0; 1 more:")
    assert "a window of 4 keys where the reference has" in second
    assert second.endswith("layer 1")

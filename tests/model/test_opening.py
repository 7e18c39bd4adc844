"""Files of queries and keys: what is read, and the one line that refuses the rest."""

import json
import pickle
import tempfile
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from montecarlo.errors import InputError
from montecarlo.model import observe
from montecarlo.model.observing import observe_model, tidy
from montecarlo.model.opening import open_files

SHAPE = (3, 2, 4, 6, 5)


def arrays(seed=1, kind=np.float64):
    """Return queries and keys of a small model."""
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=SHAPE).astype(kind) for _ in "qk")


def opened(paths, tmp_path, **options):
    """Open files with a folder to unpack to."""
    scratch = Path(tempfile.mkdtemp(dir=tmp_path))
    return open_files(list(paths), scratch, **options)


def table(paths, tmp_path, **options):
    """Return the table of files."""
    return tidy(observe_model(opened(paths, tmp_path, **options), np.sqrt(5.0)))


def write_npy(tmp_path, q, k):
    """Write two files of one array."""
    paths = [tmp_path / "q.npy", tmp_path / "k.npy"]
    for path, array in zip(paths, (q, k), strict=True):
        np.save(path, array)
    return paths


def write_npz(tmp_path, q, k, name="qk.npz"):
    """Write one archive."""
    np.savez_compressed(tmp_path / name, q=q, k=k, other=np.arange(3))
    return [tmp_path / name]


#: The format's names of types, and what turns numbers into bytes of them.
TYPES = {
    "F16": lambda a: a.astype("<f2").tobytes(),
    "BF16": lambda a: (a.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes(),
    "F32": lambda a: a.astype("<f4").tobytes(),
    "F64": lambda a: a.astype("<f8").tobytes(),
}


def write_safetensors(path, tensors, kind="F32"):
    """Write a safetensors file by its specification."""
    header, body = {"__metadata__": {"format": "np"}}, b""
    for name, array in tensors.items():
        content = TYPES[kind](array)
        header[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [len(body), len(body) + len(content)],
        }
        body += content
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    return [path]


def test_npy_and_npz_are_read(tmp_path):
    """Both kinds give what the arrays in hand give; so does the other order."""
    q, k = arrays()
    expected = observe(q, k)
    assert table(write_npy(tmp_path, q, k), tmp_path).equals(expected)
    assert table(write_npz(tmp_path, q, k), tmp_path).equals(expected)
    turned = write_npy(tmp_path, np.asfortranarray(q), k.astype(">f8"))
    assert table(turned, tmp_path).equals(expected)


@pytest.mark.parametrize("kind", TYPES)
def test_safetensors_are_read(tmp_path, kind):
    """Every type gives the numbers that its bytes stand for."""
    q, k = arrays()
    paths = write_safetensors(tmp_path / "m.safetensors", {"q": q, "k": k}, kind)
    model = opened(paths, tmp_path)
    read, _ = model.read(model.heads()[5], 2)
    error = {"F16": 2**-11, "BF16": 2**-7, "F32": 2**-24, "F64": 0.0}[kind]
    assert np.abs(read / q[2, 1, 1] - 1.0).max() <= error
    assert (read == q[2, 1, 1]).all() == (kind == "F64")


def test_names_count_layers_and_heads(tmp_path):
    """A pattern finds queries and keys, also in several files, and their labels."""
    q, k = arrays()
    sides = {"query": q, "key": k}
    paths = []
    for layer in (0, 1):
        tensors = {
            f"model.{layer + 3}.h{head}.{side}.out": array[:, layer, head]
            for side, array in sides.items()
            for head in range(4)
        }
        path = tmp_path / f"{layer}.safetensors"
        paths += write_safetensors(path, {**tensors, "model.bias": q}, "F64")
    found = table(paths, tmp_path, names="model.{layer}.h{head}.{side}.out")
    expected = observe(q, k)
    drawn = expected["quantity"].str.contains("permuted|dependence")
    assert set(found["layer"]) == {"all", 3, 4}
    values, wanted = (t["value"][~drawn].to_numpy() for t in (found, expected))
    assert np.array_equal(values, wanted, equal_nan=True)  # rows too short for a check


def test_archives_are_further_sequences(tmp_path):
    """Several archives are sequences one after another, of any length."""
    q, k = arrays()
    paths = write_npz(tmp_path, q[:2], k[:2], "a.npz")
    paths += write_npz(tmp_path, q[2:], k[2:], "b.npz")
    expected = observe(q, k)
    assert table(paths, tmp_path).equals(expected)
    short = write_npz(tmp_path, q[2:, :, :, :4], k[2:, :, :, :4], "c.npz")
    assert not table([paths[0], *short], tmp_path).equals(expected)


def test_half_precision_in_hand():
    """float16 and float32 arrays are computed with in float64."""
    q, k = arrays(kind=np.float16)
    same = observe(q.astype(np.float64), k.astype(np.float64))
    assert observe(q, k).equals(same)
    assert observe(q.astype(np.float32), k).equals(same)


def spoiled(array, value):
    """Return an array with one entry put wrong."""
    array = array.copy()
    array[2, 1, 3, 4, 0] = value
    return array


Q, K = arrays()
LEFT = np.arange(SHAPE[-1]) < 2
BAD_ARRAYS = [
    (
        "nan",
        spoiled(Q, np.nan),
        K,
        "q must be finite, got nan at sequence 2, layer 1, ",
    ),
    ("inf", Q, spoiled(K, -np.inf), "head 3, token 4, d 0"),
    ("huge", Q * 1e80, K, "fourth powers"),
    ("d", Q, K[..., :4], "agree along the axis 'd', got 5 and 4"),
    ("layers", Q, K[:, :1], "agree along the axis 'layer', got 2 and 1"),
    ("sequences", Q[:2], K, "agree along the axis 'sequence', got 2 and 3"),
    ("heads", Q, K[:, :, :3], "axis 'head' as q, 4, or a part that divides it, got 3"),
    ("more heads", Q[:, :, :2], K, "along the axis 'head'"),
    ("one token", Q[:, :, :, :1], K, "q must have at least 2 along the axis 'token'"),
    ("one key", Q, K[:, :, :, :1], "k must have at least 2 along the axis 'token'"),
    ("constant q", Q * 0 + 1.5, K, "q must vary from token to token, got zero var"),
    ("constant k", Q, K * 0.0, "k must vary from token to token"),
    ("empty", Q[:, :0], K[:, :0], "its axis 'layer' is empty"),
    ("no tokens", Q[:, :, :, :0], K, "its axis 'token' is empty"),
    ("dimensions", Q[0], K[0], "must have the axes sequence,layer,head,token,d, got"),
    ("whole numbers", Q.astype(int), K, "q must hold floating-point numbers, got"),
    ("complex", Q, K * 1j, "k must hold floating-point numbers"),
    ("objects", Q.astype(object), K, "q must hold floating-point numbers"),
    ("words", np.array(["a"]), K, "q must hold floating-point numbers"),
    ("masked", np.ma.masked_greater(Q, 3.0), K, "q must have no masked entries"),
    ("tenths", Q, K * 0.0 + 0.1, "k must vary from token to token"),
    ("no scores", Q * LEFT, K * ~LEFT, "scores that vary, got the same for every"),
]


@pytest.mark.parametrize(
    ("q", "k", "message"), [c[1:] for c in BAD_ARRAYS], ids=[c[0] for c in BAD_ARRAYS]
)
def test_bad_arrays_are_refused(q, k, message):
    """One line names the array, the axis, and what was expected."""
    with pytest.raises(ValueError, match=r"^[^\n]+$") as error:
        observe(q, k)
    assert message in str(error.value)


def test_causal_needs_as_many_keys():
    """A causal mask has no meaning where queries and keys differ in number."""
    with pytest.raises(ValueError, match="axis 'token' where attention is causal"):
        observe(Q, K[:, :, :, :4], causal=True)
    assert len(observe(Q, K[:, :, :, :4]))


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (("sequence", "layer", "head", "token"), "axes must have 'd'"),
        (("token", "token", "head", "layer", "d"), "different ones among"),
        (("word", "layer", "head", "token", "d"), "among sequence, layer, head"),
        (("batch", "sequence", "token", "d"), "different ones among"),
    ],
)
def test_bad_axes_are_refused(axes, message):
    """Axes are known, different, and the needed ones are there."""
    with pytest.raises(ValueError, match=message):
        observe(Q, K, axes=axes)


@pytest.mark.parametrize("divisor", ["root", 0.0, -1.0, "nan", "inf", 1e30, 1e-200])
def test_bad_divisors_are_refused(divisor):
    """A divisor is a known name or a positive number, none that is absurd."""
    with pytest.raises(ValueError, match="divisor must"):
        observe(Q, K, divisor=divisor)


@pytest.mark.parametrize("seed", [-1, 1.5])
def test_bad_seeds_are_refused(seed):
    """A seed is a whole number; the message says whose."""
    with pytest.raises(ValueError, match="seed must be a whole number of at least 0"):
        observe(Q, K, seed=seed)


def test_axes_are_no_text():
    """One text would be taken for its letters."""
    with pytest.raises(InputError, match="axes must be a sequence of names"):
        observe(Q, K, axes="sequence,token,d")


class Trap:
    """Something that must not be loaded."""

    def __reduce__(self):
        """Fail when unpickled."""
        return pytest.fail, ("unpickled",)


def bad_files(folder):
    """Yield names, files and what the line that refuses them says."""
    q, k = arrays()
    text = folder / "text.npy"
    text.write_text("q,k\n1,2\n")
    yield "text as npy", [text, text], "must be an array of NumPy"
    text = folder / "text.npz"
    text.write_text("q,k\n1,2\n")
    yield "text as npz", [text], "must be an archive of NumPy"
    text = folder / "text.safetensors"
    text.write_text("q,k\n1,2\n3,4\n5,6\n")
    yield "text as safetensors", [text], "must be a safetensors file"
    text = folder / "text.csv"
    text.write_text("q,k\n1,2\n")
    yield "another kind", [text], "file must end in .npz, .npy, .safetensors"
    yield "missing", [folder / "none.npz"], "file must be there"
    np.save(folder / "trap.npy", np.array([Trap()], dtype=object))
    yield "objects", [folder / "trap.npy"] * 2, "Python objects, which are never loaded"
    np.savez(folder / "trap.npz", q=np.array([Trap()], dtype=object), k=k)
    yield "objects in npz", [folder / "trap.npz"], "Python objects"
    (folder / "pickle.npy").write_bytes(pickle.dumps(Trap()))
    yield "a pickle", [folder / "pickle.npy"] * 2, "must be an array of NumPy"
    np.save(folder / "whole.npy", np.ones(SHAPE, dtype=int))
    yield "whole numbers", [folder / "whole.npy"] * 2, "must hold float16, float32"
    np.savez(folder / "names.npz", query=q, key=k)
    yield "other names", [folder / "names.npz"], "an array q, got query.npy, key"
    with zipfile.ZipFile(folder / "not.npz", "w") as archive:
        archive.writestr("q.npy", "no array")
    yield "no array in npz", [folder / "not.npz"], "must be an array of NumPy"
    write_npy(folder, q, k)
    content = (folder / "q.npy").read_bytes()
    (folder / "cut.npy").write_bytes(content[:-8])
    yield "cut off", [folder / "cut.npy", folder / "k.npy"], "the file is cut off"
    (folder / "head.npy").write_bytes(content[:40])
    yield "cut in the header", [folder / "head.npy"] * 2, "must be an array of NumPy"
    np.savez(folder / "short.npz", q=q, k=k)
    content = (folder / "short.npz").read_bytes()
    (folder / "short.npz").write_bytes(content[:-200])
    yield "npz cut off", [folder / "short.npz"], "must be an archive of NumPy"
    np.savez_compressed(folder / "spoilt.npz", q=q, k=k)
    content = bytearray((folder / "spoilt.npz").read_bytes())
    content[200:230] = bytes(30)
    (folder / "spoilt.npz").write_bytes(content)
    yield "npz spoilt", [folder / "spoilt.npz"], "must be an archive of NumPy"
    (folder / "braces.npy").write_bytes(
        (folder / "q.npy").read_bytes().replace(b"(3, 2, 4, 6, 5)", b"(3, 2, 4, |{, }")
    )
    yield "header of no sense", [folder / "braces.npy"] * 2, "an array of NumPy"
    np.save(folder / "record.npy", np.ones(SHAPE, dtype=[("x", "<f2")]))
    yield "records", [folder / "record.npy"] * 2, "must hold float16, float32"
    yield (
        "one npy",
        [folder / "k.npy"],
        "two, queries and then keys, with attention weights three",
    )
    yield "two kinds", [folder / "k.npy", folder / "names.npz"], "files must be of one"
    yield from bad_safetensors(folder, q, k)


def bad_safetensors(folder, q, k):
    """Yield the same for safetensors."""
    path = folder / "a.safetensors"
    write_safetensors(path, {"layer.0.q": q, "layer.0.k": k})
    yield "no such names", [path], "q must have a name of the pattern '{side}'"
    cut = folder / "cut.safetensors"
    whole = folder / "whole.safetensors"
    write_safetensors(whole, {"q": q, "k": k})
    content = whole.read_bytes()
    cut.write_bytes(content[:-4])
    yield "safetensors cut off", [cut], "bytes for its arrays, got"
    for name, old, new, message in (
        ("type", b'"F32"', b'"I32"', "must hold F16, BF16, F32, F64, got I32"),
        ("shape", b"[3, 2, 4, 6, 5]", b"[3, 2, 4, 6, 4]", "bytes for its shape"),
        ("negative", b"[3, 2, 4, 6, 5]", b"[-3,2, 4, 6, 5]", "a shape of counts"),
        ("header", b'{"dtype"', b'["dtype"', "its header is broken"),
        ("words", b"[3, 2, 4, 6, 5]", b'"32465"        ', "its header is broken"),
        ("endless", b"[3, 2, 4, 6, 5]", b"[Infinity,4,5] ", "its header is broken"),
        ("one offset", b"[0, 2880]", b"[0]      ", "its header is broken"),
        ("offsets", b'"data_offsets"', b'"data_offsetz"', "its header is broken"),
    ):
        assert old in content
        path = folder / f"{name}.safetensors"
        path.write_bytes(content.replace(old, new, 1))
        yield name, [path], message
    write_safetensors(folder / "twice.safetensors", {"q": q, "query": q, "k": k})
    yield "twice", [folder / "twice.safetensors"], "must stand once"


def test_bad_files_are_refused(tmp_path, subtests):
    """One line names the file or array, and what was expected; nothing is unpickled."""
    count = 0
    for name, paths, message in bad_files(tmp_path):
        with subtests.test(name):
            count += 1
            with pytest.raises(ValueError, match=r"^[^\n]+$") as error:
                opened(paths, tmp_path)
            assert message in str(error.value)
    assert count > 20


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("layers", "names must hold {side}"),
        ("{layer}.{layer}.{side}", "each once"),
        ("{block}.{side}", "each once"),
        ("{token}.{side}", "each once"),
    ],
)
def test_bad_patterns_are_refused(tmp_path, names, message):
    """A pattern names the side, and counts what can be counted."""
    paths = write_safetensors(tmp_path / "m.safetensors", {"q": Q, "k": K})
    with pytest.raises(ValueError, match=message):
        opened(paths, tmp_path, names=names)
    with pytest.raises(ValueError, match="names of arrays must name q and k"):
        opened(write_npz(tmp_path, Q, K), tmp_path, names="{side}")
    with pytest.raises(ValueError, match=r"with \.npz or \.safetensors files only"):
        opened(write_npy(tmp_path, Q, K), tmp_path, names="{side}")


def test_a_missing_layer_is_seen(tmp_path):
    """Every layer and head that names count has to be there, on both sides."""
    tensors = {f"{la}.{side}": Q[:, 0] for la in (0, 1) for side in "qk"}
    del tensors["1.k"]
    paths = write_safetensors(tmp_path / "m.safetensors", tensors)
    with pytest.raises(ValueError, match="agree along the axis 'layer', got 2 and 1"):
        opened(paths, tmp_path, names="{layer}.{side}")


def test_sequences_in_names_may_differ_in_tokens_alone(tmp_path):
    """Where names count sequences, these have any length, and the same heads."""
    rng = np.random.default_rng(3)

    def model(sizes):
        tensors = {
            f"s{number}.{side}": rng.normal(size=size)
            for number, size in enumerate(sizes)
            for side in "qk"
        }
        return write_safetensors(tmp_path / "m.safetensors", tensors, "F64")

    options = {"names": "s{sequence}.{side}", "axes": ("head", "token", "d")}
    fine = opened(model([(2, 6, 8), (2, 9, 8)]), tmp_path, **options)
    assert len(fine.sequences) == 2
    for sizes, axis in (
        ([(2, 6, 8), (4, 6, 8)], "head"),
        ([(2, 6, 8), (2, 6, 4)], "d"),
    ):
        with pytest.raises(ValueError, match=f"they differ along '{axis}'"):
            opened(model(sizes), tmp_path, **options)


def test_key_heads_of_other_names_are_compared(tmp_path):
    """Heads of queries meet heads of keys by their order, also in the checks."""
    rng = np.random.default_rng(4)
    tensors = {f"h{head}.q": rng.normal(size=(8, 4)) for head in (0, 1)}
    for tokens, message in ((5, "attention is causal"), (1, "at least 2 along")):
        tensors["h7.k"] = rng.normal(size=(tokens, 4))
        paths = write_safetensors(tmp_path / "m.safetensors", tensors)
        with pytest.raises(ValueError, match=message):
            opened(
                paths,
                tmp_path,
                names="h{head}.{side}",
                axes=("token", "d"),
                causal=True,
            )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["npy", "safetensors"])
def test_memory_is_that_of_a_block(tmp_path, kind):
    """Far less than the file is held at any time."""
    shape = (24, 2, 8, 128, 64)
    rng = np.random.default_rng(1)
    q, k = (rng.normal(size=shape).astype(np.float32) for _ in "qk")
    if kind == "npy":
        paths = write_npy(tmp_path, q, k)
    else:
        paths = write_safetensors(tmp_path / "m.safetensors", {"q": q, "k": k})
    size = sum(path.stat().st_size for path in paths)
    model = opened(paths, tmp_path)
    tracemalloc.start()
    observe_model(model, 8.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < size / 3


@pytest.mark.parametrize(
    ("shape", "proposed"),
    [
        ((40, 8), "token,d"),
        ((4, 40, 8), "head,token,d"),
        ((40, 4, 8), "token,head,d"),
        ((2, 4, 40, 8), "sequence,head,token,d"),
        ((2, 40, 4, 8), "sequence,token,head,d"),
    ],
)
def test_axes_are_proposed(shape, proposed):
    """By the number of axes; models have more tokens than heads."""
    q = np.random.default_rng(1).normal(size=shape)
    with pytest.raises(InputError, match=f"perhaps --axes {proposed}"):
        observe(q, q + 1.0)
    assert len(observe(q, -q, axes=proposed.split(",")))


def test_a_batch_is_sequences():
    """By the word that libraries have for it."""
    q, k = Q[:, 0], K[:, 0]
    frame = observe(q, k, axes=("batch", "head", "token", "d"))
    assert frame.equals(observe(q, k, axes=("sequence", "head", "token", "d")))


def test_swapped_heads_and_tokens_are_asked_about():
    """More heads than tokens: only if somebody says so."""
    q = np.random.default_rng(1).normal(size=(2, 1, 30, 4, 8))
    told = "if these are swapped, type --axes sequence,layer,token,head,d"
    with pytest.raises(InputError, match=told):
        observe(q, -q)
    frame = observe(q, -q, axes=("sequence", "layer", "head", "token", "d"))
    assert frame["head"].nunique() == 31  # and their mean

"""Files of arrays: what is read, and the one line that refuses the rest."""

import io
import json
import os
import pickle
import socket
import sys
import tempfile
import time
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from montecarlo.errors import InputError
from montecarlo.model import observe
from montecarlo.model.files import (
    npy_tensor,
    open_files,
    safetensors_file,
    safetensors_tensor,
)
from montecarlo.model.observing import observe_model, tidy
from tests.commands import observe as main

SHAPE = (3, 2, 4, 6, 5)
Q, K = (np.random.default_rng(n).normal(size=SHAPE) for n in (1, 2))
WEIGHTS = np.random.default_rng(3).random((*SHAPE[:4], SHAPE[3]))


def opened(paths, tmp_path, **options):
    """Open files with a folder to unpack to."""
    return open_files(list(paths), Path(tempfile.mkdtemp(dir=tmp_path)), **options)


def read_whole(model):
    """Read every array of a model."""
    for head in model.heads():
        for sequence in range(len(model.sequences)):
            model.read_rows(head, sequence, 4)


def refused(tmp_path, *paths, **options):
    """Return the line that files are refused with, which can be printed."""
    with pytest.raises(InputError) as error:
        read_whole(opened(paths, tmp_path, **options))
    line = str(error.value)
    assert line.isprintable()
    assert len(line) < 700
    return line


def table(paths, tmp_path, **options):
    """Return the table of files."""
    return tidy(observe_model(opened(paths, tmp_path, **options), np.sqrt(5.0)))


def write_npy(tmp_path, **arrays):
    """Write files of one array; returns their paths."""
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    return [tmp_path / f"{name}.npy" for name in arrays]


def write_npz(tmp_path, name="qk.npz", save=np.savez_compressed, **arrays):
    """Write one archive; returns its path, alone."""
    save(tmp_path / name, **arrays)
    return [tmp_path / name]


def write_safetensors(tmp_path, tensors, kind=np.float64, name="m.safetensors"):
    """Write a safetensors file; returns its path, alone."""
    held = {name: np.asarray(a, dtype=kind, order="C") for name, a in tensors.items()}
    save_file(held, tmp_path / name)
    return [tmp_path / name]


def write_header(path, header, body=b""):
    """Write a safetensors file with a header as it is typed; returns its path."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    return path


def described(start, stop, shape=(1, 1, 1, 2, 2), dtype="F32"):
    """Return what a header says of an array."""
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, stop]}


def npy_bytes(array):
    """Return the bytes of an array's file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_npy_and_npz_are_read(tmp_path):
    """Both kinds give what the arrays in hand give; so do other orders of bytes."""
    expected = observe(Q, K)
    assert table(write_npy(tmp_path, q=Q, k=K), tmp_path).equals(expected)
    paths = write_npz(tmp_path, q=Q, k=K, other=np.arange(3))
    assert table(paths, tmp_path).equals(expected)
    turned = write_npy(tmp_path, q=np.asfortranarray(Q), k=K.astype(">f8"))
    assert table(turned, tmp_path).equals(expected)


ERRORS = {
    np.float16: 2**-11,
    ml_dtypes.bfloat16: 2**-8,
    np.float32: 2**-24,
    np.float64: 0.0,
}


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("suffix", ["npy", "safetensors"])
def test_every_format_is_read(tmp_path, kind, suffix):
    """Numbers are those of the bytes: whole sequences, and rows at distances."""
    arrays = {"q": Q.astype(kind), "k": K.astype(kind)}
    if suffix == "npy":
        paths = write_npy(tmp_path, **arrays)
    else:
        paths = write_safetensors(tmp_path, arrays, kind)
    model = opened(paths, tmp_path)
    read, _ = model.read(model.heads()[5], 2)
    assert (read == Q[2, 1, 1].astype(kind).astype(float)).all()
    assert np.abs(read / Q[2, 1, 1] - 1.0).max() <= ERRORS[kind]
    assert (model.read_rows(model.heads()[5], 2, 2).queries == read[2::3]).all()


def test_a_missing_library_is_named(tmp_path, monkeypatch, capsys):
    """With the extra that has it, in one line."""
    (path,) = write_safetensors(tmp_path, {"q": Q, "k": K})
    monkeypatch.setitem(sys.modules, "safetensors", None)
    assert main([str(path), "--output", str(tmp_path / "o")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install 'montecarlo-attention[safetensors]'" in line


def test_names_count_layers_and_heads(tmp_path):
    """A pattern finds queries and keys, also in several files, and their labels."""
    paths = []
    for layer in (0, 1):
        tensors = {
            f"model.{layer + 3}.h{head}.{side}.out": array[:, layer, head]
            for side, array in (("query", Q), ("key", K))
            for head in range(4)
        }
        tensors["model.bias"] = Q
        paths += write_safetensors(tmp_path, tensors, name=f"{layer}.safetensors")
    found = table(paths, tmp_path, names="model.{layer}.h{head}.{side}.out")
    expected = observe(Q, K)
    drawn = expected["quantity"].str.contains("permuted|dependence")
    assert set(found["layer"]) == {"all", 3, 4}
    values, wanted = (t["value"][~drawn].to_numpy() for t in (found, expected))
    assert np.array_equal(values, wanted, equal_nan=True)  # rows too short for a check


def test_archives_are_further_sequences(tmp_path):
    """Several archives are sequences one after another, of any length."""
    paths = write_npz(tmp_path, "a.npz", q=Q[:2], k=K[:2])
    paths += write_npz(tmp_path, "b.npz", q=Q[2:], k=K[2:])
    assert table(paths, tmp_path).equals(observe(Q, K))
    short = write_npz(tmp_path, "c.npz", q=Q[2:, :, :, :4], k=K[2:, :, :, :4])
    assert not table([paths[0], *short], tmp_path).equals(observe(Q, K))
    other = write_npz(tmp_path, "d.npz", q=Q, k=K, weights=WEIGHTS)
    line = refused(tmp_path, paths[0], *other)
    assert "must hold the same beside q and k, got weights after nothing" in line


def test_arrays_of_an_archive_by_name(tmp_path):
    """Names as other programs give them; what is not read is told."""
    paths = write_npz(tmp_path, query=Q, key=K, probs=WEIGHTS, v=K)
    model = opened(paths, tmp_path, names="query, key, weights=probs")
    assert (model.source, model.unread) == ("weights", ["v"])
    model = opened(paths, tmp_path, names="query, key")
    assert (model.source, sorted(model.unread)) == (None, ["probs", "v"])


NAMES = "must be those of q and of k, and then weights=NAME"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("query", "must name q and k"),
        ("query,key,probs", NAMES),
        ("query,key,p=probs", NAMES),
        ("query,key,weights=", NAMES),
        ("q=a,q=b", NAMES),
        ("query,key,weights=probs", "must hold an array query, got q.npy, k.npy"),
    ],
)
def test_bad_names_are_refused(tmp_path, names, message):
    """What is no list of names, or names nothing."""
    paths = write_npz(tmp_path, q=Q, k=K)
    assert message in refused(tmp_path, *paths, names=names)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("layers", "names must hold {side}"),
        ("{layer}.{layer}.{side}", "each once"),
        ("{block}.{side}", "each once"),
        ("{token}.{side}", "each once"),
        ("{layer}.{side}", "q must have a name of the pattern '{layer}.{side}'"),
    ],
)
def test_bad_patterns_are_refused(tmp_path, names, message):
    """A pattern names the side, and counts what can be counted."""
    paths = write_safetensors(tmp_path, {"q": Q, "k": K})
    assert message in refused(tmp_path, *paths, names=names)
    line = refused(tmp_path, *write_npy(tmp_path, q=Q, k=K), names=names)
    assert "with .npz or .safetensors files only" in line


def test_what_names_count_has_to_be_there(tmp_path):
    """Every layer on both sides, and each name once; axes do not count it again."""
    tensors = {f"{la}.{side}": Q[:, 0] for la in (0, 1) for side in "qk"}
    paths = write_safetensors(tmp_path, tensors)
    line = refused(tmp_path, *paths, names="{layer}.{side}", axes=("layer", "token"))
    assert "axes must not name 'layer', which the names count" in line
    assert "1.q must stand once" in refused(
        tmp_path,
        *paths,
        *write_safetensors(tmp_path, {"1.q": Q[:, 0]}, name="n.safetensors"),
        names="{layer}.{side}",
    )
    del tensors["1.k"]
    paths = write_safetensors(tmp_path, tensors)
    line = refused(tmp_path, *paths, names="{layer}.{side}")
    assert "agree along the axis 'layer', got 2 and 1" in line


def test_sequences_in_names_may_differ_in_tokens_alone(tmp_path):
    """Where names count sequences, these have any length, and the same heads."""
    options = {"names": "s{sequence}.{side}", "axes": ("head", "token", "d")}

    def model(*sizes):
        tensors = {
            f"s{number}.{side}": np.random.default_rng(3).normal(size=size)
            for number, size in enumerate(sizes)
            for side in "qk"
        }
        return write_safetensors(tmp_path, tensors)

    fine = opened(model((2, 6, 8), (2, 9, 8)), tmp_path, **options)
    assert len(fine.sequences) == 2
    for other, axis in (((4, 6, 8), "head"), ((2, 6, 4), "d")):
        line = refused(tmp_path, *model((2, 6, 8), other), **options)
        assert f"they differ along '{axis}'" in line


def test_key_heads_of_other_names_are_compared(tmp_path):
    """Heads of queries meet heads of keys by their order, also in the checks."""
    tensors = {f"h{h}.q": np.random.default_rng(h).normal(size=(8, 4)) for h in (0, 1)}
    options = {"names": "h{head}.{side}", "axes": ("token", "d"), "causal": True}
    for tokens, message in ((5, "attention is causal"), (1, "at least 2 along")):
        tensors["h7.k"] = np.ones((tokens, 4))
        paths = write_safetensors(tmp_path, tensors)
        assert message in refused(tmp_path, *paths, **options)


class Trap:
    """Something that must not be loaded."""

    def __reduce__(self):
        """Fail when unpickled."""
        return pytest.fail, ("unpickled",)


def bad_files(folder):
    """Yield names, files and what the line that refuses them says."""
    for suffix, message in (
        ("npy", "must be an array of NumPy"),
        ("npz", "must be an archive of NumPy"),
        ("safetensors", "must be a safetensors file"),
        ("csv", "file must end in .npz, .npy, .safetensors"),
    ):
        text = folder / f"text.{suffix}"
        text.write_text("q,k\n1,2\n3,4\n5,6\n")
        yield f"text as {suffix}", [text] * (2 if suffix == "npy" else 1), message
    yield "missing", [folder / "none.npz"], "file must be a readable file"
    trap = np.array([Trap()], dtype=object)
    pair = write_npy(folder, trap=trap, k=K)
    yield "objects", pair, "Python objects, which are never loaded"
    yield "objects in npz", write_npz(folder, "trap.npz", q=trap, k=K), "Python objects"
    (folder / "pickle.npy").write_bytes(pickle.dumps(Trap()))
    yield "a pickle", [folder / "pickle.npy"] * 2, "must be an array of NumPy"
    yield "whole numbers", write_npy(folder, i=Q.astype(int), k=K), "must hold float16"
    other = write_npz(folder, "names.npz", query=Q, key=K)
    yield "other names", other, "an array q, got query.npy, key"
    with zipfile.ZipFile(folder / "not.npz", "w") as archive:
        archive.writestr("q.npy", "no array")
    yield "no array in npz", [folder / "not.npz"], "must be an array of NumPy"
    (short,) = write_npz(folder, "short.npz", np.savez, q=Q, k=K)
    short.write_bytes(short.read_bytes()[:-200])
    yield "npz cut off", [short], "must be an archive of NumPy"
    (spoilt,) = write_npz(folder, "spoilt.npz", q=Q, k=K)
    content = bytearray(spoilt.read_bytes())
    content[200:230] = bytes(30)
    spoilt.write_bytes(content)
    yield "npz spoilt", [spoilt], "must be an array of NumPy"
    for count in (1, 5):
        told = f"must be two, queries and then keys, .* got {count}"
        yield f"{count} npy", [pair[1]] * count, told
    yield "two kinds", [pair[1], spoilt], "files must be of one"
    twice = {"q": Q, "query": Q, "k": K}
    yield "twice", write_safetensors(folder, twice), "query must stand once"
    whole = write_safetensors(folder, {"q": Q, "k": K}, int, "i.safetensors")
    yield (
        "whole numbers in safetensors",
        whole,
        "must hold F64, F32, F16, BF16, got I64",
    )


def test_bad_files_are_refused(tmp_path, subtests):
    """One line names the file or array, and what was expected; nothing is unpickled."""
    for name, paths, message in bad_files(tmp_path):
        with subtests.test(name), pytest.raises(InputError, match=message):
            read_whole(opened(paths, tmp_path))


def changed_header(old, new):
    """Return what exchanges a part of a header."""

    def change(content):
        length = int.from_bytes(content[8:10], "little")
        start, body = content[10 : 10 + length], content[10 + length :]
        assert old in start
        text = start.replace(old, new).rstrip().ljust(length - 1) + b"\n"
        return content[:8] + len(text).to_bytes(2, "little") + text + body

    return change


def whole_header(header):
    """Return what puts something in the place of a header."""
    start = len(header).to_bytes(2, "little") + header
    return lambda content: content[:8] + start + content[10:]


ENTRIES = "must hold float16, float32, float64, bfloat16, got entries of type"
NO_ARRAY = "q (q.npy) must be an array of NumPy, got"
MALFORMED_NPY = {
    "version 0": (lambda b: b[:6] + bytes(2) + b[8:], "version 0.0 of the format"),
    "version 9": (lambda b: b[:6] + b"\x09\x01" + b[8:], "version 9.1 of the format"),
    # two bytes that are no number of their own are no bfloat16
    "bytes": (changed_header(b"'<f8'", b"'(2,)i1'"), ENTRIES),
    "pairs": (changed_header(b"'<f8'", b"('i1', (2,))"), ENTRIES),
    "record": (changed_header(b"'<f8'", b"[('a', 'i1'), ('b', 'i1')]"), ENTRIES),
    "two": (changed_header(b"'<f8'", b"'<f4,<f4'"), ENTRIES),
    "f16": (changed_header(b"'<f8'", b"'<f16'"), ENTRIES),
    "V3": (changed_header(b"'<f8'", b"'|V3'"), ENTRIES),
    "objects": (changed_header(b"'<f8'", b"'|O'"), "Python objects"),
    "no type": (changed_header(b"'<f8'", b"8"), NO_ARRAY),
    **{
        str(shape): (changed_header(b"(3, 2, 4, 6, 5)", shape), message)
        for shape, message in (
            (b"(3.0, 2, 4, 6, 5)", NO_ARRAY),
            (b"('3', 2, 4, 6, 5)", NO_ARRAY),
            (b"(-3, -2, 4, 6, 5)", "must have a shape of counts"),
            (b"(1" + b"0" * 30 + b", 2, 4, 6, 5)", "must have a shape of counts"),
            (b"(3, 2, 4, 6, 5, 1, 1, 1, 1)", "must have a shape of counts"),
            (b"(True, 2, 4, 6, 5)", "must have a shape of counts"),
        )
    },
    "brackets": (whole_header(b"((" * 4000), NO_ARRAY),
    "signs": (whole_header(b"-" * 9000 + b"1"), NO_ARRAY),
    "one key": (whole_header(b"{'descr': 1}"), NO_ARRAY),
    "order": (changed_header(b"False", b"0"), NO_ARRAY),
    "list": (whole_header(b"[1, 2, 3]"), NO_ARRAY),
    "no text": (whole_header(b"\xff\x00"), NO_ARRAY),
    "cut header": (lambda b: b[:40], NO_ARRAY),
    "cut": (
        lambda b: b[:-8],
        "must have 5760 bytes for its shape (3, 2, 4, 6, 5), got",
    ),
    "twice": (
        lambda b: b + b,
        "must have 5760 bytes for its shape (3, 2, 4, 6, 5), got",
    ),
}


@pytest.mark.parametrize("case", MALFORMED_NPY)
def test_malformed_npy_files(tmp_path, case):
    """Whatever stands in a header, one line says what was expected."""
    change, message = MALFORMED_NPY[case]
    paths = write_npy(tmp_path, q=Q, k=K)
    paths[0].write_bytes(change(paths[0].read_bytes()))
    assert message in refused(tmp_path, *paths)


@pytest.mark.parametrize("version", [(2, 0), (3, 0)])
def test_all_versions_of_npy_are_read(tmp_path, version):
    """Those that there are give the same array."""
    paths = write_npy(tmp_path, q=Q, k=K)
    with paths[0].open("wb") as file:
        np.lib.format.write_array(file, Q, version)
    model = opened(paths, tmp_path)
    assert np.array_equal(model.read(model.heads()[5], 2)[0], Q[2, 1, 1])


def archive(path, members, packing=zipfile.ZIP_DEFLATED):
    """Write an archive of members as they are, whose names may stand twice."""
    with zipfile.ZipFile(path, "w", packing) as file:
        for name, content in members:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("warnings.warn", lambda *_, **__: None)
                file.writestr(name, content)
    return path


MEMBERS = [("q.npy", npy_bytes(Q)), ("k.npy", npy_bytes(K))]
MALFORMED_NPZ = {
    "long": (
        [("x" * 60_000, b"") for _ in range(15)],
        "must hold an array q, got xxxx",
    ),
    "names": ([("q\x1b[31m\n.npy", MEMBERS[0][1])], r"got q\x1b[31m\n.npy"),
    "large": (
        [("q.npy", npy_bytes(np.zeros((1, 1, 1, 2**18, 65)))), MEMBERS[1]],
        "16777216 numbers of a sequence of a head",
    ),
    "short": (
        [("q.npy", MEMBERS[0][1][:-8]), MEMBERS[1]],
        "q of some.npz must have 5760 bytes for its shape (3, 2, 4, 6, 5), got 5752",
    ),
}


@pytest.mark.parametrize("case", MALFORMED_NPZ)
def test_malformed_archives(tmp_path, case):
    """What headers say that cannot be is refused, and nothing is unpacked."""
    members, message = MALFORMED_NPZ[case]
    path = archive(tmp_path / "some.npz", members)
    assert message in refused(tmp_path, path)
    assert not list(tmp_path.rglob("*.npy"))


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_every_packing_is_read(tmp_path, packing):
    """What Python unpacks; one that is spoilt is a broken archive as well."""
    path = archive(tmp_path / "qk.npz", MEMBERS, packing)
    assert table([path], tmp_path).equals(observe(Q, K))
    content = bytearray(path.read_bytes())
    content[60:90] = bytes(range(30))
    path.write_bytes(content)
    assert "must be an archive of NumPy, got a broken one" in refused(tmp_path, path)


@pytest.mark.parametrize("place", [0, 30, 400, -10])
def test_broken_archives_are_told_in_printable_words(tmp_path, place):
    """What stands in the place of a header, a name or the list's length."""
    (path,) = write_npz(tmp_path, save=np.savez, q=Q, k=K, weights=WEIGHTS)
    content = bytearray(path.read_bytes())
    content[place : place + 4] = b"\x00\xff\x1b\n"
    path.write_bytes(content)
    refused(tmp_path, path)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("cut", [8, 200])
def test_a_cut_last_array_is_refused(tmp_path, save, cut):
    """An archive that lost bytes before its list of members, which was moved up."""
    (path,) = write_npz(tmp_path, save=save, q=Q, k=K, weights=WEIGHTS)
    with zipfile.ZipFile(path) as file:
        start = file.start_dir
    content = bytearray(path.read_bytes())
    del content[start - cut : start]
    content[-6:-2] = (start - cut).to_bytes(4, "little")
    path.write_bytes(content)
    assert "must be an archive of NumPy, got a broken one" in refused(tmp_path, path)


BODY = np.arange(8, dtype="<f4").tobytes()
BROKEN = "must be a safetensors file, got a broken one: "
FIRST, SECOND = described(0, 16), described(16, 32)
TWICE = b'{"q":%s,"k":%s,"q":%s}' % tuple(
    json.dumps(one).encode() for one in (FIRST, SECOND, SECOND)
)
MALFORMED_SAFETENSORS = {
    "same key": (TWICE, BODY, "invalid offset"),
    "same field": (b'{"q":{"dtype":"F32","dtype":"F16"}}', BODY, "duplicate field"),
    "same place": ({"q": FIRST, "k": FIRST}, BODY[:16], "invalid offset"),
    "overlap": ({"q": FIRST, "k": described(8, 24)}, BODY[:24], "invalid offset"),
    "gap": ({"q": FIRST, "k": described(20, 36)}, BODY * 2, "invalid offset"),
    "first gap": ({"q": SECOND, "k": described(32, 48)}, BODY * 2, "invalid offset"),
    "rest": ({"q": FIRST, "k": SECOND}, BODY + b"more", "not fully covered"),
    "cut": ({"q": FIRST, "k": SECOND}, BODY[:-1], "not fully covered"),
    "before": ({"q": described(-16, 0), "k": FIRST}, BODY, "integer `-16`"),
    "true": ({"q": described(0, 16, (True, 4))}, BODY[:16], "boolean `true`"),
    "long": ({"q": described(0, 16, (10**30, 2))}, BODY[:16], "invalid type"),
    "large": ({"q": described(0, 10**40)}, BODY[:16], "invalid type"),
    "deep": (b'{"q":' * 20_000, b"", "recursion limit"),
    "list": (b"[]", b"", "invalid type: sequence"),
    "bytes": ({"q": described(0, 12)}, BODY[:12], "invalid shape"),
    "type": ({"q": FIRST | {"dtype": "x" * 10**5}}, BODY[:16], "unknown variant"),
    "word": ({"q": FIRST | {"shape": ["x" * 50] * 50_000}}, BODY[:16], "invalid type"),
    "no offsets": ({"q": {"dtype": "F32", "shape": [4]}}, BODY[:16], "missing field"),
}


@pytest.mark.parametrize("case", MALFORMED_SAFETENSORS)
def test_malformed_safetensors_end_the_command_with_a_line(tmp_path, capsys, case):
    """Keys twice, arrays over each other, gaps and leavings: the format has none."""
    header, body, message = MALFORMED_SAFETENSORS[case]
    path = write_header(tmp_path / "m.safetensors", header, body)
    assert main([str(path), "--output", str(tmp_path / "o")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert BROKEN in line
    assert message in line
    assert len(line) < 600


def test_axes_of_safetensors_are_counted(tmp_path):
    """There are no arrays of so many."""
    entry = described(0, 4, [1] * 10**5)
    path = write_header(tmp_path / "m.safetensors", {"q": entry}, BODY[:4])
    assert "must have a shape of counts, at most 8" in refused(tmp_path, path)


@pytest.mark.parametrize("layer", ["1" * 30, "1" * 19])
def test_numbers_in_names_fit_in_a_table(tmp_path, layer):
    """What has more digits is no number of a layer."""
    paths = write_safetensors(tmp_path, {f"{layer}.q": Q, f"{layer}.k": K})
    line = refused(tmp_path, *paths, names="{layer}.{side}")
    assert "q must have a name of the pattern '{layer}.{side}'" in line


def test_names_are_read_in_little_time(tmp_path):
    """However long their digits are, and without counting all heads for each."""
    digits = "1" * 900
    names = {f"{digits}{n}.{digits}.{digits}x": [0.0] for n in range(20)}
    paths = write_safetensors(tmp_path, names)
    started = time.process_time()
    refused(tmp_path, *paths, names="{layer}.{head}.{sequence}.{side}")
    tensors = {f"{s}.{h}": np.zeros((1, 1, 2, 2)) for s in "qk" for h in range(5000)}
    paths = write_safetensors(tmp_path, tensors)
    assert len(opened(paths, tmp_path, names="{side}.{head}").heads()) == 5000
    assert time.process_time() - started < 5.0


def sparse_npy(tmp_path, shape):
    """Write arrays of zeros that take no room on the disk."""
    for name in "qk":
        with (tmp_path / f"{name}.npy").open("wb") as file:
            header = {"descr": "<f2", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + 2 * int(np.prod(shape, dtype=object)))
    return [tmp_path / "q.npy", tmp_path / "k.npy"]


def long_header(tmp_path, length):
    """Write a safetensors file whose header has so many bytes, of arrays of nothing."""
    path = tmp_path / "m.safetensors"
    entry = json.dumps(described(0, 0, (0,)))
    text = f'{{"{"x" * (length - len(entry) - 5)}":{entry}}}'
    return [write_header(path, text.encode())]


@pytest.mark.parametrize(
    ("write", "size", "told"),
    [
        (sparse_npy, (1, 1, 1, 2**30, 64), "16777216 numbers of a sequence of a head"),
        (sparse_npy, (1, 1, 1, 2**18, 65), "16777216 numbers of a sequence of a head"),
        (sparse_npy, (2**30, 1, 1, 2, 4), "262144 sequences"),
        (sparse_npy, (1, 2**12, 2**12, 2, 1), "131072 heads in all layers"),
        (long_header, 10_000_000, "must have a name of the pattern"),
    ],
)
def test_what_memory_cannot_hold_is_refused_by_headers(tmp_path, write, size, told):
    """In no time, and before anything is made of each sequence or head."""
    paths = write(tmp_path, size)
    started = time.process_time()
    tracemalloc.start()
    try:
        assert told in refused(tmp_path, *paths)
        assert tracemalloc.get_traced_memory()[1] < 500e6
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < 2.0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["npy", "safetensors"])
def test_memory_is_that_of_a_block(tmp_path, kind):
    """Far less than the file is held at any time."""
    rng = np.random.default_rng(1)
    shape = (24, 2, 8, 128, 64)
    arrays = {name: rng.normal(size=shape).astype(np.float32) for name in "qk"}
    if kind == "npy":
        paths = write_npy(tmp_path, **arrays)
    else:
        paths = write_safetensors(tmp_path, arrays, np.float32)
    size = sum(path.stat().st_size for path in paths)
    model = opened(paths, tmp_path)
    tracemalloc.start()
    observe_model(model, 8.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < size / 3


def special(path, kind):
    """Make a file that is none of a disk's; returns its path."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))
    return path


@pytest.mark.parametrize("kind", ["pipe", "device", "socket", "folder"])
@pytest.mark.parametrize("suffix", ["npz", "npy", "safetensors"])
def test_special_files_are_not_opened(tmp_path, monkeypatch, capsys, kind, suffix):
    """A pipe that nobody writes to would be waited for."""
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    path = special(tmp_path / f"one.{suffix}", kind)
    files = [str(path)] * (3 if suffix == "npy" else 1)
    assert main([*files, "--output", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    told = "readable" if kind == "folder" else "regular"
    assert f"file must be a {told} file" in line


def test_safetensors_are_read_to_their_end(tmp_path):
    """A slice that reaches beyond an array ends with it, as in NumPy."""
    (path,) = write_safetensors(tmp_path, {"q": Q})
    tensor = safetensors_tensor(safetensors_file(path), "q", path)
    for index in ((slice(0, 2**20),), (0, slice(1, 2**20)), (slice(None), 0)):
        np.testing.assert_array_equal(tensor.take(index), Q[index])


def test_booleans_are_no_shape(tmp_path, capsys):
    """Although they count as 0 and 1, also where the data are as long as they say."""
    paths = write_npy(tmp_path, q=Q[:1], k=K[:1])
    for old, new in ((b"(1, 2, 4", b"(True, 2, 4"), (b"(1, 2, 4", b"(1, 2, 4")):
        content = npy_bytes(Q[:1])
        paths[0].write_bytes(changed_header(old, new)(content))
        status = main([*map(str, paths), "--output", str(tmp_path / "o"), "--quiet"])
        lines = capsys.readouterr().err.splitlines()
        assert (status, len(lines)) == ((2, 1) if new != old else (0, 0))
    assert "must have a shape of counts" in refused_header(tmp_path, b"(True, False)")


def refused_header(tmp_path, shape):
    """Return the line that refuses a shape as it is typed."""
    path = tmp_path / "typed.npy"
    typed = b"{'descr': '<f8', 'fortran_order': False, 'shape': %s}\n" % shape
    path.write_bytes(whole_header(typed)(npy_bytes(Q)))
    with pytest.raises(InputError) as error:
        npy_tensor(path, "q")
    return str(error.value)


#: What may stand for a part of a header: numbers, types and code of all kinds.
PIECES = [
    "'<f8'",
    "'<f4'",
    "'>f2'",
    "'|V2'",
    "'|O'",
    "'f'",
    "''",
    "'<f99'",
    "'M8[ns]'",
    "'M8[25s/'",
    "'<U3'",
    "'S-1'",
    "'(2,)f4'",
    "'f4,f4'",
    "'f4,,'",
    "b'<f8'",
    "None",
    "True",
    "0",
    "1",
    "-1",
    "1.5",
    "1j",
    "2**9",
    "1e999",
    "[]",
    "[[]]",
    "[()]",
    "()",
    "(())",
    "{}",
    "{1}",
    "[1]",
    "('f8',)",
    "('f8',2)",
    "('f8',(2,))",
    "('V8','f8')",
    "('f8',{})",
    "[('a','f8')]",
    "[('a',)]",
    "[('',)]",
    "[('a','f8',-1)]",
    "[(1,2)]",
    "[(('a','b'),'f8')]",
    "{'a':1}",
    "(3,2,4,6,5)",
    "(3,2,True,4,6,5)",
    "(True,2)",
    "(0,)",
    "(-1,)",
    "(2**70,)",
    "(3L,)",
    "(3,,)",
    "((1,),)",
    "...",
    "x",
    "__import__",
    "lambda",
    "f''",
    "'a'",
    '"\x00"',
    "'\\x00'",
    "\\",
    "#",
    "`",
    "$",
    "(",
    "[",
    "{",
    "'''",
    "%s",
]
NAMED = ("'descr'", "'fortran_order'", "'shape'", "'more'", "descr", "1", "[]")


def header_of(rng):
    """Return a header whose parts are whatever may stand there, or cut, or turned."""
    parts = dict(zip(NAMED, ("'<f8'", "False", "(3, 2, 4, 6, 5)"), strict=False))
    for _ in range(rng.integers(1, 3)):
        parts[NAMED[min(int(rng.exponential(1.2)), 6)]] = str(rng.choice(PIECES))
    text = "{" + ", ".join(f"{name}: {part}" for name, part in parts.items()) + "}"
    if rng.random() < 0.2:
        text = text[: rng.integers(len(text))]
    content = bytearray(text.encode() + b"\n")
    for _ in range(rng.integers(0, 3) * rng.integers(0, 2)):
        content[rng.integers(len(content))] = rng.integers(256)
    return bytes(content)


def test_whatever_stands_in_a_header(tmp_path):
    """It is read, or refused in one line: nothing else comes of NumPy's reader."""
    rng = np.random.default_rng(1)
    path, read = tmp_path / "q.npy", 0
    for _ in range(2000):
        header = header_of(rng)
        start = [b"\x93NUMPY", bytes([rng.integers(1, 4), 0])]
        size = len(header).to_bytes(2 if start[1][0] == 1 else 4, "little")
        path.write_bytes(b"".join([*start, size, header, Q.tobytes()]))
        with suppress(InputError):
            tensor = npy_tensor(path, "q")
            tensor.take((0,) * len(tensor.shape))
            read += 1
    assert 3 < read < 500  # the same array, by other words

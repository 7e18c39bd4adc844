"""Files of arrays that were made by hand: none is misread, none takes all memory."""

import json
import tempfile
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from montecarlo.model.opening import open_files

SHAPE = (3, 2, 4, 6, 5)
Q, K = (np.random.default_rng(n).normal(size=SHAPE) for n in (1, 2))


def refused(tmp_path, *paths, **options):
    """Return the line that files are refused with."""
    scratch = Path(tempfile.mkdtemp(dir=tmp_path))
    with pytest.raises(ValueError, match=r"^[^\n]{1,600}$") as error:
        open_files(list(paths), scratch, **options)
    return str(error.value)


def npy_pair(tmp_path, change):
    """Write queries and keys, the former with its bytes changed."""
    for name, array in (("q", Q), ("k", K)):
        np.save(tmp_path / f"{name}.npy", array)
    path = tmp_path / "q.npy"
    path.write_bytes(change(path.read_bytes()))
    return path, tmp_path / "k.npy"


def headed(old, new):
    """Return what exchanges a part of a header, whose length stays."""

    def change(content):
        assert old in content
        length = int.from_bytes(content[8:10], "little")
        start, body = content[10 : 10 + length], content[10 + length :]
        text = start.replace(old, new).rstrip().ljust(length - 1) + b"\n"
        return content[:8] + len(text).to_bytes(2, "little") + text + body

    return change


@pytest.mark.parametrize("version", [(0, 0), (1, 1), (4, 0), (9, 9)])
def test_unknown_versions_are_refused(tmp_path, version):
    """A version of the format that nobody has written says nothing of what follows."""
    pair = npy_pair(tmp_path, lambda b: b[:6] + bytes(version) + b[8:])
    message = f"version {version[0]}.{version[1]} of the format"
    assert message in refused(tmp_path, *pair)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_known_versions_are_read(tmp_path, version):
    """Those that there are give the same array."""

    def change(content):
        length = int.from_bytes(content[8:10], "little")
        width = 2 if version == 1 else 4
        head = bytes((version, 0)) + length.to_bytes(width, "little")
        return content[:6] + head + content[10:]

    model = open_files(npy_pair(tmp_path, change), tmp_path)
    read, _ = model.read(model.heads()[5], 2)
    assert np.array_equal(read, Q[2, 1, 1])


@pytest.mark.parametrize(
    ("descr", "came"),
    [
        (b"'(2,)i1'", "'(2,)i1'"),
        (b"('i1', (2,))", "('i1', (2,))"),
        (b"[('a', 'i1'), ('b', 'i1')]", "[('a', 'i1'), ('b', 'i1')]"),
        (b"'<f4,<f4'", "'<f4,<f4'"),
        (b"'>V2'", "'>V2'"),
        (b"'<f16'", "'<f16'"),
        (b"'|O'", "Python objects"),
        (b"8", "8"),
    ],
)
def test_other_entries_are_refused(tmp_path, descr, came):
    """Two bytes that are no number of their own are no bfloat16."""
    pair = npy_pair(tmp_path, headed(b"'<f8'", descr))
    assert came in refused(tmp_path, *pair)


@pytest.mark.parametrize(
    "shape",
    [
        b"(True, 2, 4, 6, 5)",
        b"(3, 2, 4, 6, True)",
        b"(3.0, 2, 4, 6, 5)",
        b"(-3, 2, 4, 6, 5)",
        b"(1" + b"0" * 30 + b", 2, 4, 6, 5)",
        b"(3, 2, 4, 6, 5, 1, 1, 1, 1)",
        b"('3', 2, 4, 6, 5)",
    ],
)
def test_shapes_are_counts(tmp_path, shape):
    """True is 1 to Python, and no count; nor is what no file can hold."""
    line = refused(tmp_path, *npy_pair(tmp_path, headed(b"(3, 2, 4, 6, 5)", shape)))
    assert "q (q.npy) must have a shape of counts" in line


@pytest.mark.parametrize(
    "header",
    [
        b"((" * 4000,
        b"-" * 9000 + b"1",
        b"{'descr': 1}",
        b"{'descr': '<f8', 'fortran_order': 0, 'shape': ()}",
        b"[1, 2, 3]",
        b"\xff\x00",
    ],
)
def test_headers_of_no_sense(tmp_path, header):
    """Whatever stands in the place of a header, one line says so."""

    def change(content):
        return content[:8] + len(header).to_bytes(2, "little") + header + content[10:]

    assert "must be an array of NumPy, got" in refused(
        tmp_path, *npy_pair(tmp_path, change)
    )


def test_one_array_a_file(tmp_path):
    """What stands behind an array would go unread."""
    pair = npy_pair(tmp_path, lambda content: content + content)
    assert "q (q.npy) must hold one array, got" in refused(tmp_path, *pair)


def archive(path, members, packing=zipfile.ZIP_DEFLATED):
    """Write an archive of members as they are, whose names may stand twice."""
    with zipfile.ZipFile(path, "w", packing) as file:
        for name, content in members:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("warnings.warn", lambda *_, **__: None)
                file.writestr(name, content)
    return path


def npy_bytes(tmp_path, array):
    """Return the bytes of an array's file."""
    np.save(tmp_path / "one.npy", array)
    return (tmp_path / "one.npy").read_bytes()


def test_members_stand_once(tmp_path):
    """Of two members of a name, readers take different ones."""
    q, k = (npy_bytes(tmp_path, array) for array in (Q, K))
    members = [("q.npy", q), ("k.npy", k), ("q.npy", k)]
    path = archive(tmp_path / "twice.npz", members)
    assert "twice.npz must hold q.npy once, got it 2 times" in refused(tmp_path, path)


def test_many_members_are_refused(tmp_path):
    """A list of members has a limit, and so has the line that shows it."""
    path = archive(tmp_path / "many.npz", [(f"{n}", b"") for n in range(10_001)])
    assert "must have at most 10000 members" in refused(tmp_path, path)
    path = archive(tmp_path / "long.npz", [("x" * 60_000, b"") for _ in range(30)])
    assert len(refused(tmp_path, path)) < 600


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_packings_are_refused(tmp_path, packing):
    """What NumPy does not write may ask for any amount of memory."""
    q, k = (npy_bytes(tmp_path, array) for array in (Q, K))
    path = archive(tmp_path / "qk.npz", [("q.npy", q), ("k.npy", k)], packing)
    assert "stored or deflated, got method" in refused(tmp_path, path)


def test_bombs_are_not_unpacked(tmp_path):
    """What unpacks to a thousand times its size is refused before it is unpacked."""
    zeros = npy_bytes(tmp_path, np.zeros((1, 1, 1, 2**18, 32)))
    path = archive(tmp_path / "bomb.npz", [("q.npy", zeros), ("k.npy", zeros)])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(ValueError, match="must unpack to at most 16777216 bytes"):
        open_files([path], scratch)
    assert not list(scratch.rglob("*.npy"))


def test_places_outside_of_an_archive(tmp_path):
    """A list of members that lies before the file's beginning is no archive."""
    q, k = (npy_bytes(tmp_path, array) for array in (Q, K))
    path = archive(tmp_path / "qk.npz", [("q.npy", q), ("k.npy", k)])
    content = bytearray(path.read_bytes())
    content[-10:-6] = (2**20).to_bytes(4, "little")  # bytes of the list
    path.write_bytes(content)
    assert "qk.npz must be an archive of NumPy" in refused(tmp_path, path)


def safetensors(path, header, body=b""):
    """Write a safetensors file with a header as it is typed."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    return path


def described(start, stop, shape=(1, 1, 1, 2, 2), dtype="F32"):
    """Return what a header says of an array."""
    offsets = [start, stop]
    return {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}


BODY = np.arange(8, dtype="<f4").tobytes()


@pytest.mark.parametrize(
    ("header", "body", "message"),
    [
        (
            b'{"q":%s,"k":%s,"q":%s}'
            % tuple(
                json.dumps(described(a, b)).encode()
                for a, b in ((0, 16), (16, 32), (16, 32))
            ),
            BODY,
            "'q' must stand once, got it 2 times",
        ),
        (
            b'{"q":{"dtype":"F32","dtype":"F16"}}',
            BODY,
            "'dtype' must stand once",
        ),
        ({"q": described(0, 16), "k": described(0, 16)}, BODY[:16], "at 16, got 0"),
        ({"q": described(0, 16), "k": described(8, 24)}, BODY[:24], "at 16, got 8"),
        ({"q": described(0, 16), "k": described(20, 36)}, BODY * 2, "at 16, got 20"),
        ({"q": described(16, 32), "k": described(32, 48)}, BODY * 2, "at 0, got 16"),
        (
            {"q": described(0, 16), "k": described(16, 32)},
            BODY + b"more",
            "must have 32 bytes for its arrays, got 36: the rest belongs to none",
        ),
        ({"q": described(0, 16), "k": described(16, 32)}, BODY[:-1], "cut off"),
        ({"q": described(-16, 0), "k": described(0, 16)}, BODY, "at 0, got -16"),
        ({"q": described(0, 16, (True, 1, 1, 2, 2))}, BODY[:16], "whole numbers"),
        ({"q": described(0, 16, (10**30, 2))}, BODY[:16], "a shape of counts"),
        ({"q": described(0, 10**40)}, BODY[:16], "more than 2^63"),
        (b'{"q":' * 20_000, b"", "its header is broken"),
        (b"[]", b"", "its header is broken"),
        ({"x" * 2000: described(0, 0)}, b"", "names of at most 1000 characters"),
    ],
    ids=str,
)
def test_safetensors_that_others_read_otherwise(tmp_path, header, body, message):
    """Keys twice, arrays over each other, gaps and leavings: the format has none."""
    path = safetensors(tmp_path / "m.safetensors", header, body)
    assert message in refused(tmp_path, path)


def test_lists_of_any_length_are_one_line(tmp_path):
    """What came is shown by its beginning."""
    entry = described(0, 16) | {"shape": ["x" * 50] * 50_000}
    path = safetensors(tmp_path / "m.safetensors", {"q": entry}, BODY[:16])
    assert "whole numbers are needed" in refused(tmp_path, path)
    entry = described(0, 16) | {"dtype": "x" * 100_000}
    path = safetensors(tmp_path / "m.safetensors", {"q": entry}, BODY[:16])
    assert "must hold F16, BF16" in refused(tmp_path, path)


def test_long_headers_are_not_read(tmp_path):
    """A header of 100 MB would take gigabytes to read: it is refused by its length."""
    path = tmp_path / "m.safetensors"
    with path.open("wb") as file:
        file.write((10_000_001).to_bytes(8, "little") + b'{"a":')
        file.truncate(20_000_000)
    tracemalloc.start()
    try:
        assert "of 10000000 at most" in refused(tmp_path, path)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("layer", ["1" * 30, "1" * 19])
def test_numbers_in_names_have_few_digits(tmp_path, layer):
    """A layer of so many digits is none."""
    names = {
        f"{layer}.{side}": described(n, n + 16) for side, n in (("q", 0), ("k", 16))
    }
    path = safetensors(tmp_path / "m.safetensors", names, BODY)
    line = refused(tmp_path, path, names="{layer}.{side}")
    assert "layer in a tensor's name must have at most 18 digits" in line


@pytest.mark.parametrize("pattern", ["{layer}{head}{side}", "{side}{layer}7{head}"])
def test_numbers_side_by_side_are_refused(tmp_path, pattern):
    """Where nothing stands between two numbers, nobody knows where one ends."""
    path = safetensors(tmp_path / "m.safetensors", {}, b"")
    line = refused(tmp_path, path, names=pattern)
    assert "something between two numbers that is no digit" in line


def test_patterns_take_no_cubic_time(tmp_path):
    """However long a name's digits are, it is read once."""
    digits = "1" * 900
    names = {f"{digits}{n}.{digits}.{digits}x": described(0, 0) for n in range(20)}
    path = safetensors(tmp_path / "m.safetensors", names)
    started = time.process_time()
    for pattern in (
        "{layer}.{head}.{sequence}.{side}",
        "{layer}1{head}1{sequence}{side}",
    ):
        refused(tmp_path, path, names=pattern)
    assert time.process_time() - started < 5.0


def test_many_names_are_joined_in_little_time(tmp_path):
    """Heads of queries find their keys without counting all heads for each."""
    heads = 5000
    names = {
        f"{side}.{head}": described(0, 0, (1, 1, 0, 2))
        | {"data_offsets": [at, at + 16]}
        | {"shape": [1, 1, 2, 2]}
        for number, side in enumerate("qk")
        for head in range(heads)
        for at in [16 * (number * heads + head)]
    }
    path = safetensors(tmp_path / "m.safetensors", names, bytes(32 * heads))
    started = time.process_time()
    model = open_files([path], tmp_path, names="{side}.{head}")
    assert len(model.heads()) == heads
    assert time.process_time() - started < 5.0

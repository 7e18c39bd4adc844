"""What is refused by headers alone: arrays beyond memory, cut archives, no files."""

import io
import os
import socket
import time
import tracemalloc
import zipfile

import numpy as np
import pytest

from montecarlo.cli.observe import main
from montecarlo.errors import InputError
from montecarlo.model.opening import open_files

RNG = np.random.default_rng(1)
ARRAYS = {
    "q": RNG.normal(size=(2, 2, 2, 8, 4)),
    "k": RNG.normal(size=(2, 2, 2, 8, 4)),
    "weights": RNG.random(size=(2, 2, 2, 8, 8)),
}


def sparse(path, shape):
    """Write an array of zeros that takes no room on the disk."""
    with path.open("wb") as file:
        header = {"descr": "<f2", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 2 * int(np.prod(shape, dtype=object)))
    return path


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ((1, 1, 1, 2**30, 64), "16777216 numbers of a sequence of a head"),
        ((1, 1, 1, 2**18, 65), "16777216 numbers of a sequence of a head"),
        ((2**30, 1, 1, 2, 4), "262144 sequences"),
        ((1, 2**12, 2**12, 2, 1), "131072 heads in all layers"),
    ],
)
def test_arrays_beyond_memory_are_refused_by_their_headers(tmp_path, shape, told):
    """In no time, and before anything is made of each sequence or head."""
    paths = [sparse(tmp_path / f"{name}.npy", shape) for name in "qk"]
    started = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=rf"^q must have at most {told}, got \d+$"):
            open_files(paths, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 500e6
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < 2.0


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
    assert "file must be a regular one" in line


def npy_bytes(array):
    """Return the bytes of an array's file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def refused(path, scratch):
    """Return the line that an archive is refused with."""
    scratch.mkdir()
    with pytest.raises(InputError) as error:
        open_files([path], scratch)
    line = str(error.value)
    assert line.isprintable()
    assert len(line) < 250
    return line


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("cut", [1, 8, 200])
def test_a_cut_last_array_is_refused(tmp_path, save, cut):
    """An archive that lost bytes before its list of members, which was moved up."""
    path = tmp_path / "cut.npz"
    save(path, **ARRAYS)
    with zipfile.ZipFile(path) as file:
        start = file.start_dir
    content = bytearray(path.read_bytes())
    del content[start - cut : start]
    content[-6:-2] = (start - cut).to_bytes(4, "little")
    path.write_bytes(content)
    assert "cut.npz must hold its members whole, got weights.npy cut off" in refused(
        path, tmp_path / "scratch"
    )


@pytest.mark.parametrize("place", [0, 30, 400])
def test_broken_archives_are_told_in_printable_words(tmp_path, place):
    """What stands in the place of a header or a name is not shown as it is."""
    path = tmp_path / "broken.npz"
    np.savez(path, **ARRAYS)
    content = bytearray(path.read_bytes())
    content[place : place + 5] = b"\x00\xff\x1b\n\x07"
    path.write_bytes(content)
    refused(path, tmp_path / "scratch")


def test_names_of_members_are_shown_printable(tmp_path):
    """Whatever the members of an archive are called."""
    path = tmp_path / "named.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("q\x1b[31m\n.npy", npy_bytes(ARRAYS["q"]))
    assert r"got q\x1b[31m" in refused(path, tmp_path / "scratch")


@pytest.mark.parametrize("size", [0.0, 1e-30])
def test_a_head_that_says_nothing_does_not_end_the_run(tmp_path, capsys, size):
    """A zeroed head is left out and listed; a tiny one blames no divisor."""
    arrays = {name: array.copy() for name, array in ARRAYS.items()}
    scores = arrays["q"] @ np.swapaxes(arrays["k"], -1, -2) / 2.0
    arrays["weights"] = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    where = (slice(None), 1, 0) if size == 0.0 else ...
    arrays["q"][where] *= size
    np.savez(tmp_path / "qk.npz", **arrays)
    options = ["--output", str(tmp_path / "out"), "--expect", "sqrt"]
    status = main([str(tmp_path / "qk.npz"), *options, "--axes", AXES])
    told = capsys.readouterr().out
    if size == 0.0:
        assert status == 0
        assert "for every token (layer, head): (1, 0)" in told
        assert "layer 1, head 0: dead" in told
    else:
        assert status == 1
        assert "another size than the model's?" in told


AXES = "sequence,layer,head,token,d"

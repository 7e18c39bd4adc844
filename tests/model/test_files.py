"""Files of arrays: what is read, and the one line that refuses the rest."""

import os

import ml_dtypes
import numpy as np
import pytest

from montecarlo.errors import InputError
from montecarlo.model import observe
from montecarlo.model.files import open_files
from montecarlo.model.observing import observation_table, observe_model
from tests.model.needed import need_torch

SHAPE = (3, 2, 4, 6, 5)
Q, K = (np.random.default_rng(n).normal(size=SHAPE) for n in (1, 2))
WEIGHTS = np.random.default_rng(3).random((*SHAPE[:4], SHAPE[3]))


def refused(*paths, **options):
    """Return the line that files are refused with, which can be printed."""
    with pytest.raises(InputError) as error:
        table(paths, **options)
    line = str(error.value)
    assert line.isprintable()
    assert len(line) < 700
    return line


def table(paths, **options):
    """Return the table of files."""
    model = open_files(list(paths), **options)
    return observation_table(observe_model(model, np.sqrt(5.0)))


def write_npz(tmp_path, name="qk.npz", save=np.savez_compressed, **arrays):
    """Write one archive; returns its path, alone."""
    save(tmp_path / name, **arrays)
    return [tmp_path / name]


def test_archives_are_read(tmp_path):
    """They give what the arrays in hand give; so do other orders of bytes."""
    turned = {"q": np.asfortranarray(Q), "k": K.astype(">f8")}
    read = table(write_npz(tmp_path, **turned, other=np.arange(3)))
    assert read.equals(observe(Q, K))


ERRORS = {np.float16: 2**-11, ml_dtypes.bfloat16: 2**-8}
ERRORS |= {np.float32: 2**-24, np.float64: 0.0}


@pytest.mark.parametrize("kind", ERRORS)
def test_every_format_is_read(tmp_path, kind):
    """Numbers are those of the bytes: whole sequences, and rows at distances."""
    model = open_files(write_npz(tmp_path, q=Q.astype(kind), k=K.astype(kind)))
    read, _ = model.read(model.heads()[5], 2)
    assert (read == Q[2, 1, 1].astype(kind).astype(float)).all()
    assert np.abs(read / Q[2, 1, 1] - 1.0).max() <= ERRORS[kind]
    assert (model.read_rows(model.heads()[5], 2, 2).queries == read[2::3]).all()


def test_archives_are_further_sequences(tmp_path):
    """Several archives are sequences one after another, of any length."""
    paths = write_npz(tmp_path, "a.npz", q=Q[:2], k=K[:2])
    paths += write_npz(tmp_path, "b.npz", q=Q[2:], k=K[2:])
    assert table(paths).equals(observe(Q, K))
    short = write_npz(tmp_path, "c.npz", q=Q[2:, :, :, :4], k=K[2:, :, :, :4])
    assert not table([paths[0], *short]).equals(observe(Q, K))
    other = write_npz(tmp_path, "d.npz", q=Q, k=K, weights=WEIGHTS)
    told = "must hold the same arrays, of the same sizes but for sequences"
    assert told in refused(paths[0], *other)


class Trap:
    """Something that must not be loaded."""

    def __reduce__(self):
        """Fail when unpickled."""
        return pytest.fail, ("unpickled",)


NO_NUMBERS = "must hold arrays of numbers by name, .*, got"


def bad_files(folder):
    """Yield names, files and what the line that refuses them says."""
    for suffix, message in (
        ("npz", "^text.npz is not an .npz file"),
        ("csv", "file must end in .npz or .pt, got .*: np.savez"),
    ):
        text = folder / f"text.{suffix}"
        text.write_text("q,k\n1,2\n3,4\n5,6\n")
        yield f"text as {suffix}", [text], message
    yield "missing", [folder / "none.npz"], "file must be a readable file"
    trap = np.array([Trap()], dtype=object)
    yield "objects", write_npz(folder, "trap.npz", q=trap, k=K), "allow_pickle"
    other = write_npz(folder, "names.npz", query=Q, key=K)
    yield "other names", other, "arrays q and k, and weights, .*got .*query"
    (path,) = write_npz(folder, "cut.npz", np.savez, q=Q, k=K)
    path.write_bytes(path.read_bytes()[:-200])
    yield "cut off", [path], NO_NUMBERS
    yield "the same", other * 2, "files must differ"


def test_tensors_of_torch_are_read(tmp_path):
    """A dict of them, in any format; nothing else is unpickled."""
    torch, _ = need_torch()
    path, q, k = tmp_path / "qk.pt", torch.tensor(Q), torch.tensor(K)
    torch.save({"q": q, "k": k, "step": 3}, path)
    assert table([path]).equals(observe(Q, K))
    torch.save({"q": q.bfloat16(), "k": k.bfloat16()}, path)
    rounded = (x.astype(ml_dtypes.bfloat16).astype(np.float32) for x in (Q, K))
    assert table([path]).equals(observe(*rounded))
    assert table([path]).equals(observe(q.bfloat16().requires_grad_(), k.bfloat16()))
    for wrong, message in (
        ([q, k], "must hold arrays by their names, got list"),
        ({"q": Trap(), "k": k}, "and no other objects, got"),
        (torch.nn.Linear(2, 2), "got torch.nn.modules.linear.Linear"),
        ({"q": 1, "k": k}, "q of qk.pt must hold floating-point numbers"),
    ):
        torch.save(wrong, path)
        assert message in refused(path)


def test_bad_files_are_refused(tmp_path, subtests):
    """One line names the file or array, and what was expected; nothing is unpickled."""
    for name, paths, message in bad_files(tmp_path):
        with subtests.test(name), pytest.raises(InputError, match=message):
            open_files(paths)


def test_special_files_are_not_opened(tmp_path):
    """A pipe that nobody writes to would be waited for."""
    pipe, device = tmp_path / "pipe.npz", tmp_path / "device.npz"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        assert "file must be a regular file" in refused(*[path] * 3)

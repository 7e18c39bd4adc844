"""Large matrices of keys are drawn in parts, in little memory."""

import numpy as np
import pytest

from montecarlo.sampling import matrices
from montecarlo.sampling.design_points import parse_point, stream
from montecarlo.sampling.matrices import draw_matrices
from tests.commands import run_python

GIB = 2**30


@pytest.mark.parametrize("n_keys", [200, 201, 999])
def test_keys_are_consecutive_draws(monkeypatch, n_keys):
    """Parts of 200 keys, all from one generator."""
    monkeypatch.setattr(matrices, "ENTRIES_AT_ONCE", 1400)
    point = parse_point("student_t5", "laplace(mean=0.5)", 7, n_keys)
    _, keys = draw_matrices(point, 3, 2)
    rng, sizes = stream(3, point, 2, "k"), [200] * (n_keys // 200)
    sizes += [n_keys % 200] if n_keys % 200 else []
    parts = [point.distribution_k.sample(rng, (size, 7)) for size in sizes]
    assert np.array_equal(keys, np.concatenate(parts))


MEASURE = """
from pathlib import Path
from montecarlo.sampling.design_points import parse_point
from tests.samples import sample_all
point = parse_point("gaussian", "gaussian", 128, 2**20)
sample_all(point, 1, 0, 2, ("none", "sqrt", "2sqrt", "linear"))
# not getrusage: that also counts the process which this one was forked from
status = Path("/proc/self/status").read_text()
print(status.partition("VmHWM:")[2].split()[0])
"""


@pytest.mark.slow
def test_memory_of_a_million_keys():
    """A million keys of 128 entries take half a GiB; all else in two replicates, less
    than half of that.
    """
    found = run_python("-c", MEASURE, check=True)
    assert 1024 * int(found.stdout) < 0.75 * GIB

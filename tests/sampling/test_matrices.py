"""Keys in chunks: the same rows as all at once, in little memory."""

import subprocess
import sys

import numpy as np
import pytest

from montecarlo.attention.divisors import DIVISORS
from montecarlo.sampling import matrices, replicates
from montecarlo.sampling.design_points import parse_point
from tests.samples import sample_all

ALL = tuple(DIVISORS)
#: Entries at once for which these points come in chunks of 200 keys, or of 128.
FEW = 1400
LONG = [
    parse_point("gaussian", "gaussian", 7, 1000),
    parse_point("student_t5", "laplace(mean=0.5)", 7, 999),
    parse_point("gaussian", "gaussian", 7, 600, "planted(0.5)"),
    parse_point("rademacher", "rademacher", 33, 130, "planted(0.25)"),
]
GIB = 2**30


@pytest.fixture
def in_chunks(monkeypatch):
    """Few entries are drawn at once."""
    monkeypatch.setattr(matrices, "ENTRIES_AT_ONCE", FEW)


@pytest.mark.usefixtures("in_chunks")
@pytest.mark.parametrize("point", LONG, ids=lambda c: c.name)
def test_streamed_rows_equal_unstreamed_ones(point, monkeypatch):
    """Rows whose keys come in chunks are those of the same keys held at once: the
    scores to the rounding of a float32 product, the counts in all but a few rows.
    """
    streamed = sample_all(point, 3, 0, 3, ALL)
    monkeypatch.setattr(replicates, "keys_at_once", lambda point: point.n_keys)
    whole = sample_all(point, 3, 0, 3, ALL)

    # an identity that is near 0 is held against the terms it is made of
    assert streamed.means == pytest.approx(whole.means, rel=1e-4, abs=1e-5)
    for one, other in zip(streamed.counts, whole.counts, strict=True):
        assert one[0].sum() == other[0].sum()
        assert np.abs(one[0] - other[0]).sum() <= 0.01 * other[0].sum() + 2


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
    """A million keys of 128 entries take less than half a GiB in two replicates; the
    keys of one alone would take that.
    """
    found = subprocess.run(  # noqa: S603 - of ourselves
        [sys.executable, "-c", MEASURE], check=True, capture_output=True, text=True
    )
    assert 1024 * int(found.stdout) < GIB / 2

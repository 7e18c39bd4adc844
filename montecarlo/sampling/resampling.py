"""Drawing replicates again: which ones of a bank each judged sample holds."""

from collections.abc import Iterator

import numpy as np
from numpy.random import SFC64, Generator
from numpy.typing import NDArray

Indices = NDArray[np.int64]
#: Samples that are drawn together.
CHUNK = 2048


def index_chunks(
    size: int, n_replicates: int, samples: int, seed: int
) -> Iterator[Indices]:
    """Yield which replicates of a bank each sample holds, in chunks of samples.

    So many replicates of a bank of some size, drawn with replacement, make a sample.

    Yields
    ------
    ndarray of int64, shape (at most CHUNK, n_replicates)
    """
    rng = Generator(SFC64(seed))
    for first in range(0, samples, CHUNK):
        shape = (min(CHUNK, samples - first), n_replicates)
        yield rng.integers(size, size=shape)

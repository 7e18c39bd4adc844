"""Fixed logarithmic grids, on which row values are counted to get quantiles."""

from dataclasses import dataclass

import numpy as np

from montecarlo.attention.softmax import Array


@dataclass(frozen=True, slots=True)
class LogGrid:
    """A fixed grid, even in the logarithm, on which row values are counted.

    Attributes
    ----------
    low, high : float
        Powers of ten; smaller and larger values go to the first and last bin.
    per_decade : int
        Bins in a factor of ten.
    """

    low: float
    high: float
    per_decade: int

    @property
    def n_bins(self) -> int:
        """One bin for exact zero, then the grid."""
        return 1 + round((self.high - self.low) * self.per_decade)

    def bins(self, values: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
        """Return the bin of each value: 0 for exact zero, else 1 to n_bins - 1."""
        with np.errstate(divide="ignore"):
            place = (np.log10(values) - self.low) * self.per_decade
        # a value on an edge belongs below it, or a weight of 1 would be above 1
        inside = np.clip(np.ceil(place), 1.0, self.n_bins - 1.0).astype(np.intp)
        return np.where(values > 0.0, inside, 0)

    def edges(self) -> Array:
        """Return the upper edge of each bin, shape (n_bins,); 0 for the bin of zero."""
        exponents = self.low + np.arange(self.n_bins) / self.per_decade
        edges: Array = 10.0**exponents
        edges[0] = 0.0
        return edges


#: Weights and counts of keys: 0.45 % a bin.
FINE = LogGrid(-7.0, 7.0, 512)
#: Gradients, which reach far down: 3.7 % a bin.
DEEP = LogGrid(-60.0, 4.0, 64)

"""Fixed logarithmic grids on which row values are counted, to estimate quantiles."""

import math
from dataclasses import dataclass

import numpy as np

from montecarlo.attention.softmax import Array

Bins = np.ndarray[tuple[int, ...], np.dtype[np.intp]]
#: Decades of the distance to a top that are resolved.
DECADES = 8


@dataclass(frozen=True, slots=True)
class LogGrid:
    """Bins of equal logarithmic width within each of several layers of values.

    Exact zero has a bin of its own.  Values outside of the grid are counted in the
    first or last bin.  If there is a ``top``, bins above half of it have equal width in
    the logarithm of the distance to it.  Values close to the top are then resolved as
    finely as values close to 0: the trace 1 of a Jacobian, for example, or n effective
    keys.

    Attributes
    ----------
    ends : tuple of float
        Decimal logarithms of the ends of the layers, ascending.
    per_decade : tuple of int
        Bins per factor of ten in each layer, one fewer than the ends.
    top : float
        Upper bound of the values; infinite if there is none.
    signed : bool
        Whether values may be negative.  Their bins mirror those of positive values, and
        there is no top.
    """

    ends: tuple[float, ...]
    per_decade: tuple[int, ...]
    top: float = math.inf
    signed: bool = False

    @property
    def n_bins(self) -> int:
        """Number of bins of the grid, including that of zero."""
        return 2 * self._n_sizes - 1 if self.signed else self._n_sizes

    @property
    def least(self) -> float:
        """Lower bound of the values that are counted: 0, or -inf on a signed grid."""
        return -math.inf if self.signed else 0.0

    @property
    def open_bins(self) -> tuple[int, ...]:
        """Indices of the bins that also count values outside of the grid: one or two.

        Bin 1, after that of zero, has all smaller positive values, and the last bin all
        larger values.  With a finite top no value is larger: then only bin 1.  On a
        signed grid they are the first and the last bin.
        """
        first = 0 if self.signed else 1
        return (first,) if math.isfinite(self.top) else (first, self.n_bins - 1)

    @property
    def _end_bins(self) -> Array:
        """Number of bins from the first of ``ends`` to each of them.

        The bin of zero is not counted.  Shape (n_ends,), ascending; the first is 0.
        """
        widths = np.diff(self.ends) * self.per_decade
        return np.concatenate([np.zeros(1), np.cumsum(widths).round()])

    @property
    def _n_sizes(self) -> int:
        """Number of bins for absolute values, including that of zero.

        It is `n_bins` unless the grid is signed.
        """
        if math.isinf(self.top):
            return 1 + int(self._end_bins[-1])
        return 1 + math.ceil(self._half + DECADES * self.per_decade[-1])

    @property
    def _half(self) -> float:
        """Number of bins from 10**ends[0] to top/2, not necessarily whole.

        Values above top/2 are binned by the logarithm of top minus value.  Only for a
        finite top; the bin of zero is not counted.
        """
        return float(np.interp(math.log10(0.5 * self.top), self.ends, self._end_bins))

    def bins(self, values: Array) -> Bins:
        """Return the bin index of each value: integers from 0 to ``n_bins - 1``.

        The result has the shape of ``values``, an array.  A value on an edge is counted
        in the bin that is nearer to 0.  Values outside of the grid are counted in the
        `open_bins`.  NaN is not allowed, nor negative values on an unsigned grid.
        """
        sizes = np.abs(values) if self.signed else values
        with np.errstate(divide="ignore", invalid="ignore"):
            place = np.asarray(np.interp(np.log10(sizes), self.ends, self._end_bins))
            if math.isfinite(self.top):
                near = values > 0.5 * self.top
                distance = np.maximum(2.0 - 2.0 * (values[near] / self.top), 0.0)
                above = np.minimum(-np.log10(distance), DECADES)
                place[near] = self._half + above * self.per_decade[-1]
        # a value on an edge belongs to the bin below it: a weight of 1 is at most 1
        inside = np.clip(np.ceil(place), 1.0, self._n_sizes - 1.0).astype(np.intp)
        bins: Bins = np.where(sizes > 0.0, inside, 0)
        if self.signed:
            bins = np.where(values < 0.0, -bins, bins) + (self._n_sizes - 1)
        return bins

    def edges(self) -> Array:
        """Return the upper edge of each bin, ascending, shape (n_bins,).

        It is 0 for the bin of zero.  The last edge is finite, even if the last bin is
        one of the `open_bins` and so counts all larger values, too.
        """
        places = np.arange(1.0, self._end_bins[-1] + 1.0)
        ends = 10.0 ** np.interp(places, self._end_bins, self.ends)
        edges: Array = np.concatenate([np.zeros(1), ends])
        if self.signed:
            return np.concatenate([-edges[-2::-1], edges])
        if math.isinf(self.top):
            return edges
        n_below = 1 + math.floor(self._half)
        places = np.arange(n_below, self._n_sizes) - self._half
        distance = 0.5 * 10.0 ** (-places / self.per_decade[-1])
        edges = np.concatenate([edges[:n_below], self.top * (1.0 - distance)])
        edges[-1] = self.top
        return edges


#: For weights and numbers of keys: bins of 0.45 %.
FINE = LogGrid((-7.0, 7.0), (512,))
#: For norms of gradients, which may be tiny: bins of 0.45 %, or 3.7 % below 1e-7; and
#: for their squares.
DEEP = LogGrid((-60.0, -7.0, 4.0), (64, 512))
DEEPER = LogGrid((-120.0, -14.0, 8.0), (64, 512))
#: Largest relative distance of a value to the edge of its bin.
WIDEST_BIN = 10.0 ** (1.0 / 64.0) - 1.0
#: For scores and log-sum-exps: bins of 0.45 %.
SIGNED = LogGrid(FINE.ends, FINE.per_decade, signed=True)

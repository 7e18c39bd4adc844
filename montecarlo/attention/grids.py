"""Fixed logarithmic grids, on which row values are counted to get quantiles."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from montecarlo.attention.softmax import Array

Bins = np.ndarray[tuple[int, ...], np.dtype[np.intp]]
#: Factors of ten by which the distance from a top is followed.
DECADES = 8


class Layer(NamedTuple):
    """A layer of a grid, even in the logarithm.

    Attributes
    ----------
    low, high : float
        Powers of ten, where it begins and ends.
    per_decade : int
        Bins in a factor of ten.
    """

    low: float
    high: float
    per_decade: int

    @property
    def n_bins(self) -> int:
        """How many bins it has."""
        return round((self.high - self.low) * self.per_decade)


@dataclass(frozen=True, slots=True)
class LogGrid:
    """Logarithmic layers one above the other, and one of the distance from a top.

    Values from 0 on are counted on it; smaller and larger ones than the layers reach
    go to the first and last bin.  Exact zero has a bin of its own.

    Above half of the top bins are even in the logarithm of the distance from it: what
    nearly all rows have there, a trace of 1 or as many effective keys as keys, is
    distinguished as finely as what is nearly 0.

    Attributes
    ----------
    layers : tuple of Layer
        Each begins where the one before it ends.
    top : float
        What no value exceeds; infinite: there is no such number.
    signed : bool
        Whether values may be negative: the bins are on either side of that of zero.
    """

    layers: tuple[Layer, ...]
    top: float = math.inf
    signed: bool = False

    @property
    def n_bins(self) -> int:
        """How many bins there are."""
        return 2 * self._n_sizes - 1 if self.signed else self._n_sizes

    @property
    def least(self) -> float:
        """What no value lies below."""
        return -math.inf if self.signed else 0.0

    @property
    def open_bins(self) -> tuple[int, ...]:
        """The bins that also hold all that lies beyond the grid: none at a top.

        Not those next to zero of a signed one: scores have no scale so small.
        """
        first = 0 if self.signed else 1
        return (first,) if math.isfinite(self.top) else (first, self.n_bins - 1)

    @property
    def _n_sizes(self) -> int:
        """Bins of sizes: one for exact zero, then the layers."""
        if math.isinf(self.top):
            return 1 + sum(layer.n_bins for layer in self.layers)
        return 1 + math.ceil(self._half + DECADES * self.layers[-1].per_decade)

    @property
    def _half(self) -> float:
        """Where half of the top lies among the bins."""
        return float(self._below(np.array(math.log10(0.5 * self.top))))

    def _below(self, log_values: Array) -> Array:
        """Return where logarithms of values lie among the bins of the layers."""
        place = np.zeros_like(log_values)
        for layer in self.layers:
            inside = (log_values - layer.low) * layer.per_decade
            place += np.clip(inside, 0.0, layer.n_bins)
        return place

    def bins(self, values: Array) -> Bins:
        """Return the bin of each value, from 0 on."""
        if not self.signed:
            return self._bins_of_sizes(values)
        size = self._bins_of_sizes(np.abs(values))
        signed = np.where(values < 0.0, -size, size)
        return np.asarray(signed + (self._n_sizes - 1))

    def _bins_of_sizes(self, values: Array) -> Bins:
        with np.errstate(divide="ignore", invalid="ignore"):
            place = self._below(np.log10(values))
            if math.isfinite(self.top):
                near = values > 0.5 * self.top
                distance = np.maximum(2.0 - 2.0 * (values[near] / self.top), 0.0)
                above = np.minimum(-np.log10(distance), DECADES)
                place[near] = self._half + above * self.layers[-1].per_decade
        # a value on an edge belongs below it, or a weight of 1 would be above 1
        inside = np.clip(np.ceil(place), 1.0, self._n_sizes - 1.0).astype(np.intp)
        return np.where(values > 0.0, inside, 0)

    def edges(self) -> Array:
        """Return the upper edge of each bin, shape (n_bins,); 0 for the bin of zero."""
        edges = self._edges_of_sizes()
        return np.concatenate([-edges[-2::-1], edges]) if self.signed else edges

    def _edges_of_sizes(self) -> Array:
        ends = [
            10.0 ** (layer.low + np.arange(1, layer.n_bins + 1) / layer.per_decade)
            for layer in self.layers
        ]
        below: Array = np.concatenate([np.zeros(1), *ends])
        if math.isinf(self.top):
            return below
        n_below = 1 + math.floor(self._half)
        places = np.arange(n_below, self._n_sizes) - self._half
        distance = 0.5 * 10.0 ** (-places / self.layers[-1].per_decade)
        edges = np.concatenate([below[:n_below], self.top * (1.0 - distance)])
        edges[-1] = self.top
        return edges


#: Weights and counts of keys: 0.45 % a bin.
FINE = LogGrid((Layer(-7.0, 7.0, 512),))
#: Gradients, which reach far down: 0.45 % a bin, but 3.7 % where they vanish; and their
#: squares.
DEEP = LogGrid((Layer(-60.0, -7.0, 64), Layer(-7.0, 4.0, 512)))
DEEPER = LogGrid((Layer(-120.0, -14.0, 64), Layer(-14.0, 8.0, 512)))
#: How much larger than its values the edge of a bin may be.
WIDEST_BIN = 10.0 ** (1.0 / 64.0) - 1.0
#: Scores, and logarithms of sums of their exponentials: 0.45 % a bin.
SIGNED = LogGrid(FINE.layers, signed=True)

"""Fixed logarithmic grids, on which row values are counted to get quantiles."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from montecarlo.attention.softmax import Array

Bins = np.ndarray[tuple[int, ...], np.dtype[np.intp]]


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
        """One bin for exact zero, then the layer."""
        return 1 + round((self.high - self.low) * self.per_decade)

    def edges(self) -> Array:
        """Return the upper edge of each bin, shape (n_bins,); 0 for the bin of zero."""
        exponents = self.low + np.arange(self.n_bins) / self.per_decade
        edges: Array = 10.0**exponents
        edges[0] = 0.0
        return edges


@dataclass(frozen=True, slots=True)
class LayeredGrid:
    """Logarithmic layers one above the other, and one of the distance from a top.

    Values from 0 on are counted on it; smaller and larger ones than the layers reach
    go to the first and last bin.

    Above half of the top bins are even in the logarithm of the distance from it: what
    nearly all rows have there, a trace of 1 or as many effective keys as keys, is
    distinguished as finely as what is nearly 0.

    Attributes
    ----------
    layers : tuple of Layer
        Each begins where the one before it ends.
    top : float
        What no value exceeds; infinite: there is no such number.
    decades : int
        Factors of ten by which the distance from the top is followed.
    """

    layers: tuple[Layer, ...]
    top: float = math.inf
    decades: int = 8

    #: No value lies below it.
    least: ClassVar[float] = 0.0

    @property
    def n_bins(self) -> int:
        """One bin for exact zero, then the grids."""
        if math.isinf(self.top):
            return 1 + sum(layer.n_bins - 1 for layer in self.layers)
        return 1 + math.ceil(self._half + self.decades * self.layers[-1].per_decade)

    @property
    def open_bins(self) -> tuple[int, ...]:
        """The bins that also hold all that lies beyond the grid: none at a top."""
        return (1,) if math.isfinite(self.top) else (1, self.n_bins - 1)

    @property
    def _half(self) -> float:
        """Where half of the top lies among the bins."""
        return float(self._below(np.array(math.log10(0.5 * self.top))))

    def _below(self, log_values: Array) -> Array:
        """Return where logarithms of values lie among the bins of the layers."""
        place = np.zeros_like(log_values)
        for layer in self.layers:
            inside = (log_values - layer.low) * layer.per_decade
            place += np.clip(inside, 0.0, layer.n_bins - 1.0)
        return place

    def bins(self, values: Array) -> Bins:
        """Return the bin of each value: 0 for exact zero, else 1 to n_bins - 1."""
        with np.errstate(divide="ignore", invalid="ignore"):
            place = self._below(np.log10(values))
            if math.isfinite(self.top):
                near = values > 0.5 * self.top
                distance = np.maximum(2.0 - 2.0 * (values[near] / self.top), 0.0)
                above = np.minimum(-np.log10(distance), self.decades)
                place[near] = self._half + above * self.layers[-1].per_decade
        # a value on an edge belongs below it, or a weight of 1 would be above 1
        inside = np.clip(np.ceil(place), 1.0, self.n_bins - 1.0).astype(np.intp)
        return np.where(values > 0.0, inside, 0)

    def edges(self) -> Array:
        """Return the upper edge of each bin, shape (n_bins,); 0 for the bin of zero."""
        ends = [layer.edges()[1:] for layer in self.layers]
        below: Array = np.concatenate([np.zeros(1), *ends])
        if math.isinf(self.top):
            return below
        n_below = 1 + math.floor(self._half)
        places = np.arange(n_below, self.n_bins) - self._half
        distance = 0.5 * 10.0 ** (-places / self.layers[-1].per_decade)
        edges = np.concatenate([below[:n_below], self.top * (1.0 - distance)])
        edges[-1] = self.top
        return edges


@dataclass(frozen=True, slots=True)
class SignedGrid:
    """A grid of sizes on either side of zero, for values that may be negative.

    Attributes
    ----------
    sizes : LayeredGrid
        Of absolute values.
    """

    sizes: LayeredGrid
    least: ClassVar[float] = -math.inf

    @property
    def n_bins(self) -> int:
        """The grid twice, and one bin for exact zero."""
        return 2 * self.sizes.n_bins - 1

    @property
    def open_bins(self) -> tuple[int, int]:
        """The bins that also hold all that lies beyond the grid, on either side.

        Not those next to zero: scores have no scale so small.
        """
        return 0, self.n_bins - 1

    def bins(self, values: Array) -> Bins:
        """Return the bin of each value: exact zero has the middle one."""
        size = self.sizes.bins(np.abs(values))
        signed = np.where(values < 0.0, -size, size)
        return np.asarray(signed + (self.sizes.n_bins - 1))

    def edges(self) -> Array:
        """Return the upper edge of each bin, shape (n_bins,)."""
        edges = self.sizes.edges()
        return np.concatenate([-edges[-2::-1], edges])


#: Weights and counts of keys: 0.45 % a bin.
FINE = LayeredGrid((Layer(-7.0, 7.0, 512),))
#: Gradients, which reach far down: 0.45 % a bin, but 3.7 % where they vanish; and their
#: squares.
DEEP = LayeredGrid((Layer(-60.0, -7.0, 64), Layer(-7.0, 4.0, 512)))
DEEPER = LayeredGrid((Layer(-120.0, -14.0, 64), Layer(-14.0, 8.0, 512)))
#: How much larger than its values the edge of a bin may be.
WIDEST_BIN = 10.0 ** (1.0 / 64.0) - 1.0
#: Scores, and logarithms of sums of their exponentials: 0.45 % a bin.
SIGNED = SignedGrid(FINE)
Grid = LayeredGrid | SignedGrid

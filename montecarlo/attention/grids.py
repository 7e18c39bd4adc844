"""Fixed logarithmic grids on which row values are counted, to estimate quantiles."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from montecarlo.attention.softmax import Array

Bins = np.ndarray[tuple[int, ...], np.dtype[np.intp]]
#: Decades of the distance to a top that are resolved.
DECADES = 8


class Layer(NamedTuple):
    """A part of a grid with bins of equal logarithmic width.

    Attributes
    ----------
    low, high : float
        Decimal logarithms of its ends.
    per_decade : int
        Bins per factor of ten.
    """

    low: float
    high: float
    per_decade: int

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return round((self.high - self.low) * self.per_decade)


@dataclass(frozen=True, slots=True)
class LogGrid:
    """A grid of consecutive logarithmic layers, with an optional top.

    Exact zero has a bin of its own.  Values outside of the layers are counted in the
    first or last bin.  Above half of the top, bins have equal width in the logarithm of
    the distance to it, so that values close to the top are resolved as finely as values
    close to 0: the trace 1 of a Jacobian, for example, or n effective keys.

    Attributes
    ----------
    layers : tuple of Layer
        In ascending order, without gaps.
    top : float
        Upper bound of the values; infinite if there is none.
    signed : bool
        Whether values may be negative.  Their bins mirror those of positive values, and
        there is no top.
    """

    layers: tuple[Layer, ...]
    top: float = math.inf
    signed: bool = False

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return 2 * self._n_sizes - 1 if self.signed else self._n_sizes

    @property
    def least(self) -> float:
        """Lower bound of the values."""
        return -math.inf if self.signed else 0.0

    @property
    def open_bins(self) -> tuple[int, ...]:
        """Indices of the bins in which values outside of the grid are counted.

        A top leaves none above, and scores are never so small that the bins next to
        zero of a signed grid contain any.
        """
        first = 0 if self.signed else 1
        return (first,) if math.isfinite(self.top) else (first, self.n_bins - 1)

    @property
    def _n_sizes(self) -> int:
        """Number of bins of absolute values, including that of zero."""
        if math.isinf(self.top):
            return 1 + sum(layer.n_bins for layer in self.layers)
        return 1 + math.ceil(self._half + DECADES * self.layers[-1].per_decade)

    @property
    def _half(self) -> float:
        """Fractional bin index of half the top."""
        return float(self._place(np.array(math.log10(0.5 * self.top))))

    def _place(self, log_values: Array) -> Array:
        """Return fractional bin indices within the layers for decimal logarithms."""
        place = np.zeros_like(log_values)
        for layer in self.layers:
            inside = (log_values - layer.low) * layer.per_decade
            place += np.clip(inside, 0.0, layer.n_bins)
        return place

    def bins(self, values: Array) -> Bins:
        """Return the index of the bin of each value, from 0 to ``n_bins - 1``."""
        sizes = np.abs(values) if self.signed else values
        with np.errstate(divide="ignore", invalid="ignore"):
            place = self._place(np.log10(sizes))
            if math.isfinite(self.top):
                near = values > 0.5 * self.top
                distance = np.maximum(2.0 - 2.0 * (values[near] / self.top), 0.0)
                above = np.minimum(-np.log10(distance), DECADES)
                place[near] = self._half + above * self.layers[-1].per_decade
        # a value on an edge belongs to the bin below: a weight of 1 is at most 1
        inside = np.clip(np.ceil(place), 1.0, self._n_sizes - 1.0).astype(np.intp)
        bins: Bins = np.where(sizes > 0.0, inside, 0)
        if self.signed:
            bins = np.where(values < 0.0, -bins, bins) + (self._n_sizes - 1)
        return bins

    def edges(self) -> Array:
        """Return the upper edge of each bin, shape (n_bins,); 0 for the bin of zero."""
        ends = [
            10.0 ** (layer.low + np.arange(1, layer.n_bins + 1) / layer.per_decade)
            for layer in self.layers
        ]
        edges: Array = np.concatenate([np.zeros(1), *ends])
        if self.signed:
            return np.concatenate([-edges[-2::-1], edges])
        if math.isinf(self.top):
            return edges
        n_below = 1 + math.floor(self._half)
        places = np.arange(n_below, self._n_sizes) - self._half
        distance = 0.5 * 10.0 ** (-places / self.layers[-1].per_decade)
        edges = np.concatenate([edges[:n_below], self.top * (1.0 - distance)])
        edges[-1] = self.top
        return edges


#: For weights and numbers of keys: bins of 0.45 %.
FINE = LogGrid((Layer(-7.0, 7.0, 512),))
#: For norms of gradients, which may be tiny: bins of 0.45 %, or 3.7 % below 1e-7; and
#: for their squares.
DEEP = LogGrid((Layer(-60.0, -7.0, 64), Layer(-7.0, 4.0, 512)))
DEEPER = LogGrid((Layer(-120.0, -14.0, 64), Layer(-14.0, 8.0, 512)))
#: Largest relative distance of a value to the edge of its bin.
WIDEST_BIN = 10.0 ** (1.0 / 64.0) - 1.0
#: For scores and log-sum-exps: bins of 0.45 %.
SIGNED = LogGrid(FINE.layers, signed=True)

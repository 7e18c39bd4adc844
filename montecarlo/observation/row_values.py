"""Softmax of a head's rows: each quantity of the table, under each divisor.

Scores of some rows in, sums over rows out.  A hidden key has weight 0.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention import gradients, softmax
from montecarlo.attention.softmax import Array, Gaps, SoftmaxRows
from montecarlo.claims.yardsticks import ONE_HOT

#: Rows of a sequence whose spectral norm is found: it costs an iteration.
SPECTRAL_ROWS = 16
#: What a hidden key's score lies below the largest: its exponential is 0, and so is
#: its product with it.
HIDDEN = 1e300


def _indicator(holds: NDArray[np.bool_]) -> Array:
    return np.where(holds, 1.0, 0.0)


ROW_FUNCTIONS: Mapping[str, Callable[[SoftmaxRows], Array]] = {
    "score_max": lambda rows: rows.sums.largest,
    "weight_max": lambda rows: softmax.weight_max(rows.sums),
    "saturated_rows": lambda rows: _indicator(softmax.weight_max(rows.sums) >= ONE_HOT),
    "entropy": lambda rows: softmax.entropy(rows.sums),
    "effective_keys": lambda rows: softmax.effective_keys(rows.sums),
    "inverse_participation": lambda rows: softmax.inverse_participation(rows.sums),
    "jacobian_trace": lambda rows: gradients.jacobian_trace(rows.sums),
    "jacobian_frobenius": lambda rows: gradients.jacobian_frobenius(rows.sums),
    "jacobian_spectral": gradients.jacobian_spectral,
}
#: Quantities that are found for few rows only.
FEW_ROWS = frozenset({"jacobian_spectral"})
#: A part of the keys that a row sees.
SHARE = "effective_share"


@dataclass(frozen=True, slots=True)
class RowSum:
    """A mean over rows that is asked for.

    Attributes
    ----------
    name : str
        Its own, in the tables.
    quantity : str
        A key of `ROW_FUNCTIONS`.
    divisor : float
    n_power : float
        Each row's value is divided by this power of the number of keys it sees.
    below : float or None
        If given, the share of rows whose value lies below it is meant.
    n_keys : (float, float)
        Only rows that see so many keys count: one that sees a single key, as the
        first causal one does, has nothing to choose.
    permuted : bool
        Whether keys are those of other sequences.
    """

    name: str
    quantity: str
    divisor: float
    n_power: float = 0.0
    below: float | None = None
    n_keys: tuple[float, float] = (2, np.inf)
    permuted: bool = False


class Rows:
    """Scores of some rows of one sequence; softmax of them is found as it is needed."""

    def __init__(self, scores: Array, seen: NDArray[np.intp]) -> None:
        """Take scores, shape (n_rows, n_keys), and how many keys each row sees."""
        self.scores, self.seen = scores, seen
        self._made: dict[float, SoftmaxRows] = {}
        self._values: dict[tuple[str, float], Array] = {}

    @cached_property
    def gaps(self) -> Gaps:
        """Scores from the largest that a row sees, hidden ones far below it."""
        n_keys = self.scores.shape[-1]
        if self.seen.min() == n_keys:
            return softmax.measure_gaps(self.scores)
        hidden = np.arange(n_keys) >= self.seen[:, np.newaxis]
        return softmax.measure_gaps(np.where(hidden, -HIDDEN, self.scores))

    def values(self, quantity: str, divisor: float) -> Array:
        """Return a quantity of each row."""
        key = (quantity, divisor)
        if key not in self._values:
            if divisor not in self._made:
                self._made[divisor] = softmax.softmax_rows(self.gaps, divisor)
            rows = self._made[divisor]
            self._values[key] = ROW_FUNCTIONS[quantity](rows)
        return self._values[key]

    def few(self, chosen: NDArray[np.bool_]) -> "Rows":
        """Return some of these rows."""
        return Rows(self.scores[chosen], self.seen[chosen])


def sum_rows(
    rows: Rows, asked: Iterable[RowSum], chosen: NDArray[np.bool_]
) -> dict[str, tuple[float, int]]:
    """Return sum and number of rows for each mean that is asked for.

    Parameters
    ----------
    rows : Rows
    asked : iterable of RowSum
    chosen : ndarray of bool, shape (n_rows,)
        The rows that quantities of `FEW_ROWS` are found for.
    """
    few = rows.few(chosen)
    sums = {}
    for one in asked:
        found = few if one.quantity in FEW_ROWS else rows
        kept = (found.seen >= one.n_keys[0]) & (found.seen <= one.n_keys[1])
        if not kept.any():
            sums[one.name] = (0.0, 0)
            continue
        values = found.values(one.quantity, one.divisor)
        if one.n_power:
            values = values / found.seen.astype(np.float64) ** one.n_power
        if one.below is not None:
            values = _indicator(values < one.below)
        sums[one.name] = (float(values[kept].sum()), int(kept.sum()))
    return sums

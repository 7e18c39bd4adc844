"""Softmax of a head's rows: each quantity of the table, under the model's divisor.

Scores of some rows in, sums over rows out.  A hidden key has weight 0.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention import gradients, softmax
from montecarlo.attention.softmax import Array, SoftmaxRows
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
    n_power : float
        Each row's value is divided by this power of the number of keys it sees.
    permuted : bool
        Whether keys are those of other sequences.
    """

    name: str
    quantity: str
    n_power: float = 0.0
    permuted: bool = False


class Rows:
    """Rows of one sequence; softmax of them is found if it is needed."""

    def __init__(self, scores: Array, seen: NDArray[np.intp], divisor: float) -> None:
        """Take scores, shape (n_rows, n_keys), and how many keys each row sees."""
        self.scores, self.seen, self.divisor = scores, seen, divisor

    @cached_property
    def softmax(self) -> SoftmaxRows:
        """Softmax of the divided scores; hidden keys lie far below those seen."""
        scores, n_keys = self.scores, self.scores.shape[-1]
        if self.seen.min() < n_keys:
            hidden = np.arange(n_keys) >= self.seen[:, np.newaxis]
            scores = np.where(hidden, -HIDDEN, scores)
        return softmax.softmax_rows(softmax.measure_gaps(scores), self.divisor)

    def few(self, chosen: NDArray[np.bool_]) -> "Rows":
        """Return some of these rows."""
        return Rows(self.scores[chosen], self.seen[chosen], self.divisor)


def sum_rows(
    rows: Rows, asked: Iterable[RowSum], chosen: NDArray[np.bool_]
) -> dict[str, tuple[float, int]]:
    """Return sum and number of rows for each mean that is asked for.

    A row that sees a single key, as the first causal one does, does not count: it has
    nothing to choose.

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
        kept = found.seen > 1
        if not kept.any():
            sums[one.name] = (0.0, 0)
            continue
        values = ROW_FUNCTIONS[one.quantity](found.softmax)
        if one.n_power:
            values = values / found.seen.astype(np.float64) ** one.n_power
        sums[one.name] = (float(values[kept].sum()), int(kept.sum()))
    return sums

"""Which cell stands for a verdict: the one that a reader is shown first."""

import math
from collections.abc import Sequence

from montecarlo.report.views import CellView, CheckView, ReadingView


def smallest_refuted(
    readings: Sequence[ReadingView],
) -> tuple[CheckView, CellView] | None:
    """Return the smallest place that was measured to be otherwise than claimed.

    None where there is none; what theory says of a limit is not measured at a place.
    """
    found = _smallest(readings, "refuted")
    return None if found is None or found[1].limit is not None else found


def telling(
    verdict: str, readings: Sequence[ReadingView]
) -> tuple[CheckView, CellView] | None:
    """Return the cell that stands for a verdict.

    Of a claim that fails somewhere, the smallest counterexample; of one that is open,
    the smallest place that is; of one that holds, the place that it holds by the least
    among those that are known well.
    """
    if verdict in ("refuted", "conditional"):
        found = _smallest(readings, "refuted")
        if found is not None:
            return found
    if verdict in ("conditional", "inconclusive"):
        found = _smallest(readings, "inconclusive")
        if found is not None:
            return found
    held = [pair for pair in _cells(readings) if pair[1].outcome == "supported"]
    return min(held, key=lambda p: (_is_vague(p[1]), _margin(p[1])), default=None)


def _smallest(
    readings: Sequence[ReadingView], outcome: str
) -> tuple[CheckView, CellView] | None:
    """Return the cell of an outcome with the smallest d_k and n, and its check."""
    return min(
        ((check, cell) for check, cell in _cells(readings) if cell.outcome == outcome),
        key=lambda found: (found[1].d_k_range[1], found[1].n_keys or 0),
        default=None,
    )


def _cells(
    readings: Sequence[ReadingView],
) -> list[tuple[CheckView, CellView]]:
    return [(c, cell) for r in readings for c in r.checks for cell in c.cells]


def _is_vague(cell: CellView) -> bool:
    """Tell whether the error of a positive quantity is over a third of its value."""
    low = cell.window[0]
    if low is None or low <= 0.0 or not cell.estimate or not cell.std_error:
        return False
    return cell.std_error > abs(cell.estimate) / 3.0


def _margin(cell: CellView) -> float:
    """Return how many standard errors an interval stays away from its window's ends."""
    gaps = [
        abs(end - limit)
        for end, limit in zip(cell.decision, cell.window, strict=True)
        if end is not None and limit is not None
    ]
    if not gaps or not cell.std_error:
        return math.inf
    return min(gaps) / cell.std_error

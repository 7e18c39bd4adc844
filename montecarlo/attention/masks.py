"""Masks: which keys each query sees, and blocks of queries with the keys that they see.

Under a mask there are as many queries as keys; query i and key i are those of token i.
A block has the keys alone that one of its queries sees, and says which of its scores
are hidden: they are near the ends of the rows, so that hiding them costs little.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecarlo.errors import InputError, show

#: Summaries under a mask, where rows differ: means of the first and of the last row,
#: or key.
ENDS = ("first", "last")
_MASK = re.compile(r"none|full|causal|window\(([0-9]{1,7})\)")


@dataclass(frozen=True, slots=True)
class Mask:
    """Which keys a query sees.

    Attributes
    ----------
    kind : {"none", "full", "causal", "window"}
        ``none``: all, and there are fewer queries than keys where rows are long;
        ``full``: all; ``causal``: its own and earlier ones; ``window``: of these the
        last ``width``.
    width : int
        Of a window, its own key included; 0 for the others.
    """

    kind: str
    width: int = 0

    @property
    def name(self) -> str:
        """Canonical name, for example ``window(128)``."""
        return f"window({self.width})" if self.kind == "window" else self.kind

    @property
    def is_causal(self) -> bool:
        """Whether later keys are hidden."""
        return self.kind in {"causal", "window"}

    def longest(self, n_keys: int) -> int:
        """Return how many keys the last query sees; no other sees more."""
        return self.width or n_keys


NO_MASK = Mask("none")


def parse_mask(name: str) -> Mask:
    """Return the mask that a name stands for.

    Parameters
    ----------
    name : str
        ``none``, ``full``, ``causal`` or ``window(w)`` with a width w of at least 1.
    """
    match = _MASK.fullmatch(name.replace(" ", ""))
    width = int(match[1]) if match and match[1] else 0
    if match is None or (match[1] and not width):
        raise InputError(
            "mask must be none, full, causal or window(w) with a width w of at least "
            f"1, got {show(name)}"
        )
    return Mask("window" if width else match[0], width)


class QueryBlock(NamedTuple):
    """Some queries, and the keys that any of them sees.

    Attributes
    ----------
    queries, keys : slice
    hidden : tuple of (slice, ndarray of bool)
        Columns of the scores of the block, and which of these scores are hidden.
    n_visible : ndarray of int, shape (n_queries,)
        How many keys each query sees.
    """

    queries: slice
    keys: slice
    hidden: tuple[tuple[slice, NDArray[np.bool_]], ...]
    n_visible: NDArray[np.intp]

    def hide(self, values: NDArray[np.floating], value: float) -> None:
        """Set what is hidden to a value, in place.

        ``values`` has one for each score, shape (..., n_queries, n_keys).
        """
        for columns, hidden in self.hidden:
            np.copyto(values[..., columns], value, where=hidden)


def query_blocks(mask: Mask, n_keys: int, size: int) -> Iterator[QueryBlock]:
    """Yield all queries in blocks of at most ``size``, in order."""
    for first in range(0, n_keys, size):
        yield query_block(mask, n_keys, first, min(first + size, n_keys))


def query_block(mask: Mask, n_keys: int, first: int, stop: int) -> QueryBlock:
    """Return the block of the queries from ``first`` to ``stop - 1``.

    There is a mask.
    """
    i = np.arange(first, stop)
    if not mask.is_causal:
        every = slice(0, n_keys)
        return QueryBlock(slice(first, stop), every, (), np.full(i.size, n_keys))
    width = mask.longest(n_keys)
    start = max(0, first + 1 - width)
    # columns that the last query no longer sees, and those that the first does not yet
    early, late = max(0, stop - width - start), first + 1 - start
    ends = [(0, early), (late, stop - start)]
    if early > late:
        ends = [(0, stop - start)]
    hidden = []
    for low, high in ends:
        j = np.arange(start + low, start + high)
        later, gone = j > i[:, np.newaxis], j <= i[:, np.newaxis] - width
        if j.size:
            hidden.append((slice(low, high), later | gone))
    return QueryBlock(
        slice(first, stop), slice(start, stop), tuple(hidden), np.minimum(i + 1, width)
    )

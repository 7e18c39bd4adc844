"""Attention masks, and blocks of queries with the keys that are visible to them.

Under a mask there is one query for each key; query i and key i belong to token i.  A
block contains only the keys that are visible to at least one of its queries.  Its
hidden scores lie near both ends of the rows, so that masking costs little.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecarlo.errors import InputError, show
from montecarlo.names import suggest

#: Summaries that exist only under a mask, where rows differ: the mean over replicates
#: of the first and of the last query or key.
ENDS = ("first", "last")
_WINDOW = re.compile(r"window\(([0-9]{1,7})\)")


@dataclass(frozen=True, slots=True)
class Mask:
    """The keys that are visible to each query.

    Attributes
    ----------
    name : str
        Canonical.  ``none``: all keys, and fewer queries than keys in long rows;
        ``full``: all keys, and one query for each; ``causal``: the query's own and all
        earlier keys; ``window(w)``: the last w of these.
    width : int
        Length w of a window, including the query's own key; 0 without a window.
    """

    name: str
    width: int = 0

    @property
    def is_causal(self) -> bool:
        """Whether query i sees no key j > i: true of ``causal`` and of windows."""
        return self.name not in {"none", "full"}

    def longest(self, n_keys: int) -> int:
        """Return the largest number of keys that a query sees: that of the last query.

        It is the width of a window, otherwise ``n_keys``, the number of all keys.  The
        width must not exceed ``n_keys``, which is not checked here.
        """
        return self.width or n_keys


NO_MASK = Mask("none")


def parse_mask(name: str) -> Mask:
    """Return the mask with a given name.

    Parameters
    ----------
    name : str
        ``none``, ``full``, ``causal`` or ``window(w)`` with a width w from 1 to
        9,999,999.  Spaces are ignored.

    Raises
    ------
    InputError
        For any other name.
    """
    plain = name.replace(" ", "")
    match = _WINDOW.fullmatch(plain)
    width = int(match[1]) if match else 0
    if not width and plain not in {"none", "full", "causal"}:
        raise InputError(
            "mask must be none, full, causal or window(w) with a width w of at least "
            f"1, got {show(name)}.{suggest(plain, ('full', 'causal', 'window(128)'))}"
        )
    return Mask(f"window({width})" if width else plain, width)


class QueryBlock(NamedTuple):
    """Consecutive queries and the keys that are visible to at least one of them.

    Attributes
    ----------
    queries, keys : slice
        Their positions.
    hidden : tuple of (slice, ndarray of bool)
        Ranges of columns of the scores of the block, each with an array that is True
        where a score is hidden; shape (n_queries, n_columns).  Empty unless the mask
        is causal or a window.
    n_visible : ndarray of int, shape (n_queries,)
        Number of keys visible to each query.
    """

    queries: slice
    keys: slice
    hidden: tuple[tuple[slice, NDArray[np.bool_]], ...]
    n_visible: NDArray[np.intp]

    def hide(self, scores: NDArray[np.floating], value: float) -> None:
        """Set the hidden scores to ``value``, in place.

        Parameters
        ----------
        scores : ndarray, shape (..., n_queries, n_keys)
            Of the block's queries and keys alone.
        value : float
        """
        for columns, hidden in self.hidden:
            np.copyto(scores[..., columns], value, where=hidden)


def query_blocks(mask: Mask, shape: tuple[int, int], size: int) -> Iterator[QueryBlock]:
    """Yield all queries in order, in blocks of ``size``; the last may be smaller.

    Parameters
    ----------
    mask : Mask
    shape : (int, int)
        Numbers of queries and keys; equal if the mask is causal.
    size : int
        At least 1.
    """
    n_queries, n_keys = shape
    for first in range(0, n_queries, size):
        stop = min(first + size, n_queries)
        queries = slice(first, stop)
        if not mask.is_causal:
            visible = np.full(stop - first, n_keys)
            yield QueryBlock(queries, slice(0, n_keys), (), visible)
            continue
        width = mask.longest(n_keys)
        start = max(0, first + 1 - width)
        # columns hidden from the last query, and columns hidden from the first
        early = max(0, stop - width - start)
        late = max(early, first + 1 - start)
        i, j = np.arange(first, stop), np.arange(start, stop)
        hidden = tuple(
            (columns, (age < 0) | (age >= width))
            for columns in (slice(0, early), slice(late, None))
            for age in [i[:, np.newaxis] - j[columns]]  # in tokens
        )
        yield QueryBlock(queries, slice(start, stop), hidden, np.minimum(i + 1, width))

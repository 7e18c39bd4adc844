"""How K is drawn given Q: not at all, in matching pairs, or with a planted key."""

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from montecarlo.errors import InputError
from montecarlo.names import show

_NAME = re.compile(r"none|(pairs|planted)\((-?[0-9]*\.?[0-9]+(?:e-?[0-9]+)?)\)")


@dataclass(frozen=True, slots=True)
class Dependence:
    """How K is drawn given Q.

    Attributes
    ----------
    kind : {"none", "pairs", "planted"}
        ``pairs``: query i and key i are dependent, and only these pairs count.
        ``planted``: key i is planted for query i, an ordinary key for the others.
    rho : float
        The correlation of matching entries; 0 for ``none``.
    """

    kind: str
    rho: float = 0.0

    @property
    def name(self) -> str:
        """Canonical name, for example ``planted(0.25)``."""
        return self.kind if self.kind == "none" else f"{self.kind}({self.rho!r})"


INDEPENDENT = Dependence("none")


def parse_dependence(name: str) -> Dependence:
    """Return the dependence that a name stands for.

    Parameters
    ----------
    name : str
        ``none``, ``pairs(rho)`` or ``planted(rho)`` with rho from 0 to 1.
    """
    match = _NAME.fullmatch(name.replace(" ", ""))
    rho = float(match[2]) if match and match[2] else 0.0
    if match is None or not 0.0 <= rho <= 1.0:
        raise InputError(
            "dependence must be none, pairs(rho) or planted(rho) with 0 <= rho <= 1, "
            f"got {show(name)}"
        )
    return Dependence(match[1] or "none", rho)


def correlate(
    queries: NDArray[np.float32],
    keys: NDArray[np.float32],
    rho: float,
    rng: Generator | None,
) -> NDArray[np.float32]:
    """Return keys whose first rows are correlated with the queries.

    Parameters
    ----------
    queries, keys : ndarray of float32, shapes (n_queries, d_k) and (n_keys, d_k)
        Independent, of the same standardised distribution.
    rho : float
        Correlation of the entries of key i with those of query i.
    rng : Generator or None
        None for Gaussian entries; else what decides which entries are copied.

    Returns
    -------
    ndarray of float32, shape (n_keys, d_k)

    Notes
    -----
    Gaussian: k = rho q + sqrt(1 - rho²) z.  Other distributions: each entry copies the
    query's with probability rho, which keeps the distribution of an entry; then
    Var(q·k) = d_k (1 + rho (kurtosis - 1) - rho²).
    """
    matched = min(len(queries), len(keys))
    source, own = queries[:matched], keys[:matched]
    if rng is None:
        mixed = np.float32(rho) * source
        mixed += np.float32(math.sqrt(1.0 - rho * rho)) * own
    else:
        copied = rng.random(own.shape, dtype=np.float32) < np.float32(rho)
        mixed = np.where(copied, source, own)
    return np.concatenate([mixed, keys[matched:]])

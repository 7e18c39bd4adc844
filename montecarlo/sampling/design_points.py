"""What is sampled: a point, its name, its shape and its random streams.

The streams depend on the seed, the point's name and the replicate's index and on
nothing else, so a point gives the same numbers alone, in any grid, on any workers.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence
from numpy.typing import NDArray

from montecarlo.errors import InputError
from montecarlo.sampling.dependence import parse_dependence
from montecarlo.sampling.distributions import parse_distribution
from montecarlo.sampling.initialisations import parse_initialisation

#: Queries and keys of a block of pairs: best standard error per second (measured).
PAIR_BLOCK = 256
#: Scores of one block of rows at most, unless one query has more keys.
ROW_BLOCK = 2**18
MOST_QUERIES = 128
#: Children of a replicate's seed.
STREAMS = ("q", "k", "v", "copy", "tail")
#: Words that `SeedSequence` keeps of a seed at least.
POOL = 4
#: From this d_k or number of keys on, a replicate is large: fewer of them are drawn.
LARGE = 2048


@dataclass(frozen=True, slots=True)
class DesignPoint:
    """What is sampled.

    Attributes
    ----------
    distribution_q, distribution_k : str
        Canonical names of the distributions of the entries.
    d_k : int
        Length of a query or key, at least 1.
    n_keys : int or None
        Keys of a row; None for pairs, drawn in blocks of 256 by 256.
    dependence : str
        How K is drawn given Q; ``none``: independently.
    initialisation : str
        What stands before q and k; empty: nothing.
    formats : bool
        Whether rows are also computed in number formats.  Not part of the name: the
        draws are the same.
    """

    distribution_q: str
    distribution_k: str
    d_k: int
    n_keys: int | None = None
    dependence: str = "none"
    initialisation: str = ""
    formats: bool = False

    def __post_init__(self) -> None:
        for field in ("distribution_q", "distribution_k"):
            object.__setattr__(
                self, field, parse_distribution(getattr(self, field)).name
            )
        dependence = parse_dependence(self.dependence)
        object.__setattr__(self, "dependence", dependence.name)
        initialisation = parse_initialisation(self.initialisation)
        object.__setattr__(
            self, "initialisation", initialisation.name if initialisation else ""
        )
        self._require_consistent(dependence.kind)
        for field, least in (("d_k", 1), ("n_keys", 2)):
            value = getattr(self, field)
            if field == "n_keys" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(
                    f"{field} must be an integer of at least {least}, got {value!r}"
                )

    def _require_consistent(self, kind: str) -> None:
        """Refuse what has no meaning: say which field, and why."""
        if kind == "pairs" and self.n_keys is not None:
            raise InputError(
                "dependence pairs(rho) must have no n_keys: it has no rows"
            )
        if kind == "planted" and self.n_keys is None:
            raise InputError("dependence planted(rho) must have n_keys: it needs rows")
        if self.initialisation and {self.distribution_q, self.distribution_k} != {
            "gaussian"
        }:
            raise InputError(
                "initialisation must be of the distribution gaussian, which "
                "projections leave aside, got "
                f"{self.distribution_q} and {self.distribution_k}"
            )
        if kind != "none" and (self.initialisation or self.family_q != self.family_k):
            raise InputError(
                f"dependence {self.dependence} must have q and k of one "
                f"distribution and no initialisation, got {self.distribution_q}, "
                f"{self.distribution_k} and {self.initialisation!r}"
            )

    @property
    def family_q(self) -> str:
        """The distribution of q without its mean and standard deviation."""
        return self.distribution_q.partition("(")[0]

    @property
    def family_k(self) -> str:
        """The distribution of k without its mean and standard deviation."""
        return self.distribution_k.partition("(")[0]

    @property
    def name(self) -> str:
        """Canonical name: what the random streams are keyed by, in its first words."""
        keys = "pairs" if self.n_keys is None else f"n_keys={self.n_keys}"
        return (
            f"law_q={self.distribution_q};law_k={self.distribution_k};"
            f"dependence={self.dependence};setup={self.initialisation};"
            f"d_k={self.d_k};{keys}"
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Queries and keys of one replicate; a function of the point alone."""
        if self.n_keys is None:
            return PAIR_BLOCK, PAIR_BLOCK
        n_queries = max(1, min(MOST_QUERIES, ROW_BLOCK // self.n_keys))
        if self.dependence != "none":  # each query needs a key of its own
            n_queries = min(n_queries, self.n_keys)
        return n_queries, self.n_keys

    @property
    def is_large(self) -> bool:
        """Whether its sizes make a replicate expensive."""
        initialisation = parse_initialisation(self.initialisation)
        width = initialisation.width if initialisation else 0
        return max(self.d_k, self.n_keys or 0, width) >= LARGE


def stream(seed: int, point: DesignPoint, index: int, which: str) -> Generator:
    """Return the generator of one matrix of one replicate.

    Parameters
    ----------
    seed : int
        The study's seed, at least 0.
    point : DesignPoint
    index : int
        The replicate's index, at least 0.
    which : {"q", "k", "v", "copy", "tail"}

    Returns
    -------
    numpy.random.Generator
    """
    child = (*point_key(point.name), index, STREAMS.index(which))
    return Generator(SFC64(SeedSequence(_words(seed, child))))


def _words(seed: int, child: tuple[int, ...]) -> NDArray[np.uint32]:
    """Return the words that ``SeedSequence(seed, spawn_key=child)`` makes of these.

    Handing it the words takes a third of the time: converting a tuple is slow.
    """
    own = [seed >> shift & 0xFFFFFFFF for shift in range(0, seed.bit_length(), 32)]
    padding = [0] * (POOL - len(own))
    return np.array([*own, *padding, *child], dtype=np.uint32)


@lru_cache(maxsize=4096)
def point_key(name: str) -> tuple[int, ...]:
    """Turn a canonical name into four 32-bit words by SHA-256."""
    digest = hashlib.sha256(name.encode()).digest()[:16]
    return tuple(int(word) for word in np.frombuffer(digest, dtype="<u4"))

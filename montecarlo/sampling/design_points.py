"""What is sampled: a point, its name, its shape and its random streams.

A point is two distributions of entries, how K depends on Q, perhaps projections at
initialisation and a normalisation of q and k, a mask, d_k and the number of keys.  The
streams depend on the seed, the point's name and the replicate's index and on nothing
else, so a point gives the same numbers alone, in any grid, on any workers.
"""

import hashlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence
from numpy.typing import NDArray

from montecarlo.attention.masks import NO_MASK, Mask, parse_mask
from montecarlo.errors import InputError, show
from montecarlo.names import look_up, require_whole
from montecarlo.sampling.distributions import (
    DISTRIBUTIONS,
    Distribution,
    parse_distribution,
)

_DEPENDENCE = re.compile(r"none|(pairs|planted)\((-?[0-9]*\.?[0-9]+(?:e-?[0-9]+)?)\)")


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
    match = _DEPENDENCE.fullmatch(name.replace(" ", ""))
    rho = float(match[2]) if match and match[2] else 0.0
    if match is None or not 0.0 <= rho <= 1.0:
        raise InputError(
            "dependence must be none, pairs(rho) or planted(rho) with 0 <= rho <= 1, "
            f"got {show(name)}"
        )
    return Dependence(match[1] or "none", rho)


NORMALISATIONS = ("none", "l2", "rms")
#: Gains that leave float32 products their precision.
LEAST_GAIN, MOST_GAIN = 1e-6, 1e6
_NORMALISATION = re.compile(r"(\w+)(?:\(gain=([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\))?")


@dataclass(frozen=True, slots=True)
class Normalisation:
    """What is done to each query and key before the product.

    Attributes
    ----------
    kind : {"none", "l2", "rms"}
        ``l2``: each is divided by its length; ``rms``: by the root of the mean square
        of its entries, which leaves it a length of sqrt(d_k).
    gain : float
        What the product is multiplied by, once; 1 for ``none``.
    """

    kind: str
    gain: float = 1.0

    @property
    def name(self) -> str:
        """Canonical name, for example ``l2(gain=10.0)``; a gain of 1 is left out."""
        return self.kind if self.gain == 1.0 else f"{self.kind}(gain={self.gain!r})"

    def length(self, d_k: int) -> float:
        """Return the length of a normalised query or key; there is a normalisation."""
        return 1.0 if self.kind == "l2" else math.sqrt(d_k)


AS_DRAWN = Normalisation("none")


def parse_normalisation(name: str) -> Normalisation:
    """Return the normalisation that a name stands for.

    Parameters
    ----------
    name : str
        ``none``, ``l2``, ``rms``, ``l2(gain=g)`` or ``rms(gain=g)``.
    """
    match = _NORMALISATION.fullmatch(name.replace(" ", ""))
    gain = float(match[2]) if match and match[2] else 1.0
    known = match is not None and match[1] in NORMALISATIONS
    if (
        match is None
        or not known
        or not LEAST_GAIN <= gain <= MOST_GAIN
        or (match[1] == "none" and match[2])
    ):
        raise InputError(
            "normalisation must be none, l2(gain=g) or rms(gain=g) with a gain from "
            f"{LEAST_GAIN:g} to {MOST_GAIN:g}, got {show(name)}"
        )
    return Normalisation(match[1], gain)


#: (fan in, fan out) -> variance of a weight, and the distribution it is drawn from.
WEIGHT_KINDS: dict[str, tuple[Callable[[int, int], float], str]] = {
    "xavier_uniform": (lambda i, o: 2.0 / (i + o), "uniform"),
    "xavier_normal": (lambda i, o: 2.0 / (i + o), "gaussian"),
    "kaiming_linear": (lambda i, o: 1.0 / (3.0 * i), "uniform"),
    "he_normal": (lambda i, o: 2.0 / i, "gaussian"),
    "lecun_normal": (lambda i, o: 1.0 / i, "gaussian"),
    "normal_002": (lambda i, o: 0.02**2, "gaussian"),
}
NORMS = ("layer", "rms")
#: What a weight matrix holds: the projection of one head, of all heads of Q, or of all
#: heads of Q, K and V together.  It decides the fan out.
SHAPES = ("head", "full", "fused")

_INITIALISATION = re.compile(
    r"init\(kind=(\w+),norm=(\w+),shape=(\w+),width=([0-9]{1,7})\)"
)


@dataclass(frozen=True, slots=True)
class Initialisation:
    """Projections at initialisation.

    Attributes
    ----------
    kind : str
        A key of `WEIGHT_KINDS`.
    norm : {"layer", "rms"}
        What tokens have been through.
    shape : {"head", "full", "fused"}
        What a weight matrix holds.
    width : int
        Length of a token, the model's input dimension.
    """

    kind: str
    norm: str
    shape: str
    width: int

    @property
    def name(self) -> str:
        """Canonical name: parameters sorted."""
        return (
            f"init(kind={self.kind},norm={self.norm},shape={self.shape},"
            f"width={self.width})"
        )

    def weight_variance(self, d_k: int) -> float:
        """Return the variance of a weight of the projection to heads of size d_k."""
        fan_out = {"head": d_k, "full": self.width, "fused": 3 * self.width}[self.shape]
        variance, _ = WEIGHT_KINDS[self.kind]
        return variance(self.width, fan_out)


def name_of(initialisation: Initialisation | None) -> str:
    """Return a canonical name; empty for none."""
    return initialisation.name if initialisation else ""


def parse_initialisation(name: str) -> Initialisation | None:
    """Return the initialisation that a name stands for, None for ``none`` or empty."""
    if name in {"", "none"}:
        return None
    match = _INITIALISATION.fullmatch(name.replace(" ", ""))
    if match is None or not 1 <= int(match[4]) <= 2**20:
        raise InputError(
            "initialisation must be empty or "
            "init(kind=...,norm=...,shape=...,width=N), "
            f"got {show(name)}"
        )
    kind, norm, shape = match[1], match[2], match[3]
    look_up("initialisation", kind, WEIGHT_KINDS)
    look_up("norm", norm, dict.fromkeys(NORMS))
    look_up("shape of a projection", shape, dict.fromkeys(SHAPES))
    return Initialisation(kind, norm, shape, int(match[4]))


#: Queries and keys of a block of pairs: best standard error per second (measured).
PAIR_BLOCK = 256
#: Scores of one block of rows at most, unless one query has more keys.  Long keys cost
#: more to draw than a few dozen queries take to score.
ROW_BLOCK = 2**20
MOST_QUERIES = 128
#: Queries of a masked block at least, and the part of a row that they are: a block of
#: causal attention scores half as many keys in vain as it has queries.
FEWEST_QUERIES, BLOCKS_OF_A_ROW = 32, 64
#: Children of a replicate's seed.
STREAMS = ("q", "k", "v", "copy", "tail", "values", "by_output")
#: Words that `SeedSequence` keeps of a seed at least.
POOL = 4
#: From this d_k or number of keys on, a replicate is large: fewer of them are drawn.
LARGE = 2048


@dataclass(frozen=True, slots=True)
class DesignPoint:
    """What is sampled.

    Attributes
    ----------
    distribution_q, distribution_k : Distribution
        Of the entries.
    d_k : int
        Length of a query or key, at least 1.
    n_keys : int or None
        Keys of an attention row, at least 2; None: no rows, but blocks of queries
        against keys, of which each pair is looked at alone.
    dependence : Dependence
        How K is drawn given Q.
    initialisation : Initialisation or None
        What stands before q and k; None: nothing.
    normalisation : Normalisation
        What is done to each query and key before the product.
    mask : Mask
        Which keys each query sees; with one there are as many queries as keys.
    formats : bool
        Whether rows can be asked for in number formats.  Not part of the name: the
        draws are the same.
    """

    distribution_q: Distribution
    distribution_k: Distribution
    d_k: int
    n_keys: int | None = None
    dependence: Dependence = INDEPENDENT
    initialisation: Initialisation | None = None
    normalisation: Normalisation = AS_DRAWN
    mask: Mask = NO_MASK
    formats: bool = False

    def __post_init__(self) -> None:
        require_whole("d_k", self.d_k, 1)
        if self.n_keys is not None:
            require_whole("n_keys", self.n_keys, 2)
        kind = self.dependence.kind
        if kind == "pairs" and self.has_rows:
            raise InputError(
                "dependence pairs(rho) must have no n_keys: it has no rows"
            )
        if kind == "planted" and not self.has_rows:
            raise InputError("dependence planted(rho) must have n_keys: it needs rows")
        if self.is_masked and self.n_keys is None:
            raise InputError(
                f"mask must be none without n_keys, got {self.mask.name}: pairs have "
                "no rows"
            )
        if self.mask.width > (self.n_keys or self.mask.width):
            raise InputError(
                f"mask window(w) must have a w of at most n_keys, {self.n_keys}, got "
                f"{self.mask.width}"
            )
        q, k = self.distribution_q, self.distribution_k
        if self.initialisation and {q.name, k.name} != {"gaussian"}:
            raise InputError(
                "initialisation must be of the distribution gaussian, which "
                f"projections leave aside, got {q.name} and {k.name}"
            )
        if kind != "none" and (self.initialisation or q.family != k.family):
            raise InputError(
                f"dependence {self.dependence.name} must have q and k of one "
                f"distribution and no initialisation, got {q.name}, {k.name} and "
                f"{name_of(self.initialisation)!r}"
            )

    @property
    def names(self) -> tuple[str, str, str, str, str, str]:
        """Distributions, normalisation and what else there is, as tables name them."""
        return (
            self.distribution_q.name,
            self.distribution_k.name,
            self.normalisation.name,
            self.dependence.name,
            name_of(self.initialisation),
            self.mask.name,
        )

    @property
    def label(self) -> str:
        """Its distributions: one name where q and k share it."""
        q, k = self.distribution_q.name, self.distribution_k.name
        return k if q == k else f"{q} * {k}"

    @property
    def has_rows(self) -> bool:
        """Whether attention rows are looked at, or pairs."""
        return self.n_keys is not None

    @property
    def is_independent(self) -> bool:
        """Whether products are of entries that are drawn independently, as they are."""
        drawn = self.dependence == INDEPENDENT and self.initialisation is None
        return drawn and not self.is_normalised

    @property
    def is_normalised(self) -> bool:
        """Whether queries and keys are normalised before the product."""
        return self.normalisation != AS_DRAWN

    @property
    def is_masked(self) -> bool:
        """Whether there is a mask, and so a query for each key."""
        return self.mask != NO_MASK

    @property
    def has_symmetric_entries(self) -> bool:
        """Whether each entry of q, or each of k, is as likely with either sign.

        Given all others; one's own distributions are not known to be symmetric.
        """
        sides = self.distribution_q, self.distribution_k
        return any(one.mean == 0.0 and one.family in DISTRIBUTIONS for one in sides)

    @property
    def name(self) -> str:
        """Canonical name: what the random streams are keyed by, in its first words."""
        design = "pairs" if self.n_keys is None else f"n_keys={self.n_keys}"
        return (
            f"law_q={self.distribution_q.name};law_k={self.distribution_k.name};"
            f"dependence={self.dependence.name};setup={name_of(self.initialisation)};"
            f"d_k={self.d_k};{design}"
            + (f";normalisation={self.normalisation.name}" * self.is_normalised)
            + (f";mask={self.mask.name}" * self.is_masked)
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Queries and keys of one replicate; a function of the point alone."""
        if self.n_keys is None:
            return PAIR_BLOCK, PAIR_BLOCK
        if self.is_masked:
            return self.n_keys, self.n_keys
        n_queries = max(1, min(MOST_QUERIES, ROW_BLOCK // self.n_keys))
        if self.dependence != INDEPENDENT:  # each query needs a key of its own
            n_queries = min(n_queries, self.n_keys)
        return n_queries, self.n_keys

    @property
    def queries_at_once(self) -> int:
        """Queries whose scores are there at once; there are rows."""
        n_queries, n_keys = self.shape
        if not self.is_masked:
            return n_queries
        longest = self.mask.longest(n_keys)
        wanted = max(FEWEST_QUERIES, longest // BLOCKS_OF_A_ROW)
        return max(1, min(MOST_QUERIES, wanted, ROW_BLOCK // longest))

    @property
    def row_spread(self) -> float:
        """Standard deviation of the undivided scores of a row, about: |q| times std(k).

        Initialisations give entries a variance near 1, which they are counted with.
        """
        if self.is_normalised:
            length = self.normalisation.length(self.d_k)
            return self.normalisation.gain * length**2 / math.sqrt(self.d_k)
        q, k = self.distribution_q, self.distribution_k
        return math.sqrt(self.d_k) * math.hypot(q.mean, q.std) * k.std

    @property
    def is_large(self) -> bool:
        """Whether its sizes make a replicate expensive."""
        width = self.initialisation.width if self.initialisation else 0
        return max(self.d_k, self.n_keys or 0, width) >= LARGE


def parse_point(  # noqa: PLR0913, PLR0917 - as the tables name it
    distribution_q: str,
    distribution_k: str,
    d_k: int,
    n_keys: int | None = None,
    dependence: str = "none",
    initialisation: str = "",
    normalisation: str = "none",
    mask: str = "none",
    *,
    formats: bool = False,
) -> DesignPoint:
    """Return the point that names stand for.

    Parameters
    ----------
    distribution_q, distribution_k, dependence, initialisation, normalisation : str
        As in the tables, and so is ``mask``.
    d_k : int
    n_keys : int, optional
        By default pairs.
    formats
        As in `DesignPoint`.

    Raises
    ------
    InputError
        If a name or size is none, or they do not go together; says which and why.
    """
    return DesignPoint(
        parse_distribution(distribution_q),
        parse_distribution(distribution_k),
        d_k,
        n_keys,
        parse_dependence(dependence),
        parse_initialisation(initialisation),
        parse_normalisation(normalisation),
        parse_mask(mask),
        formats,
    )


def stream(seed: int, point: DesignPoint, index: int, which: str) -> Generator:
    """Return the generator of one matrix of one replicate.

    Parameters
    ----------
    seed : int
        The study's seed, at least 0.
    point : DesignPoint
    index : int
        The replicate's index, at least 0.
    which : str
        One of `STREAMS`.
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

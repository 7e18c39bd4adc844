"""Design points: what is sampled, under which name, and from which random streams.

A design point is given by the distributions of the entries of Q and K, the dependence
of K on Q, optional projections at initialisation, a normalisation of queries and keys,
a mask, d_k and the number of keys.  Its random streams depend only on the seed, the
name of the point and the index of the replicate.  Results are therefore the same in any
grid and for any number of workers.
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
from montecarlo.names import look_up, require_whole, suggest
from montecarlo.sampling.distributions import (
    DISTRIBUTIONS,
    Distribution,
    parse_distribution,
)

_DEPENDENCE = re.compile(r"none|(pairs|planted)\((-?[0-9]*\.?[0-9]+(?:e-?[0-9]+)?)\)")


@dataclass(frozen=True, slots=True)
class Dependence:
    """Dependence of the keys on the queries.

    Attributes
    ----------
    kind : {"none", "pairs", "planted"}
        ``pairs``: query i and key i are dependent, and only their scores are used.
        ``planted``: query i and key i are dependent, and each row has all keys.
    rho : float
        Correlation of the entries of query i with those of key i, from 0 to 1.
    """

    kind: str
    rho: float = 0.0

    @property
    def name(self) -> str:
        """Canonical name, for example ``planted(0.25)``."""
        return self.kind if self.kind == "none" else f"{self.kind}({self.rho!r})"


INDEPENDENT = Dependence("none")


def parse_dependence(name: str) -> Dependence:
    """Return the dependence with a given name.

    Parameters
    ----------
    name : str
        ``none``, ``pairs(rho)`` or ``planted(rho)`` with rho from 0 to 1.

    Raises
    ------
    InputError
        For any other name.
    """
    match = _DEPENDENCE.fullmatch(name.replace(" ", ""))
    rho = float(match[2]) if match and match[2] else 0.0
    if match is None or not 0.0 <= rho <= 1.0:
        raise InputError(
            "dependence must be none, pairs(rho) or planted(rho) with 0 <= rho <= 1, "
            f"got {show(name)}.{suggest(name, ('pairs(0.5)', 'planted(0.5)'))}"
        )
    return Dependence(match[1] or "none", rho)


#: Range of a gain, in which float32 products keep their precision.
LEAST_GAIN, MOST_GAIN = 1e-6, 1e6
_NORMALISATION = re.compile(
    r"none|(l2|rms)(?:\(gain=([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\))?"
)


@dataclass(frozen=True, slots=True)
class Normalisation:
    """Normalisation of each query and key before the product.

    Attributes
    ----------
    kind : {"none", "l2", "rms"}
        ``l2``: each vector is divided by its norm; ``rms``: by the root mean square of
        its entries, so that its norm is sqrt(d_k).
    gain : float
        Factor on the product of a query and a key; 1 for ``none``.
    """

    kind: str
    gain: float = 1.0

    @property
    def name(self) -> str:
        """Canonical name, for example ``l2(gain=10.0)``; a gain of 1 is omitted."""
        return self.kind if self.gain == 1.0 else f"{self.kind}(gain={self.gain!r})"

    def length(self, d_k: int) -> float:
        """Return the norm of a query or key after normalisation, without the gain.

        ``kind`` must be ``l2`` or ``rms``.
        """
        return 1.0 if self.kind == "l2" else math.sqrt(d_k)


AS_DRAWN = Normalisation("none")


def parse_normalisation(name: str) -> Normalisation:
    """Return the normalisation with a given name.

    Parameters
    ----------
    name : str
        ``none``, ``l2``, ``rms``, ``l2(gain=g)`` or ``rms(gain=g)``, with a gain g from
        `LEAST_GAIN` to `MOST_GAIN`.

    Raises
    ------
    InputError
        For any other name.
    """
    match = _NORMALISATION.fullmatch(name.replace(" ", ""))
    gain = float(match[2]) if match and match[2] else 1.0
    if match is None or not LEAST_GAIN <= gain <= MOST_GAIN:
        raise InputError(
            "normalisation must be none, l2(gain=g) or rms(gain=g) with a gain from "
            f"{LEAST_GAIN:g} to {MOST_GAIN:g}, got {show(name)}"
        )
    return Normalisation(match[1] or "none", gain)


#: For each initialisation, the variance of a weight as a function of (fan in, fan out),
#: and the distribution of the weights.
WEIGHT_KINDS: dict[str, tuple[Callable[[int, int], float], str]] = {
    "xavier_uniform": (lambda i, o: 2.0 / (i + o), "uniform"),
    "xavier_normal": (lambda i, o: 2.0 / (i + o), "gaussian"),
    "kaiming_linear": (lambda i, o: 1.0 / (3.0 * i), "uniform"),
    "he_normal": (lambda i, o: 2.0 / i, "gaussian"),
    "lecun_normal": (lambda i, o: 1.0 / i, "gaussian"),
    "normal_002": (lambda i, o: 0.02**2, "gaussian"),
}
NORMS = ("layer", "rms")
#: Contents of one weight matrix, which determine the fan out: the projection of one
#: head, of all heads of Q, or of all heads of Q, K and V.
SHAPES = ("head", "full", "fused")

_INITIALISATION = re.compile(
    r"init\(kind=(\w+),norm=(\w+),shape=(\w+),width=([0-9]{1,7})\)"
)


@dataclass(frozen=True, slots=True)
class Initialisation:
    """Initialisation of the projections that map tokens to queries and keys.

    Attributes
    ----------
    kind : str
        A key of `WEIGHT_KINDS`.
    norm : {"layer", "rms"}
        Normalisation of the tokens.
    shape : {"head", "full", "fused"}
        Contents of one weight matrix, see `SHAPES`.
    width : int
        Dimension of a token, from 1 to 2**20.
    """

    kind: str
    norm: str
    shape: str
    width: int

    @property
    def name(self) -> str:
        """Canonical name: ``init(kind=lecun_normal,norm=rms,shape=head,width=512)``."""
        return (
            f"init(kind={self.kind},norm={self.norm},shape={self.shape},"
            f"width={self.width})"
        )

    def weight_variance(self, d_k: int) -> float:
        """Return the variance of a projection's weights, for heads of dimension d_k."""
        fan_out = {"head": d_k, "full": self.width, "fused": 3 * self.width}[self.shape]
        variance, _ = WEIGHT_KINDS[self.kind]
        return variance(self.width, fan_out)


def name_of(initialisation: Initialisation | None) -> str:
    """Return the canonical name of an initialisation; "" for None."""
    return initialisation.name if initialisation else ""


def parse_initialisation(name: str) -> Initialisation | None:
    """Return the initialisation with a given name; None for ``none`` and "".

    Names are those of `Initialisation.name`, with all four parameters in this order.

    Raises
    ------
    InputError
        For an unknown name, or a width that is not from 1 to 2**20.
    """
    if name in {"", "none"}:
        return None
    match = _INITIALISATION.fullmatch(name.replace(" ", ""))
    if match is None or not 1 <= int(match[4]) <= 2**20:
        raise InputError(
            "initialisation must be empty or init(kind=...,norm=...,shape=...,width=N) "
            f"of python -m montecarlo --list initialisations, got {show(name)}"
        )
    kind, norm, shape = match[1], match[2], match[3]
    look_up("initialisation", kind, WEIGHT_KINDS)
    look_up("norm", norm, dict.fromkeys(NORMS))
    look_up("shape of a projection", shape, dict.fromkeys(SHAPES))
    return Initialisation(kind, norm, shape, int(match[4]))


#: Numbers of queries and of keys in a block of pairs, with the smallest standard error
#: for a given time (measured).
PAIR_BLOCK = 256
#: Largest numbers of scores of a replicate of rows, unless one row has more, and of its
#: queries.  Many keys take longer to draw than a few dozen queries take to score.
ROW_BLOCK = 2**20
MOST_QUERIES = 128
#: Under a mask, smallest number of queries in a block, and number of keys for each of
#: them.  In a causal block of m queries, m/2 scores of a row are hidden on average.
FEWEST_QUERIES, KEYS_PER_QUERY = 32, 64
#: Names of the random streams of a replicate.
STREAMS = ("q", "k", "v", "copy", "tail", "values", "by_output")
#: `SeedSequence` pads seeds to at least this number of words.
POOL = 4
#: Replicates with a d_k or number of keys from here on are large, and fewer are drawn.
LARGE = 2048


@dataclass(frozen=True, slots=True)
class DesignPoint:
    """A setting in which queries and keys are sampled.

    Attributes
    ----------
    distribution_q, distribution_k : Distribution
        Of the entries of queries and of keys.
    d_k : int
        Dimension of a query or key, at least 1.
    n_keys : int or None
        Number of keys of an attention row, at least 2.  None for pairs: scores of
        queries and keys without rows, and hence without softmax.
    dependence : Dependence
        Of the keys on the queries.
    initialisation : Initialisation or None
        Of the projections from tokens to queries and keys; None if entries are drawn
        directly.
    normalisation : Normalisation
        Of queries and keys.
    mask : Mask
        Keys visible to each query.  Under a mask there are as many queries as keys.
    formats : bool
        Whether rows are also computed in number formats.  This is not part of the name,
        as the draws are the same.

    Raises
    ------
    InputError
        If a size is too small, or if attributes cannot be combined.
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
        if kind != "none" and self.has_rows != (kind == "planted"):
            raise InputError(
                "dependence pairs(rho) must have no n_keys, as it has no rows, and "
                f"planted(rho) must have n_keys, got {kind} and {self.n_keys}"
            )
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
        """Names of the parts of the point, which are the first columns of tables.

        They are the distributions of q and k, normalisation, dependence, initialisation
        and mask: ``("gaussian", "gaussian", "none", "none", "", "causal")``.
        """
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
        """Names of the distributions of q and k as text; one name if they are equal.

        Such as ``gaussian``, or ``gaussian * laplace``.
        """
        q, k = self.distribution_q.name, self.distribution_k.name
        return k if q == k else f"{q} * {k}"

    @property
    def has_rows(self) -> bool:
        """Whether the point samples attention rows.

        Otherwise it samples pairs of a query and a key, without softmax.
        """
        return self.n_keys is not None

    @property
    def is_independent(self) -> bool:
        """Whether all entries of q and k are independent of each other.

        They are not if keys depend on queries, nor after projection or normalisation.
        """
        drawn = self.dependence == INDEPENDENT and self.initialisation is None
        return drawn and not self.is_normalised

    @property
    def is_normalised(self) -> bool:
        """Whether queries and keys are normalised before the product."""
        return self.normalisation != AS_DRAWN

    @property
    def is_masked(self) -> bool:
        """Whether there is a mask; ``full`` counts.

        If so, there are as many queries as keys.
        """
        return self.mask != NO_MASK

    @property
    def has_symmetric_entries(self) -> bool:
        """Whether the entries of q, or those of k, are known to be symmetric about 0.

        It is not known for registered distributions and those of SciPy: they count as
        not symmetric.
        """
        sides = self.distribution_q, self.distribution_k
        return any(one.mean == 0.0 and one.family in DISTRIBUTIONS for one in sides)

    @property
    def name(self) -> str:
        """Canonical name, from which random streams are derived.

        Such as
        ``law_q=gaussian;law_k=gaussian;dependence=none;setup=;d_k=64;n_keys=128``.  It
        says law and setup for distribution and initialisation, since other words would
        give other draws.
        """
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
        """Shape of the scores of one replicate: (n_queries, n_keys).

        Without rows, both are `PAIR_BLOCK`.
        """
        if self.n_keys is None:
            return PAIR_BLOCK, PAIR_BLOCK
        if self.is_masked:
            return self.n_keys, self.n_keys
        n_queries = max(1, min(MOST_QUERIES, ROW_BLOCK // self.n_keys))
        if self.dependence != INDEPENDENT:  # each query has a planted key
            n_queries = min(n_queries, self.n_keys)
        return n_queries, self.n_keys

    @property
    def queries_at_once(self) -> int:
        """Largest number of queries in a block, whose scores are computed together.

        The point must have attention rows.
        """
        n_queries, n_keys = self.shape
        if not self.is_masked:
            return n_queries
        longest = self.mask.longest(n_keys)
        wanted = max(FEWEST_QUERIES, longest // KEYS_PER_QUERY)
        return max(1, min(MOST_QUERIES, wanted, ROW_BLOCK // longest))

    @property
    def row_spread(self) -> float:
        """Approximate standard deviation of the undivided scores of a row.

        It is the root mean square norm of a query times the standard deviation of an
        entry of k.  Both are those of the distributions: an initialisation, which
        projects tokens, is ignored.  For normalised queries and keys, it follows from
        their norm and the gain.
        """
        if self.is_normalised:
            length = self.normalisation.length(self.d_k)
            return self.normalisation.gain * length**2 / math.sqrt(self.d_k)
        q, k = self.distribution_q, self.distribution_k
        return math.sqrt(self.d_k) * math.hypot(q.mean, q.std) * k.std

    @property
    def is_large(self) -> bool:
        """Whether d_k, the number of keys or the width of a token is at least `LARGE`.

        A replicate is then expensive.
        """
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
    """Return the design point with parts of given names, and with given sizes.

    Parameters
    ----------
    distribution_q, distribution_k : str
        Names as in the tables.
    d_k : int
        At least 1.
    n_keys : int, optional
        At least 2.  By default the point has no rows, and samples pairs of a query and
        a key.
    dependence, initialisation, normalisation, mask : str
        Names as in the tables.  With the initialisation "" or ``none`` entries are
        drawn directly, without a projection.
    formats : bool
        Whether rows are also computed in number formats.

    Raises
    ------
    InputError
        If a name is unknown, a size too small, or if they cannot be combined.
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
    """Return the random generator for one kind of random numbers of a replicate.

    Parameters
    ----------
    seed : int
        Seed of the study, at least 0.
    point : DesignPoint
    index : int
        Index of the replicate, at least 0.
    which : str
        One of `STREAMS`.
    """
    child = (*point_key(point.name), index, STREAMS.index(which))
    return Generator(SFC64(SeedSequence(_seed_words(seed, child))))


def _seed_words(seed: int, child: tuple[int, ...]) -> NDArray[np.uint32]:
    """Return the entropy of ``SeedSequence(seed, spawn_key=child)`` as 32-bit words.

    An array of shape (n_words,).  Given this array, `SeedSequence` takes a third of the
    time.
    """
    own = [seed >> shift & 0xFFFFFFFF for shift in range(0, seed.bit_length(), 32)]
    padding = [0] * (POOL - len(own))
    return np.array([*own, *padding, *child], dtype=np.uint32)


@lru_cache(maxsize=4096)
def point_key(name: str) -> tuple[int, ...]:
    """Return the first four 32-bit words of the SHA-256 hash of a name."""
    digest = hashlib.sha256(name.encode()).digest()[:16]
    return tuple(int(word) for word in np.frombuffer(digest, dtype="<u4"))

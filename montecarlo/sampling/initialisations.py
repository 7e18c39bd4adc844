"""What stands before q and k: projections of normalised tokens at initialisation.

Q = X W_Q and K = Y W_K for one head, with weights as common initialisations draw them
and tokens after a normalisation.  A new initialisation is one entry in
`WEIGHT_KINDS`.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from montecarlo.errors import InputError
from montecarlo.names import look_up, show
from montecarlo.sampling.distributions import DISTRIBUTIONS

Floats = NDArray[np.float32]
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

_NAME = re.compile(r"init\(kind=(\w+),norm=(\w+),shape=(\w+),width=([0-9]{1,7})\)")


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
    """Return the initialisation that a name stands for, None for the empty name."""
    if not name:
        return None
    match = _NAME.fullmatch(name.replace(" ", ""))
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


def project(
    initialisation: Initialisation, n_tokens: int, d_k: int, rng: Generator
) -> Floats:
    """Draw tokens and a projection, and return queries or keys of one head.

    Parameters
    ----------
    initialisation : Initialisation
    n_tokens, d_k : int
    rng : Generator
        The stream of Q or of K.

    Returns
    -------
    ndarray of float32, shape (n_tokens, d_k)
    """
    tokens = DISTRIBUTIONS["gaussian"].draw(rng, (n_tokens, initialisation.width))
    if initialisation.norm == "layer":
        tokens -= tokens.mean(axis=1, keepdims=True)
    length = np.sqrt(np.vecdot(tokens, tokens))[:, np.newaxis]
    _, distribution = WEIGHT_KINDS[initialisation.kind]
    weights = DISTRIBUTIONS[distribution].draw(rng, (initialisation.width, d_k))
    weights *= np.float32(
        math.sqrt(initialisation.width * initialisation.weight_variance(d_k))
    )
    projected = tokens @ weights
    projected /= length  # a normalised token has the length sqrt(width)
    return projected

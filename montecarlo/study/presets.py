"""Grids of points with budgets: what a study samples, and how much; and the presets.

The claims' domains pick from a grid; what lies beyond a domain shows how far a claim
reaches.
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from montecarlo.attention.divisors import DIVISORS, parse_divisor
from montecarlo.errors import InputError
from montecarlo.estimation.engine import Budget
from montecarlo.names import MOST_REPLICATES
from montecarlo.sampling.cost import require_affordable, require_affordable_tail
from montecarlo.sampling.design_points import (
    INDEPENDENT,
    DesignPoint,
    name_of,
    parse_point,
)
from montecarlo.sampling.distributions import DISTRIBUTIONS, parse_distribution
from montecarlo.small_files import read_package_toml

Dimension = Annotated[int, Meta(ge=1, le=2**20)]
Keys = Annotated[int, Meta(ge=2, le=2**20)]
#: Further distributions of a grid that names none.
FURTHER = tuple(name for name in DISTRIBUTIONS if name != "gaussian")
Count = Annotated[int, Meta(ge=2, le=MOST_REPLICATES)]


class Block(Struct, frozen=True, forbid_unknown_fields=True):
    """Points that the map of a grid does not have.

    Attributes
    ----------
    d_k : tuple of int
    n_keys : tuple of int
        Rows at every combination; none: no rows.
    pairs : bool
        Whether to sample blocks of pairs as well.
    distribution_q, distribution_k : str
        ``distribution_k`` empty: as q.
    dependence, initialisation, normalisation, mask : str
    formats : bool
        Whether rows are also computed in number formats.
    replicates : int
        So many of each point at the first analysis, the last; 0: the grid's.
    """

    d_k: tuple[Dimension, ...]
    n_keys: tuple[Keys, ...] = ()
    pairs: bool = True
    distribution_q: str = "gaussian"
    distribution_k: str = ""
    dependence: str = "none"
    initialisation: str = ""
    normalisation: str = "none"
    mask: str = "none"
    formats: bool = False
    replicates: Annotated[int, Meta(ge=0, le=MOST_REPLICATES)] = 0

    def points(self) -> list[DesignPoint]:
        """Return its points."""
        sizes: list[tuple[int, int | None]] = [
            (d, None) for d in self.d_k if self.pairs
        ]
        sizes += [(d, n) for d in self.d_k for n in self.n_keys]
        return [
            parse_point(
                self.distribution_q,
                self.distribution_k or self.distribution_q,
                d_k,
                n_keys,
                self.dependence,
                self.initialisation,
                self.normalisation,
                self.mask,
                formats=self.formats and n_keys is not None,
            )
            for d_k, n_keys in sizes
        ]


class Grid(Struct, frozen=True, forbid_unknown_fields=True):
    """A grid of points with budgets in replicates.

    Attributes
    ----------
    d_k, n_keys : tuple of int
        Gaussian rows at every combination; Gaussian pairs at every d_k.
    distributions : tuple of str
        Further distributions, at ``distribution_d_k`` and ``distribution_n_keys``.
    blocks : tuple of Block
        What breaks the texts' premise, and number formats.
    tails : tuple of (d_k, blocks)
        Where overflow probabilities are estimated under tilting, and on how many blocks
        of draws.
    divisors : tuple of str
    first, most : int
        Replicates at the first interim analysis and at most.
    first_large, most_large : int
        The same where sizes make a replicate expensive.  Blocks of pairs, each of which
        says much, begin with ``first_large``, too.
    every_row : bool
        Whether to sample every row of every point, also those that nobody reads.
    """

    d_k: tuple[Dimension, ...]
    n_keys: tuple[Keys, ...]
    distributions: tuple[str, ...] = FURTHER
    distribution_d_k: tuple[Dimension, ...] = ()
    distribution_n_keys: tuple[Keys, ...] = ()
    blocks: tuple[Block, ...] = ()
    tails: tuple[tuple[Dimension, Count], ...] = ()
    divisors: tuple[str, ...] = tuple(DIVISORS)
    first: Count = 128
    most: Count = 1024
    first_large: Count = 32
    most_large: Count = 256
    every_row: bool = False

    def points(self) -> list[DesignPoint]:
        """Return every point of the grid once, in a canonical order.

        Raises
        ------
        ValueError
            If a distribution or divisor is not known, a range is off, there is no
            point, or one takes more than can be had.
        """
        divisors = [parse_divisor(name) for name in self.divisors]
        for divisor, name in zip(divisors, self.divisors, strict=True):
            if divisor.name != name:  # rows are found by it
                raise InputError(
                    f"divisors must be called {divisor.name!r}, got {name!r}"
                )
        distributions = [parse_distribution(name).name for name in self.distributions]
        for first, most in (
            (self.first, self.most),
            (self.first_large, self.most_large),
        ):
            if first > most:
                raise InputError(
                    f"first must be at most the budget {most}, got {first}"
                )
        blocks = [Block(self.d_k, self.n_keys)]
        sizes = self.distribution_d_k, self.distribution_n_keys
        blocks += [Block(*sizes, distribution_q=name) for name in distributions]
        blocks += self.blocks
        found = [point for block in blocks for point in block.points()]
        if not found:
            raise InputError("grid must have at least one point, got none")
        for point in found:
            require_affordable(point, len(self.divisors))
            for divisor in divisors:
                if point.has_rows or not divisor.needs_keys:
                    divisor.value(point.d_k, point.n_keys)
        for d, _ in self.tails:
            require_affordable_tail(d)
        order = {name: number for number, name in enumerate(DISTRIBUTIONS)}
        # one of a name: with number formats, if any of them asks for these
        once = {c.name: c for c in sorted(found, key=lambda c: c.formats)}
        return sorted(
            once.values(),
            key=lambda c: (
                c.has_rows,
                c.is_normalised,
                c.dependence != INDEPENDENT,
                name_of(c.initialisation),
                order.get(c.distribution_k.name, len(order)),
                *c.names,
                c.n_keys or 0,
                c.d_k,
            ),
        )

    def budgets(self) -> dict[DesignPoint, Budget]:
        """Return the budget of every point."""
        fixed = {
            point.name: Budget(block.replicates, block.replicates)
            for block in self.blocks
            if block.replicates
            for point in block.points()
        }
        return {c: fixed.get(c.name, self.budget_of(c)) for c in self.points()}

    def budget_of(self, point: DesignPoint) -> Budget:
        """Return the budget of a point for which no block says another."""
        if point.is_large:
            return Budget(self.first_large, self.most_large)
        first = self.first if point.has_rows else min(self.first, self.first_large)
        return Budget(first, self.most)


#: The nominal error rate of all verdicts together, where nobody says another.
ERROR_RATE = 0.01


#: Sizes of practice: those that a claim speaks of when it names none.
PRACTICE_D_K = (64, 128, 256)
PRACTICE_N_KEYS = (128, 1024, 4096, 16384)


PRESETS = msgspec.convert(
    read_package_toml("study/presets.toml"), dict[str, Grid], strict=True
)

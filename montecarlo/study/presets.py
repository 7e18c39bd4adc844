"""Grids: the points that a study may sample, with their budgets; and the presets.

Checks select the points of their domains.  Points outside of them show how far a claim
holds.
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
#: Default of `Grid.distributions`.
FURTHER = tuple(name for name in DISTRIBUTIONS if name != "gaussian")
Count = Annotated[int, Meta(ge=2, le=MOST_REPLICATES)]


class Block(Struct, frozen=True, forbid_unknown_fields=True):
    """Design points for all combinations of sizes, with everything else in common.

    Attributes
    ----------
    d_k : tuple of int
    n_keys : tuple of int
        There is a point of rows for each combination with ``d_k``.
    pairs : bool
        Whether there is a point of pairs for each ``d_k``.
    distribution_q, distribution_k : str
        An empty ``distribution_k`` means that of queries.
    dependence, initialisation, normalisation, mask : str
        Names, as for `parse_point`.
    formats : bool
        Whether rows are also computed in number formats.
    replicates : int
        Number of replicates of each point, which is analysed once.  0: the budget of
        the grid.
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
        """Return the design points of the block, ordered by ``d_k`` and ``n_keys``.

        With ``pairs``, each d_k begins with a point without rows, which samples pairs
        of a query and a key.
        """
        numbers_of_keys = (*[None] * self.pairs, *self.n_keys)
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
            for d_k in self.d_k
            for n_keys in numbers_of_keys
        ]


class Grid(Struct, frozen=True, forbid_unknown_fields=True):
    """The points that a study may sample, with their budgets.

    Attributes
    ----------
    d_k, n_keys : tuple of int
        Sizes of standard normal queries and keys: points of rows at each combination,
        and of pairs at each ``d_k``.
    distributions : tuple of str
        Further distributions of the entries.
    distribution_d_k, distribution_n_keys : tuple of int
        Sizes for each of the further distributions.
    blocks : tuple of Block
        Further points, such as those outside the premises of the texts.
    tails : tuple of (int, int)
        Each d_k at which overflow probabilities are estimated by importance sampling,
        and the number of blocks of draws for it.
    divisors : tuple of str
        Canonical names.
    first, most : int
        Number of replicates of a point at the first interim analysis, and at most.
    first_large, most_large : int
        The same for points whose replicates are expensive.  Points of pairs, whose
        replicates are large, begin with at most ``first_large``.
    every_row : bool
        Whether all rows of all points are requested, also those that nothing reads.
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
        """Return the different design points of the grid, in a canonical order.

        Raises
        ------
        InputError
            If a name is unknown, a number out of range, there is no point, or one needs
            too much time or memory.
        """
        divisors = [parse_divisor(name) for name in self.divisors]
        for divisor, name in zip(divisors, self.divisors, strict=True):
            if divisor.name != name:  # row keys have the canonical name
                raise InputError(f"divisors must name {divisor.name!r}, got {name!r}")
        distributions = [parse_distribution(name).name for name in self.distributions]
        for first, most in (self.first, self.most), (self.first_large, self.most_large):
            if first > most:
                raise InputError(f"first must be at most {most}, got {first}")
        sizes = self.distribution_d_k, self.distribution_n_keys
        blocks = [Block(*sizes, distribution_q=name) for name in distributions]
        blocks += [Block(self.d_k, self.n_keys), *self.blocks]
        points = [point for block in blocks for point in block.points()]
        if not points:
            raise InputError("grid must have at least one point, got none")
        for point in points:
            require_affordable(point, len(self.divisors))
            for divisor in divisors:
                if point.has_rows or not divisor.needs_keys:
                    divisor.value(point.d_k, point.n_keys)
        for d, _ in self.tails:
            require_affordable_tail(d)
        order = {name: number for number, name in enumerate(DISTRIBUTIONS)}
        # of points with one name, the last is kept: with number formats if any has them
        by_name = {c.name: c for c in sorted(points, key=lambda c: c.formats)}
        return sorted(
            by_name.values(),
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
        """Return the budget of each point, in the order of `points`.

        A budget is the number of replicates at each interim analysis.  Points of a
        block with ``replicates`` have that number and are analysed once; all others
        have `budget_of`.
        """
        fixed = {
            point.name: Budget(block.replicates, block.replicates)
            for block in self.blocks
            if block.replicates
            for point in block.points()
        }
        return {c: fixed.get(c.name, self.budget_of(c)) for c in self.points()}

    def budget_of(self, point: DesignPoint) -> Budget:
        """Return the budget that the grid gives a point by its size.

        ``replicates`` of a block, which `budgets` puts in its place, are ignored.
        """
        if point.is_large:
            return Budget(self.first_large, self.most_large)
        first = self.first if point.has_rows else min(self.first, self.first_large)
        return Budget(first, self.most)


#: Default nominal error rate: probability that any of the verdicts is wrong.
ERROR_RATE = 0.01


#: Sizes in use in models, at which a claim is judged that names no sizes.
PRACTICE_D_K = (64, 128, 256)
PRACTICE_N_KEYS = (128, 1024, 4096, 16384)


PRESETS = msgspec.convert(
    read_package_toml("study/presets.toml"), dict[str, Grid], strict=True
)

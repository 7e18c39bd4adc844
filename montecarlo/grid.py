"""A grid of conditions with budgets: what a study samples, and how much of it.

The claims' domains pick from it; what lies beyond a domain shows how far a claim
reaches.
"""

from typing import Annotated

from msgspec import Meta, Struct

from montecarlo.attention.divisors import DIVISORS
from montecarlo.estimation.engine import Budget
from montecarlo.names import look_up
from montecarlo.sampling.affordable import (
    require_affordable,
    require_affordable_tail,
)
from montecarlo.sampling.conditions import Condition
from montecarlo.sampling.cost import replicate_seconds
from montecarlo.sampling.laws import LAWS, parse_law

Dimension = Annotated[int, Meta(ge=1, le=2**20)]
Keys = Annotated[int, Meta(ge=2, le=2**20)]
#: Replicates of a condition, whatever the grid.
MOST_REPLICATES = 2**20
Count = Annotated[int, Meta(ge=2, le=MOST_REPLICATES)]


class Block(Struct, frozen=True, forbid_unknown_fields=True):
    """Conditions that the map of a grid does not have.

    Attributes
    ----------
    d_k : tuple of int
    n_keys : tuple of int
        Rows at every combination; none: no rows.
    pairs : bool
        Whether to sample blocks of pairs as well.
    law_q, law_k : str
        ``law_k`` empty: as q.
    dependence, setup : str
    formats : bool
        Whether rows are also computed in number formats.
    replicates : int
        So many of each condition at the first look, which is the last; 0: the grid's.
    """

    d_k: tuple[Dimension, ...]
    n_keys: tuple[Keys, ...] = ()
    pairs: bool = True
    law_q: str = "gaussian"
    law_k: str = ""
    dependence: str = "none"
    setup: str = ""
    formats: bool = False
    replicates: Annotated[int, Meta(ge=0, le=MOST_REPLICATES)] = 0

    def conditions(self) -> list[Condition]:
        """Return its conditions."""
        sizes: list[tuple[int, int | None]] = [
            (d, None) for d in self.d_k if self.pairs
        ]
        sizes += [(d, n) for d in self.d_k for n in self.n_keys]
        return [
            Condition(
                self.law_q,
                self.law_k or self.law_q,
                d_k,
                n_keys,
                self.dependence,
                self.setup,
                self.formats and n_keys is not None,
            )
            for d_k, n_keys in sizes
        ]


class Grid(Struct, frozen=True, forbid_unknown_fields=True):
    """A grid of conditions with budgets in replicates.

    Attributes
    ----------
    d_k, n_keys : tuple of int
        Gaussian rows at every combination; Gaussian pairs at every d_k.
    edges : tuple of (d_k, n_keys)
        Further combinations.
    laws : tuple of str
        Further laws, at ``law_d_k`` and ``law_n_keys``.
    blocks : tuple of Block
        What breaks the texts' premise, and number formats.
    tails : tuple of (d_k, blocks)
        Where overflow probabilities are estimated under tilting, and on how many blocks
        of draws.
    divisors : tuple of str
    first, most : int
        Replicates at the first look and at most.
    first_large, most_large : int
        The same where d_k or the number of keys makes a replicate expensive.
    """

    d_k: tuple[Dimension, ...]
    n_keys: tuple[Keys, ...]
    edges: tuple[tuple[Dimension, Keys], ...] = ()
    laws: tuple[str, ...] = tuple(name for name in LAWS if name != "gaussian")
    law_d_k: tuple[Dimension, ...] = ()
    law_n_keys: tuple[Keys, ...] = ()
    blocks: tuple[Block, ...] = ()
    tails: tuple[tuple[Dimension, Count], ...] = ()
    divisors: tuple[str, ...] = tuple(DIVISORS)
    first: Count = 128
    most: Count = 1024
    first_large: Count = 32
    most_large: Count = 256

    def conditions(self) -> list[Condition]:
        """Return every condition of the grid once, in a canonical order.

        Raises
        ------
        ValueError
            If a law or divisor is not known, a range is off, there is no condition, or
            one takes more than can be had.
        """
        for divisor in self.divisors:
            look_up("divisor", divisor, DIVISORS)
        laws = [parse_law(name).name for name in self.laws]
        for first, most in (
            (self.first, self.most),
            (self.first_large, self.most_large),
        ):
            if first > most:
                raise ValueError(
                    f"first must be at most the budget {most}, got {first}"
                )
        rows = [(d, n) for d in self.d_k for n in self.n_keys] + list(self.edges)
        found = [
            Condition("gaussian", "gaussian", d)
            for d in (*self.d_k, *(d for d, _ in self.edges))
        ]
        found += [Condition("gaussian", "gaussian", d, n) for d, n in rows]
        for law in laws:
            for d in self.law_d_k:
                found.append(Condition(law, law, d))
                found += [Condition(law, law, d, n) for n in self.law_n_keys]
        for block in self.blocks:
            found += block.conditions()
        if not found:
            raise ValueError("grid must have at least one condition, got none")
        for condition in found:
            require_affordable(condition, len(self.divisors))
        for d, _ in self.tails:
            require_affordable_tail(d)
        order = {name: number for number, name in enumerate(LAWS)}
        # one of a name: with number formats, if any of them asks for these
        once = {c.name: c for c in sorted(found, key=lambda c: c.formats)}
        return sorted(
            once.values(),
            key=lambda c: (
                c.n_keys is not None,
                c.dependence != "none",
                c.setup,
                order.get(c.law_k, len(order)),
                c.law_q,
                c.law_k,
                c.dependence,
                c.n_keys or 0,
                c.d_k,
            ),
        )

    def budgets(self) -> dict[Condition, Budget]:
        """Return the budget of every condition."""
        fixed = {
            condition.name: Budget(block.replicates, block.replicates)
            for block in self.blocks
            if block.replicates
            for condition in block.conditions()
        }
        small = Budget(self.first, self.most)
        large = Budget(self.first_large, self.most_large)
        return {
            c: fixed.get(c.name, large if c.is_large else small)
            for c in self.conditions()
        }

    def seconds(self) -> tuple[float, float]:
        """Return about how long the first look, and all looks, take on one core."""
        least = most = 0.0
        for condition, budget in self.budgets().items():
            seconds = replicate_seconds(condition, len(self.divisors))
            least += seconds * budget.first
            most += seconds * budget.looks()[-1]
        return least, most

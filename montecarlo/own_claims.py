"""A user's own claims: sampled as far as they need, judged by the same rule."""

from collections.abc import Iterator

import msgspec

from montecarlo.claims.cells import cells_of
from montecarlo.claims.checks import Check
from montecarlo.claims.schema import Catalogue
from montecarlo.names import look_up
from montecarlo.presets import PRESETS, Block, Grid
from montecarlo.study import Study


def own_study(
    catalogue: Catalogue,
    *,
    preset: str = "quick",
    seed: int = 1,
    error_rate: float = 0.01,
) -> Study:
    """Return the study that judges a user's claims.

    Parameters
    ----------
    catalogue : Catalogue
        The user's.
    preset : str
        Whose grid and budgets to use; places that a claim speaks of and the grid lacks
        are added to it.
    seed : int
    error_rate : float
        Probability that any decided check is wrong, at most.

    Raises
    ------
    ValueError
        If the preset is not known.
    """
    grid = fitting_grid(catalogue, look_up("preset", preset, PRESETS))
    return Study(catalogue, grid, seed, error_rate, preset, whole_grid=False)


def fitting_grid(catalogue: Catalogue, grid: Grid) -> Grid:
    """Return a grid that has places for every check of a catalogue.

    Parameters
    ----------
    catalogue : Catalogue
    grid : Grid
        Kept as it is where it has places already.
    """
    conditions = grid.conditions()
    blocks = [
        block
        for check in catalogue.checks()
        if not cells_of(check, conditions, grid.divisors)
        for block in _blocks(check)
    ]
    return msgspec.structs.replace(grid, blocks=(*grid.blocks, *blocks), tails=())


def _blocks(check: Check) -> Iterator[Block]:
    """Yield the ends of a check's domain, for each law, dependence and setup."""
    domain = check.domain
    formats = check.number_format != "float64" or check.softmax != "shifted"
    for named in domain.laws or ("gaussian",):
        law_q, _, law_k = (part.strip() for part in named.partition("*"))
        for dependence in domain.dependence:
            rows = not dependence.startswith("pairs")
            for setup in domain.setup:
                yield Block(
                    tuple(dict.fromkeys(domain.d_k)),
                    tuple(dict.fromkeys(domain.n_keys)) if rows else (),
                    pairs=not dependence.startswith("planted"),
                    law_q=law_q,
                    law_k=law_k,
                    dependence=dependence,
                    setup=setup,
                    formats=formats or check.quantity.startswith("format_"),
                )

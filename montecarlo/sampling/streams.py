"""Random streams by name: pure functions of a seed and a name."""

from numpy.random import SFC64, Generator, SeedSequence

from montecarlo.sampling.design_points import point_key


def named_stream(seed: int, name: str) -> Generator:
    """Return the generator that a seed and a name stand for."""
    return Generator(SFC64(SeedSequence(seed, spawn_key=point_key(name))))

"""The language model on the pages: how each arm fared, of too few seeds to judge."""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from montecarlo.records.training import SETTING, Runs


@dataclass(frozen=True, slots=True)
class LanguageLine:
    """How an arm fared in the language model at one d_k, at the rate chosen for it.

    Attributes
    ----------
    arm : str
        A key of `montecarlo.records.training.ARMS`.
    d_k : int
    rate : float
        Of learning.
    learned : int
        Seeds that came below the level.
    steps : float or None
        Median steps until then; None: beyond the last.
    held_out : (float, float, float)
        Loss on text that was not learned from: median, least and largest of the seeds.
    """

    arm: str
    d_k: int
    rate: float
    learned: int
    steps: float | None
    held_out: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class LanguageView:
    """The record of the language model as the pages show it.

    Attributes
    ----------
    seeds, tuning : int
        Seeds that are shown, and others on which rates were chosen.
    steps : int
        After which a run ends.
    learned : float
        A run has learned when the mean loss of some steps comes below this.
    lines : tuple of LanguageLine
        One for each d_k and arm.
    """

    seeds: int
    tuning: int
    steps: int
    learned: float
    lines: tuple[LanguageLine, ...]

    def count(self, arm: str) -> tuple[int, int]:
        """Return how many runs of an arm learned, and of how many."""
        mine = [line.learned for line in self.lines if line.arm == arm]
        return sum(mine), self.seeds * len(mine)


def view_language(record: Runs) -> LanguageView:
    """Return what the pages show of the language model."""
    settings = dict(iter(record.judged.groupby(SETTING)))
    configuration = record.about["configuration"]
    lines = []
    for d_k, arm in product(configuration["d_k"], configuration["arms"]):
        key = configuration["optimiser"], arm, d_k
        runs = settings[*key, record.chosen[key]]
        held_out, steps = runs["held_out"], float(runs["steps"].median())
        lines.append(
            LanguageLine(
                arm,
                d_k,
                record.chosen[key],
                int(np.isfinite(runs["steps"]).sum()),
                None if math.isinf(steps) else steps,
                (
                    float(held_out.median()),
                    float(held_out.min()),
                    float(held_out.max()),
                ),
            )
        )
    return LanguageView(
        len(record.seeds["judged"]),
        len(record.seeds["tuning"]),
        configuration["steps"],
        configuration["learned"],
        tuple(lines),
    )

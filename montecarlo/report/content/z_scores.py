"""What the pages show of the z scores that were judged, as typed records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True)
class ZGroup:
    """The z scores of a family of quantities, of a distribution, or all."""

    kind: str  # all, family or distribution
    name: str
    number: int
    points: int
    rms: float
    rms_low: float
    rms_high: float
    largest: float
    verdict: str


@dataclass(frozen=True, slots=True)
class ZSeeds:
    """How many clean seeds the limits of z scores were counted on, of which preset."""

    preset: str
    seeds: int


@dataclass(frozen=True, slots=True)
class ZScoresView:
    """How the distances to exact values came out, as a self-check of its own."""

    verdict: str
    false_alarm: float
    largest_limit: float | None
    counted: ZSeeds
    groups: tuple[ZGroup, ...]

    def count(self, verdict: str) -> int:
        """Count the groups that came out so."""
        return sum(group.verdict == verdict for group in self.groups)


def read_z_scores(claims: Mapping[str, Any]) -> ZScoresView | None:
    """Return the judged z scores that claims.json holds, None where it has none."""
    record = claims.get("z_scores")
    return None if record is None else msgspec.convert(record, ZScoresView)

"""What the verdicts owe to our choices: how many change with others, and which.

The data are small and committed: ``python -m studies.sensitivity`` makes them.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from montecarlo.claims.outcomes import Judgement

FILE = Path(__file__).with_name("sensitivity.json")


@dataclass(frozen=True, slots=True)
class Change:
    """A claim, or one of its interpretations, whose verdict is another then.

    Attributes
    ----------
    claim : str
    interpretation : str
        Empty: the claim's own verdict.
    before, after : str
        Verdicts.
    """

    claim: str
    interpretation: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Choice:
    """What was varied, by which factor or to which value, and what that changes.

    Attributes
    ----------
    varied : str
        Tolerance, slope, one-hot or seed.
    value : float
        The factor, the threshold or the seed.
    changes : tuple of Change
        Those whose verdict is another then.
    """

    varied: str
    value: float
    changes: tuple[Change, ...]

    @property
    def verdicts(self) -> list[Change]:
        """Those of claims."""
        return [change for change in self.changes if not change.interpretation]

    @property
    def interpretations(self) -> list[Change]:
        """Those of interpretations."""
        return [change for change in self.changes if change.interpretation]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How many verdicts change with other choices.

    Attributes
    ----------
    preset : str
    seed : int
        Of the results that were judged again.
    checks : str
        `fingerprint` of what they were judged by.
    claims, interpretations : int
        How many there are.
    lines : tuple of Choice
        One for each thing that was varied.
    """

    preset: str
    seed: int
    checks: str
    claims: int
    interpretations: int
    lines: tuple[Choice, ...]


def fingerprint(claims: Judgement, run: Mapping[str, Any]) -> str:
    """Return a hash of what was judged and where: what is of others is stale."""
    asked = [
        [
            claim.id,
            *(one.id, one.votes, one.logic, one.share),
            *(msgspec.to_builtins(check.asked) for check in one.checks),
        ]
        for claim in claims.claims
        for one in claim.interpretations
    ]
    text = json.dumps([asked, run["grid"], run["error_rate"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_sensitivity(file: Path = FILE) -> Sensitivity:
    """Read what was counted."""
    return msgspec.json.decode(file.read_bytes(), type=Sensitivity)

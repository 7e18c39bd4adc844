"""What the verdicts owe to our choices: how many change with others, and which.

``python -m studies.sensitivity`` makes the record.
"""

from dataclasses import dataclass
from pathlib import Path

import msgspec

FILE = Path(__file__).parent / "data" / "sensitivity.json"


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
        Hash of what they were judged by (`studies.sensitivity.fingerprint`).
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


def read_sensitivity(file: Path = FILE) -> Sensitivity:
    """Read the record; ``file`` is by default that of the package."""
    return msgspec.json.decode(file.read_bytes(), type=Sensitivity)

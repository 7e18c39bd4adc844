"""What others published of training, as facts with a source: numbers, and no words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

FILE = Path(__file__).with_name("published.toml")


@dataclass(frozen=True, slots=True)
class Published:
    """What others published.

    Attributes
    ----------
    id : str
        By which pages know what is to be said of it.
    source : str
    numbers : mapping
        Those that are told of it, by name.
    """

    id: str
    source: str
    numbers: Mapping[str, float] = field(default_factory=dict)


def read_published(file: Path = FILE) -> tuple[Published, ...]:
    """Read what others published."""
    kind = dict[str, tuple[Published, ...]]
    return msgspec.toml.decode(file.read_bytes(), type=kind)["published"]

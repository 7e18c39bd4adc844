"""The confirming run: verdicts by a seed that the catalogue itself gives."""

from pathlib import Path

import msgspec
from msgspec import Struct

#: Made by ``python -m studies.confirm``.
FILE = Path(__file__).with_name("confirming.json")


class Confirming(Struct, frozen=True, forbid_unknown_fields=True):
    """Verdicts of the standard report by the seed of a catalogue.

    Attributes
    ----------
    catalogue : str
        SHA-256 of the catalogue, in hexadecimal digits.
    verdicts : dict of str
        By the ids of claims.
    """

    catalogue: str
    verdicts: dict[str, str]

    @property
    def seed(self) -> int:
        """What the first eight digits of the catalogue's SHA-256 say."""
        return int(self.catalogue[:8], 16)


def read_confirming(path: Path = FILE) -> Confirming:
    """Read the record."""
    return msgspec.json.decode(path.read_bytes(), type=Confirming)


def write_confirming(record: Confirming, path: Path = FILE) -> None:
    """Write the record, a line for each verdict."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")

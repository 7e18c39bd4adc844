"""The record of what papers say: drawn once, far more than a report could wait for.

``python docs/make_literature.py`` makes it again; a test holds it against its parts.
"""

from importlib.resources import files

import msgspec

from montecarlo.literature.outcomes import LiteratureOutcome

RECORD = "record.json"
#: What it is made with.
SEED, ERROR_RATE = 1, 0.01


def read_outcome() -> LiteratureOutcome:
    """Read the record that comes with the package."""
    content = files("montecarlo.literature").joinpath(RECORD).read_bytes()
    return msgspec.json.decode(content, type=LiteratureOutcome)

"""The record of what papers say: drawn once, far more than a report could wait for.

``python -m studies.literature`` makes it again; a test holds it against its parts.
"""

from collections.abc import Iterator
from importlib.resources import files

import msgspec
from msgspec import Struct

from montecarlo.literature.outcomes import LiteratureOutcome
from montecarlo.study.columns import CurveLine

RECORD = "record.json"
#: What it is made with.
SEED, ERROR_RATE = 1, 0.01
#: Its curves: the factor of scores by n; E Σp² by s over sqrt(2 ln n), and its limit
#: where s is large.
GROWTH_CURVE, CONCENTRATION_CURVE, LIMIT = "scale_growth", "row_concentration", "limit"


class CurvePoint(Struct, frozen=True, forbid_unknown_fields=True):
    """A point of an exact curve; ``outcome`` says what is held, or which law it is."""

    curve: str
    outcome: str
    x: float
    estimate: float
    n_keys: int | None = None


class LiteratureRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """How statements came out, and the curves beside them."""

    outcome: LiteratureOutcome
    curves: tuple[CurvePoint, ...]

    def lines(self) -> Iterator[CurveLine]:
        """Yield the curves as lines of curves.csv."""
        for point in self.curves:
            yield CurveLine(**msgspec.structs.asdict(point))


def read_literature_record() -> LiteratureRecord:
    """Read the record that comes with the package."""
    content = files("montecarlo.literature").joinpath(RECORD).read_bytes()
    return msgspec.json.decode(content, type=LiteratureRecord)

"""Write montecarlo/literature/record.json: what papers say, drawn and judged.

It takes two or three minutes.  Run it where literature.toml or a quantity of it was
changed: a test fails until it was.
"""

from pathlib import Path

import msgspec

from montecarlo.literature.curves import literature_curves
from montecarlo.literature.judging import judge_literature
from montecarlo.literature.record import ERROR_RATE, RECORD, SEED, LiteratureRecord
from montecarlo.study.executors import make_executor

FOLDER = Path(__file__).parents[1] / "montecarlo" / "literature"


def main() -> None:
    """Draw, judge and write."""
    with make_executor() as executor:
        outcome = judge_literature(SEED, ERROR_RATE, executor)
    record = LiteratureRecord(outcome, tuple(literature_curves()))
    content = msgspec.json.format(msgspec.json.encode(record), indent=1)
    (FOLDER / RECORD).write_bytes(content + b"\n")


if __name__ == "__main__":
    main()

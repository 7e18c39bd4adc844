"""What papers say, drawn and judged: montecarlo/literature/record.json.

Run ``python -m studies.literature`` where literature.toml or a quantity of it was
changed: two or three minutes.  A test fails until it was.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from montecarlo import literature
from montecarlo.literature.curves import literature_curves
from montecarlo.literature.judging import judge_literature
from montecarlo.literature.record import ERROR_RATE, RECORD, SEED, LiteratureRecord
from montecarlo.study.executors import available_cores, make_executor
from studies.program import parse

FILE = Path(literature.__path__[0]) / RECORD


def main(argv: Sequence[str] | None = None) -> int:
    """Draw, judge and write."""
    options = parse("literature", __doc__, argv, jobs=available_cores(), output=FILE)
    with make_executor(options.jobs) as executor:
        outcome = judge_literature(SEED, ERROR_RATE, executor)
    record = LiteratureRecord(outcome, tuple(literature_curves()))
    content = msgspec.json.format(msgspec.json.encode(record), indent=1)
    options.output.write_bytes(content + b"\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

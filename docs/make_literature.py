"""Write montecarlo/claims/papers.json: what papers say, drawn and judged.

``python -m docs.make_literature`` takes one or two minutes.  Run it where papers.toml
or a quantity of it was changed: a test fails until it was.
"""

from pathlib import Path

import msgspec

from montecarlo.claims.papers import RECORD, PapersRecord
from studies.papers import ERROR_RATE, SEED, judge_papers, paper_curves

FOLDER = Path(__file__).parents[1] / "montecarlo" / "claims"


def main() -> None:
    """Draw, judge and write."""
    record = PapersRecord(judge_papers(SEED, ERROR_RATE), tuple(paper_curves()))
    found = msgspec.to_builtins(record)
    found["curves"] = [
        {name: value for name, value in point.items() if value not in (None, "")}
        for point in found["curves"]
    ]
    content = msgspec.json.format(msgspec.json.encode(found), indent=1)
    (FOLDER / RECORD).write_bytes(content + b"\n")


if __name__ == "__main__":
    main()

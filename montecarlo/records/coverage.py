"""How often 95 % intervals held the truth where that was counted, for one answer.

The lines are those of `records.calibration`, which reads the whole card.
"""

import csv
import json
from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "calibration"


def counted_coverage(quantity: str, summary: str, folder: Path = FOLDER) -> list[float]:
    """Return the shares of draws whose 95 % interval held the truth.

    Returns
    -------
    list of float
        One for each combination of a distribution, sizes and a divisor that is judged
        and was counted; stale lines are left out.
    """
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    stale = [{name: str(row[name]) for name in row} for row in about.get("stale", ())]
    with (folder / "rates.csv").open(encoding="utf-8", newline="") as file:
        return [
            int(line["covered"]) / int(line["draws"])
            for line in csv.DictReader(file)
            if (line["quantity"], line["summary"]) == (quantity, summary)
            and line["judged"] == "True"
            and not any(row.items() <= line.items() for row in stale)
        ]

"""Make the README's figure and verdict table again from a report's results.

``python docs/make_readme.py output`` reads a results folder (the standard preset, seed
1) and writes ``docs/variance.svg`` and the table between the markers of README.md.  A
test compares both with a fresh run.
"""

import sys
from pathlib import Path

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.report.figures import FIGURES, render_svg
from montecarlo.report.findings import Findings, gather, read_results

ROOT = Path(__file__).resolve().parents[1]
START, END = "<!-- verdicts: made by docs/make_readme.py -->", "<!-- end -->"


def verdict_table(findings: Findings) -> str:
    """Return the claims with their verdicts as a Markdown table."""
    lines = ["| claim | verdict | in which readings |", "|---|---|---|"]
    for claim in findings.claims:
        readings = ", ".join(f"{r.id}: {r.verdict}" for r in claim.readings)
        detail = readings if claim.readings[1:] else ""
        lines.append(f"| {claim.statement} | **{claim.verdict}** | {detail} |")
    return "\n".join(lines)


def with_table(readme: str, table: str) -> str:
    """Put the table between the markers of a README."""
    before, _, rest = readme.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{table}\n\n{END}{after}"


def main(folder: Path) -> None:
    """Write the figure and the table."""
    results = read_results(folder)
    svg = render_svg(FIGURES["variance"], results.measurements, results.curves)
    if svg is None:
        raise ValueError("results must hold what the figure of variances needs")
    (ROOT / "docs" / "variance.svg").write_text(svg, encoding="utf-8", newline="\n")
    readme = ROOT / "README.md"
    table = verdict_table(gather(results, read_catalogue()))
    text = with_table(readme.read_text(encoding="utf-8"), table)
    readme.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

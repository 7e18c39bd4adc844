"""Make the README's figure and verdict table again from a report's results.

``python docs/make_readme.py output`` reads a results folder (the standard preset, seed
1) and writes ``docs/attention.svg``, the table between the markers of README.md, and
the verdicts of docs/changes-after-results.md.  A test compares them with a fresh run.
"""

import re
import sys
from pathlib import Path

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.report.figures import FIGURES, render_svg
from montecarlo.report.findings import gather, read_results
from montecarlo.report.language import read_language
from montecarlo.report.views import Findings, Said
from montecarlo.report.wording import set_number

ROOT = Path(__file__).resolve().parents[1]
START, END = "<!-- verdicts: made by docs/make_readme.py -->", "<!-- end -->"


#: A row of the page of changes: claim, verdict before, verdict after.
ROW = re.compile(r"^(\| `([\w-]+)` \| \w+ \| )\*\*[^*]+\*\*", re.MULTILINE)


def verdict_table(findings: Findings) -> str:
    """Return the claims with their verdicts and what was found as a Markdown table."""
    lines = ["| | claim | verdict | found |", "|--:|---|---|---|"]
    for claim in findings.claims:
        found = "" if claim.finding is None else plain_said(claim.finding)
        line = f"| {claim.number} | {claim.statement} | **{claim.verdict}** | {found} |"
        lines.append(line)
    return "\n".join(lines)


def plain_said(said: Said) -> str:
    """Return a sentence in English as plain text, its numbers filled in."""
    language = read_language("en")
    numbers = {
        name: set_number(language, number).striptags()
        for name, number in said.numbers.items()
    }
    return str(said.text) % numbers


def with_verdicts(page: str, findings: Findings) -> str:
    """Put the verdicts as they are now into the page of changes."""
    verdicts = {claim.id: claim.verdict for claim in findings.claims}
    return ROW.sub(lambda row: f"{row[1]}**{verdicts[row[2]]}**", page)


def with_table(readme: str, table: str) -> str:
    """Put the table between the markers of a README."""
    before, _, rest = readme.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{table}\n\n{END}{after}"


def main(folder: Path) -> None:
    """Write the figure and the table."""
    results = read_results(folder)
    svg = render_svg(FIGURES["attention"], results.measurements, results.curves)
    if svg is None:
        raise ValueError("results must hold what the figure of attention needs")
    (ROOT / "docs" / "attention.svg").write_text(svg, encoding="utf-8", newline="\n")
    readme = ROOT / "README.md"
    findings = gather(results, read_catalogue())
    text = with_table(readme.read_text(encoding="utf-8"), verdict_table(findings))
    readme.write_text(text, encoding="utf-8", newline="\n")
    changes = ROOT / "docs" / "changes-after-results.md"
    text = with_verdicts(changes.read_text(encoding="utf-8"), findings)
    changes.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

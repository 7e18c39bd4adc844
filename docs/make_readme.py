"""Make the README's figure and verdict table again from a report's results.

``python docs/make_readme.py output`` reads a results folder (the standard preset, seed
1) and writes ``docs/attention.svg``, the table between the markers of README.md, its
line about the error rate, and the verdicts of docs/changes-after-results.md.  A test
compares them with a fresh run.
"""

import re
import sys
from pathlib import Path

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.running import Study, error_rates_of
from montecarlo.records.calibration import count_rate, read_card
from montecarlo.report.content.findings import Findings, Said, read_results
from montecarlo.report.figures import FIGURES, render_svg
from montecarlo.report.language.catalogues import SOURCE, read_language
from montecarlo.report.render.pages import set_number
from montecarlo.study.presets import PRESETS

ROOT = Path(__file__).resolve().parents[1]
START, END = "<!-- verdicts: made by docs/make_readme.py -->", "<!-- end -->"


#: What the README says of the error rate, and how it names what was not counted.
RATE_LINE = re.compile(r"^Nominal \d.*$", re.MULTILINE)
FAMILY_WORDS = {
    "slope": "slopes",
    "ratio_of_ends": "ratios of ends",
    "spread": "ratios of outer quantiles",
    "share": "shares of rows",
    "score_std": "the standard deviation of the score",
}
#: A row of the page of changes: claim, verdict before, verdict after.
ROW = re.compile(r"^(\| `([\w-]+)` \| \w+ \| )\*\*[^*]+\*\*", re.MULTILINE)


def verdict_table(findings: Findings) -> str:
    """Return the claims with their verdicts and what was found as a Markdown table."""
    lines = ["| | claim | verdict | found |", "|--:|---|---|---|"]
    for claim in findings.claims:
        finding = findings.finding(claim)
        found = "" if finding is None else plain_said(finding)
        number = f"{'' if claim.sources else 'Q'}{findings.number(claim)}"
        statement = findings.words_of(claim).statement
        line = f"| {number} | {statement} | **{claim.verdict}** | {found} |"
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


def error_rate_line() -> str:
    """Return what the nominal rate of the standard preset was found to be worth."""
    card = read_card()
    if card is None:
        raise SystemExit("the package must have a report card, got none")
    study = Study(read_catalogue(), PRESETS["standard"])
    found = count_rate(card, error_rates_of(study).simultaneous_error)
    times = ", ".join(f"{number:.2f}" for number in found.times)
    rates = ", ".join(f"{rate:g}" for rate in found.nominal)
    line = (
        f"Nominal {100.0 * study.error_rate:g} %: at one-sided rates of {rates} the "
        f"intervals of the worst combination missed {times} times as often as stated; "
        f"at {found.simultaneous_error:.2g}, the rate of one interval of the standard "
        "preset, nothing can be counted, and the "
        f"{found.model} through the counts gives {found.extrapolated:.2f} times."
    )
    if found.not_counted:
        line += (
            f" Not counted yet: {', '.join(map(FAMILY_WORDS.get, found.not_counted))}."
        )
    return line


def with_error_rate(readme: str) -> str:
    """Put that line into a README, in the place of the one that is there."""
    return RATE_LINE.sub(lambda _: error_rate_line(), readme)


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
    findings = read_results(folder)
    tables = (findings.measurements, findings.curves)
    svg = render_svg(FIGURES["attention"], *tables, read_language(SOURCE))
    if svg is None:
        raise ValueError("results must hold what the figure of attention needs")
    (ROOT / "docs" / "attention.svg").write_text(svg, encoding="utf-8", newline="\n")
    readme = ROOT / "README.md"
    text = with_table(readme.read_text(encoding="utf-8"), verdict_table(findings))
    readme.write_text(with_error_rate(text), encoding="utf-8", newline="\n")
    changes = ROOT / "docs" / "changes-after-results.md"
    text = with_verdicts(changes.read_text(encoding="utf-8"), findings)
    changes.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

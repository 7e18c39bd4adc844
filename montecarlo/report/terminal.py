"""What the terminal shows of a report: its files, and the table of claims."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.table import Table

from montecarlo.printing import print_lines, printable
from montecarlo.report.content.findings import Findings
from montecarlo.study.progress import open_console


def make_table(
    headings: Iterable[str], rows: Iterable[Iterable[str]], *, right: int = 0
) -> Table:
    """Return a table without borders, its first columns set to the right."""
    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(
            heading,
            justify="right" if number < right else "left",
            overflow="fold",  # a phrase without spaces is wrapped, not cut
        )
    for row in rows:
        table.add_row(*map(printable, row))
    return table


def print_outcome(findings: Findings, written: Sequence[Path]) -> None:
    """Print the paths written, and below them the claims with their verdicts."""
    for path in sorted(written, key=lambda path: path.name == "index.html"):
        print_lines(path)  # last what to open
    rows = []
    for claim in findings.claims:
        interpretations = [f"{r.id}: {r.verdict}" for r in claim.interpretations]
        several = interpretations if interpretations[1:] else []
        rows.append((claim.id, claim.verdict, ", ".join(several)))
    console = open_console(sys.stdout)
    console.print(make_table(("claim", "verdict", "interpretations"), rows))
    if refuted := findings.record.failed_self_checks():
        failed = ", ".join(refuted)
        console.print(printable(f"self-checks refuted: {failed}"))

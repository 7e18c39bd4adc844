"""What came out, on the terminal and by ``--fail-on``."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from montecarlo.claims.outcomes import ClaimsRecord
from montecarlo.claims.verdicts import UNREACHED, Verdict
from montecarlo.names import look_up_all
from montecarlo.printing import print_lines
from montecarlo.report.content.findings import Findings
from montecarlo.report.render.contents import canonical_command
from montecarlo.study.console import make_table, open_console

#: Where a report is written if nothing is said.
DEFAULT_OUTPUT = "output"
#: What ``--fail-on`` names that is no verdict: a refuted check of the simulator.
SELF_CHECK = "self-check"


def read_fail_on(names: Sequence[str]) -> set[str]:
    """Return the outcomes that ``--fail-on`` names; ``none`` alone: of no name.

    Raises
    ------
    InputError
        If there is no such outcome.
    """
    known = (SELF_CHECK, *(verdict.value for verdict in Verdict))
    return set(look_up_all("fail-on", names, {name: name for name in known}))


def outcomes_of(record: ClaimsRecord, *, unreached: bool = True) -> set[str]:
    """Return all that came out of a study, by the names that ``--fail-on`` has.

    ``unreached``: whether what the sample does not reach counts as open.
    """
    rulings = {ruling for claim in record.claims for ruling in claim.rulings}
    if not unreached:
        rulings.discard(UNREACHED)
    found = {str(ruling.verdict) for ruling in rulings}
    return found | ({SELF_CHECK} if record.failed_self_checks() else set())


def print_outcome(results: Findings, written: Sequence[Path]) -> None:
    """Print what to open, how many claims came out how, and how to make it again."""
    first = next((path for path in written if path.name == "index.html"), written[0])
    print_lines(f"open {first} (files written: {len(written)})")
    counts = ", ".join(f"{n} {verdict}" for verdict, n in results.counts)
    print_lines(f"claims: {counts}")
    if refuted := results.record.failed_self_checks():
        print_lines(f"self-checks refuted: {', '.join(refuted)}")
    again = canonical_command(results.run)
    output = written[-1].parent  # of run.json
    if output != Path(DEFAULT_OUTPUT):
        again = again.removesuffix(f" --output {DEFAULT_OUTPUT}")
        again += f" --output {shlex.quote(str(output))}"
    print_lines(f"again: {again}")


def print_details(record: ClaimsRecord, written: Sequence[Path]) -> None:
    """Print the paths written, and below them the claims with their verdicts."""
    for path in written:
        print_lines(path)
    rows = []
    for claim in record.claims:
        several = [f"{one.id}: {one.verdict}" for one in claim.interpretations]
        rows.append(
            (claim.id, claim.verdict, ", ".join(several if several[1:] else []))
        )
    console = open_console(sys.stdout)
    console.print(make_table(("claim", "verdict", "interpretations"), rows))

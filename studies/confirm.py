"""The confirming run: the report again, by a seed that the catalogue itself gives.

Run ``python -m studies.confirm`` after the catalogue was changed.  The seed is what the
first eight hexadecimal digits of the catalogue's SHA-256 say, so that nobody chooses it
and no rule can be fitted to it.  Out: ``montecarlo/report/content/confirming.json``,
the verdicts of that run; pages count those that are theirs as well.
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from montecarlo.__main__ import main as run_command
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.outcomes import read_claims
from montecarlo.report.content.confirming import FILE, Confirming, write_confirming
from studies.program import parse, run_program


def confirm(folder: Path, jobs: int) -> Confirming:
    """Run the standard report by the catalogue's seed; returns its verdicts."""
    digest = read_catalogue().digest()
    found = Confirming(digest, {})
    command = ["report", "--seed", str(found.seed), "--jobs", str(jobs), "--lang", "en"]
    if status := run_command([*command, "--quiet", "--output", str(folder)]):
        raise SystemExit(status)
    verdicts = {one.id: str(one.verdict) for one in read_claims(folder).claims}
    return Confirming(digest, verdicts)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the record."""
    options = parse("confirm", __doc__, argv, output=FILE, jobs=1)
    with TemporaryDirectory() as folder:
        found = confirm(Path(folder), options.jobs)
    write_confirming(found, options.output)
    print(f"{options.output}: seed {found.seed}, {len(found.verdicts)} verdicts")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("confirm", main))

"""The confirming run: the report again, by a seed that the catalogue itself gives.

Run ``python -m studies.confirm`` after the catalogue was changed.  The seed is what the
first eight hexadecimal digits of the catalogue's SHA-256 say, so that nobody chooses it
and no rule can be fitted to it.  Out: ``montecarlo/report/content/confirming.json``,
the verdicts of that run; pages count those that are theirs as well.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from montecarlo.__main__ import main as run_command
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.outcomes import read_claims
from montecarlo.report.content.findings import CONFIRMING
from studies.program import parse, run_program


def seed_of(digest: str) -> int:
    """Return the number that the first eight hexadecimal digits of a SHA-256 are."""
    return int(digest[:8], 16)


def confirm(folder: Path, jobs: int) -> dict[str, Any]:
    """Run the standard report by the catalogue's seed.

    Returns the SHA-256 of the ``catalogue``, and the ``verdicts`` by id of claim.
    """
    digest = read_catalogue().digest()
    command = ["report", "--seed", str(seed_of(digest)), "--jobs", str(jobs)]
    command += ["--lang", "en"]
    if status := run_command([*command, "--quiet", "--output", str(folder)]):
        raise SystemExit(status)
    verdicts = {one.id: str(one.verdict) for one in read_claims(folder).claims}
    return {"catalogue": digest, "verdicts": verdicts}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the record."""
    options = parse("confirm", __doc__, argv, output=CONFIRMING, jobs=1)
    with TemporaryDirectory() as folder:
        record = confirm(Path(folder), options.jobs)
    options.output.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    seed = seed_of(record["catalogue"])
    print(f"{options.output}: seed {seed}, {len(record['verdicts'])} verdicts")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("confirm", main))

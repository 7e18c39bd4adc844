"""Follow one claim from the catalogue to the page: ``python docs/make_trace.py``.

Out: the table between markers in CONTRIBUTING.md, from a run of that claim with the
quick preset.  Each stop is a value of a type; what the table says of it is read off
that value, and what one stop hands to the next is compared.  A test holds that the
table is fresh, that there are ten stops at most, and that from the draw to the page no
room is entered again.
"""

import inspect
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.running import Study, points_of_study
from montecarlo.claims.simulation import check_rows, row_key
from montecarlo.cli.exits import run
from montecarlo.estimation.summaries import Summaries, columns_of
from montecarlo.report.content.findings import read_results
from montecarlo.report.render.pages import typeset_number
from montecarlo.sampling.replicates import sample
from montecarlo.study.measured import row_id
from montecarlo.study.presets import Grid
from montecarlo.study.table import PointTable

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
CLAIM, D_K = "scaled-variance-one", 64
OPTIONS = ("--only", CLAIM, "--preset", "quick", "--lang", "en", "--quiet")
MARKED = re.compile(r"(<!-- made: trace -->\n).*?(\n<!-- end -->)", re.DOTALL)


class Stop(NamedTuple):
    """A stop of a value: its type, where that is defined, and what stands there."""

    type: str
    file: str
    text: str


def stop_at(value: object, text: str) -> Stop:
    """Name the type of a value and its file."""
    is_named = inspect.isfunction(value) or inspect.isclass(value)
    kind = value if is_named else type(value)
    file = inspect.getsourcefile(kind)
    if file is None:
        raise TypeError(f"value must be of a type of the package, got {value!r}")
    return Stop(kind.__name__, Path(file).relative_to(ROOT).as_posix(), text)


def follow(folder: Path) -> list[Stop]:
    """Return the stops of the claim's variance at d_k = 64, of a run in a folder.

    Raises
    ------
    ValueError
        If what is computed here again is not what the run has.
    """
    results = read_results(folder)
    (claim,) = results.claims
    (check,) = claim.interpretations[0].checks
    (case,) = (
        one for one in check.cases if (one.distribution, one.d_k) == ("gaussian", D_K)
    )
    key, grid = row_key(check.check), msgspec.convert(results.run["grid"], Grid)
    catalogue = read_catalogue().only((CLAIM,))
    points = points_of_study(Study(catalogue, grid, whole_grid=False))
    asked = check_rows([check.check], points, grid.divisors)
    (point,) = {one for one, _ in asked if row_id(one, key) == case.row}
    columns = columns_of(point, [key])
    batch = sample(point, results.run["seed"], 0, case.n_replicates or 0, columns)
    estimate = Summaries(point, batch, columns).estimate(key)
    line = results.measurements.set_index("row_id").loc[case.row]
    said = results.finding(claim)
    if said is None or not estimate.value == line["estimate"] == case.estimate:
        raise ValueError(f"{key} must be estimated alike at every stop, got {estimate}")
    (number,) = (one for one in said.numbers.values() if one.row == case.row)
    shown = f"data-row={case.row}>"
    page = (folder / "en.html").read_text(encoding="utf-8")
    cell = re.search(rf'data-claim="{CLAIM}">(?:(?!</span>).)*{shown}([^<]+)<', page)
    if cell is None:
        raise ValueError(f"en.html must show row {case.row}, got none")
    squares = batch.means[0][columns.means.index(("none", "s2"))]
    ends = f"{case.simultaneous_low:.4f} to {case.simultaneous_high:.4f}"
    region = f"{case.region_low:g} to {case.region_high:g}"
    made = f"{estimate.value:.4f} ± {estimate.std_error:.4f}"
    return [
        stop_at(
            check.check,
            f"`catalogue.toml`, `{CLAIM}`: `{check.quantity}`, divisor "
            f"`{check.divisor}`, {check.relation} {check.expected}",
        ),
        stop_at(
            point,
            f"asked for by `check_rows`: {point.label}, d_k = {D_K}, row `{case.row}`",
        ),
        stop_at(
            batch, f"`sample`: means over pairs; of (q·k)² in replicate 0 {squares:.4g}"
        ),
        stop_at(estimate, f"`Summaries.estimate`: {made}, {case.n_replicates} of them"),
        stop_at(
            PointTable, "`table_of`: what a worker answers, and measurements.csv has"
        ),
        stop_at(case, f"`decide_case`: {ends} within {region}, so {case.outcome}"),
        stop_at(
            claim, f"`Judge`: {claim.verdict}, {claim.reason}; as it is, in claims.json"
        ),
        stop_at(results, "`read_results`: the folder, read back against its hashes"),
        stop_at(
            said,
            f"`Findings.finding`: the sentence that holds, with {number.value:.4f}",
        ),
        stop_at(typeset_number, f"`en.html`, the cell of the claim: **{cell[1]}**"),
    ]


def tabulate(stops: list[Stop]) -> str:
    """Return the stops as a Markdown table."""
    rows = [
        f"| {n} | `{stop.type}` | `{stop.file}` | {stop.text} |"
        for n, stop in enumerate(stops, start=1)
    ]
    return "\n".join(
        ["| | type | file | what stands there |", "|--:|---|---|---|", *rows]
    )


def trace() -> list[Stop]:
    """Run the claim, and follow it."""
    with TemporaryDirectory() as folder:
        if run("report", [*OPTIONS, "--output", folder]):
            raise RuntimeError(f"report must end well, of {CLAIM}")
        return follow(Path(folder))


def main() -> int:
    """Write the table."""
    text = PAGE.read_text(encoding="utf-8")
    table = tabulate(trace())
    PAGE.write_text(MARKED.sub(lambda m: m[1] + table + m[2], text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

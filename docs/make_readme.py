"""Make what README and docs quote of a report again, from its results.

``python docs/make_readme.py output`` reads a results folder (the standard preset, seed
1) and writes ``docs/attention.svg``, what stands between markers in README.md,
docs/verdicts.md and docs/error-rates.md, and the verdicts of
docs/changes-after-results.md.  A test compares them with a fresh run.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

from montecarlo.claims.calibration import calibrate
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.running import Study, error_rates_of
from montecarlo.report.content.findings import FilledSentence, Findings, read_results
from montecarlo.report.content.reading import read_rows
from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.files import Drawing, draw
from montecarlo.report.language.catalogues import SOURCE, read_language
from montecarlo.report.render.pages import typeset_number
from montecarlo.study.presets import PRESETS
from studies.calibration import RATES, Line, read_lines

ROOT = Path(__file__).resolve().parents[1]
CHANGES = "docs/changes-after-results.md"
#: A row of the page of changes: claim, verdict before, verdict after.
ROW = re.compile(r"^(\| `([\w-]+)` \| \w+ \| )\*\*[^*]+\*\*", re.MULTILINE)
#: What came out, with numbers of findings: claim and name in the catalogue, and digits.
SENTENCES = """\
1. The variance of q·k is {variance-equals-dimension.a:.1f} at d_k = 64: independent entries of variance 1 give d_k, whatever their distribution.
2. A row of 128 keys uses {unscaled-few-positions.a:.1f} of them without division, {scaled-balanced.s:.0f} divided by sqrt(d_k), and {linear-near-uniform.a:.0f} divided by d_k.
3. That "gradients vanish" without division is half true: at d_k = 64 softmax passes on {unscaled-gradient-vanishes.p:.0%} of what it does divided by sqrt(d_k), at 256 {unscaled-gradient-vanishes.q:.0%} (median query of 128 keys), and nothing in the limit.
4. What arrives at that query is {unscaled-gradient-explodes.r:.1f} times as much at d_k = 64 without division: the divisor alone makes a factor of 8.
5. A small layer needs {unscaled-hinders-learning.f:.1f} to {unscaled-hinders-learning.g:.1f} times as many steps to learn without division, and {unscaled-hinders-learning.e:.1f} to {unscaled-hinders-learning.h:.1f} times if W_Q is divided at the start instead; the spacing of learning rates can make 1.33.
"""  # noqa: E501
NUMBER = re.compile(r"\{([\w-]+)\.(\w+):([^}]+)\}")


def say_sentences(findings: Findings) -> str:
    """Return the README's sentences with their numbers."""
    claims = {claim.id: claim for claim in findings.claims}

    def fill(found: re.Match[str]) -> str:
        said = findings.finding(claims[found[1]])
        if said is None:
            raise ValueError(f"claim {found[1]} must have a finding, got none")
        return format(said.numbers[found[2]].value, found[3])

    return NUMBER.sub(fill, SENTENCES).rstrip()


def verdict_table(findings: Findings) -> str:
    """Return the claims with their verdicts and what was found as a Markdown table."""
    number = findings.number
    lines = ["| | claim | verdict | found |", "|--:|---|---|---|"]
    for claim in sorted(
        findings.claims, key=lambda one: (not one.sources, number(one))
    ):
        finding = findings.finding(claim)
        found = "" if finding is None else plain_said(finding)
        label = f"{'' if claim.sources else 'Q'}{number(claim)}"
        statement = findings.entry_of(claim).statement
        lines.append(f"| {label} | {statement} | **{claim.verdict}** | {found} |")
    return "\n".join(lines)


def plain_said(said: FilledSentence) -> str:
    """Return a sentence in English as plain text, its numbers filled in."""
    language = read_language("en")
    numbers = {
        name: typeset_number(language, number).striptags()
        for name, number in said.numbers.items()
    }
    return str(said.text) % numbers


def error_rate_table(_: Findings | None = None) -> str:
    """Return how often intervals missed in trials, and what standard pays for it."""
    groups: dict[str, list[Line]] = {}
    for line in read_lines():
        kind = line.kind + ", several looks" * (line.looks > 1)
        groups.setdefault(kind, []).append(line)
    head = " | ".join(f"at {rate:g}" for rate in RATES)
    lines = [f"| interval | lines | {head} | worst line |", "|---|--:|--:|--:|--:|---|"]
    for kind, counted in groups.items():
        worst = max(counted, key=lambda line: line.times(RATES[-1]))
        times = " | ".join(f"{worst.times(rate):.2f}" for rate in RATES)
        lines.append(f"| {kind} | {len(counted)} | {times} | {worst.statistic} |")
    study = Study(read_catalogue(), PRESETS["standard"])
    rates = error_rates_of(study)
    factors = calibrate(rates.share).divided_by.items()
    paid = (
        f"In the standard preset, at an error rate of {100.0 * study.error_rate:g} %, "
        f"one end of an interval has a share of {rates.share:.2g}, and states that "
        f"divided by, for each kind: {', '.join(f'{k} {f:.3g}' for k, f in factors)}."
    )
    return "\n".join([*lines, "", paid])


#: What stands between markers: its name, its page, and what makes it.
PARTS: dict[str, tuple[str, Callable[[Findings], str]]] = {
    "sentences": ("README.md", say_sentences),
    "verdicts": ("docs/verdicts.md", verdict_table),
    "error-rate": ("docs/error-rates.md", error_rate_table),
}


def with_part(text: str, name: str, part: str) -> str:
    """Put a part between its markers in a page."""
    before, start, rest = text.partition(f"<!-- made: {name} -->")
    _, end, after = rest.partition("<!-- end -->")
    if not end:
        raise ValueError(f"the page must have a place for {name}, got none")
    return f"{before}{start}\n\n{part}\n\n{end}{after}"


def with_verdicts(page: str, findings: Findings) -> str:
    """Put the verdicts as they are now into the page of changes."""
    verdicts = {claim.id: claim.verdict for claim in findings.claims}
    return ROW.sub(lambda row: f"{row[1]}**{verdicts[row[2]]}**", page)


def draw_attention(findings: Findings) -> Drawing | None:
    """Draw the README's figure, from the rows that it is drawn from on pages."""
    spec, divisors = FIGURES["attention"], findings.run["grid"]["divisors"]
    rows = read_rows(findings.measurements, spec.rows, findings.points, divisors)
    return draw(spec, rows, findings.curves)


def rewrite(name: str, change: Callable[[str], str]) -> None:
    """Change a file of the repository."""
    path = ROOT / name
    text = change(path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8", newline="\n")


def main(folder: Path) -> None:
    """Write the figure, the parts and the verdicts."""
    findings = read_results(folder)
    drawing = draw_attention(findings)
    if drawing is None:
        raise ValueError("results must hold what the figure of attention needs")
    svg = drawing.svg_in(read_language(SOURCE))
    (ROOT / "docs" / "attention.svg").write_text(svg, encoding="utf-8", newline="\n")
    for name, (page, make) in PARTS.items():
        part = make(findings)
        rewrite(page, lambda text, name=name, part=part: with_part(text, name, part))
    rewrite(CHANGES, lambda text: with_verdicts(text, findings))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

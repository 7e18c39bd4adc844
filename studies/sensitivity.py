"""What the verdicts owe to our choices: other tolerances, regions, thresholds, a seed.

Run as ``python -m studies.sensitivity [--jobs N]``: a few minutes of one core.  The
standard preset is sampled at one seed and at another; the intervals of the first are
held against other regions.  Out: `FILE`, which the evidence shows, and the same on the
terminal.

The share of rows whose largest weight is at least t is at least 0.1 where its 90 %
quantile is at least t: so shares of saturated rows are judged at a threshold t that was
not counted, by Student's interval of that quantile.  Other shares, and sentences, are
left as they are.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pandas as pd

from montecarlo.attention.quantities import SATURATED
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.judging import join_cases
from montecarlo.claims.outcomes import (
    CaseOutcome,
    CheckOutcome,
    InterpretationOutcome,
    Judgement,
)
from montecarlo.claims.record import ClaimsRecord
from montecarlo.claims.running import Study, run_study, write_results
from montecarlo.claims.verdicts import (
    Verdict,
    decide,
    interpretation_verdict,
    join_verdicts,
)
from montecarlo.estimation.intervals import Interval, t_quantile
from montecarlo.records.sensitivity import FILE
from montecarlo.report.content.record import read_claims
from montecarlo.study.executors import make_executor
from montecarlo.study.folder import write_json
from montecarlo.study.presets import PRESETS
from studies.program import parse, run_program

PRESET, SEED, SECOND_SEED = "standard", 1, 2
TOLERANCES, SLOPES, ONE_HOT = (2.0, 0.5), (3.0,), (0.85, 0.95)
#: The least largest weight of what is called one-hot, and quantities it speaks of.
USED = SATURATED["saturated"]
WEIGHTS = ("weight_max", "planted_weight")
#: The share of saturated rows that a quantile of the largest weight tells of, by name.
SHARE, QUANTILE = 0.1, "q90"

#: Check and case of claims.json -> interval and region, as they are held together.
Varied = Callable[[CheckOutcome, CaseOutcome], tuple[Interval, tuple[float, float]]]


@dataclass(frozen=True, slots=True)
class Folder:
    """Results: claims.json, run.json, and quantiles by the row of the share they tell.

    A quantile is its estimate, its standard error and the replicates behind it.
    """

    claims: ClaimsRecord
    run: Mapping[str, Any]
    quantiles: Mapping[str, tuple[float, float, int]]


def read_folder(folder: Path) -> Folder:
    """Read results: their claims, and the quantiles of the largest weight."""
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    table = pd.read_csv(
        folder / "measurements.csv",
        keep_default_na=False,
        na_values=[""],
        low_memory=False,
    )
    plain = table[table["number_format"].eq("float64") & table["softmax"].eq("shifted")]
    places = ["distribution_q", "distribution_k", "dependence", "initialisation"]
    places += ["normalisation", "d_k", "n_keys", "divisor"]
    of_share = plain[plain["quantity"].eq("saturated")]
    of_weight = plain[
        plain["quantity"].eq("weight_max") & plain["summary"].eq(QUANTILE)
    ]
    both = of_share.merge(of_weight, on=places, suffixes=("", "_w"))
    numbers = both[["row_id", "estimate_w", "std_error_w", "n_replicates_w"]]
    found = {row: tuple(rest) for row, *rest in numbers.itertuples(index=False)}
    return Folder(read_claims(folder), run, found)


def as_judged(
    check: CheckOutcome, case: CaseOutcome
) -> tuple[Interval, tuple[float, float]]:
    """Return interval and region of a case as it was judged."""
    del check
    return Interval(*case.interval), case.region


def with_margin(
    relation: str, factor: float, check: CheckOutcome, case: CaseOutcome
) -> tuple[Interval, tuple[float, float]]:
    """Widen the regions of a relation that are closed, about their middle."""
    interval, (low, high) = as_judged(check, case)
    if check.relation == relation:
        middle, half = (low + high) / 2.0, factor * (high - low) / 2.0
        if half < float("inf"):
            return interval, (middle - half, middle + half)
    return interval, (low, high)


def with_one_hot(
    folder: Folder, threshold: float, check: CheckOutcome, case: CaseOutcome
) -> tuple[Interval, tuple[float, float]]:
    """Call rows one-hot from another largest weight on."""
    interval, (low, high) = as_judged(check, case)
    quantity, relation = check.quantity, check.relation
    if quantity in WEIGHTS and (relation, check.low) == ("at_least", USED):
        return interval, (threshold, high)
    if quantity == "saturated" and SHARE in (check.low, check.high):
        value, error, n = folder.quantiles[case.rows[0]]
        half = t_quantile(folder.claims.simultaneous_error, n) * error
        least = relation == "at_least"
        region = (threshold, float("inf")) if least else (-float("inf"), threshold)
        return Interval(value - half, value + half), region
    return interval, (low, high)


def verdicts_of(claims: Judgement, varied: Varied) -> dict[tuple[str, str], str]:
    """Return all verdicts at other regions, by claim and interpretation.

    The interpretation of a claim's own verdict is empty.
    """
    found: dict[tuple[str, str], str] = {}
    for claim in claims.claims:
        voting = []
        for interpretation in claim.interpretations:
            verdict = _interpretation(interpretation, varied)
            found[claim.id, interpretation.id] = verdict.value
            if interpretation.votes:
                voting.append(verdict)
        measured = claim.kind == "measured" and voting
        joined = join_verdicts(voting) if measured else claim.verdict
        found[claim.id, ""] = joined.value
    return found


def _interpretation(interpretation: InterpretationOutcome, varied: Varied) -> Verdict:
    checks = [_check(check, varied) for check in interpretation.checks]
    outcomes = [case.outcome for case in join_cases(checks)]
    if interpretation.verdict == Verdict.NOT_MEASURED:  # as before: nothing is sampled
        return Verdict.NOT_MEASURED
    return interpretation_verdict(
        interpretation.logic, outcomes, share=interpretation.share
    )


def _check(check: CheckOutcome, varied: Varied) -> CheckOutcome:
    """Return a check with its cases decided anew, but for what theory decides."""
    if check.relation == "tends_to":
        return check
    cases = tuple(
        case
        if case.outcome == Verdict.NOT_APPLICABLE
        else msgspec.structs.replace(case, outcome=decide(*varied(check, case)))
        for case in check.cases
    )
    return msgspec.structs.replace(check, cases=cases)


def vary(first: Folder, second: Folder) -> Iterator[dict[str, object]]:
    """Yield a line for each choice: what was varied, and what that changes."""
    claims = first.claims
    usual = verdicts_of(claims, as_judged)
    for factor in TOLERANCES:
        found = verdicts_of(claims, partial(with_margin, "equals", factor))
        yield _line("tolerance", factor, usual, found)
    for factor in SLOPES:
        found = verdicts_of(claims, partial(with_margin, "slope_between", factor))
        yield _line("slope", factor, usual, found)
    for threshold in ONE_HOT:
        found = verdicts_of(claims, partial(with_one_hot, first, threshold))
        yield _line("one-hot", threshold, usual, found)
    yield _line("seed", SECOND_SEED, usual, verdicts_of(second.claims, as_judged))


def _line(
    varied: str,
    value: float,
    usual: Mapping[tuple[str, str], str],
    found: Mapping[tuple[str, str], str],
) -> dict[str, object]:
    names = ("claim", "interpretation", "before", "after")
    changes = [
        dict(zip(names, (*key, before, found[key]), strict=True))
        for key, before in usual.items()
        if found[key] != before
    ]
    return {"varied": varied, "value": value, "changes": changes}


def sample_into(folder: Path, seed: int, jobs: int) -> None:
    """Run the study of a seed into a folder: tables and claims.json, no pages."""
    study = Study(read_catalogue(), PRESETS[PRESET], seed=seed, preset=PRESET)
    with make_executor(jobs) as executor:
        write_json(
            folder / "run.json", write_results(run_study(study, executor), folder)
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Vary, write what changed, and print it."""
    options = parse("sensitivity", __doc__, argv, jobs=1, output=FILE)
    folders = []
    for seed in (SEED, SECOND_SEED):
        with TemporaryDirectory() as made:
            sample_into(Path(made), seed, options.jobs)
            folders.append(read_folder(Path(made)))
    record = sensitivity(*folders)
    write_json(options.output, record)
    for line in record["lines"]:
        print(line["varied"], line["value"], f"{len(line['changes'])} changed")
        for change in line["changes"]:
            print("   ", *change.values())
    return 0


def fingerprint(claims: Judgement, run: Mapping[str, Any]) -> str:
    """Return a hash of what was judged and where: what is of others is stale."""
    asked = [
        [
            claim.id,
            *(one.id, one.votes, one.logic, one.share),
            *(msgspec.to_builtins(check.asked) for check in one.checks),
        ]
        for claim in claims.claims
        for one in claim.interpretations
    ]
    text = json.dumps([asked, run["grid"], run["error_rate"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def sensitivity(first: Folder, second: Folder) -> dict[str, Any]:
    """Return what the evidence shows, with what it was made from."""
    verdicts = verdicts_of(first.claims, as_judged)
    return {
        "preset": PRESET,
        "seed": SEED,
        "checks": fingerprint(first.claims, first.run),
        "claims": sum(not interpretation for _, interpretation in verdicts),
        "interpretations": sum(bool(interpretation) for _, interpretation in verdicts),
        "lines": list(vary(first, second)),
    }


if __name__ == "__main__":
    raise SystemExit(run_program("sensitivity", main))

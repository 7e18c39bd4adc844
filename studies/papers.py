"""What papers say, drawn, held against exact theory and judged: claims/papers.json.

Run ``python -m studies.papers`` where papers.toml or a quantity of it was changed: one
or two minutes.  A test fails until it was.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from montecarlo import claims
from montecarlo.claims.checks import Check
from montecarlo.claims.evidence import Found
from montecarlo.claims.judging import Judge
from montecarlo.claims.outcomes import Located
from montecarlo.claims.papers import (
    CONCENTRATION_CURVE,
    GROWTH_CURVE,
    LIMIT,
    RECORD,
    Answer,
    PaperCheck,
    Papers,
    PapersOutcome,
    PapersRecord,
    Setting,
    Statement,
    read_papers,
)
from montecarlo.claims.schema import (
    Catalogue,
    Claim,
    Interpretation,
    Passage,
    Sentence,
    Topic,
    Value,
)
from montecarlo.estimation.estimates import POINTWISE, Estimate
from montecarlo.sampling.streams import ModelRows
from montecarlo.study.curves import CurveLine
from montecarlo.theory.row_integrals import ROW_NAMES, gaussian_profile, integrate_row
from studies.paper_quantities import MEASURES, critical_std, std_that_holds
from studies.program import parse, run_program

#: What the record is made with.
SEED, ERROR_RATE = 1, 0.01
#: Keys that a rule of extension starts from, and those that curves go over.
FROM = 4096
GROWTH_KEYS = tuple(2**i for i in range(6, 19))
CONCENTRATION_KEYS = (64, 1024, 16384, 131072, 1048576)
#: Of s over sqrt(2 ln n).
PLACES = tuple(np.geomspace(0.1, 8.0, 45).round(4).tolist())
#: What is held while rows grow: its name, what it is, at what level.
KEPT = (
    ("entropy-1", "entropy", 1.0),
    ("entropy-3", "entropy", 3.0),
    ("concentration-0.5", "concentration", 0.5),
)
#: Laws that papers have.
LAWS = ("logarithm", "root", "extension")


def locate(at: Setting) -> Located:
    """Return a setting as the case of a check."""
    numbers = {
        name: value
        for name, value in msgspec.structs.asdict(at).items()
        if name not in ("n_keys", "d_k") and value not in (None, "")
    }
    part = ", ".join(f"{name}={value}" for name, value in numbers.items())
    return Located(part=part, n_keys=at.n_keys, d_k=at.d_k)


def place_number(statement: Statement, at: tuple[int, int], offset: int = 0) -> Value:
    """Return a number of a case, for a sentence that asserts its check.

    Parameters
    ----------
    statement : Statement
    at : (int, int)
        Places of the check and the case.
    offset : int
        How many checks the sentence has before those beside this statement.
    """
    check, case = at
    role = statement.check[check].role
    place = statement.checks(role).index(statement.check[check])
    if role == "beside":
        return Value(check=offset + place, case=case, of="known")
    name = f"{statement.id}-shown" if role == "shown" else statement.id
    return Value(check=place, interpretation=name, case=case, of="known")


def claim_of(statement: Statement, topic: Topic) -> Claim:
    """Return a statement as a claim: what is stated has a vote, what is shown none."""
    stated, shown = statement.checks("stated"), statement.checks("shown")
    interpretations = []
    if stated:
        one = Interpretation(
            statement.id,
            stated,
            quantifier=statement.quantifier,
            tested=statement.tested,
            degree=statement.degree,
        )
        interpretations.append(one)
    if shown:
        interpretations.append(
            Interpretation(f"{statement.id}-shown", shown, beyond=True)
        )
    findings = tuple(
        Sentence(
            one.text,
            interpretations={statement.id: one.verdict} if stated else {},
            check=statement.checks("beside"),
            value={name: place_number(statement, at) for name, at in one.value.items()},
            verdict=one.verdict,
        )
        for one in statement.finding
    )
    return Claim(
        statement.id,
        topic,
        statement.statement,
        finding=findings,
        interpretation=tuple(interpretations),
        tested=statement.tested,
    )


def sentence_of(answer: Answer, statements: Mapping[str, Statement]) -> Sentence:
    """Return an answer with all that findings of its statements rest on."""
    checks: list[PaperCheck] = []
    offsets = {}
    for name in answer.verdicts:
        offsets[name] = len(checks)
        checks += statements[name].checks("beside")
    return Sentence(
        answer.text,
        interpretations=answer.verdicts,
        check=tuple(checks),
        value={
            name: place_number(statements[of], (check, case), offsets[of])
            for name, (of, check, case) in answer.value.items()
        },
    )


def catalogue_of(papers: Papers) -> Catalogue:
    """Return statements as claims, and answers as passages."""
    topics = {one.id: one.topic for one in papers.question}
    by_id = {one.id: one for one in papers.statement}
    return Catalogue(
        claim=tuple(claim_of(one, topics[one.question]) for one in papers.statement),
        passage=tuple(
            Passage(question.id, "papers", sentence_of(answer, by_id))
            for question in papers.question
            for answer in question.answer
        ),
    )


@dataclass(frozen=True, slots=True)
class PaperEvidence:
    """What is drawn and computed: `montecarlo.claims.evidence.Evidence` of papers.

    Attributes
    ----------
    seed : int
        Each estimate has a stream of its own, so none depends on the others.
    known : dict
        What was found of a check, by its place, and a case.
    """

    seed: int
    known: dict[tuple[str, Located], Found] = field(default_factory=dict)

    def reaches(self, check: Check) -> bool:
        """Tell whether there is all of a scope: a check lists its cases."""
        return isinstance(check, PaperCheck)

    def cases(self, check: Check) -> list[Located]:
        """Return the cases that a check lists."""
        return [locate(case.at) for case in _listed(check).case]

    def find(self, check: Check, case: Located) -> Found:
        """Draw a case and compute its exact value, once."""
        check = _listed(check)
        if (check.place, case) not in self.known:
            place = self.cases(check).index(case)
            self.known[check.place, case] = self._draw(check, place)
        return self.known[check.place, case]

    def _draw(self, check: PaperCheck, place: int) -> Found:
        region, at = check.region(check.case[place]), check.case[place].at
        measure = MEASURES[check.quantity]
        exact = None if measure.exact is None else measure.exact(at)
        if measure.draw is None:
            assert exact is not None, check.quantity  # noqa: S101 - or there is nothing
            estimate = Estimate(exact, 0.0, 2)
        else:
            rows = ModelRows(self.seed, f"literature {check.place} {place}")
            estimate = measure.draw(rows, at)
        least, most = read_papers().quantity[check.quantity].possible
        low, high = estimate.within
        estimate = replace(estimate, within=(max(least, low), min(most, high)))
        return Found(region, estimate, exact)


def _listed(check: Check) -> PaperCheck:
    if not isinstance(check, PaperCheck):
        raise TypeError(f"check must list its cases, got {check.quantity}")
    return check


def count_drawn(checks: Iterable[Check]) -> int:
    """Return in how many cases intervals of drawn values are compared."""
    return sum(
        check.region(case) is not None and MEASURES[check.quantity].draw is not None
        for check in map(_listed, checks)
        for case in check.case
    )


def judge_papers(seed: int, error_rate: float) -> PapersOutcome:
    """Draw and judge all the statements.

    Parameters
    ----------
    seed : int
    error_rate : float
        Nominal probability that any decided case is wrong.
    """
    papers, evidence = read_papers(), PaperEvidence(seed)
    checks = {one.id: one.check for one in papers.statement}
    drawn = {name: count_drawn(some) for name, some in checks.items()}
    each = error_rate / (2.0 * sum(drawn.values()))  # an interval misses on either side
    # NumPy draws without Python's lock
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(os.cpu_count()) as threads:
        every = [
            (check, case)
            for some in checks.values()
            for check in some
            for case in evidence.cases(check)
        ]
        list(threads.map(evidence.find, *zip(*every, strict=True)))
    rates = {name: 2.0 * each * number for name, number in drawn.items()}
    judged = Judge(evidence, min(each, POINTWISE), rates).judge(catalogue_of(papers))
    return PapersOutcome(error_rate=error_rate, **msgspec.structs.asdict(judged))


def paper_curves() -> Iterator[CurveLine]:
    """Yield the exact curves of the page of papers."""
    for n_keys in GROWTH_KEYS:
        ratio = math.log(n_keys) / math.log(FROM)
        factors = {
            name: std_that_holds(held, level, n_keys)
            / std_that_holds(held, level, FROM)
            for name, held, level in KEPT
        }
        further = max(1.0, n_keys / FROM)
        laws = (ratio, math.sqrt(ratio), (0.1 * math.log(further) + 1.0) ** 2)
        for name, factor in (factors | dict(zip(LAWS, laws, strict=True))).items():
            yield CurveLine(
                curve=GROWTH_CURVE, outcome=name, x=float(n_keys), estimate=factor
            )
    place = ROW_NAMES.index("inverse_participation")
    for n_keys in CONCENTRATION_KEYS:
        critical = critical_std(n_keys)
        for x in PLACES:
            row = integrate_row(gaussian_profile(np.array([x * critical])), n_keys)
            yield CurveLine(
                curve=CONCENTRATION_CURVE,
                n_keys=n_keys,
                outcome="exact",
                x=x,
                estimate=float(row.values[0, place]),
            )
    for x in PLACES:
        if x > 1.0:
            yield CurveLine(
                curve=CONCENTRATION_CURVE, outcome=LIMIT, x=x, estimate=1.0 - 1.0 / x
            )


def main(argv: Sequence[str] | None = None) -> int:
    """Draw, judge and write."""
    file = Path(claims.__path__[0]) / RECORD
    options = parse("papers", __doc__, argv, output=file)
    record = PapersRecord(judge_papers(SEED, ERROR_RATE), tuple(paper_curves()))
    found = msgspec.to_builtins(record)
    found["curves"] = [
        {name: value for name, value in point.items() if value not in (None, "")}
        for point in found["curves"]
    ]
    content = msgspec.json.format(msgspec.json.encode(found), indent=1)
    options.output.write_bytes(content + b"\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("papers", main))

"""What papers say of attention scaling, computed or drawn, and judged: docs/papers.md.

Run ``python -m studies.papers`` where papers.toml, theory or a quantity was changed: a
minute or two of one core.
"""

import math
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from threadpoolctl import threadpool_limits

from montecarlo.claims.verdicts import Outcome, Verdict, join_cases
from montecarlo.estimation.estimates import Estimate
from studies.paper_quantities import QUANTITIES, SEED
from studies.program import parse, run_program

SOURCE = Path(__file__).with_name("papers.toml")
PAGE = Path(__file__).parents[1] / "docs" / "papers.md"
#: Probability that any of the drawn numbers that are decided is decided wrongly.
ERROR_RATE = 0.01
DIGITS = 3

HEAD = """\
# What papers say

Papers answer such questions for a model of scores, and may disagree because their
models or their quantities differ, or because one of them errs. Each statement is in our
words and judged for the setting that is named. No number of this page was measured in a
trained head.

Numbers without an error are computed without sampling, or found by a search, and right
to the digits shown. The others are means over rows that were drawn, ± one standard
error; where one decides, it does so by intervals that all hold together with a
probability of at least %(rate)s. What is said of large $n$ or large $d_k$ is decided
by theory, in the limit. Questions of readers, which no paper states, are answered with
yes or no, and numbered apart.

`python -m studies.papers` makes this page, in a checkout: seed %(seed)s.
"""
#: What came out, in words for a statement and for a question of readers.
WORDS = {
    Verdict.HOLDS: ("holds", "yes"),
    Verdict.FAILS: ("fails", "no"),
    Verdict.VAGUE: ("vague", "vague"),
    Verdict.OPEN: ("open", "open"),
}

#: A quantity with its arguments.
Call = dict[str, Any]


class _Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of papers.toml."""


class Paper(_Entry, frozen=True):
    """What a paper is cited by."""

    key: str
    authors: str
    year: int
    title: str
    where: str


class Check(_Entry, frozen=True):
    """A quantity, and between what it must lie in each of its cases."""

    quantity: str
    at: list[Call]
    low: float = -math.inf
    high: float = math.inf
    asserted: bool = False  # by the sentence with the number alone, without a vote


class Statement(_Entry, frozen=True):
    """What a paper says, or readers ask if there is none, and how it is looked at."""

    question: str
    statement: str
    setting: str
    tested: str
    verdict: Verdict  # that ``number`` is written for
    number: str
    value: dict[str, Call] = {}
    check: list[Check] = []
    paper: list[str] = []
    quantifier: Literal["always", "can"] = "always"
    has_no_measure: bool = False


class Question(_Entry, frozen=True):
    """A question that papers differ on, and its answer."""

    id: str
    title: str
    answer: str
    value: dict[str, Call] = {}


class Papers(_Entry, frozen=True):
    """papers.toml."""

    papers: list[Paper] = field(name="paper")
    questions: list[Question] = field(name="question")
    statements: list[Statement] = field(name="statement")


@cache
def read_papers() -> Papers:
    """Read papers.toml."""
    return msgspec.convert(tomllib.loads(SOURCE.read_text("utf-8")), Papers)


# --- Numbers and verdicts -------------------------------------------------------------


def evaluate(quantity: str, at: Call) -> float | Estimate:
    """Return a quantity, computed or drawn once."""
    return _evaluate(quantity, tuple(sorted(at.items())))


@cache
def _evaluate(quantity: str, at: tuple[tuple[str, Any], ...]) -> float | Estimate:
    return QUANTITIES[quantity](**dict(at))


@cache
def one_sided_rate() -> float:
    """Return what an interval may miss by on a side, so that all hold together."""
    drawn = sum(
        isinstance(evaluate(check.quantity, at), Estimate)
        for statement in read_papers().statements
        for check in statement.check
        for at in check.at
    )
    return ERROR_RATE / (2.0 * drawn)


def decide(check: Check, at: Call) -> Outcome:
    """Decide a case: where its value, or the interval of it, lies."""
    found = evaluate(check.quantity, at)
    if isinstance(found, Estimate):
        low, high = found.interval(one_sided_rate())
    else:
        low = high = found
    if check.low <= low and high <= check.high:
        return Outcome.SUPPORTED
    outside = high < check.low or low > check.high
    return Outcome.REFUTED if outside else Outcome.UNDECIDED


def verdict_of(statement: Statement) -> Verdict:
    """Join the cases of a statement as its sentence is said."""
    if statement.has_no_measure:
        return Verdict.VAGUE
    voting = [check for check in statement.check if not check.asserted]
    outcomes = (decide(check, at) for check in voting for at in check.at)
    return join_cases(statement.quantifier, outcomes)


def require_what_is_said(statement: Statement) -> None:
    """Make sure that the sentence with the number says no more than came out."""
    found = verdict_of(statement)
    if found != statement.verdict:
        raise ValueError(f"{statement.statement!r} came out as {found}: say so")
    for check in statement.check:
        for at in check.at:
            if check.asserted and decide(check, at) != Outcome.SUPPORTED:
                raise ValueError(f"{statement.number!r} must hold at {at}")


# --- The page -------------------------------------------------------------------------


def show(found: float | Estimate) -> str:
    """Set a number: three digits of an exact one, two of an error."""
    if isinstance(found, Estimate):
        decimals = 1 - math.floor(math.log10(found.std_error))
        return f"{found.value:.{decimals}f} ± {found.std_error:.{decimals}f}"
    mantissa, power = f"{found:.{DIGITS - 1}e}".split("e")
    if found and not -DIGITS <= int(power) <= DIGITS:
        return rf"${mantissa} \cdot 10^{{{int(power)}}}$"
    decimals = max(0, DIGITS - 1 - int(power)) if found else 0
    return f"{float(f'{mantissa}e{power}'):.{decimals}f}"


def fill(text: str, values: dict[str, Call]) -> str:
    """Put numbers into a sentence."""
    calls = {name: dict(call) for name, call in values.items()}
    found = {
        name: show(evaluate(call.pop("quantity"), call)) for name, call in calls.items()
    }
    return text % found if found else text.replace("%%", "%")


def number_of(statement: Statement) -> str:
    """Return the number of a statement of papers, or of a question of readers."""
    alike = [
        one.statement
        for one in read_papers().statements
        if bool(one.paper) == bool(statement.paper)
    ]
    place = alike.index(statement.statement) + 1
    return f"{place}" if statement.paper else f"Q{place}"


def block_of(statement: Statement) -> str:
    """Return the part of the page on a statement."""
    require_what_is_said(statement)
    by_key = {paper.key: paper for paper in read_papers().papers}
    cited = (by_key[key] for key in statement.paper)
    source = "; ".join(
        f"{one.authors} {one.year}, *{one.title}*, {one.where}" for one in cited
    )
    word = WORDS[statement.verdict][not statement.paper]
    lines = (
        f"**{number_of(statement)}.** {statement.statement}",
        f"**{word}** · {fill(statement.number, statement.value)}",
        f"- Source: {source or 'a question of readers; no paper states it'}",
        f"- Setting: {statement.setting}",
        f"- Tested: {statement.tested}",
    )
    return "\n\n".join(lines[:2]) + "\n\n" + "\n".join(lines[2:]) + "\n"


def page_parts() -> Iterator[str]:
    """Yield the parts of the page; of a question what papers say comes first."""
    papers = read_papers()
    yield HEAD % {"rate": f"{1.0 - ERROR_RATE:.0%}", "seed": SEED}
    for question in papers.questions:
        yield f"## {question.title}\n"
        yield f"{fill(question.answer, question.value)}\n"
        of_it = [one for one in papers.statements if one.question == question.id]
        for statement in sorted(of_it, key=lambda one: not one.paper):
            yield block_of(statement)


def main(argv: Sequence[str] | None = None) -> int:
    """Compute, draw, judge and write."""
    options = parse("papers", __doc__, argv, output=PAGE)
    with threadpool_limits(1, "blas"):
        page = "\n".join(page_parts())
    options.output.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("papers", main))

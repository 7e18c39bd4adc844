"""What papers state of attention scaling, and how it came out.

papers.toml says what is stated, by whom, of which model of scores, and what is looked
at.  A statement is a claim as those of texts are, judged by the same rule; its evidence
was drawn once, far more than a report could wait for (`studies.paper_quantities`), and
papers.json holds how it came out: ``python -m studies.papers`` makes it again.
"""

import math
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from montecarlo.claims.checks import Check, Name, Relation, Text
from montecarlo.claims.outcomes import (
    CheckOutcome,
    ClaimOutcome,
    Judgement,
)
from montecarlo.claims.schema import (
    Quantifier,
    Topic,
)
from montecarlo.claims.verdicts import Verdict
from montecarlo.study.curves import CurveLine

PAPERS, RECORD = "papers.toml", "papers.json"
#: Curves of the record: the factor of scores by n; E Σp² by s over sqrt(2 ln n), and
#: its limit where s is large.
GROWTH_CURVE, CONCENTRATION_CURVE, LIMIT = "scale_growth", "row_concentration", "limit"
#: Of what agrees with a number of a paper; more than any of them has.
DECIMALS = 12

Number = Annotated[float, Meta(ge=-1e9, le=1e9)]
Positive = Annotated[float, Meta(gt=0, le=1e6)]
Part = Annotated[float, Meta(ge=0, le=1)]
Keys = Annotated[int, Meta(ge=2, le=2**20)]
Dimension = Annotated[int, Meta(ge=1, le=2**20)]
#: What a check is to its statement: a part of it; what findings and answers assert
#: beyond it; or only shown.
Role = Literal["stated", "beside", "shown"]


class _Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of papers.toml."""


class Setting(_Entry, frozen=True):
    """A place in a model of scores; what it does not have is None or empty.

    Attributes
    ----------
    n_keys, from_keys : int or None
        Keys of a row; the smaller of two numbers that are compared.
    d_k, from_d_k : int or None
        Length of a query; the smaller of two.
    std : float or None
        s of independent normal scores.
    times : float or None
        s over sqrt(2 ln n), held as n grows.
    gap : float or None
        By how much one score lies above the others.
    growth : float or None
        Scores are multiplied by it times ln n.
    gain : float or None
        What cosines of queries and keys are multiplied by.
    holds, level
        What is held as n grows, ``entropy``, ``concentration`` or ``largest``, the
        largest score, and at what.
    correlation : float or None
        Of an entry of a query with that of its key.
    scale, number_format
        What weights are multiplied by before they are rounded, and to what.
    """

    n_keys: Keys | None = None
    from_keys: Keys | None = None
    d_k: Dimension | None = None
    from_d_k: Dimension | None = None
    std: Positive | None = None
    times: Positive | None = None
    gap: Annotated[float, Meta(ge=0, le=1000)] | None = None
    growth: Positive | None = None
    gain: Positive | None = None
    holds: str = ""
    level: Positive | None = None
    correlation: Part | None = None
    scale: Positive | None = None
    number_format: str = ""


class Paper(_Entry, frozen=True):
    """A paper: what it is cited by."""

    key: Name
    authors: Text
    year: Annotated[int, Meta(ge=1980, le=2100)]
    title: Text
    where: Annotated[str, Meta(pattern=r"^[!-~]+\Z", max_length=60)]


class PaperQuantity(_Entry, frozen=True):
    """A quantity of the page of papers: its symbol, and whether it is a part of 1."""

    symbol: str
    part: bool = False

    @property
    def possible(self) -> tuple[float, float]:
        """The least and the largest value that it can have."""
        return (0.0, 1.0) if self.part else (-math.inf, math.inf)


class PaperCase(_Entry, frozen=True):
    """Where a quantity is looked at, and what the paper has there.

    Attributes
    ----------
    at : Setting
    paper : float or None
        The number that the paper prints, or that its formula gives.
    reach : float or None
        How far from it agrees with it: half of its last digit, or a numerical error.
        None: both are only shown.
    """

    at: Setting
    paper: Number | None = None
    reach: Annotated[float, Meta(ge=0)] | None = None


class PaperCheck(Check, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A check that lists its cases.

    With neither ``low`` nor ``high`` it is held against the numbers of papers, where
    these have a reach.

    Attributes
    ----------
    case : tuple of PaperCase
    votes : bool
        Whether it is a part of what is stated.  Else findings and answers rest on it,
        or it is only shown.
    place : str
        Statement and number, which its random streams are named by.
    """

    relation: Relation = "between"
    summary: str = "value"
    low: Number | None = None
    high: Number | None = None
    case: Annotated[tuple[PaperCase, ...], Meta(min_length=1)]
    votes: bool = True
    place: str = ""

    @property
    def role(self) -> Role:
        """What it is to its statement."""
        if all(self.region(case) is None for case in self.case):
            return "shown"
        return "stated" if self.votes else "beside"

    def region(self, case: PaperCase) -> tuple[float, float] | None:
        """Return the values that agree in one of its cases; None: it is only shown.

        An end that is open stays open; the others are values that there can be.
        """
        low, high = self.low, self.high
        if low is None and high is None:
            if case.paper is None or case.reach is None:
                return None
            # as the file has them: a sum of two decimals has more digits
            low = round(case.paper - case.reach, DECIMALS)
            high = round(case.paper + case.reach, DECIMALS)
        least, most = read_papers().quantity[self.quantity].possible
        return (
            -math.inf if low is None else max(low, least),
            math.inf if high is None else min(high, most),
        )


class PaperFinding(_Entry, frozen=True):
    """What is said where a statement came out so, and all that it rests on holds.

    ``value``: name of a number to the places of its check and case, counted from 0.
    """

    verdict: Verdict
    text: Text
    value: dict[str, tuple[int, int]] = {}


class Answer(_Entry, frozen=True):
    """An answer to a question, said where statements came out so.

    ``value``: name of a number to a statement, and the places of its check and case.
    """

    verdicts: Annotated[dict[Name, Verdict], Meta(min_length=1)]
    text: Text
    value: dict[str, tuple[Name, int, int]] = {}


class Statement(_Entry, frozen=True):
    """What a paper says, in our words.

    Attributes
    ----------
    id, question : str
        Its own, and that of the question it answers.
    statement : str
    model : str
        The model of scores that it is looked at in.
    tested : str
        The tested proposition: one sentence, in English.
    check : tuple of PaperCheck
    finding : tuple of PaperFinding
    paper : tuple of str
        Keys; none: a question of readers, which no paper states.
    quantifier, degree : str
        As of an `Interpretation`.
    same_as : tuple of str
        ``claim/interpretation`` of the catalogue of the five texts: where it is the
        same sentence, which then has the same logic.
    """

    id: Name
    question: Name
    statement: Text
    model: Text
    tested: Text
    check: Annotated[tuple[PaperCheck, ...], Meta(min_length=1)]
    finding: Annotated[tuple[PaperFinding, ...], Meta(min_length=1)]
    paper: tuple[Name, ...] = ()
    quantifier: Quantifier = "always"
    degree: Annotated[str, Meta(max_length=60)] = ""
    same_as: tuple[Annotated[str, Meta(pattern=r"^[a-z0-9-]+/[a-z0-9-]+\Z")], ...] = ()

    def checks(self, role: Role) -> tuple[PaperCheck, ...]:
        """Return its checks of a role, in order."""
        return tuple(check for check in self.check if check.role == role)

    def outcomes(
        self, found: ClaimOutcome
    ) -> Iterator[tuple[PaperCheck, CheckOutcome]]:
        """Yield its checks as the file has them, each with how it came out."""
        of: dict[str, list[CheckOutcome]] = {"beside": [*found.findings[0].checks]}
        for one in found.interpretations:
            of["stated" if one.votes else "shown"] = [*one.checks]
        for check in self.check:
            yield check, of[check.role].pop(0)


class Question(_Entry, frozen=True):
    """A question that papers differ on.

    ``figure`` names the picture of it, if there is one; of the answers the first that
    holds is said.
    """

    id: Name
    topic: Topic
    title: Text
    answer: Annotated[tuple[Answer, ...], Meta(min_length=1)]
    figure: str = ""


class Papers(_Entry, frozen=True):
    """papers.toml: everything that papers state here."""

    paper: tuple[Paper, ...]
    quantity: dict[Name, PaperQuantity]
    question: tuple[Question, ...]
    statement: tuple[Statement, ...]

    def words(self) -> Iterator[tuple[str, str]]:
        """Yield every text that pages show, with the place where it stands."""
        for question in self.question:
            yield question.title, f"question {question.id}"
            for number, answer in enumerate(question.answer, start=1):
                yield answer.text, f"question {question.id}, answer {number}"
        for statement in self.statement:
            place = f"statement {statement.id}"
            yield statement.statement, place
            yield statement.model, f"{place}, model"
            for finding in statement.finding:
                yield finding.text, f"{place}, finding {finding.verdict}"


@cache
def read_papers() -> Papers:
    """Read papers.toml."""
    source = files("montecarlo.claims").joinpath(PAPERS)
    papers = msgspec.convert(tomllib.loads(source.read_text("utf-8")), Papers)
    return msgspec.structs.replace(
        papers,
        statement=tuple(
            msgspec.structs.replace(
                one,
                check=tuple(
                    msgspec.structs.replace(check, place=f"{one.id} {number}")
                    for number, check in enumerate(one.check)
                ),
            )
            for one in papers.statement
        ),
    )


class PapersOutcome(Judgement, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What papers state, judged at an error rate of its own."""

    #: nominal, of all of it
    error_rate: float


class PapersRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """papers.json: how statements came out, and the exact curves beside them.

    Of a curve ``outcome`` says what is held, or which law it is.
    """

    outcome: PapersOutcome
    curves: tuple[CurveLine, ...]


def read_papers_record() -> PapersRecord:
    """Read the record that comes with the package."""
    content = files("montecarlo.claims").joinpath(RECORD).read_bytes()
    return msgspec.json.decode(content, type=PapersRecord)

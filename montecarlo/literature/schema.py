"""What literature.toml may hold: papers, questions, statements and their checks.

It says what is stated, by whom, of which model of scores, and what is looked at; never
how it came out.
"""

import math
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from montecarlo.claims.checks import Name, Text
from montecarlo.claims.schema import Quantifier
from montecarlo.claims.verdicts import Logic, Verdict
from montecarlo.literature.settings import Setting

Number = Annotated[float, Meta(ge=-1e9, le=1e9)]
#: Of what agrees with a number of a paper; more than any of them has.
DECIMALS = 12


class Paper(Struct, frozen=True, forbid_unknown_fields=True):
    """A paper: what it is cited by."""

    key: Name
    authors: Text
    year: Annotated[int, Meta(ge=1980, le=2100)]
    title: Text
    where: Annotated[str, Meta(pattern=r"^[!-~]+\Z", max_length=60)]


class Case(Struct, frozen=True, forbid_unknown_fields=True):
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


class LiteratureCheck(Struct, frozen=True, forbid_unknown_fields=True):
    """A quantity, what must hold of it, and where.

    Attributes
    ----------
    quantity : str
        A key of `QUANTITIES`.
    low, high : float or None
        The values that count as agreement.  Both None: those about the paper's number,
        in the cases that have one with a reach.
    case : tuple of Case
    votes : bool
        Whether it is a part of what is stated.  Else findings and answers rest on it,
        or it is only shown.
    """

    quantity: Name
    case: Annotated[tuple[Case, ...], Meta(min_length=1)]
    low: Number | None = None
    high: Number | None = None
    votes: bool = True

    def region(self, case: Case) -> tuple[float, float] | None:
        """Return the values that agree in one of its cases; None: it is only shown."""
        if self.low is None and self.high is None:
            if case.paper is None or case.reach is None:
                return None
            ends = case.paper - case.reach, case.paper + case.reach
            # as the file has them: a sum of two decimals has more digits
            return round(ends[0], DECIMALS), round(ends[1], DECIMALS)
        return (
            -math.inf if self.low is None else self.low,
            math.inf if self.high is None else self.high,
        )


class Finding(Struct, frozen=True, forbid_unknown_fields=True):
    """What is said where a statement came out so, and all that it rests on holds.

    Attributes
    ----------
    verdict : Verdict
    text : str
        Numbers stand in it as ``%(name)s``.
    value : dict
        Name of a number to the places of its check and case, counted from 0.
    """

    verdict: Verdict
    text: Text
    value: dict[str, tuple[int, int]] = {}


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer to a question, said where statements came out so.

    Attributes
    ----------
    verdicts : dict
        Statements to the verdicts that they must have; what their findings rest on
        must hold as well.
    text : str
        Numbers stand in it as ``%(name)s``.
    value : dict
        Name of a number to a statement, and the places of its check and case.
    """

    verdicts: Annotated[dict[Name, Verdict], Meta(min_length=1)]
    text: Text
    value: dict[str, tuple[Name, int, int]] = {}


class Statement(Struct, frozen=True, forbid_unknown_fields=True):
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
    check : tuple of LiteratureCheck
    finding : tuple of Finding
        The first whose verdict is that of the statement is said.
    paper : tuple of str
        Keys; none: a question of readers, which no paper states.
    quantifier : str
    degree : str
        The word of degree that has no border in the paper: then the number stands in
        place of a verdict, and bounds of the checks are ours.
    same_as : tuple of str
        ``claim/interpretation`` of the catalogue of the five texts: where it is the
        same sentence, which then has the same logic.
    """

    id: Name
    question: Name
    statement: Text
    model: Text
    tested: Text
    check: Annotated[tuple[LiteratureCheck, ...], Meta(min_length=1)]
    finding: Annotated[tuple[Finding, ...], Meta(min_length=1)]
    paper: tuple[Name, ...] = ()
    quantifier: Quantifier = "always"
    degree: Annotated[str, Meta(max_length=60)] = ""
    same_as: tuple[Annotated[str, Meta(pattern=r"^[a-z0-9-]+/[a-z0-9-]+\Z")], ...] = ()

    @property
    def logic(self) -> Logic:
        """What it needs of its cases."""
        return "degree" if self.degree else self.quantifier


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """A question that papers differ on.

    ``figure`` names the picture of it, if there is one; of the answers the first that
    holds is said.
    """

    id: Name
    title: Text
    answer: Annotated[tuple[Answer, ...], Meta(min_length=1)]
    figure: str = ""


class Literature(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that papers say here."""

    paper: tuple[Paper, ...]
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


def read_literature() -> Literature:
    """Read literature.toml."""
    source = files("montecarlo.literature").joinpath("literature.toml")
    data = tomllib.loads(source.read_text(encoding="utf-8"))
    return msgspec.convert(data, Literature, strict=True)

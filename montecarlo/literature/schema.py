"""What literature.toml may hold: papers, questions, statements and their checks.

It says what is stated, by whom, of which model of scores, and what is looked at; never
how it came out.
"""

import math
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from montecarlo.claims.checks import Name, Text
from montecarlo.literature.settings import Setting

Number = Annotated[float, Meta(ge=-1e9, le=1e9)]


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
    reach : float
        How far from it agrees with it: half of its last digit, or what is said.
    """

    at: Setting
    paper: Number | None = None
    reach: Annotated[float, Meta(ge=0)] = 0.0


class LiteratureCheck(Struct, frozen=True, forbid_unknown_fields=True):
    """A quantity, what must hold of it, and where.

    Attributes
    ----------
    quantity : str
        A key of `QUANTITIES`.
    low, high : float or None
        The values that count as agreement.  Both None: those about the paper's number,
        in the cases that have one.
    case : tuple of Case
    """

    quantity: Name
    case: Annotated[tuple[Case, ...], Meta(min_length=1)]
    low: Number | None = None
    high: Number | None = None

    def region(self, case: Case) -> tuple[float, float] | None:
        """Return the values that agree in one of its cases; None: it is only shown."""
        if self.low is None and self.high is None:
            if case.paper is None:
                return None
            return case.paper - case.reach, case.paper + case.reach
        return (
            -math.inf if self.low is None else self.low,
            math.inf if self.high is None else self.high,
        )


class Finding(Struct, frozen=True, forbid_unknown_fields=True):
    """What is said where a statement came out so.

    Attributes
    ----------
    verdict : str
    text : str
        Numbers stand in it as ``%(name)s``.
    value : dict
        Name of a number to the places of its check and case, counted from 0.
    """

    verdict: Literal["supported", "refuted", "tally", "undecided"]
    text: Text
    value: dict[str, tuple[int, int]] = {}


class Statement(Struct, frozen=True, forbid_unknown_fields=True):
    """What a paper says, in our words.

    Attributes
    ----------
    id, question : str
        Its own, and that of the question it answers.
    statement : str
    model : str
        The model of scores that it is looked at in.
    paper : tuple of str
        Keys; none: asked by readers.
    quantifier : str
    check : tuple of LiteratureCheck
    finding : tuple of Finding
        The first whose verdict is that of the statement is said.
    """

    id: Name
    question: Name
    statement: Text
    model: Text
    check: Annotated[tuple[LiteratureCheck, ...], Meta(min_length=1)]
    finding: Annotated[tuple[Finding, ...], Meta(min_length=1)]
    paper: tuple[Name, ...] = ()
    quantifier: Literal["always", "can"] = "always"


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """A question that papers differ on.

    ``figure`` names the picture of it, if there is one.
    """

    id: Name
    title: Text
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

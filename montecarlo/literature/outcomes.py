"""How statements of papers came out, as claims.json has it."""

from typing import Annotated

from msgspec import Struct

from montecarlo.claims.verdicts import Logic, Verdict
from montecarlo.literature.settings import Setting
from montecarlo.study.validating import about


class StatementCase(Struct, frozen=True, forbid_unknown_fields=True):
    """A quantity at one place: the paper's number, the exact one, ours."""

    quantity: Annotated[str, about("what is looked at")]
    at: Annotated[Setting, about("the model's numbers")]
    outcome: Annotated[Verdict, about("not_applicable: only shown")]
    votes: Annotated[bool, about("whether it is a part of what is stated")]
    paper: Annotated[float | None, about("that the paper has; null: none")] = None
    exact: Annotated[float | None, about("null: theory has none")] = None
    estimate: Annotated[float | None, about("null: nothing is random")] = None
    std_error: Annotated[float | None, about("null likewise")] = None
    n_replicates: Annotated[int | None, about("rows or pairs; null likewise")] = None
    region_low: Annotated[float | None, about("what agrees from; null: no end")] = None
    region_high: Annotated[float | None, about("what agrees to; null: no end")] = None

    @property
    def value(self) -> float:
        """The exact value, or the estimate where there is none."""
        return float(self.exact if self.exact is not None else self.estimate or 0.0)


class StatementOutcome(Struct, frozen=True, forbid_unknown_fields=True):
    """A statement of papers, with its verdict."""

    id: Annotated[str, about("of literature.toml")]
    logic: Annotated[Logic, about("what it needs of its cases")]
    tested: Annotated[str, about("the tested proposition, in English")]
    degree: Annotated[
        str, about("word of degree without a border in the paper; empty: none")
    ]
    verdict: Annotated[Verdict, about("of its cases that vote")]
    checks: Annotated[
        tuple[tuple[StatementCase, ...], ...], about("cases, check by check")
    ]


class LiteratureOutcome(Struct, frozen=True, forbid_unknown_fields=True):
    """What papers say, judged at an error rate of its own."""

    error_rate: Annotated[float, about("nominal, of all the statements", gt=0, lt=1)]
    statements: Annotated[
        tuple[StatementOutcome, ...], about("in the order of literature.toml")
    ]

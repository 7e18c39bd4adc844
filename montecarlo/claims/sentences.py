"""What a page may say, and what each sentence rests on, as typed records."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from montecarlo.claims.checks import Check, Name, Size, Words
from montecarlo.claims.verdicts import Verdict

#: What a sentence rests on where nothing is measured.
Basis = Literal["measured", "definition", "record"]
#: Cases that came out so; or distributions, or contexts, among those that were judged.
Counted = Literal[
    "supported", "refuted", "undecided", "all", "distributions", "contexts"
]
#: Stands for every distribution but the Gaussian.
OTHERS = "others"


class Value(Struct, frozen=True, forbid_unknown_fields=True):
    """A number of a sentence: of a case of a check that the sentence asserts.

    Attributes
    ----------
    check : int
        Which of the sentence's checks, from 0; with ``interpretation``, of that
        interpretation's.
    interpretation : str or None
    d_k, n_keys : int or None
        Which case; None for any.
    distribution, context : str
        Likewise; empty for any.  A context is a dependence or an initialisation.
        ``others``: every distribution but the Gaussian.
    pick : str
        Which of the cases that are left: there is only one, or the lowest or highest
        number.
    of : str
        What to give: the estimate, its exact value, the constant of the limit, or a
        size, of which a series over d_k has two, its ends; or the d_k ``before`` or
        ``after`` which the outcome of the interpretation changes.
    percent : bool
        Whether to give it in per cent.
    count : str or None
        In place of a number of a case: how many there are, of the interpretation's
        cases or else of the check's.  What cannot be judged is not counted.
    """

    check: Annotated[int, Meta(ge=0, le=99)] = 0
    interpretation: Name | None = None
    d_k: Size | None = None
    n_keys: Size | None = None
    distribution: str = ""
    context: str = ""
    pick: Literal["only", "lowest", "highest"] = "only"
    of: Literal["estimate", "exact", "limit", "d_k", "n_keys", "before", "after"] = (
        "estimate"
    )
    percent: bool = False
    count: Counted | None = None


class Sentence(Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence that a page may say, and what has to have come out so.

    Attributes
    ----------
    text : Words
        With ``%(name)s`` where a number stands.
    interpretations : dict
        Verdicts that interpretations of its claim must have.
    check : tuple of Check
        Each must hold at every point of its domain, and agree with exact theory.
    value : dict
        Name of each number to where it comes from.
    verdict : str or None
        The verdict of the claim that it goes with; None for any.
    basis : str
        ``measured``, or why nothing is: a ``definition``, or a matter of ``record``.
    """

    text: Words
    interpretations: dict[Name, Verdict] = {}
    check: tuple[Check, ...] = ()
    value: dict[str, Value] = {}
    verdict: Verdict | None = None
    basis: Basis = "measured"

    @property
    def is_bound(self) -> bool:
        """Whether it says what it rests on."""
        return bool(self.interpretations or self.check) or self.basis != "measured"


class Right(Struct, frozen=True, forbid_unknown_fields=True):
    """The sentence that would be right, what both share, and a line to redo.

    Attributes
    ----------
    sentence, arithmetic : Words
        With ``%(name)s`` where a number stands.
    check, value, basis
        As of a `Sentence`: both rest on them.
    """

    sentence: Words
    arithmetic: Words
    check: tuple[Check, ...] = ()
    value: dict[str, Value] = {}
    basis: Basis = "measured"

    def as_sentence(self) -> Sentence:
        """Return the sentence with what it rests on."""
        return Sentence(
            self.sentence, check=self.check, value=self.value, basis=self.basis
        )


class Passage(Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence of a section that is not about one claim; said where it holds."""

    id: Name
    place: Name
    sentence: Sentence

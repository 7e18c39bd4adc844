"""What a catalogue may hold: texts, claims, interpretations, sentences; typed.

A catalogue is data.  It says what a claim is, how each text says it and how it is
checked, and never how the check came out.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from montecarlo.claims.checks import CONTROL, Check, Name, Size, Text, Words
from montecarlo.claims.sentences import Passage, Right, Sentence
from montecarlo.claims.verdicts import Logic
from montecarlo.names import look_up

#: How a text says it: of all cases, of most, of at least one, of the limit; or of no
#: condition in particular, where it is known to depend on one.
Quantifier = Literal["always", "usually", "can", "limit", "generic"]
#: Said outright; said of what follows where something else does; or said to be equal
#: in distribution.
Form = Literal["statement", "implication", "equality"]
#: What a text assumes of the entries before it says something.
Premise = Literal["independent", "mean-0", "variance-1", "normal"]

#: What part of the cases ``usually`` asks for, if nothing else is said.
SHARE = 0.5


def logic_of(quantifier: Quantifier, form: Form, degree: str) -> Logic:
    """Return what a sentence needs of its cases."""
    if degree:
        return "degree"
    return "equality" if form == "equality" else quantifier


class Interpretation(Struct, frozen=True, forbid_unknown_fields=True):
    """One precise meaning of a claim.

    Attributes
    ----------
    id : str
    check : tuple of Check
    label : Words or None
        None: the quantity and summary of its first check.
    quantifier, form : str
    share : float
        What part of the cases ``usually`` asks for; each case weighs the same.
    beyond : bool
        Whether it goes beyond what is said: it is shown, and does not vote.
    tested : str
        The tested proposition: one sentence, in English.  Of a user's own it may be
        left out.
    degree : str
        The text's word of degree that has no border in the text, in English: then the
        number stands in place of a verdict, and bounds of the check are ours.
    """

    id: Name
    check: Annotated[tuple[Check, ...], Meta(min_length=1)]
    label: Words | None = None
    quantifier: Quantifier = "always"
    form: Form = "statement"
    share: Annotated[float, Meta(gt=0, le=1)] = SHARE
    beyond: bool = False
    tested: Annotated[str, Meta(max_length=2000)] = ""
    degree: Annotated[str, Meta(max_length=60)] = ""

    @property
    def logic(self) -> Logic:
        """What it needs of its cases."""
        return logic_of(self.quantifier, self.form, self.degree)


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a text says it, and how.

    Attributes
    ----------
    text : str
        Key of the text.
    section : str
        Its name in the text; ``summary`` and ``introduction`` for what has none.
    point : int
        Number of the bullet within the section, 0 where there is none.
    line : int
        Of the text's file, 0 where it is not given.
    sentence : tuple of int
        Numbers of the sentences within that line.
    quantifier, form, premises
        How it is said.
    admits : tuple of str
        Ids of the interpretations that its wording admits; none named: all that vote.
    """

    text: Name
    section: Annotated[
        str, Meta(min_length=1, max_length=20, pattern=rf"^[^{CONTROL}]*\Z")
    ]
    point: Annotated[int, Meta(ge=0, le=99)] = 0
    line: Annotated[int, Meta(ge=0, le=99999)] = 0
    sentence: tuple[Annotated[int, Meta(ge=1, le=99)], ...] = ()
    quantifier: Quantifier = "always"
    form: Form = "statement"
    premises: tuple[Premise, ...] = ()
    admits: tuple[Name, ...] = ()


Topic = Literal["premise", "variance", "weights", "gradients", "arithmetic", "practice"]


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence of a text, in our words, with its interpretations.

    Attributes
    ----------
    id : str
    topic : str
    statement : Words
        What is claimed.
    source : tuple of Source
        None: asked by readers, no text says it.
    finding : tuple of Sentence
        What was found: a page says the first that holds.
    interpretation : tuple of Interpretation
    kind : str
        ``measured``; ``shape`` and ``record`` are checked on arrays and on published
        sizes and dates; ``practice`` needs runs that are not on record; ``assumption``
        claims nothing.
    right : Right or None
    concedes : Sentence or None
        What is right in a claim that fails.
    tested : str
        The tested proposition of a claim that the catalogue has no interpretation of;
        in English.
    changed : bool
        Whether what it is judged by was changed after results had been seen.
    """

    id: Name
    topic: Topic
    statement: Words
    source: tuple[Source, ...] = ()
    finding: tuple[Sentence, ...] = ()
    interpretation: tuple[Interpretation, ...] = ()
    kind: Literal["measured", "shape", "practice", "record", "assumption"] = "measured"
    right: Right | None = None
    concedes: Sentence | None = None
    tested: Annotated[str, Meta(max_length=2000)] = ""
    changed: bool = False

    def admitted(self, text: str | None = None) -> tuple[str, ...]:
        """Return the ids of the interpretations that vote, for one text or for all."""
        voting = [
            interpretation.id
            for interpretation in self.interpretation
            if not interpretation.beyond
        ]
        if text is None:
            return tuple(voting)
        named = {
            name
            for source in self.source
            if source.text == text
            for name in source.admits or voting
        }
        return tuple(name for name in voting if name in named)

    def sentences(self) -> Iterator[tuple[Sentence, str]]:
        """Yield all that a page may say of it, each with its place."""
        for number, finding in enumerate(self.finding, start=1):
            yield finding, f"finding {number}"
        if self.right is not None:
            right = self.right.as_sentence()
            yield right, "right"
            yield msgspec.structs.replace(right, text=self.right.arithmetic), "line"
        if self.concedes is not None:
            yield self.concedes, "concedes"

    def checks(self) -> Iterator[Check]:
        """Yield every check of its interpretations and of the sentences about it."""
        for interpretation in self.interpretation:
            yield from interpretation.check
        for sentence, _ in self.sentences():
            yield from sentence.check


class SelfCheck(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that must hold if the simulator is right, whatever the texts say."""

    id: Name
    statement: Words
    check: Annotated[tuple[Check, ...], Meta(min_length=1)]


class ModelSize(Struct, frozen=True, forbid_unknown_fields=True):
    """Published sizes of a model."""

    name: Text
    d_model: Size
    heads: Size
    d_k: Size


class TextEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """One of the judged texts."""

    key: Name
    name: Words
    language: Annotated[str, Meta(min_length=2, max_length=10)]


class RecordEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A published fact that a claim of kind ``record`` is held against."""

    claim: Name
    year: Annotated[int, Meta(ge=1900, le=2100)]
    source: Text


class Catalogue(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that is judged.

    Attributes
    ----------
    text, claim, passage, self_check, model, record : tuple
    language : str or None
        The language that a user's own words are in where they do not say.  None for
        the catalogue of the five texts: its words are messages, to be translated.
    """

    text: tuple[TextEntry, ...] = ()
    claim: tuple[Claim, ...] = ()
    passage: tuple[Passage, ...] = ()
    self_check: tuple[SelfCheck, ...] = ()
    model: tuple[ModelSize, ...] = ()
    record: tuple[RecordEntry, ...] = ()
    language: str | None = None

    def checks(self) -> Iterator[Check]:
        """Yield every check of every claim, passage and self-check."""
        yield from self.claim_checks()
        for passage in self.passage:
            yield from passage.sentence.check
        for self_check in self.self_check:
            yield from self_check.check

    def claim_checks(self) -> Iterator[Check]:
        """Yield every check of every claim and of the sentences about it."""
        for claim in self.claim:
            yield from claim.checks()

    def only(self, ids: tuple[str, ...]) -> "Catalogue":
        """Return the catalogue with these claims alone.

        Raises
        ------
        ValueError
            If a claim is not known.
        """
        by_id = {claim.id: claim for claim in self.claim}
        kept = tuple(look_up("claim", name, by_id) for name in dict.fromkeys(ids))
        return msgspec.structs.replace(self, claim=kept, passage=())

    def words(self) -> Iterator[tuple[Words, str]]:
        """Yield every text that pages show, with the place where it stands."""
        for text in self.text:
            yield text.name, f"text {text.key}"
        for claim in self.claim:
            place = f"claim {claim.id}"
            yield claim.statement, place
            for sentence, name in claim.sentences():
                yield sentence.text, f"{place}, {name}"
            for interpretation in claim.interpretation:
                if interpretation.label is not None:
                    yield (
                        interpretation.label,
                        f"{place}, interpretation {interpretation.id}",
                    )
        for passage in self.passage:
            yield passage.sentence.text, f"passage {passage.id}"
        for self_check in self.self_check:
            yield self_check.statement, f"self-check {self_check.id}"

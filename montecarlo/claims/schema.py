"""What a catalogue may hold: texts, claims, interpretations, sentences; typed.

A catalogue is data.  It says what a claim is, how each text says it, how it is checked
and what may be said of it, and never how the check came out.
"""

import hashlib
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from montecarlo.claims.checks import CONTROL, Check, Name, Size, Text, Words
from montecarlo.claims.verdicts import Quantifier, Verdict
from montecarlo.claims.words import read_words
from montecarlo.names import look_up

#: What a sentence rests on where nothing is measured.
Basis = Literal["measured", "definition", "record"]
#: Cases that are supported; or all, distributions or contexts that were judged.
Counted = Literal["supported", "all", "distributions", "contexts"]
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
    distribution : str
        Likewise; empty for any.  ``others``: every distribution but the Gaussian.
    pick : str
        Which of the cases that are left: there is only one, or the lowest or highest
        number.
    of : str
        What to give: the estimate, ``known``: its exact value or else the estimate, or
        a size, of which a series over d_k has two, its ends.
    percent : bool
        Whether to give it in per cent.
    digits : int
        At most so many where it is read in passing.
    count : str or None
        In place of a number of a case: how many there are, of the interpretation's
        cases or else of the check's.  What cannot be judged is not counted.
    """

    check: Annotated[int, Meta(ge=0, le=99)] = 0
    interpretation: Name | None = None
    d_k: Size | None = None
    n_keys: Size | None = None
    distribution: str = ""
    pick: Literal["only", "lowest", "highest"] = "only"
    of: Literal["estimate", "known", "d_k", "n_keys"] = "estimate"
    percent: bool = False
    digits: Annotated[int, Meta(ge=1, le=4)] = 3
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
    short : Words or None
        The same in at most 25 words, for a line of a table; None: ``text`` it is.
    """

    text: Words
    interpretations: dict[Name, Verdict] = {}
    check: tuple[Check, ...] = ()
    value: dict[str, Value] = {}
    verdict: Verdict | None = None
    basis: Basis = "measured"
    short: Words | None = None


class Right(Sentence, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The sentence that would be right, what both share, and a line to redo.

    Attributes
    ----------
    text : Words
        In a file ``sentence``.
    arithmetic : Words
        Rests on the same checks, and may have the same numbers.
    """

    text: Words = field(name="sentence")
    arithmetic: Words


class Passage(Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence of a section; said where it holds.

    With a ``claim``, of which it says what is wrong, only where that fails, and with
    the names of the texts that it fails in.
    """

    id: Name
    place: Name
    sentence: Sentence
    claim: Name | None = None


#: Said outright; said of what follows where something else does; or said to be equal
#: in distribution.
Form = Literal["statement", "implication", "equality"]
#: What a text assumes of the entries before it says something.
Premise = Literal["independent", "mean-0", "variance-1", "normal"]
#: What cases differ in that a sentence may omit.
Omitted = Literal[
    "", "distribution", "dependence", "initialisation", "normalisation", "mask", "part"
]


class Interpretation(Struct, frozen=True, forbid_unknown_fields=True):
    """One precise meaning of a claim.

    Attributes
    ----------
    id : str
    check : tuple of Check
    label : Words or None
        None: the quantity and summary of its first check.
    quantifier, form : str
    omits : str
        The premise that the sentence omits and that may decide it: then it is partly
        so where it holds for one value of that and fails for another.
    beyond : bool
        Whether it goes beyond what is said: it is shown, and does not vote.
    tested : str
        The tested proposition: one sentence, in English.  Of a user's own it may be
        left out.
    words : tuple of str
        The words of degree that it is said with: lines of the table of words, or of a
        user's own any.  Where one has no measure it is vague: bounds of the check are
        ours, or the user's, and the number answers.
    """

    id: Name
    check: Annotated[tuple[Check, ...], Meta(min_length=1)]
    label: Words | None = None
    quantifier: Quantifier = "always"
    form: Form = "statement"
    omits: Omitted = ""
    beyond: bool = False
    tested: Annotated[str, Meta(max_length=2000)] = ""
    words: tuple[Text, ...] = ()


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


#: What a claim is about: each is a question that the report answers.
Topic = Literal["variance", "weights", "gradients", "arithmetic", "training", "record"]


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
        ``measured``; ``shape`` is a matter of algebra, ``record`` of published sizes
        and dates; ``assumption`` claims nothing.
    right : Right or None
    concedes : Sentence or None
        What is right in a claim that fails.
    tested : str
        The tested proposition of a claim that the catalogue has no interpretation of;
        in English.
    changed : bool
        Whether what it is judged by was changed after results had been seen.
    same : str or None
        Id of the claim that it restates: one line of the report says both, where they
        came out alike.
    together : Words or None
        What is claimed by a claim and all that restate it.
    """

    id: Name
    topic: Topic
    statement: Words
    source: tuple[Source, ...] = ()
    finding: tuple[Sentence, ...] = ()
    interpretation: tuple[Interpretation, ...] = ()
    kind: Literal["measured", "shape", "record", "assumption"] = "measured"
    right: Right | None = None
    concedes: Sentence | None = None
    tested: Annotated[str, Meta(max_length=2000)] = ""
    changed: bool = False
    same: Name | None = None
    together: Words | None = None

    def admitted(self, text: str | None = None) -> tuple[str, ...]:
        """Return the ids of the interpretations that vote, for one text or for all."""
        voting = [one.id for one in self.interpretation if not one.beyond]
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
            yield self.right, "right"
            line = msgspec.structs.replace(self.right, text=self.right.arithmetic)
            yield line, "line"
        if self.concedes is not None:
            yield self.concedes, "concedes"

    def words(self) -> Iterator[tuple[Words, str]]:
        """Yield every text that pages show of it, with the place where it stands."""
        place = f"claim {self.id}"
        found: list[tuple[Words | None, str]] = [
            (self.statement, place),
            (self.together, place),
            (self.tested, f"{place}, tested"),
        ]
        for sentence, name in self.sentences():
            where = f"{place}, {name}"
            found += [(sentence.text, where), (sentence.short, where)]
        for one in self.interpretation:
            where = f"{place}, interpretation {one.id}"
            found += [(one.label, where), ("" if one.beyond else one.tested, where)]
        for words, where in found:
            if words is not None and words != "":
                yield words, where

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
    """One of the judged texts: what it is called here, its file, and its title."""

    key: Name
    name: Words
    language: Annotated[str, Meta(min_length=2, max_length=10)]
    file: str = ""
    title: str = ""  # its own
    #: How it writes a formula, between its delimiters.
    formula: Annotated[str, Meta(pattern="^[^…]+…[^…]+$")] = "$…$"


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

    def digest(self) -> str:
        """Return the SHA-256 of all that it says, and of the table of words."""
        judged_by = msgspec.json.encode((self, list(read_words().values())))
        # without masks as before there were any: the confirming run is named by it
        judged_by = judged_by.replace(b',"mask":["none"]', b"")
        return hashlib.sha256(judged_by).hexdigest()

    def words(self) -> Iterator[tuple[Words, str]]:
        """Yield every text that pages show, with the place where it stands."""
        for text in self.text:
            yield text.name, f"text {text.key}"
        for claim in self.claim:
            yield from claim.words()
        for passage in self.passage:
            yield passage.sentence.text, f"passage {passage.id}"
        for self_check in self.self_check:
            yield self_check.statement, f"self-check {self_check.id}"

"""Types of a catalogue file: texts, claims, interpretations, sentences.

A catalogue is data.  It states what a claim is, how each text words it, how it is
checked and which sentences may be said about it.  It contains no results.
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

#: A count over the cases that were judged: those that are supported, all of them, their
#: distinct distributions, or their distinct contexts (see `outcomes.CaseKey.context`).
Counted = Literal["supported", "all", "distributions", "contexts"]
#: A distribution of a `Value`: any but the Gaussian.
OTHERS = "others"


class Value(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a number in a sentence comes from: a case of a check, and what of it.

    Attributes
    ----------
    check : int
        Index of the check among those of the sentence, or of ``interpretation``.
    interpretation : str or None
        Id of an interpretation of the claim; None for the sentence's own checks.
    d_k, n_keys : int or None
        Sizes of the case; None for any.
    distribution : str
        Distribution of the case; empty for any, ``others`` for any but the Gaussian.
    pick : str
        Which of the matching cases: ``only`` requires that there is one; ``lowest`` and
        ``highest`` go by the number.
    of : str
        Which number of the case: ``estimate``; ``known``, the exact value, else the one
        that was simulated beforehand, else the estimate; ``d_k`` or ``n_keys``.  A
        series over d_k has two values of d_k, its ends.
    percent : bool
        Whether the number is displayed in per cent.
    digits : int
        Largest number of digits where the number is displayed without its error.
    count : str or None
        Instead of a number of a case, a count over the matching cases that were judged:
        see `Counted`.
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
    """A sentence that a page may say, and the outcomes that it asserts.

    Attributes
    ----------
    text : Words
        With a placeholder ``%(name)s`` for each number.
    interpretations : dict
        Id of an interpretation of the claim -> verdict that it must have.
    check : tuple of Check
        Each must be supported in every case of its domain that can be judged, and agree
        with the exact values.
    value : dict
        Name of each number -> where it comes from.
    verdict : str or None
        Verdict that the claim must have; None for any.
    basis : str
        ``measured``; if nothing is measured, ``definition`` or ``record``.
    short : Words or None
        The sentence in at most 25 words, for a line of a table; None if ``text`` is
        short enough.
    """

    text: Words
    interpretations: dict[Name, Verdict] = {}
    check: tuple[Check, ...] = ()
    value: dict[str, Value] = {}
    verdict: Verdict | None = None
    basis: Literal["measured", "definition", "record"] = "measured"
    short: Words | None = None


class Right(Sentence, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A correct sentence in place of a wrong claim.

    Attributes
    ----------
    text : Words
        Called ``sentence`` in a file.
    arithmetic : Words
        Steps that the reader can verify.  They rest on the same checks as the sentence,
        and may use the same numbers.
    """

    text: Words = field(name="sentence")
    arithmetic: Words


class Passage(Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence of the report outside of the claims' tables, shown only if it is true.

    ``place`` names the section that it stands in.  If it has a ``claim``, it states
    what is wrong about that claim.  It is then shown only if the claim fails, with the
    names of the texts in which it fails.
    """

    id: Name
    place: Name
    sentence: Sentence
    claim: Name | None = None


#: Logical form of a sentence: a statement, an implication, or an equality in
#: distribution.
Form = Literal["statement", "implication", "equality"]
#: A property of the entries of q and k that a text assumes.
Premise = Literal["independent", "mean-0", "variance-1", "normal"]
#: A field of a case on which the truth of a sentence may depend, although the sentence
#: does not mention it; empty for none.
Omitted = Literal[
    "", "distribution", "dependence", "initialisation", "normalisation", "mask", "part"
]


class Interpretation(Struct, frozen=True, forbid_unknown_fields=True):
    """One precise meaning of a claim.

    Attributes
    ----------
    id : str
    check : tuple of Check
        All of them must hold in a case.
    label : Words or None
        None for the quantity and summary of its first check.
    quantifier, form : str
        How the text words it.
    omits : str
        The premise that the sentence omits.  The verdict is ``partly`` if the
        proposition holds for one value of it and fails for another.
    beyond : bool
        Whether it goes beyond what texts state.  It is then shown, and has no influence
        on the verdict of the claim.
    tested : str
        The tested proposition: one English sentence.  Optional in a user's file.
    words : tuple of str
        Words of degree of the proposition: ids in ``words.toml``; any words in a user's
        file.  It is judged as vague if one of them has no measure.  The bounds of its
        checks are then the author's, for orientation.
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
    """A place where a text states the claim, and how it words it.

    Attributes
    ----------
    text : str
        Key of the text.
    section : str
        Number or name of the section; ``summary`` and ``introduction`` for unnamed
        ones.
    point : int
        Number of the bullet point within the section; 0 if there is none.
    line : int
        Line of the text's file, from 1; 0 if not given.
    sentence : tuple of int
        Numbers of the sentences within that line, from 1.
    quantifier, form, premises
        How the text words the claim, and the premises that it states.
    admits : tuple of str
        Ids of the interpretations that the wording admits; empty for all that vote.
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


#: Subject of a claim; each is a question that the report answers.
Topic = Literal["variance", "weights", "gradients", "arithmetic", "training", "record"]


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """A statement of texts, in the project's words, with its interpretations.

    Attributes
    ----------
    id : str
    topic : str
    statement : Words
        What is claimed.
    source : tuple of Source
        Empty for a question of readers, which no text states.
    finding : tuple of Sentence
        Possible results; pages show the first one that holds.
    interpretation : tuple of Interpretation
    kind : str
        ``measured``; ``shape``, decided by algebra; ``record``, by published sizes and
        dates; ``assumption``, a premise, which is not judged.
    right : Right or None
        Correction of a claim that fails.
    concedes : Sentence or None
        What is right about a claim that fails.
    tested : str
        The tested proposition of a claim without interpretations, in English.
    changed : bool
        Whether its rule was changed after results had been seen.
    same : str or None
        Id of the claim that this one restates.  The report shows both in one line if
        their outcomes are equal.
    together : Words or None
        Joint statement of a claim and those that restate it.
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
        """Return the ids of the interpretations that count for the verdict, in order.

        Such as ``("mean", "median")``.  With the key of a ``text``, only those that
        this text admits.  Interpretations that go beyond what texts state never count.
        """
        voting = [one.id for one in self.interpretation if not one.beyond]
        sources = [source for source in self.source if source.text == text]
        admitted = {name for source in sources for name in source.admits or voting}
        return tuple(name for name in voting if text is None or name in admitted)

    def sentences(self) -> Iterator[tuple[Sentence, str]]:
        """Yield (sentence, place) for every sentence about the claim.

        The place is for error messages, such as ``finding 1``.  A correction is yielded
        twice: with the place ``right``, and with the place ``line`` and its arithmetic
        as text.
        """
        for number, finding in enumerate(self.finding, start=1):
            yield finding, f"finding {number}"
        if self.right is not None:
            yield self.right, "right"
            line = msgspec.structs.replace(self.right, text=self.right.arithmetic)
            yield line, "line"
        if self.concedes is not None:
            yield self.concedes, "concedes"

    def words(self) -> Iterator[tuple[Words, str]]:
        """Yield (text, place) for every text of the claim that pages show.

        The place is for error messages, such as ``claim variance, finding 1``.
        """
        place = f"claim {self.id}"
        texts: list[tuple[Words | None, str]] = [
            (self.statement, place),
            (self.together, place),
            (self.tested, f"{place}, tested"),
        ]
        for sentence, name in self.sentences():
            where = f"{place}, {name}"
            texts += [(sentence.text, where), (sentence.short, where)]
        for one in self.interpretation:
            where = f"{place}, interpretation {one.id}"
            texts += [(one.label, where), ("" if one.beyond else one.tested, where)]
        yield from ((text, where) for text, where in texts if text not in (None, ""))

    def checks(self) -> Iterator[Check]:
        """Yield every check of the claim's interpretations and sentences, in order.

        Those of a correction are yielded twice, as from `sentences`.
        """
        for interpretation in self.interpretation:
            yield from interpretation.check
        for sentence, _ in self.sentences():
            yield from sentence.check


class SelfCheck(Struct, frozen=True, forbid_unknown_fields=True):
    """A property that a correct simulator has, whatever the texts claim."""

    id: Name
    statement: Words
    check: Annotated[tuple[Check, ...], Meta(min_length=1)]


class ModelSize(Struct, frozen=True, forbid_unknown_fields=True):
    """Published sizes of a language model: width, number of heads, head dimension."""

    name: Text
    d_model: Size
    heads: Size
    d_k: Size


class TextEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """One of the texts whose claims are judged.

    Attributes
    ----------
    key : str
        Its name in the catalogue.
    name : Words
        Its name on pages.
    language : str
        Language code.
    file, title : str
        Its file, and its title in its own language; may be empty.
    formula : str
        Delimiters of a formula in the text, around an ellipsis: ``$…$``.
    """

    key: Name
    name: Words
    language: Annotated[str, Meta(min_length=2, max_length=10)]
    file: str = ""
    title: str = ""
    formula: Annotated[str, Meta(pattern="^[^…]+…[^…]+$")] = "$…$"


class RecordEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A published fact on which a claim of kind ``record`` is judged."""

    claim: Name
    year: Annotated[int, Meta(ge=1900, le=2100)]
    source: Text


class Catalogue(Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of a catalogue file: texts, claims and self-checks, without results.

    Attributes
    ----------
    text, claim, passage, self_check, model, record : tuple
    language : str or None
        Language of plain texts in a user's file.  None for the catalogue of the five
        texts, whose texts are messages to be translated.
    """

    text: tuple[TextEntry, ...] = ()
    claim: tuple[Claim, ...] = ()
    passage: tuple[Passage, ...] = ()
    self_check: tuple[SelfCheck, ...] = ()
    model: tuple[ModelSize, ...] = ()
    record: tuple[RecordEntry, ...] = ()
    language: str | None = None

    def checks(self) -> Iterator[Check]:
        """Yield every check of the claims, passages and self-checks."""
        yield from self.claim_checks()
        for passage in self.passage:
            yield from passage.sentence.check
        for self_check in self.self_check:
            yield from self_check.check

    def claim_checks(self) -> Iterator[Check]:
        """Yield every check of the claims and of the sentences about them."""
        for claim in self.claim:
            yield from claim.checks()

    def only(self, ids: tuple[str, ...]) -> "Catalogue":
        """Return the catalogue with the claims of these ids only, and without passages.

        Claims are in the order of ``ids``.  Everything else stays.

        Raises
        ------
        InputError
            If a claim id is unknown.
        """
        by_id = {claim.id: claim for claim in self.claim}
        claims = tuple(look_up("claim", name, by_id) for name in dict.fromkeys(ids))
        return msgspec.structs.replace(self, claim=claims, passage=())

    def digest(self) -> str:
        """Return the SHA-256 hash of the catalogue and of words.toml, in hex digits.

        Of that file only the words of degree count, by which claims are judged as
        vague; its thresholds are in the checks.
        """
        judged_by = msgspec.json.encode((self, list(read_words().values())))
        # default masks are left out: digests of catalogues older than masks stay valid
        judged_by = judged_by.replace(b',"mask":["none"]', b"")
        return hashlib.sha256(judged_by).hexdigest()

    def words(self) -> Iterator[tuple[Words, str]]:
        """Yield (text, place) for every text of the catalogue that pages show.

        The place is for error messages, such as ``claim variance, finding 1``.
        """
        for text in self.text:
            yield text.name, f"text {text.key}"
        for claim in self.claim:
            yield from claim.words()
        for passage in self.passage:
            yield passage.sentence.text, f"passage {passage.id}"
        for self_check in self.self_check:
            yield self_check.statement, f"self-check {self_check.id}"

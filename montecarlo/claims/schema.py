"""What a catalogue may hold: texts, claims, readings and checks, as typed records.

A catalogue is data.  It says what a claim is and how it is checked, and never how the
check came out.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from montecarlo.names import look_up

Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,59}\Z")]
#: Control characters, those that break a line or turn the direction of writing among
#: them: texts reach terminals and pages.
CONTROL = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
Text = Annotated[str, Meta(min_length=1, max_length=2000, pattern=rf"^[^{CONTROL}]*\Z")]
#: Control characters are left to `validate_words`: msgspec 0.22 frees the pattern of a
#: string twice where something else may stand in its place.
Unchecked = Annotated[str, Meta(min_length=1, max_length=2000)]
#: What pages show: a text, or of a user's own one for each of several languages, by
#: code.
Words = Unchecked | dict[str, Unchecked]
Finite = Annotated[float, Meta(ge=-1e30, le=1e30)]
Power = Annotated[float, Meta(ge=-4, le=4)]
Size = Annotated[int, Meta(ge=1, le=2**24)]


class Level(Struct, frozen=True, forbid_unknown_fields=True):
    """A number that may depend on the cell: times · d_k**d_k_power · n**n_power."""

    times: Finite = 1.0
    d_k_power: Power = 0.0
    n_keys_power: Power = 0.0

    def at(self, d_k: int | None, n_keys: int | None) -> float:
        """Return the number for a cell; sizes that a cell lacks must not be needed."""
        value = self.times
        for size, power in ((d_k, self.d_k_power), (n_keys, self.n_keys_power)):
            if power != 0.0:
                if size is None:
                    raise ValueError("level depends on a size that the cell lacks")
                value *= size**power
        return value


class Domain(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a text speaks: ranges of d_k and of n, both ends included, and laws."""

    d_k: tuple[Size, Size] = (16, 1024)
    n_keys: tuple[Size, Size] = (32, 512)
    laws: tuple[str, ...] = ()  # a law, or "q * k"; none named: all of mean 0, std 1
    dependence: tuple[str, ...] = ("none",)
    setup: tuple[str, ...] = ("",)


class Threshold(Struct, frozen=True, forbid_unknown_fields=True):
    """A bound that stands for a vague word, and the range to vary it over."""

    bound: Literal["low", "high"]
    start: Finite
    stop: Finite


Relation = Literal[
    "equals",
    "at_least",
    "at_most",
    "between",
    "slope_between",
    "ratio_of_ends_between",
]


class Check(Struct, frozen=True, forbid_unknown_fields=True):
    """One comparison of measured rows with what the claim says."""

    quantity: str
    relation: Relation
    summary: str = "mean"
    divisor: str = "none"
    number_format: str = "float64"
    softmax: str = "shifted"
    expected: Finite | Level | Literal["reference"] | None = None
    tolerance: Annotated[float, Meta(gt=0, lt=1)] | None = None
    low: Finite | Level | None = None
    high: Finite | Level | None = None
    domain: Domain = Domain()
    threshold: Threshold | None = None

    @property
    def along_d_k(self) -> bool:
        """Whether the check speaks of a whole series over d_k, not of one cell."""
        return self.relation in ("slope_between", "ratio_of_ends_between")


class Reading(Struct, frozen=True, forbid_unknown_fields=True):
    """One precise meaning of a claim."""

    id: Name
    check: Annotated[tuple[Check, ...], Meta(min_length=1)]
    label: Words | None = None  # none: the quantity and summary of its first check
    scope: Literal["everywhere", "somewhere", "compare"] = "everywhere"


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a text says it."""

    text: Name
    section: Annotated[
        str, Meta(min_length=1, max_length=20, pattern=rf"^[^{CONTROL}]*\Z")
    ]


Spoken = Literal["supported", "refuted", "conditional", "inconclusive"]


class When(Struct, frozen=True, forbid_unknown_fields=True):
    """What a page says of a conditional claim when these readings came out so."""

    readings: Annotated[dict[Name, Spoken], Meta(min_length=1)]
    sentence: Words


class Sentences(Struct, frozen=True, forbid_unknown_fields=True):
    """What a page says of the claim, for each verdict that it may get.

    Conditional says nothing of which reading holds: that is for `when`, whose first
    sentence that is true of the readings takes its place.
    """

    supported: Words
    refuted: Words
    conditional: Words
    inconclusive: Words
    when: tuple[When, ...] = ()

    def chosen(self, verdict: str, readings: Mapping[str, str]) -> Words | None:
        """Return the sentence for a verdict; None for one that has no sentence.

        Parameters
        ----------
        verdict : str
            The claim's.
        readings : mapping
            Id of each reading to its verdict.
        """
        if verdict == "conditional":
            for when in self.when:
                if when.readings.items() <= readings.items():
                    return when.sentence
        spoken = verdict in get_args(Spoken)
        sentence: Words | None = getattr(self, verdict) if spoken else None
        return sentence

    def words(self, place: str) -> Iterator[tuple[Words, str]]:
        """Yield each of them with its place, below that of the claim."""
        for verdict in get_args(Spoken):
            yield getattr(self, verdict), f"{place}, {verdict}"
        for when in self.when:
            readings = ", ".join(f"{r} {v}" for r, v in when.readings.items())
            yield when.sentence, f"{place}, when {readings}"


Topic = Literal["premise", "variance", "weights", "gradients", "arithmetic", "practice"]


class Right(Struct, frozen=True, forbid_unknown_fields=True):
    """The sentence that would be right, with its own checks, and a line to redo."""

    sentence: Words
    arithmetic: Words
    check: Annotated[tuple[Check, ...], Meta(min_length=1)]


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence of a text, in our words, with its readings."""

    id: Name
    topic: Topic
    statement: Words
    source: tuple[Source, ...] = ()  # none: asked by readers, no text says it
    sentences: Sentences | None = None
    reading: tuple[Reading, ...] = ()
    kind: Literal["measured", "shape", "practice", "citation"] = "measured"
    note: Words | None = None  # what a page says where nothing is measured
    right: Right | None = None


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


class Catalogue(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that is judged.

    Attributes
    ----------
    text, claim, self_check, model : tuple
    language : str or None
        The language that a user's own words are in where they do not say.  None for
        the catalogue of the five texts: its words are messages, to be translated.
    """

    text: tuple[TextEntry, ...] = ()
    claim: tuple[Claim, ...] = ()
    self_check: tuple[SelfCheck, ...] = ()
    model: tuple[ModelSize, ...] = ()
    language: str | None = None

    def checks(self) -> Iterator[Check]:
        """Yield every check of every claim and self-check."""
        yield from self.claim_checks()
        for self_check in self.self_check:
            yield from self_check.check

    def claim_checks(self) -> Iterator[Check]:
        """Yield every check of every claim and of its right sentence."""
        for claim in self.claim:
            for reading in claim.reading:
                yield from reading.check
            if claim.right is not None:
                yield from claim.right.check

    def only(self, ids: tuple[str, ...]) -> "Catalogue":
        """Return the catalogue with these claims alone.

        Raises
        ------
        ValueError
            If a claim is not known.
        """
        by_id = {claim.id: claim for claim in self.claim}
        kept = tuple(look_up("claim", name, by_id) for name in dict.fromkeys(ids))
        return msgspec.structs.replace(self, claim=kept)

    def words(self) -> Iterator[tuple[Words, str]]:
        """Yield every text that pages show, with the place where it stands."""
        for text in self.text:
            yield text.name, f"text {text.key}"
        for claim in self.claim:
            place = f"claim {claim.id}"
            yield claim.statement, place
            if claim.sentences is not None:
                yield from claim.sentences.words(place)
            if claim.right is not None:
                yield claim.right.sentence, f"{place}, right"
                yield claim.right.arithmetic, f"{place}, arithmetic"
            if claim.note is not None:
                yield claim.note, f"{place}, note"
            for reading in claim.reading:
                if reading.label is not None:
                    yield reading.label, f"{place}, reading {reading.id}"
        for self_check in self.self_check:
            yield self_check.statement, f"self-check {self_check.id}"


def level_at(
    level: float | Level | None, default: float, d_k: int | None, n_keys: int | None
) -> float:
    """Return a bound for a cell; ``default`` where there is none."""
    if level is None:
        return default
    if isinstance(level, Level):
        return level.at(d_k, n_keys)
    return float(level)


#: What a missing bound means.
UNBOUNDED = (-math.inf, math.inf)

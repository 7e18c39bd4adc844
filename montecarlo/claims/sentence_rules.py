"""What sentences must be beyond their types: bound to what they assert."""

import re
from collections.abc import Mapping

from montecarlo.claims.rules import CatalogueError, name_place, validate_check
from montecarlo.claims.schema import Interpretation
from montecarlo.claims.sentences import Sentence, Value
from montecarlo.names import look_up

_PLACEHOLDER = re.compile(r"%\((\w+)\)s")


def validate_sentence(
    sentence: Sentence,
    interpretations: Mapping[str, Interpretation],
    where: str,
    *,
    own: bool,
) -> None:
    """Make sure that a sentence says what it rests on, and that its numbers exist.

    Parameters
    ----------
    sentence : Sentence
    interpretations : mapping
        Those of its claim, by id.
    where : str
        File, claim and place, for the message.
    own : bool
        Whether it is a user's, who answers for it.

    Raises
    ------
    CatalogueError
        With one line: where, requirement and what came.
    """
    if not own and not sentence.is_bound:
        raise CatalogueError(
            f"{where}: must rest on interpretations or checks, or say why on "
            "none, got neither"
        )
    named = [
        v.interpretation
        for v in sentence.value.values()
        if v.interpretation is not None
    ]
    for name in (*sentence.interpretations, *named):
        with name_place(where, "interpretations"):
            look_up("interpretation", name, interpretations)
    for check in sentence.check:
        validate_check(check, where)
    for name, value in sentence.value.items():
        _validate_value(
            value, sentence, interpretations, f"{where}, field value.{name}"
        )
    words = sentence.text
    for text in [words] if isinstance(words, str) else words.values():
        found = set(_PLACEHOLDER.findall(text))
        if not own and not found <= set(sentence.value):
            raise CatalogueError(
                f"{where}: must have a number for each placeholder, got "
                f"{sorted(found)} and {sorted(sentence.value)}"
            )


def _validate_value(
    value: Value,
    sentence: Sentence,
    interpretations: Mapping[str, Interpretation],
    where: str,
) -> None:
    """Require a number's check to be there."""
    checks = sentence.check
    if value.interpretation is not None:
        checks = interpretations[value.interpretation].check
    elif value.of in ("before", "after"):
        raise CatalogueError(
            f"{where}.of: must stand with an interpretation, got {value.of!r}"
        )
    if value.check >= len(checks):
        raise CatalogueError(
            f"{where}.check: must be below {len(checks)}, got {value.check}"
        )

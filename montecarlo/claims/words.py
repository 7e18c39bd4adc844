"""Words of degree ("vanish", "explode") and thresholds, from ``words.toml``.

The table has one entry per word, with the measure that its text gives for it.  A
proposition that uses a word without a measure is judged as vague.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from montecarlo.small_files import read_package_toml


@cache
def read_words() -> Mapping[str, Mapping[str, Any]]:
    """Return the table of words of degree, such as "vanish": id -> fields of the word.

    Fields are as in ``words.toml``.  ``measure`` is what the text says about its size.
    """
    return {one["id"]: one for one in read_package_toml("claims/words.toml")["word"]}


@cache
def read_thresholds() -> Mapping[str, float]:
    """Return the thresholds that catalogue files give by name: name -> number.

    They are the project's choice for vague words and for "about".
    """
    return dict(read_package_toml("claims/words.toml")["threshold"])


def without_measure(names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the words of degree ``names`` that have no measure in their text.

    ``names`` are ids of `read_words`.  Ids that are not in that table have no measure.
    """
    table = read_words()
    return tuple(name for name in names if not table.get(name, {}).get("measure"))

"""Words of degree, the measure that texts give for them, and thresholds of ours.

The tables are ``words.toml``: one word, one rule.  What is said with a word that has no
measure is vague.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from montecarlo.claims.checks import Name, Text
from montecarlo.small_files import read_package_toml


class Word(Struct, frozen=True, forbid_unknown_fields=True):
    """A word of degree, as some texts use it.

    Attributes
    ----------
    id : str
    word : dict
        The word by language, forms parted by commas.
    texts : tuple of str
        Keys of the texts that use it so.
    measure : dict
        What these texts give as its measure, by language; empty: they give none.
    """

    id: Name
    word: Annotated[dict[str, Text], Meta(min_length=1)]
    texts: tuple[Name, ...]
    measure: dict[str, Text] = {}


@cache
def read_words() -> Mapping[str, Word]:
    """Read the table of words of degree, by id."""
    words = read_package_toml("claims/words.toml")["word"]
    return {one.id: one for one in msgspec.convert(words, tuple[Word, ...])}


@cache
def read_thresholds() -> Mapping[str, float]:
    """Read what vague words and "about" stand for in files of claims, by name."""
    numbers: dict[str, float] = read_package_toml("claims/words.toml")["threshold"]
    return numbers


def without_measure(names: Iterable[str]) -> tuple[str, ...]:
    """Return the words that have no measure; one that the table lacks has none."""
    table = read_words()
    return tuple(name for name in names if name not in table or not table[name].measure)

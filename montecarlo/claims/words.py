"""Words of degree, the measure that texts give for them, and thresholds of ours.

The tables are ``words.toml``: one word, one rule.  What is said with a word that has no
measure is vague.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from montecarlo.small_files import read_package_toml


@cache
def read_words() -> Mapping[str, Mapping[str, Any]]:
    """Read the table of words of degree, by id: the file says what its fields are."""
    return {one["id"]: one for one in read_package_toml("claims/words.toml")["word"]}


@cache
def read_thresholds() -> Mapping[str, float]:
    """Read what vague words and "about" stand for in files of claims, by name."""
    numbers: dict[str, float] = read_package_toml("claims/words.toml")["threshold"]
    return numbers


def without_measure(names: Iterable[str]) -> tuple[str, ...]:
    """Return the words that have no measure; one that the table lacks has none."""
    table = read_words()
    return tuple(name for name in names if not table.get(name, {}).get("measure"))

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
    """Return the table of words of degree, such as "vanish": id -> fields.

    The fields are those in ``words.toml``.
    """
    return {one["id"]: one for one in read_package_toml("claims/words.toml")["word"]}


@cache
def read_thresholds() -> Mapping[str, float]:
    """Return the named thresholds that catalogue files use: name -> number.

    They are the project's choice for vague words and for "about".
    """
    return dict(read_package_toml("claims/words.toml")["threshold"])


def without_measure(names: Iterable[str]) -> tuple[str, ...]:
    """Return those of some word ids that have no measure or are not in the table."""
    table = read_words()
    return tuple(name for name in names if not table.get(name, {}).get("measure"))

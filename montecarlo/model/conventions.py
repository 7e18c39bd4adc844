"""How architectures of transformers scale their scores: read from conventions.toml."""

import tomllib
from importlib.resources import files
from typing import Any, NamedTuple


class Convention(NamedTuple):
    """How an architecture scales its scores; conventions.toml says what fields mean."""

    rule: str = "sqrt"
    width: tuple[str, ...] = ()
    factor: float = 1.0
    is_before: bool = False
    is_seen: bool = True
    has_sinks: bool = False
    has_alibi: bool = False


def _read() -> dict[str, Convention]:
    text = files(__package__).joinpath("conventions.toml").read_text(encoding="utf-8")
    ways: list[dict[str, Any]] = tomllib.loads(text)["way"]
    found: dict[str, Convention] = {}
    for way in ways:
        kinds = way.pop("architectures").split()
        width = tuple(way.pop("width", ()))
        found |= dict.fromkeys(kinds, Convention(width=width, **way))
    return found


CONVENTIONS = _read()

"""How architectures of transformers scale their scores: read from conventions.toml."""

from typing import Any, NamedTuple

from montecarlo.small_files import read_package_toml


class Convention(NamedTuple):
    """How an architecture scales its scores; conventions.toml says what fields mean."""

    rule: str = "sqrt"
    width: tuple[str, ...] = ()
    factor: float = 1.0
    is_before: bool = False
    is_seen: bool = True
    has_sinks: bool = False
    has_alibi: bool = False
    is_normal: bool = False


def _read() -> dict[str, Convention]:
    ways: list[dict[str, Any]] = read_package_toml("model/conventions.toml")["way"]
    found: dict[str, Convention] = {}
    for way in ways:
        kinds = way.pop("architectures").split()
        width = tuple(way.pop("width", ()))
        found |= dict.fromkeys(kinds, Convention(width=width, **way))
    return found


CONVENTIONS = _read()

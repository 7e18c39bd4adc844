"""What a model should divide its scores by: as somebody says, or its configuration.

Divisors that models have are a table, the house's and a few more, and so are hints of a
wrong one.

The configuration is that of transformers; how a divisor follows from it, and where it
is applied, is the convention of the architecture.  Nothing is read from the module that
computes attention but what it was made from: what that module holds may be the error.

>>> config = {"model_type": "gemma2", "query_pre_attn_scalar": 144, "head_dim": 128}
>>> expected_of({0: Caller("", config)}).text
'sqrt(query_pre_attn_scalar = 144) = 12 (configuration of gemma2)'
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from montecarlo.attention.divisors import (
    DIVISORS,
    Product,
    parse_divisor,
)
from montecarlo.errors import InputError, show
from montecarlo.model.arrays import Model
from montecarlo.names import require_number
from montecarlo.plain_text import on_one_line
from montecarlo.small_files import read_package_toml, read_small

#: What is expected where nothing else is said.
EXPECTED = "sqrt"
#: What a divisor may be: beyond, scores or their differences are lost in rounding.
SMALLEST, LARGEST = 1e-20, 1e20
#: How near a divisor is to what it looks like, as a part of it.
NEAR = 0.01
#: How near divisors of heads, or numbers of two models, are that are called the same.
CLOSE = 0.005


class KnownDivisor(NamedTuple):
    """A divisor that models have: one of d_k, times powers of numbers of heads."""

    name: str
    text: str  # what it is called in a sentence, h being the number of heads
    formula: Product
    head_power: float = 0.0
    key_power: float = 0.0  # of the number of heads of keys

    @property
    def inverse(self) -> str:
        """One over it, plain."""
        plain = self.text.removeprefix("1/")
        if plain != self.text or plain == "1":
            return plain
        is_product = " " in plain and not plain.startswith("sqrt(")
        return f"1/({plain})" if is_product else f"1/{plain}"

    def value(self, d_k: int, n_heads: int, key_heads: int = 1) -> float:
        """Return the divisor of a model."""
        factor, power, *_ = self.formula
        of_heads = n_heads**self.head_power * key_heads**self.key_power
        return float(factor * d_k**power * of_heads)


#: Those of the house, and others, by their names.
KNOWN = {
    name: KnownDivisor(name, one.text.replace("*", " "), one.formula)
    for name, one in DIVISORS.items()
} | {
    name: KnownDivisor(name, text, parse_divisor(formula).formula, *powers)
    for name, text, formula, *powers in (
        ("inverse_sqrt", "1/sqrt(d_k)", "1/sqrt(d_k)"),
        ("fourth_root", "d_k^(1/4)", "d_k^(1/4)"),
        ("sqrt_width", "sqrt(h d_k)", "sqrt(d_k)", 0.5),
        ("width", "h d_k", "d_k", 1.0),
        ("sqrt_heads", "sqrt(h)", "1", 0.5),
        ("sqrt_key_width", "sqrt(kv_heads d_k)", "sqrt(d_k)", 0.0, 0.5),
    )
}


class Parts(NamedTuple):
    """What a configuration names for a layer beside the divisor."""

    cap: float = math.nan  # what scores are capped at by tanh
    window: int = 0  # keys that a row sees
    chunk: int = 0  # keys of a chunk, outside of which a row sees none
    has_sinks: bool | None = None  # None where nothing is said of them
    has_alibi: bool = False  # a bias falls with the distance of key and query
    is_normal: bool = (
        False  # lengths of queries and of keys are those of normalised ones
    )
    #: Whether queries are multiplied by a temperature of their position as configured,
    #: None where it cannot be told, and why; None where none is.
    temperature: tuple[bool | None, str] | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """The divisor that somebody expects."""

    typed: str  # its name or number, or what stands for a configuration
    value: float  # NaN where it cannot be told, or differs by layer
    said: str = ""  # how it follows from a configuration, or why it does not
    #: Divisors that known mistakes make of it, by their hints.
    mistakes: Mapping[str, float] = field(default_factory=dict)
    parts: Parts = field(default_factory=Parts)
    #: What is expected of a layer, where that differs.
    layers: Mapping[int, "Expected"] = field(default_factory=dict)

    def at(self, layer: int) -> "Expected":
        """Return what is expected of a layer."""
        return self.layers.get(layer, self)

    @property
    def is_known(self) -> bool:
        """Whether it is known, of all layers."""
        each = self.layers.values() or [self]
        return not any(math.isnan(one.value) for one in each)

    @property
    def text(self) -> str:
        """What it is called in a sentence."""
        if self.said:
            return self.said
        if self.typed in KNOWN:
            return f"{KNOWN[self.typed].text} = {self.value:.4g}"
        return f"{self.value:.6g}"


def expected_divisor(typed: str | float, d_k: int, n_heads: int) -> Expected:
    """Return the divisor that is expected: a name of `KNOWN`, a number or a formula.

    Raises
    ------
    InputError
        If it is neither, or no divisor.
    """
    name = str(typed)
    if name not in KNOWN:
        try:
            name = parse_divisor(name).name
        except InputError as error:
            raise InputError(
                f"expect must be one of {', '.join(KNOWN)}, or a divisor: {error}"
            ) from None
    if name in KNOWN:
        return Expected(name, KNOWN[name].value(d_k, n_heads))
    return Expected(str(typed), divisor_value(typed, d_k, "expect"))


def divisor_value(divisor: str | float, d_k: int, name: str = "divisor") -> float:
    """Return what a model divides by: a number, or a divisor by its name or formula."""
    value = parse_divisor(str(divisor)).value(d_k)
    return require_number(name, value, SMALLEST, LARGEST)


def divisors_within(
    low: float, high: float, d_k: int, n_heads: int, key_heads: int = 1
) -> tuple[KnownDivisor, ...]:
    """Return the known divisors from ``low`` to ``high``.

    Where d_k or the number of heads is 1, what differs by powers of it is the same; and
    so it is where each head has keys of its own.
    """
    return tuple(
        one
        for one in KNOWN.values()
        if low <= one.value(d_k, n_heads, key_heads) <= high
        and not (n_heads == 1 and one.head_power)
        and not (key_heads in {1, n_heads} and one.key_power)
        and not (d_k == 1 and one.formula.d_k)
    )


def name_divisor(known: Sequence[KnownDivisor], wanted: str = EXPECTED) -> str:
    """Return the one name of a divisor, or of one that is wanted; empty of several.

    d_k^(1/4) is sqrt(h) at 64 and 8: such a number is called by neither.
    """
    names = {one.name: one.text for one in known}
    if len(names) == 1:
        return known[0].text
    return names.get(wanted, names.get(EXPECTED, ""))


def say_factor(value: float, *sizes: int) -> str:
    """Write what scores are multiplied by, and what it is by d_k and heads.

    That is the one name that is near; else it is set beside the root of d_k.
    """
    size, plain = abs(value), f"{value:.4g}"
    if not (size > 0.0 and math.isfinite(size)):
        return plain
    known = divisors_within((1 - CLOSE) / size, (1 + CLOSE) / size, *sizes)
    if name := name_divisor(known):
        inverse = next(one.inverse for one in known if one.text == name)
        return plain if inverse == "1" else f"{plain} = {inverse}"
    return f"{plain} ({value * math.sqrt(sizes[0]):.3g} times 1/sqrt(d_k))"


def hints_at(
    divisor: float, expected: Expected, d_k: int, n_heads: int, *, is_known_twice: bool
) -> tuple[str, ...]:
    """Return what a wrong divisor looks like, if just one size would give it.

    Parameters
    ----------
    divisor : float
    expected : Expected
    d_k, n_heads : int
    is_known_twice : bool
        Whether several known divisors are as near: then sizes say nothing.

    Returns
    -------
    tuple of {"sign", "missing", "twice", "multiplied", "width", "heads"}
        Or keys of ``expected.mistakes``, which fields stand for; padded heads, which
        may have any width, where nothing else would.  Empty where it looks like nothing
        known, or like several sizes.
    """
    if divisor < 0.0:
        return ("sign",)
    looks = {
        "missing": 1.0,
        "twice": expected.value**2,
        "multiplied": 1.0 / expected.value,
        "width": (n_heads * d_k) ** 0.5,
        "heads": n_heads**0.5,
    }
    mistakes = _near(divisor, expected.mistakes)
    named = tuple(one for one in mistakes if not one.startswith("padded"))
    found = (() if is_known_twice else _near(divisor, looks)) or mistakes
    return named or (found if len(found) == 1 else ())


def _near(divisor: float, known: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(n for n, value in known.items() if abs(divisor / value - 1.0) <= NEAR)


class Convention(NamedTuple):
    """How an architecture scales its scores; conventions.toml says what fields mean."""

    rule: str = "sqrt"
    width: Sequence[str] = ()
    factor: float = 1.0
    is_before: bool = False
    is_seen: bool = True
    has_sinks: bool = False
    has_alibi: bool = False
    is_normal: bool = False


#: By the ``model_type`` of a configuration.
CONVENTIONS = {
    kind: Convention(**{k: v for k, v in way.items() if k != "architectures"})
    for way in read_package_toml("model/conventions.toml")["way"]
    for kind in way["architectures"].split()
}
#: What stands for the configuration's own divisor.
CONFIG = "config"
#: Bytes of a config.json at most; names of a thousand classes take a hundredth of it.
MOST_CONFIG = 2**22
#: What a size is called, from the most common on.
HEAD_DIM = ("head_dim",)
WIDTH = ("hidden_size", "n_embd", "d_model", "embed_dim", "dim", "emb_dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
#: Of encoders and decoders, which may have different ones.
SIDES = ("encoder_attention_heads", "decoder_attention_heads")
#: Widths that a head may be padded to.
PADS = (8, 16, 32, 64, 128, 256)
#: A measured factor so near to the one of the convention is that one, rounded.
ROUNDED = 0.004
Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Caller:
    """The module that called attention."""

    module: str  # its class; empty where it is not known, as of files
    config: Config | None = None  # what it was made from
    layer: int | None = None  # its number, as its model counts
    #: What queries times keys were multiplied by between their projections and
    #: attention, as measured; NaN where it was not.
    factor: float = math.nan
    #: Whether numbers that queries or keys are multiplied by count in the scale that is
    #: found, as where attention is written out.
    is_whole: bool = False
    #: What lengths of queries were multiplied by there, by position; empty likewise.
    by_position: tuple[float, ...] = ()


class Said(NamedTuple):
    """What a configuration says of a layer."""

    divisor: float  # of queries and keys as they are projected
    text: str  # how it follows, by the names of fields
    mistakes: Mapping[str, float]  # divisors that known ones make of it, by their hints


class Fields(NamedTuple):
    """The fields of a configuration, for one layer."""

    config: Config
    layer: int | None

    @property
    def kind(self) -> str:
        """The architecture."""
        return on_one_line(self.config.get("model_type"))

    @property
    def source(self) -> str:
        """What is said from."""
        return f"(configuration of {self.kind})"

    def find(self, names: Sequence[str]) -> tuple[str, float] | None:
        """Return the first of some fields that holds something, and its number."""
        own: Mapping[str, Any] = {}
        for number, fields in _mapping(self.config, "per_layer_config").items():
            if str(number).isdecimal() and int(number) == self.layer:
                own = fields
        for name in names:
            value = own.get(name, self.config.get(name))
            if value is not None:
                return name, _number(name, value)
        return None

    def need(self, names: Sequence[str]) -> tuple[str, float]:
        """Return the first of some fields, of which one must be there."""
        found = self.find(names)
        if found is None:
            raise InputError(
                f"config must hold {' or '.join(names)} for model_type {self.kind!r}, "
                f"got {', '.join(map(str, self.config))}"
            )
        return found

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a field that is true or false."""
        value = self.config.get(name, default)
        if not isinstance(value, bool):
            raise InputError(
                f"config must hold true or false as {name}, got {show(value)}"
            )
        return value

    @property
    def rope(self) -> Config:
        """What it says of rotary embeddings, whatever the version calls it."""
        for name in ("rope_parameters", "rope_scaling"):
            if found := _mapping(self.config, name):
                return found
        return {}


def _number(name: str, value: Any) -> float:  # noqa: ANN401
    return require_number(f"{name} of config", value, SMALLEST, LARGEST)


def _mapping(config: Config, name: str) -> Config:
    found = config.get(name)
    return found if isinstance(found, Mapping) else {}


def _width(fields: Fields, convention: Convention) -> tuple[float, str]:
    """Return the width of a head that counts, and how it follows."""
    if convention.width:
        found = [fields.need([name]) for name in convention.width]
    elif one := fields.find(HEAD_DIM):
        found = [one]
    else:
        name, width = fields.need(WIDTH)
        heads_name, heads = _heads(fields)
        size = width // heads
        return size, f"{name} / {heads_name} = {width:g} / {heads:g}"
    total = math.fsum(value for _, value in found)
    return total, f"{' + '.join(name for name, _ in found)} = {total:g}"


def _heads(fields: Fields) -> tuple[str, float]:
    if not fields.find(HEADS) and fields.find(SIDES):
        both = [one for name in SIDES if (one := fields.find([name]))]
        if len({value for _, value in both}) > 1:
            raise _UndeterminedError(
                f"encoder and decoder have different numbers of heads {fields.source}"
            )
        return both[0]
    return fields.need(HEADS)


class _UndeterminedError(Exception):
    """What keeps a configuration from saying a divisor."""


def _sqrt(fields: Fields, convention: Convention) -> Said:
    width, text = _width(fields, convention)
    width *= convention.factor
    told = text if convention.factor == 1.0 else f"{convention.factor:g} ({text})"
    mistakes = {}
    sizes = fields.find(WIDTH), fields.find(HEADS)
    if not convention.width and sizes[0] and sizes[1]:
        derived = sizes[0][1] // sizes[1][1]
        if derived != width:
            mistakes["derived"] = math.sqrt(derived)
    return Said(math.sqrt(width), f"sqrt({told})", mistakes)


def _none(fields: Fields, convention: Convention) -> Said:
    mistakes = {}
    with suppress(InputError, _UndeterminedError):  # it says nothing of the divisor
        mistakes["scaled"] = math.sqrt(_width(fields, convention)[0])
    return Said(1.0, f"1, as {fields.kind} does not scale", mistakes)


def _field(fields: Fields, convention: Convention) -> Said:
    """Return Gemma's, the root of a field, or Granite's, the inverse of one."""
    name, value = fields.need([convention.rule])
    mistakes = {"ignored": math.sqrt(_width(fields, convention)[0])}
    if name == "query_pre_attn_scalar":
        return Said(math.sqrt(value), f"sqrt({name} = {value:g})", mistakes)
    return Said(1.0 / value, f"1 / ({name} = {value:g})", mistakes)


def _flags(fields: Fields, convention: Convention) -> Said:
    """Return GPT-2's: on or off, and by the number of the layer."""
    width, text = _width(fields, convention)
    root = divisor = math.sqrt(width)
    told, mistakes = f"sqrt({text})", {}
    if not fields.flag("scale_attn_weights", default=True):
        divisor, told = 1.0, "1 (scale_attn_weights = false)"
        mistakes["ignored"] = root
    if fields.flag("scale_attn_by_inverse_layer_idx", default=False):
        if fields.layer is None:
            raise _UndeterminedError(
                "scale_attn_by_inverse_layer_idx is true, and layers have no number "
                f"{fields.source}"
            )
        mistakes["by_layer"] = divisor
        divisor *= fields.layer + 1
        told += f" * {fields.layer + 1} (scale_attn_by_inverse_layer_idx)"
    return Said(divisor, told, mistakes)


def _mscale(fields: Fields, convention: Convention) -> Said:
    """Return DeepSeek's: the square of what YaRN makes of mscale_all_dim is in it."""
    width, text = _width(fields, convention)
    root, rope = math.sqrt(width), fields.rope
    scale = _number_of(rope, "mscale_all_dim") or 0.0
    if _rope_kind(rope) == "default" or not scale:
        return Said(root, f"sqrt({text})", {})
    mscale = _yarn(_need_factor(rope), scale)
    return Said(
        root / mscale**2,
        f"sqrt({text}) / {mscale:.4g}^2 (mscale_all_dim = {scale:g})",
        {"mscale": root, "mscale_once": root / mscale},
    )


RULES: dict[str, Callable[[Fields, Convention], Said]] = {
    "sqrt": _sqrt,
    "none": _none,
    "query_pre_attn_scalar": _field,
    "attention_multiplier": _field,
    "scale_attn_weights": _flags,
    "mscale": _mscale,
}


def _rope_kind(rope: Config) -> str:
    return str(rope.get("rope_type", rope.get("type", "default")))


def _number_of(rope: Config, name: str) -> float | None:
    value = rope.get(name)
    return None if value is None else _number(name, value)


def _need_factor(rope: Config) -> float:
    factor = _number_of(rope, "factor")
    if factor is None:
        raise InputError(
            f"config must hold factor in its rope scaling, got {', '.join(rope)}"
        )
    return factor


def _yarn(factor: float, mscale: float = 1.0) -> float:
    """Return YaRN's multiple of queries and of keys (Peng et al. 2023, equation 22)."""
    return 1.0 if factor <= 1.0 else 0.1 * mscale * math.log(factor) + 1.0


def _rotary_factor(fields: Fields) -> float | None:
    """Return what rotary embeddings multiply q·k by; None where it cannot be told.

    YaRN's multiple of cosines and sines changes what is rotated, and only that.
    """
    kinds = {"yarn", "longrope", "su"}
    rope = fields.rope
    nested = [one for one in rope.values() if isinstance(one, Mapping)]
    if any(_rope_kind(one) in kinds for one in nested):
        return None
    if _rope_kind(rope) not in kinds:
        return 1.0
    given = _number_of(rope, "attention_factor")
    if given is None and _rope_kind(rope) == "yarn":
        factor = _need_factor(rope)
        both = [_number_of(rope, name) for name in ("mscale", "mscale_all_dim")]
        if both[0] and both[1]:
            given = _yarn(factor, both[0]) / _yarn(factor, both[1])
        else:
            given = _yarn(factor)
    parts = [
        *(rope.get("partial_rotary_factor"), fields.config.get("qk_rope_head_dim")),
        fields.config.get("partial_rotary_factor"),
    ]
    is_whole = all(one in {None, 1.0} for one in parts)
    return given**2 if given is not None and (is_whole or given == 1.0) else None


def _expected_at(caller: Caller, number: int) -> Expected:
    """Return what a layer should divide by; its number, where the caller has none."""
    if caller.config is None:
        raise _UndeterminedError("there is no configuration")
    layer = number if caller.layer is None else caller.layer
    fields = Fields(caller.config, layer)
    convention = CONVENTIONS.get(fields.kind)
    if convention is None:
        raise _UndeterminedError(_say_unknown(caller.config))
    said = RULES[convention.rule](fields, convention)
    usual = 1.0 / said.divisor if convention.is_before else 1.0
    factor = _measured(caller, fields, convention, usual)
    if factor is None:
        if convention.is_before and caller.module:
            raise _UndeterminedError(
                f"{fields.kind} multiplies queries before attention, and what their "
                "projection gives out was not seen"
            )
        factor = usual
    mistakes = {name: value * factor for name, value in said.mistakes.items()}
    if _rotary_factor(fields) not in {None, 1.0}:
        mistakes["mscale"] = said.divisor * usual
    if factor != 1.0:
        mistakes["again"] = said.divisor
    if convention.rule == "sqrt":
        width = said.divisor**2
        padded = {math.ceil(width / pad) * pad for pad in PADS} - {round(width)}
        mistakes |= {f"padded_{n}": math.sqrt(n) * factor for n in sorted(padded)}
    divisor = said.divisor * factor  # what is left for attention
    require_number("divisor of config", divisor, SMALLEST, LARGEST)
    told = said.text if said.text[0] == "1" else f"{said.text} = {said.divisor:.6g}"
    if factor != 1.0:
        told = (
            f"{divisor:.6g}, of {told}: queries and keys are multiplied by "
            f"{factor:.4g} before"
        )
    parts = _parts(fields, convention, caller.by_position)
    return Expected(CONFIG, divisor, f"{told} {fields.source}", mistakes, parts)


def _parts(
    fields: Fields, convention: Convention, by_position: Sequence[float]
) -> Parts:
    """Return what a configuration names for a layer beside the divisor."""
    config, layer = fields.config, fields.layer or 0
    kinds, kind = config.get("layer_types"), ""
    if isinstance(kinds, list | tuple):
        kind = str(kinds[layer]) if layer < len(kinds) else ""
    elif config.get("use_sliding_window", True) is True:
        kind = "sliding_attention"
    cap, window, chunk = (
        float(value) if isinstance(value := config.get(name), int | float) else 0.0
        for name in ("attn_logit_softcapping", "sliding_window", "attention_chunk_size")
    )
    turned = config.get("no_rope_layers") or ()  # 1 where queries are rotated
    is_turned = len(turned) <= layer or bool(turned[layer])
    return Parts(
        cap or math.nan,
        int(window) * (kind == "sliding_attention"),
        int(chunk) * (kind == "chunked_attention"),
        convention.has_sinks,
        convention.has_alibi,
        convention.is_normal and is_turned and config.get("use_qk_norm") is True,
        _check_temperature(fields, by_position, is_turned=is_turned),
    )


def _check_temperature(
    fields: Fields, by_position: Sequence[float], *, is_turned: bool
) -> tuple[bool | None, str] | None:
    """Hold the factor of queries by their position against what is configured.

    That is Llama 4's, where queries are not rotated, or that of Mistral 3.
    """
    config, rope = fields.config, fields.rope
    if rope.get("llama_4_scaling_beta"):
        names = "original_max_position_embeddings", "llama_4_scaling_beta"
        (floor, beta), first = (_number_of(rope, name) for name in names), 0.0
    elif config.get("attn_temperature_tuning") and not is_turned:
        names = "floor_scale", "attn_scale"
        (floor, beta), first = (_number_of(config, name) for name in names), 1.0
    else:
        return None
    if not by_position or floor is None or beta is None:
        return None, ", which shows in a captured model alone"
    places = np.arange(len(by_position)) + first
    wanted = 1.0 + beta * np.log1p(places // floor)
    if wanted[-1] == 1.0:
        return None, f" from {floor:g} tokens on, of {len(by_position)} here"
    ratio = np.array(by_position) / wanted
    return bool(np.ptp(ratio) <= NEAR * np.median(ratio)), ""


def _measured(
    caller: Caller, fields: Fields, convention: Convention, usual: float
) -> float | None:
    """Return what queries times keys are multiplied by before attention, if seen.

    Rotary embeddings aside; the usual factor where it is near to that.
    """
    if caller.is_whole:
        return 1.0
    rotary = _rotary_factor(fields)
    is_seen = convention.is_seen and fields.config.get("clip_qkv") is None
    if not is_seen or rotary is None or math.isnan(caller.factor):
        return None
    factor = caller.factor / rotary
    is_usual = abs(factor / usual - 1.0) <= ROUNDED
    return usual if is_usual else float(f"{factor:.4g}")


def _say_unknown(config: Config) -> str:
    """Say that an architecture is not known, but perhaps its parts are."""
    kind = config.get("model_type")
    parts = [
        f"{on_one_line(name)} ({show(part['model_type'])})"
        for name, part in config.items()
        if isinstance(part, Mapping) and part.get("model_type") in CONVENTIONS
    ]
    if parts:
        return (
            f"model_type {show(kind)} has parts, each with its own: {', '.join(parts)}"
        )
    return f"how model_type {show(kind)} scales is not known"


def expected_of(callers: Mapping[int, Caller]) -> Expected:
    """Return what each layer should divide by, which may differ.

    Where an architecture scales queries before attention, attention itself divides by
    1; that queries are scaled has to be measured where the module is known.

    Raises
    ------
    InputError
        If a field is missing or is no number.
    """
    layers = {}
    for number, caller in callers.items():
        try:
            layers[number] = _expected_at(caller, number)
        except _UndeterminedError as reason:
            layers[number] = Expected(CONFIG, math.nan, str(reason))
    ways = list(layers.values())
    if len({(one.said, one.value) for one in ways}) == 1:
        return replace(ways[0], layers=layers)
    if unknown := [one for one in ways if math.isnan(one.value)]:
        return replace(unknown[0], layers=layers)
    told = "what the configuration says, which differs by layer"
    return Expected(CONFIG, math.nan, told, layers=layers)


def find_expected(
    model: Model,
    expect: str | float | None,
    config: Config | str | Path | None = None,
    callers: Sequence[Caller] = (),
) -> Expected:
    """Return what is expected of a model: by what was typed, or by its configuration.

    Parameters
    ----------
    model : Model
    expect : str, float or None
        `CONFIG`, a name or number as for `montecarlo.model.expected.expected_divisor`;
        None for the configuration where one is known, else `EXPECTED`.
    config : mapping, path or None
        A configuration, in place of the captured ones.
    callers : sequence of Caller
        Of each layer, as captured; empty for arrays and files.

    Raises
    ------
    InputError
        If one is not usable, or they do not go together.
    """
    is_known = config is not None or any(one.config is not None for one in callers)
    if expect is None:
        expect = CONFIG if is_known else EXPECTED
    if expect != CONFIG:
        if config is not None:
            raise InputError(
                f"config must stand with expect {CONFIG!r}, got {show(expect)}"
            )
        return expected_divisor(expect, model.d_k, len(model.head_labels))
    if not is_known:
        raise InputError(
            "expect 'config' must have a configuration: config, or a captured model of "
            "transformers, got neither"
        )
    asked = {n: callers[n] if callers else Caller("") for n in model.layers}
    if config is not None:
        read = read_config(config)
        asked = {layer: replace(one, config=read) for layer, one in asked.items()}
    return expected_of(asked)


def read_config(config: object) -> Config:
    """Return a configuration: a mapping, or the path of a config.json.

    Raises
    ------
    InputError
        If it is neither, cannot be read, or has no ``model_type``.
    """
    if isinstance(config, str | Path):
        content = read_small("config", Path(config), MOST_CONFIG)
        try:
            config = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise InputError(f"config must be JSON, got {error}") from None
    if not isinstance(config, Mapping):
        raise InputError(
            "config must be a mapping, or the path of a config.json, got "
            f"{type(config).__name__}"
        )
    if not isinstance(config.get("model_type"), str):
        came = show(config.get("model_type"))
        raise InputError(f"config must hold a text as model_type, got {came}")
    return config

"""The divisor of the scores that is expected of a model: a name, a number, or a rule.

The rule is the convention by which an architecture of transformers derives the divisor
from its configuration.  Only the configuration is read: attributes of the module that
computes attention may themselves be wrong.

`KNOWN` lists divisors that have names, and `hints_at` mistakes that lead to others.

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

from montecarlo.attention.divisors import DIVISORS, Product, parse_divisor
from montecarlo.errors import InputError, show
from montecarlo.model.arrays import Model
from montecarlo.names import require_number, suggest
from montecarlo.plain_text import on_one_line
from montecarlo.small_files import read_package_toml, read_small

#: The divisor that is expected by default.
EXPECTED = "sqrt"
#: Range of divisors: outside of it scores or their differences are lost in rounding.
SMALLEST, LARGEST = 1e-20, 1e20
#: Relative tolerance within which a divisor gets the hint of a mistake.
NEAR = 0.01
#: Relative tolerance within which heads, or two models, have the same scale.
CLOSE = 0.005


class KnownDivisor(NamedTuple):
    """A divisor that models use, as a formula of d_k and of numbers of heads."""

    name: str
    text: str  # its formula in sentences; h is the number of heads
    formula: Product
    head_power: float = 0.0  # exponent of the number of query heads
    key_power: float = 0.0  # exponent of the number of key heads

    @property
    def inverse(self) -> str:
        """The reciprocal of the divisor as a formula, such as ``1/sqrt(d_k)``."""
        plain = self.text.removeprefix("1/")
        if plain != self.text or plain == "1":
            return plain
        is_product = " " in plain and not plain.startswith("sqrt(")
        return f"1/({plain})" if is_product else f"1/{plain}"

    def value(self, d_k: int, n_heads: int, key_heads: int = 1) -> float:
        """Return the divisor for these sizes of a model."""
        factor, power, *_ = self.formula
        of_heads = n_heads**self.head_power * key_heads**self.key_power
        return float(factor * d_k**power * of_heads)


#: Named divisors: those of `DIVISORS`, and others that models use by mistake.
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
    """Parts of attention other than the divisor that a configuration sets."""

    cap: float = math.nan  # c of c tanh(score / c)
    mask: str = ""  # beside a causal one: ``window``, ``chunks``, or empty
    n_keys: int = 0  # of a window or of a chunk
    has_sinks: bool | None = None  # None where no configuration is known
    has_alibi: bool = False  # a bias that falls with the distance of key and query
    not_checked: tuple[str, ...] = ()  # what else is configured


@dataclass(frozen=True, slots=True)
class Expected:
    """The divisor that a model ought to have, with its derivation."""

    typed: str  # the name or number that was typed, or `CONFIG`
    value: float  # NaN where it is not determined, or differs by layer
    derivation: str = ""  # from a configuration, or why there is none
    #: Divisors that known mistakes lead to, by keys of `HINTS` in answers.
    mistakes: Mapping[str, float] = field(default_factory=dict)
    parts: Parts = field(default_factory=Parts)
    #: The expected divisor of each layer, where layers differ.
    layers: Mapping[int, "Expected"] = field(default_factory=dict)

    def at(self, layer: int) -> "Expected":
        """Return the `Expected` of a layer; this one if ``layers`` lacks the layer."""
        return self.layers.get(layer, self)

    @property
    def is_known(self) -> bool:
        """Whether the divisor is determined for every layer."""
        each = self.layers.values() or [self]
        return not any(math.isnan(one.value) for one in each)

    @property
    def text(self) -> str:
        """The divisor and how it is derived, as part of a sentence: ``sqrt(d_k) = 8``.

        If a configuration does not determine the divisor, the reason.
        """
        if self.derivation:
            return self.derivation
        if self.typed in KNOWN:
            return f"{KNOWN[self.typed].text} = {self.value:.4g}"
        return f"{self.value:.6g}"


def expected_divisor(typed: str | float, d_k: int, n_heads: int) -> Expected:
    """Return the expected divisor by a name of `KNOWN`, a number, or a formula of d_k.

    Raises
    ------
    InputError
        If ``typed`` is none of these, or not usable as a divisor.
    """
    name = str(typed)
    try:
        name = name if name in KNOWN else parse_divisor(name).name
    except InputError:
        names = [CONFIG, *KNOWN]
        raise InputError(
            f"expect must be one of {', '.join(names)}, a number, or a product of "
            f"powers of d_k; got {show(typed)}.{suggest(name, names)}"
        ) from None
    if name in KNOWN:
        return Expected(name, KNOWN[name].value(d_k, n_heads))
    return Expected(str(typed), divisor_value(typed, d_k, "expect"))


def divisor_value(divisor: str | float, d_k: int, name: str = "divisor") -> float:
    """Return the value of a divisor at d_k; it is given as a number, name or formula.

    The names are those of `DIVISORS`.  An `InputError` is raised if it is none of
    these, or not usable.  ``name`` is that of the parameter, in messages about a value
    that is too small or too large at this d_k.
    """
    value = parse_divisor(str(divisor)).value(d_k)
    return require_number(name, value, SMALLEST, LARGEST)


def divisors_within(
    low: float, high: float, d_k: int, n_heads: int, key_heads: int = 1
) -> tuple[KnownDivisor, ...]:
    """Return the divisors of `KNOWN` whose value is from ``low`` to ``high``.

    A divisor that equals a simpler one at these sizes is left out.  That is, one with
    ``n_heads`` or with ``d_k`` if this is 1, and one with ``key_heads`` if these are 1
    or as many as ``n_heads``.
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
    """Return the formula of the only divisor in ``known``.

    If there are several, that of the wanted one or else of `EXPECTED`, if it is among
    them.  An empty string in any other case: at d_k = 64 with 8 heads, d_k^(1/4) and
    sqrt(h) are equal.
    """
    names = {one.name: one.text for one in known}
    if len(names) == 1:
        return known[0].text
    return names.get(wanted, names.get(EXPECTED, ""))


def say_factor(value: float, *sizes: int) -> str:
    """Return a factor of the scores in words, with a formula: ``0.125 = 1/sqrt(d_k)``.

    If no formula is within `CLOSE`, or several are, it is a multiple of 1/sqrt(d_k).
    The factors 0, 1 and -1 stand alone.  ``sizes`` are d_k, number of heads and number
    of key heads.

    Examples
    --------
    >>> say_factor(0.125, 64, 12, 12), say_factor(-0.125, 64, 12, 12)
    ('0.125 = 1/sqrt(d_k)', '-0.125 = -1/sqrt(d_k)')
    """
    size, plain = abs(value), f"{value:.4g}"
    if not (size > 0.0 and math.isfinite(size)):
        return plain
    known = divisors_within((1 - CLOSE) / size, (1 + CLOSE) / size, *sizes)
    if name := name_divisor(known):
        inverse = next(one.inverse for one in known if one.text == name)
        return plain if inverse == "1" else f"{plain} = {'-' * (value < 0.0)}{inverse}"
    return f"{plain} ({value * math.sqrt(sizes[0]):.3g} times 1/sqrt(d_k))"


def hints_at(
    divisor: float, expected: Expected, d_k: int, n_heads: int, *, is_known_twice: bool
) -> tuple[str, ...]:
    """Return the likely mistakes behind a wrong divisor, as a tuple of names.

    Parameters
    ----------
    divisor : float
        The wrong divisor.
    expected : Expected
        The right divisor, with mistakes that its configuration suggests.
    d_k, n_heads : int
    is_known_twice : bool
        Whether several known divisors have the value.  Then sizes are no hint.

    Returns
    -------
    tuple of str
        Keys of `HINTS` in answers.  ``("sign",)`` for a negative divisor.  Else all
        keys of ``expected.mistakes`` that lead to the divisor.  If none does, one of
        ``missing``, ``twice``, ``multiplied``, ``width`` and ``heads``, but only if it
        is the only one that does.  Otherwise empty.
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
    if mistakes := _near(divisor, expected.mistakes):
        return mistakes
    found = () if is_known_twice else _near(divisor, looks)
    return found if len(found) == 1 else ()


def _near(divisor: float, known: Mapping[str, float]) -> tuple[str, ...]:
    """Return the names of ``known`` whose value is within `NEAR` of the divisor."""
    return tuple(n for n, value in known.items() if abs(divisor / value - 1.0) <= NEAR)


class Convention(NamedTuple):
    """How an architecture scales its scores; conventions.toml describes the fields."""

    rule: str = "sqrt"
    width: Sequence[str] = ()
    factor: float = 1.0
    is_before: bool = False
    is_seen: bool = True
    has_sinks: bool = False
    has_alibi: bool = False


#: By the ``model_type`` of a configuration.
CONVENTIONS = {
    kind: Convention(**{k: v for k, v in way.items() if k != "architectures"})
    for way in read_package_toml("model/conventions.toml")["way"]
    for kind in way["architectures"].split()
}
#: What is typed for the divisor that the configuration implies.
CONFIG = "config"
#: Largest config.json, in bytes; names of a thousand classes take a hundredth of it.
MOST_CONFIG = 2**22
#: Fields that hold the same size, the most common first.
WIDTH = ("hidden_size", "n_embd", "d_model", "embed_dim", "dim", "emb_dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
#: Fields of the number of heads of encoders and decoders, which may differ.
SIDES = ("encoder_attention_heads", "decoder_attention_heads")
#: Kinds of layers with a mask beside a causal one: the mask, and the field of its size.
MASKED_LAYERS = {
    "sliding_attention": ("window", "sliding_window"),
    "chunked_attention": ("chunks", "attention_chunk_size"),
}
#: Relative tolerance within which a measured factor is the convention's, rounded.
ROUNDED = 0.004
Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Caller:
    """The module that called attention in a layer, with its configuration."""

    module: str  # name of its class; empty where it is not known, as for files
    config: Config | None = None  # that it was built from
    layer: int | None = None  # its number in the model
    #: Measured factor of q·k between projections and attention; NaN if not measured.
    factor: float = math.nan
    #: Whether the scale that is found includes factors of queries and keys, as where
    #: attention is written out.
    is_whole: bool = False


class Fields(NamedTuple):
    """The fields of a model's configuration, as they apply to one layer."""

    config: Config
    layer: int

    @property
    def kind(self) -> str:
        """The architecture: ``model_type`` of the configuration."""
        return on_one_line(self.config.get("model_type"))

    @property
    def source(self) -> str:
        """Words for where a divisor comes from: ``(configuration of llama)``."""
        return f"(configuration of {self.kind})"

    def find(self, names: Sequence[str]) -> tuple[str, float] | None:
        """Return (name, number) of the first field that is set; None if none is.

        What ``per_layer_config`` sets for this layer counts before what is set for all.
        An `InputError` is raised if the value is not a positive number.
        """
        by_layer = _mapping(self.config, "per_layer_config").items()
        own = {int(n): one for n, one in by_layer if str(n).isdecimal()}
        for name in names:
            value = own.get(self.layer, {}).get(name, self.config.get(name))
            if value is not None:
                return name, _number(name, value)
        return None

    def need(self, names: Sequence[str]) -> tuple[str, float]:
        """Return (name, number) of the first field that is set; an error if none is.

        It is an `InputError`.
        """
        if (found := self.find(names)) is None:
            raise InputError(
                f"config must hold {' or '.join(names)} for model_type {self.kind!r}, "
                f"got {', '.join(map(str, self.config))}"
            )
        return found

    @property
    def rope(self) -> Config:
        """The fields of rotary embeddings, or an empty mapping without any.

        They are ``rope_parameters`` or ``rope_scaling``, depending on the version.
        """
        found = _mapping(self.config, "rope_parameters")
        return found or _mapping(self.config, "rope_scaling")


def _number(name: str, value: Any) -> float:  # noqa: ANN401
    """Return a field's value if it is a positive number; else raise an `InputError`."""
    return require_number(f"{name} of config", value, SMALLEST, LARGEST)


def _mapping(config: Config, name: str) -> Config:
    """Return a field that is a mapping; an empty one if the field is no mapping."""
    found = config.get(name)
    return found if isinstance(found, Mapping) else {}


def _width(fields: Fields, convention: Convention) -> tuple[float, str]:
    """Return (width of a head for the divisor, how it is derived, in words).

    An `InputError` is raised if fields are missing, and an `_UndeterminedError` if
    encoder and decoder have different numbers of heads.
    """
    if convention.width:
        found = [fields.need([name]) for name in convention.width]
    elif one := fields.find(["head_dim"]):
        found = [one]
    else:
        name, width = fields.need(WIDTH)
        heads_name, heads = fields.need([*HEADS, *SIDES])
        if len({one[1] for side in SIDES if (one := fields.find([side]))}) > 1:
            raise _UndeterminedError(
                f"encoder and decoder have different numbers of heads {fields.source}"
            )
        return width // heads, f"{name} / {heads_name} = {width:g} / {heads:g}"
    total = math.fsum(value for _, value in found)
    return total, f"{' + '.join(name for name, _ in found)} = {total:g}"


class _UndeterminedError(Exception):
    """The reason why a configuration does not determine a divisor."""


def _sqrt(fields: Fields, convention: Convention) -> Expected:
    """Return the divisor sqrt(f d) for the width d of a head; f is mostly 1.

    f is ``convention.factor``.
    """
    width, text = _width(fields, convention)
    width *= convention.factor
    if convention.factor != 1.0:
        text = f"{convention.factor:g} ({text})"
    mistakes = {}
    sizes = fields.find(WIDTH), fields.find(HEADS)
    if not convention.width and sizes[0] and sizes[1]:
        mistakes["derived"] = math.sqrt(sizes[0][1] // sizes[1][1])
    return Expected(CONFIG, math.sqrt(width), f"sqrt({text})", mistakes)


def _none(fields: Fields, convention: Convention) -> Expected:
    """Return the divisor 1, for architectures such as T5 that do not scale."""
    mistakes = {}
    with suppress(InputError, _UndeterminedError):  # the width is no part of it
        mistakes["scaled"] = math.sqrt(_width(fields, convention)[0])
    return Expected(CONFIG, 1.0, f"1, as {fields.kind} does not scale", mistakes)


def _field(fields: Fields, convention: Convention) -> Expected:
    """Return the divisor that a field determines.

    It is the square root of the field for Gemma, and its reciprocal for Granite.
    """
    name, value = fields.need([convention.rule])
    divisor, text = 1.0 / value, f"1 / ({name} = {value:g})"
    if name == "query_pre_attn_scalar":
        divisor, text = math.sqrt(value), f"sqrt({name} = {value:g})"
    mistakes = {"ignored": math.sqrt(_width(fields, convention)[0])}
    return Expected(CONFIG, divisor, text, mistakes)


def _flags(fields: Fields, convention: Convention) -> Expected:
    """Return GPT-2's divisor: 1 or the square root of the width of a head.

    If the configuration says so, it is multiplied by the number of the layer, from 1.
    """
    width, text = _width(fields, convention)
    root = divisor = math.sqrt(width)
    text, mistakes = f"sqrt({text})", {}
    if not fields.config.get("scale_attn_weights", True):
        divisor, text = 1.0, "1 (scale_attn_weights = false)"
        mistakes["ignored"] = root
    if fields.config.get("scale_attn_by_inverse_layer_idx"):
        mistakes["by_layer"] = divisor
        divisor *= fields.layer + 1
        text += f" * {fields.layer + 1} (scale_attn_by_inverse_layer_idx)"
    return Expected(CONFIG, divisor, text, mistakes)


def _mscale(fields: Fields, convention: Convention) -> Expected:
    """Return DeepSeek's divisor: sqrt(width of a head) / m^2.

    YaRN multiplies both queries and keys by the factor m (Peng et al. 2023, equation
    22).  m is 1 without such a scaling, or if ``mscale_all_dim`` is not set.
    """
    width, text = _width(fields, convention)
    root, rope = math.sqrt(width), fields.rope
    scale = _number_of(rope, "mscale_all_dim")
    if rope.get("rope_type", rope.get("type", "default")) == "default" or not scale:
        return Expected(CONFIG, root, f"sqrt({text})")
    longer = max(_number_of(rope, "factor") or 1.0, 1.0)
    mscale = 0.1 * scale * math.log(longer) + 1.0
    return Expected(
        CONFIG,
        root / mscale**2,
        f"sqrt({text}) / {mscale:.4g}^2 (mscale_all_dim = {scale:g})",
        {"mscale": root, "mscale_once": root / mscale},
    )


#: Rules by which a configuration implies a divisor.
RULES: dict[str, Callable[[Fields, Convention], Expected]] = {
    "sqrt": _sqrt,
    "none": _none,
    "query_pre_attn_scalar": _field,
    "attention_multiplier": _field,
    "scale_attn_weights": _flags,
    "mscale": _mscale,
}


def _number_of(rope: Config, name: str) -> float | None:
    """Return a number of rotary embeddings by its field; None if not set or 0."""
    value = rope.get(name)
    return _number(name, value) if value else None


def _expected_at(caller: Caller, number: int) -> Expected:
    """Return the expected divisor of a layer, by the configuration of its caller.

    ``number`` is that of the layer, unless the caller has its own.

    Raises
    ------
    _UndeterminedError
        If the configuration is missing, or does not determine the divisor.
    InputError
        If a field is missing or is no number.
    """
    if caller.config is None:
        raise _UndeterminedError("there is no configuration")
    layer = number if caller.layer is None else caller.layer
    fields = Fields(caller.config, layer)
    convention = CONVENTIONS.get(fields.kind)
    if convention is None:
        raise _UndeterminedError(_say_unknown(caller.config))
    whole = RULES[convention.rule](fields, convention)  # of q·k as they are projected
    usual = 1.0 / whole.value if convention.is_before else 1.0
    factor = _measured(caller, fields, convention, usual)
    if factor is None and convention.is_before and caller.module:
        raise _UndeterminedError(
            f"{fields.kind} multiplies queries before attention, and what their "
            "projection gives out was not seen"
        )
    factor = usual if factor is None else factor
    mistakes = {name: value * factor for name, value in whole.mistakes.items()}
    divisor = whole.value * factor  # that remains for attention
    require_number("divisor of config", divisor, SMALLEST, LARGEST)
    text = whole.derivation
    text = text if text[0] == "1" else f"{text} = {whole.value:.6g}"
    if factor != 1.0:
        mistakes["again"] = whole.value
        text = (
            f"{divisor:.6g}, of {text}: queries and keys are multiplied by "
            f"{factor:.4g} before"
        )
    parts = _parts(fields, convention)
    return Expected(CONFIG, divisor, f"{text} {fields.source}", mistakes, parts)


def _parts(fields: Fields, convention: Convention) -> Parts:
    """Return the parts of attention other than the divisor that are configured."""
    config, layer = fields.config, fields.layer
    kinds, kind = config.get("layer_types"), ""
    if isinstance(kinds, list | tuple):
        kind = str(kinds[layer]) if layer < len(kinds) else ""
    elif config.get("use_sliding_window", True) is True:
        kind = "sliding_attention"
    mask, name = MASKED_LAYERS.get(kind, ("", ""))
    cap, n_keys = (
        float(value) if isinstance(value := config.get(one), int | float) else 0.0
        for one in ("attn_logit_softcapping", name)
    )
    others = {
        "a temperature by position": config.get("attn_temperature_tuning")
        or fields.rope.get("llama_4_scaling_beta"),
        "the normalisation of q and k": config.get("use_qk_norm"),
    }
    has = convention.has_sinks, convention.has_alibi
    named = tuple(text for text, is_configured in others.items() if is_configured)
    return Parts(cap or math.nan, mask, int(n_keys), *has, named)


def _measured(
    caller: Caller, fields: Fields, convention: Convention, usual: float
) -> float | None:
    """Return the measured factor of q·k before attention; None if it was not measured.

    Rotary embeddings have no part in it.  If it is near ``usual``, the factor that the
    convention implies, it is exactly that.  1 where the scale of the caller includes
    such factors.  None, too, where a measured factor says little, as with ``clip_qkv``.
    """
    if caller.is_whole:
        return 1.0
    is_seen = convention.is_seen and fields.config.get("clip_qkv") is None
    if not is_seen or math.isnan(caller.factor):
        return None
    is_usual = abs(caller.factor / usual - 1.0) <= ROUNDED
    return usual if is_usual else float(f"{caller.factor:.4g}")


def _say_unknown(config: Config) -> str:
    """Return words that an architecture is not known, and which of its parts are."""
    kind = show(config.get("model_type"))
    parts = [
        f"{on_one_line(name)} ({show(part['model_type'])})"
        for name, part in config.items()
        if isinstance(part, Mapping) and part.get("model_type") in CONVENTIONS
    ]
    if parts:
        return f"model_type {kind} has parts, each with its own: {', '.join(parts)}"
    return f"how model_type {kind} scales is not known"


def expected_of(callers: Mapping[int, Caller]) -> Expected:
    """Return the divisor that configurations imply for each layer.

    ``callers`` maps numbers of layers to the modules that called attention.  If an
    architecture scales queries before attention, the divisor is what remains for
    attention itself; that needs a measured factor of the queries.  Where a
    configuration does not determine the divisor, ``value`` is NaN and ``derivation``
    the reason.  If layers differ, ``value`` of the result is NaN: see `Expected.at`.

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
    if len({(one.derivation, one.value) for one in ways}) == 1:
        return replace(ways[0], layers=layers)
    if unknown := [one for one in ways if math.isnan(one.value)]:
        return replace(unknown[0], layers=layers)
    told = "what the configuration says, which differs by layer"
    return Expected(CONFIG, math.nan, told, layers=layers)


def find_expected(
    model: Model,
    expect: str | float | None,
    config: Config | str | Path | None = None,
    callers: Mapping[int, Caller] = {},
) -> Expected:
    """Return the divisor that a model ought to have, by ``expect`` or a configuration.

    Parameters
    ----------
    model : Model
    expect : str, float or None
        A name, number or formula of d_k, as for `expected_divisor`; or `CONFIG` for the
        divisor that the configuration implies.  None means `CONFIG` if ``config`` is
        given or a caller has a configuration, else `EXPECTED`.
    config : mapping, path or None
        A configuration that replaces the captured ones.
    callers : mapping of int to Caller, optional
        By layer, the module that called attention, with its configuration.  Empty for
        arrays and files.

    Raises
    ------
    InputError
        If an argument is not usable; if ``config`` is given and ``expect`` is neither
        None nor `CONFIG`; or if `CONFIG` is wanted and there is no configuration.
    """
    configs = [config, *(one.config for one in callers.values())]
    is_known = any(one is not None for one in configs)
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
    """Return a configuration, given as a mapping or as the path of a config.json.

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
            "config must be a mapping (to_dict() of it), or the path of one, got "
            f"{type(config).__name__}"
        )
    if not isinstance(config.get("model_type"), str):
        came = show(config.get("model_type"))
        raise InputError(f"config must hold a text as model_type, got {came}")
    return config

"""Faults of public ports and others, rebuilt in a small model beside its reference.

The model is of attention and projections alone, in layers with a residual: what an
error does in one layer is in the inputs of the next.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import logsumexp

from montecarlo.attention.number_formats import NUMBER_FORMATS

SEQUENCES = 2
#: Heads, heads of keys, d_k.
SIZES = {"small": (4, 2, 8), "medium": (8, 2, 16), "large": (6, 3, 64)}
#: What stands for minus infinity where scores are masked by a number.
HIDDEN = -1e30


Change = Callable[..., Any]  # of vectors, or of arrays by name and their size


@dataclass(frozen=True)
class Size:
    """Sizes of a model, and the tokens that it sees."""

    heads: int
    key_heads: int
    d_k: int
    tokens: int
    layers: int = 3

    @property
    def root(self) -> float:
        """The square root of d_k."""
        return math.sqrt(self.d_k)

    @property
    def away(self) -> np.ndarray:
        """How far each key lies behind its query."""
        return np.arange(self.tokens)[:, None] - np.arange(self.tokens)


def causal(size: Size, window: int | None = None) -> np.ndarray:
    """Return which pairs are hidden."""
    hidden = size.away < 0
    return hidden if window is None else hidden | (size.away >= window)


def alibi(size: Size, slopes: Any = None) -> np.ndarray:
    """Return a bias that falls with distance, of each head."""
    slopes = 2.0 ** -np.arange(1, size.heads + 1) if slopes is None else slopes
    return -np.reshape(slopes, (-1, 1, 1)) * np.abs(size.away)


def positions_bias(size: Size) -> np.ndarray:
    """Return a bias by the distance of key and query, of each head, as T5 has it."""
    table = np.random.default_rng(7).normal(size=(size.heads, 2 * size.tokens))
    return table[:, size.away]


def turn(  # noqa: PLR0917 - all that a port may get wrong
    x: np.ndarray,
    base: float,
    part: float = 1.0,
    sign: int = 1,
    order: str = "F",
    over: float | None = None,
    positions: np.ndarray | None = None,
    scaling: float = 1.0,
) -> np.ndarray:
    """Apply rotary embeddings to the first part of (..., token, d).

    Pairs are of the halves in NumPy's order F, and neighbours in C; ``over`` is the
    part of d in the exponents, by default that which is rotated; ``scaling`` is
    Llama 3's for contexts of 8,192 tokens.
    """
    width = round(part * x.shape[-1])
    places = np.arange(x.shape[-2]) if positions is None else positions
    exponents = 2.0 * np.arange(width // 2) / ((over or part) * x.shape[-1])
    turns = 8192 * base**-exponents / (2.0 * math.pi)  # within the context
    kept = np.clip((turns - 1.0) / 3.0, 0.0, 1.0)
    kept += (1.0 - kept) / scaling
    angles = sign * places[:, None] * base**-exponents * kept
    cos, sin = np.cos(angles), np.sin(angles)
    i, j = np.arange(width).reshape(width // 2, 2, order=order).T
    made = x.copy()
    made[..., i] = x[..., i] * cos - x[..., j] * sin
    made[..., j] = x[..., i] * sin + x[..., j] * cos
    return made


def turned(base: float, **more: Any) -> Change:
    """Return what applies rotary embeddings to queries and keys."""
    return lambda x: turn(x, base, **more)


def normed(
    axis: int | tuple[int, ...] = -1, gain: float = 0.0, one: float = 1.0, eps=1e-6
) -> Change:
    """Return what divides (..., token, d) by the root mean square."""

    def change(x: np.ndarray) -> np.ndarray:
        mean = np.square(x).mean(axis=axis, keepdims=True)
        return x / np.sqrt(mean + eps) * (one + gain * np.cos(np.arange(x.shape[-1])))

    return change


def run(  # noqa: C901, PLR0915 - all that a port may get wrong
    size: Size,
    number_format: str = "float32",
    *,
    is_wide: bool = False,
    evidence: str = "weights",
    **options: Any,
) -> dict[str, np.ndarray]:
    """Return arrays of a model, axes (sequence, layer, head, token, d).

    ``is_wide``: results alone are rounded, not every step.
    """
    nearest = NUMBER_FORMATS[number_format].round
    step = (lambda x: x) if is_wide else nearest
    rng = np.random.default_rng(3)
    heads, key_heads, d = size.heads, size.key_heads, size.d_k
    width = heads * d
    x = nearest(rng.normal(size=(SEQUENCES, size.tokens, width)))
    found: dict[str, list[np.ndarray]] = {}
    for layer in range(size.layers):
        q, k, v = (
            step(x @ nearest(rng.normal(size=(width, n * d)) / math.sqrt(width)))
            .reshape(SEQUENCES, size.tokens, n, d)
            .swapaxes(1, 2)
            for n in (heads, key_heads, key_heads)
        )
        for change in options.get("before", ()):
            q, k = (step(change(one)) for one in (q, k))
        q = q * options.get("q_factor", 1.0)
        q, k, v = nearest(q), nearest(k), nearest(v * options.get("v_factor", 1.0))
        met = np.arange(heads)
        met = options.get("met", lambda n: n * key_heads // heads)(met)
        keys, values = k[:, met], v[:, met]
        scale = options.get("scale", 1.0 / size.root)
        scale = scale(layer) if callable(scale) else np.reshape(scale, (-1, 1, 1))
        hidden = options.get("hidden", np.zeros((1, 1), bool))
        if options.get("first_row"):
            hidden = hidden[:1]
        bias = np.asarray(options.get("bias", 0.0))
        scores = step(q @ keys.swapaxes(-1, -2))
        early, late = (bias, 0.0) if options.get("bias_scaled") else (0.0, bias)
        logits = step((scores + early) * scale)
        cap, is_last = options.get("cap"), options.get("cap_last")
        if cap and not is_last:
            logits = step(cap * np.tanh(step(logits / cap)))
        logits = step(logits + late)
        if not options.get("mask_after"):
            logits = np.where(hidden, HIDDEN, logits)
        if cap and is_last:
            logits = step(cap * np.tanh(logits / cap))
        sink = np.reshape(options.get("sink", -np.inf), (-1, 1, 1))
        total = logsumexp(logits, axis=options.get("axis", -1), keepdims=True)
        total = np.logaddexp(total, sink + math.log(options.get("times", 1)))
        weights = nearest(np.exp(logits - total))
        if options.get("mask_after"):
            weights = np.where(hidden, 0.0, weights)
        outputs = nearest(weights @ values)
        made = {"q": q, "k": k}
        if evidence == "weights":
            made["weights"] = weights
        else:
            made |= {"v": v, "outputs": outputs}
            if evidence == "added":
                shape = weights.shape
                made["added"] = np.broadcast_to(np.where(hidden, HIDDEN, bias), shape)
        for name, one in made.items():
            found.setdefault(name, []).append(one)
        back = nearest(rng.normal(size=(width, width)) / math.sqrt(width))
        joined = outputs.swapaxes(1, 2).reshape(SEQUENCES, size.tokens, width)
        x = step(x + step(joined @ back))
    return {name: np.stack(layers, axis=1) for name, layers in found.items()}


Options = Callable[[Size], dict[str, Any]]


@dataclass(frozen=True)
class Thread:
    """A fault: options of the reference, those that a port changes, what is said."""

    reference: Options
    port: Options
    said: tuple[str, ...]  # patterns that the verdict has to hold
    #: What is expected: a name, a configuration, or None where neither would say it.
    expect: Any = "sqrt"
    change: Change = field(default=lambda arrays, size: arrays)  # of the port's arrays
    change_reference: Change = field(default=lambda arrays, size: arrays)
    evidence: str = "weights"

    def arrays(self, size: Size, **more: Any) -> tuple[dict, dict]:
        """Return arrays of the port and of the reference."""
        more = {"evidence": self.evidence} | more | self.reference(size)
        reference, port = (run(size, **more | one) for one in ({}, self.port(size)))
        return self.change(port, size), self.change_reference(reference, size)


def plain(size: Size) -> dict[str, Any]:
    """Return the options of a decoder."""
    return {"hidden": causal(size)}


def always(**options: Any) -> Options:
    """Return options that no size changes."""
    return lambda _: options


def temperature(size: Size) -> np.ndarray:
    """Return a factor of queries by their position."""
    places = np.arange(size.tokens)[:, None]
    return 1.0 + 0.3 * np.log1p(places // max(size.tokens // 4, 1))


def learned(size: Size) -> np.ndarray:
    """Return logarithms of a scale that each head has learned."""
    return np.log(np.linspace(4.0, 12.0, size.heads))


def config(model_type: str, **fields: Any) -> Options:
    """Return a configuration of transformers."""
    return lambda s: {"model_type": model_type, "head_dim": s.d_k, **fields}


def gemma(size: Size) -> dict[str, Any]:
    """Return a configuration with a cap."""
    fields = {"query_pre_attn_scalar": size.d_k, "attn_logit_softcapping": 2.0}
    return config("gemma2", **fields)(size)


def with_sink(size: Size) -> dict[str, Any]:
    """Return a decoder with a sink in each head."""
    return plain(size) | {"sink": np.linspace(0.5, 2.0, size.heads)}


def with_cap(size: Size) -> dict[str, Any]:
    """Return a decoder with a cap."""
    return plain(size) | {"cap": 2.0}


def with_alibi(size: Size) -> dict[str, Any]:
    """Return a decoder with a bias by distance."""
    return plain(size) | {"bias": alibi(size)}


MISTRAL, GPT_OSS = config("mistral", sliding_window=5), config("gpt_oss")


def absorb(arrays, size):
    """Hand over queries that took up a projection of keys, which all heads share."""
    rng = np.random.default_rng(11)
    wide = 4 * size.d_k
    q, k = arrays["q"], arrays["k"]
    key_heads = k.shape[2]
    # keys of all heads in one vector, and queries that are 0 where other heads' are
    joined = k.swapaxes(2, 3).reshape(*k.shape[:2], 1, k.shape[3], -1)
    padded = np.zeros((*q.shape[:-1], key_heads, size.d_k))
    for head in range(q.shape[2]):
        padded[:, :, head, :, head * key_heads // q.shape[2]] = q[:, :, head]
    padded = padded.reshape(*q.shape[:-1], -1)
    turned = np.linalg.qr(rng.normal(size=(max(wide, padded.shape[-1]),) * 2))[0]
    turned = turned[: padded.shape[-1]]
    return arrays | {"q": padded @ turned, "k": joined @ turned}


def attend(q, k, v, size):
    """Return arrays of a plain model; heads of keys are repeated."""
    keys, values = (
        np.repeat(one, q.shape[2] // one.shape[2], axis=2) for one in (k, v)
    )
    scores = q @ keys.swapaxes(-1, -2) / size.root
    weights = np.exp(scores - logsumexp(scores, axis=-1, keepdims=True))
    made = {"q": q, "k": k, "v": v, "weights": weights, "outputs": weights @ values}
    return made | {"added": np.zeros_like(weights)}


def like(arrays, made):
    """Return those of some arrays that others have."""
    return {name: made[name] for name in arrays}


def swap(arrays, size):
    """Hand over tokens as heads."""
    q, k = arrays["q"], arrays["k"]
    v = arrays.get("v", k)
    k, v = (np.repeat(one, q.shape[2] // one.shape[2], axis=2) for one in (k, v))
    made = attend(*(one.swapaxes(2, 3) for one in (q, k, v)), size)
    return like(arrays, made)


def repeat_tokens(arrays, size):
    """Repeat keys along tokens in place of heads."""
    k, v = (np.repeat(arrays.get(n, arrays["k"]), 2, axis=-2) for n in "kv")
    return like(arrays, attend(arrays["q"], k, v, size))


def large(arrays, _):
    """Let scores of one layer be more than float16 holds."""
    nearest = NUMBER_FORMATS["float16"].round
    changed = {name: one.copy() for name, one in arrays.items()}
    for name in "qk":
        changed[name][:, 1] = nearest(nearest(changed[name])[:, 1] * 300.0)
    return changed


def overflow(arrays, size):
    """Let the port lose them."""
    changed = large(arrays, size)
    changed["weights" if "weights" in changed else "outputs"][:, 1, :, -1] = np.nan
    return changed


#: Sequences of 5 and 7 tokens in one, and positions that begin again in each.
PACKED = (
    np.repeat(np.arange(40), [5, 7] * 20),
    np.concatenate([*map(np.arange, [5, 7])] * 20),
)


def within(size: Size) -> np.ndarray:
    """Return which pairs are hidden within packed sequences."""
    number = PACKED[0][: size.tokens]
    return causal(size) | (number[:, None] != number)


def rotated(*before: Change, **more: Any) -> Options:
    """Return options of rotary embeddings after other changes of queries and keys."""
    return always(before=[*before, turned(**({"base": 1e4} | more))])


#: Ports of a decoder that scale otherwise: by what, and what is said of it.
SCALES = {
    "llama.cpp PR 14892: not scaled": (lambda s: 1.0, r"\b1\b"),
    "burn-onnx PR 453: scaled twice": (lambda s: 1.0 / s.d_k, "again"),
    "TensorRT 4351: fourth root on one side": (lambda s: s.d_k**-0.25, r"d_k\^\(1"),
    "unilm 1666: differential by sqrt(32)": (lambda s: 32**-0.5, r"0\.17[67]"),
    "minRF 10: 1/d": (lambda s: 1.0 / s.d_k, "d_k"),
    "jaxgarden PR 36: times the scalar": (lambda s: s.root, r"sqrt\(d_k\)"),
    "Megatron PR 848: factor of layers left in": (
        lambda s: lambda layer: 1.0 / s.root / (layer + 1),
        "by layer: divided by the layer's number",
    ),
}
#: Rotary embeddings of a port beside those of its reference, and what is said.
ROTATIONS = {
    "another base": ({"base": 5e5}, "with base 500000, the reference with base 10000"),
    "backwards": ({"sign": -1}, "backwards, the reference forwards"),
    "part of the entries": (
        {"part": 0.5},
        r"(4|8|32) of (8|16|64) entries, the reference (8|16|64) of",
    ),
    "pairs of neighbours": (
        {"order": "C"},
        "pairs of neighbours, the reference pairs of halves",
    ),
}
#: Slopes of ALiBi: those of other heads, and of another formula.
SLOPES = {
    "ALiBi in another order": (
        lambda s: 2.0 ** -np.arange(s.heads, 0, -1),
        "-0.0.*, -0.5.*, the reference -0.5, -0.25, .*: those of other heads",
    ),
    "ALiBi by another formula": (
        lambda s: 2.0 ** (-0.5 * np.arange(1, s.heads + 1)),
        "-0.707, -0.5, .*, the reference -0.5, -0.25",
    ),
}
#: What else porters get wrong: options of the reference and of the port, and the words.
OTHERS = {
    "rotation missing": (
        rotated(),
        always(before=[]),
        "not at all, the reference with base 10000",
    ),
    "a base of no public model": (
        rotated(),
        rotated(base=2.5e4),
        "another base, scaling or precision of the rotation",
    ),
    "rotated twice": (
        rotated(),
        rotated(turned(1e4)),
        "with base 10000, the reference not at all; or the port does twice",
    ),
    "exponents over d_k": (
        rotated(part=0.5),
        rotated(part=0.5, over=1.0),
        "exponents over d_k, .* the reference .* exponents over the rotated width",
    ),
    "positions of packed sequences": (
        lambda s: {"before": [turned(1e4, positions=PACKED[1][: s.tokens])]},
        rotated(),
        "other positions, farther on by .*0 from position 0, 5 from position 5",
    ),
    "linear scaling": (
        rotated(),
        lambda s: {"before": [turned(1e4, positions=np.arange(s.tokens) / 2.0)]},
        "as of positions divided by 2",
    ),
    "gain of w for 1 + w": (
        rotated(normed(gain=0.3)),
        rotated(normed(gain=0.3, one=0.0)),
        "multiplies entries of q.* as a norm's gain does, by a factor",
    ),
    "another eps": (
        rotated(normed()),
        rotated(normed(eps=0.1)),
        r"normalises (q|k|q and k) with another eps: 0\.[89]",
    ),
    "clamp missing": (
        rotated(lambda x: x.clip(-1.5, 1.5)),
        rotated(),
        r"does not clamp q and k at 1\.5\d*, as the reference does",
    ),
    "window missing beside small weights": (
        lambda s: {"hidden": causal(s, 5), "scale": 3.0 / s.root},
        lambda s: {"hidden": causal(s), "scale": 3.0 / s.root},
        "a causal mask where the reference has .* a window of 5 keys",
    ),
    "bias of q and k missing": (
        rotated(lambda x: x + np.cos(np.arange(x.shape[-1]))),
        rotated(),
        "lacks a bias of q and k",
    ),
    "norm of each head": (
        rotated(normed((1, 3), 0.5)),
        rotated(normed(gain=0.5)),
        "of each head, the reference over all heads",
    ),
    "norm of all heads": (
        rotated(normed(gain=0.5)),
        rotated(normed((1, 3), 0.5)),
        "over all heads, the reference of each head",
    ),
    "first key head for all": (
        always(),
        always(met=lambda head: 0 * head),
        "key head 0.* where the reference attends to .*1",
    ),
    "segments missing": (
        lambda s: {"hidden": within(s)},
        plain,
        "has zeros that are no common mask: 0 pairs more are hidden, [0-9]+ fewer",
    ),
    "position bias transposed": (
        lambda s: {"bias": positions_bias(s), "hidden": np.zeros((1, 1), bool)},
        lambda s: {"bias": positions_bias(s).swapaxes(1, 2)},
        "another bias by relative position",
    ),
    "sink of one head for all": (
        with_sink,
        always(sink=0.5),
        "sink logit 0.5.*, the reference (1|0.[789])",
    ),
    "logits by the logarithm of n": (
        always(),
        lambda s: {"q_factor": 1.0 + np.log1p(np.arange(s.tokens))[:, None]},
        r"q by a factor by position: [01.]\S* at position 0, 2\.\d+ at position",
    ),
}
#: By name: a decoder whose port has another scale, and other faults.
THREADS = {
    name: Thread(plain, lambda s, scale=scale: {"scale": scale(s)}, ("scale", said))
    for name, (scale, said) in SCALES.items()
} | {
    "nntile PR 356: T5 scaled": Thread(
        lambda s: {"scale": 1.0, "bias": positions_bias(s)},
        lambda s: {"scale": 1.0 / s.root},
        ("scale", r"reference has 1\b"),
        lambda s: {"model_type": "t5", "d_kv": s.d_k},
    ),
    "M3D 52: exp of the learned scale forgotten": Thread(
        lambda s: {"before": [normed()], "scale": np.exp(learned(s)) / s.d_k},
        lambda s: {"scale": learned(s) / s.d_k},
        ("scale", "times"),
        None,
    ),
    "llm-foundry PR 1793: temperature dropped": Thread(
        lambda s: plain(s) | {"q_factor": temperature(s)},
        always(q_factor=1.0),
        (r"\bq\b", "factor by position: 1 from position 0, 0.82"),
        None,
    ),
    "ollama PR 13893: MLA by the absorbed width": Thread(
        plain,
        lambda s: {"scale": (4 * s.d_k) ** -0.5},
        ("scale", r"0\.50* ?"),
        lambda s: s.root,
        change=absorb,
    ),
    "vLLM PR 31175: scale of v missing": Thread(
        lambda s: plain(s) | {"v_factor": 0.3},
        always(v_factor=1.0),
        (r"\bv\b", r"3\.33"),
        None,
        evidence="outputs",
    ),
    "onnx 7865: cap after the mask": Thread(
        with_cap, always(cap_last=True), ("cap", "after the mask"), gemma
    ),
    "vllm-metal 665: cap missing": Thread(
        with_cap, always(cap=None), ("cap", r"\b2\b"), gemma
    ),
    "tt-metal PR 42891: bias scaled, too": Thread(
        lambda s: plain(s) | {"bias": positions_bias(s)},
        always(bias_scaled=True),
        ("bias", r"times|scaled"),
    ),
    "attention-gym PR 86: sign of ALiBi": Thread(
        with_alibi,
        lambda s: {"bias": -alibi(s)},
        ("bias", "sign"),
        lambda s: (
            {"model_type": "bloom", "hidden_size": s.heads * s.d_k}
            | {"n_head": s.heads}
        ),
    ),
    "rocm-libraries PR 12229: sink missing": Thread(
        with_sink, always(sink=-np.inf), ("sink", "missing|no sink"), GPT_OSS
    ),
    "rocm-libraries PR 12229: sink twice": Thread(
        with_sink, always(times=2), ("sink", "twice"), GPT_OSS
    ),
    "rocm-libraries PR 12229: sink scaled": Thread(
        with_sink,
        lambda s: {"sink": np.linspace(0.5, 2.0, s.heads) / s.root},
        ("sink", "scales"),
        GPT_OSS,
    ),
    "timm PR 2236: mask after softmax": Thread(
        plain, always(mask_after=True), ("mask", "after softmax"), config("vit")
    ),
    "tabfm PR 40: mask of the first row": Thread(
        lambda s: {
            "hidden": np.arange(s.tokens) % 3 > np.arange(s.tokens)[:, None] % 4
        },
        always(first_row=True),
        ("mask", "row"),
    ),
    "mlx-lm PR 390: window one too long": Thread(
        lambda s: {"hidden": causal(s, 5)},
        lambda s: {"hidden": causal(s, 6)},
        ("6", "5", "window|keys back", "1 too long"),
        MISTRAL,
    ),
    "mlx-vlm PR 669: window missing": Thread(
        lambda s: {"hidden": causal(s, 5)}, plain, ("5", "window|keys back"), MISTRAL
    ),
    "labml 282: softmax over queries": Thread(
        always(), always(axis=-2), ("softmax", "queries")
    ),
    "onnx PR 7274, jax-js PR 180: key heads tiled": Thread(
        plain,
        lambda s: {"met": lambda head: head % s.key_heads},
        ("key heads", "interleaved"),
    ),
    "mlx 3585: heads and tokens swapped": Thread(
        always(), always(), ("heads and tokens", "swapped"), change=swap
    ),
    "prime-rl PR 2681: keys repeated along tokens": Thread(
        always(), always(), ("keys", "repeated"), change=repeat_tokens
    ),
    "Swin 373: normalised over tokens": Thread(
        always(before=[normed()]), always(before=[normed(-2)]), ("normalise", "tokens")
    ),
    "vllm-metal 660: rotation before the norm": Thread(
        lambda s: plain(s) | rotated(normed(gain=0.5))(s),
        always(before=[turned(1e4), normed(gain=0.5)]),
        ("norm", "rotation", "order|before|after"),
    ),
    "vllm-metal 659: norm skipped": Thread(
        lambda s: plain(s) | rotated(normed())(s), rotated(), ("normalise",)
    ),
    **{
        name: Thread(
            lambda s: plain(s) | rotated()(s), rotated(**way), ("rotary", said), None
        )
        for name, (way, said) in ROTATIONS.items()
    },
    **{
        name: Thread(
            with_alibi,
            lambda s, slopes=slopes: {"bias": alibi(s, slopes(s))},
            ("another slope", said),
            None,
        )
        for name, (slopes, said) in SLOPES.items()
    },
    **{
        name: Thread(
            lambda s, options=options: plain(s) | options(s), port, (said,), None
        )
        for name, (options, port, said) in OTHERS.items()
    },
    "tinygrad PR 4985: overflow in float16": Thread(
        plain,
        always(),
        ("finite", "layer 1", "65504|65,504", "scores"),
        change=overflow,
        change_reference=large,
    ),
}

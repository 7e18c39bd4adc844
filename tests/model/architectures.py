"""Architectures of transformers as tiny random models, and what they divide by.

The divisors are written by hand from what the sources of each architecture say, for the
sizes below: a head of 16, 4 heads, a width of 64.
"""

import math
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field

from montecarlo import capture
from tests.model.needed import need_torch

torch, transformers = need_torch()
AttentionInterface = transformers.modeling_utils.AttentionInterface

SEQUENCES, TOKENS, WORDS, IMAGE = 2, 32, 100, 48
D_K, HEADS, WIDTH, LAYERS = 16, 4, 64, 2
#: Whatever a configuration calls it: fields that it does not have are left out.
SIZES = {
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "dim"), WIDTH),
    **dict.fromkeys(("embedding_size", "word_embed_proj_dim"), WIDTH),
    **dict.fromkeys(("num_attention_heads", "n_head", "num_heads", "n_heads"), HEADS),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), HEADS),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers"), LAYERS),
    **dict.fromkeys(("encoder_layers", "decoder_layers"), 1),
    **dict.fromkeys(("num_layers", "num_decoder_layers"), 1),
    **dict.fromkeys(("head_dim", "d_kv"), D_K),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "d_ff", "hidden_dim"), 48),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim", "n_inner"), 48),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 24),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), 64),
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input"), WORDS),
    "num_key_value_heads": 2,
    "num_experts_per_tok": 2,
    "hidden_size_per_layer_input": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "image_size": IMAGE,
    "patch_size": 8,
}
#: Entries that make scores differ by about 1 and more: those of a model that was just
#: made are too small for what bfloat16 leaves of them.
GAIN = 4.0
MLA = {"q_lora_rank": 24, "kv_lora_rank": 16, "v_head_dim": 12, "head_dim": 8}
MLA |= {"qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "num_key_value_heads": HEADS}
MLA |= {"n_group": 1, "topk_group": 1, "first_k_dense_replace": 1}
YARN = {"rope_type": "yarn", "factor": 40.0, "rope_theta": 1e4}
YARN |= {"original_max_position_embeddings": 16}
#: 0.1 ln(40) + 1
MSCALE = 1.3688879454


@dataclass(frozen=True)
class Architecture:
    """A tiny model.

    Attributes
    ----------
    divisor : float
        That queries and keys are divided by, as they are projected.
    more : dict
        Fields of its configuration beside `SIZES`.
    by_layer : tuple of float
        Divisors of its layers, where they differ.
    kind : str
        Its ``model_type``, where that is not what it is called here.
    plants : dict
        Factors that are planted beside the usual ones, by their names.
    """

    divisor: float = math.sqrt(D_K)
    more: dict = field(default_factory=dict)
    by_layer: tuple = ()
    kind: str = ""
    plants: dict = field(default_factory=dict)


PLAIN = Architecture()
ARCHITECTURES = {
    # decoders
    **dict.fromkeys(("llama", "mistral", "mixtral", "qwen2", "qwen3"), PLAIN),
    **dict.fromkeys(("qwen2_moe", "qwen3_moe", "gemma", "phi", "phi3"), PLAIN),
    **dict.fromkeys(("cohere", "cohere2", "olmo", "olmo2", "olmo3", "olmoe"), PLAIN),
    **dict.fromkeys(("stablelm", "starcoder2", "glm", "glm4", "helium"), PLAIN),
    **dict.fromkeys(("nemotron", "persimmon", "smollm3", "ernie4_5"), PLAIN),
    **dict.fromkeys(("gpt_neox", "biogpt", "gpt_oss", "llama4_text"), PLAIN),
    # entries that are cut off: their lengths say nothing
    "olmo-clip": Architecture(more={"clip_qkv": 1.0}, kind="olmo"),
    # windows and chunks
    "mistral-window": Architecture(more={"sliding_window": 12}, kind="mistral"),
    "llama4-chunk": Architecture(
        more={"attention_chunk_size": 12, "layer_types": ["chunked_attention"] * 2},
        kind="llama4_text",
    ),
    "gpt2": PLAIN,
    "gpt2-unscaled": Architecture(1.0, {"scale_attn_weights": False}, kind="gpt2"),
    "gpt2-by-layer": Architecture(
        by_layer=(4.0, 8.0), more={"scale_attn_by_inverse_layer_idx": True}, kind="gpt2"
    ),
    "gpt_bigcode": PLAIN,
    "opt": PLAIN,
    "llama-head_dim": Architecture(math.sqrt(20), {"head_dim": 20}, kind="llama"),
    "llama-yarn": Architecture(4.0, {"rope_parameters": YARN}, kind="llama"),
    "gemma2": Architecture(math.sqrt(20), {"query_pre_attn_scalar": 20}),
    "gemma3_text": Architecture(math.sqrt(24), {"query_pre_attn_scalar": 24}),
    "gemma3-window": Architecture(
        math.sqrt(24),
        {
            "query_pre_attn_scalar": 24,
            "sliding_window": 12,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        kind="gemma3_text",
    ),
    # heads of another width in its second layer
    "gemma4_text": Architecture(
        1.0,
        {
            "layer_types": ["sliding_attention", "full_attention"],
            "per_layer_config": {"1": {"head_dim": 32}},
        },
    ),
    "granite": Architecture(1 / 0.15, {"attention_multiplier": 0.15}),
    "granitemoe": Architecture(1 / 0.15, {"attention_multiplier": 0.15}),
    "deepseek_v2": Architecture(math.sqrt(20), MLA),
    "deepseek_v3": Architecture(
        math.sqrt(20) / MSCALE**2,
        MLA | {"rope_parameters": YARN | {"mscale": 1.0, "mscale_all_dim": 1.0}},
        plants={"mscale": 1 / MSCALE**2, "mscale once": 1 / MSCALE},
    ),
    "minicpm3": Architecture(math.sqrt(20), MLA),
    # encoders
    **dict.fromkeys(("bert", "roberta", "electra", "albert", "camembert"), PLAIN),
    **dict.fromkeys(("xlm-roberta", "modernbert", "esm"), PLAIN),
    # without a function of transformers for attention
    **dict.fromkeys(("bloom", "mpnet", "falcon"), PLAIN),
    "gpt_neo": Architecture(1.0, {"attention_types": [[["global"], 1]]}),
    # encoders and decoders
    **dict.fromkeys(("bart", "mbart", "pegasus", "blenderbot"), PLAIN),
    "t5": Architecture(1.0),
    "mt5": Architecture(1.0),
    "whisper": Architecture(more={"num_mel_bins": 8, "max_source_positions": 32}),
    # of images
    **dict.fromkeys(("vit", "deit", "dinov2", "clip_vision_model"), PLAIN),
}
#: Those that compute attention by themselves, and so have no function to plant in.
WRITTEN_OUT = ("bloom", "falcon", "gpt_neo", "mpnet")
#: Those that multiply queries before attention, which then divides by 1.
BEFORE = ("opt", "esm", "whisper")


def build(name, implementation="eager", kind=torch.float32, seed=0, **more):
    """Return a model, of which ``more`` is configured, and inputs for it."""
    one = ARCHITECTURES[name]
    made_by = transformers.CONFIG_MAPPING[one.kind or name]
    default = made_by().to_dict()
    sizes = {n: size for n, size in SIZES.items() if n in default}
    for n in ("layer_types", "mlp_layer_types"):
        if isinstance(default.get(n), list):
            sizes[n] = default[n][:LAYERS]
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = transformers.AutoModel.from_config(
            made_by(**(sizes | one.more | more))
        ).eval()
    model.set_attn_implementation(implementation)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim >= 2:
                parameter.mul_(GAIN)
    return model.to(kind), inputs_of(name, model, kind)


def inputs_of(name, model, kind):
    """Return random inputs."""
    ids = torch.randint(3, WORDS, (SEQUENCES, TOKENS))
    if name == "whisper":
        features = torch.randn(SEQUENCES, 8, 2 * TOKENS).to(kind)
        return {"input_features": features, "decoder_input_ids": ids}
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.randn(SEQUENCES, 3, IMAGE, IMAGE).to(kind)}
    if model.config.is_encoder_decoder:
        return {"input_ids": ids, "decoder_input_ids": ids}
    return {"input_ids": ids}


def record(model, inputs):
    """Capture a model; returns what was captured, and what it gave out."""
    with torch.no_grad(), capture(model) as captured:
        made = model(**inputs)
    return captured, made.last_hidden_state


@contextmanager
def planted_in_attention(factor):
    """Multiply the scale within the attention function, as a kernel's bug would."""
    handed_out = AttentionInterface.get_interface

    def get_interface(interface, implementation, default):
        attend = handed_out(interface, implementation, default)

        def wrong(module, query, *more, scaling=None, **options):
            right = query.shape[-1] ** -0.5 if scaling is None else scaling
            return attend(module, query, *more, scaling=factor * right, **options)

        return wrong

    AttentionInterface.get_interface = get_interface
    try:
        yield
    finally:
        AttentionInterface.get_interface = handed_out


def planted_in_modules(model, factor):
    """Multiply what modules hold as their scale, as a port's bug would."""
    for module in model.modules():
        for name in ("scaling", "scale", "softmax_scale"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, factor * getattr(module, name))


def plants_of(name):
    """Return factors of the scale, by what is wrong; none that changes nothing."""
    one = ARCHITECTURES[name]
    factors = {
        "7 %": 1.07,
        "double": 2.0,
        "twice": 1.0 / one.divisor,
        "missing": one.divisor,
        "heads for width": one.divisor / math.sqrt(HEADS),
        "width of the model": one.divisor / math.sqrt(WIDTH),
        **one.plants,
    }
    return {what: by for what, by in factors.items() if abs(by - 1.0) > 0.02}

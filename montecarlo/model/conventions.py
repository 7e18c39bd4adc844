"""How architectures of transformers scale their scores: data, a line for each way.

Read from their sources (version 5.24).  An architecture that is not here is not known.
"""

from typing import NamedTuple


class Convention(NamedTuple):
    """How an architecture scales its scores."""

    #: How the divisor follows: a key of `montecarlo.model.expected.RULES`.
    rule: str = "sqrt"
    #: Fields that add up to the width of a head; none for the usual ones.
    width: tuple[str, ...] = ()
    factor: float = 1.0  # of that width
    is_before: bool = False  # queries are multiplied; attention itself divides by 1
    #: Nothing but a scale and rotations is applied to queries between their projection,
    #: or the normalisation of heads, and attention.
    is_seen: bool = True


_MLA = ("qk_nope_head_dim", "qk_rope_head_dim")
#: Each way, and the ``model_type`` of the architectures that have it.
_WAYS = (
    (
        Convention(),
        """
        afmoe albert apertus apertus1p5_text arcee aria_text
        audio-spectrogram-transformer bamba bart beit bert bert-generation biogpt bitnet
        blenderbot blenderbot-small bloom camembert clip_text_model clip_vision_model
        codegen cohere cohere2 cohere2_moe csm cwm data2vec-text deit dinov2
        dinov2_with_registers dinov3_vit distilbert doge dots1 dpt electra
        emu3_text_model ernie ernie4_5 ernie4_5_moe eurobert exaone4 exaone_moe falcon
        flex_olmo gemma glm glm4 glm4_moe gpt_neox gpt_oss gptj gte helium hubert
        hunyuan_v1_dense hunyuan_v1_moe hy_v3 ijepa jais2 jamba jina_embeddings_v3
        layoutlm lfm2 lfm2_moe llama m2m_100 marian mbart minimax_m2 ministral mistral
        mixtral modernbert modernbert-decoder mpnet nanochat nemotron nllb-moe olmo
        olmo2 olmo3 olmoe pegasus persimmon phi phi3 phimoe plbart qwen2 qwen2_moe
        qwen2_vl_text qwen3 qwen3_moe qwen3_next qwen3_vl_text recurrent_gemma roberta
        roberta-prelayernorm roc_bert seed_oss siglip_text_model siglip_vision_model
        smollm3 solar_open splinter stablelm starcoder2 videomae vit vit_mae vit_msn
        wav2vec2 xlm-roberta xlm-roberta-xl xmod
        """,
    ),
    (Convention(width=("kv_channels",)), "jetmoe"),
    (Convention(width=("attention_head_dim",), factor=0.5), "zamba"),
    # adapters are added to queries
    (Convention(width=("attention_head_dim",), factor=0.5, is_seen=False), "zamba2"),
    # queries are multiplied by a temperature of their position, or keys by a field
    (Convention(is_seen=False), "falcon_h1 llama4_text ministral3"),
    (
        Convention(is_before=True),
        """
        audioflamingo3_encoder esm kosmos_2_5_text_model opt qwen2_audio_encoder
        voxtral_encoder whisper
        """,
    ),
    (
        Convention("query_pre_attn_scalar"),
        "gemma2 gemma3_text t5_gemma_module vaultgemma",
    ),
    (
        Convention("attention_multiplier"),
        """
        granite granite_swa granitemoe granitemoe_swa granitemoehybrid granitemoeshared
        hyperclovax
        """,
    ),
    (Convention("scale_attn_weights"), "decision_transformer gpt2 gpt_bigcode"),
    (
        Convention("none", width=("d_kv",)),
        "longt5 mt5 pop2piano switch_transformers t5 udop umt5",
    ),
    (Convention("none"), "gemma3n_text gemma4_text gpt_neo"),
    (
        Convention("mscale", width=_MLA),
        "deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe_lite minicpm3 youtu",
    ),
    (Convention(width=_MLA), "kimi_linear"),
)
CONVENTIONS = {
    kind: convention for convention, kinds in _WAYS for kind in kinds.split()
}

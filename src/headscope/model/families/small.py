"""The families that headscope vouches for, each as a small network with random weights.

`headscope doctor --all` and the tests run every one of them. The settings bring out what is peculiar to a
family: local and global layers, sliding windows and sparse choices shorter than a text, grouped keys, shared layers,
layers without attention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["encoder", "decoder", "encoder-decoder", "vision", "two towers", "sound"]


@dataclass(frozen=True)
class Family:
    """name: as people write it; config, settings: the configuration class of transformers and its arguments.

    network: the class of transformers, where it is not the one that AutoModel takes.
    """

    name: str
    kind: Kind
    config: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    refused: bool = False
    network: str = "AutoModel"

    @property
    def known(self) -> bool:
        """Whether the transformers at hand has it: some families are younger than the oldest that headscope takes."""
        import transformers

        return hasattr(transformers, self.config)

    @property
    def stacks(self) -> tuple[str | None, ...]:
        """What `Capture` can be asked for."""
        if self.kind == "encoder-decoder":
            return ("decoder", "cross") if self.refused else ("encoder", "decoder", "cross")
        if self.kind == "two towers":
            return ("text", "vision")
        return ("encoder",) if self.kind == "sound" else (None,)


VOCABULARY = 96
LONGEST = 64
_PLAIN = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": LONGEST,
}
_GROUPED = _PLAIN | {"num_key_value_heads": 2, "head_dim": 8}
_SLIDING = _GROUPED | {"sliding_window": 4}
_GPT2 = {"n_embd": 32, "n_layer": 3, "n_head": 4, "vocab_size": VOCABULARY, "n_positions": LONGEST}
_TWO = {
    "d_model": 32,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": LONGEST,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
_MARKS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
_MODERN = _MARKS | {"local_attention": 4, "global_attn_every_n_layers": 2}
_DISENTANGLED = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8}
_EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
_DISTIL = {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48, "vocab_size": VOCABULARY}
_BLOOM = {"hidden_size": 32, "n_layer": 3, "n_head": 4, "vocab_size": VOCABULARY}
_MPT = {"d_model": 32, "n_layers": 3, "n_heads": 4, "vocab_size": VOCABULARY}
_T5 = {
    "d_model": 32,
    "d_kv": 8,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "d_ff": 48,
    "vocab_size": VOCABULARY,
    "decoder_start_token_id": 0,
}
_IMAGES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
_PATCHES = _IMAGES | {"intermediate_size": 48, "image_size": 32, "patch_size": 8}
_NEO = {
    "hidden_size": 32,
    "num_layers": 4,
    "num_heads": 4,
    "attention_types": [[["global", "local"], 2]],
    "window_size": 4,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": LONGEST,
}
_XGLM = {"d_model": 32, "num_layers": 3, "attention_heads": 4, "ffn_dim": 48, "vocab_size": VOCABULARY}
_XLM = {"emb_dim": 32, "n_layers": 3, "n_heads": 4, "n_words": VOCABULARY, "max_position_embeddings": LONGEST}
_LUKE = {"entity_vocab_size": 8, "entity_emb_size": 16}
_ROUTED = {"moe_intermediate_size": 16, "num_experts_per_tok": 2}
_LATENT = _ROUTED | {
    "n_routed_experts": 4,
    "n_group": 1,
    "topk_group": 1,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "num_key_value_heads": 4,
}
_SPARSE = _PLAIN | _LATENT | {"index_topk": 4, "index_n_heads": 4, "index_head_dim": 16}
_ALTERNATING = {"num_hidden_layers": 4, "layer_types": ["linear_attention", "full_attention"] * 2}
_LINEAR = {
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
_MAMBA_HEADS = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_n_groups": 1}
_AMONG_LINEAR = _GROUPED | _ALTERNATING | _LINEAR
_QWEN3_NEXT = _AMONG_LINEAR | _ROUTED | {"num_experts": 4, "shared_expert_intermediate_size": 16}
_AFMOE = _SLIDING | _ROUTED | {"num_experts": 4, "global_attn_every_n_layers": 2}
_LAGUNA = (
    _SLIDING
    | _ROUTED
    | {
        "num_experts": 4,
        "shared_expert_intermediate_size": 16,
        "layer_types": ["full_attention", "sliding_attention", "full_attention"],
        "mlp_layer_types": ["dense", "sparse", "sparse"],
    }
)
_HRM = _PLAIN | {"num_hidden_layers": 1, "head_dim": 8}
_GEMMA4 = _SLIDING | {
    "layer_types": ["sliding_attention", "full_attention", "full_attention"],
    "global_head_dim": 16,
    "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": VOCABULARY,
}
_LFM2 = _PLAIN | {"num_key_value_heads": 2, "layer_types": ["conv", "full_attention", "conv"]}
_JAMBA = _PLAIN | {
    "num_hidden_layers": 4,
    "num_key_value_heads": 2,
    "num_experts": 4,
    "mamba_d_state": 8,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "use_mamba_kernels": False,
}
_BAMBA = _PLAIN | _MAMBA_HEADS | {"num_hidden_layers": 4, "num_key_value_heads": 2, "attn_layer_indices": [1, 3]}
_ZAMBA2 = _PLAIN | {
    "num_hidden_layers": 4,
    "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"],
    "mamba_d_state": 8,
    "mamba_ngroups": 1,
    "n_mamba_heads": 8,
    "mamba_headdim": 8,
    "num_mem_blocks": 1,
}
_GRANITE = (
    _PLAIN
    | _MAMBA_HEADS
    | _EXPERTS
    | {
        "num_key_value_heads": 2,
        "layer_types": ["mamba", "attention", "mamba"],
        "shared_intermediate_size": 16,
    }
)
_NEMOTRON_H = _GROUPED | {
    "num_hidden_layers": 4,
    "layers_block_type": ["mamba", "attention", "mlp", "attention"],
    "mamba_num_heads": 8,
    "mamba_head_dim": 8,
    "ssm_state_size": 8,
    "n_groups": 1,
}
_YOLOS = _IMAGES | {"intermediate_size": 48, "image_size": [32, 32], "patch_size": 8, "num_detection_tokens": 4}
_TOWERS = {"text_config": _PLAIN | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}, "vision_config": _PATCHES}
_COMPRESSED = _SPARSE | {
    "num_hidden_layers": 4,
    "sliding_window": 4,
    "layer_types": ["compressed_sparse_attention", "heavily_compressed_attention"] * 2,
    "mlp_layer_types": ["hash_moe"] * 3 + ["moe"],
}
_MERGED = _SLIDING | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_T5GEMMA2 = {"encoder": {"text_config": _MERGED, "vision_config": _PATCHES}, "decoder": _MERGED}
_XLNET = {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48, "vocab_size": VOCABULARY}
_SWIN = {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4}
_MAMBA = {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": VOCABULARY}

FAMILIES: tuple[Family, ...] = (
    Family("BERT", "encoder", "BertConfig", _PLAIN),
    Family("RoBERTa", "encoder", "RobertaConfig", _PLAIN),
    Family("XLM-RoBERTa", "encoder", "XLMRobertaConfig", _PLAIN),
    Family("DistilBERT", "encoder", "DistilBertConfig", _DISTIL),
    Family("ELECTRA", "encoder", "ElectraConfig", _PLAIN | {"embedding_size": 16}),
    Family("ALBERT", "encoder", "AlbertConfig", _PLAIN | {"embedding_size": 16}),
    Family("ModernBERT", "encoder", "ModernBertConfig", _PLAIN | _MODERN),
    Family("MPNet", "encoder", "MPNetConfig", _PLAIN),
    Family("DeBERTa-v2", "encoder", "DebertaV2Config", _PLAIN | _DISENTANGLED),
    Family(
        "DeBERTa", "encoder", "DebertaConfig", _PLAIN | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
    ),
    Family("MegatronBERT", "encoder", "MegatronBertConfig", _PLAIN),
    Family("RemBERT", "encoder", "RemBertConfig", _PLAIN | {"input_embedding_size": 16}),
    Family("RoFormer", "encoder", "RoFormerConfig", _PLAIN | {"embedding_size": 16}),
    Family("LUKE", "encoder", "LukeConfig", _PLAIN | _LUKE),
    Family("XLM", "encoder", "XLMConfig", _XLM),
    Family("TAPAS", "encoder", "TapasConfig", _PLAIN),
    Family("DPR", "encoder", "DPRConfig", _PLAIN),
    Family("T5's encoder", "encoder", "T5Config", _T5, network="T5EncoderModel"),
    Family("GPT-2", "decoder", "GPT2Config", _GPT2),
    Family("GPT-Neo", "decoder", "GPTNeoConfig", _NEO),
    Family("GPT-NeoX", "decoder", "GPTNeoXConfig", _PLAIN),
    Family("GPT-J", "decoder", "GPTJConfig", _GPT2 | {"rotary_dim": 4}),
    Family("CodeGen", "decoder", "CodeGenConfig", _GPT2 | {"rotary_dim": 4}),
    Family("XGLM", "decoder", "XGLMConfig", _XGLM),
    Family("OPT", "decoder", "OPTConfig", _PLAIN | {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    Family("BLOOM", "decoder", "BloomConfig", _BLOOM),
    Family("MPT", "decoder", "MptConfig", _MPT),
    Family("Falcon", "decoder", "FalconConfig", _PLAIN | {"multi_query": True}),
    Family("Phi", "decoder", "PhiConfig", _PLAIN),
    Family("Llama", "decoder", "LlamaConfig", _PLAIN | {"num_key_value_heads": 2}),
    Family("Mistral", "decoder", "MistralConfig", _PLAIN | {"num_key_value_heads": 2, "sliding_window": 4}),
    Family("Qwen3", "decoder", "Qwen3Config", _GROUPED | {"head_dim": 16}),
    Family("Gemma 2", "decoder", "Gemma2Config", _SLIDING | {"attn_logit_softcapping": 5.0}),
    Family("Gemma 3", "decoder", "Gemma3TextConfig", _SLIDING | {"sliding_window_pattern": 2}),
    Family("Gemma 4", "decoder", "Gemma4TextConfig", _GEMMA4),
    Family("StableLM", "decoder", "StableLmConfig", _PLAIN | {"num_key_value_heads": 2}),
    Family("Nemotron", "decoder", "NemotronConfig", _GROUPED),
    Family("BitNet", "decoder", "BitNetConfig", _PLAIN | {"num_key_value_heads": 2}),
    Family("AFMoE", "decoder", "AfmoeConfig", _AFMOE),
    Family("Laguna", "decoder", "LagunaConfig", _LAGUNA),
    Family("HRM-text", "decoder", "HrmTextConfig", _HRM),
    Family("DeepSeek-V3.2", "decoder", "DeepseekV32Config", _SPARSE),
    Family("GLM-MoE-DSA", "decoder", "GlmMoeDsaConfig", _SPARSE),
    Family("GPT-OSS", "decoder", "GptOssConfig", _SLIDING | _EXPERTS),
    Family("Qwen3-Next", "decoder", "Qwen3NextConfig", _QWEN3_NEXT),
    Family("Qwen3.5", "decoder", "Qwen3_5TextConfig", _AMONG_LINEAR),
    Family("LFM2", "decoder", "Lfm2Config", _LFM2),
    Family("Jamba", "decoder", "JambaConfig", _JAMBA),
    Family("Bamba", "decoder", "BambaConfig", _BAMBA),
    Family("Zamba2", "decoder", "Zamba2Config", _ZAMBA2),
    Family("Granite hybrid", "decoder", "GraniteMoeHybridConfig", _GRANITE),
    Family("Nemotron-H", "decoder", "NemotronHConfig", _NEMOTRON_H),
    Family("T5", "encoder-decoder", "T5Config", _T5),
    Family("BART", "encoder-decoder", "BartConfig", _TWO),
    Family("Marian", "encoder-decoder", "MarianConfig", _TWO),
    Family("Whisper", "sound", "WhisperConfig", _TWO | {"num_mel_bins": 8, "max_source_positions": 12}),
    Family("ViT", "vision", "ViTConfig", _PATCHES),
    Family("YOLOS", "vision", "YolosConfig", _YOLOS),
    Family("AIMv2", "vision", "Aimv2VisionConfig", _PATCHES),
    Family("SigLIP vision", "vision", "SiglipVisionConfig", _PATCHES),
    Family("DINOv2", "vision", "Dinov2Config", _IMAGES | {"image_size": 42, "patch_size": 14}),
    Family("CLIP", "two towers", "CLIPConfig", _TOWERS),
    Family("SigLIP", "two towers", "SiglipConfig", _TOWERS),
)
"""In the order of the documentation."""

REFUSED: tuple[Family, ...] = (
    Family("XLNet", "encoder", "XLNetConfig", _XLNET, refused=True),
    Family("Longformer", "encoder", "LongformerConfig", _PLAIN | {"attention_window": 8}, refused=True),
    Family("Swin", "vision", "SwinConfig", _SWIN, refused=True),
    Family("Mamba", "decoder", "MambaConfig", _MAMBA, refused=True),
    Family("DiffLlama", "decoder", "DiffLlamaConfig", _PLAIN | {"num_key_value_heads": 2}, refused=True),
    Family("DeepSeek-V4", "decoder", "DeepseekV4Config", _COMPRESSED, refused=True),
    Family("T5Gemma 2", "encoder-decoder", "T5Gemma2Config", _T5GEMMA2, refused=True),
)
"""Families that can't be captured, and are refused by name."""


def small_network(family: Family, seed: int = 0) -> Any:
    """A small network. Its matrices are drawn widely, so that attention is sharp and heads differ."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    torch.manual_seed(seed)
    config = getattr(transformers, family.config)(**family.settings)
    made = getattr(transformers, family.network)
    network: Any = made.from_config(config) if family.network == "AutoModel" else made(config)
    network.eval().requires_grad_(False)
    for parameter in network.parameters():
        if parameter.ndim > 1:
            parameter.normal_(std=0.3)
    return network

"""The families that headscope vouches for, each as a small network with random weights.

`headscope doctor --all` and the tests run every one of them. The settings bring out what is peculiar to a
family: local and global layers, sliding windows shorter than a text, grouped keys, shared layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["encoder", "decoder", "encoder-decoder", "vision", "sound"]


@dataclass(frozen=True)
class Family:
    """name: as people write it; config, settings: the configuration class of transformers and its arguments."""

    name: str
    kind: Kind
    config: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    refused: bool = False

    @property
    def stacks(self) -> tuple[str | None, ...]:
        """What `Capture` can be asked for."""
        if self.kind == "encoder-decoder":
            return ("encoder", "decoder", "cross")
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
    Family("GPT-2", "decoder", "GPT2Config", _GPT2),
    Family("GPT-NeoX", "decoder", "GPTNeoXConfig", _PLAIN),
    Family("GPT-J", "decoder", "GPTJConfig", _GPT2 | {"rotary_dim": 4}),
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
    Family("GPT-OSS", "decoder", "GptOssConfig", _SLIDING | _EXPERTS),
    Family("T5", "encoder-decoder", "T5Config", _T5),
    Family("BART", "encoder-decoder", "BartConfig", _TWO),
    Family("Marian", "encoder-decoder", "MarianConfig", _TWO),
    Family("Whisper", "sound", "WhisperConfig", _TWO | {"num_mel_bins": 8, "max_source_positions": 12}),
    Family("ViT", "vision", "ViTConfig", _IMAGES | {"intermediate_size": 48, "image_size": 24, "patch_size": 8}),
    Family("DINOv2", "vision", "Dinov2Config", _IMAGES | {"image_size": 42, "patch_size": 14}),
)
"""In the order of the documentation."""

REFUSED: tuple[Family, ...] = (
    Family("XLNet", "encoder", "XLNetConfig", _XLNET, refused=True),
    Family("Longformer", "encoder", "LongformerConfig", _PLAIN | {"attention_window": 8}, refused=True),
    Family("Swin", "vision", "SwinConfig", _SWIN, refused=True),
    Family("Mamba", "decoder", "MambaConfig", _MAMBA, refused=True),
)
"""Families that can't be captured, and are refused by name."""


def small_network(family: Family, seed: int = 0) -> Any:
    """A small network. Its matrices are drawn widely, so that attention is sharp and heads differ."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    torch.manual_seed(seed)
    config = getattr(transformers, family.config)(**family.settings)
    network: Any = transformers.AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    network.eval().requires_grad_(False)
    for parameter in network.parameters():
        if parameter.ndim > 1:
            parameter.normal_(std=0.3)
    return network

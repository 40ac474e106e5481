"""DeBERTa-v2 and v3: content and position attend separately; the output projection lies outside."""

from typing import Any

from torch import Tensor

from headscope.model.families.hooked import Hooked, split_heads


def _values(module: Any, hidden: Tensor) -> Tensor:
    return split_heads(module.value_proj(hidden), module.num_attention_heads)


HOOKED = Hooked(attention="DisentangledSelfAttention", projection=None, values=_values)

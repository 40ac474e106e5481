"""GPT-J: attention is a method of the module."""

from typing import Any

from torch import Tensor

from headscope.model.families.hooked import Hooked, split_heads


def _values(module: Any, hidden: Tensor) -> Tensor:
    return split_heads(module.v_proj(hidden), module.num_attention_heads)


HOOKED = Hooked(attention="GPTJAttention", projection="out_proj", values=_values)

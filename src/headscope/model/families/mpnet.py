"""MPNet: attention with a relative position bias, written out inside the module."""

from typing import Any

from torch import Tensor

from headscope.model.families.hooked import Hooked, split_heads


def _values(module: Any, hidden: Tensor) -> Tensor:
    return split_heads(module.v(hidden), module.num_attention_heads)


HOOKED = Hooked(attention="MPNetSelfAttention", projection="o", values=_values)

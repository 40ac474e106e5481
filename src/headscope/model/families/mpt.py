"""MPT: attention with a bias that grows with distance (ALiBi), written out inside the module."""

from typing import Any

from torch import Tensor

from headscope.model.families.hooked import Hooked, split_heads


def _values(module: Any, hidden: Tensor) -> Tensor:
    return split_heads(module.Wqkv(hidden).chunk(3, dim=-1)[2], module.n_heads)


HOOKED = Hooked(attention="MptAttention", projection="out_proj", values=_values)

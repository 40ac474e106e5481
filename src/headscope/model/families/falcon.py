"""Falcon: attention written out inside the module; in the small models all heads share one key and value."""

from typing import Any

from torch import Tensor

from headscope.model.families.hooked import Hooked


def _values(module: Any, hidden: Tensor) -> Tensor:
    values: Tensor = module._split_heads(module.query_key_value(hidden))[2]
    return values.transpose(1, 2).expand(-1, module.num_heads, -1, -1)


HOOKED = Hooked(attention="FalconAttention", projection="dense", values=_values)

"""BLOOM: attention with a bias that grows with distance (ALiBi), written out inside the module."""

from typing import Any

from torch import Tensor

from headscope.model.families.hooked import Hooked


def _values(module: Any, hidden: Tensor) -> Tensor:
    values: Tensor = module._reshape(module.query_key_value(hidden))[2]
    return values


HOOKED = Hooked(attention="BloomAttention", projection="dense", values=_values)

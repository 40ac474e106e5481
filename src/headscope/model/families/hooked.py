"""How a model outside the attention interface is captured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True)
class Hooked:
    """Where hooks find Z and A in a family that does not use the attention interface.

    attention: the class of the module that computes one layer's attention; its output is a tuple, with the
    attention map second when the model is asked for attentions.
    projection: the name, inside it, of the output projection: what enters it are the joined head outputs. None
    where the projection lies outside: then the module itself puts them out, first in its tuple.
    values: the module and the hidden states (B, S, width) that enter it -> V (B, H, S, d). Not needed to
    capture: `headscope doctor` proves with it that Z is A times V.
    """

    attention: str
    projection: str | None
    values: Callable[[nn.Module, Tensor], Tensor]


def split_heads(joined: Tensor, heads: int) -> Tensor:
    """(B, S, H * d) -> (B, H, S, d)."""
    return joined.view(*joined.shape[:2], heads, -1).transpose(1, 2)

"""What every measure does with its windows: add what each shows to the group that its text belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Tokens


def add(states: Mapping[str, Tensor], name: str, tokens: Tokens, values: Tensor) -> None:
    """Add to a state (L, H, G, ...) what each window of a batch shows, (L, B, H, ...); or to one (L, G), (L, B)."""
    state = states[name]
    if values.ndim > 2:
        state.index_add_(2, tokens.group, values.transpose(1, 2).to(state.dtype))
    else:
        state.index_add_(1, tokens.group, values.to(state.dtype))


def of_every_head(values: Tensor, like: Tensor) -> Tensor:
    """What is the same in every head, (B, ...), as (L, B, H, ...); L and H are those of `like`, (L, B, H)."""
    return values[None, :, None].expand(like.shape[0], -1, like.shape[2], *values.shape[1:])

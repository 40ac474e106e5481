"""The rows of a batch, see `row_layout`: what each of its windows adds to the states of each head."""

from __future__ import annotations

from dataclasses import fields, replace

import torch
from torch import Tensor

from headscope.measure.catalogue import STATES
from headscope.measure.declaration import sizes
from headscope.measure.measures import MEASURES
from headscope.measure.observation import LayerSums, Tokens
from headscope.measure.row_layout import IN_ROWS
from headscope.measure.seen import Seen

_ELSEWHERE = {field.name for field in fields(LayerSums)}
"""States that no measure's `update` adds to."""


def rows_of(tokens: Tokens, seen: Seen) -> Tensor:
    """(B, L, H, WIDTH) float64. Each window is a group of texts by itself, so what is added to a group is its own."""
    layers, windows, heads = seen.pairs.shape
    known = sizes(layers, heads, tokens.ids.shape[1]) | {"G": windows}
    states = {
        name: torch.zeros(
            [known[letter] for letter in state.shape], dtype=getattr(torch, state.dtype), device=seen.pairs.device
        )
        for name, state in STATES.items()
        if name not in _ELSEWHERE
    }
    alone = replace(tokens, group=torch.arange(windows, device=tokens.group.device))
    for measure in MEASURES:
        if measure.update is not None:
            measure.update(states, alone, seen)
    blocks = [states[name].movedim(2, 0).reshape(windows, layers, heads, -1).double() for name in IN_ROWS]
    return torch.cat([*blocks, seen.focal.movedim(1, 0)[..., None].double()], -1)

"""A model's own attention, computed a part at a time: some windows of a batch, some heads of a layer.

On a CPU the scores of a part stay in the cache until they are A and until A is measured; and of blocks as large as the
A of a batch, which allocators find hard to place, there is at most one. All parts together are the whole, to the last
bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

SCORES_AT_ONCE = 2**18
"""Scores, queries times keys times heads, that are computed at once where a layer may be cut: 1 MB."""

FEW_TOKENS = 32


class SomeHeads(NamedTuple):
    """Some heads of a layer: their numbers, A (B, H, S, S) and Z (B, H, S, d), where H counts these heads.

    values: what A is multiplied with, (B, G, S, d), where H / G neighbouring heads share one; None: it is not known.
    """

    heads: slice
    attention: Tensor
    output: Tensor
    values: Tensor | None


class OwnAttention(NamedTuple):
    """What a model's own function, `eager`, is called with: query (B, H, S, d), key and value (B, G, S, d).

    Mostly G = H; otherwise H / G neighbouring heads share a key and a value. The mask may be of any shape.
    """

    eager: Callable[..., tuple[Tensor, Tensor]]
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None

    def stacked(self) -> OwnAttention:
        """As a product of the whole batch takes them: copied unless they lie in one stack. Those of a single window or
        head always do, and if they were not copied would be multiplied, and rounded, in another way. Keys are copied as
        they are multiplied, transposed, only where there are few tokens: that is slow, and rounds otherwise there
        alone."""
        few = self.key.shape[2] < FEW_TOKENS
        query, keys, value = (
            matrices.flatten(0, 1).view(matrices.shape)
            for matrices in (self.query, self.key.mT if few else self.key, self.value)
        )
        return self._replace(query=query, key=keys.mT if few else keys, value=value)

    def of_window(self, window: int) -> OwnAttention:
        one = slice(window, window + 1)
        mask = self.mask[one] if self.mask is not None and len(self.mask) == len(self.query) else self.mask
        return self._replace(query=self.query[one], key=self.key[one], value=self.value[one], mask=mask)

    def of_heads(self, heads: slice) -> OwnAttention:
        together = self.query.shape[1] // self.key.shape[1]
        groups = slice(heads.start // together, heads.stop // together)
        mask = self.mask
        if mask is not None and mask.shape[1] == self.query.shape[1]:
            mask = mask[:, heads]
        return self._replace(
            query=self.query[:, heads], key=self.key[:, groups], value=self.value[:, groups], mask=mask
        )

    def compute(self) -> tuple[Tensor, Tensor]:
        """Z as the model goes on with it, (B, S, H, d), and A (B, H, S, S)."""
        return self.eager(self.query, self.key, self.value, self.mask)


def among_heads(shared: Tensor, heads: int) -> Tensor:
    """(B, G, ...) -> (B, H, ...): H / G neighbouring heads share one."""
    return shared if shared.shape[1] == heads else shared.repeat_interleave(heads // shared.shape[1], 1)


class Room:
    """Where the A of a batch is put together: one place for all layers of a pass that are of one shape."""

    def __init__(self) -> None:
        self._place: Tensor | None = None

    def of(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        if self._place is None or self._place.shape != shape or self._place.dtype != like.dtype:
            self._place = like.new_empty(shape)
        return self._place


def windows_at_once(call: OwnAttention, others: Mapping[str, Any]) -> int:
    """1 on a CPU, where nothing else that comes along with the call has an entry for each window, or may have;
    otherwise all."""
    same = all(not isinstance(value, Tensor) or value.shape[:1] == (1,) for value in others.values())
    can_be_cut = same and (call.mask is None or call.mask.ndim == 4)
    return 1 if can_be_cut and call.query.device.type == "cpu" else len(call.query)


def heads_at_once(call: OwnAttention, module: nn.Module, others: Mapping[str, Any]) -> int:
    """As many as SCORES_AT_ONCE allows on a CPU, where neither the module itself nor anything else that comes along
    with the call has an entry for each head, or may have; otherwise all.

    They divide evenly, and those that share a key stay together.
    """
    heads, groups = call.query.shape[1], call.key.shape[1]
    owned = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
    same = not owned and all(not isinstance(value, Tensor) or value.ndim <= 2 for value in others.values())
    can_be_cut = same and heads % groups == 0 and (call.mask is None or call.mask.ndim == 4)
    if not can_be_cut or call.query.device.type != "cpu":
        return heads
    together = heads // groups
    fitting = max(1, SCORES_AT_ONCE // (call.query.shape[2] * call.key.shape[2] * together))
    return together * max(number for number in range(1, min(groups, fitting) + 1) if groups % number == 0)


def in_parts(call: OwnAttention, windows_at_once: int, heads_at_once: int, room: Room) -> Iterator[SomeHeads]:
    """All heads of a layer. A is lent: it may lie in `room`, where the next part overwrites it."""
    windows, heads = call.query.shape[:2]
    if (windows_at_once, heads_at_once) != (windows, heads):
        call = call.stacked()
    for first in range(0, heads, heads_at_once):
        some = slice(first, first + heads_at_once)
        part = call.of_heads(some) if heads_at_once < heads else call
        output, attention = part.compute() if windows_at_once == windows else _window_by_window(part, room)
        yield SomeHeads(some, attention, output.transpose(1, 2), part.value)


def _window_by_window(call: OwnAttention, room: Room) -> tuple[Tensor, Tensor]:
    """The same as `compute`."""
    outputs = []
    for window in range(len(call.query)):
        output, attention = call.of_window(window).compute()
        together = room.of((len(call.query), *attention.shape[1:]), attention)
        together[window] = attention[0]
        outputs.append(output)
    return torch.cat(outputs), together

"""What a model makes of sentences: the mean output vector of every head, and the mean of the last hidden vectors.

The mean of C = Z Zᵀ over the tokens of two sentences, one of the block means of the paper's Fig. 5, is the product of
their mean vectors. So no token by token matrix is needed, whatever the length of a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.corpus.alone import Alone, Group
from headscope.errors import HeadscopeError
from headscope.model.capture import Capture
from headscope.model.recording import Enough
from headscope.segments.wishes import Using
from headscope.speaking import option


@dataclass(frozen=True)
class Vectors:
    """Of n sentences. heads: (n, L, H, d); pooled: (n, w); L or w is 0 where they were not asked for.
    known: (n,), false for sentences without a token, whose vectors are 0."""

    heads: NDArray[np.float32]
    pooled: NDArray[np.float32]
    known: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.known)

    def __getitem__(self, rows: slice) -> Vectors:
        return Vectors(self.heads[rows], self.pooled[rows], self.known[rows])

    @staticmethod
    def joined(parts: Sequence[Vectors]) -> Vectors:
        return Vectors(
            np.concatenate([part.heads for part in parts]),
            np.concatenate([part.pooled for part in parts]),
            np.concatenate([part.known for part in parts]),
        )


class Reader:
    """Runs sentences through a model, those of one length together. layers: whose heads are kept; example: a group of
    sentences to try it with."""

    def __init__(self, capture: Capture, alone: Alone, layers: Sequence[int], using: Using, example: Group) -> None:
        self._capture = capture
        self._alone = alone
        self._layers = list(layers) if using != "pooled" else []
        self._device = next(capture.network.parameters()).device
        self._width = 0 if using == "heads" else self._hidden_width(example)

    def read(self, ids: Sequence[Sequence[int]], advance: Callable[[int], None]) -> Vectors:
        """The vectors of all sentences, in their order. `advance` is told how many each batch held."""
        count, capture = len(ids), self._capture
        heads = np.zeros((count, len(self._layers), capture.heads, capture.head_width), np.float32)
        pooled = np.zeros((count, self._width), np.float32)
        for group in self._alone.groups(ids):
            self._run(group, heads, pooled)
            advance(len(group.which))
        if not (np.isfinite(heads).all() and np.isfinite(pooled).all()):
            raise HeadscopeError(
                "A head of the model puts out NaN or infinity; its weights are damaged, or the precision is too low "
                f"(try {option('dtype', 'float32')})."
            )
        return Vectors(heads, pooled, np.array([len(tokens) > 0 for tokens in ids], np.bool_))

    def _run(self, group: Group, heads: NDArray[np.float32], pooled: NDArray[np.float32]) -> None:
        """Fills in the vectors of a group."""
        ids, mask = (torch.from_numpy(array).to(self._device) for array in (group.ids, group.mask))
        share = (mask / mask.sum(1, keepdim=True)).float()

        def receive(layer: int, attention: Tensor, output: Tensor) -> None:
            if layer in self._layers:
                mean = torch.matmul(share[:, None, None], output.float())[:, :, 0]
                heads[group.which, self._layers.index(layer)] = mean.cpu().numpy()

        if not self._width:
            self._capture.run(ids, mask, receive, last=max(self._layers))
            return
        with _last_hidden(self._capture) as kept:
            self._capture.run(ids, mask, receive)
        with torch.inference_mode():
            pooled[group.which] = torch.matmul(share[:, None], kept[0].float())[:, 0].cpu().numpy()

    def _hidden_width(self, group: Group) -> int:
        """Of the last hidden vectors, told by one sentence."""
        ids, mask = (torch.from_numpy(array[:1]).to(self._device) for array in (group.ids, group.mask))
        with _last_hidden(self._capture) as kept:
            self._capture.run(ids, mask, lambda layer, attention, output: None)
        return int(kept[0].shape[-1])


def last_third(layers: Sequence[int]) -> tuple[int, ...]:
    """The layers whose heads are used for topics unless others are asked for.

    >>> last_third(range(12)), last_third([0])
    ((8, 9, 10, 11), (0,))
    """
    return tuple(layers[-max(1, round(len(layers) / 3)) :])


@contextmanager
def _last_hidden(capture: Capture) -> Iterator[list[Tensor]]:
    """The last hidden vectors (B, S, w) of the stack that is captured; what comes after it is not run."""
    kept: list[Tensor] = []

    def keep(module: Any, given: Any, output: Any) -> None:
        kept[:] = [output[0] if not isinstance(output, Tensor) else output]
        if module is not capture.network:
            raise Enough

    network = capture.network
    part = {"encoder": "get_encoder", "decoder": "get_decoder", "cross": "get_decoder"}.get(capture.stack or "")
    hook = (getattr(network, part)() if part else network).register_forward_hook(keep)
    try:
        yield kept
    finally:
        hook.remove()

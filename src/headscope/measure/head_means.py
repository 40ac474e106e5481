"""The mean output of every head over a corpus: a consumer of runs (see `run.consumer`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.corpus.windows import Batch
from headscope.files import Arrays
from headscope.measure.declaration import Specs
from headscope.model.capture import Capture


@dataclass(frozen=True)
class HeadMeans:
    """Adds up Z over all tokens: `output` (L, H, d), and how many `tokens` there are. layers: by their numbers."""

    layers: tuple[int, ...]
    heads: int
    width: int

    def specs(self) -> Specs:
        return {"output": ("float64", (len(self.layers), self.heads, self.width)), "tokens": ("int64", (1,))}

    def rows(self) -> Specs:
        return {}

    def begin(self, device: torch.device) -> ShardOfMeans:
        return ShardOfMeans(self)

    def identity(self) -> dict[str, Any]:
        return {"sums": "outputs of heads"}


class ShardOfMeans:
    def __init__(self, what: HeadMeans) -> None:
        self._what = what
        self._sums = {name: np.zeros(shape, dtype) for name, (dtype, shape) in what.specs().items()}

    def take(self, capture: Capture, batch: Batch, in_turn: Callable[[Hashable], AbstractContextManager[None]]) -> None:
        inputs, mask = capture.inputs(batch)
        assert mask is not None
        real = mask.bool()[:, None, :, None]
        found = np.zeros(self._sums["output"].shape)

        def receive(layer: int, attention: Tensor, output: Tensor) -> None:
            found[self._what.layers.index(layer)] = output.double().where(real, 0).sum((0, 2)).cpu().numpy()

        capture.run(inputs, mask, receive, last=self._what.layers[-1], types=capture.types(batch))
        with in_turn("means"):
            self._sums["output"] += found
            self._sums["tokens"] += int(batch.size.sum())

    def arrays(self) -> Arrays:
        return self._sums

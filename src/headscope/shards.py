"""A study is cut into shards of windows: what one worker measures in one go, in an order fixed by the texts alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch
from numpy.typing import NDArray

from headscope.capture import Capture
from headscope.errors import HeadscopeError
from headscope.models import Model
from headscope.options import Options
from headscope.tally import Tally
from headscope.windows import Batch, Window, stack

WINDOWS_PER_SHARD = 1024
"""Part of what fixes the result to the last bit: shards are added up in order, so their bounds may not vary."""

Tick = Callable[[int], None]
"""Told how many more windows are done; a negative number where some must be done again."""


@dataclass(frozen=True)
class Shard:
    index: int
    batch: Batch

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything in the windows that a measure can see."""
        digest = hashlib.sha256()
        for array in (self.batch.ids, self.batch.size, self.batch.sentence, self.batch.kind, self.batch.special):
            digest.update(array.tobytes())
        return digest.hexdigest()


def cut_shards(windows: Iterable[Window]) -> Iterator[Shard]:
    windows = iter(windows)
    index = 0
    while piece := list(islice(windows, WINDOWS_PER_SHARD)):
        yield Shard(index, stack(piece))
        index += 1


def chosen_layers(capture: Capture, options: Options) -> tuple[int, ...]:
    """The layers to measure: those asked for, or all there are."""
    layers = options.layers if options.layers is not None else tuple(range(capture.layers))
    if layers[-1] >= capture.layers:
        raise HeadscopeError(
            f"--layers asks for layer {layers[-1]}, but the model has {capture.layers}, "
            f"numbered 0 to {capture.layers - 1}."
        )
    return layers


class ShardRunner:
    """Measures shards with one model: what every worker holds, on this machine or another."""

    def __init__(self, model: Model, options: Options, capture: Capture | None = None) -> None:
        self._device = model.device
        self._capture = capture or Capture(model.network, options.stack)
        self._options = options
        self._layers = chosen_layers(self._capture, options)
        self.batch_size = options.batch_size

    def run(self, shard: Shard, tick: Tick) -> dict[str, NDArray[Any]]:
        """The states of one shard. A batch too large for the memory is halved, and the shard begun anew."""
        while True:
            done = 0
            tally = Tally(self._capture, self._layers, self._options, self._device)
            try:
                for begin in range(0, len(shard.batch), self.batch_size):
                    batch = shard.batch[begin : begin + self.batch_size]
                    tally.add(batch)
                    done += len(batch)
                    tick(len(batch))
                return tally.arrays()
            except (MemoryError, RuntimeError) as problem:
                if not _out_of_memory(problem) or self.batch_size == 1:
                    raise
                tick(-done)
                self.batch_size //= 2
                self._options = replace(self._options, batch_size=self.batch_size)


def _out_of_memory(problem: Exception) -> bool:
    return isinstance(problem, (MemoryError, torch.OutOfMemoryError)) or "allocate memory" in str(problem)

"""A study is cut into shards of windows: what one worker measures in one go, in an order fixed by the texts alone."""

from __future__ import annotations

import gc
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import torch

from headscope.corpus.windows import Batch, Window, stack
from headscope.errors import HeadscopeError
from headscope.files import Arrays, give_back
from headscope.measure.accumulate import Tally
from headscope.measure.observation import why_not_compiled
from headscope.model.capture import Capture
from headscope.model.loading import Model
from headscope.options import Options
from headscope.run.threads import Lanes

WINDOWS_PER_SHARD = 256
"""Part of what fixes the result to the last bit: shards are added up in order, so their bounds may not vary."""

Tick = Callable[[int], None]
"""Told how many more windows are done; a negative number where some must be done again."""
Say = Callable[[str], None]
"""Told one sentence for the user."""


@dataclass(frozen=True)
class Shard:
    """`index` counts the shards of one run, from 0."""

    index: int
    batch: Batch

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything in the windows that a measure can see."""
        digest = hashlib.sha256()
        for array in (self.batch.ids, self.batch.size, self.batch.sentence, self.batch.kind, self.batch.special):
            digest.update(array.tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Part:
    """Part `number` (from 1) of `of`: every of-th shard of the whole. The whole is part 1 of 1.

    >>> [Part.parse("2/3").holds(window) for window in (0, 256, 512, 768, 1024)]
    [False, True, False, False, True]
    """

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Part:
        match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise HeadscopeError(f"--shard is {text!r}; write for example 3/16, the parts are numbered from 1.")
        return cls(int(match[1]), int(match[2]))

    def holds(self, window: int) -> bool:
        """Whether a window, numbered in the whole, belongs to this part."""
        return window // WINDOWS_PER_SHARD % self.of == self.number - 1

    def in_the_whole(self, shard: int) -> int:
        """The number in the whole of a shard numbered in this part."""
        return shard * self.of + self.number - 1


def cut_shards(windows: Iterable[Window]) -> Iterator[Shard]:
    windows = iter(windows)
    index = 0
    while piece := list(islice(windows, WINDOWS_PER_SHARD)):
        yield Shard(index, stack(piece))
        index += 1


def chosen_layers(capture: Capture, options: Options) -> tuple[int, ...]:
    """The layers to measure: those asked for, or all there are."""
    return capture.chosen_layers(options.layers)


class ShardRunner:
    """Measures shards with one model: what every worker holds, on this machine or another.

    `batch_size` begins as the options say and is halved when a batch does not fit into memory; `say` is told, as of
    anything else that makes the run slower than it need be.
    """

    def __init__(
        self,
        model: Model,
        options: Options,
        threads: int = 1,
        capture: Capture | None = None,
        say: Say | None = None,
    ) -> None:
        capture = capture or Capture(model.network, options.stack)
        self._device = model.device
        self._lanes = Lanes(capture, model.device, threads)
        self._heads = capture.heads
        self._options = options
        self._layers = chosen_layers(capture, options)
        self.say = say
        # Asked here, so that the kernel is loaded, or compiled, before there is a shard to measure.
        self._notice = why_not_compiled(model.device)
        self.batch_size = options.windows_at_once

    def run(self, shard: Shard, tick: Tick) -> Arrays:
        """The states of one shard, as `Tally.arrays` gives them.

        If a batch is too large for the memory, the shard is begun anew with half of it.
        """
        self._tell(self._notice)
        self._notice = None
        while True:
            done = 0

            def count(windows: int) -> None:
                nonlocal done
                done += windows
                tick(windows)

            try:
                return self._measure(shard.batch, count)
            except (MemoryError, RuntimeError) as problem:
                if not _out_of_memory(problem):
                    raise
            # Outside the except clause: the exception holds on to everything that filled the memory.
            tick(-done)
            self._halve()

    def close(self) -> None:
        self._lanes.close()

    def _measure(self, batch: Batch, tick: Tick) -> Arrays:
        tally = Tally(self._heads, self._layers, self._options, self._device)
        size = self.batch_size
        pieces = ((batch[begin : begin + size], None) for begin in range(0, len(batch), size))
        tally.add(self._lanes, pieces, tick)
        give_back()  # the lanes rest now, and packing and keeping the shard takes memory of its own
        return tally.arrays()

    def _halve(self) -> None:
        if self.batch_size == 1:
            raise HeadscopeError(
                f"Not even one window of {self._options.length} tokens fits into memory; "
                "take a smaller --length, fewer --layers or fewer --workers."
            )
        gc.collect()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        before, self.batch_size = self.batch_size, self.batch_size // 2
        self._tell(f"A batch of {before} windows does not fit into memory; going on with {self.batch_size}.")

    def _tell(self, sentence: str | None) -> None:
        if sentence is not None and self.say is not None:
            self.say(sentence)


def _out_of_memory(problem: Exception) -> bool:
    return isinstance(problem, (MemoryError, torch.OutOfMemoryError)) or "allocate memory" in str(problem)

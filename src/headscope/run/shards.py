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
from headscope.measure.declaration import MOST_WINDOWS_IN_A_SHARD
from headscope.measure.observer import why_not_compiled
from headscope.model.capture import Capture
from headscope.model.loading import Model
from headscope.options import Options
from headscope.run.consumer import Consumer
from headscope.run.threads import Lanes, Turns
from headscope.speaking import option

WINDOWS_PER_SHARD = MOST_WINDOWS_IN_A_SHARD
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
        for array in self.batch.arrays:
            if array is not None:
                digest.update(array.tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Part:
    """Part `number` (from 1) of `of`: every of-th shard of the whole. The whole is part 1 of 1.

    >>> [Part.parse("2/3").holds(window, 256) for window in (0, 256, 512, 768, 1024)]
    [False, True, False, False, True]
    """

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Part:
        match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise HeadscopeError(
                f"{option('shard')} is {text!r}; write for example 3/16, the parts are numbered from 1."
            )
        return cls(int(match[1]), int(match[2]))

    def holds(self, window: int, windows_per_shard: int) -> bool:
        """Whether a window, numbered in the whole, belongs to this part."""
        return window // windows_per_shard % self.of == self.number - 1

    def in_the_whole(self, shard: int) -> int:
        """The number in the whole of a shard numbered in this part."""
        return shard * self.of + self.number - 1


def cut_shards(windows: Iterable[Window], windows_per_shard: int) -> Iterator[Shard]:
    windows = iter(windows)
    index = 0
    while piece := list(islice(windows, windows_per_shard)):
        yield Shard(index, stack(piece))
        index += 1


class ShardRunner:
    """Runs shards through one model for one consumer: what every worker holds, on this machine or another.

    `batch_size` begins as the options say and is halved when a batch does not fit into memory; `say` is told, as of
    anything else that makes the run slower than it need be.
    """

    def __init__(
        self,
        model: Model,
        consumer: Consumer,
        options: Options,
        threads: int = 1,
        capture: Capture | None = None,
        say: Say | None = None,
    ) -> None:
        capture = capture or Capture(model.network, options.stack)
        self._device = model.device
        self._lanes = Lanes(capture, model.device, threads)
        self._consumer = consumer
        self._length = options.length
        self.say = say
        # Asked here, so that the kernel is loaded, or compiled, before there is a shard to measure.
        self._notice = why_not_compiled(model.device)
        self.batch_size = options.windows_at_once

    def run(self, shard: Shard, tick: Tick) -> Arrays:
        """What one shard adds up to, as `Accumulator.arrays` gives it.

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
                return self._consume(shard.batch, count)
            except (MemoryError, RuntimeError) as problem:
                if not _out_of_memory(problem):
                    raise
            # Outside the except clause: the exception holds on to everything that filled the memory.
            tick(-done)
            self._halve()

    def close(self) -> None:
        self._lanes.close()

    def _consume(self, batch: Batch, tick: Tick) -> Arrays:
        shard = self._consumer.begin(self._device)
        turns = Turns()

        def take(capture: Capture, number: int, piece: Batch) -> None:
            shard.take(capture, piece, lambda place: turns.turn(place, number))

        size = self.batch_size
        pieces = (batch[begin : begin + size] for begin in range(0, len(batch), size))
        self._lanes.run(pieces, take, turns, lambda piece: tick(len(piece)))
        give_back()  # the lanes rest now, and packing and keeping the shard takes memory of its own
        return shard.arrays()

    def _halve(self) -> None:
        if self.batch_size == 1:
            raise HeadscopeError(
                f"Not even one window of {self._length} tokens fits into memory; "
                f"take a smaller {option('length')}, fewer {option('layers')} or fewer {option('workers')}."
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

"""What an engine is: something that measures shards, anywhere."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Protocol

from headscope.errors import HeadscopeError
from headscope.files import Arrays
from headscope.run.shards import Say, Shard, Tick
from headscope.speaking import SAME, option

TRIES = 3
"""How often a shard is begun before a study gives up: a worker may be lost, but not for ever the same way."""


@dataclass(frozen=True)
class MeasuredShard:
    """A finished shard: its states, and the windows that ran through the model at once."""

    shard: Shard
    arrays: Arrays
    batch_size: int


class Engine(Protocol):
    """Where shards run. `threads` are those of each worker; `device` may change the last digits of a result."""

    name: str
    workers: int
    threads: int
    device: str

    def run(self, shards: Iterable[Shard], tick: Tick, say: Say) -> Generator[MeasuredShard]:
        """Measure shards, in any order, holding only a few at a time. Closing the iterator ends all workers."""

    def close(self) -> None: ...


class Losses:
    """Counts how often each shard was lost with its worker, and gives up in time."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._lost: dict[int, int] = {}

    def note(self, shard: Shard, how: str) -> None:
        lost = self._lost[shard.index] = self._lost.get(shard.index, 0) + 1
        if lost == TRIES:
            raise HeadscopeError(
                f"Shard {shard.index} was lost with its worker {TRIES} times, the last one {how}; if the memory "
                f"is full, take fewer {option('workers')} or a smaller {option('batch_size')}; {SAME} goes on from "
                "there."
            )
        self._say(f"A worker was lost ({how}); its shard {shard.index} is measured again.")

"""Shards one after the other, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from numpy.typing import NDArray

from headscope.shards import Shard, ShardRunner, Tick


def run(
    runner: ShardRunner, shards: Iterable[Shard], tick: Tick
) -> Iterator[tuple[Shard, dict[str, NDArray[Any]]]]:
    for shard in shards:
        yield shard, runner.run(shard, tick)

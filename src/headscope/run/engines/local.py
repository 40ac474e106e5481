"""Shards one after the other, in this process."""

from __future__ import annotations

from collections.abc import Generator, Iterable

from headscope.model.capture import Capture
from headscope.model.loading import Model
from headscope.options import Options
from headscope.run.consumer import Consumer
from headscope.run.engines.base import MeasuredShard
from headscope.run.engines.weights import align
from headscope.run.shards import Say, Shard, ShardRunner, Tick


class Local:
    name = "local"
    workers = 1

    def __init__(self, model: Model, consumer: Consumer, options: Options, capture: Capture, threads: int) -> None:
        self.threads = threads
        self.device = model.device.type
        self._runner = ShardRunner(model, consumer, options, threads, capture)
        align(model.network)

    def run(self, shards: Iterable[Shard], tick: Tick, say: Say) -> Generator[MeasuredShard]:
        self._runner.say = say
        for shard in shards:
            yield MeasuredShard(shard, self._runner.run(shard, tick), self._runner.batch_size)

    def close(self) -> None:
        self._runner.close()

"""Shards on a Ray cluster: actors that hold the model once each, and weights that lie once on each machine."""

from __future__ import annotations

import os
import socket
import warnings
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headscope.errors import HeadscopeError, shortened
from headscope.files import Arrays
from headscope.model.loading import Model
from headscope.options import Options
from headscope.run.consumer import Consumer
from headscope.run.engines.base import TRIES, Losses, MeasuredShard
from headscope.run.engines.weights import Packed, pack, unpack
from headscope.run.shards import Say, Shard, ShardRunner, Tick
from headscope.speaking import option
from headscope.wording import counted

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
except ImportError:
    raise HeadscopeError(
        f"{option('engine', 'ray')} needs the package ray; install it with: pip install 'headscope[ray]'"
    ) from None

POLL = 0.5
"""Seconds between two looks at how far the workers are."""
PATIENCE = 20.0
"""Seconds without any worker before the user is told what is waited for."""


class RayCluster:
    name = "ray"

    def __init__(
        self,
        model: Model,
        consumer: Consumer,
        options: Options,
        workers: int | None,
        threads: int,
        address: str | None,
    ) -> None:
        self.threads = threads
        self._consumer = consumer
        self._options = options
        self._own = not ray.is_initialized()
        if self._own:
            _connect(address)
        resources = ray.cluster_resources()
        gpus = int(resources.get("GPU", 0))
        self.device = "cuda" if gpus else "cpu"
        self.workers = workers or gpus or max(1, int(resources.get("CPU", 1)) // threads)
        packed = pack(model.network, model.name)
        self._model = (ray.put(packed.skeleton), ray.put(packed.weights.numpy()))

    def run(self, shards: Iterable[Shard], tick: Tick, say: Say) -> Generator[MeasuredShard]:
        cluster = _Cluster(self, shards, tick, say)
        try:
            yield from cluster.measured()
        finally:
            cluster.close()

    def close(self) -> None:
        if self._own:
            ray.shutdown()

    def start(self) -> _Worker:
        """A new actor; it is ready when the cluster has found a place for it and it has its model."""
        wants = {"num_cpus": self.threads, "num_gpus": 1 if self.device == "cuda" else 0}
        # A second thread answers for progress while the first measures.
        handle = ray.remote(_Actor).options(max_concurrency=2, **wants).remote()
        ready = handle.prepare.remote(
            *self._model, self._consumer, self._options, self.threads, self.device, _versions()
        )
        return _Worker(handle, ready)


@dataclass(eq=False)
class _Worker:
    """An actor, what it was asked for (None: nothing), and how many windows of its shard are done."""

    actor: Any
    answer: Any
    ready: bool = False
    shard: Shard | None = None
    done: int = 0
    asked: Any = None


class _Cluster:
    """The actors of one run, and the shards that wait for one."""

    def __init__(self, engine: RayCluster, shards: Iterable[Shard], tick: Tick, say: Say) -> None:
        self._engine = engine
        self._source = iter(shards)
        self._tick = tick
        self._say = say
        self._losses = Losses(say)
        self._never_ready = 0
        self._alone = 0.0
        self._waiting = deque(islice(self._source, engine.workers))
        self._workers: list[_Worker] = []

    def measured(self) -> Iterator[MeasuredShard]:
        self._workers = [self._engine.start() for _ in self._waiting]
        while self._waiting or any(worker.shard is not None for worker in self._workers):
            answers = [worker.answer for worker in self._workers if worker.answer is not None]
            ready, _ = ray.wait(answers, num_returns=1, timeout=POLL, fetch_local=False)
            self._notice_being_alone()
            for worker in [worker for worker in self._workers if worker.answer in ready]:
                finished = self._listen(worker)
                if finished is not None:
                    yield finished
            for worker in self._workers:
                self._look_at(worker)

    def close(self) -> None:
        for worker in self._workers:
            self._dismiss(worker)

    def _listen(self, worker: _Worker) -> MeasuredShard | None:
        """Take the answer of a worker that has one, and give it the next shard."""
        try:
            answer = ray.get(worker.answer)
        except RayTaskError as problem:
            if isinstance(problem.cause, HeadscopeError):
                raise HeadscopeError(str(problem.cause)) from None
            raise
        except RayError as problem:
            self._do_without(worker, problem)
            return None
        shard = worker.shard
        if shard is None:
            worker.ready = True
            self._feed(worker)
            return None
        arrays, batch_size, said = answer
        for sentence in said:
            self._say(sentence)
        self._tick(len(shard.batch) - worker.done)
        self._feed(worker)
        return MeasuredShard(shard, arrays, batch_size)

    def _feed(self, worker: _Worker) -> None:
        """Give a worker its next shard; one that gets none stays, for it may have to take over from a lost one."""
        worker.shard = self._waiting.popleft() if self._waiting else next(self._source, None)
        worker.done = 0
        worker.asked = None
        worker.answer = worker.actor.measure.remote(worker.shard) if worker.shard is not None else None

    def _do_without(self, worker: _Worker, problem: RayError) -> None:
        """Measure the shard of a lost worker again: an idle one takes it, or a new one when the cluster has room."""
        how = shortened(" ".join(str(problem).split()), 120)
        self._dismiss(worker)
        self._tick(-worker.done)
        if worker.shard is not None:
            self._losses.note(worker.shard, type(problem).__name__)
            self._waiting.appendleft(worker.shard)
        else:
            self._never_ready += 1
            if self._never_ready == TRIES:
                raise HeadscopeError(f"The workers do not start on the Ray cluster: {how}")
        self._workers[self._workers.index(worker)] = self._engine.start()
        idle = next((other for other in self._workers if other.ready and other.shard is None), None)
        if self._waiting and idle is not None:
            self._feed(idle)

    def _look_at(self, worker: _Worker) -> None:
        """Ask how far a worker is; its answer is taken the next time round."""
        if worker.shard is None:
            return
        if worker.asked is None:
            worker.asked = worker.actor.progress.remote()
        elif ray.wait([worker.asked], timeout=0)[0]:
            # A lost worker is noticed where its shard is waited for.
            with suppress(RayError):
                index, done = ray.get(worker.asked)
                if index == worker.shard.index:
                    self._tick(done - worker.done)
                    worker.done = done
            worker.asked = None

    def _notice_being_alone(self) -> None:
        if any(worker.shard is not None for worker in self._workers):
            self._alone = 0.0
            return
        self._alone += POLL
        if PATIENCE <= self._alone < PATIENCE + POLL:
            self._say(
                f"The Ray cluster has no room for a worker of {counted(self._engine.threads, 'CPU')} yet, or it is "
                "slow to start; waiting for it. "
                "Ctrl-C stops, and what is finished is kept."
            )

    def _dismiss(self, worker: _Worker) -> None:
        with suppress(RayError, ValueError):
            ray.kill(worker.actor)


class _Actor:
    """A worker on some machine of the cluster."""

    def __init__(self) -> None:
        self._runner: ShardRunner | None = None
        self._said: list[str] = []
        self._at = (-1, 0)

    def prepare(
        self,
        skeleton: bytes,
        weights: NDArray[np.uint8],
        consumer: Consumer,
        options: Options,
        threads: int,
        device: str,
        versions: dict[str, str],
    ) -> None:
        here = _versions()
        if here != versions:
            raise HeadscopeError(
                f"A machine of the Ray cluster has {_told(here)}, but this one has {_told(versions)}; "
                "install the same on all."
            )
        with warnings.catch_warnings():
            # Ray's shared memory is read-only, of which torch warns; nothing writes to weights here.
            warnings.simplefilter("ignore", UserWarning)
            packed = Packed(skeleton, torch.from_numpy(weights))
        model = Model(unpack(packed).to(device), None, "worker")
        self._runner = ShardRunner(model, consumer, options, threads, say=self._said.append)

    def measure(self, shard: Shard) -> tuple[Arrays, int, list[str]]:
        assert self._runner is not None
        self._at = (shard.index, 0)
        self._said.clear()
        arrays = self._runner.run(shard, self._count)
        return arrays, self._runner.batch_size, list(self._said)

    def progress(self) -> tuple[int, int]:
        """The shard it is at, and how many of its windows are done."""
        return self._at

    def _count(self, windows: int) -> None:
        index, done = self._at
        self._at = (index, done + windows)


def _connect(address: str | None) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        _knock(address)
        ray.init(address=address, log_to_driver=False, logging_level="error", include_dashboard=False)
    except Exception as problem:
        reason = shortened(" ".join(str(problem).split()) or type(problem).__name__, 160)
        raise HeadscopeError(
            f"No Ray cluster can be reached{f' at {address}' if address else ''} ({reason}); "
            f"start one with 'ray start --head', or leave out {option('address')} for one on this machine."
        ) from None


def _knock(address: str | None) -> None:
    """Ray goes on trying for minutes where nobody answers; this raises at once."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _versions() -> dict[str, str]:
    """What must be the same on all machines for results to be the same."""
    return {name: metadata.version(name) for name in ("headscope", "torch", "transformers", "numpy")}


def _told(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())

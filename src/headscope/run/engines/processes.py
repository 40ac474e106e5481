"""Shards in several processes of this machine. The weights lie in memory that they share."""

from __future__ import annotations

import signal
import sys
import traceback
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
import torch
import torch.multiprocessing

from headscope.errors import HeadscopeError
from headscope.files import Arrays, zeros
from headscope.model.loading import Model
from headscope.options import Options
from headscope.run.consumer import Consumer
from headscope.run.engines.base import TRIES, Losses, MeasuredShard
from headscope.run.engines.weights import Packed, pack, unpack
from headscope.run.shards import Say, Shard, ShardRunner, Tick
from headscope.speaking import option


class Processes:
    name = "processes"

    def __init__(self, model: Model, consumer: Consumer, options: Options, workers: int, threads: int) -> None:
        self.workers = workers
        self.threads = threads
        self.device = model.device.type
        self._consumer = consumer
        self._options = options
        self._index = model.device.index or 0
        self._packed = pack(model.network, model.name)
        try:
            self._packed.weights.share_memory_()  # type: ignore[no-untyped-call]
        except RuntimeError as problem:
            raise HeadscopeError(
                f"The weights do not fit into shared memory ({problem}); enlarge /dev/shm, or use "
                f"{option('workers', 1)}."
            ) from None

    def run(self, shards: Iterable[Shard], tick: Tick, say: Say) -> Generator[MeasuredShard]:
        pool = _Pool(self, shards, tick, say)
        try:
            yield from pool.measured()
        finally:
            pool.close()

    def close(self) -> None:
        """`run` ends the workers that it began."""

    def start(self, number: int) -> _Worker:
        """A new process; it says "ready" when it has its model."""
        context = _context()
        here, there = context.Pipe()
        arguments = (there, self._packed, self._consumer, self._options, self.threads, self._device_of(number))
        process = context.Process(target=_work, args=arguments, daemon=True)
        with _deaf_to_ctrl_c(), _main_left_out(self._packed.skeleton):
            process.start()
        there.close()
        return _Worker(process, here)

    def _device_of(self, number: int) -> str:
        """Several GPUs are dealt out, unless one other than the first was asked for."""
        if self.device != "cuda":
            return self.device
        return f"cuda:{self._index or number % torch.cuda.device_count()}"


@dataclass(eq=False)
class _Worker:
    """A process, whether it has its model yet, the shard it is at, and how many windows of it are done."""

    process: Any
    connection: Connection
    ready: bool = False
    shard: Shard | None = None
    done: int = 0

    def end(self) -> str:
        """Make sure that the process is gone, and say how it went."""
        self.connection.close()
        self.process.join(1)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        code = self.process.exitcode
        return f"by signal {-code}" if code < 0 else f"with exit code {code}"


class _Pool:
    """The workers of one run, and the shards that wait for one."""

    def __init__(self, engine: Processes, shards: Iterable[Shard], tick: Tick, say: Say) -> None:
        self._engine = engine
        self._source = iter(shards)
        self._tick = tick
        self._say = say
        self._losses = Losses(say)
        self._never_ready = 0
        self._waiting = deque(islice(self._source, engine.workers))
        self._workers: list[_Worker] = []

    def measured(self) -> Iterator[MeasuredShard]:
        for number in range(len(self._waiting)):
            self._workers.append(self._engine.start(number))
        while self._waiting or any(worker.shard is not None for worker in self._workers):
            ready = wait([worker.connection for worker in self._workers])
            for worker in [worker for worker in self._workers if worker.connection in ready]:
                try:
                    finished = self._listen(worker)
                except (EOFError, OSError):
                    self._do_without(worker)
                else:
                    if finished is not None:
                        yield finished

    def close(self) -> None:
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.end()

    def _listen(self, worker: _Worker) -> MeasuredShard | None:
        """Take one message."""
        kind, content = worker.connection.recv()
        if kind == "tick":
            worker.done += content
            self._tick(content)
        elif kind == "say":
            self._say(content)
        elif kind == "problem":
            raise HeadscopeError(content)
        elif kind == "bug":
            raise RuntimeError(f"A worker failed:\n{content}")
        elif kind == "ready":
            worker.ready = True
            self._feed(worker)
        else:
            batch_size, heading = content
            arrays = _receive(worker.connection, heading)
            shard = worker.shard
            assert shard is not None
            # The worker has its next shard before this one is stored, so that it need not wait.
            self._feed(worker)
            return MeasuredShard(shard, arrays, batch_size)
        return None

    def _feed(self, worker: _Worker) -> None:
        """Give a worker its next shard; one that gets none stays, for it may have to take over from a lost one."""
        worker.shard = self._waiting.popleft() if self._waiting else next(self._source, None)
        worker.done = 0
        if worker.shard is not None:
            # A worker that is lost by now is noticed when it is listened to.
            with suppress(OSError):
                worker.connection.send(worker.shard)

    def _do_without(self, worker: _Worker) -> None:
        how = worker.end()
        number = self._workers.index(worker)
        self._tick(-worker.done)
        if worker.shard is not None:
            self._losses.note(worker.shard, how)
            self._waiting.appendleft(worker.shard)
        elif not worker.ready:
            self._never_ready += 1
            if self._never_ready == TRIES:
                raise HeadscopeError(f"The workers do not start (they end {how}); try {option('workers', 1)}.")
        idle = next((other for other in self._workers if other.ready and other.shard is None and other != worker), None)
        if self._waiting and idle is None:
            self._workers[number] = self._engine.start(number)
            return
        self._workers.remove(worker)
        if idle is not None:
            self._feed(idle)


def _context() -> Any:
    """Never a plain fork: this process has threads. Where it can be had, a server that has imported all is forked."""
    if sys.platform != "linux":
        return torch.multiprocessing.get_context("spawn")
    context = torch.multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _work(
    connection: Connection, packed: Packed, consumer: Consumer, options: Options, threads: int, device: str
) -> None:
    """What a worker process does: shards in, states out, until nobody is there any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        model = Model(unpack(packed).to(device), None, "worker")
        runner = ShardRunner(model, consumer, options, threads, say=lambda sentence: connection.send(("say", sentence)))
        connection.send(("ready", None))
        while True:
            shard = connection.recv()
            arrays = runner.run(shard, lambda count: connection.send(("tick", count)))
            _send(connection, runner.batch_size, arrays)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except Exception as problem:
        message = (
            ("problem", problem.sentence) if isinstance(problem, HeadscopeError) else ("bug", traceback.format_exc())
        )
        with suppress(OSError):
            connection.send(message)


def _send(connection: Connection, batch_size: int, arrays: Arrays) -> None:
    heading = [(name, array.dtype.name, array.shape) for name, array in arrays.items()]
    connection.send(("done", (batch_size, heading)))
    for array in arrays.values():
        connection.send_bytes(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _receive(connection: Connection, heading: list[tuple[str, str, tuple[int, ...]]]) -> Arrays:
    arrays = {}
    for name, dtype, shape in heading:
        arrays[name] = zeros(shape, dtype)
        connection.recv_bytes_into(arrays[name].reshape(-1).view(np.uint8).data)
    return arrays


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """A process begun in here never hears Ctrl-C, which a terminal sends to all: the first process ends the others."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _main_left_out(skeleton: bytes) -> Iterator[None]:
    """Keep a new process from importing the user's script again, which would run it, unless the model is from there."""
    main = sys.modules["__main__"]
    kept = {name: getattr(main, name, None) for name in ("__spec__", "__file__")}
    if b"__main__" in skeleton or kept["__file__"] is None:
        yield
        return
    main.__spec__ = None
    del main.__file__
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(main, name, value)

"""One run: windows from any source, through a model, to any consumer of A and Z. It can be killed and gone on with."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from headscope.errors import HeadscopeError
from headscope.files import Arrays, checksum, give_back
from headscope.model.capture import Capture
from headscope.model.loading import Model
from headscope.model.proof import prove
from headscope.model.proven import Proof
from headscope.options import Options
from headscope.progress import Bar
from headscope.run import checkpoints
from headscope.run.checkpoints import Checkpoints
from headscope.run.consumer import Consumer
from headscope.run.engines import Place
from headscope.run.engines.base import Engine
from headscope.run.shards import Part, Shard, cut_shards
from headscope.run.source import WindowSource
from headscope.run.sums import ExactSum
from headscope.speaking import ELSEWHERE, SAME, option

Item = TypeVar("Item")
Result = TypeVar("Result")
GETTING_READY = "Getting ready"
AHEAD = 2
"""Shards of windows that are made ready before they are needed."""


@dataclass(frozen=True)
class Ran:
    """How a run went, for whoever writes about it. fingerprints: of its shards, by their number in the whole. proof:
    that the capture is right, on the first windows; None where there is no window. rows: what is kept of every window,
    shard by shard, to be read before `finish` returns."""

    engine: str
    workers: int
    threads: int
    device: str
    batch_size: int
    windows: int
    fingerprints: dict[int, str]
    proof: Proof | None
    rows: Iterator[Arrays]


class Run:
    """Measures what no checkpoint in `folder` holds, and adds everything up. weights_hash is awaited when needed.
    called: what the bar says."""

    def __init__(
        self,
        model: Model,
        capture: Capture,
        source: WindowSource,
        consumer: Consumer,
        options: Options,
        *,
        folder: Path,
        place: Place,
        part: Part,
        weights_hash: Future[str],
        progress: bool,
        called: str | None = None,
    ) -> None:
        self._model = model
        self._capture = capture
        self._source = source
        self._consumer = consumer
        self._options = options
        self._folder = folder
        self._place = place
        self._part = part
        self._weights_hash = weights_hash
        self._progress = progress
        self._called = called or f"Measuring {model.name}"
        self._fingerprints: list[str] = []
        self._measured = 0
        self._cut = 0
        self._read_all = threading.Event()
        self._proof: Proof | None = None

    def measure(self, finish: Callable[[ExactSum, Ran], Result]) -> Result:
        """Run, and hand the sum of all shards to `finish`; only when that returns are the checkpoints removed."""
        specs = self._consumer.specs()
        with (
            Bar(GETTING_READY, self._source.unit, self._progress) as bar,
            closing(self._place.build(self._model, self._consumer, self._options, self._capture)) as engine,
            closing(Checkpoints(self._folder, specs, self._consumer.rows())) as kept,
        ):
            bar.name(self._called)
            kept.begin(self._identity(engine))
            self._run(engine, kept, bar)
            if not self._source.made:
                raise HeadscopeError(self._source.why_none())
            total = kept.total(len(self._fingerprints))
            if not total.whole:
                total = ExactSum({name: np.zeros(shape, dtype) for name, (dtype, shape) in specs.items()})
            give_back()  # to make tables takes memory of its own
            result = finish(total, self._ran(engine, kept))
            kept.superfluous()
        checkpoints.clear(self._folder)
        return result

    def _run(self, engine: Engine, kept: Checkpoints, bar: Bar) -> None:
        """Measure what no checkpoint holds."""
        if kept.fingerprints and self._progress:
            bar.say(f"Going on with the unfinished study in {self._folder}.")
        for sentence in kept.told:
            bar.say(sentence)

        def tick(count: int) -> None:
            bar.advance(count)
            bar.expect(*self._total())
            kept.check()

        to_do = self._to_do(self._proved(_ahead(self._shards(), AHEAD)), dict(kept.fingerprints), tick)
        with closing(engine.run(to_do, tick, bar.say)) as measured:
            for number, done in enumerate(measured, len(kept.fingerprints) + 1):
                index = done.shard.index
                last = self._read_all.is_set() and number == self._cut
                kept.add(index, self._fingerprints[index], done.arrays, done.batch_size, last)
                del done  # its arrays are large, and the next shard takes a while
        changed = self._source.changed()
        if changed:
            raise HeadscopeError(
                f"{changed[0]} changed while it was measured, so the results would be of no one text; what is measured "
                f"is kept: {SAME} goes on if the file is as it was, or use {option('overwrite', True)}."
            )

    def _shards(self) -> Iterator[Shard]:
        per_shard, part = self._source.windows_per_shard, self._part
        wanted = (lambda window: part.holds(window, per_shard)) if part.of > 1 else None
        for shard in cut_shards(self._source.windows(wanted), per_shard):
            self._cut += 1
            yield shard
        self._read_all.set()

    def _proved(self, shards: Iterable[Shard]) -> Iterator[Shard]:
        """The same shards; before the first is handed on, the capture is proved right on windows of it, and once more
        before the first that is padded, if that comes later."""
        with_padding = False
        for shard in shards:
            padded = not shard.batch.mask.all()
            if self._proof is None or (padded and not with_padding):
                inputs, mask = self._capture.inputs(shard.batch)
                proof = prove(self._capture, inputs, mask, self._capture.types(shard.batch))
                self._proof = proof if self._proof is None else self._proof.joined(proof)
                with_padding = padded
            yield shard

    def _to_do(self, shards: Iterable[Shard], kept: dict[int, str], tick: Callable[[int], None]) -> Iterator[Shard]:
        """The shards that no checkpoint holds; those that one holds must be of the same windows."""
        for shard in shards:
            fingerprint = shard.fingerprint
            self._fingerprints.append(fingerprint)
            self._measured += len(shard.batch)
            before = kept.get(shard.index)
            if before is None:
                yield shard
            elif before == fingerprint:
                tick(len(shard.batch))
            else:
                first = self._part.in_the_whole(shard.index) * self._source.windows_per_shard
                raise HeadscopeError(
                    f"The texts differ from those that the unfinished study in {self._folder} began with "
                    f"(in windows {first} to {first + len(shard.batch) - 1}); give the same texts, "
                    f"or {ELSEWHERE}."
                )

    def _total(self) -> tuple[int | None, bool]:
        """Windows there will be, and whether that is certain."""
        if self._read_all.is_set():
            return (self._source.made if self._part.of == 1 else self._measured), True
        estimate = self._source.expected
        return estimate and max(1, estimate // self._part.of), False

    def _identity(self, engine: Engine) -> dict[str, Any]:
        """What must be the same for a run to go on; the windows are compared shard by shard."""
        model = self._model
        return {
            "headscope": metadata.version("headscope"),
            "torch": metadata.version("torch"),
            "model": f"{model.architecture} {self._weights_hash.result()[:16]}",
            "dtype": model.dtype,
            "device": engine.device,
            "shard": f"{self._part.number}/{self._part.of}",
            "windows_per_shard": self._source.windows_per_shard,
            "states": checksum(repr(sorted((self._consumer.specs() | self._consumer.rows()).items())).encode())[:16],
            **self._consumer.identity(),
        }

    def _ran(self, engine: Engine, kept: Checkpoints) -> Ran:
        return Ran(
            engine.name,
            engine.workers,
            engine.threads,
            engine.device,
            kept.batch_size or self._options.windows_at_once,
            self._measured,
            {self._part.in_the_whole(index): value for index, value in enumerate(self._fingerprints)},
            self._proof,
            kept.rows(),
        )


def _ahead(items: Iterable[Item], depth: int) -> Iterator[Item]:
    """The same items, made in a thread of their own up to `depth` ahead; an exception arrives in its place."""
    ready: queue.Queue[tuple[Item | None, BaseException | None]] = queue.Queue(depth)
    stopped = threading.Event()

    def put(item: Item | None, problem: BaseException | None) -> None:
        while not stopped.is_set():
            try:
                return ready.put((item, problem), timeout=0.1)
            except queue.Full:
                continue

    def make() -> None:
        try:
            for item in items:
                put(item, None)
                if stopped.is_set():
                    return
            put(None, None)
        except BaseException as problem:
            put(None, problem)

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    try:
        while True:
            item, problem = ready.get()
            if problem is not None:
                raise problem
            if item is None:
                return
            yield item
    finally:
        stopped.set()
        # Not for ever: it may be waiting for standard input.
        thread.join(1)

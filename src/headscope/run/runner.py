"""The run: texts in, a study folder out."""

from __future__ import annotations

import hashlib
import os
import platform
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from headscope.corpus.texts import Text, Texts, as_texts
from headscope.corpus.windows import Counts, Cutter, Window, cut_all
from headscope.errors import HeadscopeError
from headscope.folder import study_folder as results
from headscope.folder.manifest import FORMAT, MANIFEST
from headscope.measure.shapes import shard_specs
from headscope.model.capture import Capture
from headscope.model.loading import Model, as_model
from headscope.one_text.looking import look
from headscope.options import Options
from headscope.progress import Bar
from headscope.run import checkpoints
from headscope.run import shards as cutting
from headscope.run.checkpoints import Checkpoints
from headscope.run.engines import Place
from headscope.run.engines.base import Engine
from headscope.run.shards import Part, Shard, chosen_layers, cut_shards
from headscope.run.sums import Sum
from headscope.wording import counted

Item = TypeVar("Item")
AHEAD = 2
"""Shards of windows that are made ready before they are needed."""


def study(
    model: Model | str = "minilm",
    texts: Any = None,
    *,
    out: str | os.PathLike[str] = "headscope-study",
    overwrite: bool = False,
    progress: bool = True,
    example: int = 0,
    engine: str = "local",
    workers: int | None = None,
    threads: int | None = None,
    address: str | None = None,
    shard: str = "1/1",
    **options: Any,
) -> results.Study:
    """Measure every head of a model over a corpus and write a study folder.

    model: a name (`headscope.load`) or a `Model`. texts: strings, paths, `headscope.read_texts(...)`; none: the sample.
    options: the fields of `headscope.Options`, for example `length=128, threshold=0.3, layers=(0, 5, 11)`.
    example: the number of the window that the study keeps, for figures that show one text.
    workers, threads: processes, and threads of each; engine "ray": workers on the Ray cluster at `address`.
    shard: "3/16" measures the third of sixteen parts, for `headscope.merge`.
    An unfinished study of the same model, texts and options in `out` goes on where it stopped.

    >>> import headscope
    >>> study = headscope.study("minilm", ["Some text ..."], out="wiki", short="pad")  # doctest: +SKIP
    >>> study.heads.nlargest(3, "repeat_probability")  # doctest: +SKIP
    """
    asked = Options(**options)
    if example < 0 or (asked.max_windows is not None and example >= asked.max_windows):
        raise HeadscopeError(
            f"--example is {example}; it must be the number of a window, from 0 on and below --max-windows."
        )
    place = Place(engine, workers, threads, address)
    part = Part.parse(shard)
    folder = Path(out)
    texts = as_texts(texts)
    results.claim(folder, overwrite)
    loaded = as_model(model)
    with checkpoints.locked(folder):
        # Once more: another run may have ended here while this one loaded its model.
        results.claim(folder, overwrite)
        return _Run(loaded, texts, folder, asked, place, part, progress, example).run(overwrite)


class _Run:
    """One study, from claim to manifest."""

    def __init__(
        self,
        model: Model,
        texts: Texts,
        folder: Path,
        options: Options,
        place: Place,
        part: Part,
        progress: bool,
        example: int,
    ) -> None:
        self._model = model
        self._texts = texts
        self._folder = folder
        self._options = options
        self._place = place
        self._part = part
        self._progress = progress
        self._example = example
        self._example_window: Window | None = None
        self._counts = Counts()
        self._texts_hash = hashlib.sha256()
        self._fingerprints: list[str] = []
        self._measured = 0
        self._read_all = threading.Event()
        model.check_length(options.length)
        self._cutter = Cutter(model.tokenizer, options)
        self._capture = Capture(model.network, options.stack)
        self._layers = chosen_layers(self._capture, options)
        self._weights_hash = ThreadPoolExecutor(1, "hash").submit(lambda: model.weights_hash)

    def run(self, overwrite: bool) -> results.Study:
        began = time.perf_counter()
        if overwrite:
            (self._folder / MANIFEST).unlink(missing_ok=True)
            checkpoints.clear(self._folder)
        specs = shard_specs(len(self._layers), self._capture.heads, self._options.length)
        with (
            Bar(f"Measuring {self._model.name}", "windows", self._progress) as bar,
            closing(self._place.build(self._model, self._options, self._capture)) as engine,
            closing(Checkpoints(self._folder, specs)) as kept,
        ):
            kept.begin(self._identity(engine))
            self._measure(engine, kept, bar)
            if not self._counts.windows:
                raise HeadscopeError(self._why_no_window())
            example = self._keep_example()
            total = kept.total(len(self._fingerprints))
            if not total.whole:
                total = Sum({name: np.zeros(shape, dtype) for name, (dtype, shape) in specs.items()})
            total.unpack(keep_rest=self._part.of > 1)
            manifest = self._manifest(engine, kept.batch_size or self._options.windows_at_once)
            manifest["example"] = example
            manifest["seconds"] = round(time.perf_counter() - began, 3)
            finished = results.write(self._folder, manifest, total)
        checkpoints.clear(self._folder)
        return finished

    def _measure(self, engine: Engine, kept: Checkpoints, bar: Bar) -> None:
        """Measure what no checkpoint holds."""
        if kept.fingerprints and self._progress:
            bar.say(f"Going on with the unfinished study in {self._folder}.")
        for sentence in kept.told:
            bar.say(sentence)

        def tick(count: int) -> None:
            bar.advance(count)
            bar.expect(*self._total())
            kept.check()

        to_do = self._to_do(_ahead(self._shards(), AHEAD), dict(kept.fingerprints), tick)
        with closing(engine.run(to_do, tick, bar.say)) as measured:
            for done in measured:
                index = done.shard.index
                kept.add(index, self._fingerprints[index], done.arrays, done.batch_size)
                del done  # its arrays are large, and the next shard takes a while
        changed = self._texts.changed()
        if changed:
            raise HeadscopeError(
                f"{changed[0]} changed while it was measured, so the results would be of no one text; what is measured "
                "is kept: the same command goes on if the file is as it was, or use --overwrite."
            )

    def _shards(self) -> Iterator[Shard]:
        wanted = self._part.holds if self._part.of > 1 else None
        windows = cut_all(self._noted_texts(), self._cutter, self._counts, self._options.max_windows, wanted)
        yield from cut_shards(self._noticing_example(windows))
        self._read_all.set()

    def _noted_texts(self) -> Iterator[Text]:
        """The texts; what was read of them is hashed, so that parts of one study know each other."""
        for text in self._texts:
            content = text.text.encode()
            self._texts_hash.update(len(content).to_bytes(8, "little"))
            self._texts_hash.update(content)
            yield text

    def _noticing_example(self, windows: Iterable[Window]) -> Iterator[Window]:
        for window in windows:
            if self._counts.windows - 1 == self._example:
                self._example_window = window
            yield window

    def _keep_example(self) -> dict[str, Any] | None:
        """Write the example beside the results, and say for the manifest which it is; None in a part without it."""
        if self._example >= self._counts.windows:
            raise HeadscopeError(
                f"--example is {self._example}, but the windows are numbered 0 to {self._counts.windows - 1}; "
                "what is measured is kept, and the same command with another --example ends at once."
            )
        if self._example_window is None:
            return None
        view = look(self._model, self._capture, self._example_window, self._options)
        view.save(self._folder)
        return {"window": self._example, "origin": view.origin}

    def _to_do(self, shards: Iterable[Shard], kept: dict[int, str], tick: Any) -> Iterator[Shard]:
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
                first = self._part.in_the_whole(shard.index) * cutting.WINDOWS_PER_SHARD
                raise HeadscopeError(
                    f"The texts differ from those that the unfinished study in {self._folder} began with "
                    f"(in windows {first} to {first + len(shard.batch) - 1}); give the same texts, another --out, "
                    "or --overwrite."
                )

    def _total(self) -> tuple[int | None, bool]:
        """Windows there will be, and whether that is certain."""
        windows = self._counts.windows
        if self._read_all.is_set():
            return (windows if self._part.of == 1 else self._measured), True
        share = self._texts.read_share
        estimate = int(windows / share) if share else None
        most = self._options.max_windows
        if most is not None and (estimate is None or estimate > most):
            estimate = most
        return estimate and max(1, estimate // self._part.of), False

    def _why_no_window(self) -> str:
        counts, length = self._counts, self._options.length
        if counts.short_windows_left_out:
            specials = len(self._cutter.prefix) + len(self._cutter.suffix)
            return (
                f"Every text is shorter than a window: the longest of {counts.texts:,} has "
                f"{counted(counts.longest_short, 'token')}, and --length {length} needs {length - specials} beside "
                f"{specials} special ones; "
                "use --short pad, or a smaller --length."
            )
        return f"There is no text to measure: {counted(counts.texts, 'text')} read, and no token found."

    def _identity(self, engine: Engine) -> dict[str, Any]:
        """What must be the same for a study to go on; the texts are compared shard by shard."""
        model = self._model
        return {
            "headscope": metadata.version("headscope"),
            "torch": metadata.version("torch"),
            "model": f"{model.architecture} {self._weights_hash.result()[:16]}",
            "dtype": model.dtype,
            "device": engine.device,
            "shard": f"{self._part.number}/{self._part.of}",
            "windows_per_shard": cutting.WINDOWS_PER_SHARD,
            **self._options.as_dict(),
        }

    def _manifest(self, engine: Engine, batch_size: int) -> dict[str, Any]:
        model = self._model
        counts = {key: value for key, value in asdict(self._counts).items() if key != "longest_short"}
        return {
            "format": FORMAT,
            "headscope": metadata.version("headscope"),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "model": {
                "name": model.name,
                "architecture": model.architecture,
                "family": model.network.config.model_type,
                "weights_sha256": self._weights_hash.result(),
                "dtype": model.dtype,
                "layers": self._capture.layers,
                "heads": self._capture.heads,
                "head_width": self._capture.head_width,
                "captured_by": self._capture.route,
                "stack": self._capture.stack,
            },
            "texts": {
                "name": self._texts.name,
                "sha256": self._texts_hash.hexdigest(),
                "windows_sha256": results.windows_hash(
                    {self._part.in_the_whole(index): value for index, value in enumerate(self._fingerprints)}
                ),
            },
            "options": self._options.as_dict(),
            "layers": list(self._layers),
            "counts": {
                **counts,
                "windows": self._measured,
                "unreadable_records_left_out": self._texts.bad,
            },
            "part": asdict(self._part) | {"windows_in_all": self._counts.windows} if self._part.of > 1 else None,
            "run": {
                "engine": engine.name,
                "workers": engine.workers,
                "threads": engine.threads,
                "device": engine.device,
                "batch_size": batch_size,
                "windows_per_shard": cutting.WINDOWS_PER_SHARD,
            },
            "versions": {
                "python": platform.python_version(),
                **{name: metadata.version(name) for name in ("torch", "transformers", "numpy", "nupunkt")},
            },
        }


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

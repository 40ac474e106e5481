"""The run: texts in, a study folder out."""

from __future__ import annotations

import hashlib
import os
import platform
import queue
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import torch
from filelock import FileLock, Timeout

from headscope import results
from headscope.capture import Capture
from headscope.checkpoints import FOLDER as UNFINISHED
from headscope.checkpoints import Checkpoints
from headscope.engines import local
from headscope.errors import HeadscopeError
from headscope.looking import look
from headscope.models import Model, as_model
from headscope.options import Options
from headscope.progress import Bar
from headscope.shards import WINDOWS_PER_SHARD, Shard, ShardRunner, chosen_layers, cut_shards
from headscope.texts import Texts, as_texts
from headscope.windows import Counts, Cutter, Window, cut_all

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
    **options: Any,
) -> results.Study:
    """Measure every head of a model over a corpus and write a study folder.

    model: a name (`headscope.load`) or a `Model`. texts: strings, paths, `headscope.read_texts(...)`; none: the sample.
    options: the fields of `headscope.Options`, for example `length=128, threshold=0.3, layers=(0, 5, 11)`.
    example: the number of the window that the study keeps, for figures that show one text.
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
    folder = Path(out)
    texts = as_texts(texts)
    results.claim(folder, overwrite)
    lock = FileLock(folder / ".lock")
    try:
        with lock.acquire(timeout=0):
            return _Run(as_model(model), texts, folder, asked, progress, example).run(overwrite)
    except Timeout:
        raise HeadscopeError(f"Another run is writing to {folder}; wait for it, or give another --out.") from None
    finally:
        if not lock.is_locked:
            (folder / ".lock").unlink(missing_ok=True)


class _Run:
    """One study, from claim to manifest."""

    def __init__(
        self, model: Model, texts: Texts, folder: Path, options: Options, progress: bool, example: int
    ) -> None:
        self._model = model
        self._texts = texts
        self._folder = folder
        self._options = options
        self._progress = progress
        self._example = example
        self._example_window: Window | None = None
        self._counts = Counts()
        self._read_all = threading.Event()
        model.check_length(options.length)
        self._cutter = Cutter(model.tokenizer, options)
        self._capture = Capture(model.network, options.stack)
        self._layers = chosen_layers(self._capture, options)

    def run(self, overwrite: bool) -> results.Study:
        began = time.perf_counter()
        if overwrite:
            (self._folder / results.MANIFEST).unlink(missing_ok=True)
            if (self._folder / UNFINISHED).is_dir():
                shutil.rmtree(self._folder / UNFINISHED)
        checkpoints = Checkpoints(self._folder)
        going_on = checkpoints.begin(self._identity())
        runner = ShardRunner(self._model, self._options, self._capture)
        with Bar(f"Measuring {self._model.name}", "windows", self._progress) as bar:
            if going_on and checkpoints.fingerprints:
                bar.say(f"Going on with the unfinished study in {self._folder}.")
            for index in checkpoints.damaged:
                bar.say(f"A checkpoint (number {index}) was damaged; its shard is measured again.")
            shards = _ahead(self._shards(), AHEAD)
            fingerprints: list[str] = []

            def tick(count: int) -> None:
                bar.advance(count)
                bar.expect(*self._total())

            for shard, arrays in local.run(runner, self._to_do(shards, checkpoints, fingerprints, tick), tick):
                checkpoints.add(shard.index, fingerprints[shard.index], arrays)
        if not fingerprints:
            raise HeadscopeError(self._why_no_window())
        manifest = self._manifest(fingerprints, runner.batch_size)
        manifest["example"] = self._keep_example()
        manifest["seconds"] = round(time.perf_counter() - began, 3)
        finished = results.write(self._folder, manifest, checkpoints.total())
        checkpoints.remove()
        return finished

    def _shards(self) -> Iterator[Shard]:
        windows = cut_all(self._texts, self._cutter, self._counts, self._options.max_windows)
        yield from cut_shards(self._noticing_example(windows))
        self._read_all.set()

    def _noticing_example(self, windows: Iterable[Window]) -> Iterator[Window]:
        for number, window in enumerate(windows):
            if number == self._example:
                self._example_window = window
            yield window

    def _keep_example(self) -> dict[str, Any]:
        """Write the example beside the results, and say for the manifest which it is."""
        if self._example_window is None:
            last = self._counts.windows - 1
            raise HeadscopeError(
                f"--example is {self._example}, but the windows are numbered 0 to {last}; "
                "what is measured is kept, and the same command with another --example ends at once."
            )
        view = look(self._model, self._capture, self._example_window, self._options)
        view.save(self._folder)
        return {"window": self._example, "origin": view.origin}

    def _to_do(
        self, shards: Iterable[Shard], checkpoints: Checkpoints, fingerprints: list[str], tick: Any
    ) -> Iterator[Shard]:
        """The shards that no checkpoint holds; those that one holds must be of the same windows."""
        for shard in shards:
            fingerprint = shard.fingerprint
            fingerprints.append(fingerprint)
            before = checkpoints.fingerprints.get(shard.index)
            if before is None:
                yield shard
            elif before == fingerprint:
                tick(len(shard.batch))
            else:
                first = shard.index * WINDOWS_PER_SHARD
                raise HeadscopeError(
                    f"The texts differ from those that the unfinished study in {self._folder} began with "
                    f"(in windows {first} to {first + len(shard.batch) - 1}); give the same texts, another --out, "
                    "or --overwrite."
                )

    def _total(self) -> tuple[int | None, bool]:
        """Windows there will be, and whether that is certain."""
        windows = self._counts.windows
        if self._read_all.is_set():
            return windows, True
        share = self._texts.read_share
        estimate = int(windows / share) if share else None
        most = self._options.max_windows
        if most is not None and (estimate is None or estimate > most):
            return most, False
        return estimate, False

    def _why_no_window(self) -> str:
        counts, length = self._counts, self._options.length
        if counts.short_windows_left_out:
            specials = len(self._cutter.prefix) + len(self._cutter.suffix)
            return (
                f"All {counts.texts} texts are shorter than a window: the longest has {counts.longest_short} tokens, and "
                f"--length {length} needs {length - specials} beside {specials} special ones; "
                "use --short pad, or a smaller --length."
            )
        return f"There is no text to measure: {counts.texts} texts were read and none holds a token."

    def _identity(self) -> dict[str, Any]:
        """What must be the same for a study to go on; the texts are compared shard by shard."""
        return {
            "headscope": metadata.version("headscope"),
            "model": self._model.name,
            "weights": self._model.weights_hash,
            "dtype": self._model.dtype,
            "device": str(self._model.device),
            "threads": torch.get_num_threads(),
            **self._options.as_dict(),
        }

    def _manifest(self, fingerprints: list[str], batch_size: int) -> dict[str, Any]:
        model = self._model
        counts = {key: value for key, value in asdict(self._counts).items() if key != "longest_short"}
        return {
            "format": results.FORMAT,
            "headscope": metadata.version("headscope"),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "model": {
                "name": model.name,
                "architecture": model.architecture,
                "family": model.network.config.model_type,
                "weights_sha256": model.weights_hash,
                "dtype": model.dtype,
                "layers": self._capture.layers,
                "heads": self._capture.heads,
                "head_width": self._capture.head_width,
                "captured_by": self._capture.route,
                "stack": self._capture.stack,
            },
            "texts": {
                "name": self._texts.name,
                "windows_sha256": hashlib.sha256("".join(fingerprints).encode()).hexdigest(),
            },
            "options": self._options.as_dict(),
            "layers": list(self._layers),
            "counts": counts | {"unreadable_records_left_out": self._texts.bad},
            "run": {
                "device": str(model.device),
                "threads": torch.get_num_threads(),
                "batch_size": batch_size,
                "windows_per_shard": WINDOWS_PER_SHARD,
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
        thread.join()

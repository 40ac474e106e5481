"""One study, from its windows to its folder."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from headscope.corpus.image_windows import ImageWindows
from headscope.corpus.text_windows import TextWindows
from headscope.errors import HeadscopeError
from headscope.folder.manifest import (
    CountFacts,
    ExampleFacts,
    FileFacts,
    Manifest,
    ModelFacts,
    NullFacts,
    PartFacts,
    RunFacts,
    SourceFacts,
)
from headscope.folder.windows_file import write_windows
from headscope.folder.writing import write
from headscope.measure.accumulate import ROWS, AllMeasures
from headscope.model.capture import Capture
from headscope.model.loading import Model
from headscope.one_text.look import look
from headscope.options import Options
from headscope.run.engines import Place
from headscope.run.fingerprints import windows_hash
from headscope.run.runner import Ran, Run
from headscope.run.shards import Part
from headscope.run.sums import ExactSum
from headscope.speaking import SAME, option


class StudyJob:
    """Measures the windows of a source and writes the folder. example: the number of the window to keep, None for none.
    null: what the study is a null of. notices: what a reader should know of its texts. called: what the progress bar
    says."""

    def __init__(
        self,
        model: Model,
        capture: Capture,
        source: TextWindows | ImageWindows,
        options: Options,
        part: Part,
        *,
        example: int | None = None,
        null: NullFacts | None = None,
        notices: Sequence[str] = (),
        called: str | None = None,
    ) -> None:
        self._model = model
        self._capture = capture
        self._source = source
        self._options = options
        self._part = part
        self._example = example
        self._null = null
        self._called = called
        self._notices = notices
        self._layers = capture.chosen_layers(options.layers)

    def run(self, folder: Path, place: Place, progress: bool) -> None:
        began = time.perf_counter()
        consumer = AllMeasures(self._options, self._layers, self._capture.heads)
        weights_hash: Future[str] = ThreadPoolExecutor(1, "hash").submit(lambda: self._model.weights_hash)
        run = Run(
            self._model,
            self._capture,
            self._source,
            consumer,
            self._options,
            folder=folder,
            place=place,
            part=self._part,
            weights_hash=weights_hash,
            progress=progress,
            called=self._called,
        )

        def finish(total: ExactSum, ran: Ran) -> None:
            kept = self._keep_example(folder)
            manifest = self._manifest(ran, weights_hash.result(), kept)
            self._keep_windows(folder, manifest, ran)
            write(folder, replace(manifest, seconds=round(time.perf_counter() - began, 3)), total)

        run.measure(finish)

    def _keep_example(self, folder: Path) -> ExampleFacts | None:
        """Write the example beside the results, and say which it is; None in a part without it, and where there is to
        be none."""
        if isinstance(self._source, ImageWindows) or self._example is None:
            return None
        if self._example >= self._source.made:
            raise HeadscopeError(
                f"{option('example')} is {self._example}, but the windows are numbered 0 to {self._source.made - 1}; "
                f"what is measured is kept, and {SAME} with another {option('example')} ends at once."
            )
        if self._source.example_window is None:
            return None
        view = look(self._model, self._capture, self._source.example_window, self._options)
        view.save(folder)
        return ExampleFacts(self._example, view.origin)

    def _keep_windows(self, folder: Path, manifest: Manifest, ran: Ran) -> None:
        """Write the numbers of every window, where they are asked for."""
        if not isinstance(self._source, TextWindows) or self._source.facts is None or not ran.windows:
            return
        shards = (arrays[ROWS] for arrays in ran.rows)
        token = self._model.tokenizer.convert_ids_to_tokens
        with closing(self._source.facts) as facts:
            write_windows(folder, manifest.layers, manifest.gives, facts, shards, token)

    def _manifest(self, ran: Ran, weights_hash: str, example: ExampleFacts | None) -> Manifest:
        model, capture, source, part = self._model, self._capture, self._source, self._part
        counts = {name: value for name, value in asdict(source.counts).items() if name != "longest_short"}
        facts: dict[str, Any] = {"windows": ran.windows, "unreadable_records_left_out": source.unusable}
        if isinstance(source, TextWindows):
            facts |= {"other_files_left_out": source.other_files, "windows_drawn_from": source.drawn_from}
        return Manifest(
            headscope=metadata.version("headscope"),
            kind="images" if isinstance(source, ImageWindows) else "texts",
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            model=ModelFacts(
                name=model.name,
                layers=capture.layers,
                heads=capture.heads,
                head_width=capture.head_width,
                architecture=model.architecture,
                family=model.network.config.model_type,
                weights_sha256=weights_hash,
                dtype=model.dtype,
                captured_by=capture.route,
                carried_by=capture.carried_by,
                stack=capture.stack,
                other_layers={str(layer): what for layer, what in capture.other_layers.items()} or None,
                proof=ran.proof,
            ),
            source=SourceFacts(
                name=source.name,
                sha256=source.sha256,
                windows_sha256=windows_hash(ran.fingerprints),
                grid=source.grid if isinstance(source, ImageWindows) else None,
                **(_read_from(source) if isinstance(source, TextWindows) else {}),
            ),
            options=self._options,
            layers=list(self._layers),
            counts=CountFacts(**counts | facts),
            part=PartFacts(part.number, part.of, source.made) if part.of > 1 else None,
            null=self._null,
            shards={str(index): value for index, value in ran.fingerprints.items()} if part.of > 1 else None,
            example=example,
            notices=[*model.notices, *self._notices],
            run=RunFacts(
                device=ran.device,
                engine=ran.engine,
                workers=ran.workers,
                threads=ran.threads,
                batch_size=ran.batch_size,
                windows_per_shard=source.windows_per_shard,
            ),
            versions={
                "python": platform.python_version(),
                **{name: metadata.version(name) for name in ("torch", "transformers", "numpy", "nupunkt")},
            },
        )


def _read_from(source: TextWindows) -> dict[str, Any]:
    """The places that texts were read from, as a manifest has them."""
    return {
        "reading": source.reading,
        "files": [FileFacts(one.name, one.texts, one.windows) for one in source.used.listed],
        "more_files": source.used.more,
        "files_not_reached": source.not_reached,
    }

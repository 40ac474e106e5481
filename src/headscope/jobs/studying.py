"""`headscope.study`: texts or images in, a study folder out."""

from __future__ import annotations

import os
import platform
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from headscope.corpus.grid import Grid
from headscope.corpus.image_windows import ImageWindows
from headscope.corpus.images import Images
from headscope.corpus.text_windows import TextWindows
from headscope.corpus.texts import Texts, as_texts
from headscope.errors import HeadscopeError
from headscope.folder.manifest import (
    IMAGES_MANIFEST,
    MANIFEST,
    CountFacts,
    ExampleFacts,
    Manifest,
    ModelFacts,
    PartFacts,
    RunFacts,
    SourceFacts,
)
from headscope.folder.study_folder import claim
from headscope.folder.writing import write
from headscope.measure.accumulate import AllMeasures
from headscope.model.capture import Capture
from headscope.model.loading import Model, as_model
from headscope.model.stacks import has_two_towers
from headscope.one_text.look import look
from headscope.options import Options
from headscope.run import checkpoints, shards
from headscope.run.engines import Place
from headscope.run.fingerprints import windows_hash
from headscope.run.runner import Ran, Run
from headscope.run.shards import Part
from headscope.run.sums import ExactSum
from headscope.show.objects import Study

IMAGES_AT_ONCE = 4
"""In a batch of images whose size is not asked for."""


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
) -> Study:
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
    given = texts if isinstance(texts, Images) else as_texts(texts)
    claim(folder, overwrite)
    loaded = as_model(model)
    with checkpoints.locked(folder):
        # Once more: another run may have ended here while this one loaded its model.
        claim(folder, overwrite)
        job = _Job(loaded, given, asked, part, example)
        if overwrite:
            for name in (MANIFEST, IMAGES_MANIFEST):
                (folder / name).unlink(missing_ok=True)
            checkpoints.clear(folder)
        job.run(folder, place, progress)
    return Study(folder)


def study_images(
    model: Model | str,
    images: Any,
    *,
    max_images: int | None = None,
    **options: Any,
) -> Study:
    """Measure every head of a vision model over images, and write a study folder.

    images: paths of files or folders, or arrays (height, width, 3) of 0 to 255. The model's own image processor scales
    and crops them. max_images: stop after so many. All else is as in `headscope.study`.

    >>> import headscope
    >>> study = headscope.study_images("google/vit-base-patch16-224", "photos/", out="photos-vit")  # doctest: +SKIP
    """
    return study(model, Images(images), max_windows=max_images, **options)


class _Job:
    """One study, from its source to its manifest."""

    def __init__(self, model: Model, given: Texts | Images, options: Options, part: Part, example: int) -> None:
        self._model = model
        self._part = part
        self._example = example
        if isinstance(given, Images) and options.stack is None and has_two_towers(model.network):
            options = replace(options, stack="vision")
        self._capture = Capture(model.network, options.stack)
        self._source: TextWindows | ImageWindows
        if isinstance(given, Images):
            self._source, options = self._images(given, options)
        else:
            if model.takes_images and not self._capture.reads_text:
                raise HeadscopeError(
                    f"{model.name} takes images, not texts; give image files, or folders that hold nothing but images."
                )
            model.check_length(options.length)
            self._source = TextWindows(
                given,
                model.tokenizer,
                options,
                shards.WINDOWS_PER_SHARD,
                example=example,
                model_name=model.name,
                embedding_rows=model.embedding_rows,
            )
        self._options = options
        self._layers = self._capture.chosen_layers(options.layers)

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
        )

        def finish(total: ExactSum, ran: Ran) -> None:
            kept = self._keep_example(folder)
            if self._part.of == 1:  # only what is to be added to again needs its rest, and it is large
                total.rest.clear()
            manifest = self._manifest(ran, weights_hash.result(), kept)
            write(folder, replace(manifest, seconds=round(time.perf_counter() - began, 3)), total)

        run.measure(finish)

    def _images(self, given: Images, options: Options) -> tuple[ImageWindows, Options]:
        model = self._model
        if not model.takes_images or self._capture.reads_text:
            stack = f" with --stack {options.stack}" if model.takes_images and options.stack else ""
            raise HeadscopeError(f"{model.name} does not take images{stack}; headscope study measures it over texts.")
        most = shards.WINDOWS_PER_SHARD
        source = ImageWindows(given, model.prepares_images, model.name, options.max_windows, most)
        source.grid = _grid(model, self._capture, torch.from_numpy(source.first)[None])
        at_once = options.batch_size or IMAGES_AT_ONCE
        return source, replace(options, length=source.grid.tokens, batch_size=at_once)

    def _keep_example(self, folder: Path) -> ExampleFacts | None:
        """Write the example beside the results, and say which it is; None in a part without it, and of images."""
        if isinstance(self._source, ImageWindows):
            return None
        if self._example >= self._source.made:
            raise HeadscopeError(
                f"--example is {self._example}, but the windows are numbered 0 to {self._source.made - 1}; "
                "what is measured is kept, and the same command with another --example ends at once."
            )
        if self._source.example_window is None:
            return None
        view = look(self._model, self._capture, self._source.example_window, self._options)
        view.save(folder)
        return ExampleFacts(self._example, view.origin)

    def _manifest(self, ran: Ran, weights_hash: str, example: ExampleFacts | None) -> Manifest:
        model, capture, source, part = self._model, self._capture, self._source, self._part
        counts = {name: value for name, value in asdict(source.counts).items() if name != "longest_short"}
        facts = {"windows": ran.windows, "unreadable_records_left_out": source.unusable}
        if isinstance(source, TextWindows):
            facts["other_files_left_out"] = source.other_files
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
            ),
            options=self._options,
            layers=list(self._layers),
            counts=CountFacts(**counts | facts),
            part=PartFacts(part.number, part.of, source.made) if part.of > 1 else None,
            shards={str(index): value for index, value in ran.fingerprints.items()} if part.of > 1 else None,
            example=example,
            notices=list(model.notices),
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


def _grid(model: Model, capture: Capture, pixels: torch.Tensor) -> Grid:
    """From what was captured of one image: tokens that are more than the patches come before them."""
    patch = getattr(capture.network.config, "patch_size", None)
    if not isinstance(patch, int):
        raise HeadscopeError(f"{model.name} does not say how large its patches are, so they have no grid.")
    rows, columns = (side // patch for side in pixels.shape[2:])
    tokens: list[int] = []
    pixels = pixels.to(model.device, next(model.network.parameters()).dtype)
    try:
        capture.run(pixels, None, lambda layer, A, Z: tokens.append(Z.shape[2]))
    except (TypeError, ValueError, RuntimeError, AttributeError) as problem:
        reason = f"{type(problem).__name__}: {' '.join(str(problem).split())}"
        raise HeadscopeError(f"{model.name} can't be measured: with eager attention it fails with {reason}.") from None
    if tokens[0] < rows * columns:
        raise HeadscopeError(f"{model.name} has {tokens[0]} tokens for {rows} x {columns} patches; it has no grid.")
    return Grid(rows, columns, tokens[0] - rows * columns)

"""`headscope.study`: texts or images in, a study folder out."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from headscope.corpus.grid import Grid
from headscope.corpus.image_windows import ImageWindows
from headscope.corpus.images import Images
from headscope.corpus.text_windows import TextWindows
from headscope.corpus.texts import Texts, as_texts
from headscope.errors import HeadscopeError
from headscope.folder.manifest import IMAGES_MANIFEST, MANIFEST
from headscope.folder.study_folder import claim
from headscope.jobs.null_studies import nulls as measure_nulls
from headscope.jobs.study_job import StudyJob
from headscope.model.capture import Capture
from headscope.model.loading import Model, as_model
from headscope.model.stacks import has_two_towers
from headscope.options import Options
from headscope.run import checkpoints, shards
from headscope.run.engines import Place
from headscope.run.shards import Part
from headscope.show.objects import Study

IMAGES_AT_ONCE = 4
"""In a batch of images whose size is not asked for."""


def study(
    model: Model | str = "minilm",
    texts: Any = None,
    *,
    field: str | None = None,
    out: str | os.PathLike[str] = "headscope-study",
    overwrite: bool = False,
    progress: bool = True,
    example: int = 0,
    engine: str = "local",
    workers: int | None = None,
    threads: int | None = None,
    address: str | None = None,
    shard: str = "1/1",
    nulls: bool = False,
    **options: Any,
) -> Study:
    """Measure every head of a model over a corpus and write a study folder.

    model: a name or a `Model` (`headscope.load`). texts: strings (a list, a pandas Series, ...), a pandas DataFrame, a
    `datasets.Dataset` or dicts with the text in `field` (by default `text`), `Path`s, or `headscope.read_texts(...)`;
    none: the sample.
    options: the fields of `headscope.Options`, for example `length=128, threshold=0.3, layers=(0, 5, 11)`.
    example: the number of the window that the study keeps, for figures that show one text.
    workers, threads: processes, and threads of each; engine "ray": workers on the Ray cluster at `address`.
    shard: "3/16" measures the third of sixteen parts, for `headscope.merge`. nulls: measure them too, as
    `headscope.nulls` does: then heads have roles.
    An unfinished study of the same model, texts and options in `out` goes on where it stopped.

    >>> import headscope
    >>> study = headscope.study("minilm", ["Some text ..."], out="wiki", short="pad")  # doctest: +SKIP
    >>> study = headscope.study("minilm", reviews, field="body", out="reviews")  # a DataFrame  # doctest: +SKIP
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
    given = texts if isinstance(texts, Images) else as_texts(texts, field)
    if nulls:
        _check_nulls(given, part)
    claim(folder, overwrite)
    loaded = as_model(model)
    with checkpoints.locked(folder):
        # Once more: another run may have ended here while this one loaded its model.
        claim(folder, overwrite)
        job = _job(loaded, given, asked, part, example)
        if overwrite:
            for name in (MANIFEST, IMAGES_MANIFEST):
                (folder / name).unlink(missing_ok=True)
            checkpoints.clear(folder)
        job.run(folder, place, progress)
    if nulls:
        return measure_nulls(
            folder,
            loaded,
            given,
            overwrite=overwrite,
            progress=progress,
            engine=engine,
            workers=workers,
            threads=threads,
            address=address,
        )
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


def _check_nulls(given: Texts | Images, part: Part) -> None:
    """Before anything is measured, not after."""
    if isinstance(given, Images):
        raise HeadscopeError("--nulls is for texts; studies of images have no nulls.")
    if part.of > 1:
        raise HeadscopeError("--nulls can't be had of a part of a study; merge the parts, then run headscope nulls.")
    if given.once:
        raise HeadscopeError("--nulls reads the texts several times, which these do not allow; give files, or a list.")


def _job(model: Model, given: Texts | Images, options: Options, part: Part, example: int) -> StudyJob:
    if isinstance(given, Images) and options.stack is None and has_two_towers(model.network):
        options = replace(options, stack="vision")
    capture = Capture(model.network, options.stack)
    source: TextWindows | ImageWindows
    if isinstance(given, Images):
        source, options = _images(model, capture, given, options)
    else:
        if model.takes_images and not capture.reads_text:
            raise HeadscopeError(
                f"{model.name} takes images, not texts; give image files, or folders that hold nothing but images."
            )
        model.check_length(options.length)
        source = TextWindows(
            given,
            model.tokenizer,
            options,
            shards.WINDOWS_PER_SHARD,
            example=example,
            model_name=model.name,
            embedding_rows=model.embedding_rows,
        )
    return StudyJob(model, capture, source, options, part, example=example)


def _images(model: Model, capture: Capture, given: Images, options: Options) -> tuple[ImageWindows, Options]:
    if not model.takes_images or capture.reads_text:
        stack = f" with --stack {options.stack}" if model.takes_images and options.stack else ""
        raise HeadscopeError(f"{model.name} does not take images{stack}; headscope study measures it over texts.")
    most = shards.WINDOWS_PER_SHARD
    source = ImageWindows(given, model.prepares_images, model.name, options.max_windows, most)
    source.grid = _grid(model, capture, torch.from_numpy(source.first)[None])
    at_once = options.batch_size or IMAGES_AT_ONCE
    return source, replace(options, length=source.grid.tokens, batch_size=at_once)


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

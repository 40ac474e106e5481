"""`headscope.study`: texts or images in, a study folder out."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from headscope.arguments import naming_typos
from headscope.console import say
from headscope.corpus.grid import Grid
from headscope.corpus.image_windows import ImageWindows
from headscope.corpus.images import Images
from headscope.corpus.meta import check_first
from headscope.corpus.short_texts import CHARACTERS, LOOKED_AT
from headscope.corpus.text_windows import TextWindows
from headscope.corpus.texts import Texts, as_texts
from headscope.errors import HeadscopeError
from headscope.folder.by_windows import write_by
from headscope.folder.manifest import IMAGES_MANIFEST, MANIFEST
from headscope.folder.study_folder import claim
from headscope.folder.windows_file import check_meta
from headscope.jobs.chosen_windows import check_sample, chosen_windows, fitted
from headscope.jobs.finished_studies import is_there
from headscope.jobs.study_job import StudyJob
from headscope.measure.catalogue import MOST_MAPS, map_bytes
from headscope.model.capture import Capture
from headscope.model.loading import Model, as_model
from headscope.model.stacks import has_two_towers
from headscope.options import Options
from headscope.run import checkpoints, shards
from headscope.run.engines import Place
from headscope.run.shards import Part
from headscope.show.objects import Study
from headscope.speaking import either, option

IMAGES_AT_ONCE = 4
"""In a batch of images whose size is not asked for."""
_OPTIONS = tuple(item.name for item in fields(Options))


@naming_typos(_OPTIONS)
def study(
    model: Model | str = "minilm",
    texts: Any = None,
    *,
    field: str | Sequence[str] | None = None,
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
    none: the sample. Pairs of texts, each one window: a list of two strings each, or two names in `field`. Token ids,
    each row one window as it is: a list of rows, an array, or what a tokenizer returns.
    options: the fields of `headscope.Options`, for example `length=128, threshold=0.3, layers=(0, 5, 11)`.
    example: the number of the window that the study keeps, for figures that show one text.
    workers, threads: processes, and threads of each; engine "ray": workers on the Ray cluster at `address`.
    shard: "3/16" measures the third of sixteen parts, for `headscope.merge`. nulls: measure them too, as
    `headscope.nulls` does: then heads have roles.
    An unfinished study of the same model, texts and options in `out` goes on where it stopped, a finished one is
    returned at once; for another, give another `out`, or `overwrite=True`.

    >>> import headscope
    >>> study = headscope.study("minilm", ["Some text ..."], out="wiki", short="pad")  # doctest: +SKIP
    >>> study = headscope.study("minilm", reviews, field="body", out="reviews")  # a DataFrame  # doctest: +SKIP
    >>> study = headscope.study("minilm", pairs, field=("premise", "hypothesis"), out="nli")  # doctest: +SKIP
    >>> study = headscope.study("minilm", tokenizer(texts, padding=True), out="ids")  # doctest: +SKIP
    >>> study.heads.nlargest(3, "repeat_probability")  # doctest: +SKIP
    """
    asked = Options(**options)
    most = asked.max_windows or asked.sample
    if example < 0 or (most is not None and example >= most):
        raise HeadscopeError(
            f"{option('example')} is {example}; it must be the number of a window, from 0 on and below "
            f"{option('max_windows')} or {option('sample')}."
        )
    place = Place(engine, workers, threads, address)
    part = Part.parse(shard)
    folder = Path(out)
    given = texts if isinstance(texts, Images) else as_texts(texts, field)
    if nulls:
        _check_nulls(given, part)
    if asked.sample is not None:
        _check_sample(given)
    if asked.keep_windows:
        _check_windows(given, asked)
    of_images = isinstance(given, Images)
    claim(folder, overwrite, finished=not of_images)
    loaded = as_model(model)
    with checkpoints.locked(folder):
        # Once more: another run may have ended here while this one loaded its model.
        claim(folder, overwrite, finished=not of_images)
        if isinstance(given, Texts) and "length" not in options:
            asked = fitted(loaded, given, asked)
        prepared = _prepared(loaded, given, asked, example, progress)
        if overwrite:
            for name in (MANIFEST, IMAGES_MANIFEST):
                (folder / name).unlink(missing_ok=True)
            checkpoints.clear(folder)
        if isinstance(given, Texts) and is_there(folder, loaded, given, prepared.options, part, example):
            if progress:
                say(f"{folder} holds this study already: the same model, texts and options.")
        else:
            capture, source, chosen, notices = prepared
            job = StudyJob(loaded, capture, source, chosen, part, example=example, notices=notices)
            job.run(folder, place, progress)
        finished = Study(folder)
        if finished.manifest.keeps_windows and part.of == 1:
            write_by(folder, finished.manifest)
    if nulls:
        # What it makes of null studies takes pandas, and thereby memory that no study needs while it measures.
        from headscope.jobs.null_studies import nulls as measure_nulls

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
    return finished


@naming_typos({*_OPTIONS, *inspect.signature(study).parameters} - {"max_windows", "texts"})
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
        raise HeadscopeError(f"{option('nulls')} is for texts; studies of images have no nulls.")
    if part.of > 1:
        raise HeadscopeError(
            f"{option('nulls')} can't be had of a part of a study; merge the parts, then run "
            f"{either('headscope nulls', 'headscope.nulls')}."
        )
    if given.once:
        raise HeadscopeError(
            f"{option('nulls')} reads the texts several times, which these do not allow; give files, or a list."
        )


def _check_sample(given: Texts | Images) -> None:
    if isinstance(given, Images):
        raise HeadscopeError(
            f"{option('sample')} is for texts; of images {either('--max-windows', 'max_images')} takes the first ones."
        )
    check_sample(given)


def _check_windows(given: Texts | Images, options: Options) -> None:
    if isinstance(given, Images):
        raise HeadscopeError(f"{option('keep_windows', True)} is for texts; of images the tables are of all.")
    check_meta(options.meta)
    given.keep(options.meta)
    if options.meta:
        check_first(given.first(LOOKED_AT, CHARACTERS), options.meta)


class _Prepared(NamedTuple):
    """What a study is made of. options: with all that was left open decided. notices: what is to be said of that."""

    capture: Capture
    source: TextWindows | ImageWindows
    options: Options
    notices: list[str]


def _prepared(model: Model, given: Texts | Images, options: Options, example: int, progress: bool) -> _Prepared:
    if isinstance(given, Images) and options.stack is None and has_two_towers(model.network):
        options = replace(options, stack="vision")
    capture = Capture(model.network, options.stack)
    source: TextWindows | ImageWindows
    notices: list[str] = []
    if isinstance(given, Images):
        source, options = _images(model, capture, given, options)
    else:
        if model.takes_images and not capture.reads_text:
            raise HeadscopeError(
                f"{model.name} takes images, not texts; give image files, or folders that hold nothing but images."
            )
        model.check_length(options.length)
        chosen = chosen_windows(model, given, options, progress)
        options, notices = chosen.options, chosen.notices
        source = chosen.source(shards.WINDOWS_PER_SHARD, example)
    if options.maps == "auto":
        size = len(capture.chosen_layers(options.layers)), capture.heads, options.length
        options = replace(options, maps="all" if map_bytes(*size) <= MOST_MAPS else "location")
        if options.maps != "all":
            notices.append(
                "Of the maps of every head only that of high pairs is kept: all would take "
                f"{map_bytes(*size) / 1e6:.0f} MB (with maps = all they are kept)."
            )
    return _Prepared(capture, source, options, notices)


def _images(model: Model, capture: Capture, given: Images, options: Options) -> tuple[ImageWindows, Options]:
    if not model.takes_images or capture.reads_text:
        stack = f" with {option('stack', options.stack)}" if model.takes_images and options.stack else ""
        raise HeadscopeError(
            f"{model.name} does not take images{stack}; {either('headscope study', 'headscope.study')} measures it "
            "over texts."
        )
    most = shards.WINDOWS_PER_SHARD
    source = ImageWindows(given, model.prepares_images, model.name, options.max_windows, most)
    source.grid = _grid(model, capture, torch.from_numpy(source.first)[None])
    at_once = options.batch_size or IMAGES_AT_ONCE
    return source, replace(options, length=source.grid.tokens, batch_size=at_once, short="drop")


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

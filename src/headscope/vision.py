"""Images instead of texts: the patches of an image are its tokens.

What needs words or sentences is absent here: repeats, sentences, punctuation, the token before and after. Distance is
measured on the grid of patches. All else is measured as it is for texts; an image is a window.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, fields
from functools import cached_property
from importlib import metadata
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from safetensors.numpy import save

from headscope.corpus.images import Picture, read_images
from headscope.corpus.windows import FIRST, SPECIAL, WORD, Batch
from headscope.errors import HeadscopeError
from headscope.files import write_atomically
from headscope.measure.accumulate import Tally
from headscope.measure.tables import heads_table, layers_table
from headscope.model.capture import Capture
from headscope.model.loading import Model, as_model
from headscope.options import Options
from headscope.progress import Bar
from headscope.run import shards
from headscope.run.shards import chosen_layers
from headscope.run.sums import Sum
from headscope.run.threads import Lanes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANIFEST = "images.json"
"""Not study.json: what reads studies of texts must not take this for one."""
IMAGES_AT_ONCE = 4
"""In a batch whose size is not asked for."""
ABSENT = (
    "repeat",
    "same_sentence",
    "attention_previous",
    "attention_next",
    "attention_to_sentence_end",
    "attention_to_comma",
    "attention_to_punctuation",
    "line_separator_share",
)
"""Columns and arrays that begin so need words, sentences or one line of tokens."""


@dataclass(frozen=True)
class Grid:
    """rows x columns of patches, after `before` tokens that are no patches: [CLS], registers."""

    rows: int
    columns: int
    before: int

    @property
    def tokens(self) -> int:
        return self.before + self.rows * self.columns

    @cached_property
    def distance(self) -> NDArray[np.float64]:
        """(S, S): how far apart two patches are, in patches; NaN where one token is no patch.

        >>> Grid(2, 2, before=1).distance[1].round(2).tolist()
        [nan, 0.0, 1.0, 1.0, 1.41]
        """
        place = np.stack(np.divmod(np.arange(self.rows * self.columns), self.columns), -1)
        apart = np.full((self.tokens, self.tokens), np.nan)
        apart[self.before :, self.before :] = np.linalg.norm(place[:, None] - place[None], axis=-1)
        return apart


@dataclass(frozen=True)
class ImageStudy:
    """What was measured over images. `heads` and `layers` are DataFrames, `arrays` has the sums over images."""

    model_name: str
    images: int
    grid: Grid
    options: Options
    heads: pd.DataFrame
    layers: pd.DataFrame
    arrays: dict[str, NDArray[Any]]

    @property
    def distance_chance(self) -> float:
        """The mean distance of all pairs of patches."""
        return float(np.nanmean(self.grid.distance[np.triu_indices(self.grid.tokens, 1)]))

    def figure(self) -> Figure:
        """Distance on the grid, and attention on the first token, by layer."""
        from headscope.show.figures.images import draw

        return draw(self)

    def save(self, folder: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write tables, arrays and what was run."""
        target = Path(folder)
        if target.exists() and (not target.is_dir() or any(target.iterdir())) and not overwrite:
            raise HeadscopeError(f"{target} exists and is not empty; give another --out, or --overwrite.")
        target.mkdir(parents=True, exist_ok=True)
        for name, table in (("heads", self.heads), ("layers", self.layers)):
            table.to_csv(target / f"{name}.csv", index=False)
            table.to_parquet(target / f"{name}.parquet", index=False)
        write_atomically(target / "arrays.safetensors", save(self.arrays))
        about = {
            "headscope": metadata.version("headscope"),
            "model": self.model_name,
            "images": self.images,
            "grid": {field.name: getattr(self.grid, field.name) for field in fields(Grid)},
            "options": self.options.as_dict(),
        }
        write_atomically(target / MANIFEST, (json.dumps(about, indent=1) + "\n").encode())

    def __repr__(self) -> str:
        grid = f"{self.grid.rows} x {self.grid.columns} patches"
        return f"ImageStudy({self.model_name}: {len(self.layers)} layers, {self.images:,} images of {grid})"


def study_images(
    model: Model | str,
    images: Any,
    *,
    threshold: float = 0.3,
    line_threshold: float = 0.3,
    special: str = "keep",
    layers: tuple[int, ...] | None = None,
    max_images: int | None = None,
    batch_size: int | None = None,
    progress: bool = True,
) -> ImageStudy:
    """Measure every head of a vision model over images.

    images: paths of files or folders, or arrays (see `corpus.images.read_images`). The model's image processor scales
    and crops them. Nothing is written until `save` is called.

    >>> import headscope
    >>> study = headscope.study_images("google/vit-base-patch16-224", "photos/")  # doctest: +SKIP
    """
    model = as_model(model)
    if not model.takes_images:
        raise HeadscopeError(f"{model.name} does not take images; headscope study measures it over texts.")
    at_once = batch_size or IMAGES_AT_ONCE
    batches = _batches(model, islice(read_images(images), max_images), at_once)
    first = next(batches, None)
    if first is None:
        raise HeadscopeError("There is no image to measure.")
    capture = Capture(model.network)
    grid = _grid(model, capture, first)
    options = Options(
        length=grid.tokens,
        threshold=threshold,
        line_threshold=line_threshold,
        special=special,  # type: ignore[arg-type]
        layers=layers,
        batch_size=batch_size,
    )
    chosen = chosen_layers(capture, options)
    total = Sum()
    with (
        Bar(f"Measuring {model.name}", "images", progress) as bar,
        closing(Lanes(capture, model.device, torch.get_num_threads())) as lanes,
    ):
        pieces = _with_tokens(model, grid, chain([first], batches))
        for piece in pieces:
            tally = Tally(capture.heads, chosen, options, model.device)
            others = islice(pieces, max(1, shards.WINDOWS_PER_SHARD // at_once) - 1)
            tally.add(lanes, chain([piece], others), bar.advance)
            total.add(tally.arrays())
    total.settle()
    total.unpack(keep_rest=False)
    arrays = total.whole
    return ImageStudy(
        model.name,
        int(arrays["windows"].max()),
        grid,
        options,
        _fitting(heads_table(arrays, list(chosen)), arrays, grid, "heads"),
        _fitting(layers_table(arrays, list(chosen)), arrays, grid, "layers"),
        {name: array for name, array in arrays.items() if not name.startswith(ABSENT)},
    )


def _batches(model: Model, pictures: Iterator[Picture], batch_size: int) -> Iterator[torch.Tensor]:
    """(B, channels, height, width)"""
    while batch := list(islice(pictures, batch_size)):
        try:
            pixels = model.tokenizer(images=batch, return_tensors="pt")["pixel_values"]
        except ValueError as problem:
            raise HeadscopeError(f"The image processor of {model.name} can't take these images ({problem}).") from None
        yield pixels.to(model.device, next(model.network.parameters()).dtype)


def _with_tokens(model: Model, grid: Grid, batches: Iterable[torch.Tensor]) -> Iterator[tuple[Batch, torch.Tensor]]:
    size = None
    for pixels in batches:
        size = size or pixels.shape[2:]
        if pixels.shape[2:] != size:
            raise HeadscopeError(
                f"The image processor of {model.name} makes images of different sizes, {tuple(size)} "
                f"and {tuple(pixels.shape[2:])}; give images of one size."
            )
        yield _tokens(grid, len(pixels)), pixels


def _grid(model: Model, capture: Capture, pixels: torch.Tensor) -> Grid:
    """From what was captured: tokens that are more than the patches come before them."""
    patch = getattr(model.network.config, "patch_size", None)
    if not isinstance(patch, int):
        raise HeadscopeError(f"{model.name} does not say how large its patches are, so they have no grid.")
    rows, columns = (side // patch for side in pixels.shape[2:])
    tokens: list[int] = []
    capture.run(pixels[:1], None, lambda layer, A, Z: tokens.append(Z.shape[2]), last=0)
    if tokens[0] < rows * columns:
        raise HeadscopeError(f"{model.name} has {tokens[0]} tokens for {rows} x {columns} patches; it has no grid.")
    return Grid(rows, columns, tokens[0] - rows * columns)


def _tokens(grid: Grid, count: int) -> Batch:
    """Patches are all different tokens, numbered by their place, and in no sentence."""
    kind = np.full(grid.tokens, WORD, dtype=np.int8)
    kind[: grid.before] = SPECIAL
    kind[0] = FIRST
    special = np.arange(grid.tokens) < grid.before
    alike = (count, grid.tokens)
    return Batch(
        np.broadcast_to(np.arange(grid.tokens, dtype=np.int64), alike).copy(),
        np.full(count, grid.tokens, dtype=np.int64),
        np.full(alike, -1, dtype=np.int32),
        np.broadcast_to(kind, alike).copy(),
        np.broadcast_to(special, alike).copy(),
    )


def _fitting(table: pd.DataFrame, arrays: dict[str, NDArray[Any]], grid: Grid, of: str) -> pd.DataFrame:
    """The table without what needs words, and with distances on the grid."""
    table = table[[name for name in table if not str(name).startswith(ABSENT)]]
    high = np.triu(arrays["high_count"])
    high = high.sum(1) if of == "layers" else high.reshape(-1, grid.tokens, grid.tokens)
    placed = high * np.isfinite(grid.distance)
    pairs = placed.sum((1, 2))
    apart = (placed * np.nan_to_num(grid.distance)).sum((1, 2))
    distance = np.divide(apart, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
    return table.assign(mean_distance=distance).rename(columns={"attention_to_word": "attention_to_patch"})

"""Images as a source of windows: an image is a window, its patches are the tokens.

What needs words or sentences is absent: repeats, sentences, punctuation, the token before and after. Distance is
measured on the grid of patches. All else is measured as it is for texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.grid import Grid
from headscope.corpus.images import Images, Picture
from headscope.corpus.texts import Text
from headscope.corpus.windows import FIRST, SPECIAL, WORD, Counts, Window
from headscope.errors import HeadscopeError

SHARD_BYTES = 2**26
"""Of the images of one shard, as a model takes them."""


class ImageWindows:
    """The windows of images, in order (see `run.source`). processor: scales and crops an image as the model takes it.

    The grid is known when the model has seen one image: it is set then, and no window can be had before.
    """

    unit = "images"
    example_window = None

    def __init__(self, images: Images, processor: Any, model_name: str, most: int | None, most_in_a_shard: int) -> None:
        self._images = images
        self._processor = processor
        self._model_name = model_name
        self._most = most
        self._most_in_a_shard = most_in_a_shard
        self._hash = hashlib.sha256()
        self.counts = Counts()
        self.grid: Grid | None = None
        pictures = iter(images)
        first = next(pictures, None)
        if first is None:
            raise HeadscopeError("There is no image to measure.")
        self.first = self._pixels(first)
        self._pictures = chain([first], pictures)

    @property
    def windows_per_shard(self) -> int:
        """As many as fit into SHARD_BYTES, at least one."""
        fitting: int = SHARD_BYTES // self.first.nbytes
        return max(1, min(fitting, self._most_in_a_shard))

    @property
    def name(self) -> str:
        return self._images.name

    @property
    def unusable(self) -> int:
        """Images that were passed over."""
        return self._images.bad

    @property
    def made(self) -> int:
        return self.counts.windows

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def windows(self, wanted: Callable[[int], bool] | None) -> Iterator[Window]:
        assert self.grid is not None
        for number, picture in enumerate(islice(self._pictures, self._most)):
            self._hash.update(f"{picture.shape}".encode())
            self._hash.update(np.ascontiguousarray(picture).data)
            self.counts.texts += 1
            self.counts.windows += 1
            if wanted is None or wanted(number):
                pixels = self._pixels(picture)
                if pixels.shape != self.first.shape:
                    raise HeadscopeError(
                        f"The image processor of {self._model_name} makes images of different sizes, "
                        f"{self.first.shape[1:]} and {pixels.shape[1:]}; give images of one size."
                    )
                yield _window(self.grid, pixels, number)

    @property
    def expected(self) -> int | None:
        return self._most

    def changed(self) -> list[str]:
        return []

    def why_none(self) -> str:
        return "There is no image to measure."

    def _pixels(self, picture: Picture) -> NDArray[np.float32]:
        """(channels, height, width)"""
        try:
            made = self._processor(images=[picture], return_tensors="np")["pixel_values"]
        except ValueError as problem:
            raise HeadscopeError(
                f"The image processor of {self._model_name} can't take these images ({problem})."
            ) from None
        pixels: NDArray[np.float32] = np.asarray(made, dtype=np.float32)[0]
        return pixels


def _window(grid: Grid, pixels: NDArray[np.float32], number: int) -> Window:
    """Patches are all different tokens, numbered by their place, and in no sentence."""
    places = np.arange(grid.tokens, dtype=np.int64)
    special = places < grid.before
    kind = np.where(special, SPECIAL, WORD).astype(np.int8)
    kind[0] = FIRST
    nowhere = np.zeros(grid.tokens, dtype=np.int64)
    sentence = np.full(grid.tokens, -1, dtype=np.int32)
    text = Text(f"image {number}", "")
    return Window(places, grid.tokens, sentence, kind, special, nowhere, nowhere, text, number, pixels)

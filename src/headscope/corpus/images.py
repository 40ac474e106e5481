"""Where images come from: files, folders, numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.errors import HeadscopeError

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")

Picture = NDArray[np.uint8]
"""(height, width, 3)"""


class Images:
    """Images to be measured, as a user gives them (see `read_images`), and what they are called.

    skip_bad: those that can't be read are counted in `bad`, instead of ending it all.
    """

    def __init__(self, images: Any, skip_bad: bool = False) -> None:
        self.images = images
        self.skip_bad = skip_bad
        self.bad = 0
        given = [images] if isinstance(images, (str, Path)) else images
        places = [str(one) for one in given if isinstance(one, (str, Path))] if isinstance(given, (list, tuple)) else []
        self.name = " ".join(places) or "images given in Python"

    def __iter__(self) -> Iterator[Picture]:
        self.bad = 0
        return read_images(self.images, self._count if self.skip_bad else None)

    def _count(self) -> None:
        self.bad += 1


def are_images(places: Iterable[str | Path]) -> bool:
    """Every place is an image file, an .npy file, or a folder that holds images and nothing that is a text."""
    found = [_files(Path(place)) for place in places]
    return bool(found) and all(files and all(_is_image(file) for file in files) for files in found)


def read_images(images: Any, on_bad: Callable[[], None] | None = None) -> Iterator[Picture]:
    """Images in a fixed order; where one can't be read, `on_bad` is told, or if there is none it all ends.

    images: paths of image files, of folders, or of .npy files; arrays (height, width, 3) or (n, height, width, 3) of
    0 to 255; or one of these.
    """
    given = [images] if isinstance(images, (str, Path, np.ndarray)) else images
    for one in given:
        if isinstance(one, (str, Path)):
            yield from _read(Path(one), on_bad)
        else:
            yield from _pictures(np.asarray(one), "The array")


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in (*SUFFIXES, ".npy")


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        return sorted(path for path in place.rglob("*") if path.is_file() and not path.name.startswith("."))
    return [place]


def _read(place: Path, on_bad: Callable[[], None] | None) -> Iterator[Picture]:
    from PIL import Image, UnidentifiedImageError

    if not place.exists():
        raise HeadscopeError(f"There is no image {place}; check the path.")
    files = [path for path in _files(place) if _is_image(path)]
    if not files:
        raise HeadscopeError(f"{place} holds no images; {', '.join(SUFFIXES)} and .npy are read.")
    for path in files:
        try:
            if path.suffix.lower() == ".npy":
                yield from _pictures(np.load(path, allow_pickle=False), str(path))
            else:
                with Image.open(path) as image:
                    yield np.asarray(image.convert("RGB"))
        except (OSError, ValueError, SyntaxError, UnidentifiedImageError, Image.DecompressionBombError) as problem:
            if on_bad is None:
                raise HeadscopeError(f"{path} can't be read as an image ({problem}).") from None
            on_bad()


def _pictures(array: NDArray[Any], name: str) -> Iterator[Picture]:
    if array.ndim == 3:
        array = array[None]
    if array.ndim != 4 or array.shape[-1] != 3 or array.dtype != np.uint8:
        raise HeadscopeError(
            f"{name} is of shape {array.shape} and type {array.dtype}; images are (height, width, 3) or "
            "(n, height, width, 3) of whole numbers 0 to 255 (uint8)."
        )
    yield from array

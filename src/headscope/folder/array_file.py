"""The arrays of a study folder, each read when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from headscope.errors import HeadscopeError
from headscope.files import DTYPES
from headscope.measure.catalogue import SYMMETRIC
from headscope.measure.declaration import Specs
from headscope.measure.triangles import pack, pairs_of, unpack

_NARROWER = {"int64": ("uint8", "uint16", "int32")}
"""A type -> those that may stand for it in a file, the narrowest first."""


def narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """As it is written: counts take the narrowest type that all of them fit into.

    >>> [narrowed(np.array([count])).dtype.name for count in (3, 300, -3, 2**40)]
    ['uint8', 'uint16', 'int32', 'int64']
    """
    least, most = (int(array.min()), int(array.max())) if array.size else (0, 0)
    for name in _NARROWER.get(array.dtype.name, ()):
        if np.iinfo(name).min <= least and most <= np.iinfo(name).max:
            return array.astype(name)
    return array


class AbsentError(HeadscopeError, KeyError):
    """An older version did not keep what is asked for. A mapping raises KeyError; a user reads a sentence."""


class ArrayFile(Mapping[str, NDArray[Any]]):
    """Arrays by name. Those in `specs` must be of that type and shape; one that is not there is absent, not damaged.
    Counts are given as int64; in the file they may be narrower (`narrowed`).

    Symmetric ones are given whole; in the file they may be packed, as i < j (see `triangles`). listed: all that there
    must be.
    """

    def __init__(self, path: Path, specs: Specs, listed: list[str] | None = None) -> None:
        self._path = path
        try:
            with safe_open(path, framework="numpy") as file:
                held = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
                found = {name: (DTYPES.get(item.get_dtype()), tuple(item.get_shape())) for name, item in held.items()}
        except (SafetensorError, OSError) as problem:
            raise HeadscopeError(f"{path} can't be read ({problem}); the study folder is damaged.") from None
        for name, (dtype, shape) in specs.items():
            packed = (*shape[:2], pairs_of(shape[2])) if name in SYMMETRIC and len(shape) == 4 else shape
            kind, size = found.get(name, (dtype, shape))
            if kind not in (dtype, *_NARROWER.get(dtype, ())) or size not in (shape, packed):
                raise HeadscopeError(f"{path} is damaged: its array {name} is not {dtype} of shape {shape}.")
        if listed is not None and sorted(listed) != sorted(found):
            odd = sorted(set(listed) ^ set(found))
            raise HeadscopeError(f"{path} is damaged: it holds other arrays than study.json lists ({odd[0]!r}).")
        self._names = sorted(found)
        self._dtypes = {name: dtype for name, (dtype, _) in specs.items()}
        self._kept: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._kept:
            array = self._read(name)
            self._kept[name] = unpack(array) if name in SYMMETRIC and array.ndim == 3 else array
        return self._kept[name]

    def packed(self, name: str) -> NDArray[Any]:
        """As it adds up: a symmetric one as i < j. It is not kept in memory."""
        array = self._read(name)
        return pack(array) if name in SYMMETRIC and array.ndim == 4 else array

    def _read(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise AbsentError(f"{self._path} has no array {name}; run the study again to have it.")
        with safe_open(self._path, framework="numpy") as file:
            array: NDArray[Any] = file.get_tensor(name)
        return array.astype(self._dtypes.get(name, array.dtype), copy=False)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

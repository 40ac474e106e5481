"""The arrays of a study folder, each read when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from headscope.errors import HeadscopeError
from headscope.files import DTYPES
from headscope.measure.declaration import Specs


class AbsentError(HeadscopeError, KeyError):
    """An older version did not keep what is asked for. A mapping raises KeyError; a user reads a sentence."""

    def __str__(self) -> str:
        return str(self.args[0])


class ArrayFile(Mapping[str, NDArray[Any]]):
    """Arrays by name. Those in `specs` must be of that type and shape; one that is not there is absent, not damaged."""

    def __init__(self, path: Path, specs: Specs, listed: list[str] | None = None) -> None:
        self._path = path
        try:
            with safe_open(path, framework="numpy") as file:
                held = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
                found = {name: (DTYPES.get(item.get_dtype()), tuple(item.get_shape())) for name, item in held.items()}
        except (SafetensorError, OSError) as problem:
            raise HeadscopeError(f"{path} can't be read ({problem}); the study folder is damaged.") from None
        for name, spec in specs.items():
            if found.get(name, spec) != spec:
                raise HeadscopeError(f"{path} is damaged: its array {name} is not {spec[0]} of shape {spec[1]}.")
        if listed is not None and sorted(listed) != sorted(found):
            odd = sorted(set(listed) ^ set(found))
            raise HeadscopeError(f"{path} is damaged: it holds other arrays than study.json lists ({odd[0]!r}).")
        self._names = sorted(found)
        self._kept: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise AbsentError(f"{self._path} has no array {name}; run the study again to have it.")
        if name not in self._kept:
            with safe_open(self._path, framework="numpy") as file:
                self._kept[name] = file.get_tensor(name)
        return self._kept[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

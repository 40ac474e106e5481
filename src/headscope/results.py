"""The study folder: write, read."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from headscope import checkpoints
from headscope.errors import HeadscopeError
from headscope.storage import Pieces, checksum, file_checksum, safetensors_pieces, write_atomically
from headscope.sums import Sum
from headscope.tables import derived_arrays, heads_table, layers_table
from headscope.view import View

MANIFEST = "study.json"
ARRAYS = "arrays.safetensors"
REST = "rest.safetensors"
"""Of a part of a study: what rounding cut off its sums, so that merged parts are the whole to the last bit."""
EXAMPLE = ("example.json", "example.safetensors")
FORMAT = 1
"""Raised when a folder written by this version can't be read by an older one."""


class ArrayFile(Mapping[str, NDArray[Any]]):
    """The arrays of a safetensors file, each read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with safe_open(path, framework="numpy") as file:
                self._names = sorted(file.keys())
        except (SafetensorError, OSError) as problem:
            raise HeadscopeError(f"{path} can't be read ({problem}); the study folder is damaged.") from None
        self._kept: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(f"no array {name!r}; there are {', '.join(self._names)}")
        if name not in self._kept:
            with safe_open(self._path, framework="numpy") as file:
                self._kept[name] = file.get_tensor(name)
        return self._kept[name]

    def __iter__(self) -> Any:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Study:
    """A finished study, read from its folder; neither the model nor the texts are needed.

    `heads` and `layers` are DataFrames, `arrays` a mapping of numpy arrays, `manifest` says what was run.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.manifest = _read_manifest(self.folder)

    @cached_property
    def heads(self) -> pd.DataFrame:
        return self._table("heads")

    @cached_property
    def layers(self) -> pd.DataFrame:
        return self._table("layers")

    @cached_property
    def arrays(self) -> ArrayFile:
        return ArrayFile(self.folder / ARRAYS)

    @cached_property
    def example(self) -> View:
        """The one text that the study keeps, for figures that show one."""
        return View.load(self.folder)

    @property
    def model_name(self) -> str:
        name: str = self.manifest["model"]["name"]
        return name

    @property
    def windows(self) -> int:
        windows: int = self.manifest["counts"]["windows"]
        return windows

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write everything on one page that opens without a network; by default report.html in the folder."""
        from headscope.report import write_report

        return write_report(self, path)

    def _repr_html_(self) -> str:
        """In a notebook: what was run, findings, the layers."""
        from headscope.report import summary

        return summary(self)

    def _table(self, name: str) -> pd.DataFrame:
        path = self.folder / f"{name}.parquet"
        try:
            return pd.read_parquet(path)
        except (OSError, ValueError) as problem:
            raise HeadscopeError(f"{path} can't be read ({problem}); the study folder is damaged.") from None

    def __repr__(self) -> str:
        model = self.manifest["model"]
        return (
            f"Study({str(self.folder)!r}: {model['name']}, {len(self.manifest['layers'])} layers x "
            f"{model['heads']} heads, {self.windows:,} windows)"
        )


def read(folder: str | os.PathLike[str]) -> Study:
    """Open a study folder."""
    return Study(folder)


def write(folder: Path, manifest: dict[str, Any], total: Sum) -> Study:
    """Write a finished study; the manifest comes last, so that a folder that has one is whole."""
    layers = manifest["layers"]
    states = total.whole
    files: dict[str, bytes | Pieces] = {ARRAYS: safetensors_pieces({**states, **derived_arrays(states)})}
    if manifest["parts"]["held"] != list(range(1, manifest["parts"]["of"] + 1)):
        files[REST] = safetensors_pieces(total.rest)
    for name, table in (("heads", heads_table(states, layers)), ("layers", layers_table(states, layers))):
        files[f"{name}.csv"] = table.to_csv(index=False).encode()
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        files[f"{name}.parquet"] = buffer.getvalue()
    for name, content in files.items():
        write_atomically(folder / name, content)
    sums = {name: checksum(content) for name, content in files.items()}
    if manifest["example"] is not None:
        sums |= {name: file_checksum(folder / name) for name in EXAMPLE}
    manifest = {**manifest, "files": dict(sorted(sums.items()))}
    write_atomically(folder / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
    return Study(folder)


def windows_hash(fingerprints: Mapping[int, str]) -> str:
    """One number for all shards, by their place in the whole; those of several parts add up (see `add_hashes`)."""
    return add_hashes(hashlib.sha256(f"{index} {value}".encode()).hexdigest() for index, value in fingerprints.items())


def add_hashes(hashes: Iterable[str]) -> str:
    return f"{sum(int(value, 16) for value in hashes) % 2**256:064x}"


def claim(folder: Path, overwrite: bool) -> None:
    """Make sure that a study may be written here: nothing of the user's is ever overwritten unasked."""
    if folder.exists() and not folder.is_dir():
        raise HeadscopeError(f"--out {folder} is a file; name a folder.")
    if folder.is_dir() and any(folder.iterdir()) and not overwrite:
        if (folder / MANIFEST).exists():
            # A run that was killed in its last moment, when all results were written, leaves these.
            checkpoints.remove(folder)
            raise HeadscopeError(
                f"{folder} holds a finished study; read it with 'headscope report {folder}', "
                "or give another --out, or --overwrite."
            )
        if not (folder / checkpoints.FOLDER).is_dir():
            raise HeadscopeError(
                f"{folder} holds something other than a study; give another --out, or --overwrite to write into it."
            )


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not folder.is_dir():
        raise HeadscopeError(f"There is no study folder {folder}; check the path.")
    if not path.is_file():
        if (folder / checkpoints.FOLDER).is_dir():
            raise HeadscopeError(
                f"The study in {folder} is not finished; run the same headscope study command again to go on."
            )
        raise HeadscopeError(f"The folder {folder} holds no {MANIFEST}, so it is not a study folder.")
    try:
        manifest = json.loads(path.read_text("utf-8"))
        known = manifest["format"] <= FORMAT
        _ = manifest["model"]["name"], manifest["counts"]["windows"], manifest["layers"], manifest["options"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise HeadscopeError(f"{path} is damaged; run the study again.") from None
    if not known:
        raise HeadscopeError(f"{folder} was written by a newer headscope; upgrade headscope to read it.")
    checked: dict[str, Any] = manifest
    return checked

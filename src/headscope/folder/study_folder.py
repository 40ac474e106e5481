"""The study folder: write, read."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from headscope.errors import HeadscopeError
from headscope.files import KINDS, Pieces, check_name, checksum, file_checksum, safetensors_pieces, write_atomically
from headscope.folder.manifest import MANIFEST as MANIFEST
from headscope.folder.manifest import read_manifest
from headscope.measure.shapes import Specs, array_specs
from headscope.measure.tables import derived_arrays, heads_table, layers_table
from headscope.model.loading import shortened
from headscope.one_text.view import View
from headscope.run import checkpoints
from headscope.run.sums import Sum

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ARRAYS = "arrays.safetensors"
REST = "rest.safetensors"
"""Of a part of a study: what rounding cut off its sums, so that merged parts are the whole to the last bit."""
EXAMPLE = ("example.json", "example.safetensors")


class ArrayFile(Mapping[str, NDArray[Any]]):
    """The arrays of a study, each read when it is asked for. Shapes and types are those that the manifest implies."""

    def __init__(self, path: Path, specs: Specs) -> None:
        self._path = path
        try:
            with safe_open(path, framework="numpy") as file:
                held = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
                found = {name: (KINDS.get(item.get_dtype()), tuple(item.get_shape())) for name, item in held.items()}
        except (SafetensorError, OSError) as problem:
            raise HeadscopeError(f"{path} can't be read ({problem}); the study folder is damaged.") from None
        for name, spec in specs.items():
            if found.get(name, spec) != spec:
                raise HeadscopeError(f"{path} is damaged: its array {name} is not {spec[0]} of shape {spec[1]}.")
        self._names = sorted(found)
        self._kept: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise MissingArray(f"{self._path} has no array {name}; run the study again to have it.")
        if name not in self._kept:
            with safe_open(self._path, framework="numpy") as file:
                self._kept[name] = file.get_tensor(name)
        return self._kept[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class MissingArray(HeadscopeError, KeyError):
    """A mapping raises KeyError; a user reads a sentence."""

    def __str__(self) -> str:
        return str(self.args[0])


class Study:
    """A finished study, read from its folder; neither the model nor the texts are needed.

    `heads` and `layers` are DataFrames, `arrays` a mapping of numpy arrays, `manifest` says what was run.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.manifest = read_manifest(self.folder)

    @cached_property
    def heads(self) -> pd.DataFrame:
        return self._table("heads")

    @cached_property
    def layers(self) -> pd.DataFrame:
        return self._table("layers")

    @cached_property
    def arrays(self) -> ArrayFile:
        return ArrayFile(self.folder / ARRAYS, array_specs(*self.size))

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

    def figure(self, number: int | str, **choices: Any) -> Figure:
        """A figure of the paper, by its number; also "spectrum" and "atlas". Choices: `layers=(1, 6)`, `heads=(3,)`."""
        from headscope.show.figures import draw

        return draw(self, number, **choices)

    def figures(self, folder: str | os.PathLike[str] | None = None, **choices: Any) -> list[Path]:
        """Draw all figures into a folder, by default `figures` in that of the study; see `figures.save_all`."""
        from headscope.show.figures import save_all

        return save_all(self, folder, **choices)

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write everything on one page that opens without a network; by default report.html in the folder."""
        from headscope.show.report import write_report

        return write_report(self, path)

    def _repr_html_(self) -> str:
        """In a notebook: what was run, findings, the layers."""
        from headscope.show.report import summary

        return summary(self)

    @property
    def size(self) -> tuple[int, int, int]:
        """Layers measured, heads of each, tokens in a window: L, H and S of the arrays."""
        return len(self.manifest["layers"]), self.manifest["model"]["heads"], self.manifest["options"]["length"]

    def _table(self, name: str) -> pd.DataFrame:
        import pyarrow
        import pyarrow.parquet

        path = self.folder / f"{name}.parquet"
        layers, heads = self.manifest["layers"], self.manifest["model"]["heads"]
        rows = len(layers) * heads if name == "heads" else len(layers)
        try:
            file = pyarrow.parquet.ParquetFile(path)
            # The number of rows comes first: a file of a few bytes may claim billions.
            table: pd.DataFrame | None = (
                file.read().to_pandas(ignore_metadata=True) if file.metadata.num_rows == rows else None
            )
        except (OSError, ValueError, pyarrow.ArrowException) as problem:
            reason = shortened(" ".join(str(problem).split()))
            raise HeadscopeError(f"{path} can't be read ({reason}); the study folder is damaged.") from None
        empty = {name: np.zeros(shape, dtype) for name, (dtype, shape) in array_specs(1, 1, 2).items()}
        with np.errstate(invalid="ignore"):
            expected = (heads_table if name == "heads" else layers_table)(empty, [0]).dtypes
        if (
            table is None
            or not expected.equals(table.dtypes)
            or table["layer"].tolist() != [layer for layer in layers for _ in range(rows // len(layers))]
        ):
            raise HeadscopeError(f"{path} is damaged: its rows or columns are not those of this study.")
        return table

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
    files: dict[str, bytes | Pieces] = {ARRAYS: [*safetensors_pieces({**states, **derived_arrays(states)})]}
    if manifest["part"] is not None:
        files[REST] = [*safetensors_pieces(total.rest)]
    # A part may hold no window at all: then every mean is NaN.
    with np.errstate(invalid="ignore"):
        tables = {"heads": heads_table(states, layers), "layers": layers_table(states, layers)}
    for name, table in tables.items():
        files[f"{name}.csv"] = table.to_csv(index=False).encode()
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        files[f"{name}.parquet"] = buffer.getvalue()
    with ThreadPoolExecutor(1, "checksums") as beside:
        hashed = {name: beside.submit(checksum, content) for name, content in files.items()}
        for name, content in files.items():
            write_atomically(folder / name, content)
    sums = {name: digest.result() for name, digest in hashed.items()}
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
    check_name(folder, "--out")
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
    ground = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not os.access(ground, os.W_OK):
        raise HeadscopeError(f"The folder {ground} can't be written to; give another --out.")

"""A finished study, written: tables, arrays, and the manifest last, so that a folder that has one is whole."""

from __future__ import annotations

import io
from collections.abc import Container, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from headscope.files import Pieces, checksum, file_checksum, safetensors_pieces, write_atomically
from headscope.folder.manifest import ARRAYS, MANIFEST, Manifest, manifest_bytes
from headscope.folder.study_folder import EXAMPLE, REST, with_grid
from headscope.measure.catalogue import kept_states
from headscope.measure.tables import TABLES, derived_arrays
from headscope.run.sums import ExactSum


def write(folder: Path, manifest: Manifest, total: ExactSum, only: Mapping[str, Container[str]] | None = None) -> None:
    """Write the folder of a study whose states are added up in `total`; its example, if any, is there already.

    only: table -> the columns it is to have, where studies of an older version are merged, which lack some states.
    """
    gives = manifest.gives
    states = {name: total.whole[name] for name in kept_states(gives) if only is None or name in total.whole}
    arrays = {**states, **derived_arrays(states, gives)}
    files: dict[str, bytes | Pieces] = {ARRAYS: [*safetensors_pieces(arrays)]}
    if manifest.part is not None:
        files[REST] = [*safetensors_pieces({name: total.rest[name] for name in states if name in total.rest})]
    columns: dict[str, list[str]] = {}
    for name, make in TABLES.items():
        table = make(with_grid(states, manifest.source.grid), manifest.layers, gives, only and only[name])
        columns[name] = list(table.columns)
        files[f"{name}.csv"] = table.to_csv(index=False).encode()
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        files[f"{name}.parquet"] = buffer.getvalue()
    with ThreadPoolExecutor(1, "checksums") as beside:
        hashed = {name: beside.submit(checksum, content) for name, content in files.items()}
        for name, content in files.items():
            write_atomically(folder / name, content)
    sums = {name: digest.result() for name, digest in hashed.items()}
    if manifest.example is not None:
        sums |= {name: file_checksum(folder / name) for name in EXAMPLE}
    manifest = replace(manifest, tables=columns, arrays=sorted(arrays), files=dict(sorted(sums.items())))
    write_atomically(folder / MANIFEST, manifest_bytes(manifest))
